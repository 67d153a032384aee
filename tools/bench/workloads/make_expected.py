#!/usr/bin/env python3
"""Regenerates the expected numbers of the benchmark workloads.

  make_expected.py TORCH_TRAIN [WORKLOAD ...] [--out DIR] [--threads N]

TORCH_TRAIN is the path of the reference program `torch_train.py`, which has
`workloads.py` beside it; it runs inside this interpreter, which has to have
torch and numpy. It trains three steps of each workload (of all of them, unless
some are named) with plain autograd and seed 1; DIR/WORKLOAD.json (DIR:
`expected` beside this file) gets what it measured. README.md in that directory
says what the fields are and how sharp they are.
"""

import argparse
import contextlib
import io
import json
import os
import runpy
import sys
import tempfile
from unittest import mock

STEPS = 3
HERE = os.path.dirname(os.path.abspath(__file__))


def reference(program, *arguments):
    """Runs `torch_train.py` with these arguments, returns what it prints."""
    printed = io.StringIO()
    with mock.patch.object(sys, "argv", [program, *arguments]), \
            contextlib.redirect_stdout(printed):
        runpy.run_path(program, run_name="torch_train")
    return json.loads(printed.getvalue())


def check(program, workload, threads):
    """The losses of the first steps and the gradients' norms of the first."""
    seen = reference(program, "--workload", workload, "--mode", "eager",
                     "--check", "--warmup", "1", "--steps", str(STEPS - 1),
                     "--max-seconds", "0", "--threads", str(threads),
                     "--seed", "1")
    losses = seen["check_losses"]
    if "error" in seen or len(losses) != STEPS:
        sys.exit(f"make_expected: workload '{workload}': expected {STEPS} "
                 f"finite losses but got {losses}")
    return seen["version"], losses, seen["check_grad_norms"]


def expected(program, workload, threads):
    import torch

    # torch adds up the squares of an f32 tensor in f32, which for tensors of
    # millions of elements is wrong by up to 1e-3: both norms are kept.
    norm, from_numpy = torch.Tensor.norm, torch.from_numpy
    printed = []

    def exact_norm(tensor):
        printed.append(float(norm(tensor)))
        return norm(tensor.double())

    with mock.patch.object(torch.Tensor, "norm", exact_norm):
        version, losses, norms = check(program, workload, threads)

    def widened(array):
        tensor = from_numpy(array)
        return tensor.double() if tensor.is_floating_point() else tensor

    with mock.patch.object(torch, "from_numpy", widened):
        _, losses64, norms64 = check(program, workload, threads)
    return {
        "workload": workload,
        "reference": f"torch {version}, eager, cpu",
        "seed": 1,
        "losses": losses,
        "grad_norms": norms,
        "printed_grad_norms": dict(zip(norms, printed)),
        "f64": {"losses": losses64, "grad_norms": norms64},
    }


def write(path, value):
    """Writes beside `path` and renames, so that no half file stays."""
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path),
                                     delete=False) as f:
        json.dump(value, f, indent=1)
        f.write("\n")
    os.chmod(f.name, 0o644)
    os.replace(f.name, path)


def main():
    a = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("torch_train", help="the path of torch_train.py")
    a.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    a.add_argument("--out", default=os.path.join(HERE, "expected"))
    a.add_argument("--threads", type=int, default=1)
    args = a.parse_args()

    sys.dont_write_bytecode = True
    # The libraries read these when torch is loaded, and once.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(args.threads)
    known = list(reference(args.torch_train, "--list"))
    unknown = [w for w in args.workloads if w not in known]
    if unknown:
        a.error(f"no such workloads: {unknown}; there are {known}")
    os.makedirs(args.out, exist_ok=True)
    for workload in args.workloads or known:
        result = expected(args.torch_train, workload, args.threads)
        write(os.path.join(args.out, workload + ".json"), result)
        print(f"{workload}: losses {result['losses']}", file=sys.stderr)


main()
