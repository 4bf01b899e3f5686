//! How a text without a seal shows that a command wrote it: comma-separated values have no room for one.

/// What notes on a sample say.
const NOTES: [&str; 6] = [
    " is outside ",
    " is more than 10 standard deviations from ",
    " was never measured in training",
    " is a new category",
    " is a category that no training row had",
    " was not measured",
];

/// The threshold that no probability reaches.
pub(crate) const UNREACHABLE: &str = "unreachable";

/// Probabilities of all classes add up to one but for their rounding.
const ROUNDING: f64 = 1e-3;

const PROBABILITY: &str = "probability_";

/// Whether these are predictions as `predict` and `ask` write them, in which nobody has changed or noted anything else.
pub(crate) fn is_predictions(text: &str) -> bool {
    let rows = rows(text).unwrap_or_default();
    let Some((head, rows)) = rows.split_first() else {
        return false;
    };
    let is_row = |row: &Vec<String>| {
        let cells = || head.iter().zip(row);
        head.len() == row.len()
            && cells().all(|(name, cell)| is_cell(head, name, cell))
            && fits(head, row)
    };
    head[0] == "id"
        && head.len() > 1
        && head[1..] != ["notes"]
        && head.iter().rev().skip(1).all(|name| name != "notes")
        && !rows.is_empty()
        && rows.iter().all(is_row)
}

/// Whether this may stand under a heading of predictions.
fn is_cell(head: &[String], name: &str, cell: &str) -> bool {
    let is_note = |note: &str| NOTES.iter().any(|says| note.contains(says));
    match name {
        "id" => true,
        "notes" => cell.is_empty() || cell.split("; ").all(is_note),
        "prediction" => labels(head).next().is_some() || number(cell).is_some(),
        "positive" => labels(head).any(|label| label == plain(cell)),
        "threshold" => ["", UNREACHABLE].contains(&cell) || number(cell).is_some(),
        _ => {
            let is_number = [PROBABILITY, "survival_"]
                .iter()
                .any(|with| name.starts_with(with));
            is_number && number(cell).is_some()
        }
    }
}

/// Whether the class or the labels that are predicted follow from their probabilities.
fn fits(head: &[String], row: &[String]) -> bool {
    let cells = || head.iter().zip(row);
    let Some((_, predicted)) = cells().find(|(name, _)| *name == "prediction") else {
        return true;
    };
    let probability =
        |(name, cell): (&String, &String)| name.starts_with(PROBABILITY).then(|| number(cell))?;
    let all: Vec<f64> = cells().filter_map(probability).collect();
    let likely = labels(head).zip(&all).filter(|(_, p)| **p > 0.5);
    let likely: Vec<&str> = likely.map(|(label, _)| label).collect();
    let is_class = labels(head).any(|label| [predicted, plain(predicted)].contains(&label))
        && (all.iter().sum::<f64>() - 1.0).abs() < ROUNDING;
    all.is_empty() || is_class || likely.join("; ") == plain(predicted)
}

/// Those whose probabilities are there.
fn labels(head: &[String]) -> impl Iterator<Item = &str> {
    head.iter()
        .filter_map(|name| name.strip_prefix(PROBABILITY))
}

/// What was quoted against spreadsheets.
fn plain(cell: &str) -> &str {
    cell.strip_prefix('\'').unwrap_or(cell)
}

/// A number as we write it.
fn number(cell: &str) -> Option<f64> {
    cell.parse()
        .ok()
        .filter(|number: &f64| number.to_string() == cell)
}

/// Whether these are values under such headings.
pub(crate) fn is_under(head: &str, text: &str) -> bool {
    let columns = head.split(',').count();
    let is_row = |row: &Vec<String>| row.len() == columns;
    text.lines().next() == Some(head) && rows(text).is_some_and(|rows| rows.iter().all(is_row))
}

/// The cells of a text, if they are separated and quoted as we do it.
fn rows(text: &str) -> Option<Vec<Vec<String>>> {
    let (mut rows, mut row, mut rest) = (Vec::new(), Vec::new(), text);
    while !rest.is_empty() {
        let cell = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (cell, behind) = unquoted(quoted)?;
                rest = behind;
                cell
            }
            None => {
                let (cell, behind) = rest.split_at(rest.find([',', '\n', '"', '\r'])?);
                rest = behind;
                cell.to_owned()
            }
        };
        row.push(cell);
        let mut letters = rest.chars();
        match letters.next()? {
            ',' => {}
            '\n' => rows.push(std::mem::take(&mut row)),
            _ => return None,
        }
        rest = letters.as_str();
    }
    row.is_empty().then_some(rows)
}

/// A cell up to its closing quote, and what stands behind that.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut cell, mut rest) = (String::new(), text);
    loop {
        let (part, behind) = rest.split_once('"')?;
        cell += part;
        match behind.strip_prefix('"') {
            Some(more) => rest = more,
            None => return Some((cell, behind)),
        }
        cell.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "id,prediction,probability_no,\"probability_yes, ill\",notes\n\
        p1,no,0.75,0.25,\n\
        \"a \"\"b\"\",\nc\",\"yes, ill\",0.25,0.75,lab = 9 is outside the training range of 0 to 1; pulse was not measured\n";

    #[test]
    fn predictions_are_known_and_whatever_was_changed_is_not() {
        assert!(is_predictions(WRITTEN));
        for other in [
            "id,prediction,probability_no,probability_yes\np1,yes,0.25,0.75\n",
            "id,prediction,probability_no,probability_yes,positive,threshold,notes\np1,no,0.25,0.75,yes,0.8,\n",
            "id,prediction,probability_no,probability_=1,positive,threshold\np1,'=1,0.25,0.75,'=1,\n",
            "id,prediction,probability_a,probability_b,notes\np1,a; b,0.75,0.625,\np2,,0.25,0.5,\n",
            "id,probability_a,probability_b\np1,0.75,0.625\n",
            "id,prediction,notes\np1,12.5,\n",
            "id,survival_7,survival_30.5\np1,0.75,0.5\n",
        ] {
            assert!(is_predictions(other), "{other}");
        }
        for (from, to) in [
            (",notes", ",notes,ward"),
            ("id,", "patient,"),
            ("probability_no", "no"),
            ("p1,no", "p1,maybe"),
            ("0.75,0.25", "0.750,0.25"),
            ("0.75,0.25", "0.75,0.625"),
            ("0.75,0.25,\n", "0.75,0.25,phone her on Monday\n"),
            ("not measured", "not measured; phone her on Monday"),
            ("0.25,\n", "0.25,\r\n"),
            ("0.25,\n", "0.25\n"),
            ("\n\"a", "\n\n\"a"),
            ("not measured\n", "not measured"),
            ("\"a \"\"", "\"a \""),
        ] {
            let changed = WRITTEN.replacen(from, to, 1);
            assert!(changed != WRITTEN && !is_predictions(&changed), "{changed}");
        }
        assert!(is_under("a,b", "a,b\n1,\"2\n\"\n"));
        for other in ["a,b\n1\n", "a,b\n1,2", "a;b\n1,2\n", "a,b\n1,2\nnote\n"] {
            assert!(!is_under("a,b", other), "{other}");
        }
        for other in [
            "",
            "\n",
            "id,prediction\np1,no\n",
            "id,notes\np1,\n",
            "id,prediction,lab\np1,0.5,0.5\n",
            "id,stay until 30\np1,0.5\n",
            "id,prediction,probability_a,probability_b,notes\np1,a,0.75,0.625,\n",
            "id,prediction,notes\n",
            "a",
        ] {
            assert!(!is_predictions(other), "{other}");
        }
    }
}
