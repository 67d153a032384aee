"""Tensors without elements."""

import torch
import torch.nn.functional as F

from families.frame import Family, booleans, integers, real

family = Family("empty")
add = family.add

SHAPES = [(0,), (3, 0), (0, 4), (2, 0, 3)]
for shape in SHAPES:
    for op, function in (("exp", torch.exp), ("relu", torch.relu), ("gelu", F.gelu),
                         ("tanh", torch.tanh), ("neg", torch.neg)):
        add(op, function, [real(*shape)])
    for op, function in (("add", torch.add), ("mul", torch.mul), ("div", torch.div),
                         ("maximum", torch.maximum)):
        add(op, function, [real(*shape), real(*shape, low=0.5)])
    add("select", torch.where, [booleans(*shape), real(*shape), real(*shape)])
    add("compare", torch.lt, [real(*shape), real(*shape)], {"predicate": "lt"})
    for dim in range(len(shape)):
        add("reduce_sum", lambda x, d=dim: x.sum(d), [real(*shape)], {"dims": [dim]})
        if shape[dim]:
            add("reduce_max", lambda x, d=dim: x.amax(d), [real(*shape)],
                {"dims": [dim]})
            add("softmax", lambda x, d=dim: x.softmax(d), [real(*shape)], {"dim": dim})
    total = list(range(len(shape)))
    add("reduce_sum", lambda x, d=total: x.sum(d), [real(*shape)], {"dims": total})
add("reduce_prod", lambda x: x.prod(0), [real(0, 3)], {"dims": [0]})
add("matmul", torch.matmul, [real(3, 0), real(0, 2)])
add("matmul", torch.matmul, [real(0, 3), real(3, 2)])
add("matmul", torch.matmul, [real(2, 3), real(3, 0)])
add("matmul", torch.matmul, [real(0, 2, 3), real(0, 3, 2)])
add("linear", F.linear, [real(0, 3), real(2, 3), real(2)])
add("linear", F.linear, [real(4, 0), real(2, 0), real(2)])
add("concat", lambda *p: torch.cat(p, 0), [real(0, 3), real(2, 3)], {"dim": 0})
add("concat", lambda *p: torch.cat(p, 1), [real(2, 0), real(2, 0)], {"dim": 1})
add("reshape", lambda x: (x * x).reshape(4, 0), [real(0, 3)], nodes=[
    {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
    {"op": "reshape", "inputs": ["q"], "outputs": ["y0"],
     "attributes": {"shape": [4, 0]}}])
add("permute", lambda x: (x * x).permute(1, 0), [real(0, 3)], nodes=[
    {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
    {"op": "permute", "inputs": ["q"], "outputs": ["y0"],
     "attributes": {"permutation": [1, 0]}}])
add("slice", lambda x: (x * x)[2:2], [real(4)], nodes=[
    {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
    {"op": "slice", "inputs": ["q"], "outputs": ["y0"],
     "attributes": {"starts": [2], "limits": [2], "strides": [1]}}])
add("pad", lambda x: F.pad(x * x, [1, 2], value=0.5), [real(0)], nodes=[
    {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
    {"op": "pad", "inputs": ["q"], "outputs": ["y0"],
     "attributes": {"low": [1], "high": [2], "interior": [0], "value": 0.5}}])
add("broadcast", lambda x: (x * x).expand(0, 3), [real(3)], nodes=[
    {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
    {"op": "broadcast", "inputs": ["q"], "outputs": ["y0"],
     "attributes": {"shape": [0, 3], "dims": [1]}}])
add("take", lambda t, i: t[i], [real(4, 2), integers(0, high=4)])
add("mse_loss", lambda x, y: F.mse_loss(x, y, reduction="sum"), [real(0, 3), real(0, 3)],
    {"reduction": "sum"})
add("cumsum", lambda x: x.cumsum(0), [real(0, 3)], {"dim": 0})
