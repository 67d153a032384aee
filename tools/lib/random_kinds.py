"""More kinds of nodes for random programs (random_programs.py): functions and ops that few models use.

A kind returns without a node where the value that it drew does not suit it. Functions with jumps (`floor`, `frac`, `fmod`, ...) read parameters alone: of a
value that was computed they would jump at another place in f32 than in f64.
"""

import math


def product(shape):
    return math.prod(shape)


class MoreKinds:
    """What a Program (random_programs.py) draws besides."""

    def finite(self, value, shape, low=0.5):
        """x^2 + low"""
        return self.hidden("add", [self.hidden("square", [value]), self.constant(shape, low)])

    def inside(self, value, bound=0.9):
        """within -bound and bound"""
        return self.hidden("multiply", [self.hidden("tanh", [value]), self.constant([], bound)])

    def full(self, rank=None):
        """A value without sizes of 0, of a rank if it is said, and its shape; or None."""
        def suits(shape):
            return 0 not in shape and len(shape) > 0 and (rank is None or len(shape) == rank)
        x = self.pick(suits, lambda: [self.random.choice([1, 2, 3, 4, 5, 8, 9]) for _ in range(rank or 2)])
        return (x, self.shapes[x]) if suits(self.shapes[x]) else None

    def like(self, shape):
        return self.pick(lambda other: other == shape, lambda: list(shape))

    def seldom(self):
        """Functions of each element."""
        x = self.pick()
        shape = self.shapes[x]
        op = self.random.choice(["erfc", "asin", "acos", "atanh", "acosh", "log2", "log10", "erfinv", "tan", "clamp", "shrink", "threshold", "hardshrink",
                                 "nan_to_num", "prelu", "elu", "celu", "softplus", "gelu", "asinh", "neg_exp", "expm1", "sigmoid_log"])
        if op in ("asin", "acos", "atanh", "erfinv", "tan"):
            return self.node(op, [self.inside(x)], shape)
        if op in ("log2", "log10"):
            return self.node(op, [self.finite(x, shape)], shape)
        if op == "acosh":
            return self.node(op, [self.finite(x, shape, 1.5)], shape)
        if op == "clamp":
            return self.node(op, [x], shape, **self.random.choice([{"min": -0.5}, {"max": 0.25}, {"min": -0.5, "max": 0.75}]))
        if op == "shrink":
            return self.node(op, [x], shape, lambd=0.25, bias=0.1)
        if op == "threshold":  # which jumps
            return self.node(op, [self.param(list(shape))], shape, threshold=0.1, value=0.1)
        if op == "hardshrink":
            return self.node(op, [self.param(list(shape))], shape, lambd=0.3)
        if op == "prelu":
            return self.node(op, [x, self.param([1])], shape)
        if op == "elu":
            return self.node(op, [x], shape, alpha=self.random.choice([1.0, 0.5]), input_scale=self.random.choice([1.0, 2.0]))
        if op in ("celu", "softplus"):
            return self.node(op, [x], shape, **{"alpha" if op == "celu" else "beta": self.random.choice([0.5, 2.0])})
        if op == "neg_exp":
            return self.node("exp", [self.hidden("neg", [self.hidden("square", [x])])], shape)
        if op == "sigmoid_log":
            return self.node("log", [self.hidden("sigmoid", [x])], shape)
        if op == "expm1":
            return self.node(op, [self.inside(x)], shape)
        return self.node(op, [x], shape)

    def stepped(self):
        """What has jumps, of a parameter; times another value, so that something has a gradient."""
        shape = self.shape()
        x = self.param(shape)
        op = self.random.choice(["floor", "ceil", "round", "trunc", "sign", "frac", "fmod", "remainder", "hardmax", "masked_fill", "mask", "bits", "one_hot"])
        if op in ("fmod", "remainder"):
            return self.node(op, [x, self.constant([], self.random.choice([0.3, -0.7]))], shape)
        if op == "masked_fill":
            y = self.like(shape)
            return self.node(op, [y, self.hidden("gt", [x, self.constant([], 0.2)])], shape, value=0.3)
        if op == "mask":
            masks = [self.hidden(self.random.choice(["lt", "ge", "le", "gt", "ne"]), [self.param(shape), self.constant([], 0.1)]) for _ in range(2)]
            mask = self.hidden(self.random.choice(["both", "either", "logical_xor"]), masks)
            return self.node("where", [mask, self.like(shape), x], shape)
        if op == "bits":
            a, b = (self.indices(shape, 16) for _ in range(2))
            bits = self.hidden(self.random.choice(["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]), [a, b])
            zero = self.name("c")
            self.nodes.append({"op": "constant", "inputs": [], "outputs": [zero], "type": "i64", "shape": [], "value": 9})
            return self.node("where", [self.hidden("gt", [bits, zero]), x, self.constant([], 0.5)], shape)
        if op == "one_hot":
            classes = self.random.choice([2, 3, 5])
            shape = shape[:2]
            mask, hot = self.name("v"), self.hidden("one_hot", [self.indices(shape, classes)], num_classes=classes)
            self.nodes.append({"op": "cast", "inputs": [hot], "outputs": [mask], "type": self.type})
            return self.node("multiply", [mask, self.like([*shape, classes])], [*shape, classes])
        if op == "hardmax" and (not shape or 0 in shape):
            return None
        jumps = self.hidden(op, [x])
        return self.node("multiply", [jumps, self.like(shape)], shape)

    def loss(self):
        found = self.full()
        if not found:
            return None
        x, shape = found
        y = self.like(shape)
        reduction = self.random.choice(["mean", "sum", "none"])
        result = shape if reduction == "none" else []
        op = self.random.choice(["l1_loss", "huber_loss", "smooth_l1_loss", "mse_loss", "kl_div", "binary_cross_entropy_with_logits", "poisson_nll_loss",
                                 "soft_margin_loss", "gaussian_nll_loss", "cosine_similarity", "margin_ranking_loss", "binary_cross_entropy", "nll_loss"])
        more, operands = {"reduction": reduction}, [x, y]
        if op == "mse_loss":
            del more["reduction"]
            return self.node(op, operands, [])
        if op == "kl_div":
            more["log_target"] = True
            operands = [self.inside(x), self.inside(y)]
        elif op == "binary_cross_entropy":
            operands = [self.hidden("sigmoid", [self.inside(x)]), self.hidden("sigmoid", [y])]
        elif op == "poisson_nll_loss":
            operands = [self.inside(x), y]
        elif op == "gaussian_nll_loss":
            operands.append(self.finite(self.like(shape), shape))
        elif op == "margin_ranking_loss":
            operands.append(self.like(shape))
        elif op == "cosine_similarity":
            dim = self.random.randrange(len(shape))
            return self.node(op, [self.finite(x, shape), y], shape[:dim] + shape[dim + 1:], dim=dim)
        elif op == "nll_loss":
            if len(shape) != 2:
                return None
            result = shape[:1] if reduction == "none" else []
            operands = [x, self.indices(shape[:1], shape[1])]
        value = self.node(op, operands, None, **more)
        if reduction == "sum":
            return self.scaled(value, result, product(shape) ** 2)
        self.shapes[value] = result
        return value

    def shaped(self):
        """Moves elements without a copy of them, mostly."""
        found = self.full()
        if not found:
            return None
        x, shape = found
        rank, dim = len(shape), self.random.randrange(len(shape))
        op = self.random.choice(["squeeze", "unsqueeze", "movedim", "transpose", "flatten", "unflatten", "narrow", "chunk", "split", "unbind", "diag_embed",
                                 "select_scatter", "circular_pad", "as_strided", "negative"])
        if op == "squeeze":
            return self.node(op, [x], [size for size in shape if size != 1])
        if op == "unsqueeze":
            return self.node(op, [x], shape[:dim] + [1] + shape[dim:], dim=dim)
        if op in ("movedim", "transpose"):
            to, result = self.random.randrange(rank), list(shape)
            if op == "transpose":
                result[dim], result[to] = result[to], result[dim]
                return self.node(op, [x], result, dim0=dim, dim1=to)
            result.insert(to, result.pop(dim))
            return self.node(op, [x], result, source=dim, destination=to)
        if op == "flatten":
            end = self.random.randrange(dim, rank)
            return self.node(op, [x], shape[:dim] + [product(shape[dim:end + 1])] + shape[end + 1:], start_dim=dim, end_dim=end)
        if op == "unflatten":
            size = self.random.choice([d for d in range(1, shape[dim] + 1) if shape[dim] % d == 0])
            return self.node(op, [x], shape[:dim] + [size, shape[dim] // size] + shape[dim + 1:], dim=dim, sizes=[size, -1])
        if op == "narrow":
            start = self.random.randrange(shape[dim])
            length = self.random.randint(1, shape[dim] - start)
            return self.node(op, [x], shape[:dim] + [length] + shape[dim + 1:], dim=dim, start=start, length=length)
        if op in ("chunk", "split", "unbind"):
            size = 1 if op == "unbind" else self.random.randint(max(1, shape[dim] // 4), shape[dim])
            sizes = [min(size, shape[dim] - start) for start in range(0, shape[dim], size)]
            if len(sizes) > 5:
                return None
            more = {"unbind": {}, "split": {"sizes": sizes}, "chunk": {"chunks": len(sizes)}}[op]
            if op == "chunk":
                each = -(-shape[dim] // len(sizes))
                sizes = [min(each, shape[dim] - start) for start in range(0, shape[dim], each)]
                if len(sizes) != more["chunks"]:
                    return None
            outputs = [self.name("v") for _ in sizes]
            self.nodes.append({"op": op, "inputs": [x], "outputs": outputs, "attributes": {"dim": dim, **more}})
            for name, part in zip(outputs, sizes):
                self.shapes[name] = shape[:dim] + ([] if op == "unbind" else [part]) + shape[dim + 1:]
            return outputs[0]
        if op == "diag_embed" and product(shape) * (shape[-1] + 1) < 4000:
            offset = self.random.randint(-1, 1)
            return self.node(op, [x], [*shape, shape[-1] + abs(offset)][:-2] + [shape[-1] + abs(offset)] * 2, offset=offset)
        if op == "select_scatter":
            part = shape[:dim] + shape[dim + 1:]
            return self.node(op, [x, self.like(part)], shape, dim=dim, index=self.random.randrange(shape[dim]))
        if op == "circular_pad" and rank >= 3 and rank <= 4:
            pad = [self.random.randint(0, shape[-1]), self.random.randint(0, shape[-1])]
            return self.node(op, [x], [*shape[:-1], shape[-1] + sum(pad)], pad=pad) if rank == 3 else None
        if op == "as_strided":  # windows that overlap
            many = product(shape)
            rows, step = self.random.randint(1, 5), self.random.randint(1, 3)
            columns = many - (rows - 1) * step
            if columns < 1:
                return None
            storage = self.hidden("neg", [x])
            return self.node("sin", [self.hidden(op, [storage], sizes=[rows, columns], strides=[step, 1], offset=0)], [rows, columns])
        if op == "negative":  # a step below 0
            count = -(-shape[dim] // 2)
            return self.node("slice_along", [x], shape[:dim] + [count] + shape[dim + 1:], dim=dim, start=shape[dim] - 1, step=-2)
        return None

    def reduced(self):
        found = self.full()
        if not found:
            return None
        x, shape = found
        dim, keep = self.random.randrange(len(shape)), self.random.random() < 0.5
        result = shape[:dim] + ([1] if keep else []) + shape[dim + 1:]
        op = self.random.choice(["prod", "log_sum", "max", "min", "std_mean", "var_mean", "kthvalue", "glu", "softmin", "norm"])
        if op == "prod":
            return self.node(op, [self.hidden("add_scaled", [self.inside(x, 0.2), self.constant([], 1.0)])], result, dim=[dim], keepdim=keep)
        if op == "log_sum":
            return self.node(op, [self.finite(x, shape)], result, dim=[dim], keepdim=keep)
        if op in ("max", "min"):
            return self.node(op, [x], result, results=2, dim=dim, keepdim=keep)
        if op in ("std_mean", "var_mean"):
            if shape[dim] < 2:
                return None
            value = self.node(op, [x], result, results=2, dim=[dim], keepdim=keep)
            mean = self.nodes[-1]["outputs"][1]
            self.shapes[mean] = result
            return value
        if op == "kthvalue":
            return self.node(op, [x], result, results=2, k=self.random.randint(1, shape[dim]), dim=dim, keepdim=keep)
        if op == "glu":
            return self.node(op, [x], shape[:dim] + [shape[dim] // 2] + shape[dim + 1:], dim=dim) if shape[dim] % 2 == 0 else None
        if op == "softmin":
            return self.node(op, [x], shape, dim=dim)
        if op == "norm":
            return self.node(op, [x], result, dim=[dim], keepdim=keep, p=self.random.choice([1.5, 4.0])) if shape[dim] > 1 else None
        return None

    def products(self):
        m, k, n, b = (self.random.choice([1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]) for _ in range(4))
        op = self.random.choice(["addmm", "addmv", "addr", "baddbmm", "bilinear", "dot", "gemm", "inner", "mm", "mv", "tensordot", "det", "cdist", "pdist"])
        if op == "addmm":
            value, shape = self.hidden(op, [self.like([n]), self.like([m, k]), self.like([k, n])], alpha=0.5, beta=2.0), [m, n]
        elif op == "addmv":
            value, shape = self.hidden(op, [self.like([m]), self.like([m, k]), self.like([k])], alpha=0.5), [m]
        elif op == "addr":
            value, shape, k = self.hidden(op, [self.like([m, n]), self.like([m]), self.like([n])], beta=-1.0), [m, n], 1
        elif op == "baddbmm":
            b = min(b, 5)
            value, shape = self.hidden(op, [self.like([b, m, n]), self.like([b, m, k]), self.like([b, k, n])]), [b, m, n]
        elif op == "bilinear":
            m, k, n = min(m, 8), min(k, 8), min(n, 8)
            value, shape, k = self.hidden(op, [self.like([b, m]), self.like([b, k]), self.like([n, m, k])]), [b, n], m * k
        elif op == "dot":
            value, shape = self.hidden(op, [self.like([k]), self.like([k])]), []
        elif op == "gemm":
            value = self.hidden(op, [self.like([k, m]), self.like([n, k]), self.like([m, 1])], transpose_a=True, transpose_b=True, alpha=0.5)
            shape = [m, n]
        elif op == "inner":
            value, shape = self.hidden(op, [self.like([m, k]), self.like([n, k])]), [m, n]
        elif op == "mm":
            value, shape = self.hidden(op, [self.like([m, k]), self.like([k, n])]), [m, n]
        elif op == "mv":
            value, shape = self.hidden(op, [self.like([m, k]), self.like([k])]), [m]
        elif op == "tensordot":
            m, k = min(m, 8), min(k, 8)
            value, shape, k = self.hidden(op, [self.like([n, m, k]), self.like([m, k, b])], dims=2), [n, b], m * k
        elif op == "det":
            m = min(m, 4)
            eye = self.hidden("eye", [], n=m, dtype=self.type)
            return self.node(op, [self.hidden("add_scaled", [self.inside(self.like([b, m, m]), 0.2), eye])], [b])
        elif op == "cdist":
            return self.node(op, [self.param([m, k]), self.param([n, k])], [m, n], p=self.random.choice([1.0, 2.0, 3.0])) if k > 1 else None
        else:
            return self.node(op, [self.param([m, k])], [m * (m - 1) // 2], p=2.0) if m > 1 and k > 1 else None
        return self.scaled(value, shape, k)

    def signal(self):
        """Convolutions and pools of one and three dimensions, and what images alone have."""
        op = self.random.choice(["conv1d", "conv3d", "conv_transpose1d", "pool1d", "pool3d", "adaptive_max_pool", "global", "pixel_shuffle",
                                 "pixel_unshuffle", "space_to_depth", "local_response_norm", "instance_norm", "mean_variance_norm", "grid_sample", "lp_pool",
                                 "unfold", "recurrent", "dft"])
        n, c = self.random.choice([1, 2, 3]), self.random.choice([1, 2, 3, 4, 8])
        rank = 1 if op.endswith("1d") else 3 if op.endswith("3d") else 2
        plane = [self.random.choice([3, 4, 5, 8, 9] if rank == 3 else [3, 5, 7, 8, 9, 13, 16] + [33] * (rank == 1)) for _ in range(rank)]
        if op in ("conv1d", "conv3d", "conv_transpose1d"):
            kernel, strides = [self.random.choice([1, 2, 3]) for _ in plane], [self.random.choice([1, 1, 2]) for _ in plane]
            out, pad = self.random.choice([1, 2, 4, 8]), [self.random.choice([0, 1]) for _ in plane]
            if op == "conv_transpose1d":
                weight, result = [c, out, *kernel], [(s - 1) * t - 2 * p + k for s, k, t, p in zip(plane, kernel, strides, pad)]
            else:
                weight, result = [out, c, *kernel], [(s + 2 * p - k) // t + 1 for s, k, t, p in zip(plane, kernel, strides, pad)]
            if min(result) < 1:
                return None
            value = self.hidden(op, [self.like([n, c, *plane]), self.param(weight)], strides=strides, padding=pad)
            return self.scaled(value, [n, out, *result], c * product(kernel))
        x = self.like([n, c, *plane])
        if op in ("pool1d", "pool3d", "lp_pool"):
            kernel, strides = [self.random.randint(1, 3) for _ in plane], [self.random.randint(1, 3) for _ in plane]
            result = [(s - k) // t + 1 for s, k, t in zip(plane, kernel, strides)]
            if op == "lp_pool":
                x = self.finite(x, [n, c, *plane])
            else:
                op = self.random.choice(["max_pool", "avg_pool"]) + op[4:]
            return self.node(op, [x], [n, c, *result], kernel=kernel, strides=strides)
        if op == "adaptive_max_pool":
            size = [self.random.randint(1, s) for s in plane]
            return self.node(op, [x], [n, c, *size], results=2, output_size=size)
        if op == "global":
            return self.node(self.random.choice(["global_avg_pool", "global_max_pool", "global_lp_pool"]), [x], [n, c, 1, 1])
        if op == "pixel_shuffle":
            return self.node(op, [self.like([n, c * 4, *plane])], [n, c, plane[0] * 2, plane[1] * 2], upscale_factor=2)
        if op in ("pixel_unshuffle", "space_to_depth"):
            x = self.like([n, c, plane[0] * 2, plane[1] * 2])
            return self.node(op, [x], [n, c * 4, *plane], **{"downscale_factor" if op == "pixel_unshuffle" else "blocksize": 2})
        if op == "grid_sample":  # places that are drawn: at the edge of a pixel it has a kink
            size = [self.random.randint(1, 6) for _ in plane]
            more = {"mode": self.random.choice(["bilinear", "bicubic"]), "padding_mode": self.random.choice(["zeros", "border", "reflection"])}
            return self.node(op, [x, self.param([n, *size, 2])], [n, c, *size], **more)
        if op == "unfold":
            kernel = [self.random.randint(1, 3) for _ in plane]
            result = product([s - k + 1 for s, k in zip(plane, kernel)])
            return self.node(op, [x], [n, c * product(kernel), result], kernel_size=kernel)
        if op == "recurrent":
            return self.recurrent()
        if op == "dft":
            return self.scaled(self.hidden(op, [self.like([n, plane[0], 2])], dim=1), [n, plane[0], 2], plane[0])
        if op in ("instance_norm", "local_response_norm", "mean_variance_norm"):
            return self.node(op, [x], [n, c, *plane], **({} if op == "local_response_norm" else {"eps": 1e-2}))
        return None

    def recurrent(self):
        op = self.random.choice(["lstm", "gru", "rnn"])
        steps, n, size, hidden = self.random.choice([1, 2, 3, 5, 9]), self.random.choice([1, 2, 5]), self.random.choice([1, 3, 8]), self.random.choice([2, 4, 9])
        gates = {"lstm": 4, "gru": 3, "rnn": 1}[op]
        weights = [self.param(shape) for shape in ([gates * hidden, size], [gates * hidden, hidden], [gates * hidden], [gates * hidden])]
        first = [self.like([1, n, hidden]) for _ in range(2 if op == "lstm" else 1)]
        return self.node(op, [self.like([steps, n, size]), *first, *weights], [steps, n, hidden])

    def scattered(self):
        found = self.full()
        if not found:
            return None
        x, shape = found
        dim = self.random.randrange(len(shape))
        part = [self.random.randint(1, size) for size in shape]
        op = self.random.choice(["index_put", "masked_scatter", "scatter_reduce", "scatter_elements", "take_along_dim", "index", "argsort", "reverse_sequence"])
        if op in ("scatter_reduce", "scatter_elements"):
            named = self.random.choice(["sum", "mean", "amax", "amin", "prod"] if op == "scatter_reduce" else ["add", "mul", "max", "min"])
            if named in ("prod", "mul"):
                x = self.inside(x)
            return self.node(op, [x, self.indices(part, shape[dim]), self.like(part)], shape, dim=dim, reduce=named)
        if op == "masked_scatter":
            mask = self.hidden("gt", [self.param(list(shape)), self.constant([], 0.0)])
            return self.node(op, [x, mask, self.like(shape)], shape)
        if op == "index_put":
            many = self.random.choice([1, 2, 5, 9])
            return self.node(op, [x, self.like([many, *shape[1:]]), self.indices([many], shape[0])], shape, accumulate=True)
        if op == "take_along_dim":
            return self.node(op, [x, self.indices(shape[:dim] + [3] + shape[dim + 1:], shape[dim])], shape[:dim] + [3] + shape[dim + 1:], dim=dim)
        if op == "index":
            many = self.random.choice([1, 3, 8])
            if len(shape) < 2:
                return None
            return self.node(op, [x, *(self.indices([many], size) for size in shape[:2])], [many, *shape[2:]])
        if op == "argsort":
            order = self.hidden(op, [self.param(list(shape))], dim=dim)
            return self.node("gather", [x, order], shape, dim=dim)
        if op == "reverse_sequence" and len(shape) > 1:
            return self.node(op, [x, self.indices([shape[0]], shape[1] + 1)], shape, batch_dim=0, time_dim=1)
        return None

    def rounded(self):
        """Through a narrower type, or a wider one; or without a gradient, or tagged."""
        x = self.pick()
        shape = self.shapes[x]
        kind = self.random.choice(["cast", "detach", "no_grad", "checkpoint", "save", "recompute"])
        if kind == "cast":
            name, back = self.name("v"), self.name("v")
            types = [t for t in ("bf16", "f16", "f64", "f32") if t != self.type]
            self.nodes.append({"op": "cast", "inputs": [x], "outputs": [name], "type": self.random.choice(types)})
            inner = self.hidden(self.random.choice(["neg", "square", "tanh", "relu"]), [name])
            self.nodes.append({"op": "cast", "inputs": [inner], "outputs": [back], "type": self.type})
            self.shapes[back] = shape
            return back
        if kind == "detach":
            return self.node("multiply", [self.hidden("detach", [x]), self.like(shape)], shape)
        y = self.node(self.random.choice(["sin", "tanh", "square"]), [x], shape)
        if kind == "no_grad":
            self.nodes[-1]["no_grad"] = True
            del self.shapes[y]
            return self.node("multiply", [y, self.like(shape)], shape)
        self.nodes[-1][kind] = "region" if kind == "checkpoint" else True
        return y
