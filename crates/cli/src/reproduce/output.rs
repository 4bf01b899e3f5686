//! What a reproduction leaves: a text, its charts, and the data behind them.

use super::claims::Verdict;
use super::{Claim, Section, summary};
use anyhow::Result;
use selvedge_run::outputs::{Kind, Output};
use std::path::Path;

/// Everything as one text in Markdown, which is readable as it is.
pub(crate) fn markdown(sections: &[Section]) -> String {
    let mut out = summary::markdown(sections);
    for section in sections {
        out += &format!("## {}\n\n", section.title());
        for figure in &section.figures {
            out += &format!("![{0}]({0})\n\n", figure.name);
        }
        out += &format!(
            "```text\n{}```\n\n",
            selvedge_run::format::table(&section.rows)
        );
        for note in &section.notes {
            out += &format!("{note}\n\n");
        }
        if section.claims.is_empty() {
            continue;
        }
        out += "| claim | paper | | found here (first / second) |\n| --- | --- | --- | --- |\n";
        for claim in &section.claims {
            out += &format!(
                "| {} | {} | {} | {} |\n",
                claim.text,
                claim.paper,
                claim.verdict.name(),
                claim.found
            );
        }
        out.push('\n');
    }
    out += &counts(sections);
    out
}

/// How many claims hold.
fn counts(sections: &[Section]) -> String {
    let claims: Vec<&Claim> = sections.iter().flat_map(|s| &s.claims).collect();
    let count = |verdict| claims.iter().filter(|c| c.verdict == verdict).count();
    format!(
        "{} claims: {} hold, {} are reversed, {} show no difference, in {} neither reaches the target.\n",
        claims.len(),
        count(Verdict::Holds),
        count(Verdict::Reversed),
        count(Verdict::Open),
        count(Verdict::Unreached)
    )
}

/// The text and the data, below a folder.
const FILES: [&str; 2] = ["reproduction.md", "reproduction.json"];

/// Refuses a folder in which something else has the names of what is written.
pub(crate) fn check(folder: &Path) -> Result<()> {
    FILES
        .iter()
        .try_for_each(|name| free(&folder.join(name), Kind::Reproduction))
}

fn free(path: &Path, kind: Kind) -> Result<()> {
    let option = "--out";
    Ok(Output { option, path, kind }.check(&[])?)
}

/// Writes the text, the charts and the data behind them.
pub(crate) fn write(folder: &Path, text: &str, sections: &[Section]) -> Result<()> {
    use selvedge_run::files::{make_folder, write_whole};
    make_folder(folder)?;
    check(folder)?;
    let figures = || sections.iter().flat_map(|s| &s.figures);
    for figure in figures() {
        free(&folder.join(&figure.name), Kind::Chart)?;
    }
    for figure in figures() {
        write_whole(&folder.join(&figure.name), figure.svg.as_bytes())?;
    }
    let json = serde_json::to_string_pretty(sections)? + "\n";
    for (name, contents) in FILES.into_iter().zip([text, &json]) {
        write_whole(&folder.join(name), contents.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The book's reproduction is what the command wrote, to the letter.
    #[test]
    fn the_published_text_follows_from_the_published_data() {
        let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction");
        let read = |name: &str| std::fs::read_to_string(book.join(name)).unwrap();
        let sections: Vec<Section> = serde_json::from_str(&read("reproduction.json")).unwrap();
        assert!(markdown(&sections) == read("reproduction.md"));
        for figure in sections.iter().flat_map(|s| &s.figures) {
            assert!(book.join(&figure.name).is_file(), "{}", figure.name);
        }
        // All three sets, each with every part.
        let parts = |of: &str| {
            let of = sections.iter().filter(|s| s.set.contains(of));
            of.map(|s| s.part.as_str()).collect::<Vec<_>>()
        };
        for set in ["ESR", "physionet2012", "mednist"] {
            let there = parts(set);
            let needed = super::super::PARTS.iter().filter(|part| **part != "layers");
            for part in needed.chain(&["rates"]) {
                assert!(there.contains(part), "{set}: {part}");
            }
        }
        assert!(parts("ESR").contains(&"layers"));
        for rates in sections.iter().filter(|s| s.part == "rates") {
            let notes = ["Nothing chooses an end of the grid."];
            assert_eq!(rates.notes, notes, "{}", rates.title());
        }
    }

    /// The page that explains it has no figure that was measured: only names, settings and levels.
    #[test]
    fn the_explanation_has_no_figures_of_its_own() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction/README.md");
        let text = std::fs::read_to_string(page).unwrap();
        let prose: Vec<&str> = text.split("```").step_by(2).collect();
        let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
        let numbers = prose.iter().flat_map(|p| p.split(|c| !is_part(c)));
        let numbers = numbers.map(|n| n.trim_matches(['.', ',']));
        // θ0, ζ1 and ζ2; P = Q = 1; per cent that decide; Figures 4 to 9; C(P, Q)'s columns; 48 hours; a year.
        let known = [
            "", "0", "1", "2", "4", "5", "6", "7", "8", "9", "36", "38", "48", "76", "2012",
        ];
        for number in numbers {
            assert!(known.contains(&number), "{number} stands in no table");
        }
    }
}
