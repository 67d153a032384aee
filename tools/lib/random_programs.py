"""Random differentiable programs, as JSON graphs (docs/JSON_GRAPH.md): tools/random-programs.

A program is a list of nodes, each of which reads values that were made before. Each value that nobody reads becomes a part of the
loss: the sum of its elements times numbers that are drawn, so that no two elements have the same cotangent. Every node is followed
by what keeps numbers near 1, where it may leave that.
"""

import math

from random_kinds import MoreKinds

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 63, 64, 65, 100, 129]
MOST, SMALL = 20000, 600  # elements of a value; of a small program

# What has kinks: differences may step over them.
KINKED = {"abs", "relu", "leaky_relu", "elu", "hardswish", "hardtanh", "selu", "relu6", "softshrink", "hardsigmoid", "celu", "fmax", "fmin", "where", "amax",
          "amin", "topk", "sum_abs", "max_pool", "clamp", "shrink", "hardshrink", "threshold", "prelu", "masked_fill", "masked_scatter", "l1_loss",
          "margin_ranking_loss", "max", "min", "kthvalue", "adaptive_max_pool", "global_max_pool", "grid_sample", "scatter_reduce", "scatter_elements",
          "argsort", "max_pool1d", "max_pool3d"}


def product(shape):
    return math.prod(shape)


class Program(MoreKinds):
    def __init__(self, random, type_, small=False):
        self.random, self.type = random, type_
        self.sizes, self.most = (SIZES[:11], SMALL) if small else (SIZES, MOST)
        self.inputs, self.params, self.nodes, self.shapes, self.count = [], [], [], {}, 0
        self.smooth = False  # without KINKED
        self.is_open = False  # what nobody reads is an output, too, with a cotangent of its own

    # --- values
    def name(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def size(self, most=129):
        if self.random.random() < 0.02:
            return 0
        return self.random.choice([size for size in self.sizes if size <= most])

    def shape(self, rank=None):
        rank = self.random.choice([0, 1, 2, 2, 2, 3, 3, 4]) if rank is None else rank
        while True:
            shape = [self.size() for _ in range(rank)]
            if product(shape) <= self.most:
                return shape

    def param(self, shape):
        name = self.name("w")
        self.params.append({"name": name, "type": self.type, "shape": shape, "init": {"kind": "uniform", "low": -1.2, "high": 1.2}})
        self.shapes[name] = shape
        return name

    def indices(self, shape, high):
        name = self.name("i")
        self.inputs.append({"name": name, "type": "i64", "shape": shape, "high": high})
        return name

    def pick(self, where=lambda shape: True, make=None):
        """A value whose shape is right: mostly one that is there, else a new parameter."""
        found = [name for name, shape in self.shapes.items() if where(shape)]
        if found and self.random.random() < 0.85:
            return self.random.choice(found[-8:] if self.random.random() < 0.7 else found)
        return self.param(make() if make else self.shape())

    def node(self, op, inputs, shape, /, results=1, **attributes):
        outputs = [self.name("v") for _ in range(results)]
        self.nodes.append({"op": op, "inputs": inputs, "outputs": outputs, **({"attributes": attributes} if attributes else {})})
        if shape is not None:
            self.shapes[outputs[0]] = shape
        return outputs[0]

    def hidden(self, op, inputs, /, **attributes):
        """A node whose result the next one alone reads."""
        return self.node(op, inputs, None, **attributes)

    # --- kinds of nodes
    def unary(self):
        x = self.pick()
        shape = self.shapes[x]
        smooth = ["tanh", "sigmoid", "sin", "cos", "erf", "gelu", "silu", "neg", "softsign", "mish", "atan", "asinh", "softplus", "logsigmoid"]
        bent = ["abs", "relu", "leaky_relu", "elu", "hardswish", "hardtanh", "selu", "relu6", "softshrink", "hardsigmoid", "celu", "tanhshrink"]
        self.node(self.random.choice(smooth + bent), [x], shape)

    def guarded(self):
        """Functions that are not defined, or not small, everywhere."""
        x = self.pick()
        shape = self.shapes[x]
        op = self.random.choice(["exp", "log", "sqrt", "reciprocal", "rsqrt", "log1p", "expm1", "exp2", "cosh", "sinh", "power"])
        if op in ("exp", "expm1", "exp2", "cosh", "sinh"):
            return self.node(op, [self.hidden("tanh", [x])], shape)
        safe = self.hidden("add", [self.hidden("square", [x]), self.constant(shape, 0.5)])
        if op == "power":
            return self.node(op, [self.hidden("sigmoid", [x]), self.constant([], self.random.choice([2.0, 3.0, 0.5, -0.5, 1.5, -1.0]))], shape)
        if op == "rsqrt":
            return self.node("reciprocal", [self.hidden("sqrt", [safe])], shape)
        return self.node(op, [safe], shape)

    def constant(self, shape, value):
        name = self.name("c")
        self.nodes.append({"op": "constant", "inputs": [], "outputs": [name], "type": self.type, "shape": shape, "value": value})
        return name

    def stretched(self, shape):
        """A shape that stretches to `shape`."""
        kept = [1 if self.random.random() < 0.3 else size for size in shape]
        return kept[self.random.randint(0, len(kept)):] if kept and self.random.random() < 0.4 else kept

    def stretches(self, shape, to):
        return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1]))

    def binary(self):
        x = self.pick()
        shape = self.shapes[x]
        y = self.pick(lambda other: self.stretches(other, shape), lambda: self.stretched(shape))
        op = self.random.choice(["multiply", "subtract", "add_scaled", "divide", "fmax", "fmin", "hypot", "logaddexp", "lerp", "addcmul", "where",
                                 "atan2", "xlogy"])
        both = [x, y] if self.random.random() < 0.5 else [y, x]
        if op == "divide":
            safe = self.hidden("add", [self.hidden("square", [y]), self.constant(self.shapes[y], 0.5)])
            return self.node(op, [x, safe], shape)
        if op == "xlogy":
            safe = self.hidden("add", [self.hidden("square", [y]), self.constant(self.shapes[y], 0.5)])
            return self.node(op, [x, safe], shape)
        if op == "atan2":
            if self.shapes[x] != self.shapes[y]:
                return None
            return self.node(op, [x, self.hidden("add", [self.hidden("abs", [y]), self.constant(shape, 0.5)])], shape)
        if op == "hypot":
            return self.node(op, [self.hidden("add", [self.hidden("abs", [x]), self.constant(shape, 0.1)]), y], shape)
        if op == "where":
            return self.node(op, [self.hidden(self.random.choice(["lt", "ge"]), both), *both], shape)
        if op == "addcmul":
            return self.node(op, [x, *both], shape, value=0.7)
        if op in ("add_scaled", "subtract"):
            return self.node(op, both, shape, alpha=self.random.choice([1.0, -0.5, 2.0]))
        return self.node(op, both, shape)

    def dims(self, rank, least=1):
        return sorted(self.random.sample(range(rank), self.random.randint(min(least, rank), rank)))

    def reduction(self):
        x = self.pick(lambda shape: shape and 0 not in shape)
        shape = self.shapes[x]
        if not shape or 0 in shape:
            return None
        dims, keep = self.dims(len(shape)), self.random.random() < 0.5
        result = [1 if d in dims else size for d, size in enumerate(shape) if keep or d not in dims]
        op = self.random.choice(["sum", "mean", "amax", "amin", "logsumexp", "var", "std", "norm", "sum_square", "sum_abs"])
        many = product([shape[d] for d in dims])
        if op in ("var", "std") and many < 2:
            op = "mean"
        more = {"keepdim": keep}
        if op == "norm":
            more["p"] = self.random.choice([1.0, 2.0, 3.0])
        value = self.node(op, [x], None, dim=dims, **more)
        if op in ("sum", "sum_square", "sum_abs") and many > 4:
            value = self.hidden("divide", [value, self.constant([], float(many) ** 0.5)])
        self.shapes[value] = result
        return value

    def along(self):
        """What keeps a shape and looks along one dimension."""
        x = self.pick(lambda shape: shape and 0 not in shape)
        shape = self.shapes[x]
        if not shape or 0 in shape:
            return None
        dim = self.random.randrange(len(shape))
        op = self.random.choice(["softmax", "log_softmax", "cumsum", "flip", "roll", "normalize", "logcumsumexp", "sort", "cumprod"])
        if op in ("softmax", "log_softmax", "cumsum"):
            value = self.node(op, [x], shape, dim=dim)
            if op == "cumsum":
                del self.shapes[value]
                return self.node("divide", [value, self.constant([], float(shape[dim]) ** 0.5)], shape)
            return value
        if op == "sort":
            return self.node("topk", [x], shape, results=1, k=shape[dim], dim=dim, largest=self.random.random() < 0.5)
        if op == "roll":
            return self.node(op, [x], shape, shifts=[self.random.randint(-9, 9)], dim=[dim])
        if op == "flip":
            return self.node(op, [x], shape, dim=self.dims(len(shape)))
        if op == "cumprod":
            return self.node(op, [self.hidden("tanh", [x])], shape, dim=dim)
        if op == "normalize":
            x = self.hidden("add", [self.hidden("square", [x]), self.constant(shape, 0.1)])
        return self.node(op, [x], shape, dim=dim)

    def moved(self):
        """The same elements elsewhere."""
        x = self.pick(lambda shape: len(shape) > 0)
        shape = self.shapes[x]
        rank = len(shape)
        if rank == 0:
            return None
        op = self.random.choice(["permute", "view", "slice", "constant_pad", "expand", "cat", "stack", "repeat", "select", "unfold", "diagonal",
                                 "slice_scatter", "repeat_interleave", "triu"])
        dim = self.random.randrange(rank)
        if op == "permute":
            order = self.random.sample(range(rank), rank)
            return self.node(op, [x], [shape[d] for d in order], permutation=order)
        if op == "view":
            if product(shape) == 0:
                return None
            left, result = product(shape), []
            while left > 1 and len(result) < 4:
                size = self.random.choice([d for d in range(1, left + 1) if left % d == 0][:40] + [left])
                result.append(size)
                left //= size
            return self.node(op, [x], result + [left] if left > 1 or not result else result, shape=result + [left] if left > 1 or not result else result)
        if op == "slice" and shape[dim] > 0:
            start, step = self.random.randrange(shape[dim]), self.random.choice([1, 1, 2, 3])
            end = self.random.randint(start + 1, shape[dim])
            result = list(shape)
            result[dim] = (end - start + step - 1) // step
            return self.node("slice_along", [x], result, dim=dim, start=start, end=end, step=step)
        if op == "constant_pad":
            pads = [[self.random.randint(0, 3), self.random.randint(0, 3)] if self.random.random() < 0.6 else [0, 0] for _ in shape]
            result = [size + sum(pad) for size, pad in zip(shape, pads)]
            if product(result) > self.most:
                return None
            return self.node(op, [x], result, pad=[n for pad in pads[::-1] for n in pad], value=0.25)
        if op == "expand":
            result = [self.size(9) if size == 1 else size for size in shape]
            if self.random.random() < 0.5:
                result = [self.size(5), *result]
            return self.node(op, [x], result, shape=result) if product(result) <= self.most else None
        if op == "cat":
            parts = [x] + [self.pick(lambda other: len(other) == rank and all(a == b or d == dim for d, (a, b) in enumerate(zip(other, shape))),
                                     lambda: [self.size(33) if d == dim else size for d, size in enumerate(shape)]) for _ in range(self.random.randint(1, 3))]
            result = list(shape)
            result[dim] = sum(self.shapes[part][dim] for part in parts)
            return self.node(op, parts, result, dim=dim) if product(result) <= self.most else None
        if op == "stack":
            parts = [x] + [self.pick(lambda other: other == shape, lambda: list(shape)) for _ in range(self.random.randint(1, 2))]
            return self.node(op, parts, shape[:dim] + [len(parts)] + shape[dim:], dim=dim) if product(shape) * len(parts) <= self.most else None
        if op == "repeat":
            repeats = [self.random.choice([1, 1, 2, 3]) for _ in shape]
            result = [size * times for size, times in zip(shape, repeats)]
            return self.node(op, [x], result, repeats=repeats) if product(result) <= self.most else None
        if op == "repeat_interleave":
            times = self.random.choice([2, 3])
            result = [size * times if d == dim else size for d, size in enumerate(shape)]
            return self.node(op, [x], result, repeats=times, dim=dim) if product(result) <= self.most else None
        if op == "select" and shape[dim] > 0:
            return self.node("select_index", [x], shape[:dim] + shape[dim + 1:], dim=dim, index=self.random.randrange(shape[dim]))
        if op == "unfold" and shape[dim] > 1:
            size, step = self.random.randint(1, min(5, shape[dim])), self.random.randint(1, 3)
            result = shape[:dim] + [(shape[dim] - size) // step + 1] + shape[dim + 1:] + [size]
            return self.node("unfold_dim", [x], result, dim=dim, size=size, step=step) if product(result) <= self.most else None
        if op == "diagonal" and rank > 1 and 0 not in shape[-2:]:
            return self.node(op, [x], shape[:-2] + [min(shape[-2:])], dim1=rank - 2, dim2=rank - 1)
        if op == "triu" and rank > 1:
            return self.node(self.random.choice(["triu", "tril"]), [x], shape, diagonal=self.random.randint(-2, 2))
        if op == "slice_scatter" and shape[dim] > 1:
            start = self.random.randrange(shape[dim] - 1)
            end = self.random.randint(start + 1, shape[dim])
            part = [end - start if d == dim else size for d, size in enumerate(shape)]
            return self.node(op, [x, self.pick(lambda other: other == part, lambda: part)], shape, dim=dim, start=start, end=end)
        return None

    def scaled(self, value, shape, by):
        """Divided by what its sum of `by` products is about."""
        result = self.node("divide", [value, self.constant([], max(1.0, float(by)) ** 0.5)], shape)
        return result

    def matrix(self):
        op = self.random.choice(["linalg_matmul", "linear", "einsum", "attention", "outer", "bmm"])
        x = self.pick(lambda shape: len(shape) >= 2 and 0 not in shape)
        shape = self.shapes[x]
        if len(shape) < 2 or 0 in shape:
            return None
        m, k = shape[-2:]
        n = self.random.choice(self.sizes)
        if product(shape[:-1]) * n > self.most:
            return None
        if op == "linear":
            y = self.pick(lambda other: len(other) == 2 and other[1] == k and 0 not in other and product(shape[:-1]) * other[0] <= self.most, lambda: [n, k])
            out = self.shapes[y][0]
            more = [self.pick(lambda other: other == [out], lambda: [out])] if self.random.random() < 0.6 else []
            return self.scaled(self.hidden("linear", [x, y, *more]), [*shape[:-1], out], k)
        if op == "attention" and len(shape) == 3:
            batch, rows, depth = shape
            cols = self.random.choice(self.sizes[:14])
            if batch * rows * cols > self.most * 4 or batch * cols * depth > self.most:
                return None
            key, value = (self.pick(lambda other: other == [batch, cols, depth], lambda: [batch, cols, depth]) for _ in range(2))
            causal = self.random.random() < 0.4
            return self.node("scaled_dot_product_attention", [x, key, value], shape, is_causal=causal)
        if op == "outer":
            a, b = (self.pick(lambda other: len(other) == 1 and 0 < other[0] < 140, lambda: [self.random.choice(self.sizes)]) for _ in range(2))
            return self.node(op, [a, b], [self.shapes[a][0], self.shapes[b][0]])
        if op == "einsum":
            y = self.pick(lambda other: len(other) == 2 and other[0] == m and 0 not in other and product(shape[:-2]) * k * other[1] <= self.most, lambda: [m, n])
            out = self.shapes[y][1]
            lead = "abcdef"[:len(shape) - 2]
            if product(shape[:-2]) * k * out > self.most:
                return None
            return self.scaled(self.hidden(op, [x, y], equation=f"{lead}mk,mn->{lead}kn"), [*shape[:-2], k, out], m)
        batch = shape[:-2] if self.random.random() < 0.5 else self.stretched(shape[:-2])
        want = [*batch, k, n]
        y = self.pick(lambda other: len(other) >= 2 and 0 not in other and other[-2] == k and self.stretches(other[:-2], shape[:-2])
                      and product(shape[:-1]) * other[-1] <= self.most, lambda: want)
        return self.scaled(self.hidden("linalg_matmul", [x, y]), [*shape[:-1], self.shapes[y][-1]], k)

    def image(self):
        x = self.pick(lambda shape: len(shape) == 4 and 0 not in shape and min(shape[2:]) >= 3,
                      lambda: [self.random.choice([1, 2, 3]), self.random.choice([1, 2, 3, 4, 8, 16]), self.random.choice([3, 5, 7, 8, 9, 13, 16]),
                               self.random.choice([3, 5, 7, 8, 9, 13, 17])])
        n, c, *plane = self.shapes[x]
        if n * c * plane[0] * plane[1] > 8000:
            return None
        op = self.random.choice(["conv", "conv", "conv_transpose", "avg_pool", "max_pool", "batch_norm", "group_norm", "interpolate", "reflection_pad",
                                 "adaptive_avg_pool"])
        if op in ("conv", "conv_transpose"):
            groups = self.random.choice([g for g in (1, 1, 1, 2, 4, c) if c % g == 0])
            out = groups * self.random.choice([1, 2, 3, 4, 8])
            kernel = [self.random.choice([1, 2, 3, 3, 5]) for _ in plane]
            strides, padding = [self.random.choice([1, 1, 2, 3]) for _ in plane], [self.random.choice([0, 1, 2]) for _ in plane]
            dilation = [self.random.choice([1, 1, 1, 2]) for _ in plane]
            if op == "conv":
                result = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in zip(plane, kernel, strides, padding, dilation)]
                weight = [out, c // groups, *kernel]
            else:
                result = [(s - 1) * t - 2 * p + d * (k - 1) + 1 for s, k, t, p, d in zip(plane, kernel, strides, padding, dilation)]
                weight = [c, out // groups, *kernel]
            if min(result) < 1 or n * out * product(result) > self.most:
                return None
            more = [self.pick(lambda other: other == [out], lambda: [out])] if self.random.random() < 0.5 else []
            value = self.hidden(op, [x, self.param(weight), *more], strides=strides, padding=padding, dilation=dilation, groups=groups)
            return self.scaled(value, [n, out, *result], c // groups * product(kernel))
        if op in ("avg_pool", "max_pool"):
            kernel = [self.random.randint(1, 3) for _ in plane]
            strides, padding = [self.random.randint(1, 3) for _ in plane], [self.random.randint(0, k // 2) for k in kernel]
            result = [(s + 2 * p - k) // t + 1 for s, k, t, p in zip(plane, kernel, strides, padding)]
            return self.node(op, [x], [n, c, *result], kernel=kernel, strides=strides, padding=padding)
        if op == "batch_norm":
            if n * product(plane) < 2:
                return None
            value = self.node("batch_norm_functional", [x, *(self.pick(lambda other: other == [c], lambda: [c]) for _ in range(2))], [n, c, *plane])
            return value
        if op == "group_norm":
            groups = self.random.choice([g for g in (1, 2, 4, c) if c % g == 0])
            if c // groups * product(plane) < 2:
                return None
            return self.node(op, [x, *(self.pick(lambda other: other == [c], lambda: [c]) for _ in range(2))], [n, c, *plane], num_groups=groups)
        if op == "interpolate":
            size = [self.random.choice([2, 3, 4, 6, 8, 11]) for _ in plane]
            mode = self.random.choice(["nearest", "bilinear", "bicubic"])
            more = {"align_corners": True} if mode != "nearest" and self.random.random() < 0.3 else {}
            return self.node(op, [x], [n, c, *size], size=size, mode=mode, **more)
        if op == "adaptive_avg_pool":
            size = [self.random.randint(1, s) for s in plane]
            return self.node(op, [x], [n, c, *size], output_size=size)
        pad = [self.random.randint(0, 2) for _ in range(4)]
        return self.node(self.random.choice(["reflection_pad", "replication_pad"]), [x], [n, c, plane[0] + pad[2] + pad[3], plane[1] + pad[0] + pad[1]],
                         pad=pad)

    def normalized(self):
        x = self.pick(lambda shape: shape and shape[-1] > 1 and 0 not in shape)
        shape = self.shapes[x]
        if not shape or shape[-1] < 2 or 0 in shape:
            return None
        last = [shape[-1]]
        scale = [self.pick(lambda other: other == last, lambda: last)]
        if self.random.random() < 0.5:
            return self.node("rms_norm", [x, *scale], shape, eps=1e-3)
        return self.node("native_layer_norm", [x, *scale, self.pick(lambda other: other == last, lambda: last)], shape, eps=1e-3)

    def lookup(self):
        x = self.pick(lambda shape: shape and 0 not in shape)
        shape = self.shapes[x]
        if not shape or 0 in shape:
            return None
        dim = self.random.randrange(len(shape))
        op = self.random.choice(["index_select", "gather", "index_add", "scatter_add", "cross_entropy", "embedding_bag"])
        if op == "index_select":
            count = self.random.choice(self.sizes[:12])
            result = shape[:dim] + [count] + shape[dim + 1:]
            return self.node(op, [x, self.indices([count], shape[dim])], result, dim=dim) if product(result) <= self.most else None
        if op == "gather":
            result = [self.random.randint(1, size) for size in shape]
            return self.node(op, [x, self.indices(result, shape[dim])], result, dim=dim)
        if op == "index_add":
            count = self.random.choice(self.sizes[:8])
            part = shape[:dim] + [count] + shape[dim + 1:]
            if product(part) > self.most:
                return None
            return self.node(op, [x, self.indices([count], shape[dim]), self.pick(lambda other: other == part, lambda: part)], shape, dim=dim)
        if op == "scatter_add":
            part = [self.random.randint(1, size) for size in shape]
            return self.node(op, [x, self.indices(part, shape[dim]), self.pick(lambda other: other == part, lambda: part)], shape, dim=dim)
        if op == "cross_entropy" and len(shape) == 2:
            return self.node("cross_entropy_loss", [x, self.indices([shape[0]], shape[1])], [], label_smoothing=self.random.choice([0.0, 0.1]))
        if op == "embedding_bag" and len(shape) == 2:
            rows, many = self.random.choice(self.sizes[:8]), self.random.choice([1, 2, 3])
            return self.node(op, [x, self.indices([rows, many], shape[0])], [rows, shape[1]], mode=self.random.choice(["mean", "sum"]))
        return None

    def written(self):
        """Storage that is read, overwritten through a view, and read again."""
        x = self.pick(lambda shape: shape and 0 not in shape)
        shape = self.shapes[x]
        if not shape or 0 in shape:
            return None
        storage = self.hidden(self.random.choice(["tanh", "sin", "neg", "square"]), [x])
        before = self.node(self.random.choice(["sin", "tanh", "square"]), [storage], shape) if self.random.random() < 0.6 else None
        view, part = storage, list(shape)
        if self.random.random() < 0.7:
            starts = [self.random.randrange(size) for size in shape]
            limits = [self.random.randint(start + 1, size) for start, size in zip(starts, shape)]
            strides = [self.random.choice([1, 1, 2]) for _ in shape]
            part = [(limit - start + stride - 1) // stride for start, limit, stride in zip(starts, limits, strides)]
            view = self.hidden("slice", [view], starts=starts, limits=limits, strides=strides)
        if self.random.random() < 0.3:
            order = self.random.sample(range(len(part)), len(part))
            part, view = [part[d] for d in order], self.hidden("permute", [view], permutation=order)
        source = self.pick(lambda other: other == part, lambda: part)
        if self.random.random() < 0.5:  # of what it overwrites
            source = self.hidden("multiply", [source, view])
        elif source == before:
            source = self.hidden("neg", [source])
        self.nodes.append({"op": "write", "inputs": [source, view], "outputs": []})
        return self.node(self.random.choice(["neg", "sin", "sigmoid"]), [storage], shape)

    def branch(self):
        """One of two functions, as a number of the data says."""
        x = self.pick()
        some, none = self.indices([], 2), self.name("c")
        self.nodes.append({"op": "constant", "inputs": [], "outputs": [none], "type": "i64", "shape": [], "value": 0})
        condition, result = self.hidden("compare", [some, none], predicate="gt"), self.name("v")

        def side():
            ops = self.random.sample(["tanh", "sin", "sigmoid", "neg", "square"], self.random.randint(0, 2))
            names = ["a", *(f"a{i}" for i in range(len(ops)))]
            nodes = [{"op": op, "inputs": [names[i]], "outputs": [names[i + 1]]} for i, op in enumerate(ops)]
            return {"inputs": ["a"], "nodes": nodes, "outputs": [names[-1]]}

        self.nodes.append({"op": "if", "inputs": [condition, x], "outputs": [result], "then": side(), "else": side()})
        self.shapes[result] = self.shapes[x]
        return result

    def loop(self):
        """A recurrence over the first dimension of a value."""
        x = self.pick(lambda shape: len(shape) == 2 and 0 not in shape and shape[0] <= 33, lambda: [self.random.choice(self.sizes[:10]), self.size(65) or 1])
        shape = self.shapes[x]
        if len(shape) != 2 or 0 in shape:
            return None
        first, scale = (self.pick(lambda other: other == shape[1:], lambda: shape[1:]) for _ in range(2))
        last, all_ = self.name("v"), self.name("v")
        body = {"inputs": ["h", "x", "w"],
                "nodes": [{"op": "multiply", "inputs": ["h", "w"], "outputs": ["p"]},
                          {"op": self.random.choice(["add", "subtract", "multiply"]), "inputs": ["p", "x"], "outputs": ["q"]},
                          {"op": self.random.choice(["tanh", "sin", "sigmoid"]), "inputs": ["q"], "outputs": ["next"]}],
                "outputs": ["next", self.random.choice(["next", "p"])]}
        self.nodes.append({"op": "scan", "carries": [first], "inputs": [x], "constants": [scale], "outputs": [last, all_], "body": body,
                           **({"reverse": True} if self.random.random() < 0.3 else {})})
        self.shapes[last], self.shapes[all_] = shape[1:], shape
        return last

    def grow(self, steps):
        kinds = [self.unary] * 4 + [self.guarded] * 2 + [self.binary] * 5 + [self.reduction] * 3 + [self.along] * 2 + [self.moved] * 6 + \
            [self.matrix] * 3 + [self.image] * 3 + [self.normalized] + [self.lookup] * 2 + \
            [self.written] * 2 + [self.branch, self.loop] + [self.seldom] * 2 + [self.stepped, self.loss, self.signal] + [self.shaped] * 2 + \
            [self.reduced, self.products, self.scattered, self.rounded]
        for _ in range(steps):
            before = list(self.inputs), list(self.params), list(self.nodes), dict(self.shapes)
            self.random.choice(kinds)()
            if self.smooth and any(node["op"] in KINKED or node.get("attributes", {}).get("p") == 1.0 for node in self.nodes[len(before[2]):]):
                self.inputs, self.params, self.nodes, self.shapes = before

    def graph(self):
        """The JSON graph whose loss is made of all that nobody reads; None if there is nothing."""
        return self.graph_with(self.nodes)

    def graph_with(self, nodes):
        return graph_of(self.inputs, self.params, nodes, self.shapes, self.type, self.is_open)


def read_by(node):
    return node["inputs"] + node.get("carries", []) + node.get("constants", [])


def graph_of(inputs, params, nodes, shapes, type_, is_open=False):
    read = {name for node in nodes for name in read_by(node)}
    made = {name for node in nodes for name in node["outputs"]}
    inputs = [entry for entry in inputs if entry["name"] in read]
    params = [entry for entry in params if entry["name"] in read]
    ends = [name for name in shapes if name in made and name not in read]
    if not ends or not params:
        return None
    nodes, parts = list(nodes), []
    for i, name in enumerate(ends):
        inputs = inputs + [{"name": f"y{i}", "type": type_, "shape": shapes[name]}]
        nodes += [{"op": "multiply", "inputs": [name, f"y{i}"], "outputs": [f"p{i}"]}, {"op": "sum", "inputs": [f"p{i}"], "outputs": [f"s{i}"]}]
        parts.append(f"s{i}")
    total = parts[0]
    for i, part in enumerate(parts[1:]):
        nodes.append({"op": "add", "inputs": [total, part], "outputs": [f"t{i}"]})
        total = f"t{i}"
    more = [{"name": f"e{i}", "value": name} for i, name in enumerate(ends)] if is_open else []
    return {"format": "tandem-graph", "version": 1, "name": "random", "inputs": inputs, "params": params, "nodes": nodes,
            "outputs": [{"name": "loss", "value": total}, *more]}


def shrunk(program, fails):
    """The nodes of the smallest program that is found for which `fails` still holds of its graph."""
    nodes = program.nodes
    smaller = True
    while smaller:
        smaller = False
        for i in reversed(range(len(nodes))):
            gone = set(nodes[i]["outputs"])
            rest = nodes[:i]
            for node in nodes[i + 1:]:
                if gone & set(read_by(node)):
                    gone |= set(node["outputs"])
                else:
                    rest.append(node)
            graph = program.graph_with(rest)
            if graph and fails(graph):
                nodes, smaller = rest, True
                break
    return program.graph_with(nodes)
