"""Functions that move elements: shapes, triangles, paddings, patches."""

import torch
import torch.nn.functional as F

from families.frame import Family, integers, real

family = Family("rearrange")


def add(op, function, x, attributes=None, results=1, **more):
    """On x squared, so that the second derivative is not zero."""
    node = {"op": op, "inputs": ["q"],
            "outputs": [f"y{i}" for i in range(results)]}
    if attributes:
        node["attributes"] = attributes
    family.add(op, lambda x: function(x * x), [x], nodes=[
        {"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]}, node], **more)


def each(op, function, rows):
    """Rows of a shape and the attributes, which `function` takes as words."""
    for shape, attributes in rows:
        add(op, lambda x, a=attributes: function(x, **a), real(*shape), attributes)


add("squeeze", torch.squeeze, real(2, 1, 3, 1))
each("squeeze", torch.squeeze, [((2, 1, 3), {"dim": 1}), ((1, 2), {"dim": -2})])
each("unsqueeze", torch.unsqueeze, [((2, 3), {"dim": 1}), ((2,), {"dim": -1}),
                                    ((), {"dim": 0})])
each("flatten", torch.flatten, [((2, 3, 2), {}), ((2, 3, 2), {"start_dim": 1}),
                                ((2, 1, 3, 2), {"start_dim": 1, "end_dim": -2})])
each("unflatten", lambda x, dim, sizes: x.unflatten(dim, sizes),
     [((6, 2), {"dim": 0, "sizes": [2, 3]}), ((2, 8), {"dim": 1, "sizes": [2, -1]})])
each("view", lambda x, shape: x.reshape(shape),
     [((3, 4), {"shape": [2, 6]}), ((3, 4), {"shape": [-1]}),
      ((2, 6), {"shape": [4, -1]})])
each("transpose", torch.transpose,
     [((2, 3), {"dim0": 0, "dim1": 1}), ((2, 3, 4), {"dim0": -1, "dim1": 0})])
each("movedim", torch.movedim,
     [((2, 3, 4), {"source": 0, "destination": -1}),
      ((2, 3, 4), {"source": 2, "destination": 1})])
each("expand", lambda x, shape: x.expand(shape),
     [((3, 1), {"shape": [3, 4]}), ((3,), {"shape": [2, -1]}),
      ((1,), {"shape": [2, 2, 3]})])
each("repeat", lambda x, repeats: x.repeat(repeats),
     [((2, 3), {"repeats": [2, 1]}), ((3,), {"repeats": [2, 2]}),
      ((2, 1), {"repeats": [1, 3]})])
each("repeat_interleave", torch.repeat_interleave,
     [((2, 3), {"repeats": 2, "dim": 0}), ((2, 3), {"repeats": 3, "dim": -1}),
      ((2, 2), {"repeats": 2})])
each("flip", lambda x, dim: x.flip(dim),
     [((3, 4), {"dim": [0]}), ((2, 3, 2), {"dim": [0, -1]}), ((5,), {"dim": [0]})])
each("roll", lambda x, shifts, dim=None: x.roll(shifts, dim),
     [((3, 4), {"shifts": [1], "dim": [0]}), ((3, 4), {"shifts": [-1, 6], "dim": [0, 1]}),
      ((2, 3), {"shifts": [2]})])


def sliced(x, dim=0, start=None, end=None, step=1):
    if step > 0:
        return x[(slice(None),) * (dim % x.dim()) + (slice(start, end, step),)]
    indices = list(range(x.shape[dim]))[start:end:step]
    return x.index_select(dim, torch.tensor(indices))


each("slice_along", sliced,
     [((5, 2), {"dim": 0, "start": 1, "end": 4}), ((2, 6), {"dim": 1, "step": 2}),
      ((7,), {"start": -3}), ((7,), {"start": 1, "end": 100, "step": 3}),
      ((6,), {"step": -1}), ((2, 6), {"dim": -1, "start": 4, "end": 0, "step": -2})])
each("narrow", torch.narrow, [((5, 2), {"dim": 0, "start": 1, "length": 3}),
                              ((2, 5), {"dim": 1, "start": 4, "length": 1})])
each("select_index", lambda x, dim, index: x.select(dim, index),
     [((3, 4), {"dim": 0, "index": 1}), ((3, 4), {"dim": 1, "index": -1}),
      ((4,), {"dim": 0, "index": 0})])
for shape, dim, sizes in (((5, 2), 0, [2, 3]), ((2, 7), 1, 3), ((4,), 0, 4)):
    parts = len(torch.zeros(shape).split(sizes, dim))
    add("split", lambda x, s=sizes, d=dim: x.split(s, d), real(*shape),
        {"dim": dim, "sizes": sizes}, parts)
for shape, dim, chunks in (((5, 2), 0, 3), ((2, 6), -1, 2), ((3,), 0, 5)):
    parts = len(torch.zeros(shape).chunk(chunks, dim))
    add("chunk", lambda x, c=chunks, d=dim: x.chunk(c, d), real(*shape),
        {"dim": dim, "chunks": chunks}, parts)
add("unbind", torch.unbind, real(3, 2), None, 3)
add("unbind", lambda x: x.unbind(1), real(3, 2), {"dim": 1}, 2)
family.add("cat", lambda *p: torch.cat(p, 1), [real(2, 3), real(2, 1)], {"dim": 1})
family.add("cat", lambda *p: torch.cat(p, -2), [real(1, 2), real(3, 2), real(2, 2)],
           {"dim": -2})
family.add("stack", lambda *p: torch.stack(p, 1), [real(2, 3), real(2, 3)], {"dim": 1})
family.add("stack", lambda *p: torch.stack(p, -1), [real(2), real(2), real(2)],
           {"dim": -1})
family.add("select_scatter", lambda x, p: torch.select_scatter(x, p, 1, 2),
           [real(3, 4), real(3)], {"dim": 1, "index": 2})
family.add("slice_scatter", lambda x, p: torch.slice_scatter(x, p, 0, 1, 5, 2),
           [real(6, 2), real(2, 2)], {"dim": 0, "start": 1, "end": 5, "step": 2})

for op, function in (("tril", torch.tril), ("triu", torch.triu)):
    each(op, function, [((3, 4), {}), ((4, 3), {"diagonal": 1}),
                        ((2, 3, 3), {"diagonal": -1}), ((1, 1), {"diagonal": 2})])
each("diagonal", torch.diagonal,
     [((3, 4), {}), ((4, 3), {"offset": 1}), ((4, 3), {"offset": -2}),
      ((2, 3, 3), {"dim1": 1, "dim2": 2}), ((2, 3, 4), {"dim1": 2, "dim2": 0})])
add("trace", torch.trace, real(4, 4))
add("trace", torch.trace, real(2, 3))
each("diag_embed", torch.diag_embed,
     [((3,), {}), ((2, 3), {"offset": 1}), ((2, 2), {"offset": -1, "dim1": 0,
                                                    "dim2": 2})])
each("pixel_shuffle", F.pixel_shuffle, [((1, 8, 2, 1), {"upscale_factor": 2}),
                                        ((9, 1, 2), {"upscale_factor": 3})])
each("pixel_unshuffle", F.pixel_unshuffle,
     [((1, 2, 4, 2), {"downscale_factor": 2}), ((1, 3, 6), {"downscale_factor": 3})])


def depth_to_space(x, blocksize, mode="DCR"):
    if mode == "CRD":
        return F.pixel_shuffle(x, blocksize)
    n, c, h, w = x.shape
    x = x.reshape(n, blocksize, blocksize, c // blocksize**2, h, w)
    return x.permute(0, 3, 4, 1, 5, 2).reshape(n, -1, h * blocksize, w * blocksize)


def space_to_depth(x, blocksize):
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // blocksize, blocksize, w // blocksize, blocksize)
    return x.permute(0, 3, 5, 1, 2, 4).reshape(n, -1, h // blocksize, w // blocksize)


each("depth_to_space", depth_to_space,
     [((1, 8, 2, 1), {"blocksize": 2}), ((1, 8, 1, 2), {"blocksize": 2, "mode": "CRD"})])
each("space_to_depth", space_to_depth, [((1, 2, 4, 2), {"blocksize": 2})])
each("unfold", F.unfold,
     [((1, 2, 4, 5), {"kernel_size": [2, 3]}),
      ((2, 1, 5, 5), {"kernel_size": [2, 2], "dilation": [2, 1], "padding": [1, 0],
                      "stride": [2, 3]})])
each("fold", F.fold,
     [((1, 8, 6), {"output_size": [3, 4], "kernel_size": [2, 2]}),
      ((1, 4, 9), {"output_size": [4, 4], "kernel_size": [2, 2], "stride": [2, 2],
                   "padding": [1, 1]})])
each("unfold_dim", lambda x, dim, size, step: x.unfold(dim, size, step),
     [((7, 2), {"dim": 0, "size": 3, "step": 2}), ((2, 5), {"dim": 1, "size": 2,
                                                            "step": 1})])

for op, mode in (("constant_pad", "constant"), ("reflection_pad", "reflect"),
                 ("replication_pad", "replicate"), ("circular_pad", "circular")):
    for shape, pad in (((1, 2, 4), [2, 1]), ((1, 1, 3, 4), [1, 2, 2, 0]),
                       ((1, 1, 3, 2, 3), [1, 2, 0, 1, 1, 0])):
        add(op, lambda x, p=pad, m=mode: F.pad(x, p, m), real(*shape), {"pad": pad})
each("constant_pad", lambda x, pad, value: F.pad(x, pad, value=value),
     [((2, 3), {"pad": [1, -1], "value": 1.5}),
      ((2, 3), {"pad": [-1, 2, 1, -1], "value": -0.5})])
family.add("flip", lambda x: x.flip(0), [integers(5)], {"dim": [0]})

# What is made of nothing, or of a shape.
for kind, dtype in (("f32", torch.float64), ("i64", torch.int64), ("i32", torch.int32)):
    for start, end, step in ((0, 5, 1), (2, 11, 3), (5, -3, -2)):
        family.add("arange", lambda s=start, e=end, t=step, d=dtype: torch.arange(
            s, e, t, dtype=d), [],
            {"start": start, "end": end, "step": step, "dtype": kind}, kinds=[kind])
    for n, m, diagonal in ((3, 3, 0), (2, 4, 1), (4, 2, -1)):
        family.add("eye", lambda n=n, m=m, g=diagonal, d=dtype: torch.diagonal_scatter(
            torch.zeros(n, m, dtype=d), torch.ones(
                torch.zeros(n, m).diagonal(g).shape, dtype=d), g), [],
            {"n": n, "m": m, "diagonal": diagonal, "dtype": kind}, kinds=[kind])
for steps in (1, 2, 7):
    family.add("linspace", lambda n=steps: torch.linspace(
        -1, 2, n, dtype=torch.float64), [],
        {"start": -1.0, "end": 2.0, "steps": steps, "dtype": "f32"}, kinds=["f32"])
family.add("full_like", lambda x: torch.full_like(x, 1.5), [real(2, 3)], {"value": 1.5},
           order=0)
for indexing in ("ij", "xy"):
    family.add("meshgrid", lambda *x, i=indexing: torch.meshgrid(*x, indexing=i),
               [real(3), real(2)], {"indexing": indexing}, nodes=[
                   {"op": "meshgrid", "inputs": ["x0", "x1"], "outputs": ["y0", "y1"],
                    "attributes": {"indexing": indexing}}])
    family.add("meshgrid", lambda *x, i=indexing: torch.meshgrid(*x, indexing=i),
               [real(2), real(3), real(1)], nodes=[
                   {"op": "meshgrid", "inputs": ["x0", "x1", "x2"],
                    "outputs": ["y0", "y1", "y2"],
                    "attributes": {"indexing": indexing}}])
