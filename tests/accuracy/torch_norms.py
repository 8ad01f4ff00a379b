#!/usr/bin/python3
"""Answers the problems of accuracy.c with PyTorch: eager mode, one thread, data in binary.

First writes a line with its version. Then, for each line "batch|layer|group N C S G eps" on stdin
and the float32 arrays x, dy, gamma, beta behind it, writes y, dx, dgamma, dbeta. Ends with its
input.
"""
import sys

import numpy
import torch
from torch.nn.functional import batch_norm, group_norm, layer_norm


def tensor(count, shape, wants_gradient):
    raw = sys.stdin.buffer.read(4 * count)
    if len(raw) != 4 * count:
        sys.exit("torch_norms.py: the input ends in the middle of an array")
    values = numpy.frombuffer(raw, dtype=numpy.float32).copy().reshape(shape)
    return torch.from_numpy(values).requires_grad_(wants_gradient)


def answer(line):
    layer, *sizes, eps = line.split()
    rows, channels, positions, groups = map(int, sizes)
    shape = (rows, channels, positions) if positions > 1 else (rows, channels)
    count = rows * channels * positions
    x, dy = tensor(count, shape, True), tensor(count, shape, False)
    gamma, beta = tensor(channels, (channels,), True), tensor(channels, (channels,), True)
    if layer == "batch":
        y = batch_norm(x, None, None, gamma, beta, training=True, eps=float(eps))
    elif layer == "group":
        y = group_norm(x, groups, gamma, beta, eps=float(eps))
    else:
        y = layer_norm(x, (channels,), gamma, beta, eps=float(eps))
    y.backward(dy)
    for result in (y.detach(), x.grad, gamma.grad, beta.grad):
        sys.stdout.buffer.write(result.contiguous().numpy().tobytes())


def main():
    torch.set_num_threads(1)
    sys.stdout.buffer.write((torch.__version__ + "\n").encode())
    sys.stdout.buffer.flush()
    for line in iter(sys.stdin.buffer.readline, b""):
        answer(line.decode())
        sys.stdout.buffer.flush()


main()
