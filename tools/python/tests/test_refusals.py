"""What `tandem.torch.optimize` refuses in words, and what it does not have to."""

from __future__ import annotations

import collections
import copy
import unittest

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None

import models
import tandem
import tandem.torch
import torch.autograd.forward_ad as forward_ad
from torch import nn

torch.set_num_threads(1)

setUpModule = models.needs_archives

Pair = collections.namedtuple("Pair", "u v")


class Sum(nn.Linear):
    def forward(self, pair):
        return super().forward(pair.u) + pair.v


class Neighbours(nn.Module):
    """Outputs of which each is a part of what is no output."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(5))

    def forward(self, x):
        h = x * self.w
        tail = h[1:]
        return h[:-1], tail, tail[1:], x, h.detach()[2:]


class RefusalsTest(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(2, 4)

    def optimized(self, x=None, fallback="refuse", **options):
        x = self.x if x is None else x
        return tandem.torch.optimize(
            nn.Linear(4, 3), (x,), fallback=fallback, effort=0, **options
        )

    def test_options_that_would_have_no_effect(self):
        for options, kind, text in (
            ({"order": 2}, tandem.UnsupportedError, "order=2"),
            ({"device": "cuda"}, tandem.UsageError, r"module.to\(device\)"),
            ({"output": "a.tdm"}, tandem.UsageError, "writes a file"),
            ({"inference": True}, tandem.UsageError, "inference alone"),
            ({"optimizer": "sgd"}, tandem.UsageError, "are PyTorch's here"),
            ({"lora": "weight:rank=2"}, tandem.UnsupportedError, "no 'weight.lora_A'"),
            ({"seed": "a"}, tandem.UsageError, "an integer for 'seed'"),
            ({"threads": "a"}, tandem.UsageError, "an integer for 'threads'"),
        ):
            with self.subTest(options), self.assertRaisesRegex(kind, text):
                self.optimized(**options)
        self.optimized(order=1, device=None, inference=False)(self.x)

    def test_classes_that_archives_do_not_know(self):
        with self.assertRaisesRegex(tandem.UnsupportedError, "cannot save .*Pair"):
            tandem.torch.optimize(Sum(4, 3), (Pair(self.x, torch.ones(3)),))

    def test_several_gradients_at_once(self):
        x = self.x.clone().requires_grad_()
        net = self.optimized(x)
        y = net(x)
        with self.assertRaisesRegex(tandem.UnsupportedError, "is_grads_batched"):
            torch.autograd.grad(
                y, x, torch.eye(6).view(6, 2, 3), is_grads_batched=True,
                retain_graph=True,
            )
        with self.assertRaisesRegex(tandem.UnsupportedError, "vectorize=True"):
            torch.autograd.functional.jacobian(net, x, vectorize=True)
        torch.testing.assert_close(  # one by one
            torch.autograd.functional.jacobian(net, x),
            torch.autograd.functional.jacobian(tandem.torch.restore(net), x),
        )

    def test_forward_mode(self):
        net = self.optimized(fallback="warn")
        tangent = torch.randn(2, 4)
        with forward_ad.dual_level():
            with self.assertWarnsRegex(
                tandem.torch.FallbackWarning, "forward mode"
            ):
                y = net(forward_ad.make_dual(self.x, tangent))
            made = forward_ad.unpack_dual(y).tangent
        torch.testing.assert_close(made, tangent @ net.weight.T)
        compiled = tandem.torch.Compiled(
            tandem.compile(models.layers(), effort=0),
            {"fc.w": torch.ones(3, 8), "fc.b": torch.ones(3), "calls": torch.zeros(())},
        )
        x = torch.randn(4, 8)
        for net in compiled, compiled.eval():
            with forward_ad.dual_level():
                with self.assertRaisesRegex(tandem.UnsupportedError, "forward mode"):
                    compiled(forward_ad.make_dual(x, x))

    def test_params_without_a_value(self):
        artifact = tandem.compile(models.layers(), effort=0)
        with self.assertRaisesRegex(tandem.UsageError, "'fc.w' has no value.*params="):
            tandem.torch.Compiled(artifact)

    def test_hooks_of_the_module_that_come_later(self):
        made = []
        for compiled in (True, False):
            torch.manual_seed(0)
            x = self.x.clone().requires_grad_()
            net = self.optimized(x) if compiled else nn.Linear(4, 3)
            seen = []
            handle = net.register_full_backward_hook(
                lambda m, into, out: seen.extend(into + out) or (into[0] * 3,)
            )
            net(x).sin().sum().backward()
            handle.remove()
            net(x).sum().backward()
            made.append([x.grad, net.weight.grad, *seen])
        for mine, plain in zip(*made):
            torch.testing.assert_close(mine, plain)

    def test_outputs_that_overlap(self):
        x = torch.arange(5.0)
        plain = Neighbours()
        mine = tandem.torch.optimize(
            copy.deepcopy(plain), (x,), fallback="refuse", effort=0
        )
        for net in (mine, plain):
            outs = net(x)
            sum(((i + 2) * o.sin()).sum() for i, o in enumerate(outs)).backward()
        for a, b in zip(mine(x), plain(x)):
            torch.testing.assert_close(a, b)
        torch.testing.assert_close(mine.w.grad, plain.w.grad)
        first = mine(x)
        first[1].register_hook(lambda g: g)  # which output2 follows from
        with self.assertRaisesRegex(tandem.UnsupportedError, "a hook of 'output1'"):
            first[2].sum().backward()


if __name__ == "__main__":
    unittest.main()
