"""Losses."""

import functools

import torch
import torch.nn.functional as F

from families.frame import Family, few, given, integers, real

INF = float("inf")

family = Family("losses")
# Its loss over images wants what it differentiates to be dense.
add = functools.partial(family.add, strides=False)

REDUCTIONS = ("mean", "sum", "none")
ROWS = [((4, 5), (4,)), ((2, 3, 4), (2, 4)), ((3, 1), (3,)), ((1, 4, 2, 2), (1, 2, 2))]
for scores, rows in ROWS:
    c = scores[1]
    for r in REDUCTIONS:
        a = {"reduction": r}
        index = integers(*rows, high=c)
        add("cross_entropy_loss", lambda x, t, r=r: F.cross_entropy(x, t, reduction=r),
            [real(*scores), index], a)
        add("cross_entropy_loss", lambda x, t, w, r=r: F.cross_entropy(
            x, t, w, reduction=r, ignore_index=0, label_smoothing=0.25),
            [real(*scores), index,
             real(c, low=0.25).fixed()],
            {**a, "ignore_index": 0, "label_smoothing": 0.25},
            finite=c > 1)
        add("cross_entropy_loss", lambda x, t, r=r: F.cross_entropy(
            x, t, reduction=r, label_smoothing=0.125), [real(*scores), index],
            {**a, "label_smoothing": 0.125})
        # Probabilities for all classes.
        add("cross_entropy_loss", lambda x, t, r=r: F.cross_entropy(x, t, reduction=r),
            [real(*scores), real(*scores, low=0.0, high=1.0)], a)
        add("cross_entropy_loss", lambda x, t, w, r=r: F.cross_entropy(
            x, t, w, reduction=r, label_smoothing=0.25),
            [real(*scores), real(*scores, low=0.0, high=1.0),
             real(c, low=0.25).fixed()], {**a, "label_smoothing": 0.25})
        add("nll_loss", lambda x, t, r=r: F.nll_loss(x, t, reduction=r),
            [real(*scores), index], a)
        add("nll_loss", lambda x, t, w, r=r: F.nll_loss(
            x, t, w, reduction=r, ignore_index=1),
            [real(*scores), index, real(c, low=0.25).fixed()],
            {**a, "ignore_index": 1})
# One row, without a batch.
add("cross_entropy_loss", F.cross_entropy, [real(5), given(3, "i64")])
add("nll_loss", F.nll_loss, [real(5), given(3, "i64")])

PAIRS = ((3, 4), (2, 1, 3), (5,))
for shape in PAIRS:
    for r in REDUCTIONS:
        a = {"reduction": r}
        inside = lambda: real(*shape, low=0.125, high=0.875)
        add("binary_cross_entropy", lambda x, t, r=r: F.binary_cross_entropy(
            x, t, reduction=r), [inside(), inside().fixed()], a)
        add("binary_cross_entropy", lambda x, t, w, r=r: F.binary_cross_entropy(
            x, t, w, reduction=r),
            [inside(), inside().fixed(), real(*shape, low=0.25).fixed()], a)
        add("binary_cross_entropy_with_logits", lambda x, t, r=r:
            F.binary_cross_entropy_with_logits(x, t, reduction=r),
            [real(*shape, low=-30, high=30), inside()], a)
        add("binary_cross_entropy_with_logits", lambda x, t, w, p, r=r:
            F.binary_cross_entropy_with_logits(x, t, w, reduction=r, pos_weight=p),
            [real(*shape), inside(), real(*shape, low=0.25).fixed(),
             real(shape[-1], low=0.25).fixed()], a)
        sign = lambda *s: few(*s, values=[-1.0, 1.0]).fixed()
        add("soft_margin_loss", lambda x, t, r=r: F.soft_margin_loss(x, t, reduction=r),
            [real(*shape), sign(*shape)], a)
        add("l1_loss", lambda x, t, r=r: F.l1_loss(x, t, reduction=r),
            [real(*shape), real(*shape)], a)
        add("l1_loss", lambda x, t, r=r: F.l1_loss(x, t, reduction=r),
            [few(*shape, values=[0.0, 1.0]), few(*shape, values=[0.0, 1.0])], a)
        for beta in (1.0, 0.5):
            add("smooth_l1_loss", lambda x, t, r=r, b=beta: F.smooth_l1_loss(
                x, t, reduction=r, beta=b), [real(*shape), real(*shape)],
                {**a, "beta": beta})
            # At the kink, which is none of these differences, the second
            # derivative has no convention.
            add("huber_loss", lambda x, t, r=r, b=beta - 0.0078125: F.huber_loss(
                x, t, reduction=r, delta=b), [real(*shape), real(*shape)],
                {**a, "delta": beta - 0.0078125})
            add("huber_loss", lambda x, t, r=r, b=beta: F.huber_loss(
                x, t, reduction=r, delta=b),
                [few(*shape, values=[0.0, beta, -beta]), few(*shape, values=[0.0])],
                {**a, "delta": beta}, order=1)
        add("poisson_nll_loss", lambda x, t, r=r: F.poisson_nll_loss(
            x, t, reduction=r), [real(*shape), real(*shape, low=0, high=4)], a)
        add("poisson_nll_loss", lambda x, t, r=r: F.poisson_nll_loss(
            x, t, log_input=False, full=True, eps=0.125, reduction=r),
            [real(*shape, low=0.25), real(*shape, low=1.25, high=4).fixed()],
            {**a, "log_input": False, "full": True, "eps": 0.125})
        add("gaussian_nll_loss", lambda x, t, v, r=r: F.gaussian_nll_loss(
            x, t, v, full=True, eps=1e-6, reduction=r),
            [real(*shape), real(*shape), real(*shape, low=0.25)], {**a, "full": True})
        add("margin_ranking_loss", lambda x, y, t, r=r: F.margin_ranking_loss(
            x, y, t, 0.25, reduction=r), [real(*shape), real(*shape), sign(*shape)],
            {**a, "margin": 0.25})
        add("hinge_embedding_loss", lambda x, t, r=r: F.hinge_embedding_loss(
            x, t, 1.0, reduction=r), [real(*shape), sign(*shape)], a)
        for log in (False, True):
            add("kl_div", lambda x, t, r=r, g=log: F.kl_div(
                x, t, reduction=r, log_target=g),
                [real(*shape), real(*shape, low=-2 if log else 0.125, high=1)],
                {**a, "log_target": log})
add("kl_div", lambda x, t: F.kl_div(x, t, reduction="batchmean"),
    [real(3, 4), real(3, 4, low=0.125, high=1)], {"reduction": "batchmean"})
add("kl_div", lambda x, t: F.kl_div(x, t, reduction="none"),
    [real(4), few(4, values=[0.0, 0.5]).fixed()], {"reduction": "none"})
# The logarithm of a target below 0 is no number.
add("kl_div", lambda x, t: F.kl_div(x, t, reduction="none"),
    [real(3), given([-0.5, 0.0, 0.5]).fixed()], {"reduction": "none"},
    finite=False)
for r in REDUCTIONS:
    add("cosine_embedding_loss", lambda x, y, t, r=r: F.cosine_embedding_loss(
        x, y, t, 0.125, reduction=r),
        [real(4, 3), real(4, 3), few(4, values=[-1.0, 1.0]).fixed()],
        {"reduction": r, "margin": 0.125})
    for p, swap in ((2.0, False), (1.0, False), (2.0, True)):
        add("triplet_margin_loss", lambda x, y, z, r=r, p=p, s=swap:
            F.triplet_margin_loss(x, y, z, 1.0, p, 1e-6, s, reduction=r),
            [real(4, 3), real(4, 3), real(4, 3)],
            {"reduction": r, "p": p, "swap": swap})
for shapes, dim in ((((3, 4), (3, 4)), 1), (((2, 3, 4), (2, 3, 4)), -1),
                    (((3, 4), (1, 4)), 1)):
    add("cosine_similarity", lambda x, y, d=dim: F.cosine_similarity(x, y, d),
        [real(*shapes[0]), real(*shapes[1])], {"dim": dim})


def dice(x, target, dim=None, smooth=1e-5, ignore=-100):
    """1 - the mean over the classes of (2 |p y| + smooth) / (|p| + |y| + smooth),
    with sums over the batch: V-Net (2016), MONAI's DiceLoss with batch=True."""
    if target.is_floating_point():
        p, y = torch.sigmoid(x), target
        dims = list(range(x.dim()))
    else:
        counted = (target != ignore).unsqueeze(1)
        y = F.one_hot(target.clamp(min=0), x.shape[1]).movedim(-1, 1) * counted
        p = x.softmax(1) * counted
        dims = [i for i in range(x.dim()) if i != 1]
    overlap = (2 * (p * y).sum(dims) + smooth) / (
        p.sum(dims) + y.sum(dims) + smooth)
    return 1 - overlap.mean()


for scores, classes in (((4, 3), (4,)), ((2, 3, 3), (2, 3)),
                        ((2, 2, 2, 3), (2, 2, 3))):
    add("dice_loss", dice, [real(*scores), integers(*classes, high=scores[1])])
    add("dice_loss", lambda x, t: dice(x, t, smooth=1.0, ignore=1),
        [real(*scores), integers(*classes, high=scores[1])],
        {"smooth": 1.0, "ignore_index": 1})
    add("dice_loss", dice, [real(*scores), real(*scores, low=0.0, high=1.0)])

# Of infinite differences the gradient was NaN, of 0 times infinity.
far = lambda: [given([INF, INF, -INF, 1.0, -1.0, 0.5]),
               given([-INF, 1.0, 2.0, INF, -INF, 0.25])]
add("l1_loss", lambda x, t: F.l1_loss(x, t, reduction="none"),
    [given([INF, -INF, INF, 1.0]), given([INF, -INF, -INF, INF])],
    {"reduction": "none"}, finite=False)
add("smooth_l1_loss", lambda x, t: F.smooth_l1_loss(x, t, reduction="none"), far(),
    {"reduction": "none", "beta": 1.0}, finite=False)
add("huber_loss", lambda x, t: F.huber_loss(x, t, reduction="none", delta=0.5), far(),
    {"reduction": "none", "delta": 0.5}, finite=False, order=1)
