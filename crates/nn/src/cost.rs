//! What a network costs, counted from its layers.

use std::iter::Sum;

/// What one sample costs.
///
/// Operations are those in the products of layers, a multiply-add being two: weights (or a layer's constants) with inputs,
/// and in the backward pass with gradients. Work on single numbers (biases, nonlinearities, pooling, the gates of recurrent layers,
/// updates) is not counted, as is usual; it is a few operations for each number on the tape.
///
/// The gradient takes as many numbers as the parameters, and the tape as many as the activations, which
/// [`Network::tape`](crate::Network::tape) rounds up to cache lines.
///
/// ```
/// use selvedge_nn::{LayerSpec, Network, Shape};
///
/// let layers = [LayerSpec::Linear { out: 20 }, LayerSpec::Tanh, LayerSpec::Linear { out: 3 }];
/// let tower = Network::new(Shape::Flat(10), &layers)?.cost();
/// let (first, second) = (2 * 10 * 20, 2 * 20 * 3);
/// assert_eq!(tower.forward_flops, first + second);
/// // The weights of both, and the input of the second: the gradient of raw data is not needed.
/// assert_eq!(tower.backward_flops, first + 2 * second);
///
/// let combined = Network::new(Shape::Flat(10), &layers)?.with_input_gradient().cost();
/// assert_eq!(combined.backward_flops, 2 * (first + second));
/// // With frozen weights, only the gradient of the input is needed.
/// assert_eq!(combined.frozen_backward_flops, first + second);
/// assert_eq!((combined.params, combined.activations), (200 + 20 + 60 + 3, 20 + 20 + 3));
/// # Ok::<(), selvedge_nn::ShapeError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Numbers in the parameters.
    pub params: usize,
    /// Numbers kept between the forward and the backward pass.
    pub activations: usize,
    /// Operations of a forward pass.
    pub forward_flops: u64,
    /// Operations of a backward pass: the gradients of weights, of what lies between layers, and of the input if the
    /// network was made [with it](crate::Network::with_input_gradient).
    pub backward_flops: u64,
    /// The same without the gradients of weights, as with [`Update::Frozen`](crate::Update::Frozen).
    pub frozen_backward_flops: u64,
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Cost::default(), |sum, cost| Cost {
            params: sum.params + cost.params,
            activations: sum.activations + cost.activations,
            forward_flops: sum.forward_flops + cost.forward_flops,
            backward_flops: sum.backward_flops + cost.backward_flops,
            frozen_backward_flops: sum.frozen_backward_flops + cost.frozen_backward_flops,
        })
    }
}
