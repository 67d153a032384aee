"""What a backward reads and somebody wrote since its forward: PyTorch's error, and
no gradient of the new elements."""

from __future__ import annotations

import unittest

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None

import models
import tandem
import tandem.torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.set_num_threads(1)

setUpModule = models.needs_archives

WRITTEN = "modified by an inplace operation"


class Scaled(nn.Module):
    """x * w * b * z, where b is a buffer and z a frozen parameter."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.z = nn.Parameter(torch.tensor([1.0, 1.0]), requires_grad=False)
        self.register_buffer("b", torch.tensor([3.0, 5.0]))

    def forward(self, x):
        return x * self.w * self.b * self.z


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.register_buffer("mask", torch.tensor([True, False]))

    def forward(self, x):
        return torch.where(self.mask, x * self.w, self.w)


class Averages(nn.Module):
    """Its forward writes the buffer by which it divides."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.register_buffer("mean", torch.ones(2))

    def forward(self, x):
        y = x * self.w
        self.mean.mul_(0.5).add_(y.detach(), alpha=0.5)
        return y / self.mean


def _copy(m):
    m.b.copy_(m.b * 2)


def _index(m):
    m.b[:] = m.b * 2


def _load(m):
    m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()})


class WritesTest(unittest.TestCase):
    def optimized(self, module, x):
        return tandem.torch.optimize(module, (x,), fallback="refuse", effort=0)

    def refused(self, net, x, write, name):
        net(x).sum().backward()
        y = net(x)
        with torch.no_grad():
            write(net)
        with self.assertRaisesRegex(RuntimeError, f"{WRITTEN}: the .*'{name}'"):
            y.sum().backward()
        net(x).sum().backward()  # of what is there now

    def test_buffers_and_frozen_parameters(self):
        x = torch.ones(2)
        net = self.optimized(Scaled(), x)
        for write, name in (
            (lambda m: m.b.mul_(2), "b"),
            (_copy, "b"),
            (_index, "b"),
            (lambda m: m.z.add_(1), "z"),
        ):
            self.refused(net, x, write, name)
        y = net(x)
        _load(net)
        with self.assertRaisesRegex(RuntimeError, WRITTEN):
            y.sum().backward()
        net = self.optimized(Masked(), x)
        self.refused(net, x, lambda m: m.mask.logical_not_(), "mask")

    def test_another_call_after_the_write(self):
        x = torch.ones(2)
        net = self.optimized(Scaled(), x)
        first = net(x)
        net.b.mul_(2)
        second = net(x)
        with self.assertRaisesRegex(RuntimeError, WRITTEN):
            (first + second).sum().backward()
        net.zero_grad()
        net(x).sum().backward()
        self.assertEqual(net.w.grad.tolist(), [6.0, 10.0])

    def test_statistics_in_eval(self):
        x = torch.randn(4, 2, requires_grad=True)
        net = self.optimized(nn.BatchNorm1d(2).eval(), x)
        self.refused(net, x, lambda m: m.running_var.fill_(4.0), "running_var")

    def test_hooks_that_save_tensors_elsewhere(self):
        # saved_tensors compares no versions then.
        x = torch.ones(2, requires_grad=True)
        net = self.optimized(Scaled(), x)
        for target in ("w", "b", "z"):
            with torch.autograd.graph.save_on_cpu():
                y = net(x)
            with torch.no_grad():
                getattr(net, target).mul_(2)
            with self.assertRaisesRegex(RuntimeError, WRITTEN):
                y.sum().backward()
        given = torch.ones(2)
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t):
            y = net(given)
        given.mul_(2)
        with self.assertRaisesRegex(RuntimeError, "the input 'x'"):
            y.sum().backward()

    def test_a_state_of_an_artifact(self):
        graph = {
            "format": "tandem-graph",
            "version": 1,
            "name": "scaled",
            "inputs": [{"name": "x", "type": "f32", "shape": [2]}],
            "params": [{"name": "w", "type": "f32", "shape": [2],
                        "init": {"kind": "constant", "value": 2.0}}],
            "states": [{"name": "s", "type": "f32", "shape": [2],
                        "init": {"kind": "constant", "value": 3.0}}],
            "nodes": [
                {"op": "mul", "inputs": ["x", "w"], "outputs": ["a"]},
                {"op": "mul", "inputs": ["a", "s"], "outputs": ["y"]},
            ],
            "outputs": [{"name": "y", "value": "y"}],
        }
        net = tandem.torch.Compiled(tandem.compile(graph, effort=0))
        self.refused(net, torch.ones(2), lambda m: m.s.mul_(2), "s")

    def test_what_forwards_write_themselves(self):
        torch.manual_seed(0)
        x = torch.randn(6, 3)
        make = lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        for module, given in ((make, x), (Averages, torch.ones(2))):
            made = []
            for compiled in (True, False):
                torch.manual_seed(1)
                net = module()
                if compiled:
                    net = self.optimized(net, given)
                # Several calls before one backward, and gradients that add up.
                for _ in range(2):
                    loss = net(given).sin().sum()
                    if module is not Averages:  # PyTorch refuses that of it
                        loss = loss + net(given * 2).sum()
                    loss.backward()
                if module is not Averages:
                    y = checkpoint(net, given, use_reentrant=False)
                    y.sin().sum().backward()
                made.append([p.grad for p in net.parameters()] + [*net.buffers()])
            for mine, plain in zip(*made):
                torch.testing.assert_close(mine, plain)


if __name__ == "__main__":
    unittest.main()
