"""Elements picked by indices and put at indices."""

import torch
import torch.nn.functional as F

from families.frame import Family, booleans, few, given, integers, permutation, real

family = Family("indexing")
add = family.add

for type in ("i64", "i32"):
    for shape, index, dim in (((3, 4), (3, 2), 1), ((3, 4), (5, 4), 0),
                              ((2, 3, 2), (2, 1, 2), -2), ((5,), (3,), 0),
                              ((1, 1), (1, 1), 0)):
        add("gather", lambda x, i, d=dim: x.gather(d, i.long()) ** 2,
            [real(*shape), integers(*index, high=shape[dim], type=type)], nodes=[
                {"op": "gather", "inputs": ["x0", "x1"], "outputs": ["g"],
                 "attributes": {"dim": dim}},
                {"op": "mul", "inputs": ["g", "g"], "outputs": ["y0"]}])
add("gather", lambda x, i: x.gather(1, i % 4), [real(3, 4), integers(3, 3, low=-4, high=4)],
    {"dim": 1})
add("take_along_dim", lambda x, i: torch.take_along_dim(x, i, 1),
    [real(3, 4), integers(1, 2, high=4)], {"dim": 1})
add("take_along_dim", lambda x, i: torch.take_along_dim(x.contiguous(), i),
    [real(3, 4), integers(5, high=12)])
for shape, dim in (((4, 3), 0), ((2, 5), 1), ((2, 3, 4), -1), ((6,), 0)):
    add("index_select", lambda x, i, d=dim: x.index_select(d, i) ** 2,
        [real(*shape), integers(4, high=shape[dim])], nodes=[
            {"op": "index_select", "inputs": ["x0", "x1"], "outputs": ["g"],
             "attributes": {"dim": dim}},
            {"op": "mul", "inputs": ["g", "g"], "outputs": ["y0"]}])
add("gather_nd", lambda x, i: x[tuple(i.movedim(-1, 0))],
    [real(3, 4), given([[0, 1], [2, 3], [0, 1]], "i64")])
add("gather_nd", lambda x, i: x[tuple(i.movedim(-1, 0))],
    [real(3, 4, 2), given([[[2], [0]], [[1], [1]]], "i64")])
add("gather_nd", lambda x, i: torch.stack([r[tuple(j.movedim(-1, 0))]
                                           for r, j in zip(x, i)]),
    [real(2, 3, 2), given([[[0], [2]], [[1], [1]]], "i64")], {"batch_dims": 1})
add("index", lambda x, i: x[i], [real(4, 3), integers(2, 2, high=4)])
add("index", lambda x, i, j: x[i, j], [real(4, 3), integers(5, high=4),
                                       integers(5, high=3)])
add("index", lambda x, i, j: x[i, j], [real(4, 3, 2), integers(2, 1, high=4),
                                       integers(3, high=3)])
add("index", lambda x, i: x[:, i], [real(2, 4), integers(3, low=-4, high=4)],
    {"dims": [1]})
add("index", lambda x, i, j: x[:, i, :, j], [real(2, 3, 2, 4), integers(3, high=3),
                                            integers(3, high=4)], {"dims": [1, 3]})
add("one_hot", lambda i: F.one_hot(i, 5), [integers(3, 2, high=5)], {"num_classes": 5})
add("reverse_sequence", lambda x, n: torch.stack([
    torch.cat([r[:k].flip(0), r[k:]]) for r, k in zip(x, n.tolist())]),
    [real(3, 4), given([1, 4, 2], "i64")])
add("reverse_sequence", lambda x, n: torch.stack([
    torch.cat([r[:k].flip(0), r[k:]]) for r, k in zip(x.transpose(0, 1), n.tolist())
]).transpose(0, 1), [real(4, 2, 3), given([3, 2], "i64")],
    {"batch_dim": 1, "time_dim": 0})
for mode in ("sum", "mean", "max"):
    add("embedding_bag", lambda t, i, m=mode: F.embedding_bag(i, t, mode=m),
        [real(5, 3, distinct=True), integers(4, 2, high=5)], {"mode": mode}, order=1,
        views=False, strides=False)
add("embedding_bag", lambda t, i, w: F.embedding_bag(
    i, t, mode="sum", per_sample_weights=w),
    [real(5, 3), integers(2, 3, high=5), real(2, 3)], {"mode": "sum"}, order=1,
    views=False, strides=False)

INDEXED = [((3, 4), (2, 4), 0), ((3, 4), (3, 2), 1), ((5,), (7,), 0),
           ((2, 3, 2), (2, 4, 1), 1)]
for shape, index, dim in INDEXED:
    size = shape[dim]
    add("scatter_add", lambda x, i, s, d=dim: x.scatter_add(d, i, s),
        [real(*shape), integers(*index, high=size), real(*index)], {"dim": dim})
    add("scatter_elements", lambda x, i, s, d=dim: x.scatter_add(d, i, s),
        [real(*shape), integers(*index, high=size), real(*index)],
        {"dim": dim, "reduce": "add"})
    for reduce in ("sum", "mean", "amax", "amin"):
        for self in (True, False):
            add("scatter_reduce", lambda x, i, s, d=dim, r=reduce, f=self:
                x.scatter_reduce(d, i, s, r, include_self=f),
                [real(*shape), integers(*index, high=size), real(*index)],
                {"dim": dim, "reduce": reduce, "include_self": self},
                order=1 if reduce[0] == "a" else 2)
# Products, without and with zeros (PyTorch differentiates those once).
for values in ([0.5, 1.5, -2.0], [0.0, 1.5, -2.0]):
    for self in (True, False):
        add("scatter_reduce", lambda x, i, s, f=self: x.scatter_reduce(
            1, i, s, "prod", include_self=f),
            [few(2, 3, values=values), integers(2, 4, high=3),
             few(2, 4, values=values)],
            {"dim": 1, "reduce": "prod", "include_self": self}, order=1)
# Ties share the gradient.
for reduce in ("amax", "amin"):
    add("scatter_reduce", lambda x, i, s, r=reduce: x.scatter_reduce(0, i, s, r),
        [few(4, values=[0.0, 1.0]), integers(9, high=4), few(9, values=[0.0, 1.0])],
        {"dim": 0, "reduce": reduce}, order=1)
# Each place once: what is written last is not said.
add("scatter_elements", lambda x, i, s: x.scatter(0, i, s),
    [real(5), permutation(5), real(5)])
add("scatter_elements", lambda x, i, s: x.scatter(1, i, s),
    [real(2, 3), given([[2, 0], [1, 2]], "i64"), real(2, 2)], {"dim": 1})
add("scatter_elements", lambda x, i, s: x.scatter_reduce(0, i, s, "prod"),
    [real(4, low=0.5), integers(6, high=4), real(6, low=0.5)],
    {"dim": 0, "reduce": "mul"}, order=1)
for reduce, name in (("min", "amin"), ("max", "amax")):
    add("scatter_elements", lambda x, i, s, r=name: x.scatter_reduce(0, i, s, r),
        [real(4), integers(6, high=4), real(6)], {"dim": 0, "reduce": reduce}, order=1)
for reduce in ("none", "add"):
    add("scatter_nd", lambda x, i, u, r=reduce: x.index_put(
        tuple(i.movedim(-1, 0)), u, accumulate=r == "add"),
        [real(3, 4), given([[0, 1], [2, 3], [1, 0]], "i64"), real(3)],
        {"reduce": reduce})
    add("scatter_nd", lambda x, i, u, r=reduce: x.index_put(
        tuple(i.movedim(-1, 0)), u, accumulate=r == "add"),
        [real(4, 2), given([[2], [0]], "i64"), real(2, 2)], {"reduce": reduce})
for accumulate in (False, True):
    add("index_put", lambda x, v, i, a=accumulate: x.index_put((i,), v, a),
        [real(4, 3), real(2, 3), given([2, 0], "i64")], {"accumulate": accumulate})
    add("index_put", lambda x, v, i, j, a=accumulate: x.index_put((i, j), v, a),
        [real(4, 3), real(1), given([2, 0, 3], "i64"), given([1, 1, 2], "i64")],
        {"accumulate": accumulate})
add("index_put", lambda x, v, i: x.index_put((i,), v, True),
    [real(3), real(6), integers(6, high=3)], {"accumulate": True})
for shape, dim in (((4, 3), 0), ((2, 5), 1), ((2, 3, 4), -1)):
    part = list(shape)
    part[dim] = 3
    add("index_add", lambda x, i, s, d=dim: x.index_add(d, i, s, alpha=0.5),
        [real(*shape), integers(3, high=shape[dim]), real(*part)],
        {"dim": dim, "alpha": 0.5})
    add("index_copy", lambda x, i, s, d=dim: x.index_copy(d, i, s),
        [real(*shape), given([2, 0, 1], "i64"), real(*part)], {"dim": dim})
add("masked_scatter", lambda x, m, s: x.masked_scatter(m, s),
    [real(3, 4), booleans(3, 4), real(12)], order=1, views=False, strides=False)
