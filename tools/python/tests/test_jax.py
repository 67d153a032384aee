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


if __name__ == "__main__":
    unittest.main()
