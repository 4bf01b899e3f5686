//! A hospital may be left out of training, to see how a model does where it has not learnt.

use crate::common::run::Run;
use crate::common::says;
use crate::tables::{csv, experiment, patients, place};

#[test]
fn a_hospital_is_left_out_by_the_part_of_its_rows() {
    let text = csv("id,site,use,lab,pulse,label", &patients(300), |p| {
        let part = if p.site == "south" { "test" } else { "train" };
        format!(
            "{},{},{part},{:.4},{:.4},{}",
            p.id, p.site, p.lab, p.pulse, p.ill
        )
    });
    let experiment = experiment("part = \"use\"\ngroup = \"site\"", "");
    let experiment = experiment.replace("groups = 1", "groups = 1\nsplit = \"column\"");
    let place = place("truth-left-out", text, &experiment);
    let ran = place.succeeds(&["train", "t.toml", "--out", "run"]);
    says(&ran.stderr, &["\"south\" has no training rows"]);
    let data = Run::at(&place, "run").manifest()["data"].clone();
    assert_eq!(data["groups"], serde_json::json!(["north"]));
    assert_eq!(data["test_samples"].as_u64(), Some(150));
    place.succeeds(&["evaluate", "run"]);
    place.refuses(
        &[
            "train",
            "t.toml",
            "--set",
            "data.groups=2",
            "--out",
            "other",
        ],
        &[
            "2 different values",
            "\"south\" has no training rows",
            "expected data.groups = 1",
        ],
    );
}
