"""Optimisers, clipping and learning rates of a run in float64, from their definitions. A library: nothing to run here."""

import math

import torch


class Rates:
    """The learning rate of each iteration, from any initial one."""

    def __init__(self, train):
        self.iterations = train["iterations"]
        self.halve_every = train.get("halve_every")
        self.warm_up = train.get("warm_up") or 0
        self.cosine = train.get("schedule") == "cosine"

    def at(self, initial, t):
        eta = initial * 2.0 ** -(t // self.halve_every if self.halve_every else 0)
        if t < self.warm_up:
            return eta * (t + 1) / self.warm_up
        if self.cosine:
            return eta * (1 + math.cos(math.pi * (t - self.warm_up) / (self.iterations - self.warm_up))) / 2
        return eta


class Optimiser:
    """What a party keeps of some parameters from step to step: the optimiser of one tier."""

    def __init__(self, keys, tier):
        self.kind = keys.get(tier) or "sgd"
        self.momentum = keys.get("momentum", 0.9)
        self.betas = (keys.get("beta1", 0.9), keys.get("beta2", 0.999))
        self.epsilon = keys.get("epsilon", 1e-8)
        self.mean = self.square = 0.0
        self.steps = 0

    def step(self, theta, gradient, eta, decay=0.0):
        """The parameters after one step."""
        if self.kind == "adamw":
            theta = theta - eta * decay * theta
        else:
            gradient = gradient + decay * theta
        if self.kind == "sgd":
            return theta - eta * gradient
        if self.kind == "momentum":
            self.mean = self.momentum * self.mean + gradient
            return theta - eta * self.mean
        beta1, beta2 = self.betas
        self.steps += 1
        self.mean = beta1 * self.mean + (1 - beta1) * gradient
        self.square = beta2 * self.square + (1 - beta2) * gradient ** 2
        mean = self.mean / (1 - beta1 ** self.steps)
        square = self.square / (1 - beta2 ** self.steps)
        return theta - eta * mean / (torch.sqrt(square) + self.epsilon)


class Averager(Optimiser):
    """Of an edge or the cloud: steps from a model towards the mean of others."""

    def __init__(self, keys, tier):
        super().__init__(keys, tier)
        self.rate = keys.get(f"{tier}_rate") or (0.01 if self.kind == "adam" else 1.0)

    def move(self, theta, mean, left):
        """`left` is the share of the learning rate that is left: means come nearer with it, but Adam's steps do not."""
        return self.step(theta, theta - mean, self.rate * (left if self.kind == "adam" else 1.0))


def hospital_rate(keys, learning_rate):
    """The initial learning rate of hospitals."""
    usual = 0.001 if keys.get("hospital") in ("adam", "adamw") else learning_rate
    return keys.get("hospital_rate") or usual


def shortened(gradients, clip):
    """Gradients of one step, no longer together than `clip`; 0 leaves them as they are."""
    norm = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
    return [gradient * (clip / norm) for gradient in gradients] if clip and norm > clip else gradients
