"""weights_from_c.py FOLDER - the network of weights_to_numpy.c once more, in NumPy."""
import sys
import numpy as np

w = np.load((sys.argv[1] if len(sys.argv) > 1 else ".") + "/weights.npz")
h = w["x"]
for layer in "01":
    h = h @ w[layer + ".W"]
    h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5)
    h = np.maximum(h * w[layer + ".gamma"] + w[layer + ".beta"], 0)
gap = abs(h @ w["2.W"] + w["2.b"] - w["logits"]).max()
print("%d arrays, logits within 1e-5 of those in C: %s" % (len(w.files), gap < 1e-5))
sys.exit(not gap < 1e-5)
