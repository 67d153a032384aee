"""The benchmark's workloads for the peers: parameters, data, models, and what a step has to do at least.

Weights and data are those of tools/bench/workloads (Models.h, Workloads.h): parameter j is stream j of the counter
generator, batch b the streams 1000 + 10 b (inputs) and 1001 + 10 b (labels). A model is written once, over the operations
of a framework (torch_ops.py, jax_ops.py). All numbers are f32, images NCHW, labels and tokens i64. In inference, batch
norm has mean 0 and variance 1; there are no running statistics and no dropout; GELU is its approximation by tanh.

Counting needs neither NumPy nor a framework.
"""

import math
import os

import sizes

BATCHES = 2  # the steps cycle through this many


def spread(deviation):
    """The scale of the uniform distribution with this standard deviation."""
    return 2.0 * math.sqrt(3.0) * deviation


class Workload:
    """`parameters`: (name, shape, scale of a uniform distribution or None, constant)."""

    optimizer = ("momentum", 0.01)  # its learning rate; momentum 0.9, or AdamW without decay
    fixed = ()  # parameters that get a gradient and no update
    saved_bytes = 0

    def uniform(self, name, shape, scale):
        self.parameters.append((name, shape, scale, None))

    def constant(self, name, shape, value):
        self.parameters.append((name, shape, None, value))

    def weights(self):
        """Fresh arrays by name. They are made once, if PEER_WEIGHTS names a folder to keep them in."""
        import counter
        import numpy as np

        folder = os.environ.get("PEER_WEIGHTS")
        kept = os.path.join(folder, self.name + ".npz") if folder else ""
        if os.path.exists(kept):
            with np.load(kept) as arrays:
                return dict(arrays)
        made = {name: np.full(shape, value, dtype=np.float32) if scale is None else counter.uniform(stream, shape, scale)
                for stream, (name, shape, scale, value) in enumerate(self.parameters)}
        if kept:
            np.savez(f"{kept}.{os.getpid()}.npz", **made)
            os.replace(f"{kept}.{os.getpid()}.npz", kept)
        return made

    def loss(self, ops, p, x, labels):
        return ops.cross_entropy(self.logits(ops, p, x, True), labels)

    def infer(self, ops, p, x):
        return self.logits(ops, p, x, False)

    def infer_input(self, number):
        return self.batch(number)[0]

    def multiply_adds(self):
        """(of the forward, whether the data operand needs a gradient too) of every product and convolution."""
        return []

    def count(self):
        return sum(math.prod(shape) for name, shape, _, _ in self.parameters if name not in self.fixed)

    def activation_bytes(self):
        """Of what a fused forward must hand to the backward: the data operand of every product and convolution and the
        input of every normalization."""
        return 0

    def counts(self):
        """FLOPs and bytes. The forward reads the parameters p, the backward reads them and writes their gradients; an
        activation is written, read, read again in the backward, its gradient written and read. The update reads p, g and
        the moments, and writes p and the moments."""
        p, a = 4 * self.count(), self.activation_bytes()
        adam = self.optimizer[0] == "adamw"
        forward = sum(2 * m for m, _ in self.multiply_adds())
        backward = sum(2 * m * (2 if data else 1) for m, data in self.multiply_adds())
        return dict(parameters=self.count(), infer_flops=forward, train_flops=forward + backward, infer_bytes=p + 2 * a,
                    train_bytes=3 * p + 5 * a, update_bytes=(7 if adam else 5) * p, state_bytes=(4 if adam else 3) * p)


class Mlp(Workload):
    def __init__(self, sizes, batch, optimizer):
        self.sizes, self.rows, self.parameters = sizes, batch, []
        self.optimizer = (optimizer, 1e-3 if optimizer == "adamw" else 0.01)
        for i, (inside, out) in enumerate(zip(sizes, sizes[1:])):
            self.uniform(f"w{i}", (out, inside), spread(math.sqrt(2.0 / inside)))
            self.constant(f"b{i}", (out,), 0.0)

    def batch(self, number):
        import counter

        return (counter.uniform(1000 + 10 * number, (self.rows, self.sizes[0]), 2.0),
                counter.integers(1001 + 10 * number, (self.rows,), self.sizes[-1]))

    def logits(self, ops, p, x, training):
        last = len(self.sizes) - 2
        for i in range(last + 1):
            x = ops.linear(x, p[f"w{i}"], p[f"b{i}"])
            x = ops.relu(x) if i < last else x
        return x

    def multiply_adds(self):
        return [(self.rows * a * b, i > 0) for i, (a, b) in enumerate(zip(self.sizes, self.sizes[1:]))]

    def activation_bytes(self):
        return 4 * self.rows * sum(self.sizes)


class ResNet(Workload):
    """Basic blocks on 32x32 images; batch norm on the batch's statistics."""

    optimizer = ("momentum", 0.05)
    image = 32

    def __init__(self, width, stages, blocks, batch):
        self.rows, self.parameters = batch, []
        self.convolutions = []  # (name, channels in, out, kernel, height in, out)
        self.blocks = []  # (name, stride, whether the shortcut is a convolution)
        self.convolution("stem", 3, width, 3, self.image, 1)
        inside, height = width, self.image
        for stage in range(stages):
            for block in range(blocks):
                out, stride = width << stage, 2 if stage > 0 and block == 0 else 1
                name, project = f"s{stage}b{block}.", stride != 1 or inside != out
                self.convolution(name + "c1", inside, out, 3, height, stride)
                self.convolution(name + "c2", out, out, 3, height // stride, 1)
                if project:
                    self.convolution(name + "sc", inside, out, 1, height, stride)
                self.blocks.append((name, stride, project))
                inside, height = out, height // stride
        self.features = inside
        self.uniform("fc.w", (10, inside), spread(math.sqrt(1.0 / inside)))
        self.constant("fc.b", (10,), 0.0)

    def convolution(self, name, inside, out, kernel, height, stride):
        self.uniform(name + ".w", (out, inside, kernel, kernel), spread(math.sqrt(2.0 / (inside * kernel * kernel))))
        self.constant(name + ".g", (out,), 1.0)
        self.constant(name + ".b", (out,), 0.0)
        self.convolutions.append((name, inside, out, kernel, height, height // stride))

    def batch(self, number):
        import counter

        return (counter.uniform(1000 + 10 * number, (self.rows, 3, self.image, self.image), 2.0),
                counter.integers(1001 + 10 * number, (self.rows,), 10))

    def logits(self, ops, p, x, training):
        def normed(x, name, stride):
            y = ops.convolution(x, p[name + ".w"], stride)
            return ops.batch_norm(y, p[name + ".g"], p[name + ".b"], training)

        x = ops.relu(normed(x, "stem", 1))
        for name, stride, project in self.blocks:
            y = normed(ops.relu(normed(x, name + "c1", stride)), name + "c2", 1)
            x = ops.relu(y + (normed(x, name + "sc", stride) if project else x))
        return ops.linear(ops.image_mean(x), p["fc.w"], p["fc.b"])

    @staticmethod
    def taps(kernel, height, out):
        """Products that a row or column of outputs needs: a tap on the padding is none."""
        stride, pad = height // out, kernel // 2
        return sum(0 <= o * stride + t - pad < height for o in range(out) for t in range(kernel))

    def multiply_adds(self):
        return [(self.rows * out * inside * self.taps(kernel, height, after) ** 2, name != "stem")
                for name, inside, out, kernel, height, after in self.convolutions] + [(self.rows * self.features * 10, True)]

    def activation_bytes(self):
        # The shortcut's convolution shares its input with the block's first one.
        total = self.rows * self.features
        for _, inside, out, kernel, height, after in self.convolutions:
            total += self.rows * (out * after * after + (inside * height * height if kernel == 3 else 0))
        return 4 * total


class Gpt(Workload):
    """Pre-norm decoder, learned positions, the embedding tied to the last product."""

    def __init__(self, layers, width, heads, time, batch, vocabulary, positions):
        self.layers, self.width, self.heads, self.time, self.rows = layers, width, heads, time, batch
        self.vocabulary, self.parameters = vocabulary, []
        self.optimizer = ("adamw", 3e-4 if layers < 12 else 1e-4)
        c, plain, narrow = width, spread(0.02), spread(0.02 / math.sqrt(2 * layers))
        self.uniform("wte", (vocabulary, c), plain)
        self.uniform("wpe", (positions, c), plain)
        for i in range(layers):
            for name, out, inside, scale in (("qkv", 3 * c, c, plain), ("proj", c, c, narrow), ("fc", 4 * c, c, plain),
                                             ("fcproj", c, 4 * c, narrow)):
                if name in ("qkv", "fc"):
                    norm = f"h{i}.ln1" if name == "qkv" else f"h{i}.ln2"
                    self.constant(norm + "w", (c,), 1.0)
                    self.constant(norm + "b", (c,), 0.0)
                self.uniform(f"h{i}.{name}w", (out, inside), scale)
                self.constant(f"h{i}.{name}b", (out,), 0.0)
        self.constant("lnfw", (c,), 1.0)
        self.constant("lnfb", (c,), 0.0)

    def batch(self, number):
        import counter

        # One stream of tokens; the labels are the inputs moved by one.
        tokens = counter.integers(1000 + 10 * number, (self.rows * self.time + 1,), self.vocabulary)
        shape = (self.rows, self.time)
        return tokens[:-1].reshape(shape).copy(), tokens[1:].reshape(shape).copy()

    def logits(self, ops, p, x, training):
        shape = (self.rows, self.time, self.width)
        h = ops.embedding(p["wte"], x) + p["wpe"][: self.time]
        for i in range(self.layers):
            def q(name):
                return p[f"h{i}.{name}"]

            def linear(x, name):
                return ops.linear(x, q(name + "w"), q(name + "b"))

            a = linear(ops.layer_norm(h, q("ln1w"), q("ln1b")), "qkv")
            a = ops.attention(a.reshape(self.rows, self.time, 3, self.heads, -1))
            h = h + linear(a.reshape(shape), "proj")
            a = ops.gelu(linear(ops.layer_norm(h, q("ln2w"), q("ln2b")), "fc"))
            h = h + linear(a, "fcproj")
        return ops.linear(ops.layer_norm(h, p["lnfw"], p["lnfb"]), p["wte"], None)

    def multiply_adds(self):
        n, c, t = self.rows * self.time, self.width, self.time
        return [(n * c * m, True) for _ in range(self.layers) for m in (3 * c, t, t, c, 4 * c, 4 * c)] + [
            (n * c * self.vocabulary, True)]

    def activation_bytes(self):
        # A layer: the residual stream twice, both norms' outputs, qkv, attention's output, fc's output.
        return 4 * self.rows * self.time * (self.layers * 12 * self.width + 2 * self.width + self.vocabulary)


class NormChain(Workload):
    """h <- h + gelu(layernorm(h)), repeated; the loss is the mean of h^2, and the input gets a gradient too."""

    fixed = ("x",)

    def __init__(self, rows, columns, chain):
        self.rows, self.columns, self.chain, self.parameters = rows, columns, chain, []
        self.uniform("x", (rows, columns), 2.0)
        for i in range(chain):
            self.constant(f"g{i}", (columns,), 1.0)
            self.constant(f"b{i}", (columns,), 0.0)

    def batch(self, number):
        import numpy as np

        return np.zeros(1, dtype=np.float32), np.zeros(1, dtype=np.int64)

    def infer_input(self, number):
        return self.weights()["x"]

    def loss(self, ops, p, x, labels):
        h = self.infer(ops, p, p["x"])
        return (h * h).mean()

    def infer(self, ops, p, x):
        for i in range(self.chain):
            x = x + ops.gelu(ops.layer_norm(x, p[f"g{i}"], p[f"b{i}"]))
        return x

    def counts(self):
        # One kernel a layer: the forward reads and writes, the backward reads what was saved and a gradient and writes one.
        # (All in one pass over the rows would be less; that is no compiler's floor here.)
        tensor, p = 4 * self.rows * self.columns, 4 * self.count()
        return dict(parameters=self.count(), infer_flops=0, train_flops=0, infer_bytes=2 * tensor * self.chain,
                    train_bytes=5 * tensor * self.chain, update_bytes=5 * p, state_bytes=3 * p)


NAMES = ["mlp", "resnet8", "resnet18", "gpt", "gpt2-124m", "normchain", "mnist-fc"]  # the order of the tables


def named(name):
    for table, family in ((sizes.MLP, Mlp), (sizes.RESNET, ResNet), (sizes.GPT, Gpt), (sizes.NORMCHAIN, NormChain)):
        if name in table:
            workload = family(**table[name])
            workload.name = name
            return workload
    raise KeyError(name)
