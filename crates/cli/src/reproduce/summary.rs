//! What was found, before all tables: claims counted by set, interval and baseline, and by how much HSGD needs less.

use super::claims::Verdict;
use super::{Claim, Section};

/// The columns: data sets and P = Q.
type Column = (String, u64);

/// A row: what is shown, what of it is compared, with whom.
type Row = (String, String, String);

/// The tables; nothing where no claim compares HSGD with another.
pub(super) fn markdown(sections: &[Section]) -> String {
    let (columns, rows) = (columns(sections), rows(sections));
    if rows.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "## At a glance\n\nWhat the paper claims of HSGD against each of the others: how often it holds, is reversed, shows no difference (none), or neither reaches the target (unreached). Where the paper has HSGD needing more, it holds if HSGD needs more here.\n\n",
    );
    out += &table(&columns, &rows, |row, column| {
        counted(&claims(sections, row, column))
    });
    out += "\n## By how much\n\nHSGD's cost divided by theirs, geometric means over the seeds (or timings): the smallest and the largest over the targets that both reach with every seed.\n\n";
    let with_ratios: Vec<Row> = rows
        .into_iter()
        .filter(|row| {
            let all = columns.iter().flat_map(|c| claims(sections, row, c));
            all.filter_map(|claim| claim.ratio).next().is_some()
        })
        .collect();
    out += &table(&columns, &with_ratios, |row, column| {
        range(&claims(sections, row, column))
    });
    out.push('\n');
    out
}

/// One line for each row, one cell for each column.
fn table(columns: &[Column], rows: &[Row], cell: impl Fn(&Row, &Column) -> String) -> String {
    let mut out = String::from("| | against |");
    for (set, interval) in columns {
        out += &format!(" {set}, {interval} |");
    }
    out += &format!("\n| --- | --- |{}\n", " --- |".repeat(columns.len()));
    for row in rows {
        let (what, about, other) = row;
        out += &format!("| {what}, {about} | {other} |");
        for column in columns {
            out += &format!(" {} |", cell(row, column));
        }
        out.push('\n');
    }
    out
}

/// Sets and intervals: set by set, in the order of the sections.
fn columns(sections: &[Section]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    let comparing = sections
        .iter()
        .filter(|s| s.claims.iter().any(|c| c.between.is_some()));
    for section in comparing {
        let column = section.interval.map(|k| (section.set.clone(), k));
        columns.extend(column.filter(|column| !columns.contains(column)));
    }
    let sets: Vec<String> = columns.iter().map(|(set, _)| set.clone()).collect();
    columns.sort_by_key(|(set, k)| (sets.iter().position(|other| other == set), *k));
    columns
}

fn rows(sections: &[Section]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for section in sections {
        for claim in &section.claims {
            let Some((about, other)) = &claim.between else {
                continue;
            };
            let row = (short(section), about.clone(), other.clone());
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    rows
}

/// `Figure 4` of `Figure 4, AUC against time`
fn short(section: &Section) -> String {
    let what = section.what.split(',').next();
    what.unwrap_or_default().into()
}

fn claims<'a>(sections: &'a [Section], row: &Row, column: &Column) -> Vec<&'a Claim> {
    let (what, about, other) = row;
    let of = |s: &&Section| {
        let (set, interval) = column;
        s.set == *set && s.interval == Some(*interval) && short(s) == *what
    };
    let is_it = |claim: &&Claim| {
        let between = claim.between.as_ref();
        between.is_some_and(|(a, o)| a == about && o == other)
    };
    let all = sections.iter().filter(of).flat_map(|s| &s.claims);
    all.filter(is_it).collect()
}

/// `5 hold, 1 none`
fn counted(claims: &[&Claim]) -> String {
    let of = |(verdict, word): (Verdict, &str)| {
        let n = claims.iter().filter(|c| c.verdict == verdict).count();
        (n > 0).then(|| format!("{n} {word}"))
    };
    let words = [
        (Verdict::Holds, "hold"),
        (Verdict::Reversed, "reversed"),
        (Verdict::Open, "none"),
        (Verdict::Unreached, "unreached"),
    ];
    let words: Vec<String> = words.into_iter().filter_map(of).collect();
    words.join(", ")
}

/// `0.39 to 0.52`
fn range(claims: &[&Claim]) -> String {
    let ratios = claims.iter().filter_map(|c| c.ratio);
    let all = ratios.fold(None, |found: Option<(f64, f64)>, r| {
        let (least, most) = found.unwrap_or((r, r));
        Some((least.min(r), most.max(r)))
    });
    let text = |r: f64| format!("{r:.2}");
    match all {
        None => String::new(),
        Some((least, most)) if text(least) == text(most) => text(least),
        Some((least, most)) => format!("{least:.2} to {most:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(other: &str, verdict: Verdict, ratio: Option<f64>) -> Claim {
        Claim {
            text: String::new(),
            between: Some(("bytes".into(), other.into())),
            paper: String::new(),
            verdict,
            ratio,
            found: String::new(),
        }
    }

    #[test]
    fn claims_are_counted_by_set_interval_and_baseline() {
        let section = |set: &str, interval: u64, claims: Vec<Claim>| Section {
            claims,
            ..Section::new("table2", "Table II", set.into(), Some(interval))
        };
        let sections = [
            section(
                "ESR",
                1,
                vec![
                    claim("jfl", Verdict::Holds, Some(0.39)),
                    claim("jfl", Verdict::Open, Some(0.521)),
                    claim("jfl", Verdict::Holds, None),
                    claim("tdcd", Verdict::Reversed, Some(1.5)),
                ],
            ),
            section("ESR", 5, vec![claim("jfl", Verdict::Unreached, None)]),
            Section::new("fig7", "Figure 7, P above Q", "ESR".into(), None),
        ];
        let text = markdown(&sections);
        for line in [
            "| | against | ESR, 1 | ESR, 5 |",
            "| Table II, bytes | jfl | 2 hold, 1 none | 1 unreached |",
            "| Table II, bytes | tdcd | 1 reversed |  |",
            "| Table II, bytes | jfl | 0.39 to 0.52 |  |",
            "| Table II, bytes | tdcd | 1.50 |  |",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert_eq!(markdown(&sections[2..]), "");
    }
}
