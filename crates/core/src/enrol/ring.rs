//! Sums that are exact, whatever their order, and that can be hidden until they are added up.
//!
//! Every `f32` is a whole number of 2⁻¹⁴⁹, and its square one of 2⁻²⁹⁸. Whole numbers of 640 bits hold the sums of 2³²
//! of either, and even what the variance is made of, so nothing is ever rounded before the end. They are added modulo
//! 2⁶⁴⁰: a sum with a random number on top is a random number, and the numbers on top of a group's sums add up to
//! nothing.

use crate::statistics::Scale;
use serde::{Deserialize, Serialize};

const WORDS: usize = 10;

/// The unit of a sum is 2 to the power of minus this, that of a sum of squares of minus twice this.
const FRACTION: i32 = 149;

/// A whole number modulo 2⁶⁴⁰, the lowest word first; from half of that on it is negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct Whole([u64; WORDS]);

impl From<Whole> for String {
    fn from(whole: Whole) -> String {
        let words = whole.0.iter().rev();
        words.map(|word| format!("{word:016x}")).collect()
    }
}

impl TryFrom<String> for Whole {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("expected {} hexadecimal digits", 16 * WORDS);
        if text.len() != 16 * WORDS || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut words = [0; WORDS];
        for (word, digits) in words.iter_mut().rev().zip(text.as_bytes().chunks(16)) {
            let digits = str::from_utf8(digits).map_err(|_| wrong())?;
            *word = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Whole(words))
    }
}

impl From<u64> for Whole {
    fn from(number: u64) -> Self {
        let mut words = [0; WORDS];
        words[0] = number;
        Whole(words)
    }
}

impl Whole {
    fn add(&mut self, other: Whole) {
        let mut carry = false;
        for (word, more) in self.0.iter_mut().zip(other.0) {
            let (sum, over) = word.overflowing_add(more);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, over || over_again);
        }
    }

    fn negative(self) -> Whole {
        let mut turned = Whole(self.0.map(|word| !word));
        turned.add(Whole::from(1));
        turned
    }

    fn is_negative(self) -> bool {
        self.0[WORDS - 1] >> 63 == 1
    }

    fn size(self) -> Whole {
        match self.is_negative() {
            true => self.negative(),
            false => self,
        }
    }

    fn times(self, other: Whole) -> Whole {
        let mut product = [0u64; WORDS];
        for (at, a) in self.0.into_iter().enumerate() {
            let mut carry = 0u128;
            for (place, b) in product[at..].iter_mut().zip(other.0) {
                let sum = u128::from(a) * u128::from(b) + u128::from(*place) + carry;
                *place = sum as u64;
                carry = sum >> 64;
            }
        }
        Whole(product)
    }

    fn shifted(number: u64, bits: usize) -> Whole {
        let mut words = [0; WORDS];
        let wide = u128::from(number) << (bits % 64);
        words[bits / 64] = wide as u64;
        if let Some(next) = words.get_mut(bits / 64 + 1) {
            *next = (wide >> 64) as u64;
        }
        Whole(words)
    }

    /// The number times 2 to the power of minus `fraction`, as near as an `f64` comes from its highest 64 bits.
    fn to_f64(self, fraction: i32) -> f64 {
        let (sign, size) = (if self.is_negative() { -1.0 } else { 1.0 }, self.size());
        let Some(top) = size.0.iter().rposition(|word| *word != 0) else {
            return 0.0;
        };
        let zeros = size.0[top].leading_zeros();
        let below = if top == 0 { 0 } else { size.0[top - 1] };
        let both = (u128::from(size.0[top]) << 64 | u128::from(below)) << zeros;
        let power = 64 * top as i32 - zeros as i32 - fraction;
        // In two steps: neither factor alone leaves the range of normal numbers.
        sign * (both >> 64) as f64 * 2f64.powi(power / 2) * 2f64.powi(power - power / 2)
    }

    /// As a count, if it is one.
    pub(super) fn count(self) -> Option<u64> {
        self.0[1..]
            .iter()
            .all(|word| *word == 0)
            .then_some(self.0[0])
    }
}

/// A finite value as a whole number of 2⁻¹⁴⁹: its sign, its digits, and their place.
fn digits(value: f32) -> (bool, u64, usize) {
    let bits = value.to_bits();
    let (exponent, mantissa) = ((bits >> 23) & 0xff, u64::from(bits & 0x7f_ffff));
    let (digits, place) = match exponent {
        0 => (mantissa, 0),
        _ => (mantissa | 1 << 23, exponent as usize - 1),
    };
    (bits >> 31 == 1, digits, place)
}

/// What is summed up of one column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnSums {
    /// How many values were measured.
    pub(super) measured: Whole,
    /// How many there are, with gaps filled as the settings say.
    pub(super) count: Whole,
    /// Their sum.
    pub(super) sum: Whole,
    /// The sum of their squares.
    pub(super) squares: Whole,
    /// How many patients have a measured one.
    pub(super) patients: Whole,
}

impl ColumnSums {
    /// Adds a value; it must be finite.
    pub(super) fn push(&mut self, value: f32) {
        let (negative, digits, place) = digits(value);
        let whole = Whole::shifted(digits, place);
        self.count.add(Whole::from(1));
        self.sum.add(match negative {
            true => whole.negative(),
            false => whole,
        });
        self.squares.add(Whole::shifted(digits * digits, 2 * place));
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &ColumnSums) {
        for (own, more) in self.each_mut().into_iter().zip(other.each()) {
            own.add(more);
        }
    }

    fn each(&self) -> [Whole; 5] {
        let ColumnSums {
            measured,
            count,
            sum,
            squares,
            patients,
        } = *self;
        [measured, count, sum, squares, patients]
    }

    fn each_mut(&mut self) -> [&mut Whole; 5] {
        let ColumnSums {
            measured,
            count,
            sum,
            squares,
            patients,
        } = self;
        [measured, count, sum, squares, patients]
    }

    /// Forgets what was summed up of a few patients: it would nearly be what was measured. The column counts as if
    /// nobody of the group had it.
    pub(super) fn hide_few(&mut self) {
        let patients = self.patients.count().unwrap_or_default();
        if patients < super::roll::FEWEST as u64 {
            *self = ColumnSums {
                measured: self.measured,
                ..ColumnSums::default()
            };
        }
    }

    /// Whether sums of at most `values` values can be these.
    pub(super) fn is_sound(&self, values: u64) -> bool {
        let within = |whole: Whole| whole.count().is_some_and(|count| count <= values);
        // A value is below 2¹²⁸, so 2³² of them stay below 2¹⁶⁰, in units of 2⁻¹⁴⁹: five words.
        let size = self.sum.size();
        within(self.measured)
            && within(self.count)
            && within(self.patients)
            && size.0[5..].iter().all(|word| *word == 0)
            && !self.squares.is_negative()
    }

    /// Mean and deviation. Where nothing varies there is nothing to learn, so nothing that comes later counts either.
    pub(super) fn scale(&self) -> Scale {
        let count = self.count.count().unwrap_or_default();
        let n = count.max(1) as f64;
        let mean = self.sum.to_f64(FRACTION) / n;
        // n² times the variance: n Σx² − (Σx)².
        let size = self.sum.size();
        let mut spread = self.squares.times(Whole::from(count));
        spread.add(size.times(size).negative());
        let deviation = match spread == Whole::default() || spread.is_negative() {
            true => 0.0,
            false => spread.to_f64(2 * FRACTION).sqrt() / n,
        };
        match deviation > 0.0 {
            true => Scale {
                mean,
                deviation,
                ..Scale::IDENTITY
            },
            false => Scale {
                mean,
                deviation: 1.0,
                clip: Some([mean; 2]),
                ..Scale::IDENTITY
            },
        }
    }
}

/// Sums of the columns of a side: of `values`, row after row, those that are scaled; and how many of each were
/// measured, of how many patients.
pub(super) fn sum(values: &[f32], scaled: &[bool], measured: &[[u64; 2]]) -> Vec<ColumnSums> {
    let mut sums = vec![ColumnSums::default(); scaled.len()];
    for (sums, [measured, patients]) in sums.iter_mut().zip(measured) {
        (sums.measured, sums.patients) = (Whole::from(*measured), Whole::from(*patients));
    }
    for step in values.chunks_exact(scaled.len().max(1)) {
        for ((sums, value), scaled) in sums.iter_mut().zip(step).zip(scaled) {
            if *scaled && value.is_finite() {
                sums.push(*value);
            }
        }
    }
    sums
}

/// Hides what gateway `own` of `count` has summed up: each pair of gateways has a secret number for each sum, which one
/// of them adds and the other takes off. The occasion is an enrolment and its roster: no two have the same secrets, so
/// that sums over different patients cannot be compared.
pub(super) fn hide(
    sums: &mut [ColumnSums],
    key: impl Fn(&str) -> [u8; 32],
    occasion: &str,
    (own, count): (usize, usize),
) {
    for other in (0..count).filter(|other| *other != own) {
        let pair = (own.min(other), own.max(other));
        for (column, sums) in sums.iter_mut().enumerate() {
            for (which, sum) in sums.each_mut().into_iter().enumerate() {
                let secret = secret(&key, occasion, pair, (column, which));
                sum.add(match own < other {
                    true => secret,
                    false => secret.negative(),
                });
            }
        }
    }
}

/// A number that only who has the key can know.
fn secret(
    key: impl Fn(&str) -> [u8; 32],
    occasion: &str,
    (a, b): (usize, usize),
    (column, which): (usize, usize),
) -> Whole {
    let mut bytes = [0; 8 * WORDS];
    for (block, place) in bytes.chunks_mut(32).enumerate() {
        let text = format!("{occasion} {a} {b} {column} {which} {block}");
        place.copy_from_slice(&key(&text)[..place.len()]);
    }
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
        *word = bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    Whole(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_nn::random::Key;
    use sha2::{Digest, Sha256};

    fn of(values: &[f32]) -> ColumnSums {
        sum(values, &[true], &[[values.len() as u64; 2]])[0]
    }

    #[test]
    fn what_a_few_patients_have_is_not_told() {
        let values = [7.25f32; 10];
        let (mut nine, mut ten) = (of(&values[1..]), of(&values));
        let all = ten;
        nine.hide_few();
        ten.hide_few();
        assert_eq!(ten, all);
        assert_eq!(nine.measured, Whole::from(9));
        assert_eq!(nine.each()[1..], ColumnSums::default().each()[1..]);
    }

    #[test]
    fn the_widest_and_the_finest_values_are_summed_up_exactly() {
        for values in [
            &[f32::MAX, f32::MAX, -f32::MAX][..],
            &[f32::from_bits(1), f32::from_bits(1), 0.0],
            &[f32::MAX, f32::from_bits(1), -f32::MAX],
            &[1.5, -2.25, 1e-30, -0.0],
        ] {
            let (mut there, mut back) = (of(values), ColumnSums::default());
            for value in values.iter().rev() {
                back.push(*value);
            }
            (back.measured, back.patients) = (there.measured, there.patients);
            assert_eq!(there, back);
            assert!(there.is_sound(values.len() as u64), "{values:?}");
            let negated: Vec<f32> = values.iter().map(|v| -v).collect();
            there.add(&of(&negated));
            assert_eq!(there.sum, Whole::default());
        }
        let tiny = of(&[f32::MAX, f32::from_bits(1), -f32::MAX]);
        assert_eq!(tiny.sum.to_f64(FRACTION), f64::from(f32::from_bits(1)));
        let many = of(&[f32::MAX; 3]);
        assert_eq!(many.scale().mean, f64::from(f32::MAX));
        assert_eq!(many.scale().clip, Some([f64::from(f32::MAX); 2]));
    }

    #[test]
    fn scales_are_those_of_two_passes() {
        let mut stream = Key::new(9).stream();
        for (centre, width) in [
            (0.0, 1.0),
            (1e7, 1.0),
            (-3e-9, 1e-9),
            (120.0, 0.0),
            (1e30, 1e30),
        ] {
            let values: Vec<f32> = (0..500).map(|_| centre + width * stream.normal()).collect();
            let (own, other) = (of(&values).scale(), Scale::of(values.iter().copied()));
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
            assert!(near(own.mean, other.mean), "{own:?} {other:?}");
            assert!(near(own.deviation, other.deviation), "{own:?} {other:?}");
            assert_eq!(own.clip.is_some(), width == 0.0);
        }
        let nothing = ColumnSums::default().scale();
        assert_eq!((nothing.mean, nothing.deviation), (0.0, 1.0));
        assert_eq!(nothing.clip, Some([0.0; 2]));
    }

    #[test]
    fn hidden_sums_add_up_to_the_sums_and_show_nothing_alone() {
        let key = |text: &str| Sha256::digest(text).into();
        let own: Vec<Vec<ColumnSums>> = (0..4)
            .map(|g| vec![of(&[g as f32, 2.5]), of(&[-1.0])])
            .collect();
        let hidden: Vec<Vec<ColumnSums>> = own
            .iter()
            .enumerate()
            .map(|(g, sums)| {
                let mut sums = sums.clone();
                hide(&mut sums, key, "n", (g, 4));
                sums
            })
            .collect();
        let total = |all: &[Vec<ColumnSums>]| {
            let mut total = vec![ColumnSums::default(); 2];
            for sums in all {
                total.iter_mut().zip(sums).for_each(|(t, s)| t.add(s));
            }
            total
        };
        assert_eq!(total(&own), total(&hidden));
        for (own, hidden) in own.iter().flatten().zip(hidden.iter().flatten()) {
            for (a, b) in own.each().into_iter().zip(hidden.each()) {
                // Not a word is left as it was, and counts do not look like counts.
                assert!(a.0.iter().zip(b.0).all(|(a, b)| *a != b));
            }
            assert!(!hidden.is_sound(u64::MAX));
        }
        // All but one gateway's are hidden still, and another enrolment hides otherwise.
        assert_ne!(total(&own[..3]), total(&hidden[..3]));
        let mut again = own[0].clone();
        hide(&mut again, key, "m", (0, 4));
        assert_ne!(again, hidden[0]);
    }

    #[test]
    fn texts_are_numbers_and_back() {
        let sums = of(&[-7.5, 1e-20]);
        let text = serde_json::to_string(&sums).unwrap();
        assert_eq!(serde_json::from_str::<ColumnSums>(&text).unwrap(), sums);
        for wrong in ["", "0", &"g".repeat(160), &"+".repeat(160), &"é".repeat(80)] {
            assert!(Whole::try_from(wrong.to_owned()).is_err());
        }
    }
}
