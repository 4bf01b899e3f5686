"""HSGD in JAX with gradients derived by hand: shows how far JAX can be driven, not how it is used (see jax_hsgd.py).

    python jax_by_hand.py --size esr|physionet|cnn [--p P --q Q] [--threads 1|2] [--repeats R] [--iterations N]

Everything is one jitted function with loops over time steps, steps, intervals and global intervals inside of XLA.
In the first step of an interval, where the devices of a group still have the same weights, an LSTM's forward and
backward passes are those of one model per group; the gradients of its weights are products over all time steps, after
the loop. The CNN's groups are taken one after the other, for what they need to fit into the cache. `--threads` is the
size of XLA's pool of threads.
"""

import functools
import os

import numpy as np

import common

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_prefer_vector_width=512 --xla_disable_hlo_passes=cse_barrier_expander")

import jax  # noqa: E402  (the flags must be set first)
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402


# The combined model. theta0 is weights by zeta1 [classes, d1] and by zeta2 [classes, d2], and a bias [classes].

def combined_model(theta0, frozen, one_hot, zeta1, zeta2, kept):
    """A group's losses: gradients by zeta1, by zeta2 and by theta0, and what is kept for the later steps.

    `frozen` is theta0 at the exchange. Kept are zeta2, and the share of zeta1 and bias in the devices' logits; nothing
    is kept yet in an interval's first step.
    """
    weight1, weight2, bias = theta0
    mine = zeta1 @ weight1.T + bias
    if kept is None:
        kept = zeta2, mine
    frozen_zeta2, share = kept
    # A hospital's loss is the mean over its subset, a device's is that of its own sample.
    by_logits = (jax.nn.softmax(mine + frozen_zeta2 @ weight2.T) - one_hot) / len(one_hot)
    by_device_logits = jax.nn.softmax(share + zeta2 @ frozen[1].T) - one_hot
    by_theta0 = by_logits.T @ zeta1, by_logits.T @ frozen_zeta2, by_logits.sum(0)
    return by_logits @ weight1, by_device_logits @ frozen[1], by_theta0, kept


# LSTM towers. Weights are recurrent [H, 4H] and of the inputs [I + 1, 4H], the last row being the bias; the data has a
# column of ones for it. The gates are i, f, g, o.

def once(values):
    """Has XLA compute the values, instead of merging their computation into each of the loops that use them.

    It would go as far as to repeat a convolution for each of the nine copies of its result that the next one takes.
    """
    return lax.optimization_barrier(values)


def take(array, t, axis):
    return lax.dynamic_index_in_dim(array, t, axis, keepdims=False)


def put(array, value, t, axis):
    return lax.dynamic_update_index_in_dim(array, value, t, axis)


def lstm_forward(recurrent, sums):
    """From the inputs' share of the gates' sums [..., steps, 4H]: the last hidden state [..., H], the hidden states
    before each step [..., steps, H], and by time, the gates [steps, ..., 4H] and the cells [steps + 1, ..., H].

    A loop with buffers, since lax.scan would stack the hidden states by time, only to be transposed for the products
    that follow. All gates take one tanh, scaled and shifted to a sigmoid where it is one.
    """
    *samples, steps, width = sums.shape
    hidden = width // 4
    scale = np.repeat(np.float32([0.5, 0.5, 1, 0.5]), hidden)
    shift = np.repeat(np.float32([0.5, 0.5, 0, 0.5]), hidden)

    def step(t, carry):
        h, c, before, gates, cells = carry
        activated = scale * jnp.tanh(scale * (take(sums, t, -2) + h @ recurrent)) + shift
        i, f, g, o = jnp.split(activated, 4, -1)
        c = f * c + i * g
        return (o * jnp.tanh(c), c, put(before, h, t, len(samples)), put(gates, activated, t, 0),
                put(cells, c, t + 1, 0))

    zeros = jnp.zeros((*samples, hidden), sums.dtype)
    buffers = (jnp.zeros((*samples, steps, hidden), sums.dtype), jnp.zeros((steps, *samples, width), sums.dtype),
               jnp.zeros((steps + 1, *samples, hidden), sums.dtype))
    h, _, before, gates, cells = lax.fori_loop(0, steps, step, (zeros, zeros, *buffers))
    return h, before, gates, cells


def lstm_backward(recurrent, gates, cells, by_hidden):
    """From the gradients by the last hidden state [..., H], those by the gates' sums [..., steps, 4H]."""
    steps, *samples, width = gates.shape
    i, f, g, o = jnp.split(gates, 4, -1)
    tanh_cells = jnp.tanh(cells[1:])
    slopes = (g * i * (1 - i), cells[:-1] * f * (1 - f), i * (1 - g * g), tanh_cells * o * (1 - o),
              o * (1 - tanh_cells * tanh_cells), f)
    slopes = once(slopes)

    def step(back, carry):
        by_h, by_c, by_gates = carry
        t = steps - 1 - back
        slope_i, slope_f, slope_g, slope_o, slope_c, f = (take(slope, t, 0) for slope in slopes)
        by_c = by_c + by_h * slope_c
        by_sums = jnp.concatenate([slope_i * by_c, slope_f * by_c, slope_g * by_c, slope_o * by_h], -1)
        return by_sums @ recurrent.T, by_c * f, put(by_gates, by_sums, t, len(samples))

    by_gates = jnp.zeros((*samples, steps, width), gates.dtype)
    return lax.fori_loop(0, steps, step, (by_hidden, jnp.zeros_like(by_hidden), by_gates))[2]


def descend(weights, gradients, eta):
    return jax.tree.map(lambda weight, gradient: weight - eta * gradient, weights, gradients)


def by_weights(before, inputs, by_gates):
    """Gradients of one model's recurrent and input weights, over its samples and steps."""
    return tuple(jnp.einsum("...tk,...tg->kg", x, by_gates) for x in (before, inputs))


def lstm_interval(theta, data, q, eta):
    """Q steps of the hospitals and devices of M groups: theta0, theta1 and the devices' theta2 [M, A, ...]."""
    theta0, theta1, theta2 = theta
    x1, x2, one_hot = data
    m, a = x1.shape[:2]
    frozen = theta0
    combined = jax.vmap(combined_model)
    project = jax.vmap(lambda x, weights: x @ weights)

    def both(of_hospitals, of_devices):
        return jnp.concatenate([of_hospitals, of_devices])

    # The first step, in which the devices of a group have the same weights: 2M models with A samples each.
    recurrent = both(theta1[0], theta2[0])
    sums = both(project(x1, theta1[1]), project(x2, theta2[1]))
    zeta, before, gates, cells = jax.vmap(lstm_forward)(recurrent, sums)
    by_zeta1, by_zeta2, by_theta0, kept = combined(theta0, frozen, one_hot, zeta[:m], zeta[m:], None)
    by_gates = jax.vmap(lstm_backward)(recurrent, gates, cells, both(by_zeta1, by_zeta2))
    by_theta1 = jax.vmap(by_weights)(before[:m], x1, by_gates[:m])
    by_theta2 = jax.vmap(jax.vmap(by_weights))(before[m:], x2, by_gates[m:])
    devices = jax.tree.map(lambda weights, gradients: weights[:, None] - eta * gradients, theta2, by_theta2)
    theta0, theta1 = descend((theta0, theta1), (by_theta0, by_theta1), eta)

    def step(_, carry):
        theta0, theta1, devices = carry
        (zeta1, before1, gates1, cells1), (zeta2, before2, gates2, cells2) = (
            jax.vmap(lstm_forward)(theta1[0], project(x1, theta1[1])),
            jax.vmap(jax.vmap(lstm_forward))(devices[0], jax.vmap(project)(x2, devices[1])))
        by_zeta1, by_zeta2, by_theta0, _ = combined(theta0, frozen, one_hot, zeta1, zeta2, kept)
        by_gates1 = jax.vmap(lstm_backward)(theta1[0], gates1, cells1, by_zeta1)
        by_gates2 = jax.vmap(jax.vmap(lstm_backward))(devices[0], gates2, cells2, by_zeta2)
        by_theta1 = jax.vmap(by_weights)(before1, x1, by_gates1)
        by_devices = jax.vmap(jax.vmap(by_weights))(before2, x2, by_gates2)
        return descend(carry, (by_theta0, by_theta1, by_devices), eta)

    return lax.fori_loop(1, q, step, (theta0, theta1, devices))


# CNN towers, channels last. A convolution is nine shifted copies of its input, side by side, times a matrix: XLA's own
# is slow where each sample has its own weights. Weights are [9, 8] and [9 x 8, 16], biases [8] and [16].

def patches(x):
    """[batch, h, w, c] to [batch, h, w, 9 c], with a border of zeros."""
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return jnp.concatenate([padded[:, i:i + height, j:j + width] for i in range(3) for j in range(3)], -1)


def image_patches(x):
    """[batch, h, w] to [batch, 9, h, w]."""
    height, width = x.shape[1:]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1)))
    return jnp.stack([padded[:, i:i + height, j:j + width] for i in range(3) for j in range(3)], 1)


def pool(x):
    """Maximum of 2 x 2, then ReLU: the same as the other way around, and less work."""
    height, width = (side // 2 * 2 for side in x.shape[1:3])
    corners = [x[:, i:height:2, j:width:2] for i in range(2) for j in range(2)]
    return jnp.maximum(functools.reduce(jnp.maximum, corners), 0)


def pool_backward(by_pooled, x, pooled):
    """Goes to where the maximum came from, if it is positive."""
    batch, height, width, channels = pooled.shape
    blocks = x[:, :2 * height, :2 * width].reshape(batch, height, 2, width, 2, channels)

    def spread(values):
        return values[:, :, None, :, None]

    by_pooled = jnp.where(pooled > 0, by_pooled, 0)
    by_x = jnp.where(blocks == spread(pooled), spread(by_pooled), 0).reshape(batch, 2 * height, 2 * width, channels)
    rest = ((0, 0), (0, x.shape[1] - 2 * height), (0, x.shape[2] - 2 * width), (0, 0))
    return jnp.pad(by_x, rest) if rest != ((0, 0),) * 4 else by_x


def cnn_forward(weights, x):
    """Embeddings [batch, 16 h w] of one model, ordered by row, column and channel, and the values before them.

    x [batch, 9, h, w] are already patches: the images do not change during an interval.
    """
    weight1, bias1, weight2, bias2 = weights
    sums1 = once(bias1 + sum(x[:, k, :, :, None] * weight1[k] for k in range(9)))  # faster than a product so thin
    pooled1 = once(pool(sums1))
    patches1 = once(patches(pooled1))
    sums2 = once(patches1 @ weight2 + bias2)
    pooled2 = once(pool(sums2))
    return pooled2.reshape(len(x), -1), (sums1, pooled1, patches1, sums2, pooled2)


def cnn_backward(weights, x, values, by_embedding):
    """Gradients of one model's weights."""
    sums1, pooled1, patches1, sums2, pooled2 = values
    by_sums2 = once(pool_backward(by_embedding.reshape(pooled2.shape), sums2, pooled2))
    # The gradient by the input is a convolution too, with the weights turned around.
    turned = weights[2].reshape(9, 8, 16)[::-1].transpose(0, 2, 1).reshape(9 * 16, 8)
    by_sums1 = once(pool_backward(once(patches(by_sums2) @ turned), sums1, pooled1))
    return (jnp.einsum("bkhw,bhwo->bko", x, by_sums1).sum(0), by_sums1.sum((0, 1, 2)),
            jnp.einsum("bhwo,bhwk->ok", by_sums2, patches1).T, by_sums2.sum((0, 1, 2)))


def cnn_interval(theta, data, q, eta):
    """Q steps of the hospitals and devices of M groups: theta0, theta1 and the devices' theta2 [M, A, ...]."""
    theta0, theta1, theta2 = theta
    x1, x2, one_hot = data  # [M, A, h, w]
    m, a = x1.shape[:2]
    x1, x2 = (jax.vmap(image_patches)(x) for x in (x1, x2))
    x1, x2 = once((x1, x2[:, :, None]))  # of a device: a batch of one
    frozen = theta0

    def step(carry, kept):
        theta0, theta1, devices = carry
        zeta1, values1 = jax.vmap(cnn_forward)(theta1, x1)
        zeta2, values2 = jax.vmap(jax.vmap(cnn_forward))(devices, x2)
        by_zeta1, by_zeta2, by_theta0, kept = jax.vmap(combined_model)(
            theta0, frozen, one_hot, zeta1, zeta2.reshape(m, a, -1), kept)
        by_theta1 = jax.vmap(cnn_backward)(theta1, x1, values1, by_zeta1)
        by_devices = jax.vmap(jax.vmap(cnn_backward))(devices, x2, values2, by_zeta2)
        return descend(carry, (by_theta0, by_theta1, by_devices), eta), kept

    devices = jax.tree.map(lambda weights: jnp.broadcast_to(weights[:, None], (m, a, *weights.shape[1:])), theta2)
    carry, kept = step((theta0, theta1, devices), None)
    return lax.fori_loop(1, q, lambda _, carry: step(carry, kept)[0], carry)


# Training.

def training(size, q):
    """A function from global weights, data, shares and rows [global intervals, P / Q, M, A] to global weights."""
    interval_steps = functools.partial(lstm_interval if size.tower == "lstm" else cnn_interval, q=q, eta=size.eta)
    m = size.groups

    def train(theta, x1, x2, labels, shares, rows):
        def of_groups(groups):
            theta, rows = groups
            theta0, theta1, devices = interval_steps(theta, (x1[rows], x2[rows], labels[rows]))
            return theta0, theta1, jax.tree.map(lambda weights: weights.mean(1), devices)

        def interval(theta, rows):
            """All groups of an LSTM at once; those of a CNN one after the other, for what fits into the cache."""
            if size.tower == "lstm":
                return of_groups((theta, rows)), None
            split = jax.tree.map(lambda x: x[:, None], (theta, rows))
            return jax.tree.map(lambda x: x[:, 0], lax.map(of_groups, split)), None

        def global_interval(theta, rows):
            groups = jax.tree.map(lambda weights: jnp.broadcast_to(weights, (m, *weights.shape)), theta)
            groups, _ = interval(groups, rows[0]) if len(rows) == 1 else lax.scan(interval, groups, rows)
            return jax.tree.map(lambda weights: jnp.tensordot(shares, weights, 1), groups), None

        return lax.scan(global_interval, theta, rows)[0]

    return train


class Peer:
    def __init__(self, problem, options):
        self.problem = problem
        size = problem.size
        self.size = size
        initial = problem.initial
        weight, bias = initial["combined"]
        if size.tower == "lstm":
            self.order = np.arange(weight.shape[1])
            towers = [(hh.T, np.concatenate([ih.T, bias[None]])) for ih, hh, bias in
                      (initial["hospital"], initial["device"])]
            x1, x2 = (np.concatenate([x, np.ones((*x.shape[:2], 1), x.dtype)], 2) for x in (problem.x1, problem.x2))
        else:
            # Our embeddings are ordered by row, column and channel.
            orders = [np.arange(size.width(s)).reshape(16, s[0] // 4, s[1] // 4).transpose(1, 2, 0).reshape(-1)
                      for s in (size.x1, size.x2)]
            self.order = np.concatenate([orders[0], len(orders[0]) + orders[1]])
            towers = [(w1.reshape(8, 9).T, b1, w2.transpose(2, 3, 1, 0).reshape(72, 16), b2)
                      for w1, b1, w2, b2 in (initial["hospital"], initial["device"])]
            x1, x2 = problem.x1, problem.x2
        d1 = size.width(size.x1)
        ordered = weight[:, self.order]
        self.theta = jax.tree.map(jnp.array, ((ordered[:, :d1], ordered[:, d1:], bias), *towers))
        self.data = [jnp.asarray(x) for x in (x1, x2, np.eye(size.classes, dtype=np.float32)[problem.y])]
        self.shares = jnp.asarray(problem.shares, jnp.float32)
        self.run = jax.jit(training(size, problem.q), donate_argnums=0)

    def train(self, subsets):
        problem = self.problem
        rows = (subsets + problem.first_rows[:, None]).astype(np.int32)
        rows = rows.reshape(-1, problem.p // problem.q, *rows.shape[1:])
        self.theta = jax.block_until_ready(self.run(self.theta, *self.data, self.shares, rows))

    def weights(self):
        (weight1, weight2, bias), *towers = jax.tree.map(np.asarray, self.theta)
        weight = np.empty((len(bias), len(self.order)), np.float32)
        weight[:, self.order] = np.concatenate([weight1, weight2], 1)
        if self.size.tower == "lstm":
            towers = [[inputs[:-1].T, recurrent.T, inputs[-1]] for recurrent, inputs in towers]
        else:
            towers = [[w1.T.reshape(8, 1, 3, 3), b1, w2.reshape(3, 3, 8, 16).transpose(3, 2, 0, 1), b2]
                      for w1, b1, w2, b2 in towers]
        return {"combined": [weight, bias], "hospital": towers[0], "device": towers[1]}


def main():
    options = common.arguments(__doc__).parse_args()
    common.limit_xla_threads(options.threads)
    problem = common.problem(common.SIZES[options.size], options.p, options.q)
    common.measure("jax_by_hand", Peer(problem, options), problem, options, f"jax {jax.__version__}")


if __name__ == "__main__":
    main()
