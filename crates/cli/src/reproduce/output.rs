//! What a reproduction leaves: a text, its charts, and the data behind them.

use super::claims::Verdict;
use super::{Claim, Section, summary};
use anyhow::Result;
use selvedge_run::files::make_folder;
use selvedge_run::outputs::{Kind, Output, write_together};
use std::path::{Path, PathBuf};

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

/// The data, as text.
fn json(sections: &[Section]) -> Result<String> {
    Ok(serde_json::to_string_pretty(sections)? + "\n")
}

/// The sections of such a text, if nobody has changed anything in it.
fn written(text: &str) -> Option<Vec<Section>> {
    let sections: Vec<Section> = serde_json::from_str(text).ok()?;
    (json(&sections).ok()? == text).then_some(sections)
}

/// Hands on the text and the data in a folder. Neither has a seal: one follows from the other.
fn with_outputs<T>(folder: &Path, then: impl FnOnce([Output<'_>; 2]) -> Result<T>) -> Result<T> {
    let paths = FILES.map(|name| folder.join(name));
    let data = std::fs::read_to_string(&paths[1]).unwrap_or_default();
    let follows = |text: &str| written(&data).is_some_and(|sections| markdown(&sections) == text);
    let is_data = |text: &str| written(text).is_some();
    let output = |path, is_one| Output {
        option: "--out",
        path,
        kind: Kind::Known("a reproduction", is_one),
    };
    then([output(&paths[0], &follows), output(&paths[1], &is_data)])
}

/// Refuses a folder in which something else has the names of what is written.
pub(crate) fn check(folder: &Path) -> Result<()> {
    with_outputs(folder, |all| {
        Ok(all.iter().try_for_each(|output| output.check(&[]))?)
    })
}

/// Writes the text, the charts and the data behind them.
pub(crate) fn write(folder: &Path, text: &str, sections: &[Section]) -> Result<()> {
    make_folder(folder)?;
    let figures = || sections.iter().flat_map(|s| &s.figures);
    let paths: Vec<PathBuf> = figures().map(|f| folder.join(&f.name)).collect();
    let data = json(sections)?;
    with_outputs(folder, |[first, second]| {
        let mut all = vec![(first, text.as_bytes()), (second, data.as_bytes())];
        for (figure, path) in figures().zip(&paths) {
            let (option, kind) = ("--out", Kind::Chart);
            all.push((Output { option, path, kind }, figure.svg.as_bytes()));
        }
        Ok(write_together(&all)?)
    })
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
        assert!(written(&read("reproduction.json")).is_some());
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
