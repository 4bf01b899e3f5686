"""HSGD in PyTorch as it is usually written: a loop over groups and devices, fused layers, autograd.

    python pytorch_loop.py --size esr|physionet|cnn [--p P --q Q] [--threads 1|2] [--repeats R] [--iterations N]

Only the towers are in a loop. A group's device embeddings are joined before the combined model, so that each step
of a group is one backward pass, in which hospital and devices do not meet: each side sees the other's embeddings
detached. In the first step of an interval these are the ones just computed, so the exchange costs nothing.
`--threads` is torch.set_num_threads.
"""

import torch
import torch.nn.functional as F

import common


def lstm(x, weights):
    """The last hidden state [batch, H] of the fused LSTM of torch.nn.LSTM (oneDNN's), its second bias zero."""
    weight_ih, weight_hh, bias = weights
    state = x.new_zeros(1, len(x), weight_hh.shape[1])
    parameters = (weight_ih, weight_hh, bias, torch.zeros_like(bias, requires_grad=False))
    _, hidden, _ = torch.lstm(x, (state, state), parameters, has_biases=True, num_layers=1, dropout=0.0,
                              train=True, bidirectional=False, batch_first=True)
    return hidden[0]


def cnn(x, weights):
    """Two convolutions with pooling. The maximum is taken before the ReLU, which is the same and less work."""
    weight1, bias1, weight2, bias2 = weights
    if len(x) > 1:  # a batch is faster with channels last, which with one channel is a matter of strides
        x = x.as_strided(x.shape, (x.shape[2] * x.shape[3], 1, x.shape[3], 1))
    x = F.relu(F.max_pool2d(F.conv2d(x, weight1, bias1, padding=1), 2))
    return F.relu(F.max_pool2d(F.conv2d(x, weight2, bias2, padding=1), 2)).flatten(1)


def copies(tensors):
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


class Group:
    """One group's data and weights."""

    def __init__(self, tower, x1, x2, y, initial):
        self.tower, self.x1, self.x2, self.y = tower, x1, x2, y
        self.theta0, self.theta1, self.theta2 = (copies(initial[part]) for part in ("combined", "hospital", "device"))

    def interval(self, subset, q, eta):
        """Exchange, Q steps of the hospital and of each device, local aggregation."""
        x1, x2, y = self.x1[subset], self.x2[subset], self.y[subset]
        frozen_theta0 = [tensor.detach().clone() for tensor in self.theta0]
        devices = [copies(self.theta2) for _ in subset]
        x2_of_device = x2.split(1)
        parameters = [*self.theta0, *self.theta1, *(tensor for theta2 in devices for tensor in theta2)]
        for step in range(q):
            zeta1 = self.tower(x1, self.theta1)
            zeta2 = torch.cat([self.tower(x, theta2) for x, theta2 in zip(x2_of_device, devices)])
            if step == 0:
                frozen_zeta1, frozen_zeta2 = zeta1.detach(), zeta2.detach()
            hospital_logits = F.linear(torch.cat((zeta1, frozen_zeta2), 1), *self.theta0)
            device_logits = F.linear(torch.cat((frozen_zeta1, zeta2), 1), *frozen_theta0)
            # The devices have no parameter in common: the sum of their losses gives each its own gradient.
            loss = F.cross_entropy(hospital_logits, y) + F.cross_entropy(device_logits, y, reduction="sum")
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                torch._foreach_add_(parameters, gradients, alpha=-eta)
        with torch.no_grad():
            for mean, of_devices in zip(self.theta2, zip(*devices)):
                torch.mean(torch.stack(of_devices), 0, out=mean)


class Peer:
    def __init__(self, problem, options):
        torch.set_num_threads(options.threads)
        self.problem = problem
        size = problem.size
        tower = lstm if size.tower == "lstm" else cnn
        channel = () if size.tower == "lstm" else (1,)  # an image is [1, height, width]
        initial = {part: [torch.tensor(array) for array in arrays] for part, arrays in problem.initial.items()}
        self.groups = []
        for first, count in zip(problem.first_rows, size.devices):
            rows = slice(first, first + count)
            x1, x2 = (torch.tensor(x[rows].reshape(count, *channel, *x.shape[1:])) for x in (problem.x1, problem.x2))
            self.groups.append(Group(tower, x1, x2, torch.tensor(problem.y[rows]), initial))

    def train(self, subsets):
        problem = self.problem
        subsets = torch.from_numpy(subsets)
        for interval, of_groups in enumerate(subsets, 1):
            for group, subset in zip(self.groups, of_groups):
                group.interval(subset, problem.q, problem.size.eta)
            if interval * problem.q % problem.p == 0:
                self.aggregate()

    @torch.no_grad()
    def aggregate(self):
        """All groups adopt the mean of the groups' weights, by their numbers of devices."""
        every = [[*group.theta0, *group.theta1, *group.theta2] for group in self.groups]
        total = torch._foreach_mul(every[0], self.problem.shares[0])
        for tensors, share in zip(every[1:], self.problem.shares[1:]):
            torch._foreach_add_(total, tensors, alpha=share)
        for tensors in every:
            torch._foreach_copy_(tensors, total)

    def weights(self):
        group = self.groups[0]
        return {part: [tensor.detach().numpy().copy() for tensor in tensors] for part, tensors in
                (("combined", group.theta0), ("hospital", group.theta1), ("device", group.theta2))}


def main():
    options = common.arguments(__doc__).parse_args()
    common.keep_freed_memory()
    problem = common.problem(common.SIZES[options.size], options.p, options.q)
    common.measure("pytorch_loop", Peer(problem, options), problem, options, f"torch {torch.__version__}")


if __name__ == "__main__":
    main()
