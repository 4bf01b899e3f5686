//! Numbers rounded to even steps, with a random shift that both ends know.
//!
//! ```text
//! lo, hi    the lowest and the highest number, 4 bytes each
//! codes     q of each number, ⌈log2 levels⌉ bits each, from the lowest bit of the first byte
//!
//! D = (hi − lo)/(levels − 1)     q = round((x + u − lo)/D)     x̂ = q·D + lo − u     u uniform in ±D/2
//! ```
//!
//! Because x is from lo to hi and u never quite ±D/2, q is always one of the levels. Where x̂ would be beyond the
//! largest finite number, it is that. Everything is computed in f64, in which neither the range nor a step of finite
//! f32 can overflow or vanish, and then rounded once.

use super::{FrameError, check_padding, finite};
use selvedge_nn::random::{Key, Stream};

/// Numbers that are computed side by side: their codes fill whole bytes, and two draws dither them.
const GROUP: usize = 8;

/// Bytes of the codes of one group at most, at 16 bits each.
const WINDOW: usize = 16;

/// Bytes of the two bounds.
const BOUNDS: usize = 8;

/// Added to a number of less than 2³¹ in size, it leaves its nearest whole number in the lowest bits of the sum (of two
/// equally near ones the even one).
const TO_WHOLE: f64 = (3u64 << 51) as f64;

/// Bits of a code.
fn code_bits(levels: u32) -> usize {
    (levels - 1).ilog2() as usize + 1
}

pub(super) fn frame_len(levels: u32, n: usize) -> usize {
    BOUNDS + (n * code_bits(levels)).div_ceil(8)
}

/// The lowest and the highest number; both zeros are the positive one, so that their order does not matter.
fn bounds(values: &[f32]) -> (f32, f32) {
    let (mut lo, mut hi) = ([f32::MAX; 2 * GROUP], [f32::MIN; 2 * GROUP]);
    let mut widen = |lane: usize, value: f32| {
        let value = finite(value);
        lo[lane] = if value < lo[lane] { value } else { lo[lane] };
        hi[lane] = if value > hi[lane] { value } else { hi[lane] };
    };
    let (groups, rest) = values.as_chunks::<{ 2 * GROUP }>();
    for group in groups {
        for (lane, value) in group.iter().enumerate() {
            widen(lane, *value);
        }
    }
    for (lane, value) in rest.iter().enumerate() {
        widen(lane, *value);
    }
    let lowest = lo.into_iter().fold(f32::MAX, f32::min);
    let highest = hi.into_iter().fold(f32::MIN, f32::max);
    (lowest + 0.0, highest + 0.0)
}

/// u/D of the next group: multiples of 2⁻¹⁷ in ±½, 0 on average, four from each draw.
fn next_dithers(stream: &mut Stream) -> [f64; GROUP] {
    let draws = [stream.next_u64(), stream.next_u64()];
    std::array::from_fn(|i| {
        let draw = (draws[i / 4] >> (16 * (i % 4))) as u16;
        (f64::from(draw) - 32767.5) * (1.0 / 65536.0)
    })
}

/// Codes one behind the other.
fn pack(codes: [u32; GROUP], bits: usize) -> [u8; WINDOW] {
    let half = |codes: &[u32]| {
        let shifted = codes.iter().enumerate();
        shifted.fold(0, |word, (i, code)| word | u64::from(*code) << (i * bits))
    };
    let (low, high) = (half(&codes[..4]), half(&codes[4..]));
    (u128::from(low) | u128::from(high) << (4 * bits)).to_le_bytes()
}

/// The other way around.
fn unpack(window: [u8; WINDOW], bits: usize) -> [u32; GROUP] {
    let all = u128::from_le_bytes(window);
    let halves = [all as u64, (all >> (4 * bits)) as u64];
    let mask = (1 << bits) - 1;
    std::array::from_fn(|i| (halves[i / 4] >> (i % 4 * bits)) as u32 & mask)
}

pub(super) fn encode(levels: u32, key: Key, values: &[f32], frame: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let bits = code_bits(levels);
    let (lo, hi) = bounds(values);
    frame.extend(lo.to_le_bytes());
    frame.extend(hi.to_le_bytes());
    let mut at = frame.len();
    let end = at + (values.len() * bits).div_ceil(8);
    // Every group writes a whole window, of which the next overwrites what is not its own.
    frame.resize(end + WINDOW, 0);

    let (lo, range, top) = (f64::from(lo), f64::from(hi) - f64::from(lo), levels - 1);
    let steps_per_unit = if range > 0.0 {
        f64::from(top) / range
    } else {
        0.0
    };
    let mut stream = key.stream();
    let mut encode_group = |group: &[f32; GROUP]| {
        let dithers = next_dithers(&mut stream);
        std::array::from_fn(|i| {
            let steps = (f64::from(finite(group[i])) - lo) * steps_per_unit;
            let code = (steps + dithers[i] + TO_WHOLE).to_bits() as u32;
            code.min(top)
        })
    };
    let (groups, rest) = values.as_chunks::<GROUP>();
    for group in groups {
        frame[at..at + WINDOW].copy_from_slice(&pack(encode_group(group), bits));
        at += bits;
    }
    let mut group = [0.0; GROUP];
    group[..rest.len()].copy_from_slice(rest);
    let mut codes = encode_group(&group);
    codes[rest.len()..].fill(0);
    frame[at..at + WINDOW].copy_from_slice(&pack(codes, bits));
    frame.truncate(end);
}

/// Reads a frame that has the right length.
pub(super) fn decode(
    levels: u32,
    key: Key,
    frame: &[u8],
    out: &mut [f32],
) -> Result<(), FrameError> {
    let bits = code_bits(levels);
    let (bounds, codes) = frame.split_at(BOUNDS);
    let [lo, hi] = [0, 4].map(|at| f32::from_le_bytes(std::array::from_fn(|i| bounds[at + i])));
    if !(lo.is_finite() && hi.is_finite() && lo <= hi) {
        return Err(FrameError::Range { lo, hi });
    }
    check_padding(codes, out.len() * bits)?;

    let (lo, step) = (
        f64::from(lo),
        (f64::from(hi) - f64::from(lo)) / f64::from(levels - 1),
    );
    let mut stream = key.stream();
    let mut decode_group = |group: usize, window: [u8; WINDOW]| {
        let codes = unpack(window, bits);
        if let Some(i) = codes.iter().position(|code| *code >= levels) {
            return Err(FrameError::Code {
                position: group * GROUP + i,
                code: codes[i],
                levels,
            });
        }
        let dithers = next_dithers(&mut stream);
        Ok(std::array::from_fn(|i| {
            let value = (f64::from(codes[i]) - dithers[i]) * step + lo;
            value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
        }))
    };
    for (group, out) in out.chunks_mut(GROUP).enumerate() {
        let codes = &codes[group * bits..];
        let mut window = [0; WINDOW];
        match codes.first_chunk() {
            Some(whole) => window = *whole,
            None => window[..codes.len()].copy_from_slice(codes),
        }
        let values: [f32; GROUP] = decode_group(group, window)?;
        out.copy_from_slice(&values[..out.len()]);
    }
    Ok(())
}
