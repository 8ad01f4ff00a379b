#!/usr/bin/python3
"""Writes larger cases of every layer, from random numbers, as PyTorch answers them.

    parity.py FOLDER [SEED]

The files have the form that layers.py describes; parity.sh hands them to test_golden.c. Data are
normal in float32, rounded to nothing: the file has all their digits. Settings go through the
combinations that golden.py cannot hold for their size; running statistics are followed for 100
batches, and networks for 100 steps.
"""
import os
import sys

import torch

import golden
from golden import batchnorm
from layers import (ADAM, BATCH_NORM, BATCH_RENORM, CENTRED, FROZEN, GROUP_NORM, INFER, L1, L2,
                    LAYER_NORM, LINF, NO_NORM, RELU, RMS_NORM, SGD, TANH, TRAIN, write_case)


class Random:
    """Normal numbers that float32 holds exactly, as float64."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def array(self, *shape, centre=0.0, spread=1.0):
        z = torch.randn(shape, generator=self.generator)
        return (z * spread + centre).float().double()

    def labels(self, classes, *shape):
        return torch.randint(classes, shape, generator=self.generator)

    def running(self, *shape):
        return {"running_mean": self.array(*shape), "running_var": self.array(*shape).abs() + 0.5}


# N, C, S: a layer of a network, columns wider than the library's strips, images, many rows, one. Of
# two or three channels the sums over thousands of random numbers might all be next to nothing, and
# then "relative to the largest" would ask for more than a float has.
TENSORS = (64, 128, 1), (9, 1037, 1), (7, 9, 143), (4, 16, 196), (2000, 9, 1), (1, 9, 997)


def batchnorm_cases(n):
    for mode, name in (TRAIN, "train"), (FROZEN, "frozen"), (INFER, "infer"):
        for N, C, S in TENSORS:
            yield ("%s, %d x %d x %d" % (name, N, C, S),
                   batchnorm(n, N, C, S, mode=mode, centre=0.5, spread=2))
    for title, more in (("momentum 0.1", {}), ("momentum 0.01", {"new_weight": 0.01}),
                        ("momentum None", {"cumulative": 1})):
        settings, arrays = batchnorm(n, 8, 6, 5, 100, centre=1, spread=3, **more)
        arrays.update(running_mean=torch.zeros(6).double(), running_var=torch.ones(6).double())
        yield "100 batches, " + title, (settings, arrays)


def renorm_cases(n):
    for title, (settings, arrays) in batchnorm_cases(n):
        limits = ((1.0, 0.0), (1.5, 0.5)) if settings["mode"] == TRAIN else ((3.0, 5.0),)
        for r_max, d_max in limits:
            if settings["C"] < 1000:
                yield ("%s, %g, %g" % (title, r_max, d_max),
                       (dict(settings, r_max=r_max, d_max=d_max), arrays))


def lp_cases(n):
    for kind, name in (L1, "L1"), (L2, "L2"), (LINF, "Linf"):
        for centred in 0, CENTRED:
            for title, (settings, arrays) in batchnorm_cases(n):
                if settings["C"] < 100 and (settings["mode"] == TRAIN) == (centred == CENTRED):
                    yield "%s%s, %s" % (name, ", centred" if centred else "", title), (
                        dict(settings, p=kind + centred), arrays)


def noisy_cases(n):
    for sizes in TENSORS:
        yield "%d x %d x %d" % sizes, golden.noisy(n, *sizes)


def sync_cases(n):
    for N, C, S, workers in (64, 128, 1, 4), (16, 5, 49, 3), (5, 3, 200, 8):
        title = "%d x %d x %d, %d workers" % (N, C, S, workers)
        yield title, golden.sync(n, N, C, S, workers)
        if S > 1:
            mask = torch.rand(N, S, generator=n.generator) < 0.7
            yield title + ", a mask", golden.sync(n, N, C, S, workers, mask.long())


def layernorm_cases(n, layer=golden.layernorm):
    for N, D in (64, 128), (5, 2049), (300, 9), (1, 4096), (16, 1000):
        yield "%d x %d" % (N, D), layer(n, N=N, D=D, centre=0.5, spread=2)


def rmsnorm_cases(n):
    return layernorm_cases(n, golden.rmsnorm)


def groupnorm_cases(n):
    for sizes in (32, 128, 1, 8), (4, 32, 49, 8), (3, 30, 64, 1), (3, 12, 101, 12):
        yield ("%d x %d x %d, %d groups" % sizes,
               golden.groupnorm(n, *sizes, centre=0.5, spread=2))


def instancenorm_cases(n):
    return ((title, case) for title, case in groupnorm_cases(n) if case[0]["G"] == case[0]["C"])


def linear_cases(n):
    # a running sum of n numbers in float is off by some sqrt(n) roundings: 784 would reach 2e-6
    for N, inputs, outputs in (64, 256, 128), (1, 37, 53), (128, 5, 9):
        yield ("%d, %d to %d" % (N, inputs, outputs),
               golden.linear(n, N, inputs, outputs, spread=inputs ** -0.5))


def activation_cases(n):
    return golden.activation_cases(n, 4000, 3)


def cross_entropy_cases(n):
    for N, C, spread in (256, 10, 1), (16, 1000, 4), (32, 10, 30):
        yield ("%d x %d, logits of %g" % (N, C, spread),
               golden.cross_entropy(n, N, C, spread=spread))


def optimizer_cases(n):
    return golden.optimizer_cases(n, 50, 100)


def mlp_params(n, sizes, norm):
    params = []
    for before, width in zip(sizes, sizes[1:]):
        params.append(n.array(before * width, spread=(2 / before) ** 0.5))
        if golden.has(norm, "gamma") and width != sizes[-1]:
            params.append(torch.ones(width).double())
        if golden.has(norm, "beta") or width == sizes[-1]:
            params.append(torch.zeros(width).double())
    return torch.cat(params)


def mlp_cases(n):
    """784-64-128-10 on batches of 64, of ten classes with means of their own."""
    N, batches, sizes = 64, 4, (784, 64, 128, 10)
    settings = {"inputs": sizes[0], "width1": sizes[1], "width2": sizes[2], "classes": sizes[3],
                "N": N, "batches": batches, "steps": 100, "G": 8, "eps": 1e-5, "new_weight": 0.1,
                "r_max": 3.0, "d_max": 5.0}
    sgd = {"optimizer": SGD, "lr": 0.05, "heavy_ball": 0.0, "adam_eps": 1e-8}
    momentum = dict(sgd, lr=0.01, heavy_ball=0.9)
    adam = dict(sgd, optimizer=ADAM, lr=1e-3)
    rules = (("tanh, SGD", dict(sgd, activation=TANH, drift=0)),
             ("tanh, SGD with momentum", dict(momentum, activation=TANH, drift=0)),
             ("tanh, Adam with eps 1e-4", dict(adam, adam_eps=1e-4, activation=TANH, drift=0)),
             ("ReLU, SGD with momentum", dict(momentum, activation=RELU, kinks=1)),
             ("ReLU, Adam", dict(adam, activation=RELU, kinks=1)))
    for i, (title, norm) in enumerate((
            ("no norm", NO_NORM), ("batch norm", BATCH_NORM), ("layer norm", LAYER_NORM),
            ("group norm", GROUP_NORM), ("RMS norm", RMS_NORM), ("batch renorm", BATCH_RENORM))):
        labels = n.labels(sizes[-1], batches, N)
        means = n.array(sizes[-1], sizes[0], spread=0.1)
        x = ((means[labels] + n.array(batches, N, sizes[0])) * 8).round() / 8
        arrays = {"params": mlp_params(n, sizes, norm), "x": x, "labels": labels}
        for name, rule in (rules[i % 2], rules[2], rules[3 + i % 2]):
            yield title + ", " + name, (dict(settings, norm=norm, **rule), arrays)


def weightnorm_cases(n):
    for sizes in (300, 64), (5, 1000), (3000, 3):
        yield "%d to %d" % sizes, golden.weightnorm(n, *sizes)


def fold_cases(n):
    for title, shape, terms in (("linear", (100, 64), 100), ("linear", (256, 10), 256),
                                ("convolution", (32, 16, 3, 3), 144)):
        yield ("%s, %s" % (title, " x ".join(map(str, shape))),
               golden.fold(n, *shape, examples=20, spread=terms ** -0.5))


def rnn_cases(n):
    for T, N, inputs, H in (5, 16, 12, 40), (20, 20, 7, 9):
        for norm, name in ((NO_NORM, "no norm"), (LAYER_NORM, "layer norm"),
                           (BATCH_NORM, "batch norm")):
            for kind, how in (TANH, "tanh"), (RELU, "ReLU"):
                yield ("%s, %s, %d steps, %d x %d" % (name, how, T, N, H),
                       golden.rnn(n, norm, kind, T=T, N=N, inputs=inputs, H=H,
                                  spreads=(1, inputs ** -0.5, H ** -0.5), gamma=(0.5, 0.1)))


CASES = {
    "linear": linear_cases, "activation": activation_cases, "cross_entropy": cross_entropy_cases,
    "batchnorm": batchnorm_cases, "noisy_batchnorm": noisy_cases, "sync_batchnorm": sync_cases,
    "batchrenorm": renorm_cases, "lp_batchnorm": lp_cases, "layernorm": layernorm_cases,
    "layernorm_std": layernorm_cases, "rmsnorm": rmsnorm_cases, "groupnorm": groupnorm_cases,
    "instancenorm": instancenorm_cases, "weightnorm": weightnorm_cases, "fold": fold_cases,
    "rnn": rnn_cases, "optimizer": optimizer_cases, "mlp": mlp_cases,
}


def main():
    torch.set_num_threads(1)
    folder, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for i, (layer, cases) in enumerate(CASES.items()):
        with open(os.path.join(folder, "%02d_%s.txt" % (i, layer)), "w") as file:
            for title, (settings, arrays) in cases(Random(seed * len(CASES) + i)):
                write_case(file, layer, title, settings, arrays)


if __name__ == "__main__":
    main()
