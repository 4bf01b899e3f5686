//! Why the ids of two files do not meet: the same patients, written differently.

/// A reading of an id that ignores one way of writing it, and what is said where it makes ids meet.
type Reading = (fn(&str) -> String, &'static str);

/// The likeliest first.
const READINGS: [Reading; 5] = [
    (
        |id| id.split_whitespace().collect(),
        "apart from blanks they are the same: remove the blanks",
    ),
    (
        |id| id.to_lowercase(),
        "apart from upper and lower case they are the same: write them alike",
    ),
    (
        |id| id.strip_suffix(".0").unwrap_or(id).to_owned(),
        "apart from \".0\" they are the same: one file has them as decimals (as pandas writes whole numbers of a column with gaps); write them as whole numbers",
    ),
    (
        |id| id.trim_start_matches('0').to_owned(),
        "apart from leading zeros they are the same: a program has read them as numbers; write them alike, as text",
    ),
    (
        |id| {
            let digits: String = id.chars().filter(char::is_ascii_digit).collect();
            let whole = digits.trim_start_matches('0');
            whole.to_owned()
        },
        "their digits are the same: write them alike",
    ),
];

/// Ids that are compared: more tell nothing new.
const MOST: usize = 10_000;

/// Three of some ids.
pub(super) fn three<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    let mut first: Vec<&str> = ids.take(MOST).collect();
    first.sort_unstable_by_key(|id| (id.len(), *id));
    let shown: Vec<String> = first.iter().take(3).map(|id| format!("{id:?}")).collect();
    shown.join(", ")
}

/// The likely cause why two lots of ids do not meet, if most of the smaller one would by another reading.
pub(super) fn cause<'a>(
    own: impl Iterator<Item = &'a str>,
    others: impl Iterator<Item = &'a str>,
) -> Option<&'static str> {
    let (own, others): (Vec<&str>, Vec<&str>) =
        (own.take(MOST).collect(), others.take(MOST).collect());
    let meets = |(reading, _): &&Reading| {
        let known: std::collections::HashSet<String> =
            others.iter().map(|id| reading(id)).collect();
        let met = |id: &&&str| {
            let read = reading(id);
            !read.is_empty() && known.contains(&read)
        };
        2 * own.iter().filter(met).count() > own.len().min(others.len())
    };
    READINGS.iter().find(meets).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_cause_is_named() {
        let of = |own: &[&'static str], others: &[&'static str]| {
            cause(own.iter().copied(), others.iter().copied()).unwrap_or("none")
        };
        let plain = ["1", "2", "13"];
        for (others, part) in [
            (["001", "002", "013"], "leading zeros"),
            (["1.0", "2.0", "13.0"], "\".0\""),
            (["p1", "p2", "p13"], "digits"),
            (["a", "b", "c"], "none"),
        ] {
            assert!(of(&plain, &others).contains(part), "{others:?}");
        }
        assert!(of(&["a 1", "b 2"], &["a1", "b2"]).contains("blanks"));
        assert!(of(&["P1", "P2"], &["p1", "p2"]).contains("case"));
        assert_eq!(
            three(["10", "9", "8", "7"].into_iter()),
            "\"7\", \"8\", \"9\""
        );
    }
}
