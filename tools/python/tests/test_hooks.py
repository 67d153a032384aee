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

    def test_hooks_that_were_there_before(self):
        """Those of the module itself are PyTorch's, and count once."""
        x = torch.randn(3, 4)
        for kind, hook in (
            ("register_forward_hook", lambda m, into, out: out * 3),
            ("register_forward_pre_hook", lambda m, into: (into[0] + 1,)),
            ("register_full_backward_hook", lambda m, into, out: None),
        ):
            with self.subTest(kind):
                mine = torch.nn.Linear(4, 2)
                plain = copy.deepcopy(mine)
                handles = [getattr(net, kind)(hook) for net in (mine, plain)]
                tandem.torch.optimize(mine, (x,), fallback="refuse")
                for _ in range(2):
                    outs = [net(x) for net in (mine, plain)]
                    torch.testing.assert_close(*outs)
                    for net, out in zip((mine, plain), outs):
                        net.zero_grad()
                        out.square().sum().backward()
                    torch.testing.assert_close(mine.weight.grad, plain.weight.grad)
                    for handle in handles:
                        handle.remove()

    def test_an_output_that_is_returned_twice(self):
        """One tensor, as in PyTorch: a write, a hook and gradients are of both."""

        class Twice(torch.nn.Linear):
            def forward(self, x):
                h = super().forward(x)
                return h, {"h": h, "tail": h[1:], "more": h[1:]}, h.sum()

        class Alone(torch.nn.Linear):
            def forward(self, x):
                h = super().forward(x)
                return h, h

        x = torch.randn(3, 4)
        for kind in (Twice, Alone):
            mine = kind(4, 2)
            plain = copy.deepcopy(mine)
            tandem.torch.optimize(mine, (x,), fallback="refuse")
            for net in (mine, plain):
                a, b, *_ = net(x)
                b = b["h"] if kind is Twice else b
                self.assertIs(a, b)
                if kind is Alone:
                    b.register_hook(lambda g: g * 3)
                (a.square().sum() + b.sin().sum()).backward()
                with torch.no_grad():
                    a.add_(1)
                    torch.testing.assert_close(b, net(x)[0] + 1)
            torch.testing.assert_close(mine.weight.grad, plain.weight.grad)
            mine.eval()
            with torch.no_grad():
                out = mine(x)
                self.assertIs(out[0], out[1]["h"] if kind is Twice else out[1])

    def test_inner_hooks_that_are_gone(self):
        x = torch.randn(3, 4)
        mine = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh())
        plain = copy.deepcopy(mine)
        handle = mine[0].register_forward_hook(lambda m, into, out: out * 3)
        tandem.torch.optimize(mine, (x,))
        handle.remove()
        with self.assertWarnsRegex(tandem.torch.FallbackWarning, "optimize it again"):
            torch.testing.assert_close(mine(x), plain(x))
        tandem.torch.optimize(mine, (x,), fallback="refuse")
        torch.testing.assert_close(mine(x), plain(x))


class TorchCompileTest(unittest.TestCase):
    def test_the_reason_is_said(self):
        """It was "a transform of torch.func", which nobody had asked for."""
        x = torch.randn(4, 3)
        net = tandem.torch.optimize(torch.nn.Linear(3, 2), (x,), effort=0)
        with self.assertWarnsRegex(tandem.torch.FallbackWarning, "torch.compile"):
            y = torch.compile(net, backend="eager")(x)
        torch.testing.assert_close(y, net(x))


if __name__ == "__main__":
    unittest.main()
