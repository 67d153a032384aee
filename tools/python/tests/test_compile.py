"""Compiling: options, errors, the cache, and what is found where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import models
import tandem
from tandem import _cache, _compile


class OptionsTest(unittest.TestCase):
    def test_options_become_a_command_line(self):
        self.assertEqual(
            _compile.options_of(
                {
                    "loss": None,
                    "optimizer": "adamw:lr=1e-3",
                    "fast_math": True,
                    "inference": False,
                    "dim": {"batch": 64, "t": 3},
                    "shape": {"x": (8, 3)},
                    "value": {"n": [2, 3], "f": Path("a.npy")},
                    "mesh": {"data": 4, "tensor": 2},
                    "group": ["a:lr=1", "b:lr=2"],
                    "threads": 2,
                }
            ),
            [
                "--optimizer=adamw:lr=1e-3",
                "--fast-math",
                "--dim=batch=64",
                "--dim=t=3",
                "--shape=x=8x3",
                "--value=n=[2,3]",
                "--value=f=a.npy",
                "--mesh=data=4,tensor=2",
                "--group=a:lr=1",
                "--group=b:lr=2",
                "--threads=2",
            ],
        )

    def test_options_that_would_give_no_artifact_are_refused(self):
        for name in ("o", "stop_after", "help", "print_pipeline", "weights"):
            with self.assertRaisesRegex(tandem.UsageError, name):
                tandem.compile(models.classifier(), **{name: "x"})


class ErrorsTest(unittest.TestCase):
    def test_the_version_is_that_of_the_library(self):
        from tandem._library import lib

        self.assertEqual(tandem.__version__, lib().tdm_version().decode())

    def test_a_wrong_option_has_the_words_of_the_compiler(self):
        with self.assertRaisesRegex(tandem.UsageError, "--fast-maht") as got:
            tandem.compile(models.classifier(), fast_maht=True)
        self.assertEqual(got.exception.exit_code, 2)
        self.assertIn("compile", got.exception.command)
        self.assertIsInstance(got.exception, ValueError)

    def test_an_error_of_the_model_has_its_place(self):
        graph = models.classifier()
        graph["nodes"][0]["inputs"] = ["x", "fc.w", "nothing"]
        with self.assertRaisesRegex(
            tandem.CompileError, "classifier.json.*nothing"
        ) as got:
            tandem.compile(graph)
        self.assertEqual(got.exception.exit_code, 1)
        self.assertIn("error:", got.exception.text)

    def test_unsupported(self):
        with self.assertRaises(tandem.UnsupportedError) as got:
            tandem.compile(
                models.classifier(), optimizer="sgd:lr=1", memory_budget="1B"
            )
        self.assertEqual(got.exception.exit_code, 3)

    def test_files_that_are_no_models(self):
        with self.assertRaisesRegex(tandem.UsageError, "no file"):
            tandem.compile("nothing.onnx")
        with self.assertRaisesRegex(tandem.UsageError, "no model"):
            tandem.compile(__file__)
        with self.assertRaisesRegex(tandem.UsageError, "int"):
            tandem.compile(3)
        with self.assertRaisesRegex(tandem.UsageError, "'args'"):
            tandem.compile(models.classifier(), (1,))

    def test_a_compiler_that_is_ended_says_by_what(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "tandem"
            program.write_text("#!/bin/sh\necho half >&2\nkill -SEGV $$\n")
            program.chmod(0o755)
            with mock.patch.dict(os.environ, {"TANDEM": str(program)}):
                with self.assertRaisesRegex(
                    tandem.CompileError, "SIGSEGV\n.*half"
                ) as got:
                    tandem.compile(models.classifier(), cache=False)
        self.assertEqual(got.exception.exit_code, 128 + 11)

    def test_programs_and_libraries_that_are_not_there(self):
        with mock.patch.dict(os.environ, {"TANDEM": "/nowhere"}):
            with self.assertRaisesRegex(tandem.NotInstalledError, "/nowhere"):
                tandem.find_program()
        with mock.patch.dict(os.environ, {"PATH": "", "TANDEM": ""}):
            with self.assertRaisesRegex(tandem.NotInstalledError, "TANDEM"):
                tandem.find_program()

    def test_artifacts_that_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.tdm"
            with self.assertRaises(tandem.FailedError):
                tandem.Artifact(path)
            path.write_bytes(b"TANDEM\r\n")
            with self.assertRaisesRegex(tandem.FailedError, "no artifact"):
                tandem.Artifact(path)
            whole = Path(tandem.compile(models.classifier()).path).read_bytes()
            path.write_bytes(whole[:8] + b"\3\0\0\0" + whole[12:])
            with self.assertRaisesRegex(tandem.UnsupportedError, "format 3"):
                tandem.Artifact(path)
            for length in range(8, 5000, 97):
                path.write_bytes(whole[:length])
                with self.assertRaises(tandem.FailedError):
                    tandem.Artifact(path)
            damaged = bytearray(whole)
            damaged[-100] ^= 1
            path.write_bytes(damaged)
            with self.assertRaises(tandem.FailedError):
                tandem.Step(path)


class CacheTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        patch = mock.patch.dict(
            os.environ, {"XDG_CACHE_HOME": str(self.folder / "cache")}
        )
        patch.start()
        self.addCleanup(patch.stop)
        run = _compile.run
        self.calls = 0

        def counted(*args, **named):
            self.calls += 1
            return run(*args, **named)

        patch = mock.patch.object(_compile, "run", counted)
        patch.start()
        self.addCleanup(patch.stop)

    def test_what_was_compiled_is_found_again(self):
        first = tandem.compile(models.classifier(), optimizer="sgd:lr=1")
        second = tandem.compile(models.classifier(), optimizer="sgd:lr=1")
        self.assertEqual(first.path, second.path)
        self.assertEqual(self.calls, 1)
        tandem.compile(models.classifier(), optimizer="sgd:lr=2")
        tandem.compile(models.classifier(5), optimizer="sgd:lr=1")
        self.assertEqual(self.calls, 3)
        tandem.compile(models.classifier(), optimizer="sgd:lr=1", cache=False)
        self.assertEqual(self.calls, 4)
        left = [p.name for p in tandem.cache_folder().iterdir()]
        self.assertTrue(all(len(name) == 64 for name in left), left)
        tandem.clear_cache()
        tandem.compile(models.classifier(), optimizer="sgd:lr=1")
        self.assertEqual(self.calls, 5)

    def test_a_folder_that_cannot_be_there(self):
        file = self.folder / "file"
        file.write_text("")
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(file)}):
            with self.assertRaises(tandem.FailedError) as caught:
                tandem.compile(models.classifier(), optimizer="sgd:lr=1")
            self.assertIn("XDG_CACHE_HOME", str(caught.exception))
            target = self.folder / "model.tdm"
            tandem.compile(
                models.classifier(), optimizer="sgd:lr=1", output=target
            )
            self.assertTrue(target.is_file())

    def test_a_failure_leaves_nothing(self):
        with self.assertRaises(tandem.UsageError):
            tandem.compile(models.classifier(), optimizer="none")
        self.assertEqual(
            [p for p in tandem.cache_folder().iterdir() if p.is_dir()], []
        )

    def test_an_entry_that_lost_a_file_is_made_again(self):
        artifact = tandem.compile(models.classifier())
        artifact.path.unlink()
        tandem.compile(models.classifier())
        self.assertEqual(self.calls, 2)

    def test_the_content_of_files_counts(self):
        path = self.folder / "m.json"
        path.write_text(json.dumps(models.classifier()))
        tandem.compile(path)
        path.write_text(json.dumps(models.classifier()))
        tandem.compile(path)
        self.assertEqual(self.calls, 1)
        path.write_text(json.dumps(models.classifier(6)))
        artifact = tandem.compile(path)
        self.assertEqual(self.calls, 2)
        self.assertEqual(artifact.inputs["x"].shape, (6, 8))

    def test_external_data_counts(self):
        model = self.folder / "m.onnx"
        model.write_bytes(b"..\x0a\x08location\x12\x05w.bin..\x0a\x08location\x12")
        data = self.folder / "w.bin"
        data.write_bytes(b"1")
        self.assertEqual(list(_cache.external_data(str(model))), [str(data)])
        first = _compile._of_file(str(model)).digest
        data.write_bytes(b"22")
        self.assertNotEqual(_compile._of_file(str(model)).digest, first)

    def test_an_output_file_is_written_without_the_cache(self):
        path = self.folder / "named.tdm"
        artifact = tandem.compile(models.classifier(), output=path)
        self.assertEqual(artifact.path, path)
        self.assertTrue(path.is_file())

    def test_force_is_for_an_output_file(self):
        """It was no option of Python, and what refuses a file says `--force`."""
        with self.assertRaisesRegex(tandem.UsageError, "no output= is given"):
            tandem.compile(models.classifier(), force=True)
        path = self.folder / "other.tdm"
        path.write_text("something else")
        with self.assertRaisesRegex(tandem.TandemError, "--force"):
            tandem.compile(models.classifier(), output=path)
        tandem.compile(models.classifier(), output=path, force=True)
        self.assertNotEqual(path.read_bytes()[:4], b"some")

    def test_progress_gets_the_lines_of_the_compiler(self):
        lines = []
        tandem.compile(models.classifier(), progress=lines.append, remarks=True)
        self.assertTrue(any("wrote the artifact" in line for line in lines))

        def stop(line):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            tandem.compile(models.classifier(7), progress=stop)
        tandem.compile(models.classifier(7))

    def test_processes_that_compile_the_same_call_the_compiler_once(self):
        real = tandem.find_program()
        program = self.folder / "tandem"
        log = self.folder / "log"
        program.write_text(
            f"#!/bin/sh\necho x >> '{log}'\nsleep 0.3\nexec '{real}' \"$@\"\n"
        )
        program.chmod(0o755)
        code = (
            "import models, tandem\n"
            "print(tandem.compile(models.classifier()).path)\n"
        )
        environment = {
            **os.environ,
            "TANDEM": str(program),
            "TANDEM_LIBRARY": tandem.library_path(),
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        }
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", code],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        paths = {process.communicate()[0] for process in processes}
        self.assertEqual([p.returncode for p in processes], [0] * 4)
        self.assertEqual(len(paths), 1)
        self.assertEqual(log.read_text().split(), ["x"])


class OnnxTest(unittest.TestCase):
    def test_digits_are_learnt(self):
        examples = Path(__file__).resolve().parents[3] / "examples"
        artifact = tandem.compile(
            examples / "onnx" / "digits.onnx",
            dim={"batch": 64},
            loss="cross_entropy:logits,labels",
            optimizer="adamw:lr=2e-3",
        )
        self.assertIsNotNone(artifact.weights)
        data = examples / "digits" / "data"
        x, y, tx, ty = (
            np.load(data / f"{n}.npy")
            for n in ("train_images", "train_labels", "test_images", "test_labels")
        )
        x = x.reshape(len(x), *artifact.inputs["x"].shape[1:]).astype(np.float32)
        tx = tx.reshape(len(tx), *x.shape[1:]).astype(np.float32)
        y = y.astype(np.int64)
        step = tandem.Step(artifact)
        rng = np.random.default_rng(0)
        for _ in range(3):
            order = rng.permutation(len(x))
            for i in range(0, len(x) - 63, 64):
                rows = order[i : i + 64]
                step(x[rows], y[rows])
        scores = step.predict(tx).logits
        self.assertGreater((scores.argmax(1) == ty).mean(), 0.9)


if __name__ == "__main__":
    unittest.main()
