#!/usr/bin/python3
"""Writes tests/expected/torch_*.txt: small cases of every layer, as PyTorch answers them.

    golden.py [FOLDER [FILE...]]

All files, or those named (batchnorm, layernorm, ...), into tests/expected or another folder.
tests/layers/test_golden.c compares our answers with them, and wants no Python for that. The inputs
come from a generator of our own and are the same bytes on every machine; the answers are those of
the PyTorch named in the first line of each file. layers.py says how a file is to be read.
"""
import os
import sys

import torch

from layers import (ADAM, BATCH_NORM, BATCH_RENORM, CENTRED, FROZEN, GROUP_NORM, IDENTITY, INFER,
                    L1, L2, LAYER_NORM, LINF, NO_NORM, RELU, RMS_NORM, SGD, SIGMOID, TANH, TRAIN,
                    write_case)


class Numbers:
    """Multiples of 1/64 between -4 and 4, none of them 0, none twice in one array."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) * n >> 31

    def array(self, *shape, centre=0.0, spread=1.0):
        count = torch.Size(shape).numel()
        grid = list(range(-255, 256, 2))
        for i in range(count):  # the first steps of a shuffle
            j = i + self.below(len(grid) - i)
            grid[i], grid[j] = grid[j], grid[i]
        values = torch.tensor(grid[:count], dtype=torch.float64) / 64
        return values.reshape(shape) * spread + centre

    def labels(self, classes, *shape):
        count = torch.Size(shape).numel()
        return torch.tensor([self.below(classes) for _ in range(count)]).reshape(shape)


def affine(n, C):
    return {"gamma": n.array(C, centre=1, spread=0.25), "beta": n.array(C)}


def running(n, C):
    return {"running_mean": n.array(C), "running_var": n.array(C, centre=5)}


def batchnorm(n, N=5, C=2, S=1, batches=1, mode=TRAIN, eps=1e-5, new_weight=0.1, cumulative=0,
              plain=False, centre=0.0):
    size = (N, C) if S == 1 else (N, C, S)
    settings = {"N": N, "C": C, "S": S, "batches": batches, "mode": mode, "eps": eps,
                "new_weight": new_weight, "cumulative": cumulative}
    arrays = {"x": n.array(batches, *size, centre=centre), **({} if plain else affine(n, C)),
              **running(n, C)}
    return settings, arrays if mode == INFER else {**arrays, "dy": n.array(*size)}


def batchnorm_cases(n):
    yield "train, dense", batchnorm(n, N=7, C=3)
    yield "train, positions", batchnorm(n, N=3, C=2, S=4)
    yield "train, no gamma and beta", batchnorm(n, plain=True)
    yield "train, one example of four positions", batchnorm(n, N=1, C=2, S=4)
    yield "train, eps 1e-3", batchnorm(n, eps=1e-3)
    yield "train, eps 1e-12", batchnorm(n, eps=1e-12)
    yield "train, mean of 20", batchnorm(n, centre=20)
    yield "train, three batches, momentum 0.01", batchnorm(n, N=2, S=3, batches=3, new_weight=0.01)
    yield "train, three batches, momentum None", batchnorm(n, batches=3, cumulative=1)
    yield "infer, dense", batchnorm(n, mode=INFER)
    yield "infer, positions", batchnorm(n, N=2, C=2, S=4, mode=INFER, plain=True)
    yield "frozen, dense", batchnorm(n, mode=FROZEN)
    yield "frozen, positions", batchnorm(n, N=2, C=2, S=4, mode=FROZEN, eps=1e-3)


def noisy_cases(n):
    for title, N, C, S in ("dense", 5, 3, 1), ("positions", 2, 3, 4):
        size = (N, C) if S == 1 else (N, C, S)
        yield title, ({"N": N, "C": C, "S": S, "eps": 1e-5},
                      {"x": n.array(*size), **affine(n, C), "dy": n.array(*size),
                       "scale": n.array(*size, centre=1.125, spread=0.125),
                       "offset": n.array(*size, spread=0.25)})


def layernorm(n, N=3, D=5, eps=1e-5, plain=False, centre=0.0):
    return ({"N": N, "D": D, "eps": eps},
            {"x": n.array(N, D, centre=centre), **({} if plain else affine(n, D)),
             "dy": n.array(N, D)})


def layernorm_cases(n):
    yield "plain", layernorm(n)
    yield "no gamma and beta", layernorm(n, plain=True)
    yield "one row", layernorm(n, N=1, D=8)
    yield "eps 1e-3", layernorm(n, eps=1e-3)
    yield "eps 1e-12", layernorm(n, eps=1e-12)
    yield "mean of 20", layernorm(n, centre=20)


def layernorm_std_cases(n):
    yield "plain", layernorm(n)
    yield "two features, eps 0.3", layernorm(n, D=2, eps=0.3)  # less, and dx is all cancellation
    yield "eps 1e-6", layernorm(n, eps=1e-6)
    yield "eps 0.3, no gamma and beta", layernorm(n, eps=0.3, plain=True)


def rmsnorm_cases(n):
    for title, more in (("plain", {}), ("eps 1e-12", {"eps": 1e-12}), ("no gamma", {"plain": True}),
                        ("mean of 20", {"centre": 20})):
        settings, arrays = layernorm(n, **more)
        arrays.pop("beta", None)
        yield title, (settings, arrays)


def groupnorm(n, N=2, C=4, S=1, G=2, eps=1e-5, plain=False):
    size = (N, C) if S == 1 else (N, C, S)
    settings = {"N": N, "C": C, "S": S, "G": G, "eps": eps}
    return settings, {"x": n.array(*size), **({} if plain else affine(n, C)), "dy": n.array(*size)}


def groupnorm_cases(n):
    yield "dense, two groups", groupnorm(n, C=6)
    yield "positions, one group", groupnorm(n, S=3, G=1)
    yield "positions, two groups", groupnorm(n, S=3)
    yield "positions, a group per channel", groupnorm(n, S=3, G=4)
    yield "no gamma and beta", groupnorm(n, C=3, S=2, G=1, plain=True)
    yield "eps 1e-3", groupnorm(n, C=3, S=4, G=3, eps=1e-3)


def instancenorm_cases(n):
    yield "positions", groupnorm(n, C=3, S=5, G=3)
    yield "no gamma and beta", groupnorm(n, C=2, S=4, G=2, plain=True)


def sync_cases(n):
    def case(N, C, S, workers, mask=None):
        size = (N, C) if S == 1 else (N, C, S)
        settings = {"N": N, "C": C, "S": S, "workers": workers, "eps": 1e-5, "new_weight": 0.1}
        arrays = {"x": n.array(*size), **affine(n, C), **running(n, C), "dy": n.array(*size)}
        return settings, dict(arrays, mask=torch.tensor(mask)) if mask else arrays
    yield "three workers, dense", case(5, 3, 1, 3)
    yield "two workers, positions", case(3, 2, 4, 2)
    yield "more workers than examples", case(2, 2, 3, 4)
    yield "a mask, one worker", case(3, 2, 4, 1, [[1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0]])
    yield "a mask, three workers", case(4, 2, 3, 3, [[1, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1]])


def renorm_cases(n):
    def case(r_max, d_max, mode=TRAIN, **more):
        settings, arrays = batchnorm(n, mode=mode, **more)
        return dict(settings, r_max=r_max, d_max=d_max), arrays
    yield "train, no limit reached", case(100.0, 100.0)
    yield "train, both limits", case(1.25, 0.25, N=3, S=4)
    yield "train, limits of plain batch norm", case(1.0, 0.0)
    yield "train, three batches", case(3.0, 5.0, batches=3, new_weight=0.25)
    yield "train, three batches, momentum None", case(1.5, 0.5, batches=3, cumulative=1)
    yield "infer", case(3.0, 5.0, INFER)
    yield "frozen", case(3.0, 5.0, FROZEN, N=2, S=3)


def lp_cases(n):
    def case(p, mode=TRAIN, **more):
        settings, arrays = batchnorm(n, mode=mode, **more)
        arrays["running_var"] = arrays["running_var"].abs() / 4
        return dict(settings, p=p), arrays
    for name, p in ("L1", L1), ("L2", L2), ("Linf", LINF):
        yield name + ", dense", case(p)
        yield name + ", centred, positions", case(p + CENTRED, N=3, C=2, S=4)
    yield "L1, three batches", case(L1, batches=3, new_weight=0.25)
    yield "Linf, three batches, momentum None", case(LINF, batches=3, cumulative=1)
    yield "L2, centred, eps 1e-3, no gamma and beta", case(L2 + CENTRED, eps=1e-3, plain=True)
    yield "L1, centred, mean of 20", case(L1 + CENTRED, centre=20)
    yield "L1, infer", case(L1, INFER)
    yield "Linf, frozen", case(LINF, FROZEN, N=2, S=3)


def weightnorm_cases(n):
    for title, inputs, outputs in ("four to three", 4, 3), ("two to one", 2, 1):
        arrays = {"v": n.array(inputs, outputs), "g": n.array(outputs),
                  "dW": n.array(inputs, outputs)}
        yield title, ({"in": inputs, "out": outputs}, arrays)
    del arrays["g"]
    arrays.update(v=n.array(5, 2), dW=n.array(5, 2))
    yield "no lengths", ({"in": 5, "out": 2}, arrays)


def fold_cases(n):
    settings = {"eps": 1e-5, "outer": 4, "C": 3, "inner": 1}
    arrays = {"W": n.array(4, 3), "b": n.array(3), **running(n, 3), **affine(n, 3),
              "x": n.array(2, 4)}
    yield "linear", (settings, arrays)
    del arrays["gamma"], arrays["beta"], arrays["b"]
    yield "linear, no bias, gamma and beta", (dict(settings, eps=1e-3), arrays)
    yield "convolution", ({"eps": 1e-5, "outer": 1, "C": 2, "inner": 12},
                          {"W": n.array(2, 3, 2, 2), "b": n.array(2), **running(n, 2),
                           **affine(n, 2)})


def rnn_cases(n):
    def case(norm, activation, mode=TRAIN, plain=False, T=5, N=2, inputs=2, H=3):
        settings = {"T": T, "N": N, "in": inputs, "H": H, "norm": norm, "activation": activation,
                    "mode": mode, "eps": 1e-5, "new_weight": 0.1, "cumulative": 0}
        arrays = {"x": n.array(T, N, inputs), "h0": n.array(N, H, spread=0.25),
                  "Wx": n.array(inputs, H, spread=0.25), "Wh": n.array(H, H, spread=0.25),
                  **({} if plain else affine(n, H)), "dh": n.array(T + 1, N, H)}
        if norm == BATCH_NORM:
            arrays.update(running_mean=n.array(T, H), running_var=n.array(T, H, centre=5))
        if norm == NO_NORM:
            arrays.pop("gamma", None)
        return settings, arrays
    yield "no norm, tanh", case(NO_NORM, TANH, T=3)
    yield "no norm, ReLU, no bias", case(NO_NORM, RELU, plain=True, T=3)
    yield "layer norm, tanh", case(LAYER_NORM, TANH)
    yield "layer norm, ReLU", case(LAYER_NORM, RELU)
    yield "layer norm, sigmoid, no gamma and beta", case(LAYER_NORM, SIGMOID, plain=True, T=3)
    yield "batch norm, tanh", case(BATCH_NORM, TANH, T=3, N=4)
    yield "batch norm, tanh, frozen", case(BATCH_NORM, TANH, FROZEN, T=3)
    yield "one step", case(LAYER_NORM, TANH, T=1)


def linear_cases(n):
    for title, N, inputs, outputs in ("wide", 3, 5, 2), ("one example", 1, 3, 4):
        arrays = {"x": n.array(N, inputs), "W": n.array(inputs, outputs), "b": n.array(outputs),
                  "dy": n.array(N, outputs)}
        yield title, ({"N": N, "in": inputs, "out": outputs}, arrays)
        del arrays["b"]
        yield title + ", no bias", ({"N": N, "in": inputs, "out": outputs}, arrays)


def activation_cases(n):
    for title, kind in ("identity", IDENTITY), ("ReLU", RELU), ("tanh", TANH), ("sigmoid", SIGMOID):
        yield title, ({"activation": kind}, {"x": n.array(12, spread=2), "dy": n.array(12)})


def cross_entropy_cases(n):
    for title, spread in ("logits of a few units", 1), ("logits of tens", 16):
        yield title, ({"N": 4, "C": 5}, {"logits": n.array(4, 5, spread=spread),
                                         "labels": n.labels(5, 4)})


def optimizer_cases(n):
    def case(rule, lr, heavy_ball):
        return ({"optimizer": rule, "lr": lr, "heavy_ball": heavy_ball,
                 "adam_eps": 1e-8},
                {"params": n.array(6), "grads": n.array(5, 6)})
    yield "SGD", case(SGD, 0.1, 0.0)
    yield "SGD, momentum 0.9", case(SGD, 0.01, 0.9)
    yield "Adam", case(ADAM, 1e-3, 0.0)


def has(norm, name):
    """Has a layer with this norm a gamma, a beta? Without a norm, the bias is what beta is."""
    return norm != NO_NORM if name == "gamma" else norm != RMS_NORM


def mlp_cases(n):
    for title, norm, rule, lr, heavy_ball in (
            ("no norm, SGD", NO_NORM, SGD, 0.1, 0.0),
            ("batch norm, SGD with momentum", BATCH_NORM, SGD, 0.05, 0.9),
            ("batch norm, Adam", BATCH_NORM, ADAM, 0.01, 0.0),
            ("layer norm, SGD", LAYER_NORM, SGD, 0.1, 0.0),
            ("layer norm, Adam", LAYER_NORM, ADAM, 0.01, 0.0),
            ("group norm, SGD", GROUP_NORM, SGD, 0.1, 0.0),
            ("RMS norm, Adam", RMS_NORM, ADAM, 0.01, 0.0),
            ("batch renorm, SGD", BATCH_RENORM, SGD, 0.1, 0.0)):
        inputs, width1, width2, classes, N = 3, 4, 4, 2, 6
        settings = {"inputs": inputs, "width1": width1, "width2": width2, "classes": classes,
                    "N": N, "batches": 2, "steps": 5, "norm": norm, "G": 2,
                    "activation": TANH, "eps": 1e-5, "new_weight": 0.1, "r_max": 1.5, "d_max": 0.5,
                    "optimizer": rule, "lr": lr, "heavy_ball": heavy_ball,
                    "adam_eps": 1e-8}
        params, before = [], inputs
        for width in (width1, width2):
            params.append(n.array(before * width, spread=0.25))
            gamma_beta = affine(n, width)
            params += [v for name, v in gamma_beta.items() if has(norm, name)]
            before = width
        params += [n.array(before * classes, spread=0.25), n.array(classes, spread=0.25)]
        yield title, (settings, {"params": torch.cat(params), "x": n.array(2, N, inputs),
                                 "labels": n.labels(classes, 2, N)})


FILES = {
    "batchnorm": {"batchnorm": batchnorm_cases},
    "noisy": {"noisy_batchnorm": noisy_cases},
    "sync": {"sync_batchnorm": sync_cases},
    "renorm": {"batchrenorm": renorm_cases},
    "layernorm": {"layernorm": layernorm_cases, "layernorm_std": layernorm_std_cases,
                  "rmsnorm": rmsnorm_cases},
    "groupnorm": {"groupnorm": groupnorm_cases, "instancenorm": instancenorm_cases},
    "lp": {"lp_batchnorm": lp_cases},
    "weightnorm": {"weightnorm": weightnorm_cases},
    "fold": {"fold": fold_cases},
    "rnn": {"rnn": rnn_cases},
    "linear": {"linear": linear_cases, "activation": activation_cases,
               "cross_entropy": cross_entropy_cases},
    "training": {"optimizer": optimizer_cases, "mlp": mlp_cases},
}


def main():
    torch.set_num_threads(1)
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "expected")
    for name in sys.argv[2:] or FILES:
        with open(os.path.join(folder, "torch_%s.txt" % name), "w") as file:
            file.write("# written by tests/parity/golden.py with PyTorch %s; tests/parity/layers.py"
                       " explains it\n\n" % torch.__version__)
            for seed, (layer, cases) in enumerate(FILES[name].items()):
                for title, (settings, arrays) in cases(Numbers(seed + 1)):
                    write_case(file, layer, title, settings, arrays)


main()
