"""What PyTorch makes of every layer of normlayers.h, and the text files that hold it.

A case is a layer, its settings (plain numbers) and its arrays (float64 tensors whose values
float32 holds exactly, so that float and double answer the same question). Each function below takes
the arrays, a, and the settings, s, and gives all results: values, gradients, saved statistics.
Where PyTorch has the layer, its own code computes them; where it has not, the formula is written
out and differentiated by autograd. The names are those of the header. This makes one entry of a
file that tests/layers/test_golden.c reads:

    case LAYER TITLE
    set NAME NUMBER set NAME NUMBER ...
    in NAME [SHAPE] VALUE ...              an array each
    out NAME [SHAPE] VALUE ...             a result each
    end

Networks in training have one setting more. `set drift` is what float32 may be off by; `set kinks`
says that nothing can be said of float32. Why, is said at drift().
"""
import json
import os

import torch
from torch.nn import functional as F

# TRAIN, BATCH_NORM, RELU, ...: the header's enums without NRM_
API = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "api.json")
with open(API) as _file:
    globals().update((name[4:], value) for enum in json.load(_file)["enums"].values()
                     for name, value in enum.items())

ACTIVATIONS = {IDENTITY: lambda x: x, RELU: torch.relu, TANH: torch.tanh, SIGMOID: torch.sigmoid}


def leaf(a, name):
    """An array that gradients are wanted of, or None if the case is without it."""
    return a[name].clone().requires_grad_() if name in a else None


def back(y, dy, **leaves):
    """Sends dy back through y: the gradient of every leaf that is there."""
    names = [name for name, array in leaves.items() if array is not None]
    grads = torch.autograd.grad(y, [leaves[name] for name in names], dy)
    return {"d" + name: grad for name, grad in zip(names, grads)}


def per_channel(v, x):
    """[C] made to fit [N][C] or [N][C][S]; None stays None."""
    return v if v is None or x.dim() == 2 else v.unsqueeze(-1)


def over_channel(x):
    """The axes that batch norm averages over."""
    return [axis for axis in range(x.dim()) if axis != 1]


def affine(x_hat, gamma, beta):
    y = x_hat if gamma is None else x_hat * per_channel(gamma, x_hat)
    return y if beta is None else y + per_channel(beta, x_hat)


class Running:
    """Running statistics in the manner of nrm_running, for layers that PyTorch does not have."""

    def __init__(self, a, s):
        self.mean, self.var = a["running_mean"].clone(), a["running_var"].clone()
        self.batches, self.s = 0, s

    def update(self, mean, var):
        self.batches += 1
        w = 1 / self.batches if self.s["cumulative"] else self.s["new_weight"]
        self.mean = self.mean + w * (mean.detach() - self.mean)
        self.var = self.var + w * (var.detach() - self.var)


def over_batches(step, a, s, running):
    """All batches of a["x"] through one layer: its results for the last, statistics of each."""
    means, variances = [], []
    for x in a["x"]:
        x = x.clone().requires_grad_()
        r, y = step(x)
        mean, var = running()
        means.append(mean.clone())
        variances.append(var.clone())
    leaves = r.pop("leaves")
    if s["mode"] != INFER:
        r.update(back(y, a["dy"], x=x, **leaves))
    r["y"] = y
    if s["mode"] == TRAIN:
        r.update(running_means=torch.stack(means), running_vars=torch.stack(variances))
    return r


def batchnorm(a, s):
    layer = torch.nn.BatchNorm1d(s["C"], eps=s["eps"], affine="gamma" in a, dtype=a["x"].dtype,
                                 momentum=None if s["cumulative"] else s["new_weight"])
    layer.load_state_dict(dict(
        {"running_mean": a["running_mean"], "running_var": a["running_var"]},
        **({"weight": a["gamma"], "bias": a["beta"]} if "gamma" in a else {})), strict=False)
    layer.train(s["mode"] == TRAIN)

    def step(x):
        r = {"leaves": {"gamma": layer.weight, "beta": layer.bias}}
        if s["mode"] == TRAIN:
            r["mean"], r["rstd"] = torch.native_batch_norm(x, None, None, None, None, True, 0.,
                                                           s["eps"])[1:]
        return r, layer(x)
    return over_batches(step, a, s, lambda: (layer.running_mean, layer.running_var))


def noisy_batchnorm(a, s):
    """The noise is given: factors and offsets are constants, as in NB.5."""
    x, gamma, beta = leaf(a, "x"), leaf(a, "gamma"), leaf(a, "beta")
    clean = F.batch_norm(x, None, None, gamma, beta, True, 0., s["eps"])
    y = a["scale"] * clean + a["offset"]
    return dict(back(y, a["dy"], x=x, gamma=gamma, beta=beta), clean=clean)


def layernorm(a, s):
    x, gamma, beta = leaf(a, "x"), leaf(a, "gamma"), leaf(a, "beta")
    y = F.layer_norm(x, (s["D"],), gamma, beta, s["eps"])
    mean, rstd = torch.native_layer_norm(x, (s["D"],), gamma, beta, s["eps"])[1:]
    return dict(back(y, a["dy"], x=x, gamma=gamma, beta=beta), y=y, mean=mean, rstd=rstd)


def layernorm_std(a, s):
    """With D - 1 below the standard deviation, and eps added to that."""
    x, gamma, beta = leaf(a, "x"), leaf(a, "gamma"), leaf(a, "beta")
    mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True)
    rstd = 1 / (std + s["eps"])
    y = affine((x - mean) * rstd, gamma, beta)
    return dict(back(y, a["dy"], x=x, gamma=gamma, beta=beta), y=y, mean=mean[:, 0],
                rstd=rstd[:, 0])


def rmsnorm(a, s):
    x, gamma = leaf(a, "x"), leaf(a, "gamma")
    rstd = torch.rsqrt((x * x).mean(1, keepdim=True) + s["eps"])
    y = affine(x * rstd, gamma, None)
    return dict(back(y, a["dy"], x=x, gamma=gamma), y=y, rstd=rstd[:, 0])


def groupnorm(a, s):
    x, gamma, beta = leaf(a, "x"), leaf(a, "gamma"), leaf(a, "beta")
    y = F.group_norm(x, s["G"], gamma, beta, s["eps"])
    mean, rstd = torch.native_group_norm(x, gamma, beta, s["N"], s["C"], s["S"], s["G"],
                                         s["eps"])[1:]
    return dict(back(y, a["dy"], x=x, gamma=gamma, beta=beta), y=y, mean=mean, rstd=rstd)


def instancenorm(a, s):
    x, gamma, beta = leaf(a, "x"), leaf(a, "gamma"), leaf(a, "beta")
    y = F.instance_norm(x, None, None, gamma, beta, True, 0., s["eps"])
    return dict(back(y, a["dy"], x=x, gamma=gamma, beta=beta), y=y)


def sync_batchnorm(a, s):
    """All workers' batches in one; of each example the positions that the mask lets count."""
    x, gamma, beta = leaf(a, "x"), leaf(a, "gamma"), leaf(a, "beta")
    mean, var = a["running_mean"].clone(), a["running_var"].clone()
    if "mask" in a:
        counts = a["mask"] != 0
        chosen = F.batch_norm(x.transpose(1, 2)[counts], mean, var, gamma, beta, True,
                              s["new_weight"], s["eps"])
        y = torch.zeros_like(x).transpose(1, 2).index_put((counts,), chosen).transpose(1, 2)
    else:
        y = F.batch_norm(x, mean, var, gamma, beta, True, s["new_weight"], s["eps"])
    return dict(back(y, a["dy"], x=x, gamma=gamma, beta=beta), y=y, running_means=mean,
                running_vars=var)


def batchrenorm(a, s):
    """The correction is detached: Ioffe's formula, with eps in both roots."""
    gamma, beta = leaf(a, "gamma"), leaf(a, "beta")
    running = Running(a, s)

    def step(x):
        r = {"leaves": {"gamma": gamma, "beta": beta}}
        below = torch.sqrt(running.var + s["eps"])
        if s["mode"] != TRAIN:
            return r, affine((x - per_channel(running.mean, x)) / per_channel(below, x), gamma,
                             beta)
        mean, var = x.mean(over_channel(x)), x.var(over_channel(x), unbiased=False)
        std = torch.sqrt(var + s["eps"])
        r["ratio"] = (std / below).detach().clamp(1 / s["r_max"], s["r_max"])
        r["offset"] = ((mean - running.mean) / below).detach().clamp(-s["d_max"], s["d_max"])
        running.update(mean, x.var(over_channel(x)))
        x_hat = (x - per_channel(mean, x)) / per_channel(std, x)
        return r, affine(x_hat * per_channel(r["ratio"], x) + per_channel(r["offset"], x), gamma,
                         beta)
    return over_batches(step, a, s, lambda: (running.mean, running.var))


def lp_size(x, s):
    """[C]: what Lp batch norm divides by. Of equal |x| the first has the gradient."""
    u = x if s["p"] < CENTRED else x - per_channel(x.mean(over_channel(x)), x)
    u = u.transpose(0, 1).reshape(s["C"], -1)
    kind = s["p"] % CENTRED
    if kind == LINF:
        return u.abs().max(1).values
    return u.abs().mean(1) if kind == L1 else (u * u).mean(1).sqrt()


def lp_batchnorm(a, s):
    gamma, beta = leaf(a, "gamma"), leaf(a, "beta")
    running = Running(a, s)

    def step(x):
        mean, scale = running.mean, running.var
        r = {"leaves": {"gamma": gamma, "beta": beta}}
        if s["mode"] == TRAIN:
            mean, scale = x.mean(over_channel(x)), lp_size(x, s)
            r.update(mean=mean, scale=scale)
            running.update(mean, scale)
        x_hat = (x - per_channel(mean, x)) / per_channel(scale + s["eps"], x)
        return r, affine(x_hat, gamma, beta)
    return over_batches(step, a, s, lambda: (running.mean, running.var))


def weightnorm(a, s):
    """By the linear layer's answer to the unit vectors: that is W, in our order of the axes."""
    inputs, outputs = a["v"].shape
    layer = torch.nn.Linear(inputs, outputs, bias=False, dtype=a["v"].dtype)
    layer = torch.nn.utils.weight_norm(layer, dim=0)
    layer.weight_v.data = a["v"].t().clone()
    layer.weight_g.data = a["g"].unsqueeze(1).clone() if "g" in a else torch.ones_like(
        layer.weight_g)
    W = layer(torch.eye(inputs, dtype=a["v"].dtype))
    grads = back(W, a["dW"], v=layer.weight_v, g=layer.weight_g)
    r = {"W": W, "norm": a["v"].norm(dim=0), "dv": grads["dv"].t()}
    return dict(r, dg=grads["dg"][:, 0]) if "g" in a else r


def fold(a, s):
    """Linear weights [in][out] if there is an x, else those of a convolution, [out][in][k]."""
    statistics = a["running_mean"], a["running_var"], s["eps"], a.get("gamma"), a.get("beta")
    b = a.get("b", torch.zeros_like(a["running_mean"]))
    if "x" not in a:
        weights, b_out = torch.nn.utils.fusion.fuse_conv_bn_weights(a["W"], b, *statistics)
        return {"W_out": weights, "b_out": b_out, "W_back": a["W"], "b_back": b}
    weights, b_out = torch.nn.utils.fusion.fuse_linear_bn_weights(
        a["W"].t(), b, *statistics[:3], a.get("gamma", torch.ones_like(b)),
        a.get("beta", torch.zeros_like(b)))
    y = F.batch_norm(F.linear(a["x"], a["W"].t(), b), *statistics[:2], *statistics[3:], False, 0.,
                     s["eps"])
    return {"W_out": weights.t(), "b_out": b_out, "W_back": a["W"], "b_back": b, "y": y}


def rnn_norm(z, t, a, s, gamma, beta, running):
    if s["norm"] == NO_NORM:
        return z if beta is None else z + beta
    if s["norm"] == LAYER_NORM:
        return F.layer_norm(z, (s["H"],), gamma, beta, s["eps"])
    return F.batch_norm(z, running[0][t], running[1][t], gamma, beta, s["mode"] == TRAIN,
                        s["new_weight"], s["eps"])


def rnn(a, s):
    """T steps; dh holds what the loss feels of each h directly, and what it feels in all."""
    names = "x", "Wx", "Wh", "gamma", "beta"
    leaves = {name: leaf(a, name) for name in names}
    x, Wx, Wh, gamma, beta = (leaves[name] for name in names)
    running = (a["running_mean"].clone(), a["running_var"].clone()) if "running_mean" in a else ()
    h = [leaf(a, "h0")]
    for t in range(s["T"]):
        z = rnn_norm(h[t] @ Wh + x[t] @ Wx, t, a, s, gamma, beta, running)
        h.append(ACTIVATIONS[s["activation"]](z))
    r = {"h": torch.stack(h[1:])}
    if running and s["mode"] == TRAIN:
        r.update(running_means=running[0], running_vars=running[1])
    if s["mode"] == INFER:
        return r
    loss = sum((direct * state).sum() for direct, state in zip(a["dh"], h))
    r["dh_total"] = torch.stack(torch.autograd.grad(loss, h, retain_graph=True))
    return dict(r, **back(loss, torch.ones_like(loss), **leaves))


def linear(a, s):
    x, W, b = leaf(a, "x"), leaf(a, "W"), leaf(a, "b")
    y = F.linear(x, W.t(), b)  # PyTorch keeps W as [out][in]
    return dict(back(y, a["dy"], x=x, W=W, b=b), y=y)


def activation(a, s):
    x = leaf(a, "x")
    y = ACTIVATIONS[s["activation"]](x)
    return dict(back(y, a["dy"], x=x), y=y)


def cross_entropy(a, s):
    logits = leaf(a, "logits")
    loss = F.cross_entropy(logits, a["labels"].long())
    grads = back(loss, torch.ones_like(loss), logits=logits)
    return dict(grads, loss=loss, prob=logits.softmax(1))


def optimizer(a, s):
    """Steps down given gradients: the parameters after each of them."""
    theta = leaf(a, "params")
    steps, rule = [], optimizer_of(s, [theta])
    for grad in a["grads"]:
        theta.grad = grad.clone()
        rule.step()
        steps.append(theta.detach().clone())
    return {"steps": torch.stack(steps)}


def optimizer_of(s, params):
    if s["optimizer"] == SGD:
        return torch.optim.SGD(params, lr=s["lr"], momentum=s["heavy_ball"])
    return torch.optim.Adam(params, lr=s["lr"], eps=s["adam_eps"])


class RMSNorm(torch.nn.Module):
    def __init__(self, s, width):
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.ones(width))
        self.eps = s["eps"]

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(1, keepdim=True) + self.eps) * self.gamma


class BatchRenorm(torch.nn.BatchNorm1d):
    """Batch norm, and then the correction that batchrenorm() has above."""

    def __init__(self, s, width):
        super().__init__(width, eps=s["eps"], momentum=s["new_weight"])
        self.r_max, self.d_max = s["r_max"], s["d_max"]

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        with torch.no_grad():
            below = torch.sqrt(self.running_var + self.eps)
            ratio = torch.sqrt(x.var(0, unbiased=False) + self.eps) / below
            offset = (x.mean(0) - self.running_mean) / below
        x_hat = F.batch_norm(x, self.running_mean, self.running_var, None, None, True,
                             self.momentum, self.eps)
        corrected = (x_hat * ratio.clamp(1 / self.r_max, self.r_max)
                     + offset.clamp(-self.d_max, self.d_max))
        return corrected * self.weight + self.bias


def norm_layer(s, width):
    if s["norm"] == BATCH_NORM:
        return [torch.nn.BatchNorm1d(width, eps=s["eps"], momentum=s["new_weight"])]
    if s["norm"] == LAYER_NORM:
        return [torch.nn.LayerNorm(width, eps=s["eps"])]
    if s["norm"] == GROUP_NORM:
        return [torch.nn.GroupNorm(s["G"], width, eps=s["eps"])]
    if s["norm"] == RMS_NORM:
        return [RMSNorm(s, width)]
    return [BatchRenorm(s, width)] if s["norm"] == BATCH_RENORM else []


class Activation(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.forward = ACTIVATIONS[s["activation"]]


def network(s):
    """inputs - width1 - width2 - classes; the norm takes the place of the bias."""
    layers, before = [], s["inputs"]
    for width in (s["width1"], s["width2"]):
        layers.append(torch.nn.Linear(before, width, bias=s["norm"] == NO_NORM))
        layers += norm_layer(s, width) + [Activation(s)]
        before = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(before, s["classes"]))


def set_params(net, flat):
    """From our order, layer by layer W [in][out], b, gamma, beta: the modules have the same."""
    at = 0
    for p in net.parameters():
        values = flat[at:at + p.numel()]
        p.data = (values.reshape(p.shape[1], p.shape[0]).t() if p.dim() == 2 else values).clone()
        at += p.numel()
    assert at == len(flat)


def get_params(net):
    return torch.cat([(p.t() if p.dim() == 2 else p).reshape(-1) for p in net.parameters()])


def mlp(a, s, nudge=lambda net: None):
    """A network in training. nudge() is called before every step: see drift()."""
    net = network(s).to(a["x"].dtype)
    set_params(net, a["params"])
    rule = optimizer_of(s, net.parameters())
    labels, losses = a["labels"].long(), []
    for t in range(s["steps"]):
        nudge(net)
        pick = t % s["batches"]
        loss = F.cross_entropy(net(a["x"][pick]), labels[pick])
        rule.zero_grad()
        loss.backward()
        rule.step()
        losses.append(loss.detach())
    r = {"losses": torch.stack(losses), "params": get_params(net)}
    norms = [m for m in net if isinstance(m, torch.nn.BatchNorm1d)]
    if norms:
        r.update(running_means=torch.cat([m.running_mean for m in norms]),
                 running_vars=torch.cat([m.running_var for m in norms]))
    net.eval()
    return dict(r, logits=net(a["x"][0]))


LAYERS = {f.__name__: f for f in (
    batchnorm, noisy_batchnorm, sync_batchnorm, batchrenorm, lp_batchnorm, layernorm,
    layernorm_std, groupnorm, instancenorm, rmsnorm, weightnorm, fold, rnn, linear, activation,
    cross_entropy, optimizer, mlp)}


def run(layer, arrays, settings, **more):
    """All results of a case."""
    a = {name: array.double() for name, array in arrays.items()}
    results = LAYERS[layer](a, settings, **more)
    return {name: result.detach() for name, result in results.items()}


def distance(results, truth):
    """Of the array that differs most, in the root mean square."""
    return max(((results[name] - truth[name]).norm() / truth[name].norm()).item()
               for name in truth)


def drift(arrays, settings, truth, nudge=2.0 ** -22):
    """How far rounding alone may carry a network in training away from itself.

    Each step hands its rounding errors on to the next, so that two programs that are both right
    part. How fast depends on the network. To know it, PyTorch trains once more in float64, and
    before each step every parameter is moved by a random fraction of itself, up to 4 rounding
    units of float32. The drift is the distance from the network that is left alone, in the root
    mean square; a step's own roundings, PyTorch's and ours, make about a quarter of it.

    That holds where all is smooth: for tanh, and Adam with an eps well above the roundings of a
    gradient. With ReLU there is no such measure. Of a million inputs of units in such a training
    one or the other is so near to 0 that a rounding decides its sign, and then a gradient jumps:
    PyTorch's own float32 is off by up to 1e-2 there, or by 1e-6, as it happens. So with Adam's
    usual eps, where a weight whose gradient is next to nothing goes a whole step to where the
    rounding sends it. These are `kinks`: in float64, where nothing is so near, we compare them.
    """
    generator = torch.Generator().manual_seed(1)

    def move(net):
        for p in net.parameters():
            noise = torch.rand(p.shape, generator=generator, dtype=p.dtype) * 2 - 1
            p.data.mul_(1 + nudge * noise)
    return distance(run("mlp", arrays, settings, nudge=move), truth)


# ---- the files -----------------------------------------------------------------------------------

def block(name, tensor):
    """Name, shape and values in a line, with all digits."""
    shape = "".join("[%d]" % size for size in tensor.shape or (1,))
    values = [repr(v) for v in tensor.double().reshape(-1).tolist()]
    return " ".join([name, shape] + values) + "\n"


def write_case(file, layer, title, settings, arrays):
    results = run(layer, arrays, settings)
    if settings.get("drift") == 0:  # it is to be measured
        settings = dict(settings, drift=drift(arrays, settings, results))
    file.write("case %s %s\n" % (layer, title.replace(" ", "_")))
    file.write(" ".join("set %s %s" % setting for setting in settings.items()) + "\n")
    for name, array in arrays.items():
        file.write("in " + block(name, array))
    for name in sorted(results):
        file.write("out " + block(name, results[name]))
    file.write("end\n\n")
