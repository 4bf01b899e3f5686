//! ONNX files: a graph of operators with its weights, as ONNX Runtime and others read them.
//!
//! Values have names; a node reads some and gives one. What a graph reads from outside and what it gives has shapes
//! too, of which the first dimension is `N`, any number of samples.

use super::protobuf::Message;
use anyhow::{Result, bail};

/// The operators of 2022, which everything in use knows, and the file's layout of that time.
const OPERATORS: i64 = 17;
const LAYOUT: i64 = 8;

/// The name of the first dimension.
const BATCH: &str = "N";

/// A file has at most so many bytes, since readers count them in 31 bits.
const MOST_BYTES: usize = i32::MAX as usize;

/// Types of numbers, as the format numbers them.
pub(super) const FLOAT: i64 = 1;
pub(super) const DOUBLE: i64 = 11;
const INTEGER: i64 = 7;

/// Numbers that a graph has in itself.
pub(super) enum Numbers {
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Integers(Vec<i64>),
}

/// An argument of an operator that is no value.
pub(super) enum Attribute {
    Number(i64),
    Numbers(Vec<i64>),
    Text(&'static str),
}

/// Attributes with their names.
pub(super) type Attributes<'a> = &'a [(&'a str, Attribute)];

/// A graph that is being put together.
#[derive(Default)]
pub(super) struct Graph {
    nodes: Vec<Message>,
    weights: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
}

impl Graph {
    /// Reads float numbers from outside, `[N, …shape]`.
    pub(super) fn input(&mut self, name: &str, shape: &[usize]) -> String {
        self.inputs.push(value(name, shape));
        name.into()
    }

    /// Gives a value to the outside, under this name.
    pub(super) fn output(&mut self, name: &str, width: usize, from: &str) {
        self.node("Identity", &[from], &[], vec![name]);
        self.outputs.push(value(name, &[width]));
    }

    /// Numbers of the graph's own.
    pub(super) fn weights(&mut self, name: &str, shape: &[usize], numbers: Numbers) -> String {
        let (kind, bytes): (i64, Vec<u8>) = match numbers {
            Numbers::Floats(all) => (FLOAT, selvedge_run::weights::to_bytes(&all)),
            Numbers::Doubles(all) => (DOUBLE, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Numbers::Integers(all) => (INTEGER, all.iter().flat_map(|x| x.to_le_bytes()).collect()),
        };
        let tensor = Message::new()
            .numbers(1, shape.iter().map(|d| *d as i64))
            .number(2, kind)
            .text(8, name)
            .bytes(9, &bytes);
        self.weights.push(tensor);
        name.into()
    }

    /// An operator, and what its result is called: by `of`, which is the part or layer it belongs to.
    pub(super) fn add(
        &mut self,
        of: &str,
        operator: &str,
        inputs: &[&str],
        attributes: Attributes<'_>,
    ) -> String {
        let result = format!("{of}.{operator}.{}", self.nodes.len());
        self.node(operator, inputs, attributes, vec![&result]);
        result
    }

    /// The same of an operator whose second result is meant.
    pub(super) fn add_for_second(
        &mut self,
        of: &str,
        operator: &str,
        inputs: &[&str],
        attributes: Attributes<'_>,
    ) -> String {
        let result = format!("{of}.{operator}.{}", self.nodes.len());
        self.node(operator, inputs, attributes, vec!["", &result]);
        result
    }

    fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: Attributes<'_>,
        outputs: Vec<&str>,
    ) {
        let name = format!("{operator}.{}", self.nodes.len());
        let node = Message::new()
            .texts(1, inputs.iter().copied())
            .texts(2, outputs)
            .text(3, &name)
            .text(4, operator)
            .messages(5, attributes.iter().map(|(name, a)| attribute(name, a)));
        self.nodes.push(node);
    }

    /// The file. `facts` are keys and values for whoever finds it.
    pub(super) fn into_file(
        self,
        name: &str,
        explanation: &str,
        facts: &[(&str, String)],
    ) -> Result<Vec<u8>> {
        let graph = Message::new()
            .messages(1, self.nodes)
            .text(2, name)
            .messages(5, self.weights)
            .messages(11, self.inputs)
            .messages(12, self.outputs);
        let fact =
            |(key, value): &(&str, String)| Message::new().text(1, key).text(2, value.as_str());
        let file = Message::new()
            .number(1, LAYOUT)
            .text(2, "selvedge")
            .text(3, env!("CARGO_PKG_VERSION"))
            .text(6, explanation)
            .message(7, graph)
            .message(8, Message::new().text(1, "").number(2, OPERATORS))
            .messages(14, facts.iter().map(fact))
            .into_bytes();
        if file.len() > MOST_BYTES {
            bail!(
                "{name}.onnx would have {} bytes: an ONNX file can have at most {MOST_BYTES}; `--format safetensors,card` writes the other formats",
                file.len()
            );
        }
        Ok(file)
    }
}

/// A value that goes in or out: its name, type and shape.
fn value(name: &str, shape: &[usize]) -> Message {
    let dimension = |size: &usize| Message::new().number(1, *size as i64);
    let batch = Message::new().text(2, BATCH);
    let dimensions = std::iter::once(batch).chain(shape.iter().map(dimension));
    let shape = Message::new().messages(1, dimensions);
    let tensor = Message::new().number(1, FLOAT).message(2, shape);
    Message::new()
        .text(1, name)
        .message(2, Message::new().message(1, tensor))
}

fn attribute(name: &str, attribute: &Attribute) -> Message {
    /// Kinds of attributes, as the format numbers them.
    const ONE: i64 = 2;
    const TEXT: i64 = 3;
    const LIST: i64 = 7;
    let message = Message::new().text(1, name);
    match attribute {
        Attribute::Number(n) => message.number(3, *n).number(20, ONE),
        Attribute::Text(text) => message.text(4, text).number(20, TEXT),
        Attribute::Numbers(all) => message.numbers(8, all.iter().copied()).number(20, LIST),
    }
}
