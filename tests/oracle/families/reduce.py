"""Functions that reduce dimensions, and what runs along one."""

import torch

from families.frame import Family, booleans, few, given, integers, real

INF = float("inf")

family = Family("reduce")
add = family.add

DIMS = [((3, 4), [1], False), ((3, 4), [0], True), ((2, 3, 4), [0, -1], False),
        ((2, 3, 4), [1], True), ((5,), [0], False), ((3, 1), [1], False),
        ((1, 1), [0, 1], True)]


def each(op, function, low=-2.0, high=2.0, order=2, extra=None, whole=True,
         make=real):
    for shape, dim, keep in DIMS:
        add(op, lambda x, d=dim, k=keep: function(x, d, k),
            [make(*shape, low=low, high=high)],
            {"dim": dim, "keepdim": keep, **(extra or {})}, order=order)
    if whole:
        everything = lambda x: function(x, list(range(x.dim())), False)
        add(op, everything, [make(2, 3, low=low, high=high)], extra or {}, order=order)


each("sum", torch.sum)
each("mean", torch.mean)
each("sum", lambda x, d, k: torch.sum(x, d, k), -9, 9, make=integers)
each("amax", torch.amax)
each("amin", torch.amin)
for op, function in (("amax", torch.amax), ("amin", torch.amin)):
    for dim in ([0], [1], [0, 1]):
        add(op, lambda x, d=dim, f=function: f(x, d),
            [few(3, 4, values=[-1.0, 0.0, 1.0])], {"dim": dim})


def product(x, dims, keep):
    for d in sorted((d % x.dim() for d in dims), reverse=True):
        x = x.prod(d, keepdim=True)
    return x if keep else x.reshape([s for i, s in enumerate(x.shape)
                                     if i not in [d % x.dim() for d in dims]])


each("prod", product)
# No zero, one and two in a row: the gradient is exact.
for values in ([1.0, 2.0, -0.5], [0.0, 1.5, -2.0, 0.5]):
    for shape in ((5, 3), (4, 4), (2, 2)):
        add("prod", lambda x: x.prod(1), [few(*shape, values=values)], {"dim": [1]})
add("prod", lambda x: x.prod(), [few(6, values=[0.0, 2.0, 3.0])], {})

for op, function in (("max", torch.max), ("min", torch.min)):
    for shape, dim, keep in (((3, 4), 1, False), ((3, 4), 0, True),
                             ((2, 1, 3), -2, False), ((5,), 0, False)):
        add(op, lambda x, d=dim, k=keep, f=function: tuple(f(x, d, keepdim=k)),
            [real(*shape, distinct=True)], {"dim": dim, "keepdim": keep})
    add(op, lambda x, f=function: tuple(f(x, 1)), [few(4, 5, values=[0.0, 1.0])],
        {"dim": 1})
for op, function in (("arg_max", torch.argmax), ("argmin", torch.argmin)):
    for shape, dim, keep in (((3, 4), 1, False), ((3, 4), 0, True), ((5,), -1, False)):
        for x in (real(*shape), few(*shape, values=[0.0, 1.0])):
            add(op, lambda x, d=dim, k=keep, f=function: f(x, d, k), [x],
                {"dim": dim, "keepdim": keep})
    add(op, function, [real(3, 4)], {})
    add(op, lambda x, f=function: x.shape[1] - 1 - f(x.flip(1), 1),
        [few(3, 5, values=[0.0, 1.0])], {"dim": 1, "select_last_index": True})
for op, function in (("any", torch.any), ("all", torch.all)):
    for shape, dim, keep in (((3, 4), 1, False), ((4, 3), 0, True), ((2,), 0, False)):
        for x in (booleans(*shape), integers(*shape, high=2),
                  few(*shape, values=[0.0, 0.5])):
            add(op, lambda x, d=dim, k=keep, f=function: f(x, d, k), [x],
                {"dim": [dim], "keepdim": keep})
    add(op, function, [booleans(2, 2)], {})
add("count_nonzero", lambda x: x.count_nonzero(1), [few(3, 5, values=[0.0, 1.0])],
    {"dim": [1]})
add("count_nonzero", torch.count_nonzero, [integers(3, 5, high=2)], {})

for correction in (0.0, 1.0):
    whole = {"correction": correction}
    for op, function in (("var", torch.var), ("std", torch.std),
                         ("var_mean", torch.var_mean), ("std_mean", torch.std_mean)):
        for shape, dim, keep in (((3, 4), [1], False), ((3, 4), [0], True),
                                 ((2, 3, 4), [0, -1], False), ((5,), [0], False)):
            add(op, lambda x, d=dim, k=keep, f=function, c=int(correction): f(
                x, d, correction=c, keepdim=k), [real(*shape)],
                {"dim": dim, "keepdim": keep, **whole})
        add(op, lambda x, f=function, c=int(correction): f(
            x, [0, 1], correction=c, keepdim=False), [real(2, 3)], whole)

for p in (2.0, 1.0, 3.0, 0.0, float("inf"), -float("inf"), 0.5, -1.0):
    name = {float("inf"): "inf", -float("inf"): "-inf"}
    if p in name:
        continue
    for shape, dim, keep in (((3, 4), [1], False), ((3, 4), [0], True),
                             ((2, 3, 2), [0, 2], False)):
        add("norm", lambda x, q=p, d=dim, k=keep: torch.linalg.vector_norm(
            x, q, d, k), [real(*shape, low=0.25)],
            {"p": p, "dim": dim, "keepdim": keep})
add("norm", lambda x: torch.linalg.vector_norm(x, 2.0, [1]),
    [few(4, 3, values=[0.0, 0.0, 1.0])], {"dim": [1]}, order=1)
each("logsumexp", torch.logsumexp)
add("logsumexp", lambda x: x.logsumexp(1), [few(3, 4, values=[-400.0, 0.0, 400.0])],
    {"dim": [1]})
each("log_sum", lambda x, d, k: x.sum(d, k).log(), 0.25, 2)
each("sum_square", lambda x, d, k: x.square().sum(d, k))
each("sum_abs", lambda x, d, k: x.abs().sum(d, k))
for shape, dim in (((3, 4), 1), ((3, 4), 0), ((2, 3, 2), -2), ((5,), 0), ((1,), 0)):
    add("cumprod", lambda x, d=dim: x.cumprod(d), [real(*shape, low=0.25)],
        {"dim": dim})
    add("cumprod", lambda x, d=dim: x.cumprod(d), [real(*shape)], {"dim": dim})
    # PyTorch's second derivative takes logarithms of gradients: NaN.
    add("logcumsumexp", lambda x, d=dim: x.logcumsumexp(d), [real(*shape)],
        {"dim": dim}, order=1)
add("cumprod", lambda x: x.cumprod(1), [few(4, 4, values=[0.0, 1.0, 2.0])],
    {"dim": 1}, order=1)
# Where one was infinite, the gradients of all were NaN. (Of infinities themselves
# they are NaN in PyTorch.)
for sign in ("positive", "neg"):
    for op, function, dim in (("logsumexp", lambda x: x.logsumexp(1), [1]),
                              ("logcumsumexp", lambda x: x.logcumsumexp(1), 1)):
        add(op, lambda x, m, s=sign, f=function: f(
            getattr(x.masked_fill(m, 0.0).log(), s)()),
            [real(4, 5, low=0.25), given([[False, True, False, False, False],
                                          [True, False, False, True, False],
                                          [True] * 5, [False] * 5], "bool")],
            nodes=[{"op": "masked_fill", "inputs": ["x0", "x1"], "outputs": ["m"],
                    "attributes": {"value": 0.0}},
                   {"op": "log", "inputs": ["m"], "outputs": ["l"]},
                   {"op": "neg", "inputs": ["l"], "outputs": ["neg"]},
                   {"op": op, "inputs": ["neg" if sign == "neg" else "l"], "outputs": ["y0"],
                    "attributes": {"dim": dim}}], finite=False, order=1)
