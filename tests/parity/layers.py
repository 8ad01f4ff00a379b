"""What PyTorch makes of every layer of normlayers.h, and the text files that hold it.

A case is a layer, its settings (plain numbers) and its arrays (float64 tensors whose values
float32 holds exactly, so that both precisions answer the same question). Each function below takes
the arrays in one precision, a, and the settings, s, and gives all results: values, gradients,
saved statistics. Where PyTorch has the layer, its own code computes them; where it has not, the
formula is written out and differentiated by autograd. The names are those of the header. Run twice,
in float64 and float32, this makes one entry of a file that tests/test_golden.c reads:

    case LAYER TITLE
    set NAME NUMBER
    in NAME [SHAPE]        and the values
    out NAME [SHAPE]       and the values: first the float64 results, then the float32 ones
    end

For networks in training there is one number more, `set drift`: see drift() at the end.
"""
import torch
from torch.nn import functional as F

TRAIN, INFER, FROZEN = 0, 1, 2  # enum nrm_mode
NO_NORM, BATCH_NORM, LAYER_NORM, NOISY_BATCH_NORM = 0, 1, 2, 3  # enum nrm_norm
GROUP_NORM = 4  # of the networks here; nrm_mlp has none
IDENTITY, RELU, TANH, SIGMOID = 0, 1, 2, 3  # enum nrm_activation
SGD, ADAM = 0, 1  # enum nrm_optimizer
L1, L2, LINF, CENTRED = 1, 2, 3, 4  # enum nrm_lp

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
    return torch.optim.Adam(params, lr=s["lr"])


def norm_layer(s, width):
    if s["norm"] == BATCH_NORM:
        return [torch.nn.BatchNorm1d(width, eps=s["eps"], momentum=s["new_weight"])]
    if s["norm"] == LAYER_NORM:
        return [torch.nn.LayerNorm(width, eps=s["eps"])]
    if s["norm"] == GROUP_NORM:
        return [torch.nn.GroupNorm(s["G"], width, eps=s["eps"])]
    return []


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


def mlp(a, s, order=lambda rows: rows):
    """A network in training. order() may reorder the rows of a batch: see drift()."""
    net = network(s).to(a["x"].dtype)
    set_params(net, a["params"])
    rule = optimizer_of(s, net.parameters())
    labels, losses = a["labels"].long(), []
    for t in range(s["steps"]):
        pick = t % s["batches"]
        x, wanted = order(torch.arange(s["N"])), labels[pick]
        loss = F.cross_entropy(net(a["x"][pick][x]), wanted[x])
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
    batchnorm, noisy_batchnorm, sync_batchnorm, batchrenorm, layernorm, layernorm_std, groupnorm,
    instancenorm, rmsnorm, linear, activation, cross_entropy, optimizer, mlp)}


def run(layer, arrays, settings, dtype, **more):
    """All results of a case in one precision, as float64."""
    a = {name: array.to(dtype) for name, array in arrays.items()}
    results = LAYERS[layer](a, settings, **more)
    return {name: result.detach().double() for name, result in results.items()}


def distance(results, truth):
    """The largest difference, relative to the largest entry of its array."""
    return max(((results[name] - truth[name]).abs().max() / truth[name].abs().max()).item()
               for name in truth)


def drift(arrays, settings, trials=5):
    """How far rounding alone carries a network in training away from itself.

    Each step hands rounding errors on to the next, so that two programs that are both right part.
    To know how fast, PyTorch trains in float32 several times, with the rows of each batch in
    another order, which changes nothing but the rounding, and is compared with its float64 self.
    """
    truth = run("mlp", arrays, settings, torch.float64)
    generator = torch.Generator().manual_seed(1)
    return max(distance(run("mlp", arrays, settings, torch.float32, order=lambda rows:
                            rows[torch.randperm(len(rows), generator=generator)]), truth)
               for _ in range(trials))


# ---- the files -----------------------------------------------------------------------------------

def block(values, digits):
    """The values in lines of at most 100 columns: 17 digits tell doubles apart, 9 floats."""
    lines, line = [], ""
    for v in values.reshape(-1).tolist():
        text = repr(float(v)) if digits == 17 else "%.9g" % v
        text = text[:-2] if text.endswith(".0") else text
        if len(line) + 1 + len(text) > 100:
            lines.append(line)
            line = ""
        line += " " + text
    return "\n".join(lines + [line]) + "\n"


def shape(tensor):
    return "".join("[%d]" % size for size in tensor.shape or (1,))


def write_case(file, layer, title, settings, arrays):
    double = run(layer, arrays, settings, torch.float64)
    single = run(layer, arrays, settings, torch.float32)
    file.write("case %s %s\n" % (layer, title.replace(" ", "_")))
    for name, value in settings.items():
        file.write("set %s %s\n" % (name, repr(value)))
    for name, array in arrays.items():
        file.write("in %s %s\n%s" % (name, shape(array), block(array, 17)))
    for name in sorted(double):
        file.write("out %s %s\n%s%s" % (name, shape(double[name]), block(double[name], 17),
                                        block(single[name], 9)))
    file.write("end\n\n")
