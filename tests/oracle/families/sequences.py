"""Attention, recurrent layers, and what random functions do in any case."""

import torch
import torch.nn.functional as F

from families.frame import Family, few, given, real

family = Family("sequences")
add = family.add
INF = float("inf")


def attend(q, k, v, mask=None, causal=False, scale=None, grouped=False):
    """torch.nn.functional.scaled_dot_product_attention of PyTorch 2."""
    if grouped:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
        v = v.repeat_interleave(q.shape[-3] // v.shape[-3], -3)
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        t, s = scores.shape[-2:]
        scores = scores.masked_fill(torch.ones(t, s).triu(1).bool(), -INF)
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -INF)
    elif mask is not None:
        scores = scores + mask
    return scores.softmax(-1) @ v


for q, k, v in (((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 2)), ((2, 3, 2), (2, 3, 2),
                                                            (2, 3, 2)), ((3, 4), (2, 4),
                                                                         (2, 4))):
    operands = lambda: [real(*q), real(*k), real(*v)]
    rows = (q[-2], k[-2])
    add("scaled_dot_product_attention", attend, operands())
    add("scaled_dot_product_attention", lambda q, k, v: attend(q, k, v, causal=True),
        operands(), {"is_causal": True})
    add("scaled_dot_product_attention", lambda q, k, v: attend(q, k, v, scale=0.25),
        operands(), {"scale": 0.25})
    add("scaled_dot_product_attention", attend, operands() + [real(*rows)])
    # Every row sees something.
    seen = torch.ones(rows, dtype=torch.bool).tril(rows[1] - 1).tolist()
    seen[-1][-1] = False
    add("scaled_dot_product_attention", attend, operands() + [given(seen, "bool")])
add("scaled_dot_product_attention", lambda q, k, v: attend(q, k, v, grouped=True),
    [real(1, 4, 3, 2), real(1, 2, 5, 2), real(1, 2, 5, 3)], {"enable_gqa": True})


def heads(q, k, v, w, o, b=None, c=None, mask=None, n=1, causal=False):
    limit = mask
    if causal:
        limit = torch.full((q.shape[1], k.shape[1]), -INF, dtype=q.dtype).triu(1)
    y, _ = F.multi_head_attention_forward(
        q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), q.shape[2], n, w, b,
        None, None, False, 0.0, o, c, training=True, attn_mask=limit,
        need_weights=False)
    return y.transpose(0, 1)


for n, e in ((1, 3), (2, 4)):
    weights = lambda: [real(3 * e, e), real(e, e)]
    add("multi_head_attention", lambda *x, n=n: heads(*x, n=n),
        [real(2, 3, e), real(2, 4, e), real(2, 4, e), *weights()], {"num_heads": n})
    add("multi_head_attention", lambda *x, n=n: heads(*x, n=n),
        [real(1, 3, e), real(1, 2, e), real(1, 2, e), *weights(), real(3 * e), real(e)],
        {"num_heads": n})
    add("multi_head_attention", lambda *x, n=n: heads(*x, n=n),
        [real(1, 3, e), real(1, 2, e), real(1, 2, e), *weights(), real(3 * e), real(e),
         real(3, 2)], {"num_heads": n})
    add("multi_head_attention", lambda *x, n=n: heads(*x, n=n, causal=True),
        [real(2, 3, e), real(2, 3, e), real(2, 3, e), *weights()],
        {"num_heads": n, "is_causal": True})

# PyTorch's stacks.
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def stack(kind, layers=1, both=False, batch_first=False, bias=True, relu=False):
    t, n, i, h = 3, 2, 2, 2
    x = real(n, t, i) if batch_first else real(t, n, i)
    directions = 2 if both else 1
    states = [real(layers * directions, n, h) for _ in range(2 if kind == "lstm" else 1)]
    weights = []
    for layer in range(layers):
        for _ in range(directions):
            width = i if layer == 0 else h * directions
            weights += [real(GATES[kind] * h, width, low=-1, high=1),
                        real(GATES[kind] * h, h, low=-1, high=1)]
            if bias:
                weights += [real(GATES[kind] * h, low=-1, high=1) for _ in range(2)]

    def run(x, *rest):
        function = {"gru": torch.gru, "lstm": torch.lstm,
                    "rnn": torch.rnn_relu if relu else torch.rnn_tanh}[kind]
        hidden = rest[: len(states)] if kind == "lstm" else rest[0]
        return function(x, hidden, list(rest[len(states):]), bias, layers, 0.0, True,
                        both, batch_first)

    attributes = {"num_layers": layers, "bidirectional": both,
                  "batch_first": batch_first, "bias": bias}
    if relu:
        attributes["nonlinearity"] = "relu"
    add(kind, run, [x, *states, *weights], attributes, views=False, strides=False)


for kind in GATES:
    stack(kind)
    stack(kind, layers=2)
    stack(kind, both=True)
    stack(kind, layers=2, both=True, batch_first=True)
    stack(kind, bias=False)
stack("rnn", relu=True)


# ONNX's layers: the gates in another order, both biases in one.
ORDERS = {"rnn_layer": [0], "gru_layer": [1, 0, 2], "lstm_layer": [0, 3, 1, 2]}


def layer(op, direction, bias=True):
    t, n, i, h = 3, 2, 2, 2
    kind = op[: op.index("_")]
    gates = GATES[kind]
    directions = 2 if direction == "bidirectional" else 1
    operands = [real(t, n, i), real(directions, gates * h, i, low=-1, high=1),
                real(directions, gates * h, h, low=-1, high=1)]
    if bias:
        operands.append(real(directions, 2 * gates * h, low=-1, high=1))
    # ONNX's gate k is PyTorch's ORDERS[k].
    back = [ORDERS[op].index(g) for g in range(gates)]

    def reordered(w):
        return torch.cat([w[g * h:(g + 1) * h] for g in back])

    def run(x, w, r, b=None):
        if direction == "reverse":
            x = x.flip(0)
        weights = []
        for d in range(directions):
            weights += [reordered(w[d]), reordered(r[d])]
            if b is not None:
                weights += [reordered(b[d][: gates * h]), reordered(b[d][gates * h:])]
        zero = torch.zeros(directions, n, h, dtype=x.dtype)
        function = {"gru": torch.gru, "lstm": torch.lstm, "rnn": torch.rnn_tanh}[kind]
        y, *last = function(x, [zero, zero] if kind == "lstm" else zero, weights,
                            b is not None, 1, 0.0, True, directions == 2, False)
        y = y.reshape(t, n, directions, h).transpose(1, 2)
        return (y.flip(0) if direction == "reverse" else y, *last)

    attributes = {"direction": direction}
    if kind == "gru":
        attributes["linear_before_reset"] = True
    add(op, run, operands, attributes, views=False, strides=False)


for op in ORDERS:
    for direction in ("forward", "reverse", "bidirectional"):
        layer(op, direction)
    layer(op, "forward", bias=False)

# Whatever is drawn.
state = lambda: given([11, 0], "i64")
add("native_dropout", lambda x, s: (x * 1, torch.ones(x.shape, dtype=torch.bool)),
    [real(3, 4), state()], {"p": 0.5, "training": False}, views=False)
add("native_dropout", lambda x, s: (x * 0, torch.zeros(x.shape, dtype=torch.bool)),
    [real(3, 4), state()], {"p": 1.0, "training": True}, views=False)
add("bernoulli_like", lambda p, s: p, [few(4, 5, values=[0.0, 1.0]).fixed(), state()],
    order=0)
add("uniform_like", lambda x, s: torch.full_like(x, 0.75), [real(3, 2).fixed(), state()],
    {"low": 0.75, "high": 0.75}, order=0)
add("normal_like", lambda x, s: torch.full_like(x, -1.5), [real(3, 2).fixed(), state()],
    {"mean": -1.5, "std": 0.0}, order=0)
add("multinomial", lambda x, s: x.argmax(1, keepdim=True).expand(-1, 4).clone(),
    [given([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.5]]).fixed(), state()],
    {"num_samples": 4}, order=0)
for n, shape, kernel in ((1, (1, 2, 6), [2]), (2, (1, 1, 4, 6), [2, 3]),
                         (3, (1, 1, 2, 4, 2), [1, 2, 2])):
    pooled = [s // k for s, k in zip(shape[2:], kernel)]
    planes = 1
    for s in shape[2:]:
        planes *= s

    def unpool(x, i, n=n, k=kernel, s=shape):
        return [F.max_unpool1d, F.max_unpool2d, F.max_unpool3d][n - 1](
            x * x, i, k, output_size=list(s[2:]))

    count = 1
    for s in pooled:
        count *= s
    index = torch.randperm(planes, generator=torch.Generator().manual_seed(n))[
        : count].reshape(1, 1, *pooled).expand(*shape[:2], *pooled)
    add("max_unpool", unpool, [real(*shape[:2], *pooled), given(index.tolist(), "i64")],
        nodes=[{"op": "mul", "inputs": ["x0", "x0"], "outputs": ["q"]},
               {"op": "max_unpool", "inputs": ["q", "x1"], "outputs": ["y0"],
                "attributes": {"output_size": list(shape[2:])}}], views=False,
        strides=False)
