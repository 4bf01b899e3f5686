"""A model that `selvedge export` wrote, in PyTorch. Needs torch and the file model.safetensors, nothing else.

    import load
    model = load.model()                        # the file beside this one, or load.model("other/model.safetensors")
    result = model(hospital, device)            # arrays [N, ...], as measured, NaN where nothing was measured
    result["probabilities"]                     # also "logits", "zeta1", "zeta2", and "calibrated" if the run has it
    model.classes, model.hospital.columns, model.device.columns

A model of a quantity has result["prediction"] in place of probabilities, in the quantity's own unit, and a model of
survival has result["survival"]: for each time of model.ends the probability that there was no event until then.

`model` is a torch.nn.Module: model.hospital and model.device scale measured values and return embeddings,
model.combined returns logits. Arrays come from `selvedge predict --arrays inputs.npz`, for example:

    arrays = numpy.load("inputs.npz")
    load.model()(arrays["hospital"], arrays["device"])

The same with ONNX Runtime, which needs no PyTorch and no scaling either:

    import onnxruntime
    session = onnxruntime.InferenceSession("model.onnx")
    inputs = {"hospital": arrays["hospital"], "device": arrays["device"]}      # float32
    (probabilities,) = session.run(["probabilities"], inputs)

From the command line: `python load.py inputs.npz` prints a line of answers for each row.
"""

import json
import math
import pathlib
import struct
import sys

import torch


def read(path):
    """The tensors of a safetensors file by name, and the description of the model."""
    content = bytearray(pathlib.Path(path).read_bytes())
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    description = json.loads(header.pop("__metadata__")["selvedge"])
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        numbers = torch.frombuffer(content[begin:end], dtype=torch.float32)
        tensors[name] = numbers.reshape(entry["shape"])
    return tensors, description


class Window(torch.nn.Module):
    """[n] as steps of `size` numbers, padded with zeros at the end."""

    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        steps = -(-x.shape[1] // self.size)
        padded = torch.nn.functional.pad(x, (0, steps * self.size - x.shape[1]))
        return padded.reshape(len(x), steps, self.size)


class OverSteps(torch.nn.Module):
    """Applies a layer that takes [channels, steps] to [steps, features]."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x.transpose(1, 2)).transpose(1, 2)


class HiddenStates(torch.nn.Module):
    """An LSTM or GRU that returns its last hidden states, of each direction, or those of all steps."""

    def __init__(self, layer, sequence):
        super().__init__()
        self.layer, self.sequence = layer, sequence

    def forward(self, x):
        states, last = self.layer(x)
        if self.sequence:
            return states
        last = last[0] if isinstance(last, tuple) else last
        return last.transpose(0, 1).flatten(1)


class Pool(torch.nn.Module):
    """The mean, the largest or the last of all steps."""

    def __init__(self, over):
        super().__init__()
        self.over = over

    def forward(self, x):
        if self.over == "last":
            return x[:, -1]
        return x.mean(dim=1) if self.over == "mean" else x.max(dim=1).values


class Spectrum(torch.nn.Module):
    """ln(1e-4 + |X|²) with the unitary discrete Fourier transform X of the last dimension."""

    def __init__(self, size):
        super().__init__()
        turns = torch.outer(torch.arange(size), torch.arange(size // 2 + 1)) % size / size
        angles = 2.0 * math.pi * turns.double()
        self.register_buffer("cosines", (angles.cos() / math.sqrt(size)).float())
        self.register_buffer("sines", (angles.sin() / math.sqrt(size)).float())

    def forward(self, x):
        return (1e-4 + (x @ self.cosines).square() + (x @ self.sines).square()).log()


# Layers without keys and weights.
PLAIN = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "sigmoid": torch.nn.Sigmoid, "gelu": torch.nn.GELU,
         "softplus": torch.nn.Softplus, "flatten": torch.nn.Flatten}


def build(layer, shape, tensors):
    """The module of one layer with its weights, for samples of the given shape."""
    name, keys = (layer, {}) if isinstance(layer, str) else next(iter(layer.items()))
    if name in PLAIN:
        return PLAIN[name]()
    if name == "window":
        return Window(keys["size"])
    if name == "spectrum":
        return Spectrum(shape[-1])
    if name == "maxpool":
        if len(shape) == 3:
            return torch.nn.MaxPool2d(keys["size"])
        return OverSteps(torch.nn.MaxPool1d(keys["size"]))
    if name in ("lstm", "gru"):
        kind = torch.nn.LSTM if name == "lstm" else torch.nn.GRU
        both_ways = keys.get("both_ways", False)
        module = kind(shape[1], keys["hidden"], batch_first=True, bidirectional=both_ways)
        weights = {}
        for end in ("", "_reverse") if both_ways else ("",):
            weights |= {f"{tensor}_l0{end}": tensors[tensor + end] for tensor in ("weight_ih", "weight_hh")}
            bias = tensors["bias" + end]
            weights |= {f"bias_ih_l0{end}": bias, f"bias_hh_l0{end}": torch.zeros_like(bias)}
        module.load_state_dict(weights)
        return HiddenStates(module, keys.get("sequence", False))
    if name == "pool":
        return Pool(keys)
    if name == "linear":
        module = torch.nn.Linear(shape[0], keys["out"])
    elif name in ("conv1d", "conv2d"):
        kind, channels = (torch.nn.Conv1d, shape[1]) if name == "conv1d" else (torch.nn.Conv2d, shape[0])
        module = kind(channels, keys["out"], keys["size"], stride=keys["stride"], padding=keys["padding"])
    else:
        raise ValueError(f"layer {name!r} needs a later version of selvedge than this file")
    module.load_state_dict(tensors)
    return OverSteps(module) if name == "conv1d" else module


def network(part, layers, shape, tensors):
    """All layers in sequence, with output [N, width]; `tensors` are those of the whole model."""
    modules, sample = [], torch.zeros(1, *shape)
    for index, layer in enumerate(layers):
        prefix = f"{part}.{index}."
        own = {name[len(prefix):]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        modules.append(build(layer, sample.shape[1:], own))
        with torch.no_grad():
            sample = modules[-1](sample)
    return torch.nn.Sequential(*modules, torch.nn.Flatten()), sample.numel()


class Tower(torch.nn.Module):
    """From measured values to an embedding."""

    def __init__(self, part, description, tensors):
        super().__init__()
        self.shape, self.columns = description["shape"], description["columns"]
        self.blind = description["blind"]
        self.layers, self.width = network(part, description["layers"], self.shape, tensors)
        scales = description["scales"]
        logs = [scale.get("log", [0.0, 1.0]) for scale in scales]
        clips = [scale.get("clip") or [-math.inf, math.inf] for scale in scales]
        kept = {"mean": [scale["mean"] for scale in scales], "deviation": [scale["deviation"] for scale in scales],
                "least": [clip[0] for clip in clips], "greatest": [clip[1] for clip in clips],
                "log_least": [log[0] for log in logs], "log_unit": [log[1] for log in logs],
                "is_log": [float("log" in scale) for scale in scales]}
        for name, numbers in kept.items():
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.float64))

    def scaled(self, measured):
        """Scaled like the training rows: in double precision, 0 where nothing was measured."""
        x = torch.as_tensor(measured, dtype=torch.float32)
        if list(x.shape[1:]) != self.shape:
            raise ValueError(f"an array of shape {list(x.shape)}: expected [N, {', '.join(map(str, self.shape))}]")
        rows = x.double().reshape(len(x), math.prod(self.shape) // len(self.mean), len(self.mean))
        rows = torch.minimum(torch.maximum(rows, self.least), self.greatest)
        if self.is_log.any():
            logarithms = torch.log1p(torch.clamp(rows - self.log_least, min=0.0) / self.log_unit)
            rows = torch.where(self.is_log == 1.0, logarithms, rows)
        rows = ((rows - self.mean) / self.deviation).float().reshape(x.shape)
        return torch.where(x.isnan(), torch.zeros(()), rows)

    def forward(self, measured):
        x = self.scaled(measured)
        return torch.zeros(len(x), self.width) if self.blind else self.layers(x)


class Model(torch.nn.Module):
    """Both towers and the combined model."""

    def __init__(self, tensors, description):
        super().__init__()
        self.name, self.classes = description["name"], description["classes"]
        self.calibration, self.output = description["calibration"], description["output"]
        outcome = description["outcome"]
        self.kind, self.about = (outcome, {}) if isinstance(outcome, str) else next(iter(outcome.items()))
        self.ends = self.about.get("ends", [])
        self.hospital = Tower("hospital", description["hospital"], tensors)
        self.device = Tower("device", description["device"], tensors)
        width = self.hospital.width + self.device.width
        self.combined, _ = network("combined", description["combined"]["layers"], [width], tensors)

    def forward(self, hospital, device):
        zeta1, zeta2 = self.hospital(hospital), self.device(device)
        logits = self.combined(torch.cat([zeta1, zeta2], dim=1))
        answers = self.answers(logits)
        result = {"zeta1": zeta1, "zeta2": zeta2, "logits": logits, self.output: answers}
        if self.calibration:
            result["calibrated"] = self.calibrated(answers)
        return result

    def answers(self, logits):
        """What logits mean, by the kind of outcome."""
        if self.kind == "class":
            return logits.softmax(dim=1)
        if self.kind == "labels":
            return logits.sigmoid()
        if self.kind == "quantity":
            return (self.about["mean"] + self.about["deviation"] * logits.double()).float()
        if self.kind == "survival":
            return (-logits).double().sigmoid().cumprod(dim=1).float()
        raise ValueError(f"the outcome {self.kind!r} needs a later version of selvedge than this file")

    def calibrated(self, probabilities):
        """Corrected probabilities: together, or those of labels each for itself."""
        def log(p):
            return p.double().clamp(min=self.calibration["least"]).log()
        bias = torch.tensor(self.calibration["bias"], dtype=torch.float64)
        if self.kind == "labels":
            logits = log(probabilities) - log(1 - probabilities)
            return (self.calibration["scale"] * logits + bias).sigmoid().float()
        return (self.calibration["scale"] * log(probabilities) + bias).softmax(dim=1).float()


def model(path=pathlib.Path(__file__).with_name("model.safetensors")):
    """The model in a file."""
    return Model(*read(path)).eval()


def main():
    import numpy

    if len(sys.argv) != 2:
        sys.exit("usage: python load.py inputs.npz, with the arrays `hospital` and `device`")
    arrays = numpy.load(sys.argv[1])
    trained = model()
    with torch.no_grad():
        result = trained(arrays["hospital"], arrays["device"])
    print(",".join(map(str, trained.ends or trained.classes)))
    for row in result.get("calibrated", result[trained.output]).tolist():
        print(",".join(f"{p:.6f}" for p in row))


if __name__ == "__main__":
    main()
