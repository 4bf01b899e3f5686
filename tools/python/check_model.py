"""Checks the metrics that `selvedge evaluate` gives for a run against PyTorch's.

    target/python/bin/python tools/python/check_model.py RUN EXPORT.npz [--selvedge BINARY] [--tolerance 1e-4]

RUN is a run directory (manifest.json, model.safetensors are read); EXPORT.npz was written by
`selvedge data export` for the same experiment. The model is computed in float64 over the test set, and over
the training set where `selvedge evaluate RUN --json` reports on it too.

Exit codes: 0 all metrics agree, 1 one differs by more than the tolerance, 2 something cannot be read or run.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch

import hsgd

METRICS = ("loss", "auc", "precision", "recall", "f1", "accuracy")
BATCH = 1024


def ranks(values):
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def macro_auc(scores, y):
    """Mean one-vs-rest area under the ROC curve, over the classes that have positives and negatives."""
    areas = []
    for label in range(scores.shape[1]):
        positive = y == label
        n1, n0 = positive.sum(), (~positive).sum()
        if n1 and n0:
            areas.append((ranks(scores[:, label])[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))
    return np.mean(areas) if areas else 0.0


def ratio(a, b):
    """a / b, and 0 for 0 / 0."""
    return np.divide(a, b, out=np.zeros(len(a)), where=b != 0)


def metrics(logits, y):
    """The metrics of logits [samples, classes] against labels."""
    classes = logits.shape[1]
    loss = hsgd.losses(logits, y).mean().item()
    scores = torch.softmax(logits, dim=1).numpy()
    guess, y = logits.argmax(dim=1).numpy(), y.numpy()
    right = np.bincount(y[guess == y], minlength=classes).astype(float)
    precision = ratio(right, np.bincount(guess, minlength=classes))
    recall = ratio(right, np.bincount(y, minlength=classes))
    f1 = ratio(2 * precision * recall, precision + recall)
    return {"loss": loss, "auc": macro_auc(scores, y), "precision": precision.mean(),
            "recall": recall.mean(), "f1": f1.mean(), "accuracy": (guess == y).mean()}


def logits_of(model, x1, x2):
    pieces = []
    with torch.no_grad():
        for a, b in zip(x1.split(BATCH), x2.split(BATCH)):
            pieces.append(model.logits(model.zeta1(a), model.zeta2(b)))
    return torch.cat(pieces)


def training_set(arrays):
    """All groups' samples, one after the other."""
    groups = []
    for m in itertools.count():
        if f"g{m}_y" not in arrays:
            break
        groups.append([hsgd.array(arrays, f"g{m}_{name}") for name in ("x1", "x2", "y")])
    return [torch.cat(columns) for columns in zip(*groups)]


def evaluate(selvedge, run):
    """What the binary under test says."""
    command = [selvedge, "evaluate", run, "--json"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        answer = json.loads(done.stdout)
        if any(not isinstance(answer["test"][name], (int, float)) for name in METRICS):
            raise hsgd.BadInput(f"{' '.join(command)}: a test metric is not a number: {answer['test']}")
        return answer
    except OSError as error:
        raise hsgd.BadInput(f"{selvedge}: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        raise hsgd.BadInput(f"{' '.join(command)}: exit code {error.returncode}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise hsgd.BadInput(f"{' '.join(command)}: its JSON is not as expected: {error!r}") from error


def compare(name, ours, theirs, tolerance):
    """Prints the rows of one data set; the number of metrics that differ."""
    differing = 0
    for metric in METRICS:
        if theirs.get(metric) is None:
            continue
        difference = abs(ours[metric] - theirs[metric])
        agrees = difference <= tolerance  # false for NaN
        differing += not agrees
        print(f"{name:6} {metric:10} {ours[metric]:12.7f} {theirs[metric]:12.7f} {difference:10.1e}  "
              f"{'ok' if agrees else 'DIFFERS'}")
    return differing


def check(options):
    run = pathlib.Path(options.run)
    manifest = hsgd.read_json(run / "manifest.json")
    arrays = hsgd.read_arrays(options.export)
    x1, x2, y = (hsgd.array(arrays, f"test_{name}") for name in ("x1", "x2", "y"))
    model = hsgd.Model(manifest, x1.shape[1:], x2.shape[1:])
    for part, theta in model.thetas(hsgd.read_safetensors(run / "model.safetensors")).items():
        model.part(part).set(theta)
    theirs = evaluate(options.selvedge, options.run)

    print(f"{'set':6} {'metric':10} {'PyTorch':>12} {'selvedge':>12} {'difference':>10}")
    differing = compare("test", metrics(logits_of(model, x1, x2), y), theirs["test"], options.tolerance)
    if theirs.get("train"):
        x1, x2, y = training_set(arrays)
        differing += compare("train", metrics(logits_of(model, x1, x2), y), theirs["train"], options.tolerance)
    print(f"{differing} metrics differ by more than {options.tolerance:g}" if differing else "all agree")
    return 1 if differing else 0


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("export")
    parser.add_argument("--selvedge", default=str(root / "target/release/selvedge"), help="the binary under test")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="largest difference of a metric")
    try:
        return check(parser.parse_args())
    except hsgd.BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
