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

from layers import (ADAM, BATCH_NORM, BATCH_RENORM, CENTRED, FROZEN, GROUP_NORM, IDENTITY, INFER,
                    L1, L2, LAYER_NORM, LINF, NO_NORM, RELU, RMS_NORM, SGD, SIGMOID, TANH, TRAIN,
                    write_case)

EPS = 1e-5


class Random:
    """Normal numbers that float32 holds exactly, as float64."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def array(self, *shape, centre=0.0, spread=1.0):
        z = torch.randn(shape, generator=self.generator)
        return (z * spread + centre).float().double()

    def labels(self, classes, *shape):
        return torch.randint(classes, shape, generator=self.generator)


def tensor_shape(N, C, S):
    return (N, C) if S == 1 else (N, C, S)


def affine(n, C):
    return {"gamma": n.array(C, centre=1, spread=0.25), "beta": n.array(C)}


def running(n, C):
    return {"running_mean": n.array(C), "running_var": n.array(C).abs() + 0.5}


# N, C, S: a layer of a network, columns wider than the library's strips, images, many rows, one. Of
# two or three channels the sums over thousands of random numbers might all be next to nothing, and
# then "relative to the largest" would ask for more than a float has.
TENSORS = (64, 128, 1), (9, 1037, 1), (7, 9, 143), (4, 16, 196), (2000, 9, 1), (1, 9, 997)


def batchnorm_cases(n):
    for mode, name in (TRAIN, "train"), (FROZEN, "frozen"), (INFER, "infer"):
        for N, C, S in TENSORS:
            size = tensor_shape(N, C, S)
            settings = {"N": N, "C": C, "S": S, "batches": 1, "mode": mode, "eps": EPS,
                        "new_weight": 0.1, "cumulative": 0}
            arrays = {"x": n.array(1, *size, centre=0.5, spread=2), **affine(n, C),
                      **running(n, C)}
            if mode != INFER:
                arrays["dy"] = n.array(*size)
            yield "%s, %d x %d x %d" % (name, N, C, S), (settings, arrays)
    for title, new_weight, cumulative in (("momentum 0.1", 0.1, 0), ("momentum 0.01", 0.01, 0),
                                          ("momentum None", 0.1, 1)):
        N, C, S = 8, 6, 5
        yield "100 batches, " + title, (
            {"N": N, "C": C, "S": S, "batches": 100, "mode": TRAIN, "eps": EPS,
             "new_weight": new_weight, "cumulative": cumulative},
            {"x": n.array(100, N, C, S, centre=1, spread=3), **affine(n, C),
             "running_mean": torch.zeros(C).double(), "running_var": torch.ones(C).double(),
             "dy": n.array(N, C, S)})


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
    for N, C, S in TENSORS:
        size = tensor_shape(N, C, S)
        yield "%d x %d x %d" % (N, C, S), (
            {"N": N, "C": C, "S": S, "eps": EPS},
            {"x": n.array(*size), **affine(n, C), "dy": n.array(*size),
             "scale": n.array(*size, centre=1.125, spread=0.1),
             "offset": n.array(*size, spread=0.3)})


def sync_cases(n):
    for N, C, S, workers in (64, 128, 1, 4), (16, 5, 49, 3), (5, 3, 200, 8):
        for share in (1, 0.7) if S > 1 else (1,):
            size = tensor_shape(N, C, S)
            arrays = {"x": n.array(*size), **affine(n, C), **running(n, C), "dy": n.array(*size)}
            if share < 1:
                arrays["mask"] = (torch.rand(N, S, generator=n.generator) < share).long()
            masked = ", a mask" if "mask" in arrays else ""
            yield ("%d x %d x %d, %d workers%s" % (N, C, S, workers, masked),
                   ({"N": N, "C": C, "S": S, "workers": workers, "eps": EPS, "new_weight": 0.1},
                    arrays))


def layernorm_cases(n, with_beta=True):
    for N, D in (64, 128), (5, 2049), (300, 9), (1, 4096), (16, 1000):
        arrays = {"x": n.array(N, D, centre=0.5, spread=2), **affine(n, D), "dy": n.array(N, D)}
        if not with_beta:
            del arrays["beta"]
        yield "%d x %d" % (N, D), ({"N": N, "D": D, "eps": EPS}, arrays)


def rmsnorm_cases(n):
    return layernorm_cases(n, with_beta=False)


def groupnorm_cases(n):
    for N, C, S, G in (32, 128, 1, 8), (4, 32, 49, 8), (3, 30, 64, 1), (3, 12, 101, 12):
        size = tensor_shape(N, C, S)
        yield "%d x %d x %d, %d groups" % (N, C, S, G), (
            {"N": N, "C": C, "S": S, "G": G, "eps": EPS},
            {"x": n.array(*size, centre=0.5, spread=2), **affine(n, C), "dy": n.array(*size)})


def instancenorm_cases(n):
    return ((title, case) for title, case in groupnorm_cases(n) if case[0]["G"] == case[0]["C"])


def linear_cases(n):
    # a running sum of n numbers in float is off by some sqrt(n) roundings: 784 would reach 2e-6
    for N, inputs, outputs in (64, 256, 128), (1, 37, 53), (128, 5, 9):
        yield "%d, %d to %d" % (N, inputs, outputs), (
            {"N": N, "in": inputs, "out": outputs},
            {"x": n.array(N, inputs), "W": n.array(inputs, outputs, spread=inputs ** -0.5),
             "b": n.array(outputs), "dy": n.array(N, outputs)})


def activation_cases(n):
    for title, kind in ("identity", IDENTITY), ("ReLU", RELU), ("tanh", TANH), ("sigmoid", SIGMOID):
        yield title, ({"activation": kind}, {"x": n.array(4000, spread=3), "dy": n.array(4000)})


def cross_entropy_cases(n):
    for N, C, spread in (256, 10, 1), (16, 1000, 4), (32, 10, 30):
        yield "%d x %d, logits of %g" % (N, C, spread), (
            {"N": N, "C": C}, {"logits": n.array(N, C, spread=spread), "labels": n.labels(C, N)})


def optimizer_cases(n):
    for title, rule, lr, heavy_ball in (("SGD", SGD, 0.1, 0.0), ("SGD, momentum", SGD, 0.01, 0.9),
                                        ("Adam", ADAM, 1e-3, 0.0)):
        yield title + ", 100 steps", ({"optimizer": rule, "lr": lr, "heavy_ball": heavy_ball,
                                       "adam_eps": 1e-8},
                                      {"params": n.array(50), "grads": n.array(100, 50)})


def mlp_params(n, sizes, norm):
    params = []
    for before, width in zip(sizes, sizes[1:]):
        params.append(n.array(before * width, spread=(2 / before) ** 0.5))
        if norm != NO_NORM and width != sizes[-1]:
            params.append(torch.ones(width).double())
        if norm != RMS_NORM or width == sizes[-1]:
            params.append(torch.zeros(width).double())
    return torch.cat(params)


def mlp_cases(n):
    """784-64-128-10 on batches of 64, of ten classes with means of their own."""
    N, batches, sizes = 64, 4, (784, 64, 128, 10)
    settings = {"inputs": sizes[0], "width1": sizes[1], "width2": sizes[2], "classes": sizes[3],
                "N": N, "batches": batches, "steps": 100, "G": 8, "eps": EPS, "new_weight": 0.1,
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
    for inputs, outputs in (300, 64), (5, 1000), (3000, 3):
        yield "%d to %d" % (inputs, outputs), (
            {"in": inputs, "out": outputs},
            {"v": n.array(inputs, outputs), "g": n.array(outputs), "dW": n.array(inputs, outputs)})


def fold_cases(n):
    for title, shape in (("linear", (100, 64)), ("linear", (256, 10)),
                         ("convolution", (32, 16, 3, 3))):
        outer, C, inner = (1, shape[0], 144) if len(shape) > 2 else (*shape, 1)
        arrays = {"W": n.array(*shape, spread=(outer * inner) ** -0.5), "b": n.array(C),
                  **running(n, C), **affine(n, C)}
        if inner == 1:
            arrays["x"] = n.array(20, outer)
        yield "%s, %s" % (title, " x ".join(map(str, shape))), (
            {"eps": EPS, "outer": outer, "C": C, "inner": inner}, arrays)


def rnn_cases(n):
    for T, N, inputs, H in (5, 16, 12, 40), (20, 20, 7, 9):
        for norm, name in ((NO_NORM, "no norm"), (LAYER_NORM, "layer norm"),
                           (BATCH_NORM, "batch norm")):
            for kind, how in (TANH, "tanh"), (RELU, "ReLU"):
                settings = {"T": T, "N": N, "in": inputs, "H": H, "norm": norm, "mode": TRAIN,
                            "activation": kind, "eps": EPS, "new_weight": 0.1}
                arrays = {"x": n.array(T, N, inputs), "h0": n.array(N, H), "beta": n.array(H),
                          "Wx": n.array(inputs, H, spread=inputs ** -0.5),
                          "Wh": n.array(H, H, spread=H ** -0.5), "dh": n.array(T + 1, N, H)}
                if norm != NO_NORM:
                    arrays["gamma"] = n.array(H, centre=0.5, spread=0.1)
                if norm == BATCH_NORM:
                    arrays.update(running_mean=n.array(T, H), running_var=n.array(T, H).abs() + 0.5)
                yield "%s, %s, %d steps, %d x %d" % (name, how, T, N, H), (settings, arrays)


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
