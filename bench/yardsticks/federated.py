"""Runs of selvedge: trained once, resumed if interrupted, and asked for what bench/pooled compares."""

import csv
import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np


# The endings of runs with which there is nothing left to train.
ENDED = ("finished", "reached", "diverged")


class Failed(Exception):
    """A command of selvedge ended with an error, or its data is not what the records say."""


class Selvedge:
    def __init__(self, binary, data_dir, folder, threads):
        self.binary, self.data_dir, self.folder, self.threads = binary, data_dir, folder, threads
        self.digest = hashlib.sha256(binary.read_bytes()).hexdigest()[:12]
        folder.mkdir(parents=True, exist_ok=True)

    def call(self, *arguments):
        command = [str(self.binary), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
        return done.stdout

    def train(self, name, preset, settings):
        """The run directory, or None of a run that diverged. A run of the same program with the same settings goes on
        where it stopped."""
        run, note = self.folder / name, self.folder / f"{name}.json"
        wanted = {"selvedge": self.digest, "preset": preset, "settings": settings}
        if not note.exists() or json.loads(note.read_text()) != wanted:
            shutil.rmtree(run, ignore_errors=True)
            note.write_text(json.dumps(wanted, indent=1) + "\n")
        if self.ending(run) not in ENDED:
            changes = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
            try:
                self.call("train", preset, *changes, "--data-dir", self.data_dir, "--threads", self.threads, "--resume", run)
            except Failed:
                if self.ending(run) != "diverged":
                    raise
        return None if self.ending(run) == "diverged" else run

    def ending(self, run):
        """How a run ended, if it has."""
        manifest = run / "manifest.json"
        ending = json.loads(manifest.read_text())["ending"] if manifest.exists() else None
        return ending and ending["kind"]

    def validation(self, run, key, higher):
        """The best score on the validation samples, and the iteration that had it."""
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        scored = [(line[f"{key}_validation"], line["t"]) for line in lines if line[f"{key}_validation"] is not None]
        return max(scored, key=lambda pair: pair[0] if higher else -pair[0])

    def answers(self, run, inputs):
        """What the run's model says of each row, as {id: numbers}."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            out = Path(folder) / "answers.csv"
            self.call("predict", run, "--all", *each("--input", inputs), "--out", out)
            rows = list(csv.reader(out.open()))
        header, rows = rows[0], rows[1:]
        columns = [at for at, name in enumerate(header) if name.startswith(("probability_", "survival_"))]
        columns = columns or [header.index("prediction")]
        return {row[0]: np.array([row[at] for at in columns], dtype=float) for row in rows}

    def evaluated(self, run):
        """What `selvedge evaluate` measures on the test samples."""
        kept = run / "evaluation.json"
        if not kept.exists():
            self.call("evaluate", run, "--resamples", 100, "--data-dir", self.data_dir)
        return json.loads(kept.read_text())["test"]

    def split(self, run, inputs, truth, usable):
        """Who is in which part, as the run has it: {part: (ids, what is known of them)} for train, validation and test.

        An export has no ids. So each row is recognised by its numbers, which are those of `predict --arrays` scaled
        as inputs.json says, to the bit; but for columns that are scaled by logarithms, whose last bit NumPy may have
        otherwise. `truth` says of an id what the records know, and `usable` whether it can be in a part: patients of
        whom nothing was measured have the same numbers.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            measured, exported = Path(folder) / "measured.npz", Path(folder) / "exported.npz"
            self.call("predict", run, "--all", *each("--input", inputs), "--arrays", measured, "--out", Path(folder) / "x.csv")
            self.call("data", "export", run, "--data-dir", self.data_dir, "--out", exported)
            measured, exported = dict(np.load(measured)), dict(np.load(exported))
        statistics = json.loads((run / "inputs.json").read_text())["statistics"]
        scales = {side: statistics[side]["scales"] for side in ("hospital", "device")}
        plain = [[scale.get("log") is None for scale in of] for of in scales.values()]
        sides = [scaled(measured[side], scales[side]) for side in scales]
        pick = lambda row: [side[..., columns] if len(columns) > 1 else side for side, columns in zip(row, plain)]
        by_numbers = {}
        for id, *row in zip(measured["id"], *sides):
            by_numbers.setdefault(digest(pick(row)), []).append(str(id))
        parts = {"train": ([], []), "validation": ([], []), "test": ([], [])}
        for name in sorted(key[:-3] for key in exported if key.endswith("_x1")):
            part = name if name in parts else "train"
            for *row, known in zip(*(exported[f"{name}_{array}"] for array in ("x1", "x2", "y"))):
                known = np.asarray(known, dtype=float)
                same = by_numbers.get(digest(pick(row)), [])
                fits = [id for id in same if usable(id, part) and agrees(truth(id), known)]
                if not fits:
                    raise Failed(f"{run}: a row of {name} is none of the records, or something else is known of it")
                same.remove(fits[0])
                parts[part][0].append(fits[0])
                parts[part][1].append(known)
        return {part: (ids, np.array(known)) for part, (ids, known) in parts.items()}


def each(option, values):
    return [part for value in values for part in (option, value)]


def digest(row):
    return hashlib.sha256(b"".join(np.ascontiguousarray(side).tobytes() for side in row)).digest()


def agrees(truth, known):
    """Whether an export says the same as the records. It may hide labels, and has times beyond the horizon as they are."""
    if known.shape == (2,):
        from records import HORIZON
        within = known[1] > 0.5 and known[0] <= HORIZON
        known = np.array([known[0] if within else HORIZON, within])
    return bool(np.all(np.isnan(known) | (truth == known)))


def scaled(values, scales):
    """As selvedge scales: clipped, brought to mean 0 and deviation 1, and what is missing is 0."""
    column = lambda key: np.array([scale[key] for scale in scales])
    low, high = np.array([scale.get("clip") or [-np.inf, np.inf] for scale in scales]).T
    wide = np.clip(values.astype(np.float64), low, high)
    result = ((wide - column("mean")) / column("deviation")).astype(np.float32)
    return np.where(np.isnan(values), np.float32(0), result) + np.float32(0)
