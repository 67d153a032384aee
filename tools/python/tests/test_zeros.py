"""Outputs of roundings and signs require grad, as in PyTorch, and their gradient
is 0: they did not, and `backward` of one was an error."""

from __future__ import annotations

import copy
import unittest

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None

import models
import tandem.torch

torch.set_num_threads(1)

setUpModule = models.needs_archives


class Rounds(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.linspace(-2, 2, 4))
        self.alone = torch.nn.Parameter(torch.ones(4))

    def forward(self, x, y):
        h = x * self.w
        functions = (torch.sign, torch.sgn, torch.round, torch.floor, torch.trunc, torch.ceil)
        with torch.no_grad():
            constant = h.round()
        return (
            h, *(f(h) for f in functions), h.norm(0), torch.round(h, decimals=1) * 2,
            torch.floor(h + self.alone), torch.div(h, 0.7, rounding_mode="floor"), y.round(),
            h.round().detach(), constant, (h.round() > 0).float(), h.round().int(), torch.ones_like(h.floor()),
        )


class ZerosTest(unittest.TestCase):
    def test_outputs_whose_gradient_is_0(self):
        plain = Rounds()
        x, y = torch.ones(4), torch.ones(4)
        mine = tandem.torch.optimize(
            copy.deepcopy(plain), (x.clone().requires_grad_(), y), fallback="refuse"
        )
        count = len(plain(x, y))
        for i in range(count):
            grads = []
            for module in (plain, mine):
                module.zero_grad(set_to_none=True)
                given = x.clone().requires_grad_()
                out = module(given, y)[i]
                if out.requires_grad:
                    out.sum().backward()
                grads.append((out.requires_grad, given.grad, module.w.grad, module.alone.grad))
            with self.subTest(output=i):
                self.assertEqual(grads[0][0], grads[1][0])
                for a, b in zip(grads[0][1:], grads[1][1:]):
                    self.assertEqual(a is None, b is None)
                    if a is not None:
                        self.assertTrue(torch.equal(a, b))

    def test_beside_others_they_add_nothing(self):
        plain = Rounds()
        mine = tandem.torch.optimize(copy.deepcopy(plain), (torch.ones(4), torch.ones(4)), fallback="refuse")
        for module in (plain, mine):
            out = module(torch.ones(4), torch.ones(4))
            (out[0].sin() + out[3] * out[4]).sum().backward()
        self.assertTrue(torch.allclose(plain.w.grad, mine.w.grad))
        self.assertIsNone(mine.alone.grad)


if __name__ == "__main__":
    unittest.main()
