"""Which forwards are the program `evaluate` in `eval()`: graphs are compared.
Numbers were, with the largest one as the measure, on the first call alone."""

from __future__ import annotations

import copy
import unittest
import warnings

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None

import models
import tandem.torch
from tandem.torch import FallbackWarning
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)

setUpModule = models.needs_archives


class Of(nn.Module):
    """A module whose forward is a function."""

    def __init__(self, function, *parts):
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(parts)
        self.weight = nn.Parameter(torch.ones(6))
        self.register_buffer("mean", torch.ones(6))

    def forward(self, x):
        return self.function(self, x * self.weight)


def adds(self, x):
    # One element is large, and what is added to the others is not.
    return x + torch.tensor([0.0, 0.5, 0.5, 0.5, 0.5, 0.5]) if self.training else x


def gates(self, x):
    # A factor that is 1 at first, as that of a residual branch.
    return x * self.mean if self.training else x


def averages_and_reads(self, x):
    if self.training:
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0))
    return x + self.mean


def averages(self, x):
    if self.training:
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0))
    return x


def always_drops(self, x):
    return F.dropout(x, 0.5, True)


def draws(self, x):
    return x + torch.randn_like(x)


def writes_its_input(self, x):
    # With dropout off both names are one tensor.
    y = F.dropout(x, 0.5, self.training)
    y += 1
    return x + y


def adds_to_dropped(self, x):
    y = F.dropout(F.relu_(x * 2), 0.5, self.training)
    y += 1
    return y * y


def sequence(self, x):
    for part in self.parts:
        x = part(x)
    return x


def attends(self, x):
    p = 0.1 if self.training else 0.0
    q = x[None]
    return F.scaled_dot_product_attention(q, q, q, dropout_p=p)


def detaches(self, x):
    with torch.no_grad():
        scale = x.abs().amax(1, keepdim=True)
    return x / scale


class EvaluationTest(unittest.TestCase):
    def pair(self, function, *parts):
        torch.manual_seed(0)
        mine = Of(function, *parts)
        plain = copy.deepcopy(mine)
        self.x = torch.randn(4, 6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tandem.torch.optimize(mine, (self.x,), effort=0)
        return mine.eval(), plain.eval()

    def compare(self, mine, plain):
        for _ in range(3):
            torch.manual_seed(1)
            made = mine(self.x)
            torch.manual_seed(1)
            torch.testing.assert_close(made, plain(self.x))

    def test_forwards_that_are_others(self):
        for function, parts, says in (
            (adds, (), "something else"),
            (gates, (), "something else"),
            (averages_and_reads, (), "something else"),
            (always_drops, (), "something else"),
            (draws, (), "random numbers"),
            (writes_its_input, (), "something else"),
            (sequence, (nn.Unflatten(1, (2, 3)),
                        nn.InstanceNorm1d(2, track_running_stats=True)),
             "something else"),
        ):
            mine, plain = self.pair(function, *parts)
            self.x[0, 0] = 1e4
            with self.subTest(function.__name__), torch.no_grad():
                with self.assertWarnsRegex(FallbackWarning, says):
                    self.compare(mine, plain)

    def test_forwards_that_are_the_same(self):
        for function, parts in (
            (averages, ()),
            (adds_to_dropped, ()),
            (attends, ()),
            (detaches, ()),
            (sequence, (nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU(True),
                        nn.Dropout(inplace=True), nn.Linear(6, 3))),
            (sequence, (nn.BatchNorm1d(6, track_running_stats=False),)),
            (sequence, (nn.TransformerEncoderLayer(6, 2, 8),)),
        ):
            mine, plain = self.pair(function, *parts)
            with self.subTest(function.__name__), torch.no_grad():
                with warnings.catch_warnings():
                    warnings.simplefilter("error", FallbackWarning)
                    self.compare(mine, plain)

    def test_a_gate_that_opens(self):
        """The first call in eval() cannot tell, and the graphs do."""
        mine, plain = self.pair(gates)
        with torch.no_grad(), self.assertWarnsRegex(
            FallbackWarning, "something else"
        ):
            self.compare(mine, plain)
            for net in mine, plain:
                net.mean += 1
            self.compare(mine, plain)

    def test_a_mask_of_padding(self):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
        mine = nn.TransformerEncoder(layer, 1)
        plain = copy.deepcopy(mine).eval()
        x = torch.randn(1, 4, 6)
        mask = torch.tensor([[False, False, True, True]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tandem.torch.optimize(
                mine, (x,), {"src_key_padding_mask": mask}, effort=0
            ).eval()
        with torch.no_grad(), self.assertWarnsRegex(FallbackWarning, "padding"):
            for _ in range(2):
                torch.testing.assert_close(
                    mine(x, src_key_padding_mask=mask),
                    plain(x, src_key_padding_mask=mask),
                )


if __name__ == "__main__":
    unittest.main()
