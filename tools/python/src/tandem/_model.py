"""A loaded artifact: the handle of its model, and calls of its programs with
tensors. `Step` and `tandem.torch` are made of it."""

from __future__ import annotations

import ctypes
import operator
import os
import weakref
from ctypes import byref, c_void_p
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _exchange as exchange
from ._artifact import Artifact, Value
from ._errors import UnsupportedError, UsageError
from ._exchange import Tensor
from ._library import Argument, Memory, Options, arguments, check, lib, loaded

__all__ = ["Context", "Model", "Program"]


class Program:
    """What the manifest says of a program that a call needs to know."""

    def __init__(self, artifact: Artifact, name: str) -> None:
        slots = artifact.program(name)
        self.name = name
        of_values = artifact.inputs
        taken = {s["name"] for s in slots["arguments"] if s["role"] == "input"}
        #: Its inputs, in the order of the model.
        self.inputs: Dict[str, Value] = {
            n: v for n, v in of_values.items() if n in taken
        }
        #: Its outputs, those that are views of something among them.
        aliased = {a["name"] for a in slots.get("aliases", [])}
        given = aliased | {
            r["name"] for r in slots["results"] if r["role"] == "output"
        }
        self.outputs: List[str] = [n for n in artifact.outputs if n in given]
        self.results: Dict[str, Mapping[str, Any]] = {
            r["name"]: r for r in slots["results"] if r["role"] == "output"
        }
        #: Whether outputs show memory that others have, too.
        self.has_aliases = bool(aliased)
        #: Inputs that it writes to.
        self.written = {
            r["name"]
            for r in slots["results"]
            if r["role"] == "update" and r["name"] in of_values
        }
        for slot in slots["arguments"]:
            for change in ("metadata", "storage", "resize", "freed"):
                if slot["role"] == "input" and change in slot:
                    raise UnsupportedError(
                        f"the program '{name}' changes what its input "
                        f"'{slot['name']}' shows, or is given it without "
                        "memory, which the package cannot"
                    )


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise UsageError(
            f"expected an integer for '{name}' but got {value!r}"
        ) from None


def seed_in_range(seed: int) -> int:
    """A seed of the C API, which has 64 bits."""
    seed = _integer("seed", seed)
    if not 0 <= seed < 2**64:
        raise UsageError(f"expected a seed from 0 to 2^64 - 1 but got {seed}")
    return seed


def limit_in_range(limit: int) -> int:
    """A limit of memory of the C API, which has 63 bits; 0 is none."""
    limit = _integer("memory_limit", limit)
    if not 0 <= limit < 2**63:
        raise UsageError(
            f"expected a memory limit from 0 to 2^63 - 1 bytes but got {limit}"
        )
    return limit


class Context:
    """What a forward saved for its backward."""

    __slots__ = ("handle", "__weakref__")

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UnsupportedError("a context cannot be copied or pickled")

    def __del__(self, _loaded: Any = loaded) -> None:
        library = _loaded()
        if library is not None:
            library.tdm_context_free(self.handle)


class Model:
    """A model of the C API (tdm_model) and the artifact that it came from."""

    def __init__(
        self,
        artifact: Artifact,
        *,
        device: Optional[str] = None,
        threads: int = 0,
        seed: int = 0,
        graphs: bool = True,
        libraries: bool = True,
        require_signature: Union[str, "os.PathLike[str]", None] = None,
        memory_limit: int = 0,
    ) -> None:
        self.artifact = artifact
        if device is not None and not isinstance(device, str):
            raise UsageError(
                f"expected a name for 'device', as 'cuda:1', but got {device!r}"
            )
        threads = _integer("threads", threads)
        if not 0 <= threads < 2**31:
            raise UsageError(
                f"expected threads from 0 to 2^31 - 1 but got {threads}"
            )
        options = Options(
            ctypes.sizeof(Options),
            threads,
            seed_in_range(seed),
            None if device is None else device.encode(),
            0 if graphs else 1,
            0 if libraries else 1,
            None if require_signature is None else os.fsencode(require_signature),
            limit_in_range(memory_limit),
        )
        handle = c_void_p()
        check(
            lib().tdm_model_load(
                os.fsencode(artifact.path), byref(options), byref(handle)
            )
        )
        assert handle.value is not None
        self.handle: int = handle.value
        self._final = weakref.finalize(self, lib().tdm_model_free, self.handle)
        self._final.atexit = False
        self.device = self._device(device)
        self._programs: Dict[str, Program] = {}
        #: Parameters and states, by name.
        self.values = {**artifact.params, **artifact.states}

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UnsupportedError(
            "a loaded model cannot be copied or pickled: load its artifact again"
        )

    def _device(self, asked: Optional[str]) -> str:
        if asked is not None:
            return asked if ":" in asked or asked == "cpu" else f"{asked}:0"
        return "cpu" if "cpu" in self.artifact.targets else "cuda:0"

    def program(self, name: str) -> Program:
        """A program by its name."""
        if name not in self._programs:
            self._programs[name] = Program(self.artifact, name)
        return self._programs[name]

    def tensor(self, name: str) -> Tensor:
        """The parameter or state of a name, of the model's memory."""
        handle = c_void_p()
        check(lib().tdm_get(self.handle, name.encode(), byref(handle)))
        return Tensor(handle)

    def set(self, name: str, tensor: Tensor) -> None:
        """Overwrites a parameter or state."""
        check(lib().tdm_set(self.handle, name.encode(), tensor.handle))

    def memory(self) -> Dict[str, int]:
        """Bytes: planned, allocated now, and the most so far."""
        use = Memory(ctypes.sizeof(Memory))
        check(lib().tdm_memory_use(self.handle, byref(use)))
        return {
            "planned": use.planned_bytes,
            "current": use.current_bytes,
            "peak": use.peak_bytes,
        }

    def run(
        self,
        program: str,
        inputs: Mapping[str, Tensor],
        outputs: Mapping[str, Tensor],
    ) -> None:
        """Runs a program."""
        given, wanted = _pack(inputs), _pack(outputs)
        check(
            lib().tdm_run(
                self.handle,
                program.encode(),
                given,
                len(given),
                wanted,
                len(wanted),
            )
        )

    def predict(
        self, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]
    ) -> None:
        """Runs `evaluate` over any number of rows."""
        given, wanted = _pack(inputs), _pack(outputs)
        check(
            lib().tdm_predict(
                self.handle, given, len(given), wanted, len(wanted)
            )
        )

    def forward(
        self, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]
    ) -> Context:
        """Runs `forward` and keeps what the backward needs."""
        given, wanted, context = _pack(inputs), _pack(outputs), c_void_p()
        check(
            lib().tdm_forward(
                self.handle,
                given,
                len(given),
                wanted,
                len(wanted),
                byref(context),
            )
        )
        assert context.value is not None
        return Context(context.value)

    def backward(
        self,
        context: Context,
        cotangents: Mapping[str, Tensor],
        grads: Mapping[str, Tensor],
        *,
        retain: bool = False,
    ) -> None:
        """Runs `backward` of a context."""
        given, wanted = _pack(cotangents), _pack(grads)
        check(
            lib().tdm_backward(
                self.handle,
                context.handle,
                given,
                len(given),
                wanted,
                len(wanted),
                1 if retain else 0,
            )
        )

    def use_stream(self, stream: int) -> None:
        """Makes a stream of the model's device the current one of this thread
        for calls of the C API."""
        check(
            lib().tdm_stream_set_current(self.device.encode(), stream or None)
        )


_encoded: Dict[str, bytes] = {}


def _pack(tensors: Mapping[str, Tensor]) -> Any:
    packed = arguments(len(tensors))
    for slot, (name, tensor) in zip(packed, tensors.items()):
        encoded = _encoded.get(name)
        if encoded is None:
            encoded = _encoded[name] = name.encode()
        slot.name = encoded
        slot.tensor = tensor.handle
    return packed
