"""HSGD in JAX: jit, vmap over models, scans over time steps, steps and intervals, gradients from jax.grad.

    python jax_hsgd.py --size esr|physionet|cnn [--p P --q Q] [--threads 1|2] [--repeats R] [--iterations N]

A tower is written for one model and a batch of samples. A step of everything is one gradient, in which hospitals and
devices do not meet: each side sees the other's embeddings as constants. In the first step of an interval these are the
ones just computed, so the exchange costs nothing. `--threads` is the size of XLA's pool of threads.
"""

import os

import numpy as np

import common

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402  (the platform must be set first)
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402


def lstm(weights, x):
    """The last hidden states [batch, H] of one model. Weights are [I, 4H], [H, 4H] and [4H], x is [batch, steps, I]."""
    weight_ih, weight_hh, bias = weights

    def step(carry, sums):
        h, c = carry
        i, f, g, o = jnp.split(sums + h @ weight_hh, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    projected = jnp.einsum("bti,ig->tbg", x, weight_ih) + bias
    zeros = jnp.zeros((len(x), len(weight_hh)), x.dtype)
    (h, _), _ = lax.scan(step, (zeros, zeros), projected)
    return h


def cnn(weights, x):
    """The embeddings [batch, h w 16] of one model, by row, column and channel; x is [batch, height, width]."""
    weight1, bias1, weight2, bias2 = weights
    x = pool(convolve(x[..., None], weight1) + bias1)
    return pool(convolve(x, weight2) + bias2).reshape(len(x), -1)


def convolve(x, weight):
    """A convolution as nine shifted copies of its input, side by side, times a matrix.

    vmap makes lax.conv_general_dilated a convolution of as many groups as there are models, with which compiling and
    twelve iterations took more than 50 seconds.
    """
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    patches = jnp.concatenate([padded[:, i:i + height, j:j + width] for i in range(3) for j in range(3)], -1)
    return patches @ weight.reshape(-1, weight.shape[-1])


def pool(x):
    """Maximum of 2 x 2, then ReLU: the same as the other way around, and less work."""
    batch, height, width, channels = x.shape
    blocks = x[:, :height // 2 * 2, :width // 2 * 2].reshape(batch, height // 2, 2, width // 2, 2, channels)
    return jax.nn.relu(blocks.max((2, 4)))


def group_loss(theta0, zeta1, zeta2, labels):
    """Cross-entropy of one group's combined model, summed over its samples."""
    weight, bias = theta0
    logits = jnp.concatenate([zeta1, zeta2], 1) @ weight + bias
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).sum()


def training(size, q):
    """A function from global weights, data, shares and rows [global intervals, P / Q, M, A] to global weights."""
    m, a = size.groups, size.selected
    tower = lstm if size.tower == "lstm" else cnn
    hospitals = jax.vmap(tower)
    devices = jax.vmap(jax.vmap(lambda weights, x: tower(weights, x[None])[0]))

    def loss(theta, frozen_theta0, frozen_zeta, x1, x2, labels):
        """The sum of all losses, and the embeddings that the interval freezes; there are none yet in its first step.

        A hospital's loss is the mean over its subset, a device's is that of its own sample. No two models have a
        parameter in common, so the sum gives each its own gradient.
        """
        theta0, theta1, theta2 = theta
        zeta1, zeta2 = hospitals(theta1, x1), devices(theta2, x2)
        frozen_zeta = lax.stop_gradient((zeta1, zeta2)) if frozen_zeta is None else frozen_zeta
        of_hospitals = jax.vmap(group_loss)(theta0, zeta1, frozen_zeta[1], labels).sum() / a
        of_devices = jax.vmap(group_loss)(frozen_theta0, frozen_zeta[0], zeta2, labels).sum()
        return of_hospitals + of_devices, frozen_zeta

    def step(theta, *constants):
        gradients, frozen_zeta = jax.grad(loss, has_aux=True)(theta, *constants)
        return jax.tree.map(lambda weight, gradient: weight - size.eta * gradient, theta, gradients), frozen_zeta

    def interval(theta, data):
        """Exchange, Q steps of all hospitals and devices, local aggregation."""
        theta0, theta1, theta2 = theta
        theta2 = jax.tree.map(lambda x: jnp.broadcast_to(x[:, None], (m, a, *x.shape[1:])), theta2)
        theta, frozen_zeta = step((theta0, theta1, theta2), theta0, None, *data)
        theta, _ = lax.scan(lambda theta, _: (step(theta, theta0, frozen_zeta, *data)[0], None), theta, length=q - 1)
        return *theta[:2], jax.tree.map(lambda x: x.mean(1), theta[2])

    def train(theta, data, shares, rows):
        def global_interval(theta, rows):
            groups = jax.tree.map(lambda x: jnp.broadcast_to(x, (m, *x.shape)), theta)
            groups, _ = lax.scan(lambda groups, rows: (interval(groups, [x[rows] for x in data]), None), groups, rows)
            return jax.tree.map(lambda x: jnp.tensordot(shares, x, 1), groups), None

        return lax.scan(global_interval, theta, rows)[0]

    return train


class Peer:
    def __init__(self, problem, options):
        self.problem = problem
        size = problem.size
        # Inputs before outputs, as the functions above have them; a vector stays as it is.
        axes = {"lstm": {2: (1, 0), 1: (0,)}, "cnn": {4: (2, 3, 1, 0), 1: (0,)}}[size.tower]
        self.axes = lambda array: axes[array.ndim]
        # Where each value of our embeddings is in those of PyTorch, which are by channel, row and column.
        self.order = np.arange(size.width(size.x1) + size.width(size.x2))
        if size.tower == "cnn":
            parts = np.split(self.order, [size.width(size.x1)])
            shapes = [(16, height // 4, width // 4) for height, width in (size.x1, size.x2)]
            self.order = np.concatenate(
                [part.reshape(shape).transpose(1, 2, 0).ravel() for part, shape in zip(parts, shapes)])
        weight, bias = problem.initial["combined"]
        towers = [[array.transpose(self.axes(array)) for array in problem.initial[part]]
                  for part in ("hospital", "device")]
        self.theta = jax.tree.map(jnp.array, ((weight[:, self.order].T, bias), *towers))
        self.data = [jnp.asarray(x) for x in (problem.x1, problem.x2, problem.y.astype(np.int32))]
        self.shares = jnp.asarray(problem.shares, jnp.float32)
        self.run = jax.jit(training(size, problem.q), donate_argnums=0)

    def train(self, subsets):
        problem = self.problem
        rows = (subsets + problem.first_rows[:, None]).astype(np.int32)
        rows = rows.reshape(-1, problem.p // problem.q, *rows.shape[1:])
        self.theta = jax.block_until_ready(self.run(self.theta, self.data, self.shares, rows))

    def weights(self):
        (weight, bias), *towers = jax.tree.map(np.asarray, self.theta)
        hospital, device = ([array.transpose(np.argsort(self.axes(array))) for array in tower] for tower in towers)
        return {"combined": [weight[np.argsort(self.order)].T, bias], "hospital": hospital, "device": device}


def main():
    options = common.arguments(__doc__).parse_args()
    common.limit_xla_threads(options.threads)
    problem = common.problem(common.SIZES[options.size], options.p, options.q)
    common.measure("jax_hsgd", Peer(problem, options), problem, options, f"jax {jax.__version__}")


if __name__ == "__main__":
    main()
