//! Small pictures of samples, in letters.

use selvedge_nn::Shape;

/// The widest line of a picture.
const WIDTH: usize = 64;

/// Features of a time series that are drawn.
const SERIES: usize = 4;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// A line with one bar for each number or, of many, for the mean of neighbours.
pub(super) fn sparkline(values: &[f32]) -> String {
    let values = shortened(values, WIDTH);
    let (low, high) = range(&values);
    let level = |value: &f32| LEVELS[place(*value, low, high, LEVELS.len())];
    values.iter().map(level).collect()
}

/// The lines of a sample.
pub(super) fn sample(shape: Shape, names: &[String], values: &[f32]) -> Vec<String> {
    match shape {
        Shape::Flat(_) => vec![sparkline(values)],
        Shape::Steps(_, features) => {
            let series = |feature: usize| -> Vec<f32> {
                values[feature..]
                    .iter()
                    .step_by(features)
                    .copied()
                    .collect()
            };
            // Those that show something come first: many are never measured in one patient.
            let varies = |feature: &usize| {
                let series = series(*feature);
                series.iter().any(|value| *value != series[0])
            };
            let (moving, still): (Vec<usize>, Vec<usize>) = (0..features).partition(varies);
            let line = |feature: usize| {
                let name = names.get(feature).map_or("", String::as_str);
                format!("{}  {name}", sparkline(&series(feature)))
            };
            let chosen = moving.into_iter().chain(still).take(SERIES);
            let mut lines: Vec<String> = chosen.map(line).collect();
            if features > SERIES {
                lines.push(format!("… {} more", features - SERIES));
            }
            lines
        }
        Shape::Image(_, height, width) => image(height, width, values),
    }
}

/// The first channel, two rows of pixels to a line, since letters are twice as high as wide.
fn image(height: usize, width: usize, values: &[f32]) -> Vec<String> {
    let across = width.div_ceil(WIDTH).max(1);
    let pixels = &values[..height * width];
    let (low, high) = range(pixels);
    let letter = |top: usize, left: usize| {
        let rows = top..(top + 2 * across).min(height);
        let block =
            rows.flat_map(|y| &pixels[y * width + left..y * width + (left + across).min(width)]);
        let (sum, count) = block.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
        SHADES[place(sum / count as f32, low, high, SHADES.len())]
    };
    let line = |top: usize| {
        (0..width)
            .step_by(across)
            .map(|left| letter(top, left))
            .collect()
    };
    (0..height).step_by(2 * across).map(line).collect()
}

fn shortened(values: &[f32], most: usize) -> Vec<f32> {
    let each = values.len().div_ceil(most).max(1);
    let mean = |chunk: &[f32]| chunk.iter().sum::<f32>() / chunk.len() as f32;
    values.chunks(each).map(mean).collect()
}

fn range(values: &[f32]) -> (f32, f32) {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    finite.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Which of `count` equal parts of the range a value lies in; the middle, where nothing varies.
fn place(value: f32, low: f32, high: f32, count: usize) -> usize {
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
        assert_eq!(
            sparkline(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
            "▁▂▃▄▅▆▇█"
        );
        assert_eq!(sparkline(&[2.0, 2.0]), "▄▄");
        assert_eq!(sparkline(&vec![1.0; 1000]).chars().count(), 63);
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn images_are_half_as_high_in_letters() {
        let mut pixels = vec![0.0; 8 * 6];
        pixels[0] = 1.0;
        pixels[6] = 1.0;
        let lines = image(8, 6, &pixels);
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0], "█     ");
        let series = sample(Shape::Steps(3, 5), &["a".into()], &[0.5; 15]);
        assert_eq!(series.len(), SERIES + 1);
        assert_eq!(series[0], "▄▄▄  a");
    }
}
