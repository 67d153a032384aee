"""The frame of the families: inputs, cases, and what PyTorch makes of them.

    family = Family("pointwise")
    family.add("gelu", F.gelu, [real(3, 4)])
    family.add("softmax", lambda x: x.softmax(1), [real(2, 5)], {"dim": 1})

adds one case each. `nodes` replaces the one node that is made otherwise.
"""

import json
import zlib

import torch

GRID = 64


class Input:
    """What a case is called with; drawn when the case is made."""

    def __init__(self, shape, draw, type="f", gradient=True):
        self.shape = list(shape)
        self.draw = draw
        self.type = type
        self.gradient = gradient and type == "f"
        self.views = None

    def fixed(self):
        """The same, but nothing is differentiated with respect to it."""
        self.gradient = False
        return self


def count(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def real(*shape, low=-2.0, high=2.0, distinct=False):
    """Multiples of 1/64 in [low, high); `distinct`: no two are equal."""

    def draw(rng):
        first, last = round(low * GRID), round(high * GRID)
        n = count(shape)
        if distinct:
            assert n <= last - first, "too few numbers to be distinct"
            chosen = torch.randperm(last - first, generator=rng)[:n] + first
        else:
            chosen = torch.randint(first, last, (n,), generator=rng)
        return (chosen.double() / GRID).reshape(shape)

    return Input(shape, draw)


def given(values, type="f"):
    """These numbers."""
    dtype = {"f": torch.float64, "bool": torch.bool}.get(type) or DTYPES[type]
    tensor = torch.tensor(values, dtype=dtype)
    return Input(tensor.shape, lambda rng: tensor.clone(), type)


def few(*shape, values, type="f"):
    """Drawn from these few numbers: ties, kinks, bounds."""

    def draw(rng):
        n = count(shape)
        chosen = torch.randint(0, len(values), (n,), generator=rng)
        dtype = DTYPES.get(type, torch.float64)
        return torch.tensor(values, dtype=dtype)[chosen].reshape(shape)

    return Input(shape, draw, type)


def random_pairs(n, seed):
    """Pairs of shapes that broadcast: each size is stretched, or missing."""
    rng = torch.Generator()
    rng.manual_seed(seed)

    def below(k):
        return int(torch.randint(0, k, (), generator=rng))

    pairs = []
    for _ in range(n):
        result = [1 + below(4) for _ in range(1 + below(4))]
        sides = []
        for _ in range(2):
            side = [1 if below(3) == 0 else size for size in result]
            sides.append(tuple(side[below(len(side)):]))
        pairs.append(tuple(sides))
    return pairs


DTYPES = {
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
}


def integers(*shape, low=0, high=10, type="i64"):
    def draw(rng):
        chosen = torch.randint(low, high, tuple(shape), generator=rng)
        return chosen.to(DTYPES[type])

    return Input(shape, draw, type)


def booleans(*shape):
    def draw(rng):
        return torch.randint(0, 2, tuple(shape), generator=rng).bool()

    return Input(shape, draw, "bool")


def permutation(n, type="i64"):
    return Input(
        [n], lambda rng: torch.randperm(n, generator=rng).to(DTYPES[type]), type
    )


# What a case's operand is a view of, in every third case: the op sees what
# slice and permute leave of a larger tensor.


class Views:
    def __init__(self, shape):
        rank = len(shape)
        self.permutation = list(reversed(range(rank)))
        base = [shape[d] for d in self.permutation]
        self.limits = list(base)
        base[-1] = 2 * base[-1] + 1
        self.starts = [0] * (rank - 1) + [1]
        self.steps = [1] * (rank - 1) + [2]
        self.limits[-1] = base[-1]
        self.base = base

    def nodes(self, source, name):
        return [
            {
                "op": "slice",
                "inputs": [source],
                "outputs": [name + ".s"],
                "attributes": {
                    "starts": self.starts,
                    "limits": self.limits,
                    "strides": self.steps,
                },
            },
            {
                "op": "permute",
                "inputs": [name + ".s"],
                "outputs": [name],
                "attributes": {"permutation": self.permutation},
            },
        ]

    def apply(self, tensor):
        return tensor[..., 1::2].permute(self.permutation)


def strided(tensor):
    """The same numbers at other distances in memory."""
    if tensor.dim() == 0:
        return tensor.expand(2)[1]
    if tensor.dim() == 1:
        return torch.stack([tensor, tensor], 1)[:, 1]
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def type_of(tensor):
    if tensor.dtype == torch.bool:
        return "bool"
    for name, dtype in DTYPES.items():
        if tensor.dtype == dtype:
            return name
    return "f"


def number(x, digits):
    if x != x:
        return "nan"
    if x in (float("inf"), float("-inf")):
        return "inf" if x > 0 else "-inf"
    if x == int(x) and abs(x) < 2**53:
        return int(x)
    return float(f"%.{digits}g" % x)


def numbers(tensor, digits=12):
    if torch._is_zerotensor(tensor):
        return [0] * tensor.numel()
    return [number(x, digits) for x in tensor.detach().flatten().tolist()]


def multiples(shape, rng):
    """Numbers of [-1, 1] that are multiples of 1/8."""
    return torch.randint(-8, 9, tuple(shape), generator=rng).double() / 8


class Family:
    def __init__(self, name):
        self.name = name
        self.cases = []
        self.counts = {}

    def add(
        self,
        op,
        function,
        inputs,
        attributes=None,
        *,
        nodes=None,
        order=2,
        finite=True,
        strides=True,
        views=None,
        kinds=None,
    ):
        """One case. `function` gets tensors and returns one, or a tuple.

        `finite`: that no number is infinite or NaN is checked here. `views`:
        whether an operand is a view in the graph; None: in every third case.
        `kinds`: the types of outputs that do not follow from PyTorch's.
        """
        index = self.counts.get(op, 0)
        self.counts[op] = index + 1
        name = f"{self.name}.{op}.{index}"
        rng = torch.Generator()
        rng.manual_seed(zlib.crc32(name.encode()))
        leaves, prologue, views_of = [], [], []
        names = [f"x{i}" for i in range(len(inputs))]
        viewed = views if views is not None else index % 3 == 2
        for i, spec in enumerate(inputs):
            view = None
            if viewed and len(spec.shape) > 0:
                view = Views(spec.shape)
                base = Input.__new__(Input)
                base.shape = view.base
                value = spec.draw(rng)
                whole = torch.zeros(view.base, dtype=value.dtype)
                whole[..., 1::2] = value.permute(view.permutation)
                value = whole
                prologue += view.nodes(f"x{i}.whole", names[i])
            else:
                value = spec.draw(rng)
            views_of.append(view)
            leaves.append(value)
        if nodes is None:
            node = {"op": op, "inputs": names, "outputs": None}
            if attributes:
                node["attributes"] = attributes
        result = self.run(
            function, inputs, leaves, views_of, rng, order, strides, index
        )
        if nodes is None:
            node["outputs"] = [f"y{i}" for i in range(len(result["outputs"]))]
            nodes = [node]
        case = {"name": name, "op": op, "order": result["order"]}
        if '"training": true' in json.dumps(nodes):
            case["training"] = True
        error = self.error(
            function, inputs, leaves, views_of, result, strides, index
        )
        if error > 1e-6:
            case["f32"] = float("%.1e" % error)
        listed = []
        for i, spec in enumerate(inputs):
            entry = {
                "name": names[i] + (".whole" if views_of[i] else ""),
                "type": spec.type,
                "shape": list(leaves[i].shape),
                "data": numbers(leaves[i]),
            }
            for key in ("gradient", "direction", "second"):
                if i in result[key]:
                    entry[key] = numbers(result[key][i])
            listed.append(entry)
        case["inputs"] = listed
        case["nodes"] = prologue + nodes
        listed = []
        for i, y in enumerate(result["outputs"]):
            entry = {
                "name": f"y{i}",
                "type": kinds[i] if kinds else type_of(y),
                "shape": list(y.shape),
                "data": numbers(y),
            }
            for key in ("cotangent", "along"):
                if i in result[key]:
                    entry[key] = numbers(result[key][i])
            listed.append(entry)
        case["outputs"] = listed
        if finite:
            for entry in case["inputs"] + case["outputs"]:
                for key, values in entry.items():
                    if isinstance(values, list) and any(
                        isinstance(x, str) for x in values
                    ):
                        raise ValueError(f"{name}: {entry['name']} {key}: {values}")
        self.cases.append(case)

    def run(self, function, inputs, leaves, views_of, rng, order, strides, index,
            given=None, dtype=torch.float64):
        """Values and derivatives; `given`: a result whose cotangents and
        directions are used again."""
        arguments, wanted = [], {}
        for i, (spec, value, view) in enumerate(zip(inputs, leaves, views_of)):
            if spec.type == "f":
                value = value.to(dtype)
            if spec.gradient and order > 0:
                value = value.clone().requires_grad_()
                wanted[i] = value
            seen = view.apply(value) if view else value
            if not strides:
                seen = seen.contiguous()
            elif index % 2:
                seen = strided(seen)
            arguments.append(seen)
        outputs = function(*arguments)
        if not isinstance(outputs, (tuple, list)):
            outputs = [outputs]
        result = {
            "outputs": [y.detach() for y in outputs],
            "order": 0,
            "gradient": {},
            "direction": {},
            "second": {},
            "cotangent": {},
            "along": {},
        }
        followed = {i: y for i, y in enumerate(outputs) if y.requires_grad}
        if not followed or order == 0:
            return result
        for i, y in followed.items():
            c = given["cotangent"][i] if given else multiples(y.shape, rng)
            result["cotangent"][i] = c.to(dtype).requires_grad_(order > 1)
        energy = sum(
            (result["cotangent"][i] * y).sum() for i, y in followed.items()
        )
        gradients = torch.autograd.grad(
            energy, list(wanted.values()), create_graph=order > 1,
            allow_unused=True
        )
        total = 0
        for (i, x), g in zip(wanted.items(), gradients):
            g = torch.zeros_like(x) if g is None else g
            v = given["direction"].get(i) if given else None
            if v is None:
                v = multiples(x.shape, rng)
            result["gradient"][i] = g.detach()
            if order > 1:
                result["direction"][i] = v.to(dtype)
                total = total + (result["direction"][i] * g).sum()
        result["order"] = order
        if order > 1:
            targets = list(wanted.values()) + list(result["cotangent"].values())
            seconds = [None] * len(targets)
            if total.requires_grad:
                seconds = torch.autograd.grad(total, targets, allow_unused=True)
            seconds = [
                torch.zeros_like(x) if g is None else g
                for x, g in zip(targets, seconds)
            ]
            for i, g in zip(wanted, seconds):
                result["second"][i] = g
            for i, g in zip(followed, seconds[len(wanted):]):
                result["along"][i] = g
        return result

    def error(self, function, inputs, leaves, views_of, exact, strides, index):
        """What f32 is off by in PyTorch."""
        got = self.run(
            function, inputs, leaves, views_of, None, exact["order"], strides,
            index, exact, torch.float32
        )
        worst = 0.0
        pairs = list(zip(exact["outputs"], got["outputs"]))
        for key in ("gradient", "second", "along"):
            pairs += [(exact[key][i], got[key][i]) for i in exact[key]]
        for a, b in pairs:
            if not a.dtype.is_floating_point or a.numel() == 0:
                continue
            finite = a.isfinite() & b.isfinite()
            if not finite.any():
                continue
            scale = 1 + a[finite].abs().max()
            worst = max(worst, ((a - b.double())[finite].abs().max() / scale).item())
        return worst

    def text(self):
        lines = [json.dumps(case, separators=(",", ":")) for case in self.cases]
        head = json.dumps({"family": self.name, "torch": torch.__version__})
        return head[:-1] + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n"
