"""What a run learns, from the definitions in docs/outcomes.md: targets as exported, losses in float64. A library: nothing
to run here.

An objective's `losses(logits, y)` are those of each sample. Whatever it needs to know of the training rows (how often a
class is, mean and deviation of a quantity, where intervals end) is worked out here, from the rows themselves.
"""

import torch
import torch.nn.functional as F

import hsgd

INTERVALS = 12  # the default of data.intervals


def objective_of(manifest, y):
    """The objective of a run whose training rows, of all groups, have these targets."""
    experiment = manifest["experiment"]
    data, train = experiment.get("data", {}), experiment.get("train", {})
    kind = manifest["data"].get("outcome", "class")
    weights = train.get("class_weights", "none")
    if kind == "class":
        return Classes(weights, y, len(manifest["data"]["classes"]))
    if kind == "labels":
        return Labels(weights, y)
    if kind == "quantity":
        return Quantity(train, y)
    if kind == "survival":
        return Survival(y, data.get("intervals", INTERVALS), data.get("horizon"))
    raise hsgd.BadInput(f"the run's outcome is {kind}; known are class, labels, quantity and survival")


def listed(weights, count):
    """Weights that an experiment lists."""
    if not isinstance(weights, list) or len(weights) != count:
        raise hsgd.BadInput(f"class_weights is {weights!r} in manifest.json, expected \"none\", \"balanced\" or "
                            f"{count} numbers")
    return torch.tensor(weights, dtype=torch.float64)


class Classes:
    """One of several classes: softmax and cross-entropy. Balanced, all classes weigh the same together."""

    def __init__(self, weights, y, classes):
        counts = torch.bincount(y, minlength=classes).to(torch.float64)
        if weights == "none":
            self.weights = torch.ones(classes)
        elif weights == "balanced":
            self.weights = torch.where(counts > 0, counts.sum() / (classes * counts), torch.zeros(classes))
        else:
            self.weights = listed(weights, classes)

    def losses(self, logits, y):
        return hsgd.losses(logits, y, self.weights)


class Labels:
    """Several questions of yes (1) and no (0), or unknown (NaN): a logistic function for each. Balanced, yes and no weigh
    the same together, label for label; a listed weight is that of both."""

    def __init__(self, weights, y):
        labels = y.shape[1]
        counts = torch.stack([(y == 0).sum(dim=0), (y == 1).sum(dim=0)]).to(torch.float64)
        if weights == "none":
            self.weights = torch.ones(2, labels)
        elif weights == "balanced":
            self.weights = torch.where(counts > 0, counts.sum(dim=0) / (2 * counts), torch.zeros(2, labels))
        else:
            self.weights = listed(weights, labels).expand(2, labels)

    def losses(self, logits, y):
        """The sum over known labels, divided by the number of all."""
        no, yes = self.weights
        of_no = -no * F.logsigmoid(-logits)
        of_yes = -yes * F.logsigmoid(logits)
        nothing = torch.zeros_like(logits)
        each = torch.where(y == 1, of_yes, torch.where(y == 0, of_no, nothing))
        return each.sum(dim=1) / y.shape[1]


class Quantity:
    """How many standard deviations a number is from the mean of the training rows."""

    def __init__(self, train, y):
        self.mean, self.deviation = y.mean(), y.std(unbiased=False)
        self.loss = train.get("loss", "squared")
        self.far, self.quantile = train.get("huber", 1.0), train.get("quantile", 0.5)
        if self.loss not in ("squared", "huber", "quantile"):
            raise hsgd.BadInput(f"train.loss is {self.loss}; known are squared, huber and quantile")

    def losses(self, logits, y):
        off = ((y - self.mean) / self.deviation - logits)[:, 0]
        if self.loss == "squared":
            return off.square() / 2
        if self.loss == "huber":
            return torch.where(off.abs() <= self.far, off.square() / 2, self.far * (off.abs() - self.far / 2))
        return torch.where(off > 0, self.quantile * off, (self.quantile - 1) * off)


class Survival:
    """A time, and whether the event was then (1) or had not been until then (0). For each interval there is a hazard, the
    probability of the event there for whoever comes to it."""

    def __init__(self, y, intervals, horizon):
        times = sorted(time for time, event in y.tolist() if event == 1)
        horizon = times[-1] if horizon is None else horizon
        times = [time for time in times if time <= horizon]
        inner = [times[k * len(times) // intervals] for k in range(1, intervals)]
        ends = [*inner, horizon]
        if ends[0] <= 0 or any(a >= b for a, b in zip(ends, ends[1:])):
            ends = [horizon * k / intervals for k in range(1, intervals + 1)]
        self.ends = torch.tensor(ends, dtype=torch.float64)

    def losses(self, logits, y):
        """Minus the logarithm of the likelihood of what is known of each patient."""
        time, event = y[:, :1], y[:, 1:] == 1
        begins = torch.cat([torch.tensor([-1.0]), self.ends[:-1]])
        # What happens at an end is in the interval that ends there; who left then has come through it.
        there = event & (begins < time) & (time <= self.ends)
        through = torch.where(event, self.ends < time, self.ends <= time)
        nothing = torch.zeros_like(logits)
        each = torch.where(there, F.logsigmoid(logits), torch.where(through, F.logsigmoid(-logits), nothing))
        return -each.sum(dim=1)
