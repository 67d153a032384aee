"""Running sums, sorting, and scatter."""

import torch

from families.frame import Family, few, given, integers, real

family = Family("indexed")
add = family.add

for shape, dim in (((3, 5), 1), ((3, 5), 0), ((2, 3, 2), 1), ((1,), 0), ((9,), 0)):
    for exclusive in (False, True):
        for reverse in (False, True):
            def sums(x, d=dim, e=exclusive, r=reverse):
                x = x * x
                turned = x.flip(d) if r else x
                y = turned.cumsum(d) - (turned if e else 0)
                return y.flip(d) if r else y

            add("cumsum", sums, [real(*shape)], nodes=[
                {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
                {"op": "cumsum", "inputs": ["q"], "outputs": ["y0"], "attributes": {
                    "dim": dim, "exclusive": exclusive, "reverse": reverse}}])
    for descending in (False, True):
        for x in (real(*shape, distinct=True), few(*shape, values=[-1.0, 0.0, 1.0])):
            add("sort", lambda x, d=dim, g=descending: tuple(
                torch.sort(x, dim=d, descending=g, stable=True)), [x],
                {"dim": dim, "descending": descending})
add("cumsum", lambda x: x.cumsum(0), [integers(4, 3, low=-5, high=5)], {"dim": 0})
add("sort", lambda x: tuple(torch.sort(x, dim=1, stable=True)),
    [integers(3, 6, low=-3, high=3)], {"dim": 1})
for descending in (False, True):
    add("sort", lambda x, g=descending: tuple(torch.sort(
        x, dim=0, descending=g, stable=True)),
        [given([1.0, float("nan"), -1.0, float("inf"), float("nan"), 0.0])],
        {"dim": 0, "descending": descending}, finite=False, order=1)

KINDS = [("add", "sum"), ("mul", "prod"), ("min", "amin"), ("max", "amax")]
for table, indices in (((5, 2), (4,)), ((3,), (2, 3)), ((4, 1), (6,)), ((1, 3), (2,))):
    updates = [*indices, *table[1:]]

    def places(i, table=table):
        flat = i.reshape(-1, *[1] * (len(table) - 1)).long()
        return flat.expand(-1, *table[1:])

    for combine, reduce in KINDS:
        for draw in (real, lambda *s: few(*s, values=[0.0, 1.0, -1.5])):
            add("scatter", lambda t, i, u, r=reduce, p=places: t.scatter_reduce(
                0, p(i), u.reshape(-1, *u.shape[i.dim():]), r),
                [draw(*table), integers(*indices, high=table[0]), draw(*updates)],
                {"combine": combine}, order=2 if combine == "add" else 1)
add("scatter", lambda t, i, u: t.index_put((i,), u),
    [real(4, 3), given([2, 0, 3], "i64"), real(3, 3)], {"combine": "set"})
