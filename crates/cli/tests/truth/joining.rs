//! Ids that do not meet are said to, with what they look like.

use crate::common::{Place, says};
use crate::tables::{Patient, hospital, patients, place, series, wearable};

/// Patients whose ids are numbers in one file, and what `other` makes of these in the other.
fn joined(own: impl Fn(usize) -> String, other: impl Fn(usize) -> String) -> Place {
    let named = |name: &dyn Fn(usize) -> String| -> Vec<Patient> {
        let numbered = patients(120).into_iter().enumerate();
        numbered
            .map(|(n, p)| Patient { id: name(n), ..p })
            .collect()
    };
    let place = place("truth-joining", hospital(&named(&own)), &series(""));
    place.write("w.csv", wearable(&named(&other), |hour| hour.to_string()));
    place
}

#[test]
fn ids_of_which_none_meets_are_refused_with_the_likely_cause() {
    let number = |n: usize| n.to_string();
    let cases: [(Place, &[&str]); 5] = [
        (
            joined(number, |n| format!("{n:05}")),
            &[
                "(id: \"00000\", \"00001\", \"00002\", ...)",
                "(\"0\", \"1\", \"2\", ...)",
                "leading zeros",
            ],
        ),
        (
            joined(number, |n| format!("{n}.0")),
            &["\"0.0\"", "as decimals"],
        ),
        (
            joined(|n| format!("P{n}"), |n| format!("p{n}")),
            &["\"p0\"", "\"P0\"", "upper and lower case"],
        ),
        (
            joined(|n| format!("p{n}"), |n| format!("p {n}")),
            &["\"p 0\"", "remove the blanks"],
        ),
        (
            joined(|n| format!("a{n}x"), |n| format!("b{}", 5000 + n)),
            &["expected the same ids in all files"],
        ),
    ];
    for (place, parts) in cases {
        let parts = [
            &["w.csv: none of its 120 different ids", "the 120 of t.csv"],
            parts,
        ]
        .concat();
        place.refuses(&["train", "t.toml", "--out", "run"], &parts);
    }
}

#[test]
fn patients_whom_a_join_loses_are_said_with_their_share() {
    // A third of them has zeros in front.
    let some = |n: usize| match n % 3 {
        0 => format!("0{n}"),
        _ => n.to_string(),
    };
    let ran = joined(|n| n.to_string(), some).succeeds(&["data", "inspect", "t.toml"]);
    says(
        &ran.stderr,
        &[
            "40 patients are known to only one side and are left out",
            "33 % of all",
            "leading zeros",
        ],
    );
}

#[test]
fn new_patients_whose_ids_do_not_meet_are_refused() {
    let place = joined(|n| n.to_string(), |n| n.to_string());
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    let padded = joined(|n| n.to_string(), |n| format!("{n:05}"));
    place.write("new.csv", std::fs::read(padded.join("w.csv")).unwrap());
    place.refuses(
        &["predict", "run", "--input", "t.csv", "--input", "new.csv"],
        &["new.csv: none of its 120 different ids", "leading zeros"],
    );
}
