"""Trains a run again in PyTorch, from its initial weights and its trace, and compares the final weights.

    target/python/bin/python tools/python/replay.py RUN EXPORT.npz [--tolerance 1e-4]

RUN is the directory of an `hsgd` run made with --trace (manifest.json, initial.safetensors, trace.jsonl and
model.safetensors are read); EXPORT.npz was written by `selvedge data export` for the same experiment. This is
hybrid stochastic gradient descent written from its definition, in float64 with autograd; it shares nothing
with the engine under test. For each part, ||ours - theirs|| / ||theirs - initial|| must be below the tolerance.

Exit codes: 0 the weights agree, 1 they differ, 2 something cannot be read or is not a run of this kind.
"""

import argparse
import json
import pathlib
import sys

import torch

import hsgd
from objectives import objective_of
from optimisers import Averager, Optimiser, Rates, hospital_rate, shortened


class Settings:
    """The numbers of a run that steer training."""

    def __init__(self, manifest):
        try:
            train = manifest["experiment"]["train"]
            self.p = train["global_interval"]
            self.q = train["local_interval"]
            self.iterations = train["iterations"]
            self.learning_rate = train["learning_rate"]
            self.rates = Rates(train)
        except KeyError as error:
            raise hsgd.BadInput(f"manifest.json has no {error} in experiment.train") from error
        self.weight_decay = train.get("weight_decay") or 0.0
        self.combined_weight_decay = train.get("combined_weight_decay") or 0.0
        self.optimiser = manifest["experiment"].get("optimiser") or {}
        self.hospital_rate = hospital_rate(self.optimiser, self.learning_rate)
        self.hospital_clip = self.optimiser.get("hospital_clip")
        self.device_clip = self.optimiser.get("device_clip")
        if train.get("adaptive", "off") != "off":
            raise hsgd.BadInput("the run was steered (train.adaptive); only fixed P, Q and eta can be replayed")
        algorithm = train.get("algorithm", "hsgd")
        if algorithm != "hsgd":
            raise hsgd.BadInput(f"the run's algorithm is {algorithm}; only hsgd can be replayed")

    def etas(self, t):
        """The learning rates of devices and hospitals."""
        return [self.rates.at(initial, t) for initial in (self.learning_rate, self.hospital_rate)]

    def left(self, t):
        """The share of the learning rate that was left at the last step before t."""
        return self.rates.at(1.0, t - 1)


class Selection:
    """A line of the trace: who takes part in an interval of a group."""

    def __init__(self, line):
        self.t, self.group = line["t"], line["group"]
        samples = line.get("samples") or [[device] for device in line["devices"]]
        if len(samples) != len(line["devices"]):
            raise ValueError(f"{len(samples)} lists of samples for {len(line['devices'])} devices")
        no_exchange = set(line.get("absent_exchange") or [])
        no_upload = no_exchange | set(line.get("absent_upload") or [])
        # Those that exchanged embeddings; the rows of each, and whether its model reaches the edge.
        self.rows = [rows for device, rows in zip(line["devices"], samples) if device not in no_exchange]
        self.uploads = [device not in no_upload for device in line["devices"] if device not in no_exchange]


def read_trace(path, groups, q):
    """Selections by (t, group), and the iteration at which the run ended."""
    selections = {}
    try:
        with open(path) as file:
            for number, text in enumerate(file, 1):
                selection = Selection(json.loads(text))
                key = (selection.t, selection.group)
                if key in selections:
                    raise ValueError(f"t {key[0]}, group {key[1]} for the second time")
                selections[key] = selection
    except OSError as error:
        raise hsgd.BadInput(f"{path}: {error.strerror} (was the run made with --trace?)") from error
    except (ValueError, KeyError, TypeError) as error:
        raise hsgd.BadInput(f"{path}, line {number}: {error!r}") from error
    if not selections:
        raise hsgd.BadInput(f"{path}: empty")
    end = max(t for t, _ in selections) + q
    expected = {(t, m) for t in range(0, end, q) for m in range(groups)}
    if set(selections) != expected:
        wrong = sorted(set(selections) ^ expected)
        raise hsgd.BadInput(f"{path}: expected each t = 0, {q}, … {end - q} with each of {groups} groups; "
                            f"missing or not expected (t, group): {wrong[:5]}")
    return selections, end


class Group:
    """One group's data, its weights, and what is frozen during an interval."""

    def __init__(self, x1, x2, y, initial, keys):
        self.x1, self.x2, self.y = x1, x2, y
        self.optimisers = [Optimiser(keys, "hospital"), Optimiser(keys, "hospital"), Averager(keys, "edge")]
        self.theta0, self.theta1, self.theta2 = (initial[part] for part in ("combined", "hospital", "device"))
        self.device_thetas = []

    def exchange(self, model, selection):
        """The selected devices adopt theta2; embeddings and theta0 are exchanged and stay as they are."""
        self.selection = selection
        self.device_thetas = [self.theta2] * len(selection.rows)
        self.batch = [row for rows in selection.rows for row in rows]
        self.frozen_theta0 = self.theta0
        with torch.no_grad():
            model.hospital.set(self.theta1)
            model.device.set(self.theta2)
            if self.batch:
                self.zeta1 = model.zeta1(self.x1[self.batch])
                self.zeta2 = model.zeta2(self.x2[self.batch])

    def hospital_step(self, model, settings, eta):
        """Theta0 and theta1 together, from one backward pass with their live values and frozen zeta2."""
        if not self.batch:
            return
        model.combined.set(self.theta0)
        model.hospital.set(self.theta1)
        logits = model.logits(model.zeta1(self.x1[self.batch]), self.zeta2)
        loss = settings.objective.losses(logits, self.y[self.batch]).mean()
        gradient0 = model.combined.gradient(loss, keep_graph=True)
        gradient1 = model.hospital.gradient(loss)
        gradient0, gradient1 = shortened([gradient0, gradient1], settings.hospital_clip)
        self.theta0 = self.optimisers[0].step(self.theta0, gradient0, eta, settings.combined_weight_decay)
        self.theta1 = self.optimisers[1].step(self.theta1, gradient1, eta, settings.weight_decay)

    def device_steps(self, model, settings, eta):
        """Each device's own theta2, with frozen theta0 and zeta1, on its own samples."""
        model.combined.set(self.frozen_theta0)
        begin = 0
        for n, rows in enumerate(self.selection.rows):
            theta2 = self.device_thetas[n]
            model.device.set(theta2)
            zeta1 = self.zeta1[begin:begin + len(rows)]
            begin += len(rows)
            logits = model.logits(zeta1, model.zeta2(self.x2[rows]))
            loss = settings.objective.losses(logits, self.y[rows]).mean()
            gradient2, = shortened([model.device.gradient(loss)], settings.device_clip)
            self.device_thetas[n] = theta2 - eta * (gradient2 + settings.weight_decay * theta2)

    def aggregate(self, left):
        """Towards the mean of the models that reached the edge; without any, theta2 stays."""
        arrived = [theta for theta, up in zip(self.device_thetas, self.selection.uploads) if up]
        if arrived:
            self.theta2 = self.optimisers[2].move(self.theta2, torch.stack(arrived).mean(dim=0), left)


class Cloud:
    """The global model, and what the cloud remembers of its steps."""

    NAMES = ("theta0", "theta1", "theta2")

    def __init__(self, groups, keys):
        self.thetas = {name: getattr(groups[0], name) for name in self.NAMES}
        self.optimisers = {name: Averager(keys, "cloud") for name in self.NAMES}

    def aggregate(self, groups, weights, left):
        """Towards the weighted mean of the groups' weights; all adopt the result."""
        for name in self.NAMES:
            mean = sum(weight * getattr(group, name) for weight, group in zip(weights, groups))
            self.thetas[name] = self.optimisers[name].move(self.thetas[name], mean, left)
            for group in groups:
                setattr(group, name, self.thetas[name])


def train(model, groups, weights, settings, selections, end):
    """Algorithm 1: the weights by part after the global aggregation at `end`."""
    cloud = Cloud(groups, settings.optimiser)
    for t in range(end + 1):
        if t % settings.q == 0 and t > 0:
            for group in groups:
                group.aggregate(settings.left(t))
        if t % settings.p == 0 and t > 0:
            cloud.aggregate(groups, weights, settings.left(t))
        if t == end:
            break
        if t % settings.q == 0:
            for m, group in enumerate(groups):
                group.exchange(model, selections[t, m])
        own, hospital = settings.etas(t)
        for group in groups:
            group.hospital_step(model, settings, hospital)
            group.device_steps(model, settings, own)
    return {"combined": groups[0].theta0, "hospital": groups[0].theta1, "device": groups[0].theta2}


def read_groups(arrays, initial, keys):
    groups = []
    while f"g{len(groups)}_y" in arrays:
        m = len(groups)
        own = (hsgd.array(arrays, f"g{m}_{name}") for name in ("x1", "x2", "y"))
        groups.append(Group(*own, initial, keys))
    return groups


def group_weights(manifest, groups):
    """K_m / K; the manifest counts the devices, or else there is one to each row."""
    devices = manifest.get("sizes", {}).get("devices")
    if not isinstance(devices, list):
        devices = [len(group.y) for group in groups]
    if len(devices) != len(groups):
        raise hsgd.BadInput(f"manifest.json counts devices of {len(devices)} groups, the export has {len(groups)}")
    return [count / sum(devices) for count in devices]


def compare(ours, theirs, initial, tolerance):
    """Prints a row for each part; whether all agree."""
    print(f"{'part':10} {'weights':>8} {'moved':>12} {'difference':>12} {'relative':>10}")
    agree = True
    for part in hsgd.PARTS:
        moved = (theirs[part] - initial[part]).norm().item()
        difference = (ours[part] - theirs[part]).norm().item()
        relative = difference / moved if moved > 0 else (0.0 if difference == 0 else float("inf"))
        fine = relative < tolerance  # false for NaN
        agree = agree and fine
        print(f"{part:10} {len(theirs[part]):8} {moved:12.6f} {difference:12.3e} {relative:10.1e}  "
              f"{'ok' if fine else 'DIFFERS'}")
    return agree


def check(options):
    run = pathlib.Path(options.run)
    manifest = hsgd.read_json(run / "manifest.json")
    settings = Settings(manifest)
    arrays = hsgd.read_arrays(options.export)
    model = hsgd.Model(manifest, *(hsgd.array(arrays, name).shape[1:] for name in ("g0_x1", "g0_x2")))
    initial = model.thetas(hsgd.read_safetensors(run / "initial.safetensors"))
    theirs = model.thetas(hsgd.read_safetensors(run / "model.safetensors"))
    groups = read_groups(arrays, initial, settings.optimiser)
    settings.objective = objective_of(manifest, torch.cat([group.y for group in groups]))
    selections, end = read_trace(run / "trace.jsonl", len(groups), settings.q)
    if end % settings.p:
        raise hsgd.BadInput(f"the trace ends at t = {end}, which is not a multiple of P = {settings.p}")
    for (t, m), selection in selections.items():
        rows = [row for rows in selection.rows for row in rows]
        if rows and not 0 <= min(rows) <= max(rows) < len(groups[m].y):
            raise hsgd.BadInput(f"trace.jsonl, t {t}, group {m}: a row is not in 0..{len(groups[m].y)}")
    print(f"{len(groups)} groups, T {end}, P {settings.p}, Q {settings.q}, eta {settings.learning_rate:g}")
    if end != settings.iterations:
        print(f"the trace ends at t = {end}, before the experiment's {settings.iterations} iterations")
    ours = train(model, groups, group_weights(manifest, groups), settings, selections, end)
    return 0 if compare(ours, theirs, initial, options.tolerance) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("export")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="largest relative difference of a part")
    try:
        return check(parser.parse_args())
    except hsgd.BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
