#!/usr/bin/python3
"""Writes tests/expected/torch_*.txt: small cases of every layer, as PyTorch answers them.

    golden.py [FOLDER [FILE...]]

All files, or those named (batchnorm, layernorm, ...), into tests/expected or another folder.
tests/layers/test_golden.c compares our answers with them, and wants no Python for that. The inputs
come from a generator of our own and are the same bytes on every machine; the answers are those of
the PyTorch named in the first line of each file. layers.py says how a file is to be read.

A function named after a layer makes one case, of the numbers n; parity.py makes larger ones of it.
"""
import math
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

    def running(self, *shape):
        return {"running_mean": self.array(*shape), "running_var": self.array(*shape, centre=5)}


def affine(n, C, centre=1, spread=0.25):
    return {"gamma": n.array(C, centre=centre, spread=spread), "beta": n.array(C)}


def tensor_shape(N, C, S):
    return (N, C) if S == 1 else (N, C, S)


def batchnorm(n, N=5, C=2, S=1, batches=1, mode=TRAIN, eps=1e-5, new_weight=0.1, cumulative=0,
              plain=False, **spread):
    size = tensor_shape(N, C, S)
    settings = {"N": N, "C": C, "S": S, "batches": batches, "mode": mode, "eps": eps,
                "new_weight": new_weight, "cumulative": cumulative}
    arrays = {"x": n.array(batches, *size, **spread), **({} if plain else affine(n, C)),
              **n.running(C)}
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


def noisy(n, N, C, S):
    size = tensor_shape(N, C, S)
    return ({"N": N, "C": C, "S": S, "eps": 1e-5},
            {"x": n.array(*size), **affine(n, C), "dy": n.array(*size),
             "scale": n.array(*size, centre=1.125, spread=0.125),
             "offset": n.array(*size, spread=0.25)})


def noisy_cases(n):
    yield "dense", noisy(n, 5, 3, 1)
    yield "positions", noisy(n, 2, 3, 4)


def layernorm(n, N=3, D=5, eps=1e-5, plain=False, **spread):
    return ({"N": N, "D": D, "eps": eps},
            {"x": n.array(N, D, **spread), **({} if plain else affine(n, D)), "dy": n.array(N, D)})


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


def rmsnorm(n, **more):
    settings, arrays = layernorm(n, **more)
    arrays.pop("beta", None)
    return settings, arrays


def rmsnorm_cases(n):
    yield "plain", rmsnorm(n)
    yield "eps 1e-12", rmsnorm(n, eps=1e-12)
    yield "no gamma", rmsnorm(n, plain=True)
    yield "mean of 20", rmsnorm(n, centre=20)


def groupnorm(n, N=2, C=4, S=1, G=2, eps=1e-5, plain=False, **spread):
    size = tensor_shape(N, C, S)
    return ({"N": N, "C": C, "S": S, "G": G, "eps": eps},
            {"x": n.array(*size, **spread), **({} if plain else affine(n, C)),
             "dy": n.array(*size)})


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


def sync(n, N, C, S, workers, mask=None):
    size = tensor_shape(N, C, S)
    settings = {"N": N, "C": C, "S": S, "workers": workers, "eps": 1e-5, "new_weight": 0.1}
    arrays = {"x": n.array(*size), **affine(n, C), **n.running(C), "dy": n.array(*size)}
    return settings, arrays if mask is None else dict(arrays, mask=torch.as_tensor(mask))


def sync_cases(n):
    yield "three workers, dense", sync(n, 5, 3, 1, 3)
    yield "two workers, positions", sync(n, 3, 2, 4, 2)
    yield "more workers than examples", sync(n, 2, 2, 3, 4)
    yield "a mask, one worker", sync(n, 3, 2, 4, 1, [[1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0]])
    yield "a mask, three workers", sync(n, 4, 2, 3, 3,
                                        [[1, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1]])


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


def weightnorm(n, inputs, outputs):
    return ({"in": inputs, "out": outputs},
            {"v": n.array(inputs, outputs), "g": n.array(outputs), "dW": n.array(inputs, outputs)})


def weightnorm_cases(n):
    yield "four to three", weightnorm(n, 4, 3)
    yield "two to one", weightnorm(n, 2, 1)
    yield "no lengths", ({"in": 5, "out": 2}, {"v": n.array(5, 2), "dW": n.array(5, 2)})


def fold(n, *shape, examples=0, **spread):
    """Of a linear layer, [in][out], or a convolution, [out][in][rows][columns]."""
    outer, C, inner = (1, shape[0], math.prod(shape[1:])) if len(shape) > 2 else (*shape, 1)
    arrays = {"W": n.array(*shape, **spread), "b": n.array(C), **n.running(C), **affine(n, C)}
    if inner == 1:
        arrays["x"] = n.array(examples, outer)
    return {"eps": 1e-5, "outer": outer, "C": C, "inner": inner}, arrays


def fold_cases(n):
    settings, arrays = fold(n, 4, 3, examples=2)
    yield "linear", (settings, arrays)
    del arrays["gamma"], arrays["beta"], arrays["b"]
    yield "linear, no bias, gamma and beta", (dict(settings, eps=1e-3), arrays)
    yield "convolution", fold(n, 2, 3, 2, 2)


def rnn(n, norm, activation, mode=TRAIN, plain=False, T=5, N=2, inputs=2, H=3,
        spreads=(0.25, 0.25, 0.25), gamma=(1, 0.25)):
    """The spreads are those of h0, Wx and Wh; gamma has a centre and a spread."""
    settings = {"T": T, "N": N, "in": inputs, "H": H, "norm": norm, "activation": activation,
                "mode": mode, "eps": 1e-5, "new_weight": 0.1, "cumulative": 0}
    arrays = {"x": n.array(T, N, inputs), "h0": n.array(N, H, spread=spreads[0]),
              "Wx": n.array(inputs, H, spread=spreads[1]), "Wh": n.array(H, H, spread=spreads[2]),
              **({} if plain else affine(n, H, *gamma)), "dh": n.array(T + 1, N, H)}
    if norm == BATCH_NORM:
        arrays.update(n.running(T, H))
    if norm == NO_NORM:
        arrays.pop("gamma", None)
    return settings, arrays


def rnn_cases(n):
    yield "no norm, tanh", rnn(n, NO_NORM, TANH, T=3)
    yield "no norm, ReLU, no bias", rnn(n, NO_NORM, RELU, plain=True, T=3)
    yield "layer norm, tanh", rnn(n, LAYER_NORM, TANH)
    yield "layer norm, ReLU", rnn(n, LAYER_NORM, RELU)
    yield "layer norm, sigmoid, no gamma and beta", rnn(n, LAYER_NORM, SIGMOID, plain=True, T=3)
    yield "batch norm, tanh", rnn(n, BATCH_NORM, TANH, T=3, N=4)
    yield "batch norm, tanh, frozen", rnn(n, BATCH_NORM, TANH, FROZEN, T=3)
    yield "one step", rnn(n, LAYER_NORM, TANH, T=1)


def linear(n, N, inputs, outputs, **spread):
    return ({"N": N, "in": inputs, "out": outputs},
            {"x": n.array(N, inputs), "W": n.array(inputs, outputs, **spread),
             "b": n.array(outputs), "dy": n.array(N, outputs)})


def linear_cases(n):
    for title, sizes in ("wide", (3, 5, 2)), ("one example", (1, 3, 4)):
        settings, arrays = linear(n, *sizes)
        yield title, (settings, arrays)
        del arrays["b"]
        yield title + ", no bias", (settings, arrays)


def activation_cases(n, count=12, spread=2):
    for title, kind in ("identity", IDENTITY), ("ReLU", RELU), ("tanh", TANH), ("sigmoid", SIGMOID):
        yield title, ({"activation": kind},
                      {"x": n.array(count, spread=spread), "dy": n.array(count)})


def cross_entropy(n, N=4, C=5, **spread):
    return {"N": N, "C": C}, {"logits": n.array(N, C, **spread), "labels": n.labels(C, N)}


def cross_entropy_cases(n):
    yield "logits of a few units", cross_entropy(n)
    yield "logits of tens", cross_entropy(n, spread=16)


def optimizer_cases(n, count=6, steps=5):
    for title, rule, lr, heavy_ball in (
            ("SGD", SGD, 0.1, 0.0), ("SGD, momentum 0.9", SGD, 0.01, 0.9),
            ("Adam", ADAM, 1e-3, 0.0)):
        yield title, ({"optimizer": rule, "lr": lr, "heavy_ball": heavy_ball, "adam_eps": 1e-8},
                      {"params": n.array(count), "grads": n.array(steps, count)})


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


if __name__ == "__main__":
    main()
