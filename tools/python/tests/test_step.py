"""Steps with arrays of NumPy: values, copies, memory, states and files."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import tempfile
import threading
import unittest
import warnings
import weakref
from pathlib import Path

import numpy as np

import models
import tandem
from tandem._step import _names_in as names_in

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def softmax_step(w, b, x, labels, rate):
    """One step of gradient descent by hand: the loss, and the new values."""
    logits = x @ w.T + b
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    p = shifted / shifted.sum(1, keepdims=True)
    rows = np.arange(len(x))
    loss = -np.log(p[rows, labels]).mean()
    p[rows, labels] -= 1
    p /= len(x)
    return loss, w - rate * p.T @ x, b - rate * p.sum(0)


class StepTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.artifact = tandem.compile(
            models.classifier(), optimizer="adamw:lr=0.01"
        )
        cls.sgd = tandem.compile(models.classifier(), optimizer="sgd:lr=0.5")
        rng = np.random.default_rng(0)
        cls.x = rng.standard_normal((4, 8), np.float32)
        cls.labels = np.array([0, 1, 2, 0])

    def test_steps_are_those_of_gradient_descent(self):
        step = tandem.Step(self.sgd, threads=1)
        w, b = step["fc.w"], step["fc.b"]
        for _ in range(5):
            loss, w, b = softmax_step(w, b, self.x, self.labels, 0.5)
            out = step(self.x, self.labels)
            self.assertAlmostEqual(float(out.loss), loss, 5)
        np.testing.assert_allclose(step["fc.w"], w, atol=1e-5)
        np.testing.assert_allclose(step["fc.b"], b, atol=1e-5)

    def test_ranges_of_slices(self):
        step = tandem.Step(
            tandem.compile(models.sliced_labels(), optimizer="sgd:lr=0.5"),
            threads=1,
        )
        labels = {v.name: v for v in step.artifact.values}["labels"]
        self.assertIsNone(labels.high)
        (read,) = labels.ranges
        self.assertEqual((read["begins"], read["ends"]), ([1], [5]))
        self.assertEqual(read["high"], 3)
        step(self.x, np.array([99, 0, 1, 2, 0]))  # 99 is read by nobody
        with self.assertRaises(tandem.TandemError):
            step(self.x, np.array([0, 0, 1, 3, 0]))

    def test_copies_and_pickles_are_refused_in_words(self):
        # A copy shared the model, and ended the process when that was gone.
        step = tandem.Step(self.artifact)
        for thing in step, step._model, step.tensor("fc.w"):
            for copies in copy.copy, copy.deepcopy, pickle.dumps:
                with self.assertRaisesRegex(
                    tandem.UnsupportedError, "cannot be copied or pickled"
                ):
                    copies(thing)

    def test_unknown_names_are_not_set_in_silence(self):
        step = tandem.Step(self.artifact)
        with self.assertRaisesRegex(tandem.UsageError, "did you mean 'fc.w'"):
            step["fc.v"] = step["fc.w"]
        step["fc.w"] = step["fc.w"] + 1
        with self.assertRaisesRegex(tandem.UsageError, r"step\['adamw.lr'\]"):
            step.lr = 0.0
        with self.assertRaisesRegex(tandem.UsageError, "no 'bogus'"):
            step.bogus = 1

        class Counts(tandem.Step):
            count = 0

        counts = Counts(self.artifact)
        counts.count += 1  # of its own

    def test_what_is_no_array_is_said_by_name(self):
        step = tandem.Step(self.artifact)
        with self.assertRaisesRegex(tandem.UsageError, "'x' is no array"):
            step([[1.0, 2.0], [3.0]], self.labels)
        rows = [[1e300] + [0.0] * 7] * 4
        with self.assertRaisesRegex(tandem.UsageError, "1e.300.* beyond f32"):
            step(rows, self.labels)
        step([[float("inf")] + [0.0] * 7] * 4, self.labels)  # as it is given
        for wrong in {"seed": "a"}, {"threads": "a"}, {"memory_limit": 0.5}:
            with self.assertRaisesRegex(
                tandem.UsageError, f"expected an integer for '{[*wrong][0]}'"
            ):
                tandem.Step(self.artifact, **wrong)
        with self.assertRaisesRegex(tandem.UsageError, "seed from 0 to 2.64"):
            tandem.Step(self.artifact, seed=-1)
        with self.assertRaisesRegex(tandem.UsageError, "2.63 - 1 bytes but got"):
            tandem.Step(self.artifact, memory_limit=1 << 64)  # was no limit
        with self.assertRaisesRegex(tandem.UsageError, "limits are for GPUs"):
            tandem.Step(self.artifact, memory_limit=1 << 30)

    def test_inputs_by_name_and_outputs_by_all_names(self):
        step = tandem.Step(self.artifact)
        out = step.evaluate(labels=self.labels, x=self.x)
        loss, logits = out
        self.assertIs(out.loss, loss)
        self.assertIs(out["logits"], logits)
        self.assertEqual(list(out.keys()), ["loss", "logits"])
        self.assertEqual(logits.shape, (4, 3))
        with self.assertRaises(KeyError):
            out["los"]
        with self.assertRaises(AttributeError):
            out.los

    def test_all_mistakes_of_arguments_are_in_one_message(self):
        step = tandem.Step(self.artifact)
        with self.assertRaisesRegex(
            tandem.UsageError, "no input 'y'.*missing.*'labels'"
        ):
            step(self.x, y=self.labels)
        with self.assertRaisesRegex(tandem.UsageError, "got 3 arguments"):
            step(self.x, self.labels, self.x)
        with self.assertRaisesRegex(tandem.UsageError, "twice"):
            step(self.x, self.labels, x=self.x)

    def test_wrong_types_shapes_and_labels_are_refused(self):
        step = tandem.Step(self.artifact)
        with self.assertRaisesRegex(tandem.UsageError, "'x'.*f32.*float64"):
            step(self.x.astype(np.float64), self.labels)
        with self.assertRaisesRegex(tandem.UsageError, "'x'"):
            step(self.x[:3], self.labels)
        with self.assertRaisesRegex(tandem.UsageError, "'labels'.*3"):
            step(self.x, np.array([0, 1, 3, 0]))
        with self.assertRaisesRegex(tandem.UsageError, "'labels'"):
            step(self.x, self.labels.astype(np.float32))
        with self.assertWarnsRegex(tandem.CopyWarning, ">f4"):
            out = step.evaluate(self.x.astype(">f4"), self.labels)
        self.assertEqual(out.loss, step.evaluate(self.x, self.labels).loss)

    def test_numbers_of_python_get_the_type_of_the_model(self):
        step = tandem.Step(self.artifact)
        a = step.evaluate(self.x.tolist(), [0, 1, 2, 0]).loss
        b = step.evaluate(self.x, self.labels).loss
        self.assertEqual(a, b)
        with self.assertRaises(tandem.UsageError):
            step.evaluate(self.x, [0.5, 1, 2, 0])

    def test_what_is_copied_is_said(self):
        step = tandem.Step(self.artifact)
        small = self.labels.astype(np.int32)
        with self.assertWarnsRegex(tandem.CopyWarning, "'labels'.*int32") as got:
            step(self.x, small)
        self.assertEqual(got.filename, __file__)
        self.assertIn("labels", step.copied)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            step(self.x, small)  # once
        refusing = tandem.Step(self.artifact, copies="refuse")
        with self.assertRaisesRegex(tandem.UsageError, "copied"):
            refusing(self.x, small)
        x = tandem.empty((4, 8))
        labels = tandem.empty(4, np.int64)
        x[:], labels[:] = self.x, self.labels
        refusing(x, labels)
        self.assertEqual(refusing.copied, {})

    def test_strides_of_all_kinds_give_the_same(self):
        step = tandem.Step(self.artifact, copies="allow")
        wide = np.zeros((8, 24), np.float32)
        wide[::2, 1::3] = self.x
        packed = np.zeros(4, [("a", "u1"), ("x", "f4", (8,))])
        packed["x"] = self.x
        want = step.evaluate(self.x, self.labels).loss
        for x in (
            np.asfortranarray(self.x),
            wide[::2, 1::3],
            self.x[::-1, ::-1].copy()[::-1, ::-1],
            packed["x"],
        ):
            self.assertEqual(step.evaluate(x, self.labels).loss, want)

    def test_arrays_that_cannot_be_written_are_inputs(self):
        x = self.x.copy()
        x.flags.writeable = False
        tandem.Step(self.artifact)(x, self.labels)

    def test_outputs_outlive_the_step(self):
        step = tandem.Step(self.artifact)
        first = step(self.x, self.labels).logits
        kept = first.copy()
        second = step(self.x, self.labels).logits
        self.assertFalse(np.shares_memory(first, second))
        memory = step.tensor("fc.w").numpy()
        value = memory.copy()
        del step
        gc.collect()
        np.testing.assert_array_equal(first, kept)
        np.testing.assert_array_equal(memory, value)

    def test_memory_does_not_grow(self):
        step = tandem.Step(self.artifact, threads=1)

        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        for _ in range(500):
            step(self.x, self.labels)
        gc.collect()
        before = resident()
        for _ in range(5000):
            step(self.x, self.labels)
        gc.collect()
        self.assertLess(resident() - before, 4 << 20)

    def test_steps_are_freed(self):
        step = tandem.Step(self.artifact)
        gone = weakref.ref(step._model)
        del step
        gc.collect()
        self.assertIsNone(gone())

    def test_views_of_inputs_keep_their_memory(self):
        step = tandem.Step(tandem.compile(models.showing()))
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        out = step.evaluate(x)
        self.assertTrue(np.shares_memory(out.flat, x))
        gone = weakref.ref(x)
        del x
        gc.collect()
        np.testing.assert_array_equal(out.flat, np.arange(6))
        np.testing.assert_array_equal(out.same, np.full((2, 3), 2))
        self.assertIsNotNone(gone())
        del out
        gc.collect()
        self.assertIsNone(gone())

    def test_a_program_writes_to_the_callers_memory(self):
        step = tandem.Step(tandem.compile(models.writing()))
        for x in (np.ones((2, 3), np.float32), tandem.empty((2, 3))):
            x[:] = 1
            out = step.run("forward", x)
            np.testing.assert_allclose(x, np.sin(1), rtol=1e-6)
            np.testing.assert_allclose(out.y, 2 * np.sin(1), rtol=1e-6)
        x.flags.writeable = False
        with self.assertRaisesRegex(tandem.UsageError, "writes to its input 'x'"):
            step.run("forward", x)

    def test_types(self):
        for name in ("i8", "u8", "i16", "i32", "i64", "f16", "f32", "f64",
                     "u16", "u32", "u64"):
            with self.subTest(name):
                step = tandem.Step(tandem.compile(models.of_types(name)))
                dtype = tandem._exchange.numpy_dtype(name)
                x = np.arange(6).reshape(2, 3).astype(dtype)
                y = step.evaluate(x).y
                self.assertEqual(y.dtype, dtype)
                np.testing.assert_array_equal(y, x + x)

    @unittest.skipUnless(ml_dtypes, "no ml_dtypes")
    def test_bfloat16(self):
        step = tandem.Step(tandem.compile(models.of_types("bf16")))
        x = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
        y = step.evaluate(x).y
        self.assertEqual(y.dtype, x.dtype)
        np.testing.assert_array_equal(y, x + x)

    def test_predict_takes_any_number_of_rows(self):
        step = tandem.Step(self.artifact)
        x = np.random.default_rng(1).standard_normal((11, 8), np.float32)
        out = step.predict(x)
        self.assertEqual(list(out.keys()), ["logits"])
        want = x @ step["fc.w"].T + step["fc.b"]
        np.testing.assert_allclose(out.logits, want, atol=1e-5)
        self.assertEqual(step.predict(x[:0]).logits.shape, (0, 3))
        with self.assertRaisesRegex(tandem.UsageError, "follows from"):
            step.predict(labels=self.labels)
        with self.assertRaises(tandem.UsageError):
            step.predict(x, outputs=["loss"])

    def test_states_go_out_and_in(self):
        step = tandem.Step(self.artifact, seed=1)
        for _ in range(3):
            step(self.x, self.labels)
        own = step.state_dict()
        self.assertEqual(list(own), ["fc.w", "fc.b"])
        training = step.optimizer_state_dict()
        self.assertIn("adamw.m:fc.w", training)
        self.assertIn("adamw.lr", training)
        self.assertEqual(float(training["adamw.step:fc.w"]), 3)
        other = tandem.Step(self.artifact, seed=2)
        other.load_state_dict(step.state_dict(optimizer=True))
        for _ in range(3):
            a = step(self.x, self.labels).loss
            b = other(self.x, self.labels).loss
            self.assertEqual(a, b)
        # What was taken out is a copy.
        self.assertFalse(np.array_equal(own["fc.w"], step["fc.w"]))

    def test_all_mistakes_of_a_state_dict_are_in_one_message(self):
        step = tandem.Step(self.artifact)
        before = step["fc.b"]
        with self.assertRaises(tandem.UsageError) as got:
            step.load_state_dict(
                {"fc.b": np.ones(4, np.float32), "fc.c": np.ones(1)}
            )
        for part in ("'fc.b'", "f32[3]", "'fc.c'", "missing: 'fc.w'"):
            self.assertIn(part, str(got.exception))
        np.testing.assert_array_equal(step["fc.b"], before)
        with self.assertRaisesRegex(tandem.UsageError, "did you mean 'fc.w'"):
            step["fc.W"]
        step["fc.b"] = np.arange(3, dtype=np.float32)
        np.testing.assert_array_equal(step["fc.b"], [0, 1, 2])
        with self.assertRaises(tandem.UsageError):
            step.load_optimizer_state_dict({"fc.b": before})

    def test_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.safetensors"
            step = tandem.Step(self.artifact, seed=1)
            for _ in range(3):
                step(self.x, self.labels)
            step.save(path)
            # As `train --params`: training begins anew.
            begun = tandem.Step(self.artifact, path)
            np.testing.assert_array_equal(begun["fc.w"], step["fc.w"])
            self.assertEqual(float(begun["adamw.step:fc.w"]), 0)
            # What a file does not have is neither copied nor changed.
            names = set(step.state_dict(optimizer=True))
            self.assertEqual(names_in(path) - {"__metadata__"}, names)
            for other in (folder, Path(folder) / "none"):
                self.assertIsNone(names_in(other))
            # As `train --resume`.
            begun.load(path)
            self.assertEqual(float(begun["adamw.step:fc.w"]), 3)
            with self.assertRaises(tandem.FailedError):
                step.load(Path(folder) / "none.safetensors")
            other = Path(folder) / "text.safetensors"
            other.write_text("no checkpoint", encoding="utf-8")
            with self.assertRaises(tandem.UsageError):
                step.save(other)
            with self.assertRaises(tandem.FailedError):
                step.load(other)

    def test_threads(self):
        step = tandem.Step(self.artifact, threads=1)
        failed = []

        def work():
            try:
                for _ in range(200):
                    out = step(self.x, self.labels)
                    if not np.isfinite(out.loss):
                        failed.append(out)
            except Exception as error:
                failed.append(error)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(failed, [])
        self.assertEqual(float(step["adamw.step:fc.w"]), 800)

    def test_initialize_draws_by_the_seed(self):
        a, b = tandem.Step(self.artifact, seed=3), tandem.Step(self.artifact)
        self.assertFalse(np.array_equal(a["fc.w"], b["fc.w"]))
        b.initialize(3)
        np.testing.assert_array_equal(a["fc.w"], b["fc.w"])

    def test_what_notebooks_show(self):
        step = tandem.Step(self.artifact)
        for thing in (step, self.artifact, step(self.x, self.labels)):
            self.assertIn("<table>", thing._repr_html_())
            self.assertIn("loss", repr(thing) + thing._repr_html_())
        self.assertIn("f32[3, 8]", repr(step.tensor("fc.w")))
        self.assertGreater(step.memory()["peak"], 0)

    def test_programs_that_are_not_there(self):
        step = tandem.Step(tandem.compile(models.classifier()))
        with self.assertRaisesRegex(tandem.UsageError, "no program 'step'"):
            step(self.x, self.labels)


class DeviceTest(unittest.TestCase):
    """The emulated GPU stands for one: its memory is not the host's."""

    @classmethod
    def setUpClass(cls):
        artifact = tandem.compile(
            models.classifier(),
            optimizer="sgd:lr=0.5",
            target="cpu+cuda:sm_90",
            emulation=True,
        )
        try:
            cls.step = tandem.Step(artifact, device="cuda-emu")
        except tandem.DeviceError as error:
            raise unittest.SkipTest(str(error))
        cls.on_cpu = tandem.Step(artifact, device="cpu")

    def test_steps_states_and_predictions(self):
        x = np.random.default_rng(0).standard_normal((4, 8), np.float32)
        labels = np.array([0, 1, 2, 0])
        for _ in range(3):
            a, b = self.step(x, labels), self.on_cpu(x, labels)
            np.testing.assert_allclose(a.loss, b.loss, rtol=1e-5)
            np.testing.assert_allclose(a.logits, b.logits, rtol=1e-5)
        for name, value in self.step.state_dict().items():
            np.testing.assert_allclose(value, self.on_cpu[name], atol=1e-6)
        many = np.concatenate([x, x[:2]])
        np.testing.assert_allclose(
            self.step.predict(many).logits,
            self.on_cpu.predict(many).logits,
            rtol=1e-5,
        )

    def test_tensors_of_the_device(self):
        tensor = self.step.tensor("fc.w")
        self.assertEqual(tensor.device, "cuda-emu:0")
        np.testing.assert_array_equal(tensor.numpy(), self.step["fc.w"])
        with self.assertRaises(tandem.UnsupportedError):
            tensor.__dlpack__()
        self.step.synchronize()


class DlpackTest(unittest.TestCase):
    def setUp(self):
        self.step = tandem.Step(
            tandem.compile(models.classifier(), optimizer="sgd:lr=0.1")
        )

    def test_a_tensor_speaks_dlpack(self):
        tensor = self.step.tensor("fc.w")
        array = np.from_dlpack(tensor)
        self.assertEqual(
            array.__array_interface__["data"][0],
            tensor.numpy().__array_interface__["data"][0],
        )
        value = array.copy()
        del tensor, self.step
        gc.collect()
        np.testing.assert_array_equal(array, value)

    def test_a_capsule_that_nobody_takes_is_freed(self):
        tensor = self.step.tensor("fc.w")
        for _ in range(1000):
            tensor.__dlpack__()
        gc.collect()
        np.testing.assert_array_equal(tensor.numpy(), self.step["fc.w"])

    def test_a_capsule_is_taken_once(self):
        take = tandem._exchange.take_capsule
        capsule = self.step.tensor("fc.w").__dlpack__()
        take(capsule)
        with self.assertRaises(tandem.UsageError):
            take(capsule)

    def test_what_speaks_dlpack_is_an_input_and_gives_tensors(self):
        class Foreign:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **named):
                return self.array.__dlpack__(**named)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        x = np.random.default_rng(0).standard_normal((4, 8), np.float32)
        labels = np.array([0, 1, 2, 0])
        want = self.step.evaluate(x, labels)
        got = self.step.evaluate(Foreign(x), labels)
        self.assertIsInstance(got.logits, tandem.Tensor)
        np.testing.assert_array_equal(np.asarray(got.logits), want.logits)


if __name__ == "__main__":
    unittest.main()
