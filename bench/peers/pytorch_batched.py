"""HSGD in PyTorch with everything batched over groups and devices, gradients by autograd.

    python pytorch_batched.py --size esr|physionet|cnn [--p P --q Q] [--threads 1|2] [--repeats R] [--iterations N]
                              [--compile] [--channels-last]

Weights have the number of the model in front: M hospitals, N = M A selected devices. A layer of all hospitals, or of
all devices, is then one batched product or one grouped convolution, and a step of everything is one backward pass, in
which hospitals and devices do not meet: each side sees the other's embeddings detached. In the first step of an
interval these are the ones just computed, so the exchange costs nothing. `--compile` compiles the function from weights
and data to gradients with torch.compile, autograd included. `--channels-last` keeps images and the second convolution's
weights in that order, which PyTorch does not do by itself. `--threads` is torch.set_num_threads.
"""

import numpy as np
import torch
import torch.nn.functional as F

import common


class Lstm:
    """LSTM towers. Weights are weight_ih [models, I, 4H], weight_hh [models, H, 4H] and bias [models, 1, 4H]. The gates
    are in the order i, f, o, g, so that the three sigmoids are one operation."""

    @staticmethod
    def reordered(array):
        """From i, f, g, o to i, f, o, g, or back."""
        i, f, g, o = np.split(array, 4)
        return np.concatenate((i, f, o, g))

    def imported(self, arrays):
        weight_ih, weight_hh, bias = map(self.reordered, arrays)
        return weight_ih.T, weight_hh.T, bias[None]

    def exported(self, arrays):
        weight_ih, weight_hh, bias = arrays
        return [self.reordered(array) for array in (weight_ih.T, weight_hh.T, bias[0])]

    @staticmethod
    def batched(x, models, batch):
        """Samples of all models one after the other, as [models, steps, batch, I]."""
        return x.unflatten(0, (models, batch)).transpose(1, 2).contiguous()

    @staticmethod
    def forward(x, weights):
        """The last hidden states [models, batch, H]."""
        weight_ih, weight_hh, bias = weights
        hidden = weight_hh.shape[1]
        projected = torch.baddbmm(bias, x.flatten(1, 2), weight_ih).view(*x.shape[:3], 4 * hidden)
        h = c = None  # zeros, with which the first step need not compute
        for sums in projected.unbind(1):
            if h is not None:
                sums = torch.baddbmm(sums, h, weight_hh)
            sums, g = sums.split((3 * hidden, hidden), 2)
            (i, f, o), g = torch.sigmoid(sums).chunk(3, 2), torch.tanh(g)
            c = i * g if c is None else torch.addcmul(i * g, f, c)
            h = o * torch.tanh(c)
        return h


class Cnn:
    """CNN towers, as grouped convolutions. Weights are [models, 8, 1, 3, 3], [models, 8], [models, 16, 8, 3, 3] and
    [models, 16]; with channels last, which is more than twice as fast, the third is [models, 16, 3, 3, 8]."""

    def __init__(self, channels_last):
        self.channels_last = channels_last

    def imported(self, arrays):
        weight1, bias1, weight2, bias2 = arrays
        return weight1, bias1, weight2.transpose(0, 2, 3, 1) if self.channels_last else weight2, bias2

    def exported(self, arrays):
        weight1, bias1, weight2, bias2 = arrays
        return [weight1, bias1, weight2.transpose(0, 3, 1, 2) if self.channels_last else weight2, bias2]

    def batched(self, x, models, batch):
        """Samples of all models one after the other, as [batch, models, height, width]."""
        order = torch.channels_last if self.channels_last else torch.contiguous_format
        return x.unflatten(0, (models, batch)).transpose(0, 1).contiguous(memory_format=order)

    def forward(self, x, weights):
        """The embeddings [models, batch, 16 h w]."""
        batch, models = x.shape[:2]
        weight1, bias1, weight2, bias2 = (tensor.flatten(0, 1) for tensor in weights)
        if self.channels_last:
            weight2 = weight2.permute(0, 3, 1, 2)
        x = pool(F.conv2d(x, weight1, bias1, padding=1, groups=models))
        x = pool(F.conv2d(x, weight2, bias2, padding=1, groups=models))
        return x.reshape(batch, models, -1).transpose(0, 1)


def pool(x):
    """Maximum of 2 x 2, then ReLU: the same as the other way around, and less work."""
    if not torch.compiler.is_compiling():
        return F.relu(F.max_pool2d(x, 2))
    # When compiled, this is faster than max_pool2d; when not, it is much slower.
    height, width = (side // 2 * 2 for side in x.shape[2:])
    x = torch.maximum(x[:, :, 0:height:2, :width], x[:, :, 1:height:2, :width])
    return F.relu(torch.maximum(x[..., 0::2], x[..., 1::2]))


def loss(theta0, zeta1, zeta2, y):
    """Cross-entropy of the combined models, summed over groups and samples."""
    weight, bias = theta0
    logits = torch.baddbmm(bias, torch.cat((zeta1, zeta2), 2), weight)
    return F.cross_entropy(logits.flatten(0, 1), y, reduction="sum")


def gradients(tower, theta0, theta1, theta2, frozen_theta0, frozen_zeta, x1, x2, y):
    """Gradients by theta0, theta1 and each device's theta2, and the embeddings that the interval freezes; there are
    none of these yet in its first step."""
    zeta1 = tower(x1, theta1)
    zeta2 = tower(x2, theta2).reshape(*zeta1.shape[:2], -1)
    frozen_zeta1, frozen_zeta2 = frozen_zeta or (zeta1.detach(), zeta2.detach())
    # A hospital's loss is the mean over its subset, a device's is that of its own sample. No two models have a
    # parameter in common, so the sum of all losses gives each its own gradient.
    total = loss(theta0, zeta1, frozen_zeta2, y) / zeta1.shape[1] + loss(frozen_theta0, frozen_zeta1, zeta2, y)
    return torch.autograd.grad(total, [*theta0, *theta1, *theta2]), (frozen_zeta1, frozen_zeta2)


class Peer:
    def __init__(self, problem, options):
        torch.set_num_threads(options.threads)
        self.problem = problem
        size = problem.size
        self.tower = Lstm() if size.tower == "lstm" else Cnn(options.channels_last)
        self.gradients = gradients
        if options.compile:
            torch._dynamo.config.trace_autograd_ops = True
            self.gradients = torch.compile(gradients, dynamic=False, fullgraph=True)

        def repeated(arrays, models):
            return [torch.tensor(array).expand(models, *array.shape).contiguous() for array in arrays]

        m, a = size.groups, size.selected
        weight, bias = problem.initial["combined"]
        device = self.tower.imported(problem.initial["device"])
        self.theta0 = repeated((weight.T, bias[None]), m)
        self.theta1 = repeated(self.tower.imported(problem.initial["hospital"]), m)
        self.theta2 = repeated(device, m)
        self.devices = repeated(device, m * a)
        self.parameters = [*self.theta0, *self.theta1, *self.devices]
        for tensor in self.parameters:
            tensor.requires_grad_()
        self.data = [torch.tensor(array) for array in (problem.x1, problem.x2, problem.y)]
        self.shares = torch.tensor(problem.shares, dtype=torch.float32)

    def train(self, subsets):
        p, q = self.problem.p, self.problem.q
        rows = torch.from_numpy(subsets + self.problem.first_rows[:, None]).flatten(1)
        for interval, of_interval in enumerate(rows, 1):
            self.interval(of_interval)
            if interval * q % p == 0:
                self.aggregate()

    def interval(self, rows):
        """Exchange, Q steps of all hospitals and devices, local aggregation."""
        size = self.problem.size
        m, a = size.groups, size.selected
        x1, x2, y = (tensor.index_select(0, rows) for tensor in self.data)
        x1, x2 = self.tower.batched(x1, m, a), self.tower.batched(x2, m * a, 1)
        by_group = [tensor.detach().unflatten(0, (m, a)) for tensor in self.devices]
        for of_group, of_devices in zip(self.theta2, by_group):
            of_devices.copy_(of_group.unsqueeze(1))
        frozen_theta0 = [tensor.detach().clone() for tensor in self.theta0]
        frozen_zeta = None
        for _ in range(self.problem.q):
            by_parameters, frozen_zeta = self.gradients(
                self.tower.forward, self.theta0, self.theta1, self.devices, frozen_theta0, frozen_zeta, x1, x2, y)
            with torch.no_grad():
                torch._foreach_add_(self.parameters, by_parameters, alpha=-size.eta)
        for of_group, of_devices in zip(self.theta2, by_group):
            torch.mean(of_devices, 1, out=of_group)

    @torch.no_grad()
    def aggregate(self):
        """All groups adopt the mean of the groups' weights, by their numbers of devices."""
        for tensor in (*self.theta0, *self.theta1, *self.theta2):
            tensor.copy_((self.shares @ tensor.flatten(1)).view(tensor.shape[1:]))

    def weights(self):
        (weight, bias), *towers = ([tensor[0].detach().numpy().copy() for tensor in tensors]
                                   for tensors in (self.theta0, self.theta1, self.theta2))
        hospital, device = map(self.tower.exported, towers)
        return {"combined": [weight.T, bias[0]], "hospital": hospital, "device": device}


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--compile", action="store_true", help="compile what computes the gradients")
    parser.add_argument("--channels-last", action="store_true", help="the order of a CNN's images and weights")
    options = parser.parse_args()
    common.keep_freed_memory()
    problem = common.problem(common.SIZES[options.size], options.p, options.q)
    name = "pytorch_batched_compiled" if options.compile else "pytorch_batched"
    common.measure(name, Peer(problem, options), problem, options, f"torch {torch.__version__}")


if __name__ == "__main__":
    main()
