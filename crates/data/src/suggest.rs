//! "Did you mean": the nearest of a few known names.

/// Of the `known` names, the one nearest to `name`, if it is near enough to be a slip.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    known
        .iter()
        .map(|candidate| (distance(&lower, candidate), *candidate))
        .min()
        .filter(|(distance, candidate)| distance * 2 <= candidate.chars().count())
        .map(|(_, candidate)| candidate)
}

/// "one of `a`, `b`", and the nearest where there is one.
pub(crate) fn one_of(name: &str, known: &[&str]) -> String {
    let list: Vec<String> = known.iter().map(|n| format!("\"{n}\"")).collect();
    let hint = nearest(name, known).map_or(String::new(), |n| format!(" (did you mean \"{n}\"?)"));
    format!("expected one of {}{hint}", list.join(", "))
}

/// The number of letters to insert, delete or replace between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &cb) in b.iter().enumerate() {
            let replace = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("esr", "esr"), 0);
    }

    #[test]
    fn a_slip_is_recognised_and_nonsense_is_not() {
        let sets = ["synthetic", "esr"];
        assert_eq!(nearest("syntetic", &sets), Some("synthetic"));
        assert_eq!(nearest("ESR", &sets), Some("esr"));
        assert_eq!(nearest("mnist", &sets), None);
    }
}
