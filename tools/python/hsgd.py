"""Reads Selvedge runs and computes their models in PyTorch. A library: nothing to run here.

Used by golden.py (reference tensors), check_model.py (metrics of a trained model) and replay.py (the
training itself). Everything is float64, so that differences seen are those of the engine under test.

Shapes of one sample are [features], [steps, features] or [channels, height, width]; arrays here have the
sample number in front of them.
"""

import json
import math
import struct

import numpy as np
import torch
import torch.nn.functional as F

PARTS = ("hospital", "device", "combined")

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)  # the models are small; more threads are slower


class BadInput(Exception):
    """A file that is missing, malformed or not what was asked for."""


def read_safetensors(path):
    """Tensors by name, as float64 arrays."""
    types = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
    try:
        content = open(path, "rb").read()
        (header_length,) = struct.unpack_from("<Q", content)
        header = json.loads(content[8:8 + header_length])
        header.pop("__metadata__", None)
        body = content[8 + header_length:]
        tensors = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            values = np.frombuffer(body[begin:end], types[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"]).astype(np.float64)
        return tensors
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: not a safetensors file of floats: {error!r}") from error


def read_json(path):
    """One JSON document."""
    try:
        with open(path) as file:
            return json.load(file)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error


def read_arrays(path):
    """The arrays of an .npz file, loaded when asked for by name."""
    try:
        return np.load(path)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise BadInput(f"{path}: not an .npz file: {error}") from error


def array(arrays, name):
    """One array of an export; classes as int64 tensors, everything else as float64."""
    if name not in arrays:
        raise BadInput(f"the export has no array {name}; it has {', '.join(sorted(arrays.keys()))}")
    found = arrays[name]
    return torch.from_numpy(found.astype(np.int64 if found.dtype.kind == "i" else np.float64))


class Window(torch.nn.Module):
    """[n] becomes [ceil(n/size), size], padded with zeros at the end."""

    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        padding = -x.shape[1] % self.size
        return F.pad(x, (0, padding)).reshape(len(x), -1, self.size)


class OverSteps(torch.nn.Module):
    """A layer of PyTorch's [channels, steps] applied to our [steps, features]."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x.transpose(1, 2)).transpose(1, 2)


class Hidden(torch.nn.Module):
    """An LSTM or GRU from a zero state, one way or both, giving its last hidden states or those of all steps; bias_hh is
    zero for good."""

    def __init__(self, recurrent, sequence):
        super().__init__()
        self.recurrent, self.sequence = recurrent, sequence
        self.ends = ("", "_reverse") if recurrent.bidirectional else ("",)
        for end in self.ends:
            getattr(recurrent, f"bias_hh_l0{end}").requires_grad_(False).zero_()

    def tensors(self):
        """By the names that Selvedge gives them."""
        names = {"weight_ih": "weight_ih_l0", "weight_hh": "weight_hh_l0", "bias": "bias_ih_l0"}
        return {name + end: getattr(self.recurrent, theirs + end)
                for end in self.ends for name, theirs in names.items()}

    def forward(self, x):
        states, last = self.recurrent(x)
        if self.sequence:
            return states
        hidden = last[0] if isinstance(last, tuple) else last
        return hidden.transpose(0, 1).flatten(1)


class Pool(torch.nn.Module):
    """The mean, the largest or the last of all steps."""

    def __init__(self, over):
        super().__init__()
        self.over = over

    def forward(self, x):
        return {"mean": lambda: x.mean(dim=1), "max": lambda: x.max(dim=1).values, "last": lambda: x[:, -1]}[self.over]()


class Softplus(torch.nn.Module):
    """ln(1 + e^x), exactly: PyTorch's own gives x itself from 20 on."""

    def forward(self, x):
        return torch.logaddexp(x, torch.zeros(()))


class Spectrum(torch.nn.Module):
    """ln(1e-4 + |X|^2) with the unitary discrete Fourier transform X of the last dimension."""

    def powers(self, x):
        return torch.fft.rfft(x, norm="ortho").abs().square()

    def forward(self, x):
        return torch.log(1e-4 + self.powers(x))


# Functions of single numbers; GELU is the exact one, by erf.
ELEMENTWISE = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "sigmoid": torch.nn.Sigmoid, "gelu": torch.nn.GELU,
               "softplus": Softplus}


def layer_of(spec):
    """Name and options of a layer: "relu", {"relu": {}}, {"linear": {"out": 5}} and {"pool": "mean"} are all valid; a
    word alone is the option ""."""
    if isinstance(spec, str):
        return spec, {}
    if isinstance(spec, dict) and len(spec) == 1:
        ((name, options),) = spec.items()
        return name, {"": options} if isinstance(options, str) else dict(options or {})
    raise BadInput(f"layer {spec!r}: expected a name or one name with its options")


def build_layer(spec, shape):
    """The PyTorch module of a layer, and its trainable tensors by the names that Selvedge saves them with."""
    name, options = layer_of(spec)
    dimensions = {"linear": (1,), "window": (1,), "spectrum": (1, 2), "conv1d": (2,), "conv2d": (3,), "maxpool": (2, 3),
                  "lstm": (2,), "gru": (2,), "pool": (2,), "flatten": (1, 2, 3)}
    dimensions |= {name: (1, 2, 3) for name in ELEMENTWISE}
    if name not in dimensions:
        raise BadInput(f"layer {name}: unknown; known are {', '.join(sorted(dimensions))}")
    if len(shape) not in dimensions[name]:
        raise BadInput(f"layer {name}: cannot take an input of shape {list(shape)}")
    if name in ELEMENTWISE:
        return ELEMENTWISE[name](), {}
    if name == "flatten":
        return torch.nn.Flatten(), {}
    if name == "window":
        return Window(options["size"]), {}
    if name == "spectrum":
        return Spectrum(), {}
    if name == "maxpool":
        size = options.get("size", 2)
        return (torch.nn.MaxPool2d(size) if len(shape) == 3 else OverSteps(torch.nn.MaxPool1d(size))), {}
    if name in ("lstm", "gru"):
        kind = torch.nn.LSTM if name == "lstm" else torch.nn.GRU
        layer = kind(shape[1], options["hidden"], batch_first=True, bidirectional=options.get("both_ways", False))
        layer = Hidden(layer, options.get("sequence", False))
        return layer, layer.tensors()
    if name == "pool":
        return Pool(options[""]), {}
    if name == "linear":
        layer = torch.nn.Linear(shape[0], options["out"])
    else:
        kind, channels = (torch.nn.Conv2d, shape[0]) if name == "conv2d" else (torch.nn.Conv1d, shape[1])
        layer = kind(channels, options["out"], options["size"],
                     stride=options.get("stride", 1), padding=options.get("padding", 0))
    named = {"weight": layer.weight, "bias": layer.bias}
    return (OverSteps(layer) if name == "conv1d" else layer), named


class Part(torch.nn.Module):
    """One of the three networks. Its weights are a flat vector `theta`, its tensors in the order of `named`."""

    def __init__(self, specs, input_shape):
        super().__init__()
        self.layers = torch.nn.ModuleList()
        self.named = {}  # "<layer index>.<tensor>" -> parameter
        sample = torch.zeros(1, *input_shape)
        for index, spec in enumerate(specs):
            try:
                layer, named = build_layer(spec, tuple(sample.shape[1:]))
                with torch.no_grad():
                    sample = layer(sample)
            except KeyError as error:
                raise BadInput(f"layer {index}, {spec!r}: no {error}") from error
            except RuntimeError as error:
                raise BadInput(f"layer {index}, {spec!r} on {list(sample.shape[1:])}: {error}") from error
            self.layers.append(layer)
            self.named.update({f"{index}.{name}": tensor for name, tensor in named.items()})
        self.output_shape = tuple(sample.shape[1:])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def set(self, theta):
        """Takes its weights from a flat vector."""
        torch.nn.utils.vector_to_parameters(theta.detach(), self.named.values())
        return self

    def gradient(self, loss, keep_graph=False):
        """The gradient of a loss by this part's weights, flat."""
        if not self.named:
            return torch.zeros(0)
        tensors = list(self.named.values())
        gradients = torch.autograd.grad(loss, tensors, retain_graph=keep_graph)
        return torch.cat([gradient.reshape(-1) for gradient in gradients])

    def theta(self, tensors, part):
        """The flat vector of the saved tensors `<part>.<layer index>.<name>`; all must be there, no others."""
        found = {name for name in tensors if name.startswith(part + ".")}
        expected = {f"{part}.{name}" for name in self.named}
        if found != expected:
            raise BadInput(f"tensors of {part}: missing {sorted(expected - found)}, "
                           f"not expected {sorted(found - expected)}")
        for name, parameter in self.named.items():
            saved = tensors[f"{part}.{name}"]
            if saved.shape != tuple(parameter.shape):
                raise BadInput(f"{part}.{name} has shape {list(saved.shape)}, "
                               f"expected {list(parameter.shape)}")
        flat = [tensors[f"{part}.{name}"].reshape(-1) for name in self.named]
        return torch.from_numpy(np.concatenate(flat) if flat else np.zeros(0))


class Model:
    """The hospital and device towers and the combined model on top of their joined embeddings."""

    def __init__(self, manifest, x1_shape, x2_shape):
        try:
            specs = manifest["experiment"]["model"]
            self.hospital = Part(specs["hospital"], x1_shape)
            self.device = Part(specs["device"], x2_shape)
            joined = math.prod(self.hospital.output_shape) + math.prod(self.device.output_shape)
            self.combined = Part(specs["combined"], (joined,))
        except KeyError as error:
            raise BadInput(f"manifest.json has no {error} in experiment.model") from error

    def part(self, name):
        return getattr(self, name)

    def thetas(self, tensors):
        """Flat weights by part, from the tensors of a safetensors file."""
        strange = sorted(name for name in tensors if name.split(".")[0] not in PARTS)
        if strange:
            raise BadInput(f"tensors that belong to no part: {strange}")
        return {part: self.part(part).theta(tensors, part) for part in PARTS}

    def zeta1(self, x1):
        return self.hospital(x1).flatten(1)

    def zeta2(self, x2):
        return self.device(x2).flatten(1)

    def logits(self, zeta1, zeta2):
        return self.combined(torch.cat([zeta1, zeta2], dim=1))


def losses(logits, y, class_weights=None):
    """Softmax cross-entropy of each sample, times the weight of its class."""
    each = F.cross_entropy(logits, y, reduction="none")
    return each if class_weights is None else each * class_weights[y]
