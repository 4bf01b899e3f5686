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

/// Probabilities of all classes add up to one but for their rounding.
const ROUNDING: f32 = 1e-3;

/// Whether these are predictions as `predict` and `ask` write them, in which nobody has changed or noted anything else.
pub(crate) fn is_predictions(text: &str) -> bool {
    let Some(rows) = rows(text) else {
        return false;
    };
    let Some((head, rows)) = rows.split_first() else {
        return false;
    };
    let has_notes = head.last().is_some_and(|name| name == "notes");
    let columns = head.len() - usize::from(has_notes);
    let number = |text: &String| text.parse::<f32>().ok().filter(|p| p.to_string() == *text);
    let is_note = |note: &str| NOTES.iter().any(|says| note.contains(says));
    let are_notes = |row: &Vec<String>| {
        let notes = row.get(columns).filter(|notes| !notes.is_empty());
        notes.is_none_or(|notes| notes.split("; ").all(is_note))
    };
    let all_begin = |with: &str| head[1..columns].iter().all(|name| name.starts_with(with));
    // Of labels, a survival curve or a quantity; of classes, `prediction` comes first.
    if columns > 1
        && head[0] == "id"
        && (all_begin("probability_")
            || all_begin("survival_")
            || head[1..columns] == ["prediction"])
    {
        let are_numbers = |row: &Vec<String>| row[1..columns].iter().all(|t| number(t).is_some());
        let is_row =
            |row: &Vec<String>| row.len() == head.len() && are_numbers(row) && are_notes(row);
        return !rows.is_empty() && rows.iter().all(is_row);
    }
    // How the class was chosen, where one is the positive one.
    let is_chosen = head[..columns].ends_with(&["positive".to_owned(), "threshold".to_owned()]);
    let numbers = columns - if is_chosen { 2 } else { 0 };
    let (Some(["id", "prediction"]), Some(classes)) = (
        head.get(..2).map(|two| [two[0].as_str(), two[1].as_str()]),
        head.get(2..numbers),
    ) else {
        return false;
    };
    let class = |name: &String| Some(name.strip_prefix("probability_")?.to_owned());
    let Some(classes) = classes.iter().map(class).collect::<Option<Vec<String>>>() else {
        return false;
    };
    let is_class = |text: &str| {
        let is = |class: &String| text.strip_prefix('\'').unwrap_or(text) == class || text == class;
        classes.iter().any(is)
    };
    let is_row = |row: &Vec<String>| {
        let said: Option<Vec<f32>> = row[2..numbers].iter().map(number).collect();
        let are_chosen = match &row[numbers..columns] {
            [positive, at] => {
                let is_threshold = at.is_empty() || at == "unreachable" || number(at).is_some();
                is_class(positive) && is_threshold
            }
            _ => true,
        };
        is_class(&row[1])
            && are_chosen
            && said.is_some_and(|all| (all.iter().sum::<f32>() - 1.0).abs() < ROUNDING)
            && are_notes(row)
    };
    !classes.is_empty()
        && rows
            .iter()
            .all(|row| row.len() == head.len() && is_row(row))
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
        let asked = "id,prediction,probability_no,probability_yes\np1,yes,0.25,0.75\n";
        assert!(is_predictions(asked));
        let head = "id,prediction,probability_no,probability_yes,positive,threshold,notes\n";
        for threshold in ["", "0.25", "unreachable"] {
            let row = |positive: &str| format!("{head}p1,yes,0.25,0.75,{positive},{threshold},\n");
            assert!(is_predictions(&row("yes")) && !is_predictions(&row("maybe")));
        }
        for answers in [
            "id,prediction,notes\np1,-2.5,\n",
            "id,probability_ill,probability_late\np1,0.75,0.5\n",
            "id,survival_7,survival_30.5,notes\np1,0.75,0.5,pulse was not measured\n",
        ] {
            assert!(is_predictions(answers), "{answers}");
            let changed = answers
                .replace("5,", "5 (high),")
                .replace("5\n", "5 (high)\n");
            assert!(!is_predictions(&changed), "{changed}");
        }
        for (from, to) in [
            (",notes", ",notes,ward"),
            ("id,", "patient,"),
            ("probability_no", "no"),
            ("p1,no", "p1,maybe"),
            ("0.75,0.25", "0.750,0.25"),
            ("0.75,0.25", "0.75,0.5"),
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
            "id,prediction,notes\n",
            "a",
        ] {
            assert!(!is_predictions(other), "{other}");
        }
    }
}
