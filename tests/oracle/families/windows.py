"""Convolutions and pooling over one to three dimensions."""

import torch
import torch.nn.functional as F

from families.frame import Family, few, real

family = Family("windows")
add = family.add

CONVOLUTIONS = [F.conv1d, F.conv2d, F.conv3d]
TRANSPOSED = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d]


def convolved(names, n, x, w, attributes=None, bias=False):
    a = attributes or {}

    def function(x, w, b=None):
        return CONVOLUTIONS[n - 1](x, w, b, a.get("strides", 1), a.get("padding", 0),
                                   a.get("dilation", 1), a.get("groups", 1))

    for name in names:
        add(name, function, [real(*x), real(*w)] + ([real(w[0])] if bias else []), a)


convolved(["conv", "conv1d"], 1, (2, 3, 7), (4, 3, 3), bias=True)
convolved(["conv1d"], 1, (1, 2, 8), (2, 1, 2),
          {"strides": [2], "padding": [1], "groups": 2})
convolved(["conv1d"], 1, (1, 1, 9), (1, 1, 3), {"dilation": [3], "strides": [2]})
convolved(["conv1d"], 1, (1, 1, 1), (1, 1, 1), bias=True)
convolved(["conv"], 2, (1, 2, 5, 4), (2, 2, 3, 2), {"padding": [1, 0]}, bias=True)
convolved(["conv"], 2, (1, 4, 5, 5), (4, 2, 2, 2),
          {"groups": 2, "strides": [2, 1], "dilation": [1, 2]})
convolved(["conv", "conv3d"], 3, (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), bias=True)
convolved(["conv3d"], 3, (1, 2, 4, 3, 5), (2, 1, 2, 3, 2),
          {"strides": [2, 1, 2], "padding": [1, 1, 0], "groups": 2})
convolved(["conv3d"], 3, (1, 1, 5, 2, 3), (1, 1, 2, 1, 2), {"dilation": [3, 1, 2]})


def transposed(names, n, x, w, attributes=None, bias=False):
    a = attributes or {}

    def function(x, w, b=None):
        return TRANSPOSED[n - 1](
            x, w, b, a.get("strides", 1), a.get("padding", 0),
            a.get("output_padding", 0), a.get("groups", 1), a.get("dilation", 1))

    channels = w[1] * a.get("groups", 1)
    for name in names:
        add(name, function,
            [real(*x), real(*w)] + ([real(channels)] if bias else []), a)


transposed(["conv_transpose", "conv_transpose1d"], 1, (2, 3, 4), (3, 2, 3), bias=True)
transposed(["conv_transpose1d"], 1, (1, 2, 4), (2, 1, 3),
           {"strides": [2], "padding": [1], "output_padding": [1], "groups": 2})
transposed(["conv_transpose1d"], 1, (1, 1, 3), (1, 1, 2), {"dilation": [3]})
transposed(["conv_transpose", "conv_transpose2d"], 2, (1, 2, 3, 2), (2, 3, 2, 3),
           bias=True)
transposed(["conv_transpose2d"], 2, (1, 4, 3, 3), (4, 1, 3, 2),
           {"strides": [2, 3], "padding": [1, 0], "output_padding": [0, 1],
            "groups": 2})
transposed(["conv_transpose2d"], 2, (2, 1, 2, 3), (1, 2, 2, 2),
           {"dilation": [2, 1], "strides": [1, 2]}, bias=True)
transposed(["conv_transpose", "conv_transpose3d"], 3, (1, 2, 2, 2, 2), (2, 1, 2, 2, 2),
           bias=True)
transposed(["conv_transpose3d"], 3, (1, 2, 2, 1, 2), (2, 2, 2, 1, 3),
           {"strides": [1, 2, 2], "padding": [0, 0, 1], "output_padding": [0, 1, 0]})

MAXIMA = [F.max_pool1d, F.max_pool2d, F.max_pool3d]
MEANS = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d]
POOLS = [
    (1, (2, 2, 7), {"kernel": [3]}),
    (1, (1, 2, 8), {"kernel": [3], "strides": [2], "padding": [1]}),
    (1, (1, 1, 6), {"kernel": [2], "strides": [3], "ceil_mode": True}),
    (1, (1, 2, 1), {"kernel": [1]}),
    (2, (1, 2, 5, 6), {"kernel": [2, 3]}),
    (2, (1, 1, 5, 7), {"kernel": [3, 2], "strides": [2, 2], "padding": [1, 1],
                       "ceil_mode": True}),
    (3, (1, 2, 4, 3, 4), {"kernel": [2, 2, 2]}),
    (3, (1, 1, 4, 4, 3), {"kernel": [3, 2, 2], "strides": [2, 1, 1],
                          "padding": [1, 1, 0]}),
]
DILATED = [(1, (1, 2, 8), {"kernel": [3], "dilation": [2], "strides": [1]}),
           (2, (1, 1, 6, 6), {"kernel": [2, 2], "dilation": [3, 2], "strides": [2, 1],
                              "padding": [1, 1]})]
for n, shape, a in POOLS + DILATED:
    def largest(x, n=n, a=a):
        return MAXIMA[n - 1](x, a["kernel"], a.get("strides"), a.get("padding", 0),
                             a.get("dilation", 1), a.get("ceil_mode", False),
                             return_indices=True)

    for name in ["max_pool"] + [f"max_pool{n}d"] * (n != 2):
        for x in (real(*shape, low=-4, high=4, distinct=True),
                  few(*shape, values=[-1.0, 0.5, 1.0])):
            add(name, lambda x, f=largest: f(x), [x], a)
for n, shape, a in POOLS:
    for name in ["avg_pool"] + [f"avg_pool{n}d"] * (n != 2):
        for counted in (True, False):
            add(name, lambda x, n=n, a=a, c=counted: MEANS[n - 1](
                x, a["kernel"], a.get("strides"), a.get("padding", 0),
                a.get("ceil_mode", False), c),
                [real(*shape)], {**a, "count_include_pad": counted})
for n, shape, a in ((2, (1, 1, 4, 4), {"kernel": [2, 2], "divisor_override": 3}),
                    (3, (1, 1, 2, 4, 4), {"kernel": [2, 2, 2], "divisor_override": 5})):
    add("avg_pool", lambda x, n=n, a=a: MEANS[n - 1](
        x, a["kernel"], divisor_override=a["divisor_override"]), [real(*shape)], a)
for p, shape, a in ((2.0, (1, 2, 6), {"kernel": [3]}),
                    (3.0, (1, 1, 5, 4), {"kernel": [2, 2], "strides": [1, 2]}),
                    (1.0, (1, 1, 4, 4), {"kernel": [2, 2]})):
    def norms(x, p=p, a=a):
        mean = F.avg_pool1d if x.dim() == 3 else F.avg_pool2d
        area = 1
        for k in a["kernel"]:
            area *= k
        total = mean(x.abs() ** p, a["kernel"], a.get("strides")) * area
        return total ** (1 / p)

    add("lp_pool", norms, [real(*shape, low=0.25)], {"norm_type": p, **a})
    add("global_lp_pool", lambda x, p=p: (x.abs() ** p).sum(
        list(range(2, x.dim())), keepdim=True) ** (1 / p),
        [real(*shape, low=0.25)], {"norm_type": p})
for shape in ((2, 3, 4), (1, 2, 3, 4), (1, 2, 2, 3, 2), (1, 1, 1)):
    dims = list(range(2, len(shape)))
    add("global_avg_pool", lambda x, d=dims: (x * x).mean(d, keepdim=True),
        [real(*shape)], nodes=[
            {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
            {"op": "global_avg_pool", "inputs": ["q"], "outputs": ["y0"]}])
    for x in (real(*shape, distinct=True), few(*shape, values=[0.0, 1.0])):
        add("global_max_pool", lambda x: MAXIMA[x.dim() - 3](
            x, list(x.shape[2:]), return_indices=True), [x])
EVEN = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d]
EVEN_MAXIMA = [F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d]
for n, shape, size in ((1, (2, 2, 7), [3]), (1, (1, 1, 4), [4]), (1, (1, 2, 3), [5]),
                       (2, (1, 2, 5, 6), [2, 4]), (2, (1, 1, 3, 3), [1, 1]),
                       (3, (1, 2, 4, 3, 5), [2, 3, 2])):
    for name in ("adaptive_avg_pool", f"adaptive_avg_pool{n}d"):
        add(name, lambda x, n=n, s=size: EVEN[n - 1](x, s), [real(*shape)],
            {"output_size": size})
    for name in ("adaptive_max_pool", f"adaptive_max_pool{n}d"):
        for x in (real(*shape, distinct=True), few(*shape, values=[0.0, 1.0])):
            add(name, lambda x, n=n, s=size: EVEN_MAXIMA[n - 1](
                x, s, return_indices=True), [x], {"output_size": size})
