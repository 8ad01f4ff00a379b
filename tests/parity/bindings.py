#!/usr/bin/python3
"""bindings.py FOLDER - layers called by way of docs/api.json alone, and compared with PyTorch.

FOLDER has normlayers.py and normlayers_f64.py, as generate.py makes them, and a library for each.
Nothing here knows a prototype: names, types, directions and shapes of all arguments come from
docs/api.json, their values from the cases of parity.py and from the forward pass.
"""
import ctypes
import importlib
import json
import os
import sys

import torch

from layers import API, TRAIN, run
from parity import CASES, Random

with open(API) as file:
    FUNCTIONS = {f["name"]: f["parameters"] for f in json.load(file)["functions"]}
LAYERS = ("layernorm", "rmsnorm", "groupnorm", "batchnorm", "linear", "weightnorm", "activation",
          "cross_entropy")


def call(lib, module, name, real, have, sizes):
    """Calls a function with what it asks for by name, and adds its outputs to have."""
    types = {"nrm_real": real, "nrm_acc": torch.float64, "int": torch.int32}
    f, values, kept = getattr(lib, name), [], []
    for p, kind in zip(FUNCTIONS[name], f.argtypes):
        base = p["type"].replace("const ", "").split()[0]
        if "*" not in p["type"]:
            values.append(sizes[p["name"]])
            continue
        if base == "nrm_running":
            running = module.nrm_running(*(ctypes.cast(have[n].data_ptr(), t) for n, t in (
                ("running_mean", module.nrm_running._fields_[0][1]),
                ("running_var", module.nrm_running._fields_[1][1]))), sizes["new_weight"])
            kept.append(running)
            values.append(ctypes.byref(running))
            continue
        if p["direction"] != "in":
            shape = [sizes[n] for n in p.get("shape", "").strip("[]").split("][") if n]
            like = shape or ([sizes["count"]] if base == "nrm_real" else [1])
            have[p["name"]] = (torch.zeros(like, dtype=types[base]) if "by" in p else
                               torch.full(like, float("nan"), dtype=types[base]))
        if have.get(p["name"]) is None:
            values.append(None)
            continue
        have[p["name"]] = have[p["name"]].to(types[base]).contiguous()
        values.append(ctypes.cast(have[p["name"]].data_ptr(), kind))
    return f(*values)


def largest_error(layer, arrays, settings, lib, module, real):
    have = {n: a.to(real) if a.is_floating_point() else a for n, a in arrays.items()}
    if "batches" in settings:
        have["x"] = have["x"][0]
    sizes = dict(settings, count=have["x"].numel() if "x" in have else 0)
    sizes.setdefault("mode", TRAIN)
    for way in "forward", "backward":
        if call(lib, module, "nrm_%s_%s" % (layer, way), real, have, sizes) != module.NRM_OK:
            return float("inf")
    truth = run(layer, arrays, settings)
    both = [n for n in truth if n in have]
    assert len(both) > 1
    return max(((have[n].double().reshape(-1) - truth[n].reshape(-1)).abs().max()
                / truth[n].abs().max()).item() for n in both)


def main():
    torch.set_num_threads(1)
    sys.path.insert(0, sys.argv[1])
    passed = failed = 0
    for name, real, bound in (("normlayers", torch.float32, 2e-6),
                              ("normlayers_f64", torch.float64, 1e-12)):
        module = importlib.import_module(name)
        lib = module.load(os.path.join(os.path.abspath(sys.argv[1]), "lib%s.so" % name))
        for i, layer in enumerate(LAYERS):
            for title, (settings, arrays) in CASES[layer](Random(1000 + i)):
                if settings.get("batches", 1) > 1 or settings.get("mode", TRAIN) != TRAIN:
                    continue
                error = largest_error(layer, arrays, settings, lib, module, real)
                passed, failed = passed + (error <= bound), failed + (not error <= bound)
                if not error <= bound:
                    print("failed: %s, %s, %s: %.1e" % (name, layer, title, error))
    print("bindings: %d passed, %d failed" % (passed, failed))
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
