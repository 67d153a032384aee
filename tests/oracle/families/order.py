"""Sorting, selecting, distances, determinants."""

import torch
import torch.nn.functional as F

from families.frame import Family, few, integers, real

family = Family("order")
add = family.add

for shape, dim in (((3, 5), 1), ((5, 3), 0), ((2, 1, 4), -1), ((7,), 0), ((1,), 0)):
    for descending in (False, True):
        for x in (real(*shape), few(*shape, values=[0.0, 1.0])):
            add("argsort", lambda x, d=dim, g=descending: torch.sort(
                x, dim=d, descending=g, stable=True).indices, [x],
                {"dim": dim, "descending": descending})
for shape, k, dim in (((3, 5), 2, 1), ((5, 3), 5, 0), ((7,), 3, -1), ((2, 1), 1, 1)):
    for largest in (True, False):
        add("topk", lambda x, k=k, d=dim, g=largest: tuple(
            (x * x * x).topk(k, d, g)), [real(*shape, distinct=True)], nodes=[
                {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
                {"op": "mul", "inputs": ["q", "x0"], "outputs": ["r"]},
                {"op": "topk", "inputs": ["r"], "outputs": ["y0", "y1"],
                 "attributes": {"k": k, "dim": dim, "largest": largest}}])
for shape, k, dim, keep in (((3, 5), 2, 1, False), ((5, 3), 1, 0, True), ((4,), 4, -1,
                                                                         False)):
    add("kthvalue", lambda x, k=k, d=dim, e=keep: tuple(x.kthvalue(k, d, e)),
        [real(*shape, distinct=True)], {"k": k, "dim": dim, "keepdim": keep})


def distances(a, b, p):
    return torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, -1)


for p in (2.0, 1.0, 3.0):
    add("cdist", lambda a, b, p=p: distances(a, b, p),
        [real(3, 4, distinct=True), real(5, 4, distinct=True)], {"p": p})
    add("pdist", lambda x, p=p: F.pdist(x, p), [real(4, 3, distinct=True)], {"p": p},
        order=1, strides=False, views=False)
add("cdist", lambda a, b: distances(a, b, 2.0), [real(2, 2, 3), real(2, 4, 3)])
for n in (1, 2, 3, 4):
    add("det", torch.det, [real(n, n)])
add("det", torch.det, [real(2, 3, 3)])
