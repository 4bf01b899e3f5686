//! Which messages are compressed, and how.

use super::keys::settings;
use super::values::Values;

settings! {
    /// `[compression]`: what c-hsgd and c-tdcd do to messages. A codec is written `none`, `top-k`, `dither`, or with its own
    /// levels, like `dither:16`.
    CompressionSettings, "compression." {
        codec: String = "top-k".into(), Values::Codec, "codec of theta0, zeta1 and zeta2 in c-hsgd and c-tdcd";
        levels: u32 = 128, Values::Whole(2, 65_536), "b, levels of codecs that name none";
        #[serde(skip_serializing_if = "Option::is_none")]
        theta0: Option<String> = None, Values::Codec, "codec of theta0, if another";
        #[serde(skip_serializing_if = "Option::is_none")]
        zeta1: Option<String> = None, Values::Codec, "codec of zeta1, if another";
        #[serde(skip_serializing_if = "Option::is_none")]
        zeta2: Option<String> = None, Values::Codec, "codec of zeta2, if another";
        device_upload: String = "none".into(), Values::Codec,
            "codec of theta2 from device to edge, sent as a difference";
        device_download: String = "none".into(), Values::Codec, "codec of theta2 from edge to device";
        global_upload: String = "none".into(), Values::Codec,
            "codec of models to the cloud, sent as a difference (c-hsgd)";
        global_download: String = "none".into(), Values::Codec, "codec of models from the cloud, likewise (c-hsgd)";
        error_feedback: bool = true, Values::Flag,
            "whether what compression lost of theta0, and of models to and from the cloud, is added to the next one";
    }
}
