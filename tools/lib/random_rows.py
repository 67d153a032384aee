"""Random programs that treat the rows of a batch alike: tools/random-programs --law=rows-alike.

A value either has the batch as its first dimension or has none of it. Nodes work on each row by itself, or on all rows in a way that does not ask for their
order (means over the batch, batch normalization); parameters have no batch. The loss is the mean of something of each row.
"""

from random_programs import Program, product


class RowProgram(Program):
    """The names of values of `self.shapes` that have the batch are in `self.rows`."""

    def __init__(self, random, type_, small=False):
        super().__init__(random, type_, small)
        self.batch, self.rows, self.labels = random.choice([2, 3, 4, 5, 8, 16, 17, 33]), [], None
        self.is_open = True
        for _ in range(random.randint(1, 2)):
            self.input()

    def input(self):
        rank = self.random.choice([1, 1, 2, 3])
        while True:
            shape = [self.batch, *(self.random.choice(self.sizes[:11]) for _ in range(rank))]
            if product(shape) <= self.most:
                break
        name = self.name("x")
        self.inputs.append({"name": name, "type": self.type, "shape": shape, "requires_grad": True})
        self.shapes[name] = shape
        self.rows.append(name)
        return name

    def row(self, rank=None):
        """A value with the batch, of that rank without it."""
        found = [name for name in self.rows if rank is None or len(self.shapes[name]) == rank + 1]
        return self.random.choice(found) if found else None

    def made(self, op, inputs, shape, /, results=1, **attributes):
        name = self.node(op, inputs, shape, results=results, **attributes)
        self.rows.append(name)
        return name

    # --- kinds of nodes
    def each(self):
        x = self.row()
        op = self.random.choice(["tanh", "sigmoid", "sin", "gelu", "silu", "softsign", "relu", "abs", "softplus", "leaky_relu", "atan"])
        self.made(op, [x], self.shapes[x])

    def with_param(self):
        x = self.row()
        shape = self.shapes[x]
        y = self.param(self.stretched(shape[1:]))
        both = [x, y] if self.random.random() < 0.5 else [y, x]
        self.made(self.random.choice(["multiply", "subtract", "fmax"]), both, shape)

    def both(self):
        x = self.row()
        same = [name for name in self.rows if self.shapes[name] == self.shapes[x]]
        self.made(self.random.choice(["multiply", "subtract", "fmin"]), [x, self.random.choice(same)], self.shapes[x])

    def linear(self):
        x = self.row()
        shape = self.shapes[x]
        wide = self.random.choice(self.sizes[:11])
        if len(shape) < 2 or product(shape[:-1]) * wide > self.most:
            return
        w, b = self.param([wide, shape[-1]]), self.param([wide])
        self.made("tanh", [self.hidden("linear", [x, w, b])], [*shape[:-1], wide])

    def normal(self):
        x = self.row()
        shape = self.shapes[x]
        if len(shape) < 2 or shape[-1] < 2:
            return
        if self.random.random() < 0.5:
            self.made("softmax", [x], shape, dim=len(shape) - 1)
        else:
            w, b = self.param([shape[-1]]), self.param([shape[-1]])
            self.made("native_layer_norm", [x, w, b], shape, eps=0.001)

    def over_batch(self):
        """What all rows have in common."""
        x = self.row()
        shape = self.shapes[x]
        mean = self.hidden(self.random.choice(["mean", "amax"]), [x], dim=[0], keepdim=True)
        self.made("subtract", [x, mean], shape)

    def reduced_rows(self):
        x = self.row()
        shape = self.shapes[x]
        if len(shape) < 2:
            return
        dim = self.random.randrange(1, len(shape))
        self.made(self.random.choice(["mean", "amax"]), [x], shape[:dim] + shape[dim + 1:], dim=[dim], keepdim=False)

    def moved_rows(self):
        x = self.row()
        shape = self.shapes[x]
        if len(shape) < 3:
            if len(shape) == 2:
                self.made("unsqueeze", [x], [shape[0], 1, shape[1]], dim=1)
            return
        a, b = self.random.sample(range(1, len(shape)), 2)
        if self.random.random() < 0.5:
            result = list(shape)
            result[a], result[b] = result[b], result[a]
            self.made("transpose", [x], result, dim0=a, dim1=b)
        else:
            self.made("flatten", [x], [shape[0], product(shape[1:])], start_dim=1, end_dim=len(shape) - 1)

    def image_rows(self):
        x = self.row(3)
        if x is None:
            return
        shape = self.shapes[x]
        channels = self.random.choice([1, 2, 3, 4, 8])
        if min(shape[2:]) < 3 or shape[0] * channels * shape[2] * shape[3] > self.most:
            return
        w = self.param([channels, shape[1], 3, 3])
        self.made("tanh", [self.hidden("conv2d", [x, w], padding=[1, 1])], [shape[0], channels, *shape[2:]])

    def attention_rows(self):
        x = self.row(2)
        if x is None:
            return
        shape = self.shapes[x]
        if shape[1] * shape[1] * shape[0] > self.most:
            return
        scores = self.hidden("softmax", [self.hidden("bmm", [x, self.hidden("transpose", [x], dim0=1, dim1=2)])], dim=2)
        self.made("bmm", [scores, x], shape)

    def classes(self):
        """A loss of labels, whose rows are moved too."""
        x = self.row(1)
        if x is None or self.shapes[x][1] < 2:
            return
        self.node("cross_entropy_loss", [x, self.indices([self.batch], self.shapes[x][1])], [])

    def grow(self, steps):
        kinds = [self.each] * 3 + [self.with_param] * 3 + [self.linear] * 3 + [self.both, self.normal, self.normal, self.over_batch, self.reduced_rows,
                                                                             self.moved_rows, self.image_rows, self.attention_rows, self.classes]
        self.with_param()
        for _ in range(steps):
            self.random.choice(kinds)()

    def graph_with(self, nodes):
        return rows_graph_of(self.inputs, self.params, nodes, self.shapes, self.rows)


def rows_graph_of(inputs, params, nodes, shapes, rows):
    """The loss is the mean of the means of what nobody reads, which are outputs, too."""
    read = {name for node in nodes for name in node["inputs"]}
    made = {name for node in nodes for name in node["outputs"]}
    inputs = [entry for entry in inputs if entry["name"] in read]
    params = [entry for entry in params if entry["name"] in read]
    ends = [name for name in shapes if name in made and name not in read]
    if not ends or not params or not any(entry["type"] != "i64" for entry in inputs):
        return None
    nodes, parts = list(nodes), []
    for i, name in enumerate(ends):
        nodes += [{"op": "sin", "inputs": [name], "outputs": [f"p{i}"]}, {"op": "mean", "inputs": [f"p{i}"], "outputs": [f"s{i}"]}]
        parts.append(f"s{i}")
    total = parts[0]
    for i, part in enumerate(parts[1:]):
        nodes.append({"op": "add", "inputs": [total, part], "outputs": [f"t{i}"]})
        total = f"t{i}"
    more = [{"name": f"e{i}", "value": name} for i, name in enumerate(ends) if name in rows]
    return {"format": "tandem-graph", "version": 1, "name": "random", "inputs": inputs, "params": params, "nodes": nodes,
            "outputs": [{"name": "loss", "value": total}, *more]}
