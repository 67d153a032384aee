"""Functions that multiply matrices, and einsum."""

import torch
import torch.nn.functional as F

from families.frame import Family, real

family = Family("products")
add = family.add

for a, b in (((3, 4), (4, 2)), ((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)),
             ((2, 3, 4), (4, 2)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (2, 4, 3)),
             ((2, 3, 4), (4,)), ((1, 1), (1, 1))):
    add("linalg_matmul", torch.matmul, [real(*a), real(*b)])
add("mm", torch.mm, [real(3, 4), real(4, 2)])
add("bmm", torch.bmm, [real(2, 3, 4), real(2, 4, 2)])
add("mv", torch.mv, [real(3, 4), real(4)])
add("dot", torch.dot, [real(5), real(5)])
add("dot", torch.dot, [real(1), real(1)])
for a, b in (((4,), (4,)), ((2, 3), (3,)), ((2, 3), (4, 3))):
    add("inner", torch.inner, [real(*a), real(*b)])
add("outer", torch.outer, [real(3), real(4)])
for x in ((3, 2), (2,), (3, 1), ()):
    add("addmm", torch.addmm, [real(*x), real(3, 4), real(4, 2)])
add("addmm", lambda x, a, b: torch.addmm(x, a, b, alpha=0.5, beta=-2.0),
    [real(3, 2), real(3, 4), real(4, 2)], {"alpha": 0.5, "beta": -2.0})
add("addmv", torch.addmv, [real(3), real(3, 4), real(4)])
add("addmv", lambda x, a, b: torch.addmv(x, a, b, alpha=0.5, beta=0.25),
    [real(1), real(3, 4), real(4)], {"alpha": 0.5, "beta": 0.25})
add("baddbmm", torch.baddbmm, [real(2, 3, 2), real(2, 3, 4), real(2, 4, 2)])
add("baddbmm", lambda x, a, b: torch.baddbmm(x, a, b, alpha=2.0, beta=0.5),
    [real(1, 2), real(2, 3, 4), real(2, 4, 2)], {"alpha": 2.0, "beta": 0.5})
add("addr", torch.addr, [real(3, 4), real(3), real(4)])
add("addr", lambda x, a, b: torch.addr(x, a, b, alpha=2.0, beta=0.5),
    [real(4), real(3), real(4)], {"alpha": 2.0, "beta": 0.5})
for ta, tb in ((False, False), (True, False), (False, True), (True, True)):
    add("gemm", lambda a, b, c, s=ta, t=tb: 0.5 * (a.mT if s else a) @ (
        b.mT if t else b) + 2.0 * c,
        [real(4, 3) if ta else real(3, 4), real(2, 4) if tb else real(4, 2), real(2)],
        {"alpha": 0.5, "beta": 2.0, "transpose_a": ta, "transpose_b": tb})
add("gemm", torch.mm, [real(3, 4), real(4, 2)])
add("tensordot", lambda a, b: torch.tensordot(a, b, 2), [real(2, 3, 4), real(3, 4, 2)])
add("tensordot", lambda a, b: torch.tensordot(a, b, 1), [real(2, 3), real(3, 4)],
    {"dims": 1})
add("tensordot", lambda a, b: torch.tensordot(a, b, ([0, 2], [1, 0])),
    [real(3, 2, 4), real(4, 3, 5)], {"dims_a": [0, 2], "dims_b": [1, 0]})
add("bilinear", F.bilinear, [real(3, 2), real(3, 4), real(5, 2, 4), real(5)])
add("bilinear", F.bilinear, [real(1, 2), real(1, 1), real(1, 2, 1)])

for equation, *shapes in (
    ("ij,jk->ik", (3, 4), (4, 2)), ("ij,kj->ik", (3, 4), (2, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)), ("ij->ji", (3, 4)), ("ij->", (3, 4)),
    ("ii->i", (4, 4)), ("ii->", (3, 3)), ("i,j->ij", (3,), (4,)), ("i,i->", (5,), (5,)),
    ("ij,ij->j", (3, 4), (3, 4)), ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 2)),
    ("...ij,jk->...ik", (2, 1, 3, 4), (4, 2)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("bhtd,bhsd->bhts", (1, 2, 3, 4), (1, 2, 5, 4)), ("ab,cd->abcd", (2, 2), (2, 3)),
    ("ij,j", (3, 4), (4,)), ("ba,ca->bc", (2, 3), (4, 3)),
    ("aab,bc->ac", (3, 3, 2), (2, 4))):
    add("einsum", lambda *x, e=equation: torch.einsum(e, *x),
        [real(*s) for s in shapes], {"equation": equation})
