//! What is known of how stays ended: death in hospital, how long they were, and how long patients lived.

use crate::DataError;
use crate::asked::Known;
use crate::files::collection::Text;
use crate::rows::UNLABELLED;
use crate::settings;
use selvedge_core::experiment::DataSettings;
use selvedge_core::outcome::{Kind, Targets};
use std::collections::BTreeMap;

/// What can be learnt.
pub(super) const OUTCOMES: &[(&str, Kind)] = &[
    ("death", Kind::Class),
    ("labels", Kind::Labels),
    ("stay", Kind::Quantity),
    ("survival", Kind::Survival),
];

/// The labels, and of two of them how many days a stay is longer than.
const LABELS: [&str; 3] = ["died", "stay over 7 days", "stay over 14 days"];
const LONG: [f32; 2] = [7.0, 14.0];

/// For how many days a patient whose death nobody has recorded is taken to have lived. The set says nothing about when
/// they were last seen.
const LIVED: f64 = 365.0;

/// How one stay ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    died: u32,
    /// In days, if the list says so.
    stay: Option<f32>,
    /// Days until death, if it was recorded.
    lived: Option<f32>,
}

/// By RecordID.
pub(crate) type Outcomes = BTreeMap<u32, Ended>;

/// What is learnt of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    kind: Kind,
    horizon: f64,
}

impl Wanted {
    pub(super) fn of(settings: &DataSettings) -> Result<Self, DataError> {
        let (_, kind) = settings::outcome(settings, &super::SET)?;
        Ok(Wanted {
            kind,
            horizon: settings.horizon.unwrap_or(LIVED),
        })
    }

    /// Death in hospital.
    #[cfg(feature = "fuzz")]
    pub(crate) const DEATH: Wanted = Wanted {
        kind: Kind::Class,
        horizon: LIVED,
    };

    /// How many numbers a model gives.
    pub(super) fn labels(settings: &DataSettings) -> usize {
        match Wanted::of(settings).map(|wanted| wanted.kind) {
            Ok(Kind::Labels) => LABELS.len(),
            _ => 2,
        }
    }

    /// The names of the classes or labels, or that of the quantity or of the event.
    pub(super) fn names(self) -> Vec<String> {
        let names: &[&str] = match self.kind {
            Kind::Class => &["survived", "died"],
            Kind::Labels => &LABELS,
            Kind::Quantity => &["days of stay"],
            Kind::Survival => &["death"],
        };
        names.iter().map(ToString::to_string).collect()
    }

    /// Whether anything is known of a stay; of new ones it need not be.
    pub(super) fn is_known(self, ended: Option<&Ended>) -> bool {
        self.kind != Kind::Quantity || ended.is_none_or(|ended| ended.stay.is_some())
    }

    /// What is known of stays, by which they are told apart where they are dealt out, and what is said about it.
    pub(super) fn known(
        self,
        ended: &[Option<Ended>],
    ) -> (Vec<u32>, Option<Known>, Option<String>) {
        // By who died, whatever is learnt: so groups are the same.
        let died = ended
            .iter()
            .map(|ended| ended.map_or(UNLABELLED, |ended| ended.died));
        let died: Vec<u32> = died.collect();
        if self.kind == Kind::Class {
            return (died, None, None);
        }
        let unknown = [f32::NAN; LABELS.len()];
        let of = |ended: &Option<Ended>| {
            let [a, b, c] = ended.map_or(unknown, |ended| self.numbers(ended));
            match self.kind {
                Kind::Labels => vec![a, b, c],
                Kind::Survival => vec![a, b],
                Kind::Quantity | Kind::Class => vec![a],
            }
        };
        let values = ended.iter().flat_map(of).collect();
        let each = match self.kind {
            Kind::Labels => LABELS.len(),
            Kind::Survival => 2,
            Kind::Quantity | Kind::Class => 1,
        };
        let known = Known {
            kind: self.kind,
            targets: Targets::Numbers { each, values },
            strata: vec!["survived".into(), "died".into()],
            horizon: (self.kind == Kind::Survival).then_some(self.horizon),
        };
        let alive = ended
            .iter()
            .flatten()
            .filter(|ended| ended.lived.is_none())
            .count();
        let note = (self.kind == Kind::Survival && alive > 0).then(|| {
            format!(
                "no death is recorded for {alive} of {} patients: they are taken to have lived for {} days (data.horizon)",
                ended.len(),
                self.horizon
            )
        });
        let y = died.iter().map(|died| died & 1).collect();
        (y, Some(known), note)
    }

    fn numbers(self, ended: Ended) -> [f32; LABELS.len()] {
        let long = |days: f32| {
            ended
                .stay
                .map_or(f32::NAN, |stay| f32::from(u8::from(stay > days)))
        };
        match self.kind {
            Kind::Labels => [ended.died as f32, long(LONG[0]), long(LONG[1])],
            Kind::Survival => match ended.lived {
                Some(days) => [days, 1.0, 0.0],
                None => [self.horizon as f32, 0.0, 0.0],
            },
            Kind::Quantity | Kind::Class => [ended.stay.unwrap_or(f32::NAN), 0.0, 0.0],
        }
    }
}

/// Reads a list of outcomes. Those that are not learnt may be missing.
pub(crate) fn read_outcomes(
    text: &Text,
    wanted: Wanted,
    outcomes: &mut Outcomes,
) -> Result<(), DataError> {
    let wrong =
        |line, column: &str, value: &str, expected: &str| text.wrong(line, column, value, expected);
    let csv = text.csv()?;
    let columns = csv.columns();
    let column = |name: &str| {
        let place = columns.iter().position(|n| *n == name);
        place.ok_or_else(|| wrong(1, "1", &columns.join(","), &format!("a header with {name}")))
    };
    let days: &[&str] = match wanted.kind {
        Kind::Class => &[],
        Kind::Labels | Kind::Quantity => &["Length_of_stay"],
        Kind::Survival => &["Survival"],
    };
    let names = ["RecordID", "In-hospital_death"].iter().chain(days);
    let places: Vec<usize> = names.map(|name| column(name)).collect::<Result<_, _>>()?;
    csv.read(&places, &mut |line, cells| {
        let (line, id) = (line as usize, cells[0].text());
        let wrong_id = |expected| wrong(line, "RecordID", id, expected);
        let id: u32 = id
            .parse()
            .map_err(|_| wrong_id("a RecordID, like 132539"))?;
        let died = match cells[1].text() {
            "0" => 0,
            "1" => 1,
            other => return Err(wrong(line, "In-hospital_death", other, "0 or 1")),
        };
        let number = match (days, cells.get(2)) {
            ([name], Some(cell)) => {
                let found = cell.text().parse::<f32>().ok();
                let found = found.filter(|days| days.is_finite());
                let expected = "days, or -1 where that is unknown";
                let found = found.ok_or_else(|| wrong(line, name, cell.text(), expected))?;
                // The set has -1 there, and once -23.
                let known = Some(found).filter(|days| *days >= 0.0);
                if wanted.kind == Kind::Survival && died == 1 && known.is_none() {
                    let expected = "the days until death, since In-hospital_death is 1";
                    return Err(wrong(line, name, cell.text(), expected));
                }
                known
            }
            _ => None,
        };
        let ended = Ended {
            died,
            stay: number,
            lived: number,
        };
        match outcomes.insert(id, ended) {
            None => Ok(()),
            Some(_) => Err(wrong_id("a new RecordID: it has an outcome already")),
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, row: &str) -> Result<Outcomes, DataError> {
        let text = Text {
            place: "Outcomes-a.txt".into(),
            name: "Outcomes-a.txt".into(),
            text: format!(
                "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n{row}\n"
            ),
        };
        let wanted = Wanted {
            kind,
            horizon: LIVED,
        };
        let mut outcomes = Outcomes::new();
        read_outcomes(&text, wanted, &mut outcomes).map(|()| outcomes)
    }

    #[test]
    fn days_below_zero_are_unknown_unless_somebody_died() {
        let alive = read(Kind::Survival, "7,18,6,4,-23,0").unwrap();
        assert_eq!(alive[&7].lived, None);
        let died = read(Kind::Survival, "7,18,6,4,12,1").unwrap();
        assert_eq!(died[&7].lived, Some(12.0));
        let error = read(Kind::Survival, "7,18,6,4,-1,1").unwrap_err();
        assert!(error.to_string().contains("since In-hospital_death is 1"));
        assert!(read(Kind::Class, "7,18,6,4,-1,1").is_ok());
        assert!(read(Kind::Quantity, "7,18,6,many,-1,0").is_err());
        assert_eq!(
            read(Kind::Quantity, "7,18,6,-1,-1,0").unwrap()[&7].stay,
            None
        );
    }
}
