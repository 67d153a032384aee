"""What is measured: for every workload, phase and number of threads the peers' programs in every mode, and how to start them."""

import glob
import os
import subprocess
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "..", "peers")

# A peer in one of its modes. `family` is one column of the table; the fastest mode counts.
Cell = namedtuple("Cell", "workload phase threads family mode")

# family: (program, modes of training, modes of inference); modes for images only have `-last`
FAMILIES = {
    "torch1": ("torch_cpu.py", ["eager", "aot", "aot-ts", "aot-fusion", "eager-last"], ["eager", "jit", "jit-last"]),
    "torch2": ("torch_cpu.py", ["eager", "compile", "whole", "eager-last", "compile-last", "whole-last"],
               ["eager", "jit", "compile", "jit-last", "compile-last"]),
    "torch2-max": ("torch_cpu.py", ["compile-max", "whole-max"], ["compile-max"]),
    "jax": ("jax_cpu.py", ["jit", "jit-last"], ["jit", "jit-last"]),
    "onnxruntime": ("onnx_cpu.py", [], ["session"]),
}


def python_of(family, pythons):
    """`pythons`: interpreters by family. Autotuned modes are the same installation's, if they are asked for."""
    if family == "torch2-max":
        return pythons.get("autotune") and pythons.get("torch2")
    return pythons.get(family)


def cells(workload, phase, threads, pythons):
    images = workload.startswith("resnet")
    found = []
    for family, (_, train, infer) in FAMILIES.items():
        if python_of(family, pythons):
            modes = train if phase == "train" else infer
            found += [Cell(workload, phase, threads, family, mode) for mode in modes if images or not mode.endswith("-last")]
    return found


def first_file(*patterns):
    return next((path for pattern in patterns for path in sorted(glob.glob(pattern))), None)


def tuned(family, threads, out):
    """The environment in which the peer is fastest: an allocator that keeps its pages, a BLAS that shares PyTorch's threads,
    kernels for AVX-512; compiled code and weights are kept in `out`."""
    env = dict(PEER_WEIGHTS=os.path.join(out, "models"), PYTHONDONTWRITEBYTECODE="1",
               OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
               TORCHINDUCTOR_CACHE_DIR=os.path.join(out, f"inductor-{threads}"),
               JAX_COMPILATION_CACHE_DIR=os.path.join(out, f"jax-{threads}"),
               JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0", JAX_PLATFORMS="cpu")
    malloc = os.environ.get("PEER_MALLOC") or first_file("/usr/lib/*/libjemalloc.so.2", "/usr/lib*/libjemalloc.so.2")
    if malloc:
        env.update(LD_PRELOAD=malloc, MALLOC_CONF="dirty_decay_ms:-1,muzzy_decay_ms:-1,metadata_thp:auto,thp:always")
    if family == "torch1":
        blas = os.environ.get("PEER_BLAS_DIR") or first_file("/usr/lib/*/openblas-openmp")
        if blas:
            env["LD_LIBRARY_PATH"] = blas
        with open("/proc/cpuinfo") as file:
            if "avx512vl" in file.read():
                # An OpenBLAS older than the processor takes it for one without AVX.
                env.update(ATEN_CPU_CAPABILITY="avx512", OPENBLAS_CORETYPE="SKYLAKEX")
    return env


def pinned(threads):
    """A command before the command: on as many processors as there are threads."""
    return ["taskset", "-c", f"0-{threads - 1}"] if threads < os.cpu_count() else []


def command(cell, pythons, out):
    program = os.path.join(PEERS, FAMILIES[cell.family][0])
    words = [python_of(cell.family, pythons), program, cell.workload, f"--phase={cell.phase}", f"--mode={cell.mode}",
             f"--threads={cell.threads}"]
    if cell.family == "onnxruntime":
        words.append("--onnx=" + os.path.join(out, "onnx", cell.workload + ".onnx"))
    return pinned(cell.threads) + words


def can_import(python, modules):
    try:
        return subprocess.run([python, "-c", "import " + modules], cwd="/", stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def find_pythons(given):
    """An interpreter for each family: the given ones, else those on PATH that can import what it needs."""
    needs = dict(torch1="torch, functorch; assert torch.__version__[0] == '1'",
                 torch2="torch; assert torch.__version__[0] != '1'", jax="jax", onnxruntime="onnxruntime")
    here = dict.fromkeys(p for f in os.environ["PATH"].split(":") for p in [os.path.join(f, "python3")] if os.path.exists(p))
    found = {}
    for family, modules in needs.items():
        tried = [given[family]] if given.get(family) else here
        found[family] = next((python for python in tried if can_import(python, modules)), None)
    return found
