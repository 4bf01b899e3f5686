//! Quadratics with a chosen ρ: the loss of sample n is ½(θ − c_n)ᵀH(θ − c_n).
//!
//! H couples the three parts of θ, so that a stale part is felt. All samples share H, and all groups have the same
//! centres (some have each of them twice), so that F_m = F as Theorem 1 assumes. The variance of a gradient is then the
//! same everywhere, and δ² has a closed form.

use selvedge_nn::random::{Key, Stream};
use std::ops::Range;

/// Parameters of all three parts.
pub(crate) const N: usize = 12;

/// Where θ0, θ1 and θ2 lie.
pub(crate) const PARTS: [Range<usize>; 3] = [0..3, 3..7, 7..N];

/// θ0, θ1, θ2 behind one another.
pub(crate) type Theta = [f64; N];

pub(crate) fn dot(a: &Theta, b: &Theta) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `a` + `factor` · `b`
pub(crate) fn plus(a: &Theta, factor: f64, b: &Theta) -> Theta {
    std::array::from_fn(|i| a[i] + factor * b[i])
}

fn normals(stream: &mut Stream) -> Theta {
    std::array::from_fn(|_| f64::from(stream.normal()))
}

/// The samples of a group.
#[derive(Clone)]
pub(crate) struct Quadratic {
    /// H, row by row.
    pub hessian: [Theta; N],
    /// Its eigenvectors, by falling eigenvalue.
    pub axes: [Theta; N],
    /// Its largest and smallest eigenvalue.
    pub rho: f64,
    pub least: f64,
    /// c_n
    pub centres: Vec<Theta>,
    /// The mean of all c_n.
    pub optimum: Theta,
}

impl Quadratic {
    /// Eigenvalues fall geometrically from `rho` to `rho / condition`, along random axes; centres are normal, and wider
    /// in some directions than in others.
    pub(crate) fn new(seed: u64, rho: f64, condition: f64, centres: usize) -> Self {
        let mut stream = Key::new(seed).with(0x9ad).stream();
        let mut axes: [Theta; N] =
            std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
        for _ in 0..N {
            // A product of reflections is a random rotation that stays orthogonal.
            let mirror = normals(&mut stream);
            let length = dot(&mirror, &mirror);
            axes = axes.map(|axis| plus(&axis, -2.0 * dot(&axis, &mirror) / length, &mirror));
        }
        let eigenvalue = |i: usize| rho * libm::pow(condition, -(i as f64) / (N - 1) as f64);
        let mut hessian = [[0.0; N]; N];
        for (i, axis) in axes.iter().enumerate() {
            for (row, x) in hessian.iter_mut().zip(axis) {
                *row = plus(row, eigenvalue(i) * x, axis);
            }
        }
        let widths: Theta = std::array::from_fn(|_| 0.3 + stream.uniform_f64());
        let mut centre = || {
            let normal = normals(&mut stream);
            std::array::from_fn(|i| widths[i] * normal[i])
        };
        Quadratic {
            hessian,
            axes,
            rho,
            least: rho / condition,
            centres: Vec::new(),
            optimum: [0.0; N],
        }
        .with_centres((0..centres).map(|_| centre()).collect())
    }

    /// The same curvature around other centres.
    pub(crate) fn with_centres(self, centres: Vec<Theta>) -> Self {
        let sum = centres.iter().fold([0.0; N], |sum, c| plus(&sum, 1.0, c));
        Quadratic {
            optimum: sum.map(|x| x / centres.len() as f64),
            centres,
            ..self
        }
    }

    /// H·v
    pub(crate) fn bend(&self, v: &Theta) -> Theta {
        std::array::from_fn(|i| dot(&self.hessian[i], v))
    }

    /// F less its least value.
    pub(crate) fn excess(&self, at: &Theta) -> f64 {
        let away = plus(at, -1.0, &self.optimum);
        0.5 * dot(&away, &self.bend(&away))
    }

    /// ∇F
    pub(crate) fn gradient(&self, at: &Theta) -> Theta {
        self.bend(&plus(at, -1.0, &self.optimum))
    }

    /// The centre of a device, where the group has the centres more than once.
    pub(crate) fn centre(&self, device: usize) -> &Theta {
        &self.centres[device % self.centres.len()]
    }

    /// Of each part, the variance of the gradient of one device drawn at random.
    pub(crate) fn of_one(&self) -> [f64; 3] {
        let apart = |c: &Theta| self.bend(&plus(c, -1.0, &self.optimum));
        let all: Vec<Theta> = self.centres.iter().map(apart).collect();
        PARTS.map(|part| {
            let squares = all.iter().flat_map(|g| &g[part.clone()]).map(|x| x * x);
            squares.sum::<f64>() / all.len() as f64
        })
    }

    /// Of each part, the variance of what is applied when `selected` of `devices` are drawn without replacement: of
    /// their mean for θ0 and θ1, of one device for θ2.
    pub(crate) fn applied(&self, selected: usize, devices: usize) -> [f64; 3] {
        let (a, k) = (selected as f64, devices as f64);
        let [v0, v1, v2] = self.of_one();
        let of_mean = if devices > 1 {
            (k - a) / (a * (k - 1.0))
        } else {
            0.0
        };
        [v0 * of_mean, v1 * of_mean, v2]
    }
}

/// Who is drawn: `count` of `devices`, without replacement.
pub(crate) fn draw(key: Key, devices: usize, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..devices).collect();
    let mut stream = key.stream();
    for i in 0..count {
        all.swap(i, i + stream.below((devices - i) as u64) as usize);
    }
    all.truncate(count);
    all
}
