"""The complement of erf, and its inverse."""

import torch

from families.frame import Family, given, real

NAN, INF = float("nan"), float("inf")

family = Family("errorfunctions")
add = family.add

for op, function, low, high in (("erfc", torch.erfc, -3, 5),
                                ("erfinv", torch.erfinv, -0.953125, 0.953125)):
    for shape in ((3, 4), (2, 1, 3), (), (7,)):
        add(op, function, [real(*shape, low=low, high=high)])
add("erfc", torch.erfc, [given([0.0, 1.0, -1.0, 2.0, 8.0, 12.0, -12.0])])
add("erfinv", torch.erfinv, [given([0.0, 0.984375, -0.9990234375])])
# Without the value the derivative was 0.
add("erfinv", torch.erfinv, [given([1.0, -1.0, 1.5, -2.0, INF, NAN, 0.5])], finite=False,
    order=1)
# In f64 the last digits before 1 were lost: 5.36 for 5.86, and a negative derivative.
add("erfinv", lambda z: torch.erfinv(1 - z), [given([2.0**-50, 2.0**-40, 2.0**-30])],
    nodes=[{"op": "cast", "inputs": ["x0"], "outputs": ["wide"], "type": "f64"},
           {"op": "constant", "outputs": ["one"], "type": "f64", "shape": [3],
            "value": 1.0},
           {"op": "sub", "inputs": ["one", "wide"], "outputs": ["x"]},
           {"op": "erfinv", "inputs": ["x"], "outputs": ["y"]},
           {"op": "cast", "inputs": ["y"], "outputs": ["y0"], "type": "f"}], order=1)
