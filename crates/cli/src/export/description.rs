//! What a file of weights is of: names, classes, columns, layers and scales.

use super::Exported;
use anyhow::Result;
use selvedge_core::calibration::{Calibration, LEAST};
use selvedge_core::experiment::Side;
use selvedge_core::outcome::Outcome;
use selvedge_run::outputs::Kind;
use selvedge_run::weights;
use serde_json::{Value, json};
use std::collections::HashMap;

impl Exported<'_> {
    /// What an ONNX file says of itself.
    pub(super) fn explanation(&self, model: &str) -> String {
        let side = |side: Side| {
            let statistics = self.statistics(side);
            format!(
                "`{}` [N, {}]: float values as measured, NaN where nothing was measured; columns: {}.",
                self.tower(side).name,
                listed(&statistics.shape, ", "),
                match statistics.names.is_empty() {
                    true => "unnamed".into(),
                    false => statistics.names.join(", "),
                }
            )
        };
        let calibrated = match self.calibration {
            Some(_) => " and `calibrated` (fitted on validation samples)",
            None => "",
        };
        let names = self.classes().join(", ");
        let outputs = match self.trained.outcome() {
            Outcome::Class => {
                format!("`logits`, `probabilities`{calibrated}, one for each class: {names}.")
            }
            Outcome::Labels => format!(
                "`logits`, `probabilities`{calibrated}, each that of yes to one label: {names}."
            ),
            Outcome::Quantity { .. } => {
                format!("`logits`, and `prediction`, {names} in its own unit.")
            }
            Outcome::Survival { ends } => format!(
                "`logits`, and `survival`, for each of these times the probability that there was no event ({names}) until then: {}.",
                listed(
                    &ends.iter().map(|end| *end as f32).collect::<Vec<_>>(),
                    ", "
                )
            ),
        };
        let what = match model {
            "hospital" => format!(
                "The hospital tower. In: {} Out: `zeta1`.",
                side(Side::Hospital)
            ),
            "device" => format!("The device tower. In: {} Out: `zeta2`.", side(Side::Device)),
            "combined" => format!(
                "The combined model. In: `zeta1` and `zeta2`, the outputs of the towers. Out: {outputs}"
            ),
            _ => format!(
                "The whole model. In: {} {} Out: {outputs}",
                side(Side::Hospital),
                side(Side::Device)
            ),
        };
        format!(
            "{}, trained by selvedge {}. {what}",
            self.manifest.name,
            env!("CARGO_PKG_VERSION")
        )
    }

    /// The same as keys and values; lists are JSON.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let names = |side: Side| json!(self.statistics(side).names).to_string();
        vec![
            ("selvedge", env!("CARGO_PKG_VERSION").into()),
            ("name", self.manifest.name.clone()),
            ("classes", json!(self.classes()).to_string()),
            ("outcome", json!(self.trained.outcome()).to_string()),
            ("hospital_columns", names(Side::Hospital)),
            ("device_columns", names(Side::Device)),
            (
                "inputs",
                "as measured, not scaled; NaN where nothing was measured".into(),
            ),
            ("data_fingerprint", self.manifest.data.fingerprint.clone()),
            (
                "statistics_fingerprint",
                self.inputs.statistics.fingerprint(),
            ),
            // The last, so that no name can be taken for it.
            ("seal", Kind::Network.blank()),
        ]
    }

    /// The weights in PyTorch's shapes, with all that `load.py` needs to compute them.
    pub(super) fn weights(&self) -> Result<Vec<u8>> {
        // One key only: several would come in any order.
        let metadata = HashMap::from([("selvedge".to_owned(), self.json().to_string())]);
        let file = weights::to_file(self.architecture, self.model, Some(metadata));
        Ok(file?)
    }

    /// Layers, scales, classes and calibration.
    fn json(&self) -> Value {
        let tower = |side: Side| {
            let (part, statistics) = (self.tower(side), self.statistics(side));
            json!({
                "layers": part.layers,
                "shape": statistics.shape,
                "columns": statistics.names,
                "scales": statistics.scales,
                "blind": self.architecture.blind_to == Some(side),
            })
        };
        let calibration =
            |c: &Calibration| json!({ "scale": c.scale, "bias": c.bias, "least": LEAST });
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "name": self.manifest.name,
            "classes": self.classes(),
            "outcome": self.trained.outcome(),
            "output": self.answers(),
            "hospital": tower(Side::Hospital),
            "device": tower(Side::Device),
            "combined": { "layers": self.combined().layers },
            "calibration": self.calibration.map(calibration),
            "seal": Kind::Weights.blank(),
        })
    }
}

/// Things one after the other.
pub(super) fn listed<T: ToString>(all: &[T], between: &str) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(between)
}
