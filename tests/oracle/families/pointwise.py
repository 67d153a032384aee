"""One element at a time: arithmetic, functions, comparisons, casts."""

import torch
import torch.nn.functional as F

from families.frame import Family, booleans, few, given, integers, real

NAN, INF = float("nan"), float("inf")

family = Family("pointwise")
add = family.add

# Functions of one operand: over their domain, at sizes 1 and with rank 0, and
# where they have a kink.
UNARY = [
    ("abs", torch.abs, (-2, 2), [-1.5, 0.0, 1.5]),
    ("neg", torch.neg, (-2, 2), None),
    ("exp", torch.exp, (-3, 3), [0.0]),
    ("log", torch.log, (0.125, 4), [1.0, 0.015625]),
    ("log1p", torch.log1p, (-0.75, 4), [0.0, 0.015625]),
    ("sqrt", torch.sqrt, (0.125, 4), [1.0, 4.0]),
    ("rsqrt", torch.rsqrt, (0.125, 4), [1.0, 4.0]),
    ("sin", torch.sin, (-4, 4), [0.0]),
    ("cos", torch.cos, (-4, 4), [0.0]),
    ("tanh", torch.tanh, (-4, 4), [0.0, 0.015625, -8.0]),
    ("sigmoid", torch.sigmoid, (-6, 6), [0.0, 12.0]),
    ("erf", torch.erf, (-3, 3), [0.0, 4.0]),
    ("relu", torch.relu, (-2, 2), [-1.0, 0.0, 1.0]),
    ("silu", F.silu, (-4, 4), [0.0]),
    ("gelu", F.gelu, (-4, 4), [0.0, 6.0, -6.0]),
    ("sign", torch.sign, (-2, 2), [-1.0, 0.0, 1.0]),
    ("ceil", torch.ceil, (-3, 3), [-1.0, 0.0, 1.0, 0.5, -0.5]),
    ("floor", torch.floor, (-3, 3), [-1.0, 0.0, 1.0, 0.5, -0.5]),
    ("round", torch.round, (-3, 3), [-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]),
    ("trunc", torch.trunc, (-3, 3), [-1.5, -0.5, 0.0, 0.5, 1.5, 2.0]),
    ("expm1", torch.expm1, (-3, 3), [0.0, 0.015625, -0.015625, -20.0]),
    ("tan", torch.tan, (-1.5, 1.5), [0.0, 0.015625]),
    ("asin", torch.asin, (-0.875, 0.875), [0.0, 0.015625, 0.5]),
    ("acos", torch.acos, (-0.875, 0.875), [0.0, 0.015625, 0.5]),
    ("atan", torch.atan, (-4, 4), [0.0, 0.015625, 1.0, -100.0]),
    ("sinh", torch.sinh, (-3, 3), [0.0, 0.015625]),
    ("cosh", torch.cosh, (-3, 3), [0.0, 0.015625]),
]
for op, function, (low, high), kinks in UNARY:
    add(op, function, [real(3, 4, low=low, high=high)])
    add(op, function, [real(2, 1, 7, low=low, high=high)])
    add(op, function, [real(5, 3, low=low, high=high)])
    add(op, function, [real(low=low, high=high)])
    if kinks:
        add(op, function, [few(9, values=kinks)])
add("gelu", lambda x: F.gelu(x, approximate="tanh"), [real(4, 5, low=-4, high=4)],
    {"approximate": "tanh"})

BINARY = [
    ("add", torch.add, (-2, 2), (-2, 2)),
    ("sub", torch.sub, (-2, 2), (-2, 2)),
    ("mul", torch.mul, (-2, 2), (-2, 2)),
    ("div", torch.div, (-2, 2), (0.25, 2)),
    ("pow", torch.pow, (0.25, 2), (-2, 2)),
    ("atan2", torch.atan2, (-2, 2), (0.25, 2)),
    ("atan2", torch.atan2, (0.25, 2), (-2, 2)),
    ("rem", torch.fmod, (-2, 2), (0.25, 2)),
    ("maximum", torch.maximum, (-2, 2), (-2, 2)),
    ("minimum", torch.minimum, (-2, 2), (-2, 2)),
]


def broadcast(name, result, shape, dims):
    return {"op": "broadcast", "inputs": [name], "outputs": [result],
            "attributes": {"shape": shape, "dims": dims}}


for op, function, a, b in BINARY:
    def left(*shape):
        return real(*shape, low=a[0], high=a[1])

    def right(*shape):
        return real(*shape, low=b[0], high=b[1])

    add(op, function, [left(3, 4), right(3, 4)])
    add(op, function, [left(2, 1, 5), right(2, 1, 5)])
    add(op, function, [left(4, 3), right(4, 3)])
    add(op, function, [left(), right()])
    # With broadcasts, of both sides.
    add(op, function, [left(3, 1), right(4)], nodes=[
        broadcast("x0", "a", [3, 4], [0, 1]),
        broadcast("x1", "b", [3, 4], [1]),
        {"op": op, "inputs": ["a", "b"], "outputs": ["y0"]}])
    # The same value on both sides: ties of max and min, x - x, x / x.
    add(op, lambda x, f=function: f(x, x), [real(2, 3, low=0.25, high=2)], nodes=[
        {"op": op, "inputs": ["x0", "x0"], "outputs": ["y0"]}])
for op, function in (("maximum", torch.maximum), ("minimum", torch.minimum)):
    add(op, function, [few(4, 4, values=[-1.0, 0.0, 1.0]),
                       few(4, 4, values=[-1.0, 0.0, 1.0])])
    add(op, function, [integers(4, 4, low=-3, high=3),
                       integers(4, 4, low=-3, high=3)])
# At a base of 0 the derivative for the exponent is 0 where the power is. (The
# second is 0 times the logarithm of 0: PyTorch has NaN.)
add("pow", torch.pow, [given([0.0, 0.0, 0.0, 1.0, 2.0]),
                       given([1.0, 2.0, 3.0, 0.0, 0.0])], order=1)
add("atan2", torch.atan2, [given([0.0, 0.0, 1.0, -1.0, 0.0, 1.5]),
                           given([1.0, -1.0, 0.0, 0.0, 2.0, -1.5])])
add("rem", torch.fmod, [given([5.5, -5.5, 5.5, -5.5, 0.0]),
                        given([2.0, 2.0, -2.0, -2.0, 1.5])])
# A negative base to a whole power.
add("pow", lambda x, y: torch.pow(x, y.detach()),
    [given([-1.5, -0.5, -2.0, 1.5]), given([2.0, 3.0, 1.0, 3.0]).fixed()])

for op, function in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul)):
    # Modulo 2^bits.
    for type in ("i8", "i16", "i32", "i64"):
        add(op, function, [integers(3, 4, low=-100, high=100, type=type),
                           integers(3, 4, low=-100, high=100, type=type)])
    add(op, function, [integers(3, 4, high=256, type="u8"),
                       integers(3, 4, high=256, type="u8")])

for type in ("i8", "i16", "i32", "i64"):
    for op, function in (
        ("idiv", lambda x, y: torch.div(x, y, rounding_mode="trunc")),
        ("div", lambda x, y: torch.div(x, y, rounding_mode="trunc")),
        ("rem", torch.fmod)):
        add(op, function, [integers(4, 4, low=-100, high=100, type=type),
                           few(4, 4, values=[-7, -3, -1, 1, 2, 5], type=type)])
    for op, function in (("bit_and", torch.bitwise_and), ("bit_or", torch.bitwise_or),
                         ("bit_xor", torch.bitwise_xor)):
        add(op, function, [integers(4, 4, low=-100, high=100, type=type),
                           integers(4, 4, low=-100, high=100, type=type)])
    add("bit_not", torch.bitwise_not, [integers(7, low=-100, high=100, type=type)])
    for op, function in (("shift_left", torch.bitwise_left_shift),
                         ("shift_right", torch.bitwise_right_shift)):
        add(op, function, [integers(4, 4, low=-3, high=4, type=type),
                           integers(4, 4, high=5, type=type)])
    add("pow", torch.pow, [integers(4, 4, low=-2, high=3, type=type),
                           integers(4, 4, high=6, type=type)])
for op, function in (
    ("idiv", lambda x, y: torch.div(x, y, rounding_mode="trunc")), ("rem", torch.fmod),
    ("bit_and", torch.bitwise_and), ("bit_or", torch.bitwise_or),
    ("bit_xor", torch.bitwise_xor), ("maximum", torch.maximum),
    ("minimum", torch.minimum)):
    add(op, function, [integers(4, 4, high=256, type="u8"),
                       integers(4, 4, low=1, high=256, type="u8")])
for op, function in (("shift_left", torch.bitwise_left_shift),
                     ("shift_right", torch.bitwise_right_shift)):
    add(op, function, [integers(4, 4, high=256, type="u8"),
                       integers(4, 4, high=8, type="u8")])
for op, function in (("bit_and", torch.bitwise_and), ("bit_or", torch.bitwise_or),
                     ("bit_xor", torch.bitwise_xor)):
    add(op, function, [booleans(3, 3), booleans(3, 3)])
add("bit_not", torch.bitwise_not, [booleans(5)])

COMPARISONS = [("eq", torch.eq), ("ne", torch.ne), ("lt", torch.lt),
               ("le", torch.le), ("gt", torch.gt), ("ge", torch.ge)]
for predicate, function in COMPARISONS:
    add("compare", function, [integers(3, 4, high=256, type="u8"),
                              integers(3, 4, high=256, type="u8")],
        {"predicate": predicate})
    add("compare", function, [few(5, 4, values=[-1.0, 0.0, 0.5]),
                              few(5, 4, values=[-1.0, 0.0, 0.5])],
        {"predicate": predicate})
    add("compare", function, [integers(3, 4, low=-2, high=2, type="i32"),
                              integers(3, 4, low=-2, high=2, type="i32")],
        {"predicate": predicate})
    # Nothing compares with a NaN but by `ne`.
    add("compare", function, [given([0.0, float("nan"), float("inf")]),
                              given([float("nan"), float("nan"), float("inf")])],
        {"predicate": predicate}, finite=False)
add("logical_and", torch.logical_and, [booleans(4, 4), booleans(4, 4)])
add("logical_or", torch.logical_or, [booleans(4, 4), booleans(4, 4)])
add("logical_not", torch.logical_not, [booleans(4, 4)])
for shape in ((3, 4), (2, 1, 5), ()):
    add("select", torch.where, [booleans(*shape), real(*shape), real(*shape)])


def cast(type):
    return [{"op": "cast", "inputs": ["x0"], "outputs": ["y0"], "type": type}]


for type, dtype in (("i8", torch.int8), ("i32", torch.int32),
                    ("i64", torch.int64), ("bool", torch.bool)):
    add("cast", lambda x, d=dtype: x.to(d),
        [few(12, values=[-2.75, -1.0, -0.5, 0.0, 0.5, 1.0, 2.5, 100.0])],
        nodes=cast(type))
for type in ("i8", "i16", "i32", "i64", "u8"):
    add("cast", lambda x: x.double(), [integers(5, low=0 if type == "u8" else -100, high=100, type=type)],
        nodes=cast("f"))
add("cast", lambda x: x.double(), [booleans(6)], nodes=cast("f"))
# Through f32 and back: the gradient passes.
add("cast", lambda x: x.float().to(x.dtype), [real(3, 3)], nodes=[
    {"op": "cast", "inputs": ["x0"], "outputs": ["n"], "type": "f32"},
    {"op": "cast", "inputs": ["n"], "outputs": ["y0"], "type": "f"}])

# Ties of infinities were NaN; where one is NaN each has the whole gradient.
for op, function in (("maximum", torch.maximum), ("minimum", torch.minimum)):
    add(op, function, [given([INF, -INF, INF, -INF, 1.0, INF, -0.0, NAN, 1.0, NAN]),
                       given([INF, -INF, -INF, INF, INF, 1.0, 0.0, 1.0, NAN, NAN])],
        finite=False)
# 0 / 0 at the origin; where the square is infinite it is 0. (PyTorch's second
# derivative is NaN at the origin.)
add("atan2", torch.atan2, [given([0.0, 1.0]), given([0.0, 0.5])],
    order=1)
add("abs", torch.abs, [given([INF, -INF, NAN, 0.0, -0.0])], finite=False)
