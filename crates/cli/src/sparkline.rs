//! Numbers as a line of small bars.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A line with one bar for each number or, of more than `width`, for the mean of neighbours.
pub(crate) fn sparkline(values: &[f32], width: usize) -> String {
    let values = shortened(values, width.max(1));
    let (low, high) = range(&values);
    let level = |value: &f32| LEVELS[place(*value, low, high, LEVELS.len())];
    values.iter().map(level).collect()
}

fn shortened(values: &[f32], most: usize) -> Vec<f32> {
    let each = values.len().div_ceil(most).max(1);
    let mean = |chunk: &[f32]| chunk.iter().sum::<f32>() / chunk.len() as f32;
    values.chunks(each).map(mean).collect()
}

/// The least and the largest number.
pub(crate) fn range(values: &[f32]) -> (f32, f32) {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    finite.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Which of `count` equal parts of the range a value lies in; the middle, where nothing varies.
pub(crate) fn place(value: f32, low: f32, high: f32, count: usize) -> usize {
    if high <= low || !value.is_finite() {
        return (count - 1) / 2;
    }
    let share = (value - low) / (high - low);
    ((share * count as f32) as usize).min(count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_show_their_shape() {
        let line = |values: &[f32]| sparkline(values, 64);
        assert_eq!(line(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), "▁▂▃▄▅▆▇█");
        assert_eq!(line(&[2.0, 2.0]), "▄▄");
        assert_eq!(line(&vec![1.0; 1000]).chars().count(), 63);
        assert_eq!(line(&[]), "");
        assert_eq!(sparkline(&[0.0, 0.0, 7.0, 7.0], 2), "▁█");
    }
}
