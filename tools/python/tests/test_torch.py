"""Tensors of PyTorch as inputs, and compiled programs in its autograd. All is
compared with the same computed by PyTorch."""

from __future__ import annotations

import copy
import gc
import pickle
import unittest
import weakref

import numpy as np

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None

import models
import tandem
import tandem.torch

torch.set_num_threads(1)


class Indexed(torch.nn.Module):
    """A table of 7 rows, and an op that is given an index of them."""

    def __init__(self, op):
        super().__init__()
        self.table = torch.nn.Parameter(torch.arange(1.0, 29.0).view(7, 4))
        self.op = op

    def forward(self, i):
        return self.op(self.table, i, i[:, None].expand(-1, 4))


class IndicesTest(unittest.TestCase):
    """Indices that PyTorch refuses gave rows of the table, or none."""

    OPS = {
        "index": lambda t, i, wide: t[i],
        "index_put": lambda t, i, wide: t.index_put((i,), t[:3] * 2),
        "index_fill": lambda t, i, wide: t.index_fill(0, i, 2.0),
        "index_select": lambda t, i, wide: t.index_select(0, i),
        "index_add": lambda t, i, wide: t.index_add(0, i, t[:3]),
        "index_copy": lambda t, i, wide: t.index_copy(0, i, t[:3] * 2),
        "gather": lambda t, i, wide: t.gather(0, wide),
        "take": lambda t, i, wide: t[:, 0].take(i),
        "take_along_dim": lambda t, i, wide: t.take_along_dim(wide, 0),
        "scatter": lambda t, i, wide: t.scatter(0, wide, t[:3] * 2),
        "scatter_add": lambda t, i, wide: t.scatter_add(0, wide, t[:3]),
        "scatter_reduce": lambda t, i, wide: t.scatter_reduce(
            0, wide, t[:3], "sum"
        ),
        "one_hot": lambda t, i, wide: torch.nn.functional.one_hot(i, 7)
        * t.sum(),
        "multi_margin_loss": lambda t, i, wide: (
            torch.nn.functional.multi_margin_loss(t[:3], i)
        ),
        "a slice": lambda t, i, wide: t[i[:1]] * i[1:2],
        "a choice": lambda t, i, wide: t[torch.where(i < 0, 0, i % 7)],
    }

    def test_those_that_pytorch_refuses_are_errors(self):
        for name, op in self.OPS.items():
            plain = Indexed(op)
            mine = tandem.torch.optimize(
                Indexed(op), (torch.tensor([0, 1, 2]),), effort=0
            )
            for index in (-8, -7, -1, 3, 7, 10**9):
                i = torch.tensor([0, index, 2])
                with self.subTest(name, index=index):
                    try:
                        expected = plain(i)
                    except (IndexError, RuntimeError):
                        with self.assertRaises(tandem.UsageError):
                            mine(i)
                    else:
                        torch.testing.assert_close(mine(i), expected)


class TensorsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.step = tandem.Step(
            tandem.compile(models.classifier(), optimizer="adamw:lr=0.01")
        )
        self.x, self.labels = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])

    def test_steps_are_those_of_adamw(self):
        w = torch.tensor(self.step["fc.w"], requires_grad=True)
        b = torch.tensor(self.step["fc.b"], requires_grad=True)
        optimizer = torch.optim.AdamW([w, b], lr=0.01)
        for _ in range(10):
            loss = torch.nn.functional.cross_entropy(
                self.x @ w.T + b, self.labels
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            out = self.step(self.x, self.labels)
            self.assertIsInstance(out.loss, torch.Tensor)
            torch.testing.assert_close(out.loss, loss.detach())
        state = self.step.state_dict("torch")
        torch.testing.assert_close(state["fc.w"], w.detach())
        torch.testing.assert_close(state["fc.b"], b.detach())

    def test_outputs_are_of_the_callers_kind(self):
        labels = self.labels.numpy()
        self.assertIsInstance(self.step(self.x, labels).loss, torch.Tensor)
        self.assertIsInstance(
            self.step(self.x.numpy(), labels).loss, np.ndarray
        )
        logits = self.step.predict(self.x[:3]).logits
        self.assertIsInstance(logits, torch.Tensor)
        self.assertEqual(logits.shape, (3, 3))

    def test_nothing_is_copied_that_fits(self):
        step = tandem.Step(self.step.artifact, copies="refuse")
        step(self.x, self.labels)
        self.assertEqual(step.copied, {})
        with self.assertRaisesRegex(tandem.UsageError, "dense"):
            step(torch.randn(8, 4).T, self.labels)
        with self.assertRaisesRegex(tandem.UsageError, "i32"):
            step(self.x, self.labels.int())
        with self.assertRaisesRegex(tandem.UsageError, "float64"):
            step(self.x.double(), self.labels)
        with self.assertRaisesRegex(tandem.UsageError, "complex64"):
            step(self.x.to(torch.complex64), self.labels)

    def test_smaller_types_and_what_is_not_dense(self):
        step = tandem.Step(self.step.artifact, copies="allow")
        low = self.x.bfloat16()
        torch.testing.assert_close(
            step.evaluate(low, self.labels).loss,
            step.evaluate(low.float(), self.labels).loss,
            rtol=0,
            atol=0,
        )
        with self.assertRaisesRegex(tandem.UsageError, "to_dense"):
            step(self.x.to_sparse(), self.labels)

    def test_a_view_that_says_minus(self):
        x = torch.randn(4, 8, dtype=torch.complex64).conj().imag
        self.assertTrue(x.is_neg())
        loss = self.step.evaluate(x, self.labels).loss
        same = self.step.evaluate(x.resolve_neg().clone(), self.labels).loss
        torch.testing.assert_close(loss, same)
        self.step["fc.b"] = x[0, :3]
        torch.testing.assert_close(
            torch.tensor(self.step["fc.b"]), x[0, :3].resolve_neg()
        )

    def test_any_strides(self):
        step = tandem.Step(self.step.artifact, copies="allow")
        want = step.evaluate(self.x, self.labels).loss
        for x in (
            self.x.T.contiguous().T,
            torch.nn.functional.pad(self.x, (3, 2))[:, 3:11],
        ):
            torch.testing.assert_close(step.evaluate(x, self.labels).loss, want)
        row = self.x[:1].expand(4, 8)
        torch.testing.assert_close(
            step.evaluate(row, self.labels).loss,
            step.evaluate(row.contiguous(), self.labels).loss,
        )

    def test_inputs_that_require_grad_and_outputs_that_outlive(self):
        x = self.x.clone().requires_grad_()
        logits = self.step(x, self.labels).logits
        self.assertFalse(logits.requires_grad)
        kept = logits.clone()
        self.step(x, self.labels)
        del self.step
        gc.collect()
        torch.testing.assert_close(logits, kept, rtol=0, atol=0)

    def test_views_of_inputs(self):
        step = tandem.Step(tandem.compile(models.showing()))
        x = torch.arange(6.0).reshape(2, 3)
        flat = step.evaluate(x).flat
        self.assertEqual(flat.data_ptr(), x.data_ptr())
        del x, step
        gc.collect()
        self.assertEqual(flat.tolist(), [0, 1, 2, 3, 4, 5])

    def test_bfloat16(self):
        step = tandem.Step(tandem.compile(models.of_types("bf16")))
        x = torch.arange(6).reshape(2, 3).bfloat16()
        self.assertTrue(torch.equal(step.evaluate(x).y, x + x))

    def test_a_state_dict_of_a_module(self):
        module = torch.nn.Module()
        module.fc = torch.nn.Module()
        module.fc.w = torch.nn.Parameter(torch.randn(3, 8))
        module.fc.b = torch.nn.Parameter(torch.randn(3))
        step = tandem.Step(self.step.artifact, module.state_dict())
        torch.testing.assert_close(
            step.evaluate(self.x, self.labels).logits,
            (self.x @ module.fc.w.T + module.fc.b).detach(),
        )
        step(self.x, self.labels)
        module.load_state_dict(step.state_dict("torch"))
        self.assertTrue(
            np.array_equal(module.fc.w.detach().numpy(), step["fc.w"])
        )


class CompiledTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.net, self.w, self.b = self.make(torch.float32, "f32")
        self.x = torch.randn(4, 8)

    def make(self, dtype, name):
        w, b = torch.randn(3, 8, dtype=dtype), torch.randn(3, dtype=dtype)
        net = tandem.torch.Compiled(
            tandem.compile(models.layers(name)),
            {"fc.w": w, "fc.b": b, "calls": torch.zeros(())},
        )
        return net, w.requires_grad_(), b.requires_grad_()

    def plain(self, x):
        h = x @ self.w.T + self.b
        return torch.tanh(h), h

    def compare(self, loss):
        """Gradients of a function of net and x."""
        mine = self.x.clone().requires_grad_()
        theirs = self.x.clone().requires_grad_()
        self.net.zero_grad()
        self.w.grad = self.b.grad = None
        loss(self.net, mine).backward()
        loss(self.plain, theirs).backward()
        for a, b in (
            (self.net.fc.w.grad, self.w.grad),
            (self.net.fc.b.grad, self.b.grad),
            (mine.grad, theirs.grad),
        ):
            torch.testing.assert_close(a, b)

    def test_names(self):
        self.assertEqual(
            [n for n, _ in self.net.named_parameters()], ["fc.w", "fc.b"]
        )
        self.assertEqual(
            sorted(self.net.state_dict()), ["calls", "fc.b", "fc.w"]
        )

    def test_gradients(self):
        self.compare(lambda net, x: net(x)[0].sum())
        self.compare(lambda net, x: net(x)[1].pow(2).mean())
        self.compare(lambda net, x: net(x)[0].sum() + net(x)[1].pow(3).sum())
        self.compare(lambda net, x: sum(net(x)[0][i, 0] * i for i in range(4)))

    def test_several_forwards_before_one_backward(self):
        def loss(net, x):
            outs = [net(x * k)[0] for k in range(1, 5)]
            return sum(o.sum() * k for k, o in enumerate(outs))

        self.compare(loss)

    def test_one_output_feeds_the_next_call(self):
        self.compare(
            lambda net, x: net(torch.cat([net(x)[0], x[:, 3:]], 1))[0].sum()
        )

    def test_gradcheck(self):
        net, _, _ = self.make(torch.float64, "f64")
        x = torch.randn(4, 8, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(lambda x: net(x), (x,)))

    def test_a_graph_is_used_once_or_retained(self):
        loss = self.net(self.x)[0].sum()
        loss.backward(retain_graph=True)
        first = self.net.fc.w.grad.clone()
        loss.backward()
        torch.testing.assert_close(self.net.fc.w.grad, 2 * first)
        with self.assertRaisesRegex(RuntimeError, "second time"):
            loss.backward()

    def test_writes_between_forward_and_backward_are_seen(self):
        x = self.x.clone()
        for target in (lambda y: self.net.fc.w, lambda y: x, lambda y: y):
            y = self.net(x)[0]
            with torch.no_grad():
                target(y).add_(1)
            with self.assertRaisesRegex(RuntimeError, "inplace"):
                y.sum().backward()

    def test_second_derivatives_are_refused(self):
        x = self.x.clone().requires_grad_()
        y = self.net(x)[0].sum()
        (grad,) = torch.autograd.grad(y, x, create_graph=True)
        with self.assertRaisesRegex(tandem.UnsupportedError, "create_graph"):
            (y + grad.pow(2).sum()).backward()

    def test_hooks_and_frozen_parameters(self):
        seen = []
        self.net.fc.w.register_hook(lambda g: seen.append(g) or g * 2)
        self.net.fc.b.requires_grad_(False)
        self.net(self.x)[1].sum().backward()
        self.assertIsNone(self.net.fc.b.grad)
        torch.testing.assert_close(self.net.fc.w.grad, 2 * seen[0])

    def test_buffers_are_updated_in_place(self):
        before = self.net.calls._version
        pointer = self.net.calls.data_ptr()
        self.net(self.x)
        self.net(self.x)
        self.assertEqual(float(self.net.calls), 2)
        self.assertEqual(self.net.calls.data_ptr(), pointer)
        self.assertGreater(self.net.calls._version, before)
        self.net.calls.zero_()
        self.net(self.x)
        self.assertEqual(float(self.net.calls), 1)

    def test_modes(self):
        with torch.no_grad():
            y = self.net(self.x)[0]
        self.assertFalse(y.requires_grad)
        self.assertEqual(float(self.net.calls), 1)
        self.net.eval()
        y = self.net(self.x)[0]
        self.assertFalse(y.requires_grad)
        self.assertEqual(float(self.net.calls), 1)
        torch.testing.assert_close(y, self.plain(self.x)[0].detach())
        with self.assertRaisesRegex(tandem.UnsupportedError, "eval"):
            self.net(self.x.requires_grad_())

    def test_optimizers_train_it(self):
        plain = torch.optim.AdamW([self.w, self.b], lr=0.1)
        mine = torch.optim.AdamW(self.net.parameters(), lr=0.1)
        for _ in range(20):
            for net, optimizer in ((self.net, mine), (self.plain, plain)):
                optimizer.zero_grad()
                (net(self.x)[0] - 0.5).pow(2).mean().backward()
                optimizer.step()
        torch.testing.assert_close(self.net.fc.w, self.w, check_stride=False)
        # What was learnt is what is saved and loaded.
        state = {k: v.clone() for k, v in self.net.state_dict().items()}
        other, _, _ = self.make(torch.float32, "f32")
        other.load_state_dict(state)
        torch.testing.assert_close(other(self.x)[0], self.net(self.x)[0])

    def test_parameters_that_move(self):
        self.net.fc.w.data = self.w.detach().clone() * 2
        self.w.data *= 2
        self.compare(lambda net, x: net(x)[0].sum())
        self.net.load_state_dict(
            {"fc.w": self.w, "fc.b": self.b, "calls": torch.zeros(())}
        )
        self.compare(lambda net, x: net(x)[0].sum())
        with self.assertRaisesRegex(tandem.UsageError, "float64"):
            self.net.double()(self.x.double())

    def test_copies_and_pickles_are_refused(self):
        with self.assertRaises(tandem.UnsupportedError):
            copy.deepcopy(self.net)
        with self.assertRaises(tandem.UnsupportedError):
            pickle.dumps(self.net)

    def test_memory_is_given_back(self):
        net = weakref.ref(self.net.__dict__["_core"].model)
        y = self.net(self.x)[0]
        w = self.net.fc.w
        value = w.detach().clone()
        del self.net
        gc.collect()
        y.sum().backward()
        self.assertEqual(w.grad.shape, (3, 8))
        del y
        gc.collect()
        self.assertIsNone(net())
        torch.testing.assert_close(w.detach(), value, rtol=0, atol=0)

    def test_an_artifact_without_a_backward_is_refused(self):
        artifact = tandem.compile(models.layers(), inference=True)
        with self.assertRaisesRegex(tandem.UsageError, "inference"):
            tandem.torch.Compiled(artifact)


if __name__ == "__main__":
    unittest.main()
