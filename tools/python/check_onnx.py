"""Checks exported models in ONNX Runtime and in PyTorch against the output of `selvedge predict`.

    target/python/bin/python tools/python/check_onnx.py RUN [RUN ...] [--input FILE] [--selvedge BINARY] [--tolerance 1e-5]

Each RUN is a run directory with the folder that `selvedge export RUN` wrote. The rows are random ones that look like
training rows, with missing and with extreme numbers; or, with --input, patients from a file, read by `selvedge predict`.
Its predictions are compared with those of model.onnx, of the files of its three parts in sequence, and of load.py.

Exit codes: 0 all numbers agree, 1 one differs by more than the tolerance, 2 something cannot be read or computed.
"""

import argparse
import csv
import importlib.util
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
import torch

PARTS = ("hospital", "device", "combined")
ROWS = 100  # drawn of each run

sys.dont_write_bytecode = True  # exports are left as they are


class BadInput(Exception):
    """A file that is missing, malformed or not what was asked for."""


def sessions(folder):
    """The four graphs, computed one operator after the other on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    found = {}
    for name in (*PARTS, "model"):
        path = folder / f"{name}.onnx"
        try:
            found[name] = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime's errors share no other class
            raise BadInput(f"{path}: {error}") from error
    return found


def named(session, inputs):
    """All outputs of a graph by name."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def in_parts(graphs, inputs):
    """The towers, and the combined model on what they give."""
    zetas = {}
    for side in ("hospital", "device"):
        zetas |= named(graphs[side], {side: inputs[side]})
    return zetas | named(graphs["combined"], zetas)


def loader(folder):
    """The model that load.py builds."""
    path = folder / "load.py"
    specification = importlib.util.spec_from_file_location("load", path)
    try:
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module.model()
    except (OSError, ValueError, KeyError, RuntimeError, struct.error) as error:
        raise BadInput(f"{path}: {error!r}") from error


def in_pytorch(model, inputs):
    """What it computes."""
    with torch.no_grad():
        result = model(inputs["hospital"], inputs["device"])
    return {name: tensor.numpy() for name, tensor in result.items()}


def read_arrays(path):
    """What exported models take."""
    try:
        arrays = np.load(path)
        return {side: arrays[side] for side in ("hospital", "device")}
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"{path}: {error}") from error


def drawn(tower, random):
    """Rows like those of training, with a tenth missing, some large, and where that is clipped some far away."""
    width = len(tower.mean)
    shape = (ROWS, math.prod(tower.shape) // width, width)
    mean, deviation, least = (b.numpy() for b in (tower.mean, tower.deviation, tower.least))
    rows = random.standard_normal(shape)
    chance = random.random(shape)
    rows[chance < 0.05] *= 10.0
    rows[(chance > 0.95) & np.isfinite(least)] *= 1e6
    rows = mean + deviation * rows
    rows[random.random(shape) < 0.1] = np.nan
    return rows.astype(np.float32).reshape(ROWS, *tower.shape)


def predicted(options, run, output, given, more, folder):
    """What the binary under test says of some rows, and the rows as exported models take them."""
    said, arrays = folder / "said.csv", folder / "arrays.npz"
    command = [options.selvedge, "predict", str(run), *more, "--out", str(said), "--arrays", str(arrays)]
    for path in given:
        command += ["--input", str(path)]
    try:
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
        with open(said, newline="") as file:
            rows = list(csv.reader(file))
    except OSError as error:
        raise BadInput(f"{error.filename}: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        raise BadInput(f"{' '.join(command)}: exit code {error.returncode}, {error.stderr}") from error
    is_answer = {"probabilities": lambda name: name.startswith("probability_"), "prediction": lambda name: name == "prediction",
                 "survival": lambda name: name.startswith("survival_")}[output]
    columns = [i for i, name in enumerate(rows[0]) if is_answer(name)]
    answers = np.array([[float(row[i]) for i in columns] for row in rows[1:]])
    return answers, read_arrays(arrays)


class Table:
    """Rows of differences, and how many are too large."""

    def __init__(self, tolerance):
        self.tolerance, self.differing = tolerance, 0
        print(f"{'run':20} {'numbers':14} {'rows':>6}  {'of':10} {'difference':>10}")

    def row(self, run, name, way, ours, theirs, unit):
        if ours.shape != theirs.shape:
            raise BadInput(f"{run}: {name} of {way} have the shape {ours.shape}, expected {theirs.shape}")
        # A probability is at most 1. A quantity may be many deviations, and then its last digits are larger too.
        sizes = np.maximum(np.abs(theirs), unit)
        difference = (np.abs(ours.astype(np.float64) - theirs) / sizes).max()
        agrees = difference <= self.tolerance  # false for NaN
        self.differing += not agrees
        verdict = "ok" if agrees else "DIFFERS"
        print(f"{run:20} {name:14} {len(ours):6}  {way:10} {difference:10.1e}  {verdict}")


def compare(options, run, table):
    """All ways to compute one run's model against what the binary says."""
    graphs, model = sessions(run / "export"), loader(run / "export")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        given = options.input
        if not given:
            given = [folder / "drawn.npz"]
            random = np.random.default_rng(len(run.name))
            np.savez(given[0], hospital=drawn(model.hospital, random), device=drawn(model.device, random))
        said = {}
        uncalibrated = ["--uncalibrated"] if model.output == "probabilities" else []
        for name, more in ((model.output, uncalibrated), ("calibrated", [])):
            if name == model.output or model.calibration:
                said[name], inputs = predicted(options, run, model.output, given, more, folder)
    ways = {"model.onnx": named(graphs["model"], inputs), "parts": in_parts(graphs, inputs),
            "load.py": in_pytorch(model, inputs)}
    for name, theirs in said.items():
        for way, results in ways.items():
            if name not in results:
                raise BadInput(f"{run}: {way} gives no {name}")
            # Of a quantity differences are shares of it, or of a standard deviation where that is more.
            table.row(run.name, name, way, results[name], theirs, model.about.get("deviation", 1.0))


def check(options):
    table = Table(options.tolerance)
    for run in options.run:
        compare(options, run, table)
    differing = table.differing
    print(f"{differing} differ by more than {options.tolerance:g}" if differing else "all agree")
    return 1 if differing else 0


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, nargs="+")
    parser.add_argument("--input", action="append", help="a file of patients, as `selvedge predict --input` takes it; can be repeated")
    parser.add_argument("--selvedge", default=str(root / "target/release/selvedge"), help="the binary under test")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="largest difference of a probability, or share of a quantity")
    try:
        return check(parser.parse_args())
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
