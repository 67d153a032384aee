"""Tandem: compiled training steps, called from Python.

    import tandem

    artifact = tandem.compile("digits.onnx", dim={"batch": 64},
                              loss="cross_entropy:logits,labels",
                              optimizer="adamw:lr=2e-3")
    step = tandem.Step(artifact)
    loss = step(x, labels).loss

`compile` calls the program `tandem`; `Step` calls the library of the runtime
with arrays of NumPy, PyTorch or JAX, where they lie. `tandem.torch` puts
compiled programs under a module of PyTorch, `tandem.jax` under a function of
JAX. Nothing of the compiler is in the package, and it never unpickles.
"""

from __future__ import annotations

from ._artifact import Artifact, Value
from ._cache import cache_folder, clear_cache
from ._compile import CompilerWarning, compile, help_of
from ._errors import (
    CompileError,
    CopyWarning,
    DeviceError,
    DiffersError,
    FailedError,
    NotInstalledError,
    TandemError,
    UnsupportedError,
    UsageError,
)
from ._exchange import Tensor
from ._inputs import empty
from ._library import library_path
from ._outputs import Outputs
from ._program import find_program
from ._step import Step
from ._version import __version__

__all__ = [
    "Artifact",
    "CompileError",
    "CompilerWarning",
    "CopyWarning",
    "DeviceError",
    "DiffersError",
    "FailedError",
    "NotInstalledError",
    "Outputs",
    "Step",
    "TandemError",
    "Tensor",
    "UnsupportedError",
    "UsageError",
    "Value",
    "__version__",
    "cache_folder",
    "clear_cache",
    "compile",
    "empty",
    "find_program",
    "help_of",
    "library_path",
]
