"""Products of matrices, convolutions, attention."""

import torch
import torch.nn.functional as F

from families.frame import Family, real

family = Family("contractions")
add = family.add

for a, b in (((3, 4), (4, 2)), ((1, 5), (5, 1)), ((1, 1), (1, 3)),
             ((2, 3, 4), (2, 4, 2)), ((2, 1, 2, 3), (2, 1, 3, 2)),
             ((4, 17), (17, 9))):
    add("matmul", torch.matmul, [real(*a), real(*b)])
for ta, tb in ((True, False), (False, True), (True, True)):
    a = (2, 4, 3) if ta else (2, 3, 4)
    b = (2, 5, 4) if tb else (2, 4, 5)
    add("matmul", lambda x, y, ta=ta, tb=tb: torch.matmul(
        x.mT if ta else x, y.mT if tb else y), [real(*a), real(*b)],
        {"transpose_lhs": ta, "transpose_rhs": tb})
# The square of a matrix.
add("matmul", lambda x: x @ x, [real(3, 3)],
    nodes=[{"op": "matmul", "inputs": ["x0", "x0"], "outputs": ["y0"]}])
for x, w, bias in (((3, 4), (2, 4), True), ((2, 3, 4), (5, 4), True),
                   ((3, 4), (2, 4), False), ((1, 1), (1, 1), True)):
    inputs = [real(*x), real(*w)] + ([real(w[0])] if bias else [])
    add("linear", F.linear, inputs)

for x, w, attributes in (
    ((2, 3, 5, 6), (4, 3, 3, 2), {}),
    ((1, 2, 6, 5), (2, 2, 3, 3), {"strides": [2, 1], "padding": [1, 1, 1, 1]}),
    ((1, 4, 5, 5), (4, 2, 2, 2), {"groups": 2, "padding": [1, 1, 0, 0]}),
    ((2, 3, 6, 6), (3, 1, 3, 3), {"groups": 3, "padding": [1, 1, 1, 1]}),
    ((1, 2, 7, 7), (1, 2, 3, 2), {"dilation": [2, 3], "strides": [1, 2]}),
    ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    ((2, 2, 3, 3), (2, 2, 3, 3), {"padding": [2, 2, 2, 2], "strides": [3, 3]}),
):
    def convolved(x, w, a=attributes):
        return F.conv2d(x, w, stride=a.get("strides", 1),
                        padding=a.get("padding", [0] * 4)[::2],
                        dilation=a.get("dilation", 1), groups=a.get("groups", 1))

    add("conv2d", convolved, [real(*x), real(*w)], attributes)
add("conv2d", lambda x, w: F.conv2d(F.pad(x, [2, 0, 0, 1]), w),
    [real(1, 2, 4, 3), real(2, 2, 2, 3)], {"padding": [0, 1, 2, 0]})


def attention(q, k, v, causal=False, scale=None):
    scores = q @ k.mT * (scale or q.shape[-1] ** -0.5)
    if causal:
        t, s = scores.shape[-2:]
        hidden = torch.ones(t, s, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return scores.softmax(-1) @ v


add("attention", attention, [real(1, 2, 3, 4), real(1, 2, 5, 4), real(1, 2, 5, 2)])
add("attention", lambda q, k, v: attention(q, k, v, True),
    [real(2, 4, 3), real(2, 4, 3), real(2, 4, 3)], {"causal": True})
add("attention", lambda q, k, v: attention(q, k, v, scale=0.25),
    [real(3, 2), real(4, 2), real(4, 3)], {"scale": 0.25})
add("attention", attention, [real(1, 1, 1, 1)] * 3)
