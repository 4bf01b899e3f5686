//! Neural networks on flat `f32` slices, one sample at a time.
//!
//! A [`Network`] is a list of layers over **one flat parameter slice**, so that averaging, encoding and counting models
//! are slice operations. It knows nothing of federation.
//!
//! # Call order
//!
//! ```text
//! prepare(params)            once per value of the parameters, before any backward pass
//! forward(params, input)     fills the sample's tape; the output is the end of the tape
//! backward(.., d_output)     reads the tape, adds to a gradient or takes a step
//! ```
//!
//! # Same bits everywhere
//!
//! 1. SIMD lanes carry independent outputs; each sum runs in a fixed order with explicit fused
//!    multiply-add. There is one virtual width of 16 lanes ([`simd`]), so AVX-512, AVX2 and plain
//!    code agree.
//! 2. Exponentials and logarithms are our own ([`math`]), never the platform's.
//! 3. One sample's result never depends on which samples are computed beside it.
//!
//! ```
//! use selvedge_nn::{LayerSpec, Network, RecurrentSpec, Shape, random::Key};
//!
//! let tower = Network::new(
//!     Shape::Flat(89),
//!     &[LayerSpec::Window { size: 8 }, LayerSpec::Lstm(RecurrentSpec::new(32))],
//! )?;
//! assert_eq!(tower.output().len(), 32);
//! assert_eq!(tower.params(), 4 * 32 * (8 + 32 + 1));
//!
//! let mut params = vec![0.0; tower.params()];
//! tower.initialise(Key::new(42), &mut params);
//! let mut tape = vec![0.0; tower.tape()];
//! let zeta = tower.forward(&params, &[0.5; 89], &mut tape);
//! assert!(zeta.iter().all(|z| z.abs() < 1.0));
//! # Ok::<(), selvedge_nn::ShapeError>(())
//! ```

mod cost;
mod kernel;
mod layer;
pub mod limits;
pub mod loss;
pub mod math;
mod network;
pub mod random;
mod shape;
pub mod simd;
mod spec;
pub mod spectrum;
pub mod vector;

pub use cost::Cost;
pub use network::{Network, Tensor, Update};
pub use shape::{Shape, ShapeError};
pub use spec::{ConvSpec, LayerSpec, PoolSpec, RecurrentSpec};
