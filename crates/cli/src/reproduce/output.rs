//! What a reproduction leaves: a text, its charts, and the data behind them.

use super::claims::Verdict;
use super::{Claim, Section, summary};
use anyhow::Result;
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

/// Writes the text, the charts and the data behind them.
pub(crate) fn write(folder: &Path, text: &str, sections: &[Section]) -> Result<()> {
    use selvedge_run::files::{make_folder, write_whole};
    make_folder(folder)?;
    for figure in sections.iter().flat_map(|s| &s.figures) {
        write_whole(&folder.join(&figure.name), figure.svg.as_bytes())?;
    }
    write_whole(&folder.join("reproduction.md"), text.as_bytes())?;
    let json = serde_json::to_string_pretty(sections)? + "\n";
    Ok(write_whole(
        &folder.join("reproduction.json"),
        json.as_bytes(),
    )?)
}
