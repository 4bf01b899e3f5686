//! Networks at random: any list of layers that fit each other.

use std::collections::BTreeSet;

/// The shape of a sample on its way through a network.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Flat(u64),
    Steps(u64, u64),
    Image(u64, u64, u64),
}

impl Shape {
    pub(crate) fn numbers(self) -> u64 {
        match self {
            Shape::Flat(n) => n,
            Shape::Steps(steps, features) => steps * features,
            Shape::Image(channels, height, width) => channels * height * width,
        }
    }

    /// As `data.features` has it.
    pub(crate) fn text(self) -> String {
        match self {
            Shape::Flat(n) => format!("[{n}]"),
            Shape::Steps(steps, features) => format!("[{steps}, {features}]"),
            Shape::Image(channels, height, width) => format!("[{channels}, {height}, {width}]"),
        }
    }
}

/// A sequence of numbers that looks random.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// One of `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) % (high - low + 1)
    }

    pub(crate) fn shape(&mut self) -> Shape {
        match self.between(0, 2) {
            0 => Shape::Flat(self.between(1, 20)),
            1 => Shape::Steps(self.between(1, 9), self.between(1, 6)),
            _ => Shape::Image(self.between(1, 3), self.between(2, 9), self.between(2, 9)),
        }
    }
}

/// Functions of single numbers.
pub(crate) const ELEMENTWISE: [&str; 5] = ["relu", "tanh", "sigmoid", "gelu", "softplus"];

/// Layers one after the other, and what has been drawn so far.
pub(crate) struct Stack<'a> {
    pub(crate) dice: &'a mut Dice,
    pub(crate) shape: Shape,
    pub(crate) layers: Vec<String>,
    /// Every kind of layer with the number of dimensions that it was given.
    pub(crate) seen: &'a mut BTreeSet<(String, usize)>,
}

impl Stack<'_> {
    pub(crate) fn grow(&mut self, layers: u64) {
        for _ in 0..layers {
            self.layer();
        }
    }

    /// Ends with one number for each class.
    pub(crate) fn end(&mut self, classes: u64) {
        if !matches!(self.shape, Shape::Flat(_)) {
            self.add("flatten", "");
        }
        self.add("linear", &format!("out = {classes}"));
    }

    /// As an experiment has it.
    pub(crate) fn text(&self) -> String {
        format!("[{}]", self.layers.join(", "))
    }

    /// Such a layer was drawn for what is there.
    fn note(&mut self, name: &str) {
        let dimensions = match self.shape {
            Shape::Flat(_) => 1,
            Shape::Steps(..) => 2,
            Shape::Image(..) => 3,
        };
        self.seen.insert((name.to_owned(), dimensions));
    }

    fn add(&mut self, name: &str, keys: &str) {
        self.note(name);
        self.layers.push(match keys {
            "" => format!("\"{name}\""),
            keys => format!("{{ {name} = {{ {keys} }} }}"),
        });
    }

    fn layer(&mut self) {
        let kind = self.dice.between(0, 7);
        match (kind, self.shape) {
            (0 | 1, _) => {
                let of = self.dice.between(0, ELEMENTWISE.len() as u64 - 1);
                self.add(ELEMENTWISE[of as usize], "");
            }
            (_, Shape::Flat(n)) => self.of_features(kind, n),
            (_, Shape::Steps(steps, _)) => self.of_steps(kind, steps),
            (_, Shape::Image(channels, height, width)) => {
                self.of_image(kind, channels, height, width);
            }
        }
    }

    fn of_features(&mut self, kind: u64, n: u64) {
        let size = self.dice.between(1, 12);
        match kind {
            2 | 3 => {
                self.add("linear", &format!("out = {size}"));
                self.shape = Shape::Flat(size);
            }
            4 => {
                self.add("window", &format!("size = {size}"));
                self.shape = Shape::Steps(n.div_ceil(size), size);
            }
            5 => {
                self.add("spectrum", "");
                self.shape = Shape::Flat(n / 2 + 1);
            }
            _ => self.add("flatten", ""),
        }
    }

    fn of_steps(&mut self, kind: u64, steps: u64) {
        let Shape::Steps(_, features) = self.shape else {
            return;
        };
        let hidden = self.dice.between(1, 7);
        match kind {
            2 | 3 => {
                let [sequence, both_ways] = [1, 2].map(|_| self.dice.between(0, 1) == 1);
                let keys =
                    format!("hidden = {hidden}, sequence = {sequence}, both_ways = {both_ways}");
                self.add(if kind == 2 { "lstm" } else { "gru" }, &keys);
                let width = if both_ways { 2 * hidden } else { hidden };
                self.shape = match sequence {
                    true => Shape::Steps(steps, width),
                    false => Shape::Flat(width),
                };
            }
            4 => {
                let (keys, [steps, _]) = self.convolution(hidden, [steps, steps]);
                self.add("conv1d", &keys);
                self.shape = Shape::Steps(steps, hidden);
            }
            5 => {
                self.add("spectrum", "");
                self.shape = Shape::Steps(steps, features / 2 + 1);
            }
            6 => {
                let over = ["mean", "max", "last"][self.dice.between(0, 2) as usize];
                self.note("pool");
                self.layers.push(format!("{{ pool = \"{over}\" }}"));
                self.shape = Shape::Flat(features);
            }
            _ if steps > 1 => {
                let size = self.dice.between(1, steps.min(3));
                self.add("maxpool", &format!("size = {size}"));
                self.shape = Shape::Steps(steps / size, features);
            }
            _ => {
                self.add("flatten", "");
                self.shape = Shape::Flat(steps * features);
            }
        }
    }

    fn of_image(&mut self, kind: u64, channels: u64, height: u64, width: u64) {
        match kind {
            2 | 3 => {
                let out = self.dice.between(1, 5);
                let (keys, [height, width]) = self.convolution(out, [height, width]);
                self.add("conv2d", &keys);
                self.shape = Shape::Image(out, height, width);
            }
            4 if height.min(width) > 1 => {
                let size = self.dice.between(1, height.min(width).min(3));
                self.add("maxpool", &format!("size = {size}"));
                self.shape = Shape::Image(channels, height / size, width / size);
            }
            _ => {
                self.add("flatten", "");
                self.shape = Shape::Flat(channels * height * width);
            }
        }
    }

    /// The keys of a convolution that fits, and how large its result is.
    fn convolution(&mut self, out: u64, room: [u64; 2]) -> (String, [u64; 2]) {
        let size = self.dice.between(1, room[0].min(room[1]).min(4));
        let (stride, padding) = (self.dice.between(1, 3), self.dice.between(0, size - 1));
        let keys = format!("out = {out}, size = {size}, stride = {stride}, padding = {padding}");
        (keys, room.map(|n| (n + 2 * padding - size) / stride + 1))
    }
}
