//! The layers of a network as operators of ONNX.
//!
//! A value has the shape of [`selvedge_nn::Shape`] with the samples in front: `[N, features]`, `[N, steps, features]`
//! or `[N, channels, height, width]`. Operators want channels before steps, and recurrent ones steps before samples, so
//! values are turned before and after.

use super::onnx::Attribute::{Number, Numbers as List, Text};
use super::onnx::{Graph, Numbers};
use anyhow::{Context, Result};
use selvedge_nn::{ConvSpec, LayerSpec, Network, PoolSpec, RecurrentSpec, Shape, Tensor, spectrum};

/// One of the three networks of a model.
pub(super) struct Part<'a> {
    /// `hospital`, `device` or `combined`.
    pub(super) name: &'a str,
    pub(super) network: &'a Network,
    pub(super) layers: &'a [LayerSpec],
    pub(super) weights: &'a [f32],
}

/// A layer and where it stands.
struct Place<'a> {
    /// `<part>.<layer index>`, as its tensors are called in weights files.
    name: String,
    tensors: Vec<&'a Tensor>,
    weights: &'a [f32],
}

impl Part<'_> {
    /// Adds all layers, and says where the result is: `[N, width]`.
    pub(super) fn add(&self, graph: &mut Graph, input: String) -> Result<String> {
        let tensors = self.network.tensors();
        let (mut value, mut shape) = (input, self.network.input());
        for (index, layer) in self.layers.iter().enumerate() {
            let prefix = format!("{index}.");
            let own = tensors.iter().filter(|t| t.name.starts_with(&prefix));
            let place = Place {
                name: format!("{}.{index}", self.name),
                tensors: own.collect(),
                weights: self.weights,
            };
            value = place.add(graph, layer, shape, &value)?;
            shape = layer.output(shape)?;
        }
        Ok(match shape {
            Shape::Flat(_) => value,
            _ => flatten(graph, self.name, &value),
        })
    }
}

fn flatten(graph: &mut Graph, of: &str, value: &str) -> String {
    graph.add(of, "Flatten", &[value], &[("axis", Number(1))])
}

impl Place<'_> {
    fn add(
        &self,
        graph: &mut Graph,
        layer: &LayerSpec,
        shape: Shape,
        value: &str,
    ) -> Result<String> {
        let of = &self.name;
        Ok(match *layer {
            LayerSpec::Linear { .. } => {
                let (weight, bias) = (self.plain(graph, "weight")?, self.plain(graph, "bias")?);
                let attributes = [("transB", Number(1))];
                graph.add(of, "Gemm", &[value, &weight, &bias], &attributes)
            }
            LayerSpec::Conv1d(conv) => {
                let turned = self.turned(graph, value);
                let result = self.convolution(graph, conv, 1, &turned)?;
                self.turned(graph, &result)
            }
            LayerSpec::Conv2d(conv) => self.convolution(graph, conv, 2, value)?,
            LayerSpec::Maxpool { size } => match shape {
                Shape::Image(..) => self.pool(graph, size, 2, value),
                _ => {
                    let turned = self.turned(graph, value);
                    let result = self.pool(graph, size, 1, &turned);
                    self.turned(graph, &result)
                }
            },
            LayerSpec::Relu => graph.add(of, "Relu", &[value], &[]),
            LayerSpec::Tanh => graph.add(of, "Tanh", &[value], &[]),
            LayerSpec::Sigmoid => graph.add(of, "Sigmoid", &[value], &[]),
            LayerSpec::Gelu => self.gelu(graph, value),
            LayerSpec::Softplus => graph.add(of, "Softplus", &[value], &[]),
            LayerSpec::Flatten => flatten(graph, of, value),
            LayerSpec::Spectrum => self.spectrum(graph, shape, value),
            LayerSpec::Window { size } => self.window(graph, size, shape.len(), value),
            LayerSpec::Pool(over) => self.over_steps(graph, over, value),
            // Ours are i, f, g, o; theirs i, o, f and g, which they call c.
            LayerSpec::Lstm(keys) => self.recurrent(graph, "LSTM", &[0, 3, 1, 2], keys, value)?,
            // Ours are r, z, n; theirs z, r and n, which they call h.
            LayerSpec::Gru(keys) => self.recurrent(graph, "GRU", &[1, 0, 2], keys, value)?,
        })
    }

    /// One of the layer's tensors.
    fn tensor(&self, name: &str) -> Result<(&Tensor, Vec<f32>)> {
        let is_it = |tensor: &&&Tensor| tensor.name.split('.').next_back() == Some(name);
        let found = self.tensors.iter().find(is_it);
        let tensor =
            found.with_context(|| format!("layer {} has no tensor `{name}`", self.name))?;
        Ok((tensor, tensor.read(self.weights)))
    }

    /// One of them as it is.
    fn plain(&self, graph: &mut Graph, name: &str) -> Result<String> {
        let (tensor, values) = self.tensor(name)?;
        let full_name = format!("{}.{name}", self.name);
        Ok(graph.weights(&full_name, &tensor.shape, Numbers::Floats(values)))
    }

    /// `[N, steps, features]` as `[N, features, steps]`, or back.
    fn turned(&self, graph: &mut Graph, value: &str) -> String {
        let order = [("perm", List(vec![0, 2, 1]))];
        graph.add(&self.name, "Transpose", &[value], &order)
    }

    fn convolution(
        &self,
        graph: &mut Graph,
        conv: ConvSpec,
        dimensions: usize,
        value: &str,
    ) -> Result<String> {
        let all = |size: usize, times: usize| List(vec![size as i64; times]);
        let attributes = [
            ("kernel_shape", all(conv.size, dimensions)),
            ("strides", all(conv.stride, dimensions)),
            ("pads", all(conv.padding, 2 * dimensions)),
        ];
        let (weight, bias) = (self.plain(graph, "weight")?, self.plain(graph, "bias")?);
        Ok(graph.add(&self.name, "Conv", &[value, &weight, &bias], &attributes))
    }

    fn pool(&self, graph: &mut Graph, size: usize, dimensions: usize, value: &str) -> String {
        let sizes = || List(vec![size as i64; dimensions]);
        let attributes = [("kernel_shape", sizes()), ("strides", sizes())];
        graph.add(&self.name, "MaxPool", &[value], &attributes)
    }

    /// A number of the layer's own.
    fn number(&self, graph: &mut Graph, name: &str, number: f32) -> String {
        let name = format!("{}.{name}", self.name);
        graph.weights(&name, &[], Numbers::Floats(vec![number]))
    }

    /// x/2 · (1 + erf(x/√2)): there is an operator for it only from 2023 on.
    fn gelu(&self, graph: &mut Graph, value: &str) -> String {
        let of = &self.name;
        let root = self.number(graph, "root", std::f32::consts::FRAC_1_SQRT_2);
        let (one, half) = (
            self.number(graph, "one", 1.0),
            self.number(graph, "half", 0.5),
        );
        let scaled = graph.add(of, "Mul", &[value, &root], &[]);
        let erf = graph.add(of, "Erf", &[&scaled], &[]);
        let twice = graph.add(of, "Add", &[&erf, &one], &[]);
        let product = graph.add(of, "Mul", &[value, &twice], &[]);
        graph.add(of, "Mul", &[&product, &half], &[])
    }

    /// Products of each window with constant tables: ln(ε + real² + imaginary²).
    fn spectrum(&self, graph: &mut Graph, shape: Shape, value: &str) -> String {
        let of = &self.name;
        let size = match shape {
            Shape::Steps(_, size) => size,
            _ => shape.len(),
        };
        let mut sum = self.number(graph, "floor", spectrum::FLOOR);
        for (name, table) in ["cosines", "sines"].into_iter().zip(spectrum::tables(size)) {
            let name = format!("{of}.{name}");
            let dims = [size, spectrum::bins(size)];
            let table = graph.weights(&name, &dims, Numbers::Floats(table));
            let part = graph.add(of, "MatMul", &[value, &table], &[]);
            let square = graph.add(of, "Mul", &[&part, &part], &[]);
            sum = graph.add(of, "Add", &[&square, &sum], &[]);
        }
        graph.add(of, "Log", &[&sum], &[])
    }

    /// Zeros at the end, so that steps are full.
    fn window(&self, graph: &mut Graph, size: usize, inputs: usize, value: &str) -> String {
        let steps = inputs.div_ceil(size);
        let zeros = (steps * size - inputs) as i64;
        let mut integers = |name: &str, all: Vec<i64>| {
            let name = format!("{}.{name}", self.name);
            graph.weights(&name, &[all.len()], Numbers::Integers(all))
        };
        let pads = integers("pads", vec![0, 0, 0, zeros]);
        // A dimension of 0 is that of the input: any number of samples, none too.
        let shape = integers("shape", vec![0, steps as i64, size as i64]);
        let padded = graph.add(&self.name, "Pad", &[value, &pads], &[]);
        graph.add(&self.name, "Reshape", &[&padded, &shape], &[])
    }

    /// What is left of all steps.
    fn over_steps(&self, graph: &mut Graph, over: PoolSpec, value: &str) -> String {
        let mean_or_max = |graph: &mut Graph, operator: &str| {
            let attributes = [("axes", List(vec![1])), ("keepdims", Number(0))];
            graph.add(&self.name, operator, &[value], &attributes)
        };
        match over {
            PoolSpec::Mean => mean_or_max(graph, "ReduceMean"),
            PoolSpec::Max => mean_or_max(graph, "ReduceMax"),
            PoolSpec::Last => {
                let name = format!("{}.last", self.name);
                let last = graph.weights(&name, &[], Numbers::Integers(vec![-1]));
                let attributes = [("axis", Number(1))];
                graph.add(&self.name, "Gather", &[value, &last], &attributes)
            }
        }
    }

    /// An LSTM or GRU from a zero state, one way or both, to its last hidden states or those of all steps. `order` says
    /// which of our gates each of theirs is.
    fn recurrent(
        &self,
        graph: &mut Graph,
        operator: &str,
        order: &[usize],
        keys: RecurrentSpec,
        value: &str,
    ) -> Result<String> {
        let RecurrentSpec {
            hidden,
            sequence,
            both_ways,
        } = keys;
        let ends: &[&str] = if both_ways { &["", "_reverse"] } else { &[""] };
        let (gates, directions) = (order.len(), ends.len());
        let reordered = |values: &[f32]| -> Vec<f32> {
            let gate = values.len() / gates;
            let of_ours = |ours: &usize| &values[ours * gate..][..gate];
            order.iter().flat_map(of_ours).copied().collect()
        };
        let mut weights = Vec::new();
        for name in ["weight_ih", "weight_hh"] {
            let (tensor, _) = self.tensor(name)?;
            let shape = [directions, tensor.shape[0], tensor.shape[1]];
            let mut all = Vec::new();
            for end in ends {
                all.extend(reordered(&self.tensor(&format!("{name}{end}"))?.1));
            }
            let name = format!("{}.{name}", self.name);
            weights.push(graph.weights(&name, &shape, Numbers::Floats(all)));
        }
        // Theirs has two biases for each direction, of which ours is the first.
        let mut biases = Vec::new();
        for end in ends {
            biases.extend(reordered(&self.tensor(&format!("bias{end}"))?.1));
            biases.resize(biases.len() + gates * hidden, 0.0);
        }
        let name = format!("{}.bias", self.name);
        let shape = [directions, 2 * gates * hidden];
        let bias = graph.weights(&name, &shape, Numbers::Floats(biases));

        let order = [("perm", List(vec![1, 0, 2]))];
        let steps_first = graph.add(&self.name, "Transpose", &[value], &order);
        let mut attributes = vec![("hidden_size", Number(hidden as i64))];
        if operator == "GRU" {
            // r multiplies W_hn h, not h alone.
            attributes.push(("linear_before_reset", Number(1)));
        }
        if both_ways {
            attributes.push(("direction", Text("bidirectional")));
        }
        let inputs = [&steps_first, &weights[0], &weights[1], &bias].map(String::as_str);
        // All of them are [steps, directions, N, hidden], the last ones [directions, N, hidden].
        let (result, order, shape) = match sequence {
            true => (
                graph.add(&self.name, operator, &inputs, &attributes),
                vec![2, 0, 1, 3],
                vec![0, 0, (directions * hidden) as i64],
            ),
            false => (
                graph.add_for_second(&self.name, operator, &inputs, &attributes),
                vec![1, 0, 2],
                vec![0, (directions * hidden) as i64],
            ),
        };
        let order = [("perm", List(order))];
        let samples_first = graph.add(&self.name, "Transpose", &[&result], &order);
        let name = format!("{}.states", self.name);
        let shape = graph.weights(&name, &[shape.len()], Numbers::Integers(shape));
        Ok(graph.add(&self.name, "Reshape", &[&samples_first, &shape], &[]))
    }
}
