"""answer.py - reads the file of examples/uses/pause.c and answers with one for answer.c."""
import numpy as np

net = np.load("net.npz")
W, gamma = net["layer0.W"], net["layer0.gamma"]
assert W.shape == (2, 8) and gamma.shape == (8,)  # W is [inputs][width]
assert net["steps"] == net["layer0.batches"] == 10

x = np.array([[1.0, 1.0]])
h = (x @ W - net["layer0.mean"]) / np.sqrt(net["layer0.var"] + 1e-5)
h = np.maximum(h * gamma + net["layer0.beta"], 0)
logits = h @ net["layer1.W"] + net["layer1.b"]
np.savez("answer.npz", **{"x": x, "logits": logits, "dense/bias:0": net["layer1.b"]})
