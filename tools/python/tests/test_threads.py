"""Exports in several threads: each traced the other's fake tensors, said what
was not so, and left them in the module for good."""

from __future__ import annotations

import copy
import functools
import threading
import time
import unittest
import warnings

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None

import tandem
import tandem.torch

torch.set_num_threads(1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(6, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.b = torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.b(torch.tanh(self.norm(self.a(x))))


#: Called by each forward that is traced.
look = None


class Seen(torch.nn.Module):
    """Looks about while it is traced."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        if look is not None and torch.compiler.is_exporting():
            look(self)
        return self.inner(x) * self.scale


def in_threads(count, call):
    """Calls in several threads at once; the errors."""
    errors = []
    ready = threading.Barrier(count)

    def run(number):
        try:
            ready.wait()
            call(number)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return errors


class ThreadsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(5, 6)
        self.addCleanup(self.look, None)

    def look(self, function):
        global look
        look = function

    def check_real(self, module):
        for name, tensor in module.state_dict(keep_vars=True).items():
            self.assertIn(type(tensor), (torch.Tensor, torch.nn.Parameter), name)

    def seen(self, fallback="refuse"):
        x = torch.randn(2, 4)
        return tandem.torch.optimize(Seen(), (x,), effort=0, fallback=fallback), x

    def test_the_first_calls_in_eval(self):
        net = Net()
        want = copy.deepcopy(net).eval()(self.x)
        net = tandem.torch.optimize(net, (self.x,), effort=0, fallback="refuse")
        before = net.state_dict(keep_vars=True)
        net.eval()
        made = {}

        def call(number):
            with torch.no_grad():
                made[number] = net(self.x)

        self.assertEqual(in_threads(4, call), [])
        for y in made.values():
            torch.testing.assert_close(y, want)
        self.check_real(net)
        for name, tensor in net.state_dict(keep_vars=True).items():
            self.assertIs(tensor, before[name])

    def test_the_module_has_its_tensors_while_it_is_exported_in_eval(self):
        net, x = self.seen()
        own = dict(net.named_parameters())
        found = []

        def compare(traced):
            found.append(traced.inner is net.inner)
            found.append(any(p is not own[n] for n, p in net.named_parameters()))
            found.append(type(net.scale) is not torch.Tensor)

        self.look(compare)
        with torch.no_grad():
            net.eval()(x)
        self.assertEqual(found, [False] * 3)

    def test_modules_are_optimized_one_after_the_other(self):
        now, most = [], []

        def count(traced):
            now.append(None)
            most.append(len(now))
            time.sleep(0.05)
            now.pop()

        self.look(count)
        x = torch.randn(2, 4)
        nets = [Seen() for _ in range(3)]

        def call(number):
            tandem.torch.optimize(nets[number], (x,), effort=0)
            with torch.no_grad():
                nets[number].eval()(x)

        self.assertEqual(in_threads(3, call), [])
        self.assertEqual(most, [1] * 6)
        for net in nets:
            plain = tandem.torch.restore(copy.deepcopy(net))
            self.check_real(net)
            torch.testing.assert_close(net.train()(x), plain(x))

    def test_other_modules_are_called_meanwhile(self):
        x = torch.randn(2, 4)
        net, _ = self.seen(fallback="warn")
        other = tandem.torch.optimize(Net(), (self.x,), effort=0)
        plain = copy.deepcopy(net)
        want = [plain(x), plain(x[:1])]
        found = []

        def call(number):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for given, then in zip((x, x[:1]), want):
                    y = net(given)  # the second is PyTorch's own
                    y.sum().backward()
                    torch.testing.assert_close(y, then)

        def meanwhile(module, args):
            if torch.compiler.is_exporting() and not found:
                found.extend([None, *in_threads(2, call)])

        other.a.register_forward_pre_hook(meanwhile)
        tandem.torch.optimize(other, (self.x,), effort=0)
        self.assertEqual(found, [None])

    def test_a_failed_export_leaves_the_module_as_it_was(self):
        def fail(traced):
            traced._parameters["extra"] = traced.inner.weight
            traced._buffers["scale"] = traced.scale * 2
            raise ValueError("no")

        net = Seen()
        before = net.state_dict(keep_vars=True)
        self.look(fail)
        for compile_it in (tandem.torch.optimize, tandem.compile):
            with self.assertRaisesRegex(tandem.UnsupportedError, "cannot export"):
                compile_it(net, (torch.randn(2, 4),))
            after = net.state_dict(keep_vars=True)
            self.assertEqual(list(after), list(before))
            for name, tensor in after.items():
                self.assertIs(tensor, before[name])

    def test_ways_to_a_submodule(self):
        """A copy is exported in eval(), so each of them has to lead there."""
        x = torch.randn(2, 4)
        for name, way, is_known in (
            ("a list", lambda m: [m.inner], True),
            ("a dict of tuples", lambda m: {0: (m.inner, 1)}, True),
            ("a method", lambda m: m.inner.forward, True),
            ("a partial", lambda m: functools.partial(m.inner), True),
            ("a closure", lambda m: lambda x: m.inner(x), False),
        ):
            with self.subTest(name):
                net = Ways(way)
                plain = copy.deepcopy(net)
                net = tandem.torch.optimize(net, (x,), effort=0).eval()
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    with torch.no_grad():
                        y = net(x)
                torch.testing.assert_close(y, plain(x).detach())
                texts = [str(w.message) for w in said]
                self.assertEqual(not any("closure" in t for t in texts), is_known)


class Ways(torch.nn.Module):
    def __init__(self, way):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.way = way(self)

    def forward(self, x):
        way = self.way
        if isinstance(way, list):
            return way[0](x)
        return way[0][0](x) if isinstance(way, dict) else way(x)


if __name__ == "__main__":
    unittest.main()
