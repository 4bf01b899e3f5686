"""HSGD in PyTorch with gradients derived by hand and torch.compile: shows how far PyTorch can be driven, not how it is
used (see pytorch_batched.py).

    python pytorch_by_hand.py --size esr|physionet|cnn [--p P --q Q] [--threads 1|2] [--repeats R] [--iterations N]

A step is one function from weights and data to gradients, forward and backward pass and combined model together,
compiled as a whole, so that everything between two products or two convolutions is one loop over memory. The gradients
of an LSTM's weights are products over all time steps, after the loop. The updates stay outside, since PyTorch's own
products can add to a weight in place and Inductor's code cannot. `--threads` is torch.set_num_threads.

M is the number of groups of a block, N = M A that of its selected devices.
"""

import torch
import torch.nn.functional as F

import common

# Groups are batched in so many blocks, which are trained one after the other: what the CNN needs then fits into the
# cache.
BLOCKS = {"lstm": 1, "cnn": 5}


# What is kept for a block of groups: weights, data, and what an interval freezes.

class Groups:
    """Combined models and labels; the towers are added by the classes below.

    combined    theta0 in three tensors [M, ..]: weight by zeta1 [classes, d1], weight by zeta2 [classes, d2] and
                bias [1, classes]
    frozen      the second of them at the exchange. Of the others the devices need no copy: what their frozen values
                and the frozen zeta1 add to a device's logits is computed once in an interval.
    one_hot     [M, A, classes], the labels of the subset
    """

    def __init__(self, problem):
        size = problem.size
        self.m, self.a, self.eta = size.groups, size.selected, size.eta
        self.d1 = size.width(size.x1)
        weight, bias = (torch.tensor(array) for array in problem.initial["combined"])
        parts = weight[:, :self.d1], weight[:, self.d1:], bias[None]
        self.combined = [torch.stack([part] * self.m) for part in parts]
        self.labels = torch.eye(size.classes)[torch.tensor(problem.y)]
        self.shares = torch.tensor(problem.shares, dtype=torch.float32)

    def exchange(self, rows):
        """Takes the data of the rows [M, A] of this block's arrays, and freezes theta0."""
        self.frozen = self.combined[1].clone()
        self.one_hot = self.labels.index_select(0, rows.flatten()).view(self.m, self.a, -1)

    def descend_combined(self, by_logits, zeta1, zeta2):
        """A step of theta0, from the gradients of the hospitals' losses by their logits [M, A, classes]."""
        weight1, weight2, bias = self.combined
        transposed = by_logits.transpose(1, 2)
        weight1.baddbmm_(transposed, zeta1, alpha=-self.eta)
        weight2.baddbmm_(transposed, zeta2, alpha=-self.eta)
        bias.sub_(by_logits.sum(1, keepdim=True), alpha=self.eta)

    def tensors(self):
        """All weights of groups, [M, ...] each; for global aggregation."""
        return [*self.combined, *self.theta1(), *self.theta2()]

    def weights(self):
        weight1, weight2, bias = (tensor[0] for tensor in self.combined)
        return {"combined": [torch.cat([weight1, weight2], 1).numpy(), bias[0].numpy().copy()],
                "hospital": self.exported(self.theta1()), "device": self.exported(self.theta2())}

    def aggregate(self):
        """Each group's theta2 becomes the mean of its devices'."""
        for of_groups, of_devices in zip(self.theta2(), self.devices):
            torch.mean(of_devices.unflatten(0, (self.m, self.a)), 1, out=of_groups)

    def adopt(self):
        """The devices adopt their group's theta2."""
        for of_groups, of_devices in zip(self.theta2(), self.devices):
            of_devices.unflatten(0, (self.m, self.a)).copy_(of_groups.unsqueeze(1))


class LstmGroups(Groups):
    """LSTM towers. Recurrent weights are [.., H, 4H], input weights [.., I + 1, 4H], their last row being the bias;
    the data has a column of ones for it.

    recurrent   [2M, H, 4H], the hospitals' and then the groups' theta2, to be one operand
    input1, input2   [M, I + 1, 4H]
    devices     recurrent [N, H, 4H] and input weights [N, I2 + 1, 4H] of each device
    chosen1, chosen2   [N, steps, I + 1], the data of the subset
    """

    def __init__(self, problem):
        super().__init__(problem)
        size = problem.size
        if size.x1[0] != size.x2[0]:
            raise SystemExit(f"error: {size.x1[0]} steps at the hospital, {size.x2[0]} on the device; must be the same")
        self.steps, self.hidden = size.x1[0], size.hidden
        (ih1, hh1, bias1), (ih2, hh2, bias2) = (
            [torch.tensor(array) for array in problem.initial[part]] for part in ("hospital", "device"))
        self.recurrent = torch.stack([hh1.t()] * self.m + [hh2.t()] * self.m)
        self.input1 = torch.stack([torch.cat([ih1.t(), bias1[None]])] * self.m)
        self.input2 = torch.stack([torch.cat([ih2.t(), bias2[None]])] * self.m)
        self.devices = [torch.empty(self.m * self.a, *tensor.shape[1:]) for tensor in self.theta2()]
        self.x1, self.x2 = (F.pad(torch.tensor(x), (0, 1), value=1.0) for x in (problem.x1, problem.x2))

    def exchange(self, rows):
        super().exchange(rows)
        self.chosen1 = self.x1.index_select(0, rows.flatten())
        self.chosen2 = self.x2.index_select(0, rows.flatten())

    def descend(self, before, by_gates):
        """A step of theta1 and of each device's theta2, each the product for a gradient and the sum in one.

        before [2M, A, steps, H] are the hidden states before each step, by_gates [2M, A, steps, 4H] the gradients
        of the losses by the gates' sums.
        """
        def step(weights, inputs, gradients):
            inputs, gradients = (x.view(len(weights), -1, x.shape[-1]) for x in (inputs, gradients))
            weights.baddbmm_(inputs.transpose(1, 2), gradients, alpha=-self.eta)

        m = self.m
        step(self.recurrent[:m], before[:m], by_gates[:m])
        step(self.input1, self.chosen1, by_gates[:m])
        step(self.devices[0], before[m:], by_gates[m:])
        step(self.devices[1], self.chosen2, by_gates[m:])

    def theta1(self):
        return [self.recurrent[:self.m], self.input1]

    def theta2(self):
        return [self.recurrent[self.m:], self.input2]

    def exported(self, weights):
        recurrent, inputs = (tensor[0].t().numpy() for tensor in weights)
        return [inputs[:, :-1].copy(), recurrent.copy(), inputs[:, -1].copy()]


class CnnGroups(Groups):
    """CNN towers, as grouped convolutions with channels last: hospitals [A, M C, h, w], devices [1, N C, h, w].

    hospitals, devices   weight [.., 8, 1, 3, 3], bias [.., 8], weight [.., 16, 3, 3, 8], bias [.., 16], with M or N
                         in front
    chosen1, chosen2     [A, M, h, w] and [1, N, h, w], the images of the subset
    """

    def __init__(self, problem):
        super().__init__(problem)
        m, a = self.m, self.a
        self.x1, self.x2 = torch.tensor(problem.x1), torch.tensor(problem.x2)

        def repeated(part, count):
            weight1, bias1, weight2, bias2 = (torch.tensor(array) for array in problem.initial[part])
            return [torch.stack([tensor] * count) for tensor in (weight1, bias1, weight2.permute(0, 2, 3, 1), bias2)]

        self.hospitals, self.of_groups = repeated("hospital", m), repeated("device", m)
        self.devices = repeated("device", m * a)

    def exchange(self, rows):
        super().exchange(rows)

        def images(x, batch, channels):
            chosen = x.index_select(0, rows.flatten()).view(channels, batch, *x.shape[1:]).transpose(0, 1)
            height, width = x.shape[1:]
            strides = (height * width * channels, 1, width * channels, channels)
            return torch.empty_strided(chosen.shape, strides).copy_(chosen)

        self.chosen1 = images(self.x1, self.a, self.m)
        self.chosen2 = images(self.x2, 1, self.m * self.a)

    def theta1(self):
        return self.hospitals

    def theta2(self):
        return self.of_groups

    def exported(self, weights):
        weight1, bias1, weight2, bias2 = (tensor[0] for tensor in weights)
        return [tensor.numpy().copy() for tensor in (weight1, bias1, weight2.permute(0, 3, 1, 2), bias2)]


def joined(weights):
    """Weights of several models as those of one grouped convolution, [models x out, in, 3, 3] with channels last."""
    weight1, bias1, weight2, bias2 = (tensor.flatten(0, 1) for tensor in weights)
    return weight1, bias1, weight2.permute(0, 3, 1, 2), bias2


# The steps, compiled.

def compiled(function):
    return torch.compile(function, dynamic=False, fullgraph=True, options={"cpp_wrapper": True})


def combined_model(combined, frozen, one_hot, zeta1, zeta2, kept):
    """Gradients of the hospitals' losses by their logits, of theirs by zeta1 and of the devices' by zeta2; and what
    is kept for the later steps of an interval: zeta2, and the share of zeta1 and bias in the devices' logits. Nothing
    is kept yet in the first step, where both sides have the same logits."""
    weight1, weight2, bias = combined
    mine = torch.bmm(zeta1, weight1.transpose(1, 2)) + bias
    theirs = torch.bmm(zeta2, frozen.transpose(1, 2))
    if kept is None:
        kept = zeta2, mine
        by_device_logits = torch.softmax(mine + theirs, 2) - one_hot
        by_logits = by_device_logits / zeta1.shape[1]
    else:
        frozen_zeta2, share = kept
        by_device_logits = torch.softmax(share + theirs, 2) - one_hot
        logits = mine + torch.bmm(frozen_zeta2, weight2.transpose(1, 2))
        by_logits = (torch.softmax(logits, 2) - one_hot) / zeta1.shape[1]
    return by_logits, torch.bmm(by_logits, weight1), torch.bmm(by_device_logits, frozen), kept


def tanh(x):
    return 1 - 2 * torch.sigmoid(-2 * x)  # faster than PyTorch's


def project(chosen1, chosen2, input1, input2):
    """The inputs' share of the gates' sums, [2M, A, steps, 4H]; input2 is of the groups or of the devices."""
    n, steps, _ = chosen1.shape
    m = len(input1)
    sums1 = torch.bmm(chosen1.view(m, n // m * steps, -1), input1)
    sums2 = torch.bmm(chosen2.view(len(input2), n // len(input2) * steps, -1), input2)
    return torch.cat([sums1, sums2.view(sums1.shape)]).view(2 * m, n // m, steps, -1)


def times(x, recurrent, devices):
    """Each sample's row of x [2M, A, k] times its model's matrix [k, l]."""
    if devices is None:
        return torch.bmm(x, recurrent)
    m = len(recurrent) // 2
    of_devices = torch.bmm(x[m:].reshape(len(devices), 1, -1), devices)
    return torch.cat([torch.bmm(x[:m], recurrent[:m]), of_devices.view(m, x.shape[1], -1)])


@compiled
def lstm_step(combined, frozen, recurrent, devices, input1, input2, chosen1, chosen2, one_hot, kept):
    """A step of hospitals and devices. `devices` are the devices' recurrent weights; none in an interval's first
    step, where they are those of their group. Returns hidden states before each time step, gradients by the gates'
    sums, gradients by the hospitals' logits, zeta1, and what is kept."""
    projected = project(chosen1, chosen2, input1, input2)
    hidden = recurrent.shape[1]
    h = c = torch.zeros_like(projected[:, :, 0, :hidden])
    before, slopes = [], []
    for step, sums in enumerate(projected.unbind(2)):
        before.append(h)
        i, f, g, o = (sums + times(h, recurrent, devices) if step else sums).split(hidden, 2)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), tanh(g), torch.sigmoid(o)
        c_before, c = c, f * c + i * g
        tanh_c = tanh(c)
        h = o * tanh_c
        slopes.append((g * i * (1 - i), c_before * f * (1 - f), i * (1 - g * g), tanh_c * o * (1 - o),
                       o * (1 - tanh_c * tanh_c), f))
    m = len(recurrent) // 2
    by_logits, by_zeta1, by_zeta2, kept = combined_model(combined, frozen, one_hot, h[:m], h[m:], kept)
    by_h, by_c = torch.cat([by_zeta1, by_zeta2]), torch.zeros_like(c)
    backward, devices_backward = recurrent.transpose(1, 2), None if devices is None else devices.transpose(1, 2)
    by_gates = []
    for step, (slope_i, slope_f, slope_g, slope_o, slope_c, f) in reversed(list(enumerate(slopes))):
        by_c = by_c + by_h * slope_c
        by_gates.append(torch.cat([slope_i * by_c, slope_f * by_c, slope_g * by_c, slope_o * by_h], 2))
        if step:
            by_c = by_c * f
            by_h = times(by_gates[-1], backward, devices_backward)
    return torch.stack(before, 2), torch.stack(by_gates[::-1], 2), by_logits, h[:m], kept


def pool(x):
    """Maximum of 2 x 2, then ReLU: the same as the other way around, and less work."""
    height, width = (side // 2 * 2 for side in x.shape[2:])
    x = torch.maximum(x[:, :, 0:height:2, :width], x[:, :, 1:height:2, :width])
    return torch.maximum(x[..., 0::2], x[..., 1::2]).relu()


def pool_backward(by_pooled, x, pooled):
    """Goes to where the maximum came from, if it is positive."""
    def blocks(tensor, size):  # [batch, h, size, w, size, channels]
        tensor = tensor.permute(0, 2, 3, 1)[:, :pooled.shape[2] * size, :pooled.shape[3] * size]
        return tensor.unflatten(2, (-1, size)).unflatten(1, (-1, size))

    by_pooled = torch.where(pooled > 0, by_pooled, 0)
    by_x = torch.where(blocks(x, 2) == blocks(pooled, 1), blocks(by_pooled, 1), 0).flatten(3, 4).flatten(1, 2)
    # An odd last row or column is in no block.
    by_x = F.pad(by_x, (0, 0, 0, x.shape[3] - by_x.shape[2], 0, x.shape[2] - by_x.shape[1]))
    return by_x.permute(0, 3, 1, 2)


def cnn_forward(x, weights, models):
    """Values after each layer, the last of which are the embeddings [batch, models x 16, h, w]."""
    weight1, bias1, weight2, bias2 = weights
    sums1 = F.conv2d(x, weight1, bias1, padding=1, groups=models)
    pooled1 = pool(sums1)
    sums2 = F.conv2d(pooled1, weight2, bias2, padding=1, groups=models)
    return sums1, pooled1, sums2, pool(sums2)


def by_weight(by_sums, x, weight, models):
    return torch.ops.aten.convolution_backward(by_sums, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], models,
                                               [False, True, False])[1]


def cnn_backward(by_embedding, x, weights, models, values):
    """Gradients by weights and biases."""
    weight1, _, weight2, _ = weights
    sums1, pooled1, sums2, pooled2 = values
    by_sums2 = pool_backward(by_embedding, sums2, pooled2)
    # The gradient by the input is a transposed convolution, which oneDNN does faster when it is called so.
    by_pooled1 = F.conv_transpose2d(by_sums2, weight2, padding=1, groups=models)
    by_sums1 = pool_backward(by_pooled1, sums1, pooled1)
    return (by_weight(by_sums1, x, weight1, models), by_sums1.sum((0, 2, 3)),
            by_weight(by_sums2, pooled1, weight2, models), by_sums2.sum((0, 2, 3)))


@compiled
def cnn_step(combined, frozen, hospitals, devices, chosen1, chosen2, one_hot, kept):
    """A step of hospitals and devices: gradients by their weights, gradients by the hospitals' logits, zeta1, and what
    is kept."""
    m, a = chosen1.shape[1], chosen1.shape[0]
    n = m * a
    values1, values2 = cnn_forward(chosen1, hospitals, m), cnn_forward(chosen2, devices, n)
    shape1, shape2 = values1[3].shape, values2[3].shape
    zeta1, zeta2 = values1[3].reshape(a, m, -1).transpose(0, 1), values2[3].reshape(m, a, -1)
    by_logits, by_zeta1, by_zeta2, kept = combined_model(combined, frozen, one_hot, zeta1, zeta2, kept)
    by_hospitals = cnn_backward(by_zeta1.transpose(0, 1).reshape(shape1), chosen1, hospitals, m, values1)
    by_devices = cnn_backward(by_zeta2.reshape(shape2), chosen2, devices, n, values2)
    return by_hospitals, by_devices, by_logits, zeta1, kept


class Steps:
    """Training steps of a block of groups."""

    def __init__(self, groups):
        self.groups = groups
        self.cnn = isinstance(groups, CnnGroups)

    def interval(self, q):
        """Q steps of hospitals and devices, after an exchange."""
        kept = None
        for _ in range(q):
            by_logits, zeta1, kept = self.cnn_step(kept) if self.cnn else self.lstm_step(kept)
            self.groups.descend_combined(by_logits, zeta1, kept[0])

    def lstm_step(self, kept):
        groups = self.groups
        recurrent, inputs = (None, groups.input2) if kept is None else groups.devices
        before, by_gates, *results = lstm_step(
            groups.combined, groups.frozen, groups.recurrent, recurrent, groups.input1, inputs, groups.chosen1,
            groups.chosen2, groups.one_hot, kept)
        if kept is None:
            groups.adopt()
        groups.descend(before, by_gates)
        return results

    def cnn_step(self, kept):
        groups = self.groups
        if kept is None:
            groups.adopt()
        hospitals, devices = joined(groups.hospitals), joined(groups.devices)
        by_hospitals, by_devices, *results = cnn_step(
            groups.combined, groups.frozen, hospitals, devices, groups.chosen1, groups.chosen2, groups.one_hot, kept)
        torch._foreach_sub_([*hospitals, *devices], [*by_hospitals, *by_devices], alpha=groups.eta)
        return results


class Peer:
    def __init__(self, problem, options):
        torch.set_num_threads(options.threads)
        self.problem = problem
        size = problem.size
        count = min(BLOCKS[size.tower], size.groups)
        kind = LstmGroups if size.tower == "lstm" else CnnGroups
        self.parts = [problem.part(number, count) for number in range(count)]
        self.blocks = [kind(part) for part in self.parts]
        self.steps = [Steps(block) for block in self.blocks]

    @torch.inference_mode()
    def train(self, subsets):
        problem = self.problem
        rows, first = [], 0
        for part in self.parts:
            of_groups = slice(first, first + part.size.groups)
            rows.append(torch.from_numpy(subsets[:, of_groups] + part.first_rows[:, None]))
            first = of_groups.stop
        for interval in range(len(subsets)):
            for block, steps, of_block in zip(self.blocks, self.steps, rows):
                block.exchange(of_block[interval])
                steps.interval(problem.q)
                block.aggregate()
            if (interval + 1) * problem.q % problem.p == 0:
                self.aggregate()

    def aggregate(self):
        """All groups adopt the mean of the groups' weights, by their numbers of devices."""
        for tensors in zip(*(block.tensors() for block in self.blocks)):
            flat = [tensor.view(len(tensor), -1) for tensor in tensors]
            mean = sum(block.shares @ tensor for block, tensor in zip(self.blocks, flat))
            for tensor in flat:
                tensor.copy_(mean)

    def weights(self):
        return self.blocks[0].weights()


def main():
    options = common.arguments(__doc__).parse_args()
    common.keep_freed_memory()
    problem = common.problem(common.SIZES[options.size], options.p, options.q)
    common.measure("pytorch_by_hand", Peer(problem, options), problem, options, f"torch {torch.__version__}")


if __name__ == "__main__":
    main()
