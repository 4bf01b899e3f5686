//! What was answered for each patient, as CSV and as JSON: probabilities of classes or labels, a quantity, or a survival
//! curve.

use crate::answers;
use crate::report::text::csv_cell;
use crate::written::UNREACHABLE;
use selvedge_core::calibration::Calibration;
use selvedge_core::metrics::argmax;
use selvedge_core::outcome::{Kind, Outcome};
use selvedge_core::positive::Positive;
use selvedge_core::role::Answer;
use serde_json::{Map, Value, json};

/// How a class is chosen: what stands beside each prediction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// The positive class, if there is one.
    pub(crate) positive: Option<String>,
    /// The probability from which on it is predicted; without one the most likely class is.
    pub(crate) threshold: Option<f32>,
}

/// Answers, and who is unknown.
pub(crate) struct Predictions {
    outcome: Outcome,
    classes: Vec<String>,
    /// The positive class, and why it is.
    positive: Option<Positive>,
    /// How probabilities are corrected, if they are.
    pub(crate) calibration: Option<Calibration>,
    answered: Vec<(String, Vec<f32>)>,
    /// Ids of those whom the hospital does not know.
    pub(crate) unknown: Vec<String>,
}

impl Predictions {
    pub(super) fn new(
        (outcome, classes, positive): (Outcome, Vec<String>, Option<Positive>),
        calibration: Option<Calibration>,
        answers: impl Iterator<Item = (String, Answer)>,
    ) -> Self {
        let mut predictions = Predictions {
            outcome,
            classes,
            positive,
            calibration,
            answered: Vec::new(),
            unknown: Vec::new(),
        };
        for (id, answer) in answers {
            match answer {
                Some(probabilities) => predictions.answered.push((id, probabilities)),
                None => predictions.unknown.push(id),
            }
        }
        predictions
    }

    /// Whether its answers are probabilities that can be calibrated.
    pub(crate) fn calibrates(&self) -> bool {
        matches!(self.outcome.kind(), Kind::Class | Kind::Labels)
    }

    /// How many were answered.
    pub(crate) fn answered(&self) -> usize {
        self.answered.len()
    }

    fn class(&self, probabilities: &[f32]) -> &str {
        let class = self.classes.get(argmax(probabilities));
        class.map_or("", String::as_str)
    }

    /// `id,prediction,probability_<class>…,positive,threshold`, or `id` and [`columns`](answers::columns); numbers are written so that
    /// reading them gives the same bits.
    pub(crate) fn csv(&self) -> String {
        if !self.outcome.is_class() {
            let mut text = answers::csv_head((&self.outcome, &self.classes)) + "\n";
            for (id, said) in &self.answered {
                text += &(answers::csv_line(id, said) + "\n");
            }
            return text;
        }
        let chosen = Chosen {
            positive: self
                .positive
                .as_ref()
                .map(|positive| positive.label.clone()),
            threshold: None,
        };
        let mut text = csv_head(&self.classes, &chosen) + "\n";
        for (id, said) in &self.answered {
            text += &(csv_line((id, self.class(said)), said, &chosen) + "\n");
        }
        text
    }

    /// One JSON object.
    pub(crate) fn json(&self) -> Value {
        if !self.outcome.is_class() {
            let one = |(id, said): &(String, Vec<f32>)| {
                let mut value = answers::json((&self.outcome, &self.classes), said);
                value["id"] = json!(id);
                value
            };
            return json!({
                "outcome": self.outcome,
                "names": self.classes,
                "calibration": self.calibration,
                "patients": self.answered.iter().map(one).collect::<Vec<_>>(),
                "unknown": self.unknown,
            });
        }
        let one = |(id, said): &(String, Vec<f32>)| {
            let by_class = by_class(&self.classes, said);
            json!({ "id": id, "prediction": self.class(said), "probabilities": by_class })
        };
        json!({
            "classes": self.classes,
            "calibration": self.calibration,
            "positive": self.positive.as_ref().map(|Positive { label, why, .. }| {
                json!({ "class": label, "why": why.to_string() })
            }),
            "threshold": null,
            "patients": self.answered.iter().map(one).collect::<Vec<_>>(),
            "unknown": self.unknown,
        })
    }
}

/// The headings above [`csv_line`].
pub(crate) fn csv_head(classes: &[String], chosen: &Chosen) -> String {
    let name = |class: &String| format!(",{}", csv_cell(&format!("probability_{class}")));
    let names: String = classes.iter().map(name).collect();
    let positive = chosen
        .positive
        .as_ref()
        .map_or("", |_| ",positive,threshold");
    format!("id,prediction{names}{positive}")
}

/// What is said of a patient.
pub(crate) fn csv_line(
    (id, class): (&str, &str),
    probabilities: &[f32],
    chosen: &Chosen,
) -> String {
    let numbers: String = probabilities.iter().map(|p| format!(",{p}")).collect();
    let mut line = format!("{},{}{numbers}", csv_cell(id), csv_cell(class));
    if let Some(positive) = &chosen.positive {
        let threshold = chosen
            .threshold
            .map_or(String::new(), |p| match p.is_finite() {
                true => p.to_string(),
                false => UNREACHABLE.into(),
            });
        line += &format!(",{},{threshold}", csv_cell(positive));
    }
    line
}

pub(crate) fn by_class(classes: &[String], probabilities: &[f32]) -> Map<String, Value> {
    let each = classes.iter().zip(probabilities);
    each.map(|(class, p)| (class.clone(), json!(p))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_to_the_bit_and_names_are_quoted() {
        let p = [1.0f32 / 3.0, 2.0 / 3.0];
        let answers = [
            ("a,\"b\"".to_owned(), Some(p.to_vec())),
            ("c".to_owned(), None),
        ];
        let said = Predictions::new(
            (Outcome::Class, vec!["no".into(), "yes, ill".into()], None),
            None,
            answers.into_iter(),
        );
        let csv = said.csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            lines[0],
            "id,prediction,probability_no,\"probability_yes, ill\""
        );
        let rest = lines[1]
            .strip_prefix("\"a,\"\"b\"\"\",\"yes, ill\",")
            .unwrap();
        let read: Vec<f32> = rest.split(',').map(|p| p.parse().unwrap()).collect();
        assert_eq!(read.as_slice(), p.as_slice());
        assert_eq!((lines.len(), said.unknown.len()), (2, 1));
        let survival = Outcome::Survival {
            ends: vec![7.0, 30.5],
        };
        let answer = [("a".to_owned(), Some(vec![0.5, 0.25]))];
        let curve = Predictions::new(
            (survival, vec!["death".into()], None),
            None,
            answer.into_iter(),
        );
        assert_eq!(curve.csv(), "id,survival_7,survival_30.5\na,0.5,0.25\n");
        assert!(crate::written::is_predictions(&curve.csv()));
        let value = &said.json()["patients"][0];
        assert_eq!(
            (&value["id"], &value["prediction"]),
            (&json!("a,\"b\""), &json!("yes, ill"))
        );
    }
}
