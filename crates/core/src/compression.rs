//! Which codec each message of a run goes through.

use crate::codec::{Codec, LEVELS};
use crate::experiment::CompressionSettings;
use crate::keys::{Purpose, key};
use crate::ledger::Kind;
use rayon::prelude::*;
use selvedge_nn::random::Key;

/// Rows that one task codes.
const ROWS_PER_TASK: usize = 64;

/// The codecs of a run.
///
/// θ0, ζ1 and ζ2 are sent as they are: devices and batches change from exchange to exchange, so nobody holds what a
/// difference could be taken from. Models that go up are sent as differences to what their sender was given, which both
/// ends know; so are models from the cloud, since all groups hold the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Of θ0, hospital → edge → devices.
    pub theta0: Codec,
    /// Of ζ1, hospital → edge → device, sample by sample.
    pub zeta1: Codec,
    /// Of ζ2, device → edge → hospital, sample by sample.
    pub zeta2: Codec,
    /// Of a device's step from θ2 as it was sent.
    pub device_upload: Codec,
    /// Of θ2, edge → device.
    pub device_download: Codec,
    /// Of a group's step from the last θ, to the cloud.
    pub global_upload: Codec,
    /// Of the cloud's step from the last θ.
    pub global_download: Codec,
    /// Whether a sender adds what was lost of a model to the next one it sends. Devices have nowhere to keep it, and
    /// embeddings none to add it to, since their subset changes.
    pub error_feedback: bool,
}

impl Compression {
    /// Whether models go to the cloud or from it as differences, so that both ends must know what to.
    pub(crate) fn sends_differences(&self) -> bool {
        self.global_upload != Codec::None || self.global_download != Codec::None
    }

    /// Everything is sent as it is.
    pub const NONE: Compression = Compression {
        theta0: Codec::None,
        zeta1: Codec::None,
        zeta2: Codec::None,
        device_upload: Codec::None,
        device_download: Codec::None,
        global_upload: Codec::None,
        global_download: Codec::None,
        error_feedback: false,
    };

    /// The codecs that an experiment names.
    ///
    /// # Errors
    /// The key that names none, and what would be right.
    pub fn new(settings: &CompressionSettings) -> Result<Self, (&'static str, String)> {
        let levels = settings.levels;
        let codec = |key: &'static str, text: &str| {
            let text = match text {
                "top-k" | "dither" => format!("{text}:{levels}"),
                _ => text.to_owned(),
            };
            Codec::parse(&text).map_err(|problem| (key, format!("{key}: {problem}")))
        };
        if !LEVELS.contains(&levels) {
            let (least, most) = (LEVELS.start(), LEVELS.end());
            let problem = format!("compression.levels = {levels}: choose {least} to {most}");
            return Err(("compression.levels", problem));
        }
        codec("compression.codec", &settings.codec)?;
        let or_common =
            |key, text: &Option<String>| codec(key, text.as_deref().unwrap_or(&settings.codec));
        Ok(Compression {
            theta0: or_common("compression.theta0", &settings.theta0)?,
            zeta1: or_common("compression.zeta1", &settings.zeta1)?,
            zeta2: or_common("compression.zeta2", &settings.zeta2)?,
            device_upload: codec("compression.device_upload", &settings.device_upload)?,
            device_download: codec("compression.device_download", &settings.device_download)?,
            global_upload: codec("compression.global_upload", &settings.global_upload)?,
            global_download: codec("compression.global_download", &settings.global_download)?,
            error_feedback: settings.error_feedback,
        })
    }

    /// Whether θ2 between edge and devices is compressed either way: then devices send differences.
    pub fn changes_device_models(&self) -> bool {
        self.device_upload != Codec::None || self.device_download != Codec::None
    }
}

/// The random numbers that the two ends of one message share.
pub fn message_key(seed: u64, group: usize, kind: Kind, t: u64) -> Key {
    key(seed, Purpose::Dither)
        .with(group as u64)
        .with(kind as u64)
        .with(t)
}

/// Sends each of `count` rows as a message of its own; they become what the receiver reads.
pub(crate) fn send_rows(
    codec: Codec,
    key: impl Fn(usize) -> Key + Sync,
    rows: &mut [f32],
    count: usize,
    frame: &mut Vec<u8>,
) {
    let width = rows.len() / count.max(1);
    if width == 0 {
        return;
    }
    let some = |first: usize, rows: &mut [f32], frame: &mut Vec<u8>| {
        for (i, row) in rows.chunks_exact_mut(width).enumerate() {
            codec.round_trip(key(first + i), row, frame);
        }
    };
    if count <= ROWS_PER_TASK {
        some(0, rows, frame);
    } else {
        let tasks = rows.par_chunks_mut(ROWS_PER_TASK * width).enumerate();
        tasks.for_each_init(Vec::new, |frame, (task, rows)| {
            some(task * ROWS_PER_TASK, rows, frame);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_sent_alike_alone_and_among_more_than_one_task_takes() {
        let (count, width) = (3 * ROWS_PER_TASK + 5, 7);
        let key = |row: usize| message_key(4, 2, Kind::Zeta1, 30).with(row as u64);
        let codec = Codec::Dither { levels: 16 };
        let meant: Vec<f32> = (0..count * width).map(|i| (i as f32).sin()).collect();
        let (mut together, mut frame) = (meant.clone(), Vec::new());
        send_rows(codec, key, &mut together, count, &mut frame);
        let mut alone = meant;
        for (i, row) in alone.chunks_exact_mut(width).enumerate() {
            codec.round_trip(key(i), row, &mut frame);
        }
        assert_eq!(together, alone);
    }
}
