"""Modules of PyTorch, compiled: `tandem.compile(module, ...)`, and
`tandem.torch.optimize`, whose every call is compared with the module's own."""

from __future__ import annotations

import copy
import gc
import pickle
import unittest
import warnings
import weakref

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None

import models
import tandem
import tandem.torch
from tandem.torch import FallbackWarning

torch.set_num_threads(1)

setUpModule = models.needs_archives


class Net(torch.nn.Module):
    """Convolution, batch norm, a constant buffer, several outputs."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 5)
        self.register_buffer("mask", torch.ones(5), persistent=False)

    def forward(self, x, scale=None, *, power=2):
        h = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        if scale is not None:
            h = h * scale
        return {"y": self.head(h) * self.mask, "h": h**power, "none": None}


def loss_of(out):
    return out["y"].sin().sum() + out["h"].mean()


class OptimizeTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(4, 3, 6, 6)
        self.mine = Net()
        self.plain = copy.deepcopy(self.mine)
        tandem.torch.optimize(self.mine, (self.x,))
        catcher = warnings.catch_warnings()
        catcher.__enter__()
        self.addCleanup(catcher.__exit__, None, None, None)
        warnings.simplefilter("error", FallbackWarning)

    def assert_same(self, a=None, b=None, grads=False):
        a, b = a or self.mine, b or self.plain
        for (name, p), q in zip(a.named_parameters(), b.parameters()):
            with self.subTest(name):
                torch.testing.assert_close(
                    p.grad if grads else p,
                    q.grad if grads else q,
                    atol=1e-5,
                    rtol=1e-4,
                )
        for u, v in zip(a.buffers(), b.buffers()):
            torch.testing.assert_close(u, v)

    def backward(self, *args, **kwargs):
        for net in (self.mine, self.plain):
            net.zero_grad()
            loss_of(net(*args, **kwargs)).backward()
        self.assert_same(grads=True)

    def test_it_is_the_module_itself(self):
        net = Net()
        parameters = list(net.parameters())
        self.assertIs(tandem.torch.optimize(net, (self.x,)), net)
        for a, b in zip(net.parameters(), parameters):
            self.assertIs(a, b)
        self.assertEqual(list(net.state_dict()), list(Net().state_dict()))

    def test_outputs_and_gradients(self):
        out, want = self.mine(self.x), self.plain(self.x)
        self.assertEqual(list(out), ["y", "h", "none"])
        self.assertIsNone(out["none"])
        torch.testing.assert_close(out["y"], want["y"])
        torch.testing.assert_close(out["h"], want["h"])
        self.backward(self.x)

    def test_a_loop_stays_as_it_is(self):
        pairs = [
            (net, torch.optim.AdamW(net.parameters(), lr=0.01))
            for net in (self.mine, self.plain)
        ]
        for i in range(6):
            for net, optimizer in pairs:
                loss_of(net(self.x * (i + 1))).backward()
                if i % 2:  # two batches for an update
                    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                    optimizer.step()
                    optimizer.zero_grad()
        self.assert_same()
        for net, _ in pairs:
            net.eval()
        with torch.no_grad():
            torch.testing.assert_close(
                self.mine(self.x)["y"],
                self.plain(self.x)["y"],
                atol=1e-4,
                rtol=1e-4,
            )

    def test_what_nothing_follows_from(self):
        class Unused(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.ones(3))
                self.unused = torch.nn.Parameter(torch.ones(2))

            def forward(self, x, y):
                return self.w * x.detach() * torch.tensor(2.0)

        net = tandem.torch.optimize(
            Unused(),
            (torch.ones(3, requires_grad=True), torch.ones(1)),
            fallback="refuse",
        )
        x = torch.full((3,), 2.0, requires_grad=True)
        net(x, torch.ones(1)).sum().backward()
        torch.testing.assert_close(net.w.grad, torch.full((3,), 4.0))
        self.assertIsNone(net.unused.grad)
        self.assertIsNone(x.grad)

    def test_several_calls_before_one_backward(self):
        for net in (self.mine, self.plain):
            net.zero_grad()
            sum(loss_of(net(self.x + i)) * i for i in range(1, 4)).backward()
        self.assert_same(grads=True)

    def test_gradients_of_inputs(self):
        x = self.x.clone().requires_grad_()
        net = tandem.torch.optimize(Net(), (x,), fallback="refuse")
        plain = copy.deepcopy(net)
        got, want = (
            torch.autograd.grad(loss_of(f(x)), x)[0] for f in (net, plain)
        )
        torch.testing.assert_close(got, want)
        # Compiled without: PyTorch's own.
        with self.assertWarnsRegex(FallbackWarning, "'x' requires grad"):
            torch.autograd.grad(loss_of(self.mine(x)), x)

    def test_arguments_by_name(self):
        scale = torch.rand(4, 4)
        named = {"scale": scale, "power": 3}
        net = tandem.torch.optimize(copy.deepcopy(self.plain), (self.x,), named)
        torch.testing.assert_close(
            net(self.x, **named)["h"], self.plain(self.x, **named)["h"]
        )
        with self.assertWarnsRegex(FallbackWarning, "was 3"):
            net(self.x, scale=scale, power=2)

    def test_no_grad_and_eval(self):
        with torch.no_grad():
            for net in (self.mine, self.plain):
                self.assertFalse(net(self.x)["y"].requires_grad)
        self.assert_same()  # the statistics moved
        for net in (self.mine, self.plain):
            net.eval()
        with torch.no_grad():
            for factor in (1, 2, 3):  # the first one is PyTorch's own
                torch.testing.assert_close(
                    self.mine(self.x * factor)["y"],
                    self.plain(self.x * factor)["y"],
                )
        self.assert_same()
        with self.assertWarnsRegex(FallbackWarning, r"eval\(\) with gradients"):
            out = self.mine(self.x)
        self.assertTrue(out["y"].requires_grad)
        self.mine.train()
        self.mine.norm.eval()
        with self.assertWarnsRegex(FallbackWarning, "otherwise than when"):
            self.mine(self.x)

    def test_a_module_in_eval(self):
        net = tandem.torch.optimize(self.plain.eval(), (self.x,))
        plain = copy.deepcopy(net)
        for f in (net, plain):
            f.zero_grad()
            loss_of(f(self.x)).backward()
        self.assert_same(net, plain, grads=True)
        with torch.no_grad():
            torch.testing.assert_close(net(self.x)["y"], plain(self.x)["y"])

    def test_what_is_pytorchs_own(self):
        with self.assertWarnsRegex(FallbackWarning, r"\[3, 3, 6, 6\]") as got:
            out = self.mine(self.x[:3])
        self.assertEqual(got.filename, __file__)
        torch.testing.assert_close(out["y"], self.plain(self.x[:3])["y"])
        self.assert_same()
        with self.assertWarnsRegex(FallbackWarning, "float64"):
            with self.assertRaises(RuntimeError):
                self.mine(self.x.double())
        with self.assertWarnsRegex(FallbackWarning, "autocast"):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                self.mine(self.x)
        seen = []
        hook = self.mine.head.register_forward_hook(lambda *a: seen.append(1))
        with self.assertWarnsRegex(FallbackWarning, "hook"):
            self.mine(self.x)
        self.assertEqual(seen, [1])
        hook.remove()
        self.mine.mask[0] = 0
        with self.assertWarnsRegex(FallbackWarning, "'mask'"):
            self.assertEqual(float(self.mine(self.x)["y"][0, 0]), 0)

    def test_refusing(self):
        net = tandem.torch.optimize(Net(), (self.x,), fallback="refuse")
        with self.assertRaisesRegex(tandem.UnsupportedError, "'x'"):
            net(self.x[:2])
        for options in ({"loss": "y"}, {"optimizer": "sgd:lr=1"}):
            with self.assertRaisesRegex(tandem.UsageError, "PyTorch's here"):
                tandem.torch.optimize(Net(), (self.x,), **options)

    def test_hooks_of_the_module_and_of_parameters(self):
        seen = []
        self.mine.register_forward_hook(lambda *a: seen.append("forward"))
        self.mine.head.weight.register_hook(lambda g: seen.append("grad"))
        loss_of(self.mine(self.x)).backward()
        self.assertEqual(seen, ["forward", "grad"])

    def test_a_module_of_optimized_ones(self):
        inner = tandem.torch.optimize(torch.nn.Linear(3, 3), torch.randn(2, 3))
        outer = torch.nn.Sequential(inner, torch.nn.Tanh())
        x = torch.randn(4, 3)
        with self.assertWarnsRegex(FallbackWarning, "input"):
            want = outer(x)
        tandem.torch.optimize(outer, x)
        torch.testing.assert_close(outer(x), want)
        self.assertNotIn("forward", vars(inner))

    def test_layouts_and_inference_mode(self):
        x = self.x.to(memory_format=torch.channels_last)
        self.backward(x)
        with torch.inference_mode():
            torch.testing.assert_close(
                self.mine(self.x)["y"], self.plain(self.x)["y"]
            )
        self.assert_same()

    def test_frozen_parameters(self):
        for net in (self.mine, self.plain):
            net.conv.weight.requires_grad_(False)
            loss_of(net(self.x)).backward()
        self.assertIsNone(self.mine.conv.weight.grad)
        torch.testing.assert_close(
            self.mine.head.weight.grad, self.plain.head.weight.grad
        )
        net = Net()
        net.conv.weight.requires_grad_(False)
        tandem.torch.optimize(net, (self.x,))
        net(self.x)
        net.conv.weight.requires_grad_(True)
        with self.assertWarnsRegex(FallbackWarning, "'conv.weight'"):
            loss_of(net(self.x)).backward()
        self.assertIsNotNone(net.conv.weight.grad)

    def test_parameters_are_loaded_replaced_and_moved(self):
        other = Net()
        self.plain.load_state_dict(other.state_dict())
        self.mine.load_state_dict(other.state_dict())
        self.backward(self.x)
        self.plain.load_state_dict(Net().state_dict(), assign=True)
        self.mine.load_state_dict(
            copy.deepcopy(self.plain.state_dict()), assign=True
        )
        self.backward(self.x)
        for net in (self.mine, self.plain):
            net.head.weight = torch.nn.Parameter(torch.ones(5, 4))
            net.head.bias.data = torch.ones(5)
            net.float()
        self.backward(self.x)

    def test_copies_are_pytorchs_own(self):
        other = copy.deepcopy(self.mine)
        want = self.plain(self.x)["y"]
        torch.testing.assert_close(other(self.x)["y"], want)
        torch.testing.assert_close(self.mine(self.x)["y"], want)
        with torch.no_grad():
            other.head.weight.zero_()
        self.assertGreater(float(self.mine.head.weight.detach().abs().sum()), 0)
        with self.assertRaisesRegex(tandem.UnsupportedError, "restore"):
            pickle.dumps(self.mine)
        tandem.torch.restore(self.mine)
        self.assertNotIn("forward", vars(self.mine))
        pickle.loads(pickle.dumps(self.mine))
        self.backward(self.x)

    def test_second_derivatives_are_refused(self):
        loss = loss_of(self.mine(self.x))
        grads = torch.autograd.grad(
            loss, list(self.mine.parameters()), create_graph=True
        )
        with self.assertRaisesRegex(tandem.UnsupportedError, "create_graph"):
            (loss + sum(g.pow(2).sum() for g in grads)).backward()

    def test_gradcheck(self):
        net = torch.nn.Sequential(
            torch.nn.Linear(5, 4),
            torch.nn.Tanh(),
            torch.nn.LayerNorm(4),
            torch.nn.Linear(4, 2),
        ).double()
        x = torch.randn(3, 5, dtype=torch.double, requires_grad=True)
        tandem.torch.optimize(net, (x,), fallback="refuse")
        self.assertTrue(torch.autograd.gradcheck(net, (x,)))

    def test_one_tensor_with_two_names(self):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.nn.Embedding(20, 8)
                self.out = torch.nn.Linear(8, 20, bias=False)
                self.out.weight = self.table.weight

            def forward(self, i):
                return self.out(torch.tanh(self.table(i)))

        mine, i = Tied(), torch.randint(0, 20, (4, 5))
        plain = copy.deepcopy(mine)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tandem.CompilerWarning)
            tandem.torch.optimize(mine, (i,), fallback="refuse")
        for net in (mine, plain):
            optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
            for _ in range(3):
                optimizer.zero_grad()
                net(i).pow(2).mean().backward()
                optimizer.step()
        torch.testing.assert_close(mine.table.weight, plain.table.weight)
        self.assertIs(mine.table.weight, mine.out.weight)

    def test_a_loss_beside_other_outputs(self):
        class WithLoss(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(3, 2)

            def forward(self, x):
                y = self.fc(x)
                return {"loss": y.pow(2).mean(), "y": y}

        mine, x = WithLoss(), torch.randn(4, 3)
        plain = copy.deepcopy(mine)
        tandem.torch.optimize(mine, (x,))
        for net in (mine, plain):
            net(x)["loss"].backward()
        self.assert_same(mine, plain, grads=True)
        for net in (mine, plain):
            net.zero_grad()
            out = net(x)
            (out["loss"] + out["y"].sum()).backward()
        self.assert_same(mine, plain, grads=True)

    def test_outputs_that_are_views_constants_and_integers(self):
        class Many(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.randn(2, 3))
                self.register_buffer("n", torch.arange(2.0))

            def forward(self, x):
                y = x * self.w
                return [
                    x.reshape(6), self.w, y, y.mT, (y, x), self.n,
                    x.detach(), x > 0, 3, y.argmax(), y,
                ]

        def loss(out):
            return (
                out[0].sin().sum()
                + (out[1] ** 2).sum()
                + (out[2] * out[3].mT).sum()
                + out[4][0].sum() * 2
                + out[4][1].cos().sum()
                + out[10].exp().sum()
            )

        x = torch.randn(2, 3, requires_grad=True)
        mine = Many()
        plain = copy.deepcopy(mine)
        tandem.torch.optimize(mine, (x,), fallback="refuse")
        leaves = torch.utils._pytree.tree_leaves
        for a, b in zip(leaves(mine(x)), leaves(plain(x))):
            if isinstance(b, torch.Tensor):
                torch.testing.assert_close(a, b)
                self.assertEqual(a.requires_grad, b.requires_grad)
            else:
                self.assertEqual(a, b)
        got = torch.autograd.grad(loss(mine(x)), [x, mine.w])
        want = torch.autograd.grad(loss(plain(x)), [x, plain.w])
        torch.testing.assert_close(got, want)

    def test_buffers_that_forwards_write(self):
        class Keeps(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.ones(3))
                self.register_buffer("last", torch.zeros(4, 3))

            def forward(self, x):
                with torch.no_grad():
                    self.last.copy_(x)
                return (x * self.w + self.last).sum(0)

        mine, x = Keeps(), torch.randn(4, 3)
        plain = copy.deepcopy(mine)
        tandem.torch.optimize(mine, (x,), fallback="refuse")
        for net in (mine, plain):
            (net(x).sum() + net(x * 2).pow(2).sum()).backward()
        self.assert_same(mine, plain, grads=True)

    def test_what_it_held_is_freed(self):
        core = weakref.ref(vars(self.mine)["forward"].core.model)
        parameter = self.mine.head.weight
        value = parameter.detach().clone()
        out = self.mine(self.x)
        del self.mine
        gc.collect()
        loss_of(out).backward()
        self.assertIsNotNone(parameter.grad)
        del out
        gc.collect()
        self.assertIsNone(core())
        torch.testing.assert_close(parameter.detach(), value, rtol=0, atol=0)

    def test_memory_does_not_grow(self):
        import os

        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        def calls(count):
            for _ in range(count):
                loss_of(self.mine(self.x)).backward()
            gc.collect()
            return resident()

        before = calls(200)
        self.assertLess(calls(2000) - before, 4 << 20)


class CompileTest(unittest.TestCase):
    def test_a_module_is_trained(self):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(6, 8, bias=False),
            torch.nn.BatchNorm1d(8),
            torch.nn.ReLU(),
            torch.nn.Linear(8, 3),
        )
        x, labels = torch.randn(5, 6), torch.tensor([0, 1, 2, 1, 0])
        artifact = tandem.compile(
            net,
            (x,),
            loss="cross_entropy:output,labels",
            optimizer="adamw:lr=0.01",
        )
        step = tandem.Step(artifact)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        for _ in range(10):
            loss = torch.nn.functional.cross_entropy(net(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.testing.assert_close(step(x, labels).loss, loss.detach())
        state = step.state_dict("torch")
        self.assertEqual(sorted(state), sorted(net.state_dict()))
        other = copy.deepcopy(net)
        other.load_state_dict(state)
        net.eval(), other.eval()
        torch.testing.assert_close(other(x), net(x), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(
            step.evaluate(x, labels).output, net(x).detach(), atol=1e-4,
            rtol=1e-4,
        )

    def test_what_weights_are_makes_no_other_artifact(self):
        x = torch.randn(2, 3)
        nets = [torch.nn.Linear(3, 2) for _ in range(2)]
        artifacts = [tandem.compile(net, (x,)) for net in nets]
        self.assertEqual(artifacts[0].path, artifacts[1].path)
        for net, artifact in zip(nets, artifacts):
            out = tandem.Step(artifact).evaluate(x)
            torch.testing.assert_close(out.output, net(x).detach())

    def test_operators_that_are_not_known_are_taken_apart(self):
        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(3, 4, bias=False)
                self.norm = torch.nn.BatchNorm1d(4)

            def forward(self, x, y):
                h = self.norm(self.inner(x)) * torch.logspace(0, 1, 4)
                return {"loss": (h - y).square().mean(), "rows": h}

        torch.manual_seed(0)
        net = Scaled()
        x, y = torch.randn(5, 3), torch.randn(5, 4)
        nets = [copy.deepcopy(net), tandem.torch.optimize(net, (x, y))]
        step = tandem.Step(
            tandem.compile(nets[0], (x, y), loss="loss", optimizer="sgd:lr=0.1")
        )
        want, got = [n(x, y) for n in nets]
        torch.testing.assert_close(step(x, y).loss, want["loss"].detach())
        torch.testing.assert_close(got, want)
        for out in (want, got):
            (out["loss"] + (out["rows"] * y).sum()).backward()
        for a, b in zip(nets[0].parameters(), nets[1].parameters()):
            torch.testing.assert_close(b.grad, a.grad, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(
            nets[1].norm.running_mean, nets[0].norm.running_mean
        )

    def test_operators_that_are_known_are_not_decomposed(self):
        class Losses(torch.nn.Module):
            def forward(self, x):
                f = torch.nn.functional
                # This one is decomposed. Gradients of the others are no numbers
                # at 200, and at infinity, of what PyTorch decomposes them into.
                hinge = f.hinge_embedding_loss(x, -torch.ones_like(x))
                huber = f.huber_loss(x, torch.zeros_like(x), reduction="sum")
                return f.softplus(x).sum(), f.celu(x).sum(), huber, hinge

        x = torch.tensor([0.5, -2.0, 200.0, float("inf"), -float("inf")])
        net = Losses()
        made = tandem.torch.optimize(
            copy.deepcopy(net), (x.clone().requires_grad_(),), fallback="refuse"
        )
        for i in range(4):
            leaves = [x.clone().requires_grad_() for _ in range(2)]
            for one, leaf in zip((net, made), leaves):
                one(leaf)[i].backward()
            torch.testing.assert_close(leaves[1].grad, leaves[0].grad)

    def test_what_is_refused_after_all_is_said_of_the_operators_written(self):
        class Wide(torch.nn.Module):
            def forward(self, x):
                return torch.logspace(0, 1, 4).sum() + x.nonzero().sum()

        with self.assertRaisesRegex(
            tandem.UnsupportedError, "'aten.logspace'(.|\n)*run_decompositions"
        ) as caught:
            tandem.compile(Wide(), (torch.ones(2),))
        # One of the two has a decomposition, and is not what is in the way.
        rest = str(caught.exception).partition("decomposes these into")[2]
        self.assertIn("'aten.nonzero'", rest)
        self.assertNotIn("'aten.logspace'", rest)

    def test_two_parameters_on_one_storage_are_no_tied_one(self):
        def net():
            return torch.nn.Sequential(
                torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            )

        x = torch.randn(2, 3)
        two = net()
        two[1].weight.data = two[0].weight.data
        with self.assertRaisesRegex(tandem.UnsupportedError, "two parameters"):
            tandem.compile(two, (x,))
        one = net()
        one[1].weight = one[0].weight
        step = tandem.Step(tandem.compile(one, (x,)))
        one.load_state_dict(step.state_dict("torch"))

    def test_mistakes(self):
        with self.assertRaisesRegex(tandem.UsageError, "example"):
            tandem.compile(torch.nn.Linear(3, 2))

        class Branches(torch.nn.Module):
            def forward(self, x):
                return x if x.sum() > 0 else -x

        with self.assertRaisesRegex(tandem.UnsupportedError, "Branches"):
            tandem.compile(Branches(), (torch.ones(2),))


if __name__ == "__main__":
    unittest.main()
