"""Makes reference tensors for the layers of crates/nn, with PyTorch's autograd in float64.

    target/python/bin/python tools/python/golden.py [--out crates/nn/tests/golden.json]

The file holds, for every case, layers, weights, one input and the gradient of its output (all exact in
float32), and the output and gradients computed from them in float64, then rounded to float32; and cases of
softmax cross-entropy. The seed is fixed, so that the file changes only with this script or with PyTorch.

Exit codes: 0 written, 1 a case cannot be made or the file is too large.
"""

import argparse
import json
import math
import pathlib
import sys

import numpy as np
import torch

import hsgd

SEED = 20260101
LARGEST_FILE = 700_000  # bytes
MARGIN = 1e-3  # distance from the kinks of relu and maxpool, where float32 could take the other side
LEAST_POWER = 1e-2  # of a spectrum: the slope of a smaller one's logarithm multiplies the rounding of float32


def linear(out):
    return {"linear": {"out": out}}


def lstm(hidden, **keys):
    return {"lstm": {"hidden": hidden, **keys}}


def gru(hidden, **keys):
    return {"gru": {"hidden": hidden, **keys}}


def conv(name, out, size, stride=1, padding=0):
    return {name: {"out": out, "size": size, "stride": stride, "padding": padding}}


def pool(size):
    return {"maxpool": {"size": size}}


def window(size):
    return {"window": {"size": size}}


# name, shape of the input, layers
CASES = [
    ("linear 1 to 1", [1], [linear(1)]),
    ("linear 3 to 5", [3], [linear(5)]),
    ("linear 16 to 16", [16], [linear(16)]),
    ("linear 5 to 33", [5], [linear(33)]),
    ("linear 33 to 17", [33], [linear(17)]),
    ("relu on features", [17], ["relu"]),
    ("relu on steps", [3, 5], [{"relu": {}}]),
    ("tanh on features", [33], ["tanh"]),
    ("tanh on an image", [2, 3, 3], ["tanh"]),
    ("flatten steps", [3, 5], ["flatten"]),
    ("flatten an image", [3, 2, 5], ["flatten"]),
    ("window that divides", [16], [window(8)]),
    ("window with padding", [17], [window(8)]),
    ("window wider than the input", [3], [window(5)]),
    ("window of 1", [3], [window(1)]),
    ("maxpool 2 on steps", [8, 3], [pool(2)]),
    ("maxpool 3 on steps, remainder", [11, 17], [pool(3)]),
    ("maxpool 2 on an image", [3, 6, 4], [pool(2)]),
    ("maxpool 2 on an image, remainder", [2, 7, 5], [pool(2)]),
    ("maxpool 3 on an image, remainder", [1, 8, 10], [pool(3)]),
    ("conv1d", [9, 3], [conv("conv1d", 5, 3)]),
    ("conv1d padding 1", [7, 5], [conv("conv1d", 17, 3, 1, 1)]),
    ("conv1d stride 2 padding 2", [10, 2], [conv("conv1d", 3, 5, 2, 2)]),
    ("conv1d size 1", [5, 3], [conv("conv1d", 1, 1)]),
    ("conv1d 33 channels, stride 2", [6, 1], [conv("conv1d", 33, 2, 2, 1)]),
    ("conv2d", [1, 5, 5], [conv("conv2d", 3, 3)]),
    ("conv2d padding 1", [3, 4, 5], [conv("conv2d", 5, 3, 1, 1)]),
    ("conv2d stride 2 padding 2", [2, 7, 6], [conv("conv2d", 3, 5, 2, 2)]),
    ("conv2d stride 2, remainder", [2, 6, 8], [conv("conv2d", 17, 3, 2)]),
    ("conv2d size 1", [3, 2, 3], [conv("conv2d", 33, 1)]),
    ("conv2d 16 channels", [16, 4, 3], [conv("conv2d", 2, 2, 1, 1)]),
    ("lstm 1 of 1", [3, 1], [lstm(1)]),
    ("lstm 5, one step", [1, 3], [lstm(5)]),
    ("lstm 5, 24 steps", [24, 3], [lstm(5)]),
    ("lstm 16", [6, 5], [lstm(16)]),
    ("lstm 32", [4, 3], [lstm(32)]),
    ("gru 1 of 1", [3, 1], [gru(1)]),
    ("gru 5, one step", [1, 3], [gru(5)]),
    ("gru 5, 24 steps", [24, 3], [gru(5)]),
    ("gru 16", [6, 17], [gru(16)]),
    ("gru 32", [4, 3], [gru(32)]),
    ("linear, tanh, linear", [17], [linear(5), "tanh", linear(3)]),
    ("linear, relu, linear", [5], [linear(33), "relu", linear(2)]),
    ("window, lstm, linear", [19], [window(8), lstm(5), linear(3)]),
    ("window, gru", [17], [window(5), gru(16)]),
    ("conv1d, relu, maxpool, lstm", [13, 3], [conv("conv1d", 5, 3, 1, 1), "relu", pool(2), lstm(5)]),
    ("window, conv1d, tanh, flatten, linear", [33],
     [window(4), conv("conv1d", 3, 3, 2, 0), "tanh", "flatten", linear(2)]),
    ("conv2d, tanh, maxpool, flatten, linear", [2, 7, 7],
     [conv("conv2d", 3, 3, 1, 0), "tanh", pool(2), "flatten", linear(5)]),
    ("conv2d, relu, maxpool, twice, flatten, linear, tanh", [1, 14, 14],
     [conv("conv2d", 4, 3, 1, 1), "relu", pool(2), conv("conv2d", 5, 3), "relu", pool(2), "flatten",
      linear(17), "tanh"]),
    ("sigmoid on features", [33], ["sigmoid"]),
    ("gelu on features", [33], ["gelu"]),
    ("gelu on an image", [2, 3, 3], ["gelu"]),
    ("softplus on steps", [3, 5], [{"softplus": {}}]),
    ("linear, gelu, linear, softplus, linear, sigmoid", [17],
     [linear(16), "gelu", linear(9), "softplus", linear(3), "sigmoid"]),
    ("spectrum of 1", [1], ["spectrum"]),
    ("spectrum of an even number", [16], ["spectrum"]),
    ("spectrum of 89", [89], ["spectrum"]),
    ("spectrum of steps", [3, 7], ["spectrum"]),
    ("window, spectrum, lstm", [40], [window(16), "spectrum", lstm(5)]),
    ("window, conv1d, spectrum, flatten, linear", [30],
     [window(5), conv("conv1d", 8, 3, 1, 1), "spectrum", "flatten", linear(3)]),
    ("pool mean", [7, 5], [{"pool": "mean"}]),
    ("pool max", [7, 17], [{"pool": "max"}]),
    ("pool last", [7, 5], [{"pool": "last"}]),
    ("pool of one step", [1, 5], [{"pool": "mean"}]),
    ("lstm 5, sequence", [6, 3], [lstm(5, sequence=True)]),
    ("gru 16, sequence", [5, 3], [gru(16, sequence=True)]),
    ("lstm 5, both ways", [6, 3], [lstm(5, both_ways=True)]),
    ("gru 5, both ways", [6, 3], [gru(5, both_ways=True)]),
    ("lstm 3, both ways, sequence", [5, 2], [lstm(3, both_ways=True, sequence=True)]),
    ("gru 4, both ways, sequence, one step", [1, 2], [gru(4, both_ways=True, sequence=True)]),
    ("lstm, gru, pool, linear", [7, 3],
     [lstm(5, sequence=True), gru(4, both_ways=True, sequence=True), {"pool": "mean"}, linear(2)]),
]

# logits, label, weight
LOSS_CASES = [
    ([0.0, 0.0], 0, 1.0),
    ([1.5, -0.25, 0.75], 2, 1.0),
    ([1.5, -0.25, 0.75], 0, 2.5),
    ([-3.0, 2.0, 0.5, 0.1, -0.7], 1, 0.25),
    ([80.0, -80.0], 0, 1.0),
    ([80.0, -80.0], 1, 1.0),
    ([-80.0, 80.0, 0.0], 2, 3.0),
    ([80.0, 80.0, 80.0], 1, 1.0),
    ([-80.0, -80.0, -79.0], 0, 1.0),
    ([0.1 * i - 0.8 for i in range(17)], 16, 1.5),
]


def draw(rng, shape, scale=1.0):
    """Numbers with three decimals, rounded to float32: exact there, and short in the file."""
    return torch.from_numpy(np.round(rng.normal(0.0, scale, shape), 3).astype(np.float32).astype(np.float64))


def short(values):
    """A flat list with the shortest decimals that read back as the same float32."""
    flat = np.asarray(values, dtype=np.float64).astype(np.float32).reshape(-1)
    numbers = [float(str(value)) for value in flat]
    assert (np.array(numbers).astype(np.float32) == flat).all()
    return numbers


def away_from_kinks(part, x):
    """Whether no relu is near zero, no maximum near its runner-up and no power near none on the way of this input."""
    for layer in part.layers:
        if isinstance(layer, hsgd.Pool) and layer.over == "max":
            top = x.topk(2, dim=1).values
            if (top[:, 0] - top[:, 1] < MARGIN).any():
                return False
        if isinstance(layer, torch.nn.ReLU) and x.abs().min() < MARGIN:
            return False
        if isinstance(layer, hsgd.Spectrum) and layer.powers(x).min() < LEAST_POWER:
            return False
        inner = getattr(layer, "layer", layer)
        if isinstance(inner, (torch.nn.MaxPool1d, torch.nn.MaxPool2d)):
            # Each value that is not the maximum of its place must stay below it; zeros after a relu carry
            # no gradient, whichever of them wins.
            values = x.transpose(1, 2) if inner is not layer else x
            size, dimensions = inner.kernel_size, values.dim() - 2
            for axis in range(2, 2 + dimensions):
                values = values.unfold(axis, size, size)
            top = values.flatten(2 + dimensions).topk(2, dim=-1).values
            if ((top[..., 0] - top[..., 1] < MARGIN) & (top[..., 0] != 0)).any():
                return False
        x = layer(x)
    return True


def make_case(rng, name, input_shape, layers):
    part = hsgd.Part(layers, input_shape)
    for _ in range(1000):
        for tensor in part.named.values():
            inputs = math.prod(tensor.shape[1:])
            tensor.data = draw(rng, tensor.shape, 1.5 / math.sqrt(inputs) if tensor.dim() > 1 else 0.3)
        x = draw(rng, [1, *input_shape])
        with torch.no_grad():
            if away_from_kinks(part, x):
                break
    else:
        raise SystemExit(f"error: {name}: no input away from the kinks in 1000 draws")
    x.requires_grad_()
    output = part(x)
    d_output = draw(rng, tuple(output.shape))
    names, tensors = list(part.named), list(part.named.values())
    d_input, *gradients = torch.autograd.grad(output, [x, *tensors], d_output)

    def named(values):
        return {name: {"shape": list(value.shape), "data": short(value.detach())}
                for name, value in zip(names, values)}

    return {"name": name, "input_shape": input_shape, "layers": layers, "params": named(tensors),
            "input": short(x.detach()), "output_shape": list(output.shape[1:]),
            "output": short(output.detach()), "d_output": short(d_output), "grads": named(gradients),
            "d_input": short(d_input)}


def make_loss_case(logits, label, weight):
    x = torch.from_numpy(np.array([logits]).astype(np.float32).astype(np.float64)).requires_grad_()
    weights = torch.full((len(logits),), weight)
    loss = hsgd.losses(x, torch.tensor([label]), weights)[0]
    (d_logits,) = torch.autograd.grad(loss, x)
    return {"logits": short(x.detach()), "label": label, "weight": weight,
            "loss": short(loss.detach())[0], "d_logits": short(d_logits)}


def lines(cases):
    """A JSON list with one line for each case."""
    return "[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]"


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=root / "crates/nn/tests/golden.json")
    out = parser.parse_args().out

    rng = np.random.default_rng(SEED)
    cases = [make_case(rng, *case) for case in CASES]
    loss_cases = [make_loss_case(*case) for case in LOSS_CASES]
    made_by = json.dumps(f"tools/python/golden.py, PyTorch {torch.__version__} in float64, seed {SEED}")
    text = f'{{"made_by":{made_by},\n"cases":{lines(cases)},\n"loss_cases":{lines(loss_cases)}}}\n'
    json.loads(text)
    if len(text) > LARGEST_FILE:
        raise SystemExit(f"error: {len(text)} bytes, more than {LARGEST_FILE}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text)
    print(f"{out}: {len(cases)} cases, {len(loss_cases)} loss cases, {len(text)} bytes")


if __name__ == "__main__":
    sys.exit(main())
