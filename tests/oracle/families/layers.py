"""Pooling, normalizations, losses."""

import torch
import torch.nn.functional as F

from families.frame import Family, few, given, integers, real

family = Family("layers")
add = family.add

POOLS = (
    ((1, 2, 6, 6), {"kernel": [2, 2], "strides": [2, 2]}),
    ((2, 1, 5, 7), {"kernel": [3, 2], "strides": [1, 2]}),
    ((1, 2, 5, 5), {"kernel": [3, 3], "strides": [2, 2], "padding": [1, 1, 1, 1]}),
    ((1, 1, 4, 4), {"kernel": [1, 1], "strides": [3, 3]}),
    ((1, 3, 3, 3), {"kernel": [3, 3], "strides": [1, 1]}),
)
for shape, a in POOLS:
    def average(x, counted, a=a):
        return F.avg_pool2d(x, a["kernel"], a["strides"], a.get("padding", [0] * 4)[::2],
                            count_include_pad=counted)

    for counted in (True, False):
        add("avg_pool2d", lambda x, f=average, c=counted: f(x * x, c), [real(*shape)],
            nodes=[{"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
                   {"op": "avg_pool2d", "inputs": ["q"], "outputs": ["y0"],
                    "attributes": {**a, "count_include_pad": counted}}])
for shape, a in POOLS + (
    ((1, 1, 7, 6), {"kernel": [2, 3], "strides": [1, 1], "dilation": [3, 2]}),):
    def largest(x, a=a):
        return F.max_pool2d(x, a["kernel"], a["strides"], a.get("padding", [0] * 4)[::2],
                            a.get("dilation", 1))

    for x in (real(*shape, distinct=True), few(*shape, values=[-1.0, 0.5, 1.0])):
        add("max_pool2d", largest, [x], a)
        add("max_pool2d", lambda x, f=largest: f(x * x * x), [x], nodes=[
            {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
            {"op": "mul", "inputs": ["q", "x0"], "outputs": ["r"]},
            {"op": "max_pool2d", "inputs": ["r"], "outputs": ["y0"],
             "attributes": a}])

for shape, axis in (((3, 5), 1), ((2, 3, 4), 1), ((2, 3, 4), 2), ((4, 1), 1)):
    for epsilon in (1e-5, 0.125):
        add("layer_norm", lambda x, s, b, a=axis, e=epsilon: F.layer_norm(
            x, x.shape[a:], s, b, e),
            [real(*shape), real(*shape[axis:]), real(*shape[axis:])],
            {"axis": axis, "epsilon": epsilon})
for shape in ((4, 3), (3, 2, 4), (2, 3, 2, 2), (2, 1, 3)):
    c = shape[1]

    # The statistics are not differentiated.
    def trained(x, s, b, m, v):
        y = F.batch_norm(x, None, None, s, b, True, 0.1, 0.125)
        dims = [d for d in range(x.dim()) if d != 1]
        return y, x.mean(dims).detach(), x.var(dims, unbiased=False).detach()

    def evaluated(x, s, b, m, v):
        shown = [1, -1] + [1] * (x.dim() - 2)
        y = (x - m.reshape(shown)) / (v.reshape(shown) + 0.125).sqrt()
        return y * s.reshape(shown) + b.reshape(shown)

    operands = lambda: [real(*shape), real(c), real(c), real(c),
                        real(c, low=0.25, high=2)]
    add("batch_norm", trained, operands(), {"epsilon": 0.125, "training": True})
    add("batch_norm", evaluated, operands(), {"epsilon": 0.125, "training": False})

for shape in ((4, 5), (3, 1), (2, 3, 4)):
    for reduction in ("mean", "sum", "none"):
        def entropy(x, t, r=reduction, **more):
            return F.cross_entropy(x.movedim(-1, 1), t, reduction=r, **more)

        add("cross_entropy", entropy, [real(*shape),
            integers(*shape[:-1], high=shape[-1])], {"reduction": reduction})
        add("cross_entropy", lambda x, t, f=entropy: f(x, t, ignore_index=-7),
            [real(*shape), given(torch.full(shape[:-1], -7).tolist(), "i64")
             if shape == (3, 1) and reduction != "mean"
             else integers(*shape[:-1], high=shape[-1])],
            {"reduction": reduction, "ignore_index": -7})
        add("mse_loss", lambda x, t, r=reduction: F.mse_loss(x, t, reduction=r),
            [real(*shape), real(*shape)], {"reduction": reduction})
add("cross_entropy", lambda x, t: F.cross_entropy(x, t, ignore_index=2),
    [real(5, 3), given([2, 0, 1, 2, 2], "i64")], {"ignore_index": 2})
