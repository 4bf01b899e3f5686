"""What the peers share: the sizes of the work, the data, the subsets, the timing and the line of output.

Every peer trains the same thing, hybrid stochastic gradient descent (HSGD) with M groups, each of one hospital
and K_m devices of which A are selected for an interval of Q iterations. A peer is a class

    Peer(problem, options)       takes the data and the initial weights
    train(subsets)               one interval for each entry of subsets [intervals, groups, A], row numbers of a
                                 group; ends with the aggregations due by then, and only returns when done
    weights()                    {"combined": [...], "hospital": [...], "device": [...]} of NumPy arrays

Tensors have PyTorch's shapes and order: an LSTM has weight_ih [4H, I], weight_hh [4H, H] and one bias [4H] with
gates i, f, g, o; a CNN has weight and bias of its first and of its second convolution; the combined model has
weight [classes, d1 + d2] and bias. No framework is imported here.
"""

import argparse
import ctypes
import dataclasses
import json
import os
import resource
import sys
import time

import numpy as np


@dataclasses.dataclass(frozen=True)
class Size:
    """Dimensions of the work. x1 and x2 are the shapes of a sample's two parts: [steps, features] for an LSTM,
    [height, width] for a CNN."""

    tower: str
    devices: tuple  # K_m of each group
    selected: int  # A
    x1: tuple
    x2: tuple
    hidden: int
    classes: int
    eta: float
    iterations: int = 0  # of a timed chunk, unless told otherwise

    @property
    def groups(self):
        return len(self.devices)

    def width(self, shape):
        """Values in an embedding."""
        return self.hidden if self.tower == "lstm" else 16 * (shape[0] // 4) * (shape[1] // 4)


SIZES = {
    "esr": Size("lstm", (920,) * 10, 18, (12, 8), (12, 8), 32, 5, 0.1, 50),
    "physionet": Size("lstm", (400,) * 10, 16, (48, 54), (48, 20), 16, 2, 0.1, 30),
    "cnn": Size("cnn", (3458,) * 10, 35, (22, 22), (28, 28), 0, 6, 0.01, 20),
}


@dataclasses.dataclass
class Problem:
    """One training: data of all groups one after the other, initial weights, intervals."""

    size: Size
    p: int
    q: int
    x1: np.ndarray
    x2: np.ndarray
    y: np.ndarray
    initial: dict
    first_rows: np.ndarray  # where each group's rows begin in x1, x2 and y
    shares: np.ndarray  # K_m / K, K over all groups, also those of other blocks

    def part(self, block, blocks):
        """One of several blocks of groups, for a peer that trains them one after the other."""
        mine = np.array_split(np.arange(self.size.groups), blocks)[block]
        ends = self.first_rows + self.size.devices
        rows = slice(self.first_rows[mine[0]], ends[mine[-1]])
        size = dataclasses.replace(self.size, devices=tuple(self.size.devices[m] for m in mine))
        return dataclasses.replace(
            self, size=size, x1=self.x1[rows].copy(), x2=self.x2[rows].copy(), y=self.y[rows].copy(),
            first_rows=self.first_rows[mine] - rows.start, shares=self.shares[mine])


def initial_weights(size, rng):
    """Uniform in one over the square root of the fan-in (of the hidden width, for an LSTM)."""

    def uniform(fan, *shape):
        return rng.uniform(-1, 1, shape).astype(np.float32) / np.float32(np.sqrt(fan))

    def tower(shape):
        if size.tower == "lstm":
            h, i = size.hidden, shape[1]
            return [uniform(h, 4 * h, i), uniform(h, 4 * h, h), uniform(h, 4 * h)]
        return [uniform(9, 8, 1, 3, 3), uniform(9, 8), uniform(72, 16, 8, 3, 3), uniform(72, 16)]

    d = size.width(size.x1) + size.width(size.x2)
    return {"combined": [uniform(d, size.classes, d), uniform(d, size.classes)],
            "hospital": tower(size.x1), "device": tower(size.x2)}


def problem(size, p, q, seed=1):
    """Random normal features, random labels, random weights."""
    if q < 1 or p % q:
        raise SystemExit(f"error: Q = {q} must divide P = {p}")
    rng = np.random.default_rng(seed)
    devices = np.array(size.devices)
    rows = int(devices.sum())
    return Problem(
        size, p, q,
        rng.standard_normal((rows, *size.x1), dtype=np.float32),
        rng.standard_normal((rows, *size.x2), dtype=np.float32),
        rng.integers(0, size.classes, rows),
        initial_weights(size, rng), np.cumsum(devices) - devices, devices / rows)


def draw_subsets(rng, devices, intervals, selected):
    """[intervals, groups, A]: in each interval and group A of its rows, uniform without replacement.

    Tuples with replacement are drawn for all intervals at once, and those with a repetition are drawn again.
    """
    shape = (intervals, len(devices), selected)
    limits = np.broadcast_to(np.array(devices)[:, None], shape).reshape(-1, selected)
    subsets = rng.integers(0, limits)
    wrong = np.arange(len(subsets))
    while len(wrong):
        sorted_rows = np.sort(subsets[wrong], axis=1)
        wrong = wrong[(sorted_rows[:, 1:] == sorted_rows[:, :-1]).any(axis=1)]
        subsets[wrong] = rng.integers(0, limits[wrong])
    return subsets.reshape(shape)


def keep_freed_memory():
    """Tells glibc's allocator to keep large blocks instead of returning them to the system at each free.

    Otherwise every temporary array of more than 128 KiB costs its page faults again; the usual remedies, jemalloc
    or tcmalloc, do the same. Where there is no mallopt nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3
        mallopt(mmap_threshold, 1 << 30)
        mallopt(trim_threshold, 1 << 30)


def limit_xla_threads(threads):
    """Tells XLA how many threads to have in its pool. It reads this when JAX is first used, not when it is imported."""
    os.environ["NPROC"] = str(threads)


def arguments(description):
    """The command line that all timing programs share, to which a peer may add options of its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--p", type=int, default=1, help="global interval P, a multiple of Q")
    parser.add_argument("--q", type=int, default=1, help="local interval Q")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1)
    parser.add_argument("--repeats", type=int, default=5, help="timed chunks, of which the fastest counts")
    parser.add_argument("--iterations", type=int, help="iterations of a chunk, rounded up to a multiple of P")
    parser.add_argument("--lines", action="store_true",
                        help="time one chunk for each line of standard input, instead of the repeats")
    return parser


def measure(name, peer, work, options, version):
    """Times chunks, after one that is not timed, and prints what `report` says.

    Normally that is one line for all repeats. With --lines it is one for each line of standard input, whatever that
    line says, after a first one that says that the program is ready: so a driver can have several programs take turns.
    """
    iterations = options.iterations or work.size.iterations
    iterations = -(-iterations // work.p) * work.p
    rng = np.random.default_rng(os.getpid())

    def chunk():
        """Milliseconds per iteration."""
        begin = time.perf_counter()
        peer.train(draw_subsets(rng, work.size.devices, iterations // work.q, work.size.selected))
        milliseconds = (time.perf_counter() - begin) * 1000 / iterations
        for part, arrays in peer.weights().items():
            if not all(np.isfinite(array).all() for array in arrays):
                raise SystemExit(f"error: the {part} weights are not finite after training")
        return milliseconds

    chunk()
    if options.lines:
        print(json.dumps({"ready": True}), flush=True)
        for _ in sys.stdin:
            report(name, options, [chunk()], version)
    else:
        report(name, options, [chunk() for _ in range(options.repeats)], version)


def report(name, options, results, version):
    """One line of JSON; the fastest chunk counts."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({
        "peer": name, "size": options.size, "p": options.p, "q": options.q, "threads": options.threads,
        "ms_per_iteration": round(min(results), 3), "spread": [round(ms, 3) for ms in results],
        "version": version, "peak_mb": round(peak)}), flush=True)
