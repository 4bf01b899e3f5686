//! What is written for users, and how a file shows that a command wrote it.

use crate::seal;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// What is written, and so what may be replaced: an earlier one of the same kind, as it was written.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    /// A page of HTML.
    Page,
    /// A chart, as SVG.
    Chart,
    /// A text in Markdown.
    Card,
    /// A program in Python.
    Script,
    /// A table as plain text.
    Table,
    /// Rows as training sees them, as `.npz`.
    Export,
    /// A model's inputs, as `.npz`.
    Arrays,
    /// A network as ONNX, with a [`blank`](Kind::blank) seal in it.
    Network,
    /// Weights, likewise.
    Weights,
    /// A text without a seal, by its name; the function knows one that was written.
    Known(&'a str, &'a dyn Fn(&str) -> bool),
    /// What replaces nothing, by its name.
    New(&'a str),
}

/// Where the seal is.
enum Place {
    /// At the end, between these.
    End(&'static str, &'static str),
    /// In the comment of an archive.
    Comment,
    /// Somewhere within.
    Within,
    /// There is none.
    Nowhere,
}

impl Kind<'_> {
    pub(super) fn name(self) -> String {
        let name = match self {
            Kind::Page => "a page",
            Kind::Chart => "a chart",
            Kind::Card => "a text",
            Kind::Script => "a program",
            Kind::Table => "a table",
            Kind::Export => "an export of data",
            Kind::Arrays => "a model's inputs",
            Kind::Network => "a network",
            Kind::Weights => "weights",
            Kind::Known(name, _) | Kind::New(name) => name,
        };
        name.to_owned()
    }

    fn place(self) -> Place {
        match self {
            Kind::Page | Kind::Chart | Kind::Card => Place::End("<!-- ", " -->\n"),
            Kind::Script | Kind::Table => Place::End("\n# ", "\n"),
            Kind::Export | Kind::Arrays => Place::Comment,
            Kind::Network | Kind::Weights => Place::Within,
            Kind::Known(..) | Kind::New(_) => Place::Nowhere,
        }
    }

    /// The seal that a format must have somewhere within.
    pub fn blank(self) -> String {
        seal::blank(&self.name())
    }

    /// Seals a file that was just written.
    pub(super) fn seal(self, file: &mut File) -> io::Result<()> {
        let end = file.seek(SeekFrom::End(0))?;
        match self.place() {
            Place::End(before, behind) => {
                file.write_all(format!("{before}{}{behind}", self.blank()).as_bytes())?;
            }
            Place::Comment => {
                // An archive ends with the length of its comment, which is 0 so far.
                let comment = self.blank();
                file.seek(SeekFrom::Start(end.saturating_sub(2)))?;
                file.write_all(&(comment.len() as u16).to_le_bytes())?;
                file.write_all(comment.as_bytes())?;
            }
            Place::Within => {}
            Place::Nowhere => return Ok(()),
        }
        seal::set(file, &self.name())
    }

    /// Whether a file is as an earlier command wrote it.
    pub(super) fn has_written(self, file: &mut File) -> io::Result<bool> {
        match self {
            Kind::Known(_, is_one) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                Ok(std::str::from_utf8(&bytes).is_ok_and(is_one))
            }
            Kind::New(_) => Ok(false),
            _ => seal::is_right(file, &self.name()),
        }
    }
}
