"""Gradients of compiled modules under create_graph: whoever differentiates them
meets an error, and who takes their numbers does not.

PyTorch runs what leads to what was asked for alone, so where a caller named
parameters or inputs the node that raises was left out, and with it a term of
the gradient.
"""

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

functional = torch.autograd.functional


class Wave(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(3, dtype=torch.float64))
        self.v = torch.nn.Parameter(torch.randn(3, dtype=torch.float64))

    def forward(self, x):
        return torch.tanh(torch.tanh(x * self.w) * self.v)


class Mixed(torch.nn.Module):
    """Of its input the backward reads only what the forward made of it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.randn(3, 3, dtype=torch.float64))

    def forward(self, x):
        return torch.tanh(x @ self.m).square()


class SecondOrderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.x = torch.randn(4, 3, dtype=torch.float64)
        example = (cls.x.clone().requires_grad_(),)
        cls.plain = Wave()
        cls.net = tandem.torch.optimize(
            copy.deepcopy(cls.plain), example, effort=0
        )
        cls.mixed = tandem.torch.optimize(Mixed(), example, effort=0)
        cls.own = tandem.torch.Compiled(
            tandem.compile(models.layers("f64"), effort=0),
            {
                "fc.w": torch.randn(3, 8, dtype=torch.float64),
                "fc.b": torch.randn(3, dtype=torch.float64),
                "calls": torch.zeros(()),
            },
        )

    def setUp(self):
        self.net.zero_grad()
        self.plain.zero_grad()

    def refused(self):
        return self.assertRaisesRegex(tandem.UnsupportedError, "create_graph")

    def gradient(self, net, leaf=True):
        """What it was computed of, and a gradient in the graph."""
        z = self.x.clone().requires_grad_()
        v = torch.ones_like(z).requires_grad_()
        inner, given = (z, v) if leaf else (z * 1, v * 1)
        (g,) = torch.autograd.grad(net(inner), inner, given, create_graph=True)
        return z, v, g

    def penalty(self):
        """The loss of a WGAN-GP: the parameters are reached by y, too."""
        z = self.x.clone().requires_grad_()
        y = self.net(z)
        (g,) = torch.autograd.grad(y.sum(), z, create_graph=True)
        return y.square().mean() + (g.norm(dim=1) - 1).square().mean()

    def test_a_penalty_of_gradients(self):
        params = list(self.net.parameters())
        for ask in (
            lambda loss: loss.backward(),
            lambda loss: loss.backward(inputs=params),
            lambda loss: loss.backward(inputs=params[:1]),
            lambda loss: torch.autograd.grad(loss, params),
            lambda loss: torch.autograd.grad(loss, params[1:]),
            lambda loss: torch.autograd.grad(loss, params, allow_unused=True),
        ):
            with self.refused():
                ask(self.penalty())

    def test_steps_that_are_differentiated(self):
        """MAML."""
        params = list(self.net.parameters())
        inner = torch.autograd.grad(
            self.net(self.x).square().mean(), params, create_graph=True
        )
        outer = sum(g.square().sum() for g in inner) + self.net(self.x).mean()
        with self.refused():
            torch.autograd.grad(outer, params)

    def test_by_name(self):
        for leaf in (True, False):
            z, v, g = self.gradient(self.net, leaf)
            for one in (z, v, self.net.w, self.net.v):
                with self.refused():
                    torch.autograd.grad(
                        g.sum(), one, allow_unused=True, retain_graph=True
                    )

    def test_an_input_that_no_backward_reads(self):
        core = self.mixed.forward.core
        self.assertEqual((core.read, core.read_outputs), ({"m"}, set()))
        for leaf in (True, False):
            z, _, g = self.gradient(self.mixed, leaf)
            with self.refused():
                torch.autograd.grad(g.square().sum(), z, allow_unused=True)

    def test_functions_of_autograd(self):
        v = torch.ones_like(self.x)
        for net in (self.net, lambda x: self.own(self.pad(x))[0]):
            loss = lambda x: net(x).square().sum()  # noqa: E731
            for ask in (
                lambda: functional.hessian(loss, self.x),
                lambda: functional.hvp(loss, self.x, v),
                lambda: functional.vhp(loss, self.x, v),
                lambda: functional.jvp(net, self.x, v),
                lambda: functional.jvp(net, self.x, v, create_graph=True),
            ):
                with self.refused():
                    ask()

    def pad(self, x):
        return torch.nn.functional.pad(x, (0, 5))

    def test_two_modules_in_a_row(self):
        z = self.x.clone().requires_grad_()
        y = self.mixed(self.net(z))
        (g,) = torch.autograd.grad(y.sum(), z, create_graph=True)
        with self.refused():
            torch.autograd.grad(g.sum(), self.net.w, allow_unused=True)

    def test_numbers_of_a_gradient_are_taken(self):
        _, _, mine = self.gradient(self.net)
        _, _, theirs = self.gradient(self.plain)
        torch.testing.assert_close(mine.detach(), theirs.detach())
        # In place, too, as clip_grad_norm_ does.
        mine.mul_(2)
        torch.testing.assert_close(mine.detach(), 2 * theirs.detach())
        for net, scale in ((self.net, mine / 2), (self.plain, theirs)):
            loss = (net(self.x) * scale.detach()).sum()
            loss.backward(retain_graph=True)
            loss.backward(create_graph=True)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        torch.testing.assert_close(
            self.net.w.grad.detach(), self.plain.w.grad.detach()
        )

    def test_what_follows_from_no_gradient_is_computed(self):
        """Another network that is given a gradient: its own parameters."""
        head = torch.nn.Linear(3, 1, dtype=torch.float64)
        wanted = []
        for net in (self.net, self.plain):
            _, _, g = self.gradient(net)
            wanted.append(torch.autograd.grad(head(g).sum(), head.weight)[0])
        torch.testing.assert_close(*wanted)
        loss = lambda x: self.net(x).square().sum()  # noqa: E731
        torch.testing.assert_close(
            functional.jacobian(loss, self.x),
            functional.jacobian(
                lambda x: self.plain(x).square().sum(), self.x
            ),
        )

    def test_no_graph_is_made_without_create_graph(self):
        z = self.x.clone().requires_grad_()
        (g,) = torch.autograd.grad(self.net(z).sum(), z)
        self.assertIsNone(g.grad_fn)


if __name__ == "__main__":
    unittest.main()
