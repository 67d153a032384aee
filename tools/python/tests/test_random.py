"""Random numbers of `tandem.torch`: dropout, and what repeats it."""

from __future__ import annotations

import unittest

try:
    import torch
    import torch.utils.checkpoint
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None

import models
import tandem
import tandem.torch

torch.set_num_threads(1)

setUpModule = models.needs_archives


class RandomTest(unittest.TestCase):
    def test_dropout(self):
        net = torch.nn.Sequential(torch.nn.Linear(20, 200), torch.nn.Dropout())
        x = torch.randn(10, 20)
        tandem.torch.optimize(net, (x,), seed=1)
        first, second = net(x), net(x)
        self.assertAlmostEqual(float((first == 0).float().mean()), 0.5, 1)
        self.assertFalse(torch.equal(first == 0, second == 0))
        first.sum().backward()  # by its own mask
        torch.testing.assert_close(
            net[0].bias.grad, 2 * (first != 0).float().sum(0)
        )
        net.eval()
        with torch.no_grad():
            self.assertFalse((net(x) == 0).any())
        self.assertEqual(list(net.state_dict()), ["0.weight", "0.bias"])

    def test_random_numbers_follow_from_pytorchs(self):
        def masks(net, seed, count=2):
            torch.manual_seed(seed)
            return torch.stack([net(x) != 0 for _ in range(count)])

        x = torch.randn(10, 20)
        nets = [
            tandem.torch.optimize(
                torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Dropout()),
                (x,),
                seed=seed,
            )
            for seed in (None, 7)
        ]
        net, other = nets
        self.assertTrue(torch.equal(masks(net, 1), masks(net, 1)))
        self.assertFalse(torch.equal(masks(net, 1), masks(net, 2)))
        self.assertFalse(torch.equal(masks(net, 1), masks(other, 1)))
        one, two = masks(net, 1)
        self.assertFalse(torch.equal(one, two))
        with torch.random.fork_rng():
            forked = net(x) != 0
        self.assertTrue(torch.equal(forked, net(x) != 0))
        # What draws nothing takes nothing.
        net.eval()
        state = torch.get_rng_state()
        with torch.no_grad():
            net(x), net(x)
        self.assertTrue(torch.equal(state, torch.get_rng_state()))

    def test_checkpoints_repeat_dropout(self):
        checkpoint = torch.utils.checkpoint.checkpoint
        x = torch.randn(16, 8, requires_grad=True)
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5))
        tandem.torch.optimize(net, (x,), fallback="refuse")
        for reentrant in (True, False):
            for _ in range(3):
                net.zero_grad()
                y = checkpoint(net, x, use_reentrant=reentrant)
                y.sum().backward()
                torch.testing.assert_close(
                    net[0].bias.grad, 2 * (y != 0).float().sum(0)
                )


if __name__ == "__main__":
    unittest.main()
