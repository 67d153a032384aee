"""A module that is changed after `tandem.torch.optimize`: the numbers are those
of the module as it is now, and it is said."""

from __future__ import annotations

import copy
import types
import unittest
import warnings

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None

import models
import tandem
import tandem.torch
from tandem.torch import FallbackWarning
from torch import nn

torch.set_num_threads(1)

setUpModule = models.needs_archives


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.0)
        self.b = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))
        self.c = nn.Linear(3, 3, bias=False)
        self.twice = False
        self.sizes = [1.0, 2.0]
        self.table = {"by": {"factor": 1.0}, "kept": [self.a.weight]}
        self.config = types.SimpleNamespace(shift=1.0)
        self.scale = torch.ones(())  # neither parameter nor buffer

    def forward(self, x):
        h = self.drop(torch.relu(self.norm(self.a(x)))) * self.scale
        h = self.b(h * 2 if self.twice else h) * sum(self.sizes)
        h = h * self.table["by"]["factor"]
        return self.c(h) + self.config.shift


class Tanh(nn.Linear):
    def forward(self, x):
        return super().forward(x).tanh()


class Writes(nn.Module):
    """A forward that counts its calls, in eval() too."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("last", torch.zeros(8, 6))

    def forward(self, x):
        self.calls += 1
        self.last.copy_(x)
        return self.fc(x) * self.calls


class Doubles(nn.Module):
    """A forward that asks for its mode."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout()

    def forward(self, x):
        x = self.norm(self.fc(x))
        return x * 2 if self.training else self.drop(x)


class EvalTest(unittest.TestCase):
    def pair(self, kind, mode=True):
        torch.manual_seed(0)
        self.x = torch.randn(8, 6)
        mine = kind().train(mode)
        plain = copy.deepcopy(mine)
        tandem.torch.optimize(mine, (self.x,))
        return mine, plain

    def compare(self, mine, plain, calls=3):
        for i in range(calls):
            torch.testing.assert_close(
                mine(self.x + i), plain(self.x + i), atol=1e-5, rtol=1e-4
            )
            for u, v in zip(mine.buffers(), plain.buffers()):
                torch.testing.assert_close(u, v)

    def test_buffers_that_forwards_write_in_eval(self):
        for context in (torch.no_grad, torch.inference_mode):
            mine, plain = self.pair(Writes)
            with context():
                self.compare(mine, plain)
                mine.eval(), plain.eval()
                with self.assertWarnsRegex(
                    FallbackWarning, r"writes to 'calls' in eval\(\)"
                ):
                    self.compare(mine, plain)
                mine.train(), plain.train()
                self.compare(mine, plain)

    def test_buffers_of_a_module_compiled_in_eval(self):
        mine, plain = self.pair(Writes, mode=False)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error", FallbackWarning)
            self.compare(mine, plain)

    def test_a_forward_that_is_another_in_eval(self):
        mine, plain = self.pair(Doubles)
        mine.eval(), plain.eval()
        with torch.no_grad():
            with self.assertWarnsRegex(FallbackWarning, "something else in eval"):
                self.compare(mine, plain)

    def test_refusing_in_eval(self):
        mine, _ = self.pair(Doubles)
        tandem.torch.optimize(mine, (self.x,), fallback="refuse").eval()
        with torch.no_grad():
            for _ in range(2):
                with self.assertRaisesRegex(
                    tandem.UnsupportedError, "something else in eval"
                ):
                    mine(self.x)


class Reads(nn.Module):
    """A parameter that modules share, whose backward reads it."""

    def __init__(self, shared, factor):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.shared = shared
        self.factor = factor

    def forward(self, x):
        return torch.tanh(self.first(x)) @ self.shared * self.factor


class SharedTest(unittest.TestCase):
    """Two optimized modules with one parameter were an error of PyTorch of an
    operation in place that nobody had written."""

    def pair(self, optimize):
        torch.manual_seed(0)
        shared = nn.Parameter(torch.randn(6, 3))
        pair = Reads(shared, 1.0), Reads(shared, 2.0)
        for net in pair if optimize else ():
            tandem.torch.optimize(net, (torch.randn(8, 6),))
        return shared, pair

    def test_one_graph(self):
        made = []
        for optimize in (True, False):
            shared, (a, b) = self.pair(optimize)
            optimizer = torch.optim.SGD([shared, *a.first.parameters()], lr=0.1)
            torch.manual_seed(1)
            x = torch.randn(8, 6)
            for _ in range(3):
                optimizer.zero_grad()
                (a(x).sin().sum() + b(x).square().sum() + a(x + 1).sum()).backward()
                optimizer.step()
            made.append((shared, shared.grad, a.first.weight.grad))
        for mine, plain in zip(*made):
            torch.testing.assert_close(mine, plain, atol=1e-4, rtol=1e-4)

    def test_it_is_written_between(self):
        shared, (a, b) = self.pair(optimize=True)
        loss = a(torch.randn(8, 6)).sum()
        with torch.no_grad():
            shared.mul_(2)
        loss = loss + b(torch.randn(8, 6)).sum()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace"):
            loss.backward()

    def test_it_is_moved_between(self):
        shared, (a, _) = self.pair(optimize=True)
        loss = a(torch.randn(8, 6)).sum()
        shared.data = shared.detach() * 2
        loss = loss + a(torch.randn(8, 6)).sum()
        with self.assertRaisesRegex(
            tandem.UnsupportedError, "'shared' shows other memory, with other"
        ):
            loss.backward()


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, x, scale=1.0):
        return self.fc(x) * scale


class ReasonTest(unittest.TestCase):
    """Each call with another value was another warning, with all elements of a
    tensor in it."""

    def test_once_and_short(self):
        x = torch.randn(8, 6)
        net = tandem.torch.optimize(Scaled(), (x,), {"scale": 2.0})
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for i in range(20):
                net(x, scale=torch.randn(8, 3))
                net(x, scale=float(i + 3))
                net(torch.randn(i + 9, 6), scale=2.0)
        texts = [str(w.message) for w in said]
        self.assertEqual(len(texts), 2, texts)
        self.assertRegex(
            texts[0],
            r"'scale' is a tensor, torch.float32\[8, 3\], and was 2.0 when compiled",
        )
        self.assertRegex(texts[1], r"'x' is torch.float32\[9, 6\]")

    def test_refusals_say_their_own_value(self):
        x = torch.randn(8, 6)
        net = tandem.torch.optimize(
            Scaled(), (x,), {"scale": 2.0}, fallback="refuse"
        )
        for scale in (3.0, 4.0):
            with self.assertRaisesRegex(
                tandem.UnsupportedError, f"'scale' is {scale}, and was 2.0"
            ):
                net(x, scale=scale)


class Three(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.l = nn.Linear(3, 2)
        self.register_buffer("b", torch.ones(3))

    def forward(self, q, k, v):
        return self.l(q) - 2 * self.l(k["x"]) * self.b[0] + self.l(v).sin()


class ExamplesTest(unittest.TestCase):
    def test_one_tensor_for_several_arguments(self):
        """An example says nothing of whether later ones are the same, too."""
        x = torch.randn(2, 3, requires_grad=True)
        rows = torch.randn(3, 3)
        plain = Three()
        for name, example in (
            ("one", lambda net: (x, {"x": x}, x)),
            ("views", lambda net: (rows[:2], {"x": rows[1:]}, rows[:2])),
            ("buffer", lambda net: (x[0], {"x": net.b}, net.b)),
        ):
            with self.subTest(name):
                mine = copy.deepcopy(plain)
                args = example(mine)
                tandem.torch.optimize(mine, args, fallback="refuse")
                q, k, v = (torch.randn(args[0].shape) for _ in range(3))
                for net in (mine, plain):
                    net.zero_grad()
                q.requires_grad_(args[0].requires_grad)
                into = [mine(q, {"x": k}, v), plain(q, {"x": k}, v)]
                torch.testing.assert_close(*into)
                grads = []
                for net, out in zip((mine, plain), into):
                    out.square().sum().backward()
                    grads.append([p.grad for p in net.parameters()] + [q.grad])
                    q.grad = None
                torch.testing.assert_close(*grads)


class NothingTest(unittest.TestCase):
    def test_what_has_no_gradient(self):
        x = torch.randn(2, 3)
        for net in (nn.ReLU(), nn.Linear(3, 3).requires_grad_(False)):
            with self.assertRaisesRegex(
                tandem.UsageError, "no result of (ReLU|Linear) has a gradient"
            ):
                tandem.torch.optimize(net, (x,))
            self.assertNotIn("forward", vars(net))
        x.requires_grad_()
        net = tandem.torch.optimize(nn.ReLU(), (x,), fallback="refuse")
        (grad,) = torch.autograd.grad(net(x).sum(), x)
        torch.testing.assert_close(grad, (x > 0).float())


class ChangesTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(8, 6)
        self.mine = Net()
        self.plain = copy.deepcopy(self.mine)
        tandem.torch.optimize(self.mine, (self.x,))

    def changed(self, change, text, fallback=True):
        """After a change both do the same, and the one says why."""
        for net in (self.mine, self.plain):
            torch.manual_seed(1)
            change(net)
        self.compare(text, fallback)

    def compare(self, text="", fallback=True):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            outs = []
            for net in (self.mine, self.plain):
                torch.manual_seed(2)
                outs.append(net(self.x))
                outs[-1].square().sum().backward()
        said = [str(w.message) for w in said if w.category is FallbackWarning]
        self.assertEqual(bool(said), fallback, said)
        if fallback:
            self.assertRegex(said[0], text)
        torch.testing.assert_close(*outs, atol=1e-5, rtol=1e-4)
        for (name, p), q in zip(
            self.mine.named_parameters(), self.plain.parameters()
        ):
            with self.subTest(name):
                torch.testing.assert_close(p.grad, q.grad, atol=1e-3, rtol=1e-3)
        for u, v in zip(self.mine.buffers(), self.plain.buffers()):
            torch.testing.assert_close(u, v)

    def test_nothing(self):
        self.changed(lambda net: None, "", fallback=False)
        for _ in range(2):  # of modes, by turns
            for net in (self.mine, self.plain):
                net.eval()(self.x) if net is self.plain else net.eval()
                with torch.no_grad():
                    net(self.x)
                net.train()
            self.compare(fallback=False)

    def test_a_module_replaced(self):
        self.changed(
            lambda net: net.b.__setitem__(2, nn.Linear(8, 3)),
            r"module '2' of 'b' \(Sequential\) is a Linear.* not the same one",
        )

    def test_a_module_replaced_by_identity(self):
        self.changed(
            lambda net: setattr(net, "norm", nn.Identity()),
            "module 'norm' of the Net is a Identity",
        )

    def test_modules_added_and_taken_out(self):
        self.changed(
            lambda net: net.b.append(nn.Tanh()), "module '3' of 'b'.* was added"
        )
        tandem.torch.optimize(self.mine, (self.x,))
        self.compare(fallback=False)
        self.changed(
            lambda net: net.b.__delitem__(3), "module '3' of 'b'.* was taken out"
        )

    def test_attributes_of_modules(self):
        for name, value in (
            ("eps", 1.0), ("momentum", 1.0), ("track_running_stats", False)
        ):
            with self.subTest(name):
                self.setUp()
                self.changed(
                    lambda net: setattr(net.norm, name, value),
                    rf"'{name}' of 'norm' \(BatchNorm1d\) is {value}",
                )

    def test_the_rate_of_dropout(self):
        self.changed(
            lambda net: setattr(net.drop, "p", 0.5),
            r"'p' of 'drop' \(Dropout\) is 0.5, and was 0.0 when compiled",
        )

    def test_a_flag_that_forward_reads(self):
        self.changed(
            lambda net: setattr(net, "twice", True), "'twice' of the Net is True"
        )
        for net in (self.mine, self.plain):
            net.twice = False
        self.compare(fallback=False)

    def test_contents_of_lists_and_settings(self):
        self.changed(lambda net: net.sizes.append(3.0), "'sizes' of the Net")
        self.setUp()
        self.changed(
            lambda net: setattr(net.config, "shift", 2.0),
            "'config' of the Net .* compiled: 'shift'",
        )

        self.setUp()
        self.changed(
            lambda net: net.table["by"].update(factor=2.0),
            "'table' of the Net .* compiled: 'by'",
        )

    def test_hooks_of_all_modules(self):
        seen = []
        hook = nn.modules.module.register_module_forward_hook(
            lambda module, *rest: seen.append(module)
        )
        self.addCleanup(hook.remove)
        self.compare("hooks of all modules")
        self.assertIn(self.mine.a, seen)

    def test_parameters_of_compiled_ones(self):
        net = tandem.torch.Compiled(tandem.compile(nn.Linear(6, 3), (self.x,)))
        want = net(self.x)
        zeros = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
        got = torch.func.functional_call(net, zeros, (self.x,))
        self.assertFalse(got.any())
        torch.testing.assert_close(net(self.x), want)
        net.weight = nn.Parameter(torch.ones(3, 6))
        torch.testing.assert_close(
            net(self.x), nn.functional.linear(self.x, net.weight, net.bias)
        )
        net.weight = None
        with self.assertRaisesRegex(tandem.UnsupportedError, "'weight'"):
            net(self.x)

    def test_a_tensor_that_is_an_attribute(self):
        self.changed(lambda net: net.scale.fill_(3.0), "'scale'")
        self.setUp()
        self.changed(
            lambda net: setattr(net, "scale", torch.tensor(3.0)), "'scale'"
        )

    def test_an_inner_forward_patched(self):
        def patch(net):
            own = net.a.forward
            net.a.forward = lambda x: own(x) * 2

        self.changed(patch, r"'forward' of 'a' \(Linear\)")

    def test_an_inner_class_replaced(self):
        self.changed(
            lambda net: setattr(net.a, "__class__", Tanh), "class Tanh now"
        )

    def test_a_class_patched(self):
        own = nn.ReLU.forward
        self.addCleanup(setattr, nn.ReLU, "forward", own)
        nn.ReLU.forward = lambda self, x: own(self, x) * 2
        self.compare("forward of the class ReLU")

    def test_parameters_taken_out_and_added(self):
        self.changed(
            lambda net: setattr(net.a, "bias", None), r"'a.bias' was taken out"
        )
        self.setUp()
        self.changed(
            lambda net: setattr(net.c, "bias", nn.Parameter(torch.ones(3))),
            r"'bias' of 'c' \(Linear\) was None",
        )

    def test_what_was_replaced_keeps_its_elements(self):
        old = self.mine.c.weight
        want = old.detach().clone()
        out, _ = self.mine(self.x), self.plain(self.x)
        self.changed(
            lambda net: setattr(net.c, "weight", nn.Parameter(torch.ones(3, 3))),
            "",
            fallback=False,
        )
        torch.testing.assert_close(old.detach(), want, rtol=0, atol=0)
        with self.assertRaisesRegex(RuntimeError, "inplace operation"):
            out.sum().backward()  # by what is gone from the model's memory
        for net in (self.mine, self.plain):
            net.zero_grad()
            net.c.weight = nn.Parameter(want.clone())
        self.compare(fallback=False)

    def test_transforms_of_functions(self):
        call = torch.func.functional_call
        zeros = {n: torch.zeros_like(p) for n, p in self.mine.named_parameters()}
        named = [dict(n.named_parameters()) for n in (self.mine, self.plain)]
        with self.assertWarnsRegex(FallbackWarning, "functional_call"):
            torch.testing.assert_close(
                call(self.mine, zeros, (self.x,)),
                call(self.plain, zeros, (self.x,)),
            )
        self.compare(fallback=False)  # the parameters are there again
        self.mine.eval(), self.plain.eval()  # statistics cannot be written
        with self.assertWarnsRegex(FallbackWarning, "torch.func"):
            got, want = [
                torch.func.grad(lambda q: call(net, q, (self.x,)).sum())(p)
                for net, p in zip((self.mine, self.plain), named)
            ]
        torch.testing.assert_close(got, want)

    def test_a_count_is_said_once(self):
        class Counts(nn.Linear):
            calls = 0

            def forward(self, x):
                self.calls += 1
                return super().forward(x)

        net = tandem.torch.optimize(Counts(6, 3), (self.x,))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            net(self.x[:3]), net(self.x), net(self.x), net(self.x)
        self.assertEqual(len(said), 2, [str(w.message) for w in said])

    def test_a_parameter_that_requires_grad_again(self):
        for net in (self.mine, self.plain):
            net.requires_grad_(False).eval()
            net(self.x)
            net.c.weight = nn.Parameter(net.c.weight.detach().clone())
        with self.assertWarnsRegex(FallbackWarning, "with gradients"):
            out = self.mine(self.x)
        self.assertTrue(out.requires_grad)

    def test_weight_norm(self):
        self.changed(
            lambda net: nn.utils.parametrizations.weight_norm(net.a), "'a'"
        )

    def train(self, net, steps):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            net(self.x).square().mean().backward()
            optimizer.step()

    def test_memory_that_processes_share(self):
        self.train(self.mine, 2), self.train(self.plain, 2)
        self.changed(
            lambda net: net.share_memory(), "'a.weight' is in memory that proc"
        )
        self.train(self.mine, 3), self.train(self.plain, 3)
        self.compare(fallback=False)  # said once
        self.assertTrue(self.mine.a.weight.is_shared())
        # Compiled again it has memory of its own.
        tandem.torch.optimize(self.mine, (self.x,))
        self.train(self.mine, 3), self.train(self.plain, 3)
        self.compare(fallback=False)

    def test_storage_that_is_moved(self):
        # As share_memory() does, whatever the storage is.
        net = tandem.torch.Compiled(
            tandem.compile(nn.Linear(6, 3), (self.x,)), device="cpu"
        )
        for _ in range(3):
            want = nn.functional.linear(self.x, net.weight, net.bias)
            torch.testing.assert_close(net(self.x), want)
            net.share_memory()
            with torch.no_grad():
                net.weight.mul_(2)

    def test_data_of_two_that_is_tied(self):
        for a, b in ("a.bias", "norm.bias"), ("norm.weight", "norm.running_mean"):
            with self.subTest(a):
                self.setUp()
                self.changed(
                    lambda net: setattr(
                        net.get_parameter(a), "data", net.state_dict()[b]
                    ),
                    "show one storage",
                )
                self.train(self.mine, 3), self.train(self.plain, 3)
                self.compare(fallback=False)  # said once

    def test_data_of_two_that_is_tied_in_a_compiled_model(self):
        net = tandem.torch.Compiled(
            tandem.compile(nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6)), (self.x,)),
            device="cpu",
        )
        first, second = (p for n, p in net.named_parameters() if "weight" in n)
        second.data = first.data
        with self.assertRaisesRegex(tandem.UnsupportedError, "show one storage"):
            net(self.x)

    def test_a_weight_that_is_turned(self):
        # The same memory, read otherwise.
        self.changed(
            lambda net: setattr(net.c.weight, "data", net.c.weight.data.T),
            "",
            fallback=False,
        )

    def test_refusing(self):
        tandem.torch.optimize(self.mine, (self.x,), fallback="refuse")
        self.mine.b[1] = nn.Tanh()
        with self.assertRaisesRegex(tandem.UnsupportedError, "module '1' of 'b'"):
            self.mine(self.x)


if __name__ == "__main__":
    unittest.main()
