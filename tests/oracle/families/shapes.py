"""Views, and what puts tensors together or picks from them."""

import torch
import torch.nn.functional as F

from families.frame import DTYPES, Family, booleans, given, integers, real

family = Family("shapes")
add = family.add


def squared(*nodes):
    """The ops on x0 squared: the second derivative is not zero."""
    return [{"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]}, *nodes]


def node(op, inputs, attributes):
    return {"op": op, "inputs": inputs, "outputs": ["y0"],
            "attributes": attributes}


def view(op, function, x, attributes):
    add(op, lambda x: function(x * x), [x],
        nodes=squared(node(op, ["q"], attributes)))


for old, new in (((3, 4), [2, 6]), ((3, 4), [12]), ((6,), [2, 1, 3]), ((1, 1), []),
                 ((), [1, 1])):
    view("reshape", lambda x, s=new: x.reshape(s), real(*old), {"shape": new})
for shape, order in (((3, 4), [1, 0]), ((2, 3, 4), [2, 0, 1]),
                     ((2, 1, 3, 2), [3, 1, 0, 2]), ((4,), [0])):
    view("permute", lambda x, o=order: x.permute(o), real(*shape),
         {"permutation": order})
for shape, dims, result in (((3,), [1], [2, 3]), ((3,), [0], [3, 2]),
                            ((2, 1), [0, 1], [2, 4]), ((), [], [2, 3]),
                            ((1, 3), [0, 2], [2, 2, 3])):
    def expanded(x, dims=dims, result=result):
        full = [1] * len(result)
        for size, d in zip(x.shape, dims):
            full[d] = size
        return x.reshape(full).expand(result)

    view("broadcast", expanded, real(*shape), {"shape": result, "dims": dims})
for shape, starts, limits, steps in (
    ((5, 4), [1, 0], [4, 4], [1, 1]), ((5, 4), [0, 1], [5, 4], [2, 2]),
    ((7,), [6], [7], [1]), ((2, 6, 3), [0, 1, 0], [1, 6, 3], [1, 3, 2])):
    def sliced(x, starts=starts, limits=limits, steps=steps):
        return x[tuple(slice(*t) for t in zip(starts, limits, steps))]

    view("slice", sliced, real(*shape),
         {"starts": starts, "limits": limits, "strides": steps})
for shape, low, high, value in (((3, 2), [1, 0], [0, 2], 0.0),
                                ((4,), [2], [3], 1.5), ((2, 2, 1), [0, 1, 1],
                                                        [1, 0, 1], -0.5)):
    def padded(x, low=low, high=high, value=value):
        widths = [w for pair in zip(low, high) for w in (pair[1], pair[0])]
        return F.pad(x, widths[::-1], value=value)

    view("pad", padded, real(*shape),
         {"low": low, "high": high, "interior": [0] * len(low), "value": value})
# Between the elements too.
view("pad", lambda x: torch.stack([x, torch.full_like(x, 0.5)], 1).reshape(-1)[:-1],
     real(4), {"low": [0], "high": [0], "interior": [1], "value": 0.5})
for size, sizes, strides, offset in (((12,), [3, 2], [2, 1], 1),
                                     ((3, 4), [2, 2], [1, 4], 2),
                                     ((8,), [3, 4], [2, 1], 0),
                                     ((5,), [4], [0], 3)):
    view("as_strided", lambda x, s=sizes, t=strides, o=offset: x.contiguous()
         .as_strided(s, t, o), real(*size),
         {"sizes": sizes, "strides": strides, "offset": offset})
add("detach", lambda x: x * x.detach(), [real(3, 2)], nodes=[
    {"op": "detach", "inputs": ["x0"], "outputs": ["d"]},
    {"op": "mul", "inputs": ["x0", "d"], "outputs": ["y0"]}])

for shapes, dim in (([(2, 3), (4, 3)], 0), ([(2, 3), (2, 1), (2, 2)], 1),
                    ([(3,)], 0), ([(2, 1, 2), (2, 3, 2)], 1)):
    add("concat", lambda *p, d=dim: torch.cat(p, d), [real(*s) for s in shapes],
        {"dim": dim})
add("concat", lambda x, y: torch.cat([x, y, x * x], 1), [real(2, 3), real(2, 1)],
    nodes=squared(node("concat", ["x0", "x1", "q"], {"dim": 1})))
add("concat", lambda *p: torch.cat(p, 0), [integers(2), integers(3)], {"dim": 0})
add("concat", lambda *p: torch.cat(p, 1), [booleans(2, 2), booleans(2, 1)],
    {"dim": 1})

for table, indices in (((5, 3), (4,)), ((4,), (2, 3)), ((3, 2, 2), (6,)),
                       ((7, 1), ()), ((1, 3), (3,))):
    for type in ("i64", "i32"):
        add("take", lambda t, i: t[i.long()] * t[i.long()], [
            real(*table), integers(*indices, high=table[0], type=type)],
            nodes=[{"op": "take", "inputs": ["x0", "x1"], "outputs": ["t"]},
                   {"op": "mul", "inputs": ["t", "t"], "outputs": ["y0"]}])

for shape, dims in (((3, 4), [0]), ((3, 4), [1]), ((2, 3, 2), [0, 2]), ((1,), [0])):
    view("reverse", lambda x, d=dims: x.flip(d), real(*shape), {"dims": dims})
for type in ("i64", "i32", "f"):
    add("iota", lambda t=type: torch.arange(4).expand(3, 4).to(
        torch.float64 if t == "f" else DTYPES[t]).clone(), [],
        nodes=[{"op": "iota", "type": type, "shape": [3, 4], "outputs": ["y0"],
                "attributes": {"dim": 1}}])
add("constant", lambda: torch.tensor([[1.5, -2.0], [0.0, 3.0]], dtype=torch.float64), [],
    nodes=[{"op": "constant", "type": "f", "shape": [2, 2], "outputs": ["y0"],
            "value": [1.5, -2.0, 0.0, 3.0]}])
# What dropout does whatever is drawn.
for p, training, function in ((0.5, False, lambda x: x), (0.0, True, lambda x: x),
                              (1.0, True, lambda x: x * 0)):
    add("dropout", lambda x, s, f=function: f(x * x), [real(3, 4), given([7, 0], "i64")],
        nodes=[{"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
               {"op": "dropout", "inputs": ["q", "x1"], "outputs": ["y0"],
                "attributes": {"draw": 0, "p": p, "training": training}}])
