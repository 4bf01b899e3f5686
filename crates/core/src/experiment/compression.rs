//! Which messages are compressed, and how.

use serde::{Deserialize, Serialize};

/// `[compression]`: what c-hsgd and c-tdcd do to messages. A codec is written `none`, `top-k`, `dither`, or with its own
/// levels, like `dither:16`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompressionSettings {
    /// Of θ0, ζ1 and ζ2, where no other is named for them.
    pub codec: String,
    /// b: levels of codecs that name none.
    pub levels: u32,
    /// Of θ0, hospital → edge → devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theta0: Option<String>,
    /// Of ζ1, hospital → edge → device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zeta1: Option<String>,
    /// Of ζ2, device → edge → hospital.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zeta2: Option<String>,
    /// Of θ2 from device to edge, as the difference to what the device was sent.
    pub device_upload: String,
    /// Of θ2 from edge to device.
    pub device_download: String,
    /// Of θ from hospital and edge to the cloud, as the difference to the last θ.
    pub global_upload: String,
    /// Of θ from the cloud to hospital and edge, likewise.
    pub global_download: String,
    /// Whether hospital and cloud add what compression lost of a model to the next one they send.
    pub error_feedback: bool,
}

impl Default for CompressionSettings {
    fn default() -> Self {
        let none = || "none".to_owned();
        CompressionSettings {
            codec: "top-k".into(),
            levels: 128,
            theta0: None,
            zeta1: None,
            zeta2: None,
            device_upload: none(),
            device_download: none(),
            global_upload: none(),
            global_download: none(),
            error_feedback: true,
        }
    }
}
