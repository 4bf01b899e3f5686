//! Small pictures of samples, in letters.

use crate::sparkline::{self, place, range};
use selvedge_nn::Shape;

/// The widest line of a picture.
const WIDTH: usize = 64;

/// Features of a time series that are drawn.
const SERIES: usize = 4;

const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// A line with one bar for each number or, of many, for the mean of neighbours.
pub(super) fn sparkline(values: &[f32]) -> String {
    sparkline::sparkline(values, WIDTH)
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

#[cfg(test)]
mod tests {
    use super::*;

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
