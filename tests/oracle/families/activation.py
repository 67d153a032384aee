"""Activation functions, at their kinks too."""

import torch
import torch.nn.functional as F

from families.frame import Family, few, given, integers, real

family = Family("activation")
add = family.add

# Name, function, attributes, kinks and bounds; -4 to 4 covers all pieces.
PIECES = [
    ("leaky_relu", F.leaky_relu, {}, [0.0]),
    ("leaky_relu", lambda x: F.leaky_relu(x, 0.25), {"negative_slope": 0.25}, [0.0]),
    ("elu", F.elu, {}, [0.0]),
    ("elu", lambda x: torch.ops.aten.elu(x, 1.5, 2.0, 0.5),
     {"alpha": 1.5, "scale": 2.0, "input_scale": 0.5}, [0.0]),
    ("celu", F.celu, {}, [0.0]),
    ("celu", lambda x: F.celu(x, 0.5), {"alpha": 0.5}, [0.0]),
    ("selu", F.selu, {}, [0.0]),
    ("threshold", lambda x: F.threshold(x, 1.0, 0.0), {}, [1.0]),
    ("threshold", lambda x: F.threshold(x, 0.5, -1.5),
     {"threshold": 0.5, "value": -1.5}, [0.5]),
    ("softshrink", F.softshrink, {}, [-0.5, 0.5]),
    ("softshrink", lambda x: F.softshrink(x, 1.0), {"lambd": 1.0}, [-1.0, 1.0]),
    ("hardshrink", F.hardshrink, {}, [-0.5, 0.5]),
    ("hardshrink", lambda x: F.hardshrink(x, 1.0), {"lambd": 1.0}, [-1.0, 1.0]),
    ("hardtanh", F.hardtanh, {}, [-1.0, 1.0]),
    ("hardtanh", lambda x: F.hardtanh(x, -0.5, 2.0),
     {"min_val": -0.5, "max_val": 2.0}, [-0.5, 2.0]),
    ("relu6", F.relu6, {}, [0.0, 6.0]),
    # F.hardsigmoid's own gradient has 1/6 as an f32.
    ("hardsigmoid", lambda x: F.relu6(x + 3) / 6, {}, [-3.0, 3.0]),
    ("hardswish", F.hardswish, {}, [-3.0, 3.0]),
    ("softplus", F.softplus, {}, [0.0, 19.0, 20.0, 21.0, -30.0]),
    ("softplus", lambda x: F.softplus(x, 2.0, 3.0),
     {"beta": 2.0, "threshold": 3.0}, [1.0, 1.5, 2.0]),
    ("logsigmoid", F.logsigmoid, {}, [0.0, 30.0, -30.0]),
    ("softsign", F.softsign, {}, [0.0]),
    ("mish", F.mish, {}, [0.0, 12.0]),
    ("tanhshrink", F.tanhshrink, {}, [0.0]),
]
for op, function, attributes, points in PIECES:
    near = [p + d for p in points for d in (-0.015625, 0.015625)]
    add(op, function, [real(3, 5, low=-4, high=4)], attributes)
    add(op, function, [few(12, values=near)], attributes)
    # At the kink itself only the gradient has a convention.
    add(op, function, [given(points)], attributes, order=1)
    add(op, function, [real(2, 1, 4, low=-4, high=4)], attributes)
    add(op, function, [real(low=-4, high=4)], attributes)
# ONNX's: PyTorch has its pieces.
for bound, bias in ((0.5, 0.0), (1.0, 0.25)):
    add("shrink", lambda x, l=bound, b=bias: torch.where(
        x > l, x - b, torch.where(x < -l, x + b, torch.zeros_like(x))),
        [given([-2.0, -bound, -0.25, 0.0, bound, 1.75])],
        {"lambd": bound, "bias": bias}, order=1)
for alpha, beta in ((0.25, 0.5), (0.2, 0.5)):
    add("hardsigmoid", lambda x, a=alpha, b=beta: F.hardtanh(x * a + b, 0.0, 1.0),
        [few(12, values=[-3.0, -2.0, -0.5, 0.0, 1.0, 2.0, 3.0])],
        {"alpha": alpha, "beta": beta})

POINTS = [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]
for low, high in ((-1.0, 1.0), (None, 0.5), (-0.5, None), (1.0, -1.0)):
    attributes = {k: v for k, v in (("min", low), ("max", high)) if v is not None}
    add("clamp", lambda x, l=low, h=high: torch.clamp(x, l, h),
        [few(4, 4, values=POINTS)], attributes)
# Never equal bounds, where PyTorch 1.13 drops the gradient.
add("clamp", lambda x, l, h: torch.clamp(x, l, h),
    [few(4, 5, values=POINTS), few(4, 5, values=[-1.0, 0.0, 1.0]),
     few(4, 5, values=[-0.5, 0.5, 2.0])])
# Bounds that stretch, and one alone.
add("clamp", lambda x, l, h: torch.clamp(x, l, h), [real(3, 4), real(4), real(3, 1)])
add("clamp", lambda x, h: torch.clamp(x, max=h), [real(3, 4), real()], nodes=[
    {"op": "clamp", "inputs": ["x0", "", "x1"], "outputs": ["y0"]}], views=False)
add("clamp", lambda x: torch.clamp(x, -2, 3), [integers(12, low=-6, high=6)],
    {"min": -2, "max": 3})

for shape, weight in (((2, 3, 4), (3,)), ((2, 3), (3,)), ((5,), (1,)),
                      ((2, 1, 4), (1,))):
    add("prelu", F.prelu, [real(*shape), real(*weight)])
add("prelu", F.prelu, [few(3, 4, values=[-1.0, 0.0, 1.0]), given([0.25])])
for shape, dim in (((3, 4), 1), ((4, 3), 0), ((2, 6, 2), -2)):
    add("glu", lambda x, d=dim: F.glu(x, d), [real(*shape)], {"dim": dim})
for shape, dim in (((3, 4), 1), ((4, 3), 0), ((2, 3, 2), -2)):
    add("softmin", lambda x, d=dim: F.softmin(x, d), [real(*shape)], {"dim": dim})
    for x in (real(*shape), few(*shape, values=[0.0, 1.0])):
        add("hardmax", lambda x, d=dim: F.one_hot(x.argmax(d), x.shape[d])
            .movedim(-1, d).double(), [x], {"dim": dim}, order=0)
