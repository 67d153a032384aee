"""Functions of two or three operands, broadcast; of one operand; comparisons."""

import torch

from families.frame import (
    Family, booleans, few, given, integers, random_pairs, real)

family = Family("arithmetic")
add = family.add
NAN, INF = float("nan"), float("inf")

PAIRS = [((3, 4), (3, 4)), ((3, 1), (1, 4)), ((4,), (2, 3, 4)), ((), (3,)),
         ((1,), (1,))] + random_pairs(2, seed=1)


def two(op, function, attributes=None, left=(-2, 2), right=(-2, 2), order=2,
        kinks=None):
    for a, b in PAIRS:
        add(op, function, [real(*a, low=left[0], high=left[1]),
                           real(*b, low=right[0], high=right[1])], attributes,
            order=order)
    if kinks:
        add(op, function, [few(4, 4, values=kinks), few(4, 4, values=kinks)],
            attributes, order=order)


two("add_scaled", lambda x, y: torch.add(x, y, alpha=0.5), {"alpha": 0.5})
two("subtract", torch.sub)
two("subtract", lambda x, y: torch.sub(x, y, alpha=0.5), {"alpha": 0.5})
two("multiply", torch.mul)
two("divide", torch.div, right=(0.25, 2))
for mode in ("trunc", "floor"):
    two("divide", lambda x, y, m=mode: torch.div(x, y, rounding_mode=m),
        {"rounding_mode": mode}, right=(0.25, 2))
two("floor_divide", torch.floor_divide, right=(0.25, 2), order=0)
two("fmod", torch.fmod, right=(0.25, 2))
two("fmod", torch.fmod, right=(-2, -0.25))
two("remainder", torch.remainder, right=(0.25, 2))
two("remainder", torch.remainder, right=(-2, -0.25))
two("power", torch.pow, left=(0.25, 2))
two("logaddexp", torch.logaddexp, left=(-30, 30), right=(-30, 30))
two("xlogy", torch.xlogy, right=(0.25, 2))
add("xlogy", torch.xlogy, [given([0.0, 0.0, 1.0]), given([2.0, 0.5, 1.0])], order=1)
two("hypot", torch.hypot, left=(0.25, 2))
two("fmax", torch.fmax, kinks=[-1.0, 0.0, 1.0])
two("fmin", torch.fmin, kinks=[-1.0, 0.0, 1.0])
for op, function in (("fmax", torch.fmax), ("fmin", torch.fmin)):
    add(op, function, [given([NAN, 1.0, NAN, INF]), given([2.0, NAN, NAN, 1.0])],
        finite=False, order=0)
# Of integers, of every sign; division by what is not 0.
for type in ("i32", "i64", "i8"):
    signs = [integers(4, 4, low=-9, high=10, type=type),
             few(4, 4, values=[-4, -3, -1, 1, 2, 5], type=type)]
    for op, function, a in (
        ("multiply", torch.mul, {}), ("subtract", torch.sub, {}),
        ("divide", lambda x, y: torch.div(x, y, rounding_mode="trunc"),
         {"rounding_mode": "trunc"}),
        ("divide", lambda x, y: torch.div(x, y, rounding_mode="floor"),
         {"rounding_mode": "floor"}),
        ("floor_divide", torch.floor_divide, {}), ("fmod", torch.fmod, {}),
        ("remainder", torch.remainder, {})):
        add(op, function, signs, a)
add("power", torch.pow, [integers(3, 4, low=-3, high=4), integers(3, 4, high=4)])

for shapes in (((3, 4),) * 3, ((3, 1), (4,), (1, 1)), ((), (2, 3), ())):
    reals = lambda: [real(*s) for s in shapes]
    add("lerp", torch.lerp, reals())
    add("addcmul", torch.addcmul, reals())
    add("addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=0.5), reals(),
        {"value": 0.5})
    add("addcdiv", lambda x, a, b: torch.addcdiv(x, a, b, value=-1.5),
        [real(*shapes[0]), real(*shapes[1]), real(*shapes[2], low=0.25)],
        {"value": -1.5})
add("lerp", lambda x, y: torch.lerp(x, y, 0.25), [real(3, 4), real(4)],
    {"weight": 0.25})

COMPARISONS = [("eq", torch.eq), ("ne", torch.ne), ("lt", torch.lt),
               ("le", torch.le), ("gt", torch.gt), ("ge", torch.ge)]
for op, function in COMPARISONS:
    add(op, function, [few(3, 1, values=[-1.0, 0.0, 1.0]),
                       few(4, values=[-1.0, 0.0, 1.0])])
    add(op, function, [integers(3, 4, low=-2, high=2), integers(1, low=-2, high=2)])
    add(op, function, [given([NAN, 0.0, INF]), given([NAN, NAN, INF])], finite=False)
LOGIC = [("both", torch.logical_and), ("either", torch.logical_or),
         ("logical_xor", torch.logical_xor)]
for op, function in LOGIC:
    add(op, function, [booleans(3, 1), booleans(1, 4)])
    add(op, function, [few(3, 4, values=[0.0, 1.5]), few(3, 4, values=[0.0, -2.0])])
    add(op, function, [integers(3, 4, high=2), integers(4, high=2)])
BITS = [("bitwise_and", torch.bitwise_and), ("bitwise_or", torch.bitwise_or),
        ("bitwise_xor", torch.bitwise_xor)]
for op, function in BITS:
    add(op, function, [booleans(3, 1), booleans(1, 4)])
    for type in ("i8", "i32", "i64"):
        add(op, function, [integers(3, 4, low=-100, high=100, type=type),
                           integers(4, low=-100, high=100, type=type)])
add("bitwise_not", torch.bitwise_not, [booleans(5)])
for type in ("i8", "i32", "i64"):
    add("bitwise_not", torch.bitwise_not, [integers(3, 4, low=-100, high=100,
                                                    type=type)])
    for op, function in (("bitwise_left_shift", torch.bitwise_left_shift),
                         ("bitwise_right_shift", torch.bitwise_right_shift)):
        add(op, function, [integers(3, 4, low=-3, high=4, type=type),
                           integers(4, high=5, type=type)])
for condition, x, y in (((3, 4),) * 3, ((3, 1), (4,), ()), ((2, 1, 1), (3, 1), (1, 4))):
    add("where", torch.where, [booleans(*condition), real(*x), real(*y)])
add("where", torch.where, [booleans(3, 1), integers(3, 4), integers(4)])
add("masked_fill", lambda x, m: x.masked_fill(m, -1.5), [real(3, 4), booleans(3, 1)],
    {"value": -1.5})
add("masked_fill", lambda x, m, v: x.masked_fill(m, v),
    [real(3, 4), booleans(3, 4), real()])

UNARY = [
    ("reciprocal", torch.reciprocal, (0.25, 3)),
    ("square", torch.square, (-3, 3)),
    ("log2", torch.log2, (0.125, 4)),
    ("log10", torch.log10, (0.125, 4)),
    ("exp2", torch.exp2, (-3, 3)),
    ("asinh", torch.asinh, (-3, 3)),
    ("acosh", torch.acosh, (1.25, 4)),
    ("atanh", torch.atanh, (-0.75, 0.75)),
    ("frac", torch.frac, (-3, 3)),
]
for op, function, (low, high) in UNARY:
    for shape in ((3, 4), (2, 1, 3), (), (7,)):
        add(op, function, [real(*shape, low=low, high=high)])
add("square", torch.square, [integers(5, low=-9, high=9)])
add("asinh", torch.asinh, [given([0.0, 1e-3, -1e-3, 1000.0, -1000.0])])
# Below -1 it was a number again, and its derivative at 1 NaN.
add("acosh", torch.acosh, [given([0.5, -1.5, -5000.0, -1e25, -INF, NAN, INF])], finite=False,
    order=0)
add("acosh", torch.acosh, [given([1.0, 2.0, INF])], finite=False, order=1)
add("frac", torch.frac, [given([-1.0, 0.0, 1.0, -1.5])])
SPECIAL = [NAN, INF, -INF, 0.0, -1.5, 2.0]
for op, function in (("isnan", torch.isnan), ("isinf", torch.isinf),
                     ("isfinite", torch.isfinite)):
    add(op, function, [given(SPECIAL)], finite=False, order=0)
add("isinf", torch.isposinf, [given(SPECIAL)], {"detect_negative": False},
    finite=False, order=0)
add("isinf", torch.isneginf, [given(SPECIAL)], {"detect_positive": False},
    finite=False, order=0)
add("nan_to_num", lambda x: torch.nan_to_num(x, 0.5, 8.0, -4.0), [given(SPECIAL)],
    {"nan": 0.5, "posinf": 8.0, "neginf": -4.0}, finite=False)

# Ties and NaN: half to each of equal ones, all to what is not NaN.
for op, function in (("fmax", torch.fmax), ("fmin", torch.fmin)):
    add(op, function, [given([INF, -INF, INF, 1.0, -0.0, NAN, 1.0, NAN, -1.0]),
                       given([INF, -INF, -INF, 1.0, 0.0, 1.0, NAN, NAN, INF])],
        finite=False)
add("hypot", torch.hypot, [given([NAN, -INF, NAN]), given([INF, NAN, 1.0])],
    finite=False, order=0)
