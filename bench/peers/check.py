"""Shows that the peers train the same weights as a plain float64 HSGD, written from its definition.

    python check.py [PEER ...]      by the names of their files; all of them unless told otherwise

Small settings with groups of unequal size, the same initial weights and the same subsets for all; an LSTM and a
CNN, with P = Q = 1 and with P = 4, Q = 2. For each part of the model, the distance between a peer's final weights and
the reference's must be less than 1e-4 of the distance that the reference travelled. Exit codes: 0 all agree, 1 not.
"""

import argparse
import importlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

import common

# The options of each peer that are checked, beside one thread.
PEERS = {
    "pytorch_loop": [{}],
    "pytorch_batched": [{"compile": compiled, "channels_last": last} for compiled in (False, True) for last in (False, True)],
    "jax_hsgd": [{}],
    "pytorch_by_hand": [{}],
    "jax_by_hand": [{}],
}
TOLERANCE = 1e-4
SETTINGS = {
    "lstm": common.Size("lstm", (7, 5, 9, 6), 3, (5, 4), (5, 3), 6, 3, 0.5),
    "cnn": common.Size("cnn", (7, 5, 9, 6), 3, (10, 10), (13, 12), 0, 4, 0.1),
}
PARTS = ("combined", "hospital", "device")


def tower(kind, weights, x):
    """The embedding of one sample, step by step."""
    if kind == "cnn":
        weight1, bias1, weight2, bias2 = weights
        x = F.max_pool2d(F.relu(F.conv2d(x[None, None], weight1, bias1, padding=1)), 2)
        return F.max_pool2d(F.relu(F.conv2d(x, weight2, bias2, padding=1)), 2).reshape(-1)
    weight_ih, weight_hh, bias = weights
    h = c = torch.zeros(weight_hh.shape[1], dtype=x.dtype)
    for step in x:
        i, f, g, o = (weight_ih @ step + weight_hh @ h + bias).reshape(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h


def sample_loss(theta0, zeta1, zeta2, label):
    logits = theta0[0] @ torch.cat([zeta1, zeta2]) + theta0[1]
    return torch.logsumexp(logits, 0) - logits[label]


def stepped(weights, loss_of, eta):
    """The weights after one step of gradient descent."""
    weights = [tensor.detach().requires_grad_() for tensor in weights]
    gradients = torch.autograd.grad(loss_of(weights), weights)
    return [(tensor - eta * gradient).detach() for tensor, gradient in zip(weights, gradients)]


def reference(problem, subsets):
    """HSGD, iteration by iteration: the weights of each part after the last global aggregation."""
    size, p, q = problem.size, problem.p, problem.q
    kind, eta, groups = size.tower, size.eta, range(size.groups)
    initial = [[torch.tensor(array, dtype=torch.float64) for array in problem.initial[part]] for part in PARTS]
    theta = [list(initial) for _ in groups]  # of each group: theta0, theta1, theta2
    of_devices, frozen = [None for _ in groups], [None for _ in groups]
    total = len(subsets) * q
    for t in range(total + 1):
        if t % q == 0 and t > 0:
            for m in groups:
                theta[m][2] = [torch.stack(tensors).mean(0) for tensors in zip(*of_devices[m])]
        if t % p == 0 and t > 0:
            mean = [[sum(size.devices[m] * theta[m][i][k] for m in groups) / sum(size.devices)
                     for k in range(len(initial[i]))] for i in range(3)]
            theta = [list(mean) for _ in groups]
        if t == total:
            return dict(zip(PARTS, mean))
        for m in groups:
            rows = [problem.first_rows[m] + row for row in subsets[t // q][m]]
            x1, x2 = (torch.tensor(x[rows], dtype=torch.float64) for x in (problem.x1, problem.x2))
            labels = problem.y[rows]
            if t % q == 0:
                of_devices[m] = [theta[m][2] for _ in rows]
                frozen[m] = (theta[m][0], [tower(kind, theta[m][1], x) for x in x1],
                             [tower(kind, theta[m][2], x) for x in x2])
            frozen_theta0, zeta1, zeta2 = frozen[m]
            count0 = len(theta[m][0])

            def hospital_loss(weights):
                losses = [sample_loss(weights[:count0], tower(kind, weights[count0:], x), zeta2[n], labels[n])
                          for n, x in enumerate(x1)]
                return sum(losses) / len(losses)

            moved = stepped([*theta[m][0], *theta[m][1]], hospital_loss, eta)
            theta[m][0], theta[m][1] = moved[:count0], moved[count0:]
            of_devices[m] = [
                stepped(theta2, lambda weights: sample_loss(
                    frozen_theta0, zeta1[n], tower(kind, weights, x2[n]), labels[n]), eta)
                for n, theta2 in enumerate(of_devices[m])]
    raise AssertionError("not reached")


def flat(arrays):
    return np.concatenate([np.asarray(array, dtype=np.float64).reshape(-1) for array in arrays])


def check(problem, subsets, names):
    expected = reference(problem, subsets)
    agree = True
    for name in names:
        module = importlib.import_module(name)
        for extra in PEERS[name]:
            peer = module.Peer(problem, argparse.Namespace(threads=1, **extra))
            half = len(subsets) // 2 // (problem.p // problem.q) * (problem.p // problem.q)
            peer.train(subsets[:half])  # in two calls: the state between calls counts too
            peer.train(subsets[half:])
            ours = peer.weights()
            errors = []
            for part in PARTS:
                start, end, got = flat(problem.initial[part]), flat(expected[part]), flat(ours[part])
                errors.append(np.linalg.norm(got - end) / np.linalg.norm(end - start))
            fine = all(error < TOLERANCE for error in errors)  # false for NaN
            agree = agree and fine
            label = " ".join([name, *(f"{key}={value}" for key, value in extra.items())])
            print(f"  {label:30} " + "  ".join(f"{part} {error:.1e}" for part, error in zip(PARTS, errors)) +
                  ("  ok" if fine else "  DIFFERS"), flush=True)
    return agree


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=", ".join(PEERS))
    names = parser.parse_args().peers or list(PEERS)
    if not set(names) <= set(PEERS):
        parser.error(f"the peers are {', '.join(PEERS)}")
    agree = True
    for kind, size in SETTINGS.items():
        for p, q, iterations in ((1, 1, 6), (4, 2, 8)):
            problem = common.problem(size, p, q, seed=3)
            rng = np.random.default_rng(4)
            subsets = common.draw_subsets(rng, size.devices, iterations // q, size.selected)
            print(f"{kind}, P {p}, Q {q}, {iterations} iterations: relative distance to the reference")
            with torch.random.fork_rng():
                agree = check(problem, subsets, names) and agree
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
