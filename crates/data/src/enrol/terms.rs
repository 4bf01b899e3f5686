//! What all parties must agree on before they enrol; invalid settings are refused here.

use crate::DataError;
use crate::settings::{self, wrong};
use crate::table::{check_columns, kind_of, names_of};
use selvedge_core::enrol::Terms;
use selvedge_core::experiment::{Categorical, DataSettings};
use selvedge_core::outcome::Kind;

/// The terms that all parties share: an experiment's `[data]` table and seed, if parties can enrol by them.
///
/// # Errors
/// If something is left open that each party would decide differently, from its own data.
pub fn terms(data: &DataSettings, seed: u64) -> Result<Terms, DataError> {
    let t = &data.table;
    if data.set != "table" {
        let expected = "enrolment needs tables held by the parties: expected \"table\"";
        return Err(wrong("set", format!("{:?}", data.set), expected));
    }
    settings::check(data)?;
    if t.id.is_empty() {
        let expected = "expected the column that identifies a patient to all parties";
        return Err(wrong("table.id", "\"\"", expected));
    }
    let kind = kind_of(data);
    if kind == Kind::Class && t.labels.is_empty() {
        let expected = "expected all labels in the order of their classes, like [\"no\", \"yes\"]: no party sees all that occur; or set data.outcome = \"quantity\" if they are numbers";
        return Err(wrong("table.labels", "[]", expected));
    }
    if kind == Kind::Survival && data.horizon.is_none() {
        let expected = "expected the time at which survival curves end: no party sees the last event, which is a single patient's";
        return Err(wrong("horizon", "none", expected));
    }
    if data.hidden != 0.0 {
        let expected = "nobody can hide labels where parties enrol: expected 0";
        return Err(wrong("hidden", data.hidden, expected));
    }
    let open = match &t.categorical {
        Categorical::Found(names) => names.first().cloned(),
        Categorical::Given(columns) => {
            let open = columns.iter().find(|(_, given)| given.is_empty());
            open.map(|(name, _)| name.clone())
        }
    };
    if let Some(name) = open {
        let expected = format!(
            "expected the categories of {name:?}, like {{ {name} = [\"a\", \"b\"] }}: no party sees all that occur"
        );
        return Err(wrong("table.categorical", format!("{name:?}"), expected));
    }
    if t.clip {
        let expected = "cannot be used in a consortium, since percentiles over all patients need pooled values: expected false";
        return Err(wrong("table.clip", true, expected));
    }
    if data.scaling != "standard" {
        let expected = "cannot be used in a consortium, since quartiles and skewness over all patients need pooled values: expected \"standard\"";
        return Err(wrong("scaling", format!("{:?}", data.scaling), expected));
    }
    for (key, column, expected) in [
        (
            "table.patient",
            &t.patient,
            "several rows for one patient cannot be enrolled: expected one row, or a time series, for each id",
        ),
        (
            "table.part",
            &t.part,
            "held-out patients are drawn by data.test and data.validation when parties enrol: expected \"\"",
        ),
    ] {
        if !column.is_empty() {
            return Err(wrong(key, format!("{column:?}"), expected));
        }
    }
    if t.one_sided != "leave-out" {
        let expected = "patients known to only one side are left out when parties enrol: expected \"leave-out\"";
        return Err(wrong(
            "table.one_sided",
            format!("{:?}", t.one_sided),
            expected,
        ));
    }
    if data.samples_per_device != 1 {
        let expected = "every patient is a device with one row when parties enrol: expected 1";
        return Err(wrong(
            "samples_per_device",
            data.samples_per_device,
            expected,
        ));
    }
    check_columns(data)?;
    Ok(Terms::new(data, seed, kind, names_of(t, kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::experiment::TableSettings;
    use std::collections::BTreeMap;

    fn right() -> DataSettings {
        let texts = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        DataSettings {
            set: "table".into(),
            table: TableSettings {
                id: "id".into(),
                label: "y".into(),
                labels: texts(&["no", "yes"]),
                hospital: texts(&["a"]),
                device: texts(&["b"]),
                ..TableSettings::default()
            },
            ..DataSettings::default()
        }
    }

    #[test]
    fn what_is_left_open_is_refused_by_its_key() {
        let about = terms(&right(), 1).unwrap().about;
        assert_ne!(terms(&right(), 2).unwrap().about, about);
        let mut elsewhere = right();
        elsewhere.path = "labs.csv".into();
        assert_eq!(terms(&elsewhere, 1).unwrap().about, about);
        type Change = fn(&mut DataSettings);
        let changes: [(&str, Change); 13] = [
            ("data.set", |d| d.set = "esr".into()),
            ("data.table.id", |d| d.table.id.clear()),
            ("data.table.labels", |d| d.table.labels.clear()),
            ("data.table.label", |d| d.table.label.clear()),
            ("data.table.categorical", |d| {
                d.table.categorical = Categorical::Found(vec!["a".into()]);
            }),
            ("data.table.categorical", |d| {
                let open = BTreeMap::from([("a".to_owned(), Vec::new())]);
                d.table.categorical = Categorical::Given(open);
            }),
            ("data.table.clip", |d| d.table.clip = true),
            ("data.scaling", |d| d.scaling = "log".into()),
            ("data.table.patient", |d| d.table.patient = "p".into()),
            ("data.table.one_sided", |d| {
                d.table.one_sided = "keep".into()
            }),
            ("data.samples_per_device", |d| d.samples_per_device = 2),
            ("data.horizon", |d| {
                d.outcome = "survival".into();
                d.table.event = "died".into();
                d.table.labels.clear();
            }),
            ("data.hidden", |d| {
                d.outcome = "labels".into();
                d.table.labels.clear();
                d.hidden = 0.5;
            }),
        ];
        for (key, change) in changes {
            let mut wrong = right();
            change(&mut wrong);
            let message = terms(&wrong, 1).unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("{key} = ")),
                "{key}: {message}"
            );
        }
    }
}
