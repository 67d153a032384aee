"""Hooks on the outputs of `tandem.torch.optimize`'s modules."""

from __future__ import annotations

import copy
import unittest

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None

import models
import tandem
import tandem.torch

torch.set_num_threads(1)

setUpModule = models.needs_archives


class HooksTest(unittest.TestCase):
    def test_hooks_of_outputs(self):
        """Of one that others follow from, only what reaches it from outside is known."""

        class Two(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.f, self.head = torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)

            def forward(self, x):
                h = self.f(x).tanh()
                return self.head(h), h, self.f(x).sigmoid()

        mine = Two()
        plain = copy.deepcopy(mine)
        x = torch.randn(5, 4)
        tandem.torch.optimize(mine, (x,))

        def loss(out):
            return sum(part.pow(2).sum() for part in out)

        # Nothing follows from these.
        for net in (mine, plain):
            out = net(x)
            out[0].register_hook(lambda g: g * 10)
            out[2].register_hook(lambda g: g * 3)
            loss(out).backward()
        torch.testing.assert_close(mine.f.weight.grad, plain.f.weight.grad)
        # A hook that is gone counts for nothing, and one whose tensor is gone does.
        out = mine(x)
        out[1].register_hook(lambda g: g * 10).remove()
        loss(out).backward()
        for change in (
            lambda h: h.register_hook(lambda g: g * 10), lambda h: h.retain_grad()
        ):
            out = mine(x)
            change(out[1])
            with self.assertRaisesRegex(tandem.UnsupportedError, "'output1'"):
                loss(out).backward()
        y, h, _ = mine(x)
        h.register_hook(lambda g: None)
        del h
        with self.assertRaisesRegex(tandem.UnsupportedError, "a hook of 'output1'"):
            y.sum().backward()


if __name__ == "__main__":
    unittest.main()
