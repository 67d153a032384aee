"""Normalizations."""

import torch
import torch.nn.functional as F

from families.frame import Family, few, real

family = Family("norms")
add = family.add

for shape, axis in (((3, 5), -1), ((2, 3, 4), 1), ((2, 3, 4), 2)):
    for eps in (1e-5, 0.125):
        def layer(x, w=None, b=None, a=axis, e=eps):
            dims = tuple(range(a % x.dim(), x.dim()))
            y = F.layer_norm(x, x.shape[dims[0]:], w, b, e)
            mean = x.mean(dims, keepdim=True)
            rstd = (x.var(dims, unbiased=False, keepdim=True) + e).rsqrt()
            return y, mean, rstd

        attributes = {"axis": axis, "eps": eps}
        add("native_layer_norm", layer, [real(*shape), real(*shape[axis:]),
                                         real(*shape[axis:])], attributes)
        add("native_layer_norm", layer, [real(*shape)], attributes)

        def rms(x, w=None, a=axis, e=eps):
            dims = tuple(range(a % x.dim(), x.dim()))
            y = x * ((x * x).mean(dims, keepdim=True) + e).rsqrt()
            return y if w is None else y * w

        add("rms_norm", rms, [real(*shape), real(*shape[axis:])], attributes)
        add("rms_norm", rms, [real(*shape)], attributes)
for shape, groups in (((2, 4), 2), ((2, 4, 3), 2), ((1, 6, 2, 2), 3), ((3, 2, 1, 2), 1),
                      ((2, 3, 2), 3)):
    for eps in (1e-5, 0.125):
        attributes = {"num_groups": groups, "eps": eps}
        add("group_norm", lambda x, w, b, g=groups, e=eps: F.group_norm(x, g, w, b, e),
            [real(*shape), real(shape[1]), real(shape[1])], attributes)
        add("group_norm", lambda x, g=groups, e=eps: F.group_norm(x, g, None, None, e),
            [real(*shape)], attributes)
for shape in ((2, 3, 4), (1, 2, 3, 2), (2, 1, 2, 2, 2)):
    c = shape[1]
    add("instance_norm", lambda x, w, b: F.instance_norm(
        x, weight=w, bias=b, eps=0.125), [real(*shape), real(c), real(c)],
        {"eps": 0.125})
    add("instance_norm", F.instance_norm, [real(*shape)])


def batch(x, w, b, m, v, training, momentum, unbiased=True):
    dims = [d for d in range(x.dim()) if d != 1]
    mean, var = x.mean(dims), x.var(dims, unbiased=False)
    y = F.batch_norm(x, m.detach().clone(), v.detach().clone(), w, b, training,
                     momentum, 0.125) if training else None
    if not training:
        shown = [1, -1] + [1] * (x.dim() - 2)
        y = (x - m.reshape(shown)) / (v.reshape(shown) + 0.125).sqrt()
        y = y * w.reshape(shown) + b.reshape(shown)
        return y, m.detach(), (v.detach() + 0.125).rsqrt(), m.detach(), v.detach()
    new = [m.detach().clone().contiguous(), v.detach().clone().contiguous()]
    F.batch_norm(x.detach(), *new, None, None, True, momentum, 0.125)
    if not unbiased:
        new[1] = v * (1 - momentum) + var * momentum
    return (y, mean.detach(), (var.detach() + 0.125).rsqrt(), new[0].detach(),
            new[1].detach())


for shape in ((4, 3), (3, 2, 4), (2, 3, 2, 2)):
    for training, momentum, unbiased in ((True, 0.1, True), (True, 0.25, False),
                                         (False, 0.1, True)):
        c = shape[1]
        add("batch_norm_functional", lambda x, w, b, m, v, t=training, o=momentum,
            u=unbiased: batch(x, w, b, m, v, t, o, u),
            [real(*shape), real(c), real(c), real(c).fixed() if training else real(c),
             real(c, low=0.25).fixed() if training else real(c, low=0.25)],
            {"training": training, "momentum": momentum, "eps": 0.125,
             "unbiased": unbiased})
for shape, size in (((2, 5, 3), 3), ((1, 4, 2, 2), 5), ((1, 3, 2), 2)):
    add("local_response_norm", lambda x, s=size: F.local_response_norm(
        x, s, 0.5, 0.75, 1.5), [real(*shape)],
        {"size": size, "alpha": 0.5, "beta": 0.75, "k": 1.5})
for p, shape, dim in ((2.0, (3, 4), 1), (1.0, (3, 4), 0), (3.0, (2, 3, 2), -1),
                      (2.0, (5,), 0)):
    add("normalize", lambda x, p=p, d=dim: F.normalize(x, p, d),
        [real(*shape, low=0.25)], {"p": p, "dim": dim})
# Shorter than eps: only the gradient, at the bound of a bound.
add("normalize", lambda x: F.normalize(x, 2.0, 1, 8.0), [real(3, 4)],
    {"p": 2.0, "dim": 1, "eps": 8.0})
for shape, dims in (((2, 3, 2, 2), [0, 2, 3]), ((3, 4), [1])):
    def spread(x, dims=dims):
        deviation = x - x.mean(dims, keepdim=True)
        return deviation / ((deviation**2).mean(dims, keepdim=True).sqrt() + 1e-9)

    add("mean_variance_norm", spread, [real(*shape)], {"dims": dims})
