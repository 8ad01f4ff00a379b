#!/usr/bin/python3
"""The network of mnist.c in PyTorch, eager mode, one thread; the same arguments and lines.

    mnist.py DATA_DIR none|batch|layer WIDTH1-WIDTH2 BATCH SAMPLES EPOCHS SEED
    mnist.py product        GFLOP/s of its product of two 512x512 matrices, the best of some
"""
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # two thread pools on few cores fight each other

import numpy
import torch
from torch.nn import BatchNorm1d, LayerNorm, Linear, ReLU, Sequential
from torch.nn.functional import cross_entropy


def read(folder, name, header):
    raw = numpy.fromfile(os.path.join(folder, name), dtype=numpy.uint8)
    return raw[header:]


def load(folder, part):
    pixels = read(folder, part + "-images-idx3-ubyte", 16).reshape(-1, 784)
    labels = read(folder, part + "-labels-idx1-ubyte", 8)
    return (torch.from_numpy(pixels.astype(numpy.float32) / 255),
            torch.from_numpy(labels.astype(numpy.int64)))


def network(norm, first, second):
    layers = []
    for inputs, outputs in ((784, first), (first, second)):
        layers.append(Linear(inputs, outputs))
        if norm != "none":
            layers.append((BatchNorm1d if norm == "batch" else LayerNorm)(outputs))
        layers.append(ReLU())
    return Sequential(*layers, Linear(second, 10))


def product():
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    best = float("inf")
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(4):
            torch.mm(a, b)
        best = min(best, (time.perf_counter() - start) / 4)
    print("product pytorch %.1f" % (2e-9 * 512 ** 3 / best))


def main():
    torch.set_num_threads(1)
    if sys.argv[1] == "product":
        return product()
    folder, norm, widths = sys.argv[1:4]
    batch, samples, epochs, seed = (int(a) for a in sys.argv[4:8])
    torch.manual_seed(seed)
    images, labels = (part[:samples] for part in load(folder, "train"))
    test_images, test_labels = load(folder, "t10k")
    net = network(norm, *(int(w) for w in widths.split("-")))
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(1, epochs + 1):
        start = time.perf_counter()
        total = 0.0
        for pick in torch.randperm(len(images)).split(batch):
            loss = cross_entropy(net(images[pick]), labels[pick])
            sgd.zero_grad(set_to_none=True)
            loss.backward()
            sgd.step()
            total += loss.detach() * len(pick)
        seconds = time.perf_counter() - start
        net.eval()
        with torch.no_grad():
            right = (net(test_images).argmax(1) == test_labels).double().mean().item()
        net.train()
        print("pytorch %s %d %s epoch %d seconds %.4f loss %.4f accuracy %.4f"
              % (widths, batch, norm, epoch, seconds, float(total) / len(images), right),
              flush=True)


main()
