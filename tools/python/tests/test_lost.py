"""What a forward says about gradients, and torch.export does not keep."""

from __future__ import annotations

import copy
import threading
import unittest
import warnings

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


class Round(torch.autograd.Function):
    """Straight through: its gradient is not that of its forward."""

    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


def ten_times(g):
    return 10 * g


def hooked(h):
    h.register_hook(ten_times)
    return h * 1


class Net(nn.Module):
    def __init__(self, f):
        super().__init__()
        torch.manual_seed(0)
        self.l, self.o = nn.Linear(3, 3), nn.Linear(3, 2)
        self.f = f

    def forward(self, x):
        return self.o(self.f(self.l(x)))


class HooksParameter(Net):
    def forward(self, x):
        self.l.weight.register_post_accumulate_grad_hook(lambda p: None)
        return super().forward(x)


class LostTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.x = torch.randn(4, 3)

    def lost(self):
        """Modules, with what is said of them. A method of the class that was
        taken before is one, too."""
        hook = r"a hook that forward registers on a tensor \(Tensor"
        return (
            (Net(lambda h: Round.apply(h)), r"the backward of Round \(a torch.auto"),
            (Net(Round.apply), "the backward of Round"),
            (Net(hooked), hook + r"\.register_hook"),
            (Net(lambda h: checkpoint(Round.apply, h, use_reentrant=False)), "Round"),
            # What passes it by has a gradient: there is something to compile.
            (
                Net(lambda h: h + checkpoint(torch.tanh, h, use_reentrant=True)),
                "checkpoint with use_reentrant=True",
            ),
            (HooksParameter(torch.tanh), hook + r"\.register_post_accumulate_grad"),
        )

    def gradients(self, net):
        net.zero_grad()
        net(self.x).square().sum().backward()
        return [p.grad.clone() for p in net.parameters()]

    def test_optimize(self):
        for net, said in self.lost():
            with self.subTest(said):
                plain = copy.deepcopy(net)
                with self.assertRaisesRegex(tandem.UnsupportedError, said):
                    tandem.torch.optimize(net, (self.x,), fallback="refuse")
                with self.assertWarnsRegex(
                    tandem.torch.FallbackWarning, "calls of .* PyTorch's own.*" + said
                ):
                    self.assertIs(tandem.torch.optimize(net, (self.x,)), net)
                torch.testing.assert_close(
                    self.gradients(net), self.gradients(plain), rtol=0, atol=0
                )

    def test_compile(self):
        for net, said in self.lost():
            with self.subTest(said):
                with self.assertRaisesRegex(tandem.UnsupportedError, said):
                    tandem.compile(net, (self.x,))
        net = Net(torch.tanh)
        net.l.register_full_backward_hook(lambda module, into, out: None)
        with self.assertRaisesRegex(tandem.UnsupportedError, "hooks of an inner mod"):
            tandem.compile(net, (self.x,))
        # Inference has no gradients to lose.
        net = Net(Round.apply).eval()
        step = tandem.Step(tandem.compile(net, (self.x,), inference=True))
        with torch.no_grad():
            want = net(self.x)
        got = torch.as_tensor(step.predict(self.x)["output"])
        torch.testing.assert_close(got, want)

    def test_checkpoint_keeps_its_gradients(self):
        net = Net(lambda h: checkpoint(torch.tanh, h, use_reentrant=False))
        plain = copy.deepcopy(net)
        with warnings.catch_warnings():
            warnings.simplefilter("error", tandem.torch.FallbackWarning)
            tandem.torch.optimize(net, (self.x,), fallback="refuse")
        torch.testing.assert_close(self.gradients(net), self.gradients(plain))

    def test_others_are_not_watched(self):
        """Neither other threads while a module is exported, nor anybody after."""

        class Waits(Net):
            def forward(self, x):
                if "forward" not in self.__dict__:
                    thread = threading.Thread(target=self.elsewhere)
                    thread.start()
                    thread.join()
                return super().forward(x)

            def elsewhere(self):
                h = Round.apply(torch.ones(2, requires_grad=True))
                h.register_hook(ten_times)
                h.sum().backward()
                ran.append(True)

        ran = []
        context = torch.autograd.function.BackwardCFunction
        before = dict(vars(context)), vars(torch.Tensor)["register_hook"]
        tandem.torch.optimize(Waits(torch.tanh), (self.x,), fallback="refuse")
        self.assertTrue(ran)
        with self.assertRaises(tandem.UnsupportedError):
            tandem.compile(Net(Round.apply), (self.x,))
        self.assertEqual(
            (dict(vars(context)), vars(torch.Tensor)["register_hook"]), before
        )


if __name__ == "__main__":
    unittest.main()
