//! Which messages are compressed, and how.

use super::keys::settings;
use super::values::Values;

settings! {
    /// `[compression]`: what c-hsgd and c-tdcd do to messages. A codec is written `none`, `top-k`, `dither`, or with
    /// its own levels, like `dither:16`.
    CompressionSettings, "compression." {
        codec: String = "top-k".into(), Values::Codec, "codec of theta0, zeta1 and zeta2 in c-hsgd and c-tdcd";
        levels: u32 = 128, Values::Whole(2, 65_536), "b, number of levels of a codec that is written without levels";
        #[serde(skip_serializing_if = "Option::is_none")]
        theta0: Option<String> = None, Values::Codec, "codec of theta0, if different from compression.codec";
        #[serde(skip_serializing_if = "Option::is_none")]
        zeta1: Option<String> = None, Values::Codec, "codec of zeta1, if different from compression.codec";
        #[serde(skip_serializing_if = "Option::is_none")]
        zeta2: Option<String> = None, Values::Codec, "codec of zeta2, if different from compression.codec";
        device_upload: String = "none".into(), Values::Codec,
            "codec of theta2 from device to edge, sent as a difference";
        device_download: String = "none".into(), Values::Codec, "codec of theta2 from edge to device";
        global_upload: String = "none".into(), Values::Codec,
            "codec of models to the cloud, sent as a difference (c-hsgd)";
        global_download: String = "none".into(), Values::Codec,
            "codec of models from the cloud, sent as a difference (c-hsgd)";
        theta0_feedback: bool = false, Values::Flag,
            "whether theta0 is sent as a compressed step from a copy that the edge keeps and sends to devices in full";
        error_feedback: bool = true, Values::Flag,
            "whether compression errors in models to and from the cloud are added to the next model sent";
    }
}
