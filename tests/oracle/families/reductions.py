"""Sums, extremes and what normalizes along a dimension."""

import torch

from families.frame import Family, few, integers, real

family = Family("reductions")
add = family.add

SHAPES = [((3, 4), [1]), ((3, 4), [0]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [1]),
          ((5,), [0]), ((3, 1, 2), [1]), ((2, 3), [0, 1]), ((1,), [0]),
          ((2, 33), [1])]
for shape, dims in SHAPES:
    add("reduce_sum", lambda x, d=dims: x.sum(d), [real(*shape)], {"dims": dims})
    add("reduce_mean", lambda x, d=dims: x.mean(d), [real(*shape)], {"dims": dims})
    for op, function in (("reduce_max", torch.amax), ("reduce_min", torch.amin)):
        add(op, lambda x, d=dims, f=function: f(x, d), [real(*shape)],
            {"dims": dims})
        # Ties share the gradient.
        add(op, lambda x, d=dims, f=function: f(x, d),
            [few(*shape, values=[-1.0, 0.0, 1.0])], {"dims": dims})
for type in ("i32", "i64"):
    for op, function in (("reduce_sum", lambda x: x.sum([1], dtype=x.dtype)),
                         ("reduce_max", lambda x: torch.amax(x, [1])),
                         ("reduce_min", lambda x: torch.amin(x, [1]))):
        add(op, function, [integers(3, 5, low=-9, high=9, type=type)],
            {"dims": [1]})
for shape, dim in (((3, 5), 1), ((3, 5), 0), ((2, 1, 3), 1), ((7,), 0)):
    add("argmax", lambda x, d=dim: x.argmax(d), [real(*shape)], {"dim": dim})
    add("argmax", lambda x, d=dim: x.argmax(d), [few(*shape, values=[0.0, 1.0])],
        {"dim": dim})

for shape, dim in (((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((4, 1), 1),
                   ((6,), 0)):
    add("softmax", lambda x, d=dim: x.softmax(d), [real(*shape)], {"dim": dim})
    add("log_softmax", lambda x, d=dim: x.log_softmax(d), [real(*shape)],
        {"dim": dim})
# Far apart: nothing overflows.
for op, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
    add(op, lambda x, f=function: f(x, 1), [few(3, 4, values=[-400.0, 0.0, 400.0])],
        {"dim": 1})

for shape, dims in SHAPES:
    def product(x, dims=dims):
        for d in reversed(dims):
            x = x.prod(d)
        return x

    add("reduce_prod", product, [real(*shape)], {"dims": dims})
    # Exact where factors are zero: one, and several.
    add("reduce_prod", product, [few(*shape, values=[0.0, 1.5, -2.0, 0.5])],
        {"dims": dims})
add("reduce_prod", lambda x: x.prod(1), [integers(4, 3, low=-3, high=4)], {"dims": [1]})
