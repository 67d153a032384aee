"""Arrays of JAX as inputs and outputs of steps."""

from __future__ import annotations

import gc
import os
import unittest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    raise unittest.SkipTest("no JAX") from None

import numpy as np

import models
import tandem
import tandem.jax


class ArraysTest(unittest.TestCase):
    def setUp(self):
        self.step = tandem.Step(
            tandem.compile(models.classifier(), optimizer="sgd:lr=0.5")
        )
        self.x = jax.random.normal(jax.random.key(0), (4, 8))
        self.labels = jnp.array([0, 1, 2, 0])

    def test_steps_are_those_of_jax(self):
        def loss_of(params, x, labels):
            logits = x @ params["fc.w"].T + params["fc.b"]
            logs = jax.nn.log_softmax(logits)
            return -logs[jnp.arange(4), labels].mean()

        step = tandem.Step(self.step.artifact, copies="allow")
        params = step.state_dict("jax")
        self.assertIsInstance(params["fc.w"], jax.Array)
        for _ in range(5):
            loss, grads = jax.value_and_grad(loss_of)(
                params, self.x, self.labels
            )
            params = jax.tree.map(lambda p, g: p - 0.5 * g, params, grads)
            out = step(self.x, self.labels)
            self.assertIsInstance(out.loss, jax.Array)
            np.testing.assert_allclose(out.loss, loss, rtol=1e-5)
        for name, value in step.state_dict("jax").items():
            np.testing.assert_allclose(value, params[name], atol=1e-5)
        other = tandem.Step(self.step.artifact, params)
        np.testing.assert_array_equal(other["fc.w"], params["fc.w"])

    def test_what_is_traced_has_no_numbers(self):
        with self.assertRaisesRegex(tandem.UsageError, "'x' has no numbers"):
            jax.jit(lambda x: self.step(x, self.labels).loss)(self.x)

    def test_an_input_is_used_where_it_lies(self):
        out = self.step.evaluate(x=self.x, labels=np.array([0, 1, 2, 0]))
        self.assertNotIn("x", self.step.copied)
        self.assertIsInstance(out.logits, jax.Array)
        with self.assertWarnsRegex(tandem.CopyWarning, "int32"):
            self.step.evaluate(self.x, self.labels)

    def test_outputs_never_change(self):
        step = tandem.Step(tandem.compile(models.showing()))
        x = jnp.arange(6.0).reshape(2, 3)
        out = step.evaluate(x)
        step["w"] = np.zeros((2, 3), np.float32)
        del step
        gc.collect()
        self.assertEqual(out.same.tolist(), [[2, 2, 2], [2, 2, 2]])
        self.assertEqual(out.flat.tolist(), [0, 1, 2, 3, 4, 5])
        self.assertEqual((out.y + out.same).tolist(), [[2, 4, 6], [8, 10, 12]])

    def test_bfloat16(self):
        step = tandem.Step(tandem.compile(models.of_types("bf16")))
        x = jnp.arange(6, dtype=jnp.bfloat16).reshape(2, 3)
        y = step.evaluate(x).y
        self.assertEqual(y.dtype, jnp.bfloat16)
        self.assertTrue((y == x + x).all())

    def test_writing_is_refused(self):
        step = tandem.Step(tandem.compile(models.writing()))
        with self.assertRaisesRegex(tandem.UsageError, "JAX"):
            step.run("forward", jnp.ones((2, 3)))


def network(params, x, labels):
    """A loss of two layers, written as people do."""
    hidden = jax.nn.relu(x @ params["in"]["w"] + params["in"]["b"])
    logs = jax.nn.log_softmax(hidden @ params["out"])
    return -logs[jnp.arange(x.shape[0]), labels].mean()


def arguments(rows=4):
    keys = jax.random.split(jax.random.key(0), 3)
    params = {
        "in": {"w": jax.random.normal(keys[0], (8, 5)), "b": jnp.zeros(5)},
        "out": jax.random.normal(keys[1], (5, 3)),
    }
    x = jax.random.normal(keys[2], (rows, 8))
    return params, x, jnp.arange(rows) % 3


def assert_close(got, want, atol=2e-6):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=atol),
        got,
        want,
    )


class CompileTest(unittest.TestCase):
    def test_a_function_is_trained(self):
        params, x, labels = arguments()
        step = tandem.Step(
            tandem.compile(
                network, (params, x, labels), optimizer="sgd:lr=0.5"
            ),
            copies="allow",
        )
        mine = params
        for _ in range(10):
            loss, grads = jax.value_and_grad(network)(mine, x, labels)
            mine = jax.tree.map(lambda p, g: p - 0.5 * g, mine, grads)
            assert_close(step(x, labels)[0], loss)
        assert_close(tandem.jax.restore(step, params), mine, 1e-5)
        self.assertIn("params['in']['w']", step.state_dict())
        with self.assertRaisesRegex(tandem.UsageError, "weights"):
            tandem.jax.restore(step, params, "weights")

    def test_mistakes(self):
        params, x, labels = arguments()
        with self.assertRaisesRegex(tandem.UsageError, "example"):
            tandem.compile(network)
        with self.assertRaisesRegex(tandem.UnsupportedError, "network"):
            tandem.compile(network, (params, x.T, labels))


class WrapTest(unittest.TestCase):
    def setUp(self):
        self.function = tandem.jax.wrap(network)
        self.args = arguments()

    def test_values_and_gradients(self):
        both = lambda f: jax.value_and_grad(f, argnums=(0, 1))(*self.args)
        assert_close(both(self.function), both(network))
        assert_close(
            jax.jit(jax.value_and_grad(self.function))(*self.args),
            jax.value_and_grad(network)(*self.args),
        )

    def test_trees_integers_and_outputs_of_all_kinds(self):
        def function(tree, n, *, scale):
            a, b = tree
            y = jnp.sin(a) * b.sum() * scale
            return {"a": a, "b": b.reshape(2, 2), "n": n + 1, "y": y}, y.sum()

        args = ((jnp.arange(6.0).reshape(2, 3), jnp.ones(4)), jnp.array([1, 2]))
        compiled = tandem.jax.wrap(function)
        assert_close(compiled(*args, scale=2.0), function(*args, scale=2.0))

        def loss(f):
            def of(tree):
                made, total = f(tree, args[1], scale=2.0)
                return (made["y"] ** 2).sum() + total + (made["a"] ** 3).sum()

            return jax.grad(of)(args[0])

        assert_close(loss(compiled), loss(function))

    def test_a_loop_without_a_gradient_runs_forward(self):
        def function(p, x):
            return jax.lax.while_loop(
                lambda c: jnp.abs(c[0]).sum() < 100.0,
                lambda c: (c[0] * p + x, c[1] + 1),
                (x, 0),
            )

        args = (jnp.float32(1.5), jnp.arange(3.0))
        compiled = tandem.jax.wrap(function)
        assert_close(compiled(*args), function(*args))
        assert_close(jax.jit(compiled)(*args), function(*args))
        with self.assertRaisesRegex(tandem.UnsupportedError, "no gradient"):
            jax.grad(lambda p: compiled(p, args[1])[0].sum())(args[0])

    def test_gradients_of_some_results(self):
        def function(x):
            return jnp.tanh(x), jnp.exp(x)

        x = jnp.linspace(-1, 1, 5)
        compiled = tandem.jax.wrap(function)
        for i in range(2):
            assert_close(
                jax.grad(lambda x: compiled(x)[i].sum())(x),
                jax.grad(lambda x: function(x)[i].sum())(x),
            )
        out, pullback = jax.vjp(compiled, x)
        want, pullback_of_jax = jax.vjp(function, x)
        assert_close(pullback(out), pullback_of_jax(want))

    def test_shapes_are_compiled_apart(self):
        for rows in (4, 6):
            args = arguments(rows)
            assert_close(self.function(*args), network(*args))

    def test_several_calls_before_one_backward(self):
        params, x, labels = self.args

        def loss(f):
            return jax.grad(
                lambda p: sum(f(p, x * k, labels) * k for k in range(1, 4))
            )(params)

        assert_close(loss(self.function), loss(network), 1e-5)

    def test_transformations(self):
        function = tandem.jax.wrap(lambda x: (x * x).sum())
        xs = jnp.arange(6.0).reshape(3, 2)
        assert_close(jax.vmap(function)(xs), (xs * xs).sum(1))
        assert_close(jax.vmap(jax.grad(function))(xs), 2 * xs)
        assert_close(jax.jit(jax.checkpoint(function))(xs[0]), 1.0)
        assert_close(
            jax.lax.scan(lambda c, x: (c + function(x), x), 0.0, xs)[0],
            (xs * xs).sum(),
        )
        with self.assertRaises(Exception):
            jax.hessian(function)(xs[0])
        with self.assertRaises(TypeError):
            jax.jvp(function, (xs[0],), (xs[0],))

    def test_a_function_of_integers_alone(self):
        function = tandem.jax.wrap(lambda n: n * 2)
        self.assertEqual(function(jnp.arange(3)).tolist(), [0, 2, 4])

    def test_large_arrays(self):
        function = tandem.jax.wrap(lambda x, w: jnp.tanh(x @ w).mean())
        x, w = jnp.ones((512, 1024)) / 30, jnp.ones((1024, 512)) / 30
        for _ in range(3):
            assert_close(
                jax.jit(jax.grad(function))(x, w),
                jax.grad(lambda x, w: jnp.tanh(x @ w).mean())(x, w),
            )


if __name__ == "__main__":
    unittest.main()
