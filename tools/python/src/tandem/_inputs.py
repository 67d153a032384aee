"""What a caller gives as tensors of a call: without a copy where that is
possible, with a warning or an error where it is not."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from . import _exchange as exchange
from ._artifact import Value
from ._errors import CopyWarning, UsageError, level_of_caller
from ._exchange import JAX, NUMPY, OTHER, TORCH, Tensor
from ._library import lib

__all__ = ["Taker", "by_name"]

ALIGNMENT = 64


def by_name(
    names: Sequence[str],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    what: str,
    optional: bool = False,
) -> Dict[str, Any]:
    """Arguments by the names of inputs: those without a name in the order of
    the model. All that is wrong is in one message."""
    given: Dict[str, Any] = dict(zip(names, args))
    wrong: List[str] = []
    if len(args) > len(names):
        wrong.append(
            f"got {len(args)} arguments, but it has {len(names)} inputs"
        )
    for name in kwargs:
        if name not in names:
            wrong.append(f"it has no input '{name}'")
        elif name in given:
            wrong.append(f"input '{name}' is given twice")
    given.update(kwargs)
    if not optional:
        missing = [n for n in names if n not in given]
        if missing:
            wrong.append(
                "inputs are missing: " + ", ".join(f"'{n}'" for n in missing)
            )
    if wrong:
        all_of_them = ", ".join(f"'{n}'" for n in names) or "none"
        raise UsageError(f"{what}: {'; '.join(wrong)} (inputs: {all_of_them})")
    return {n: given[n] for n in names if n in given}


class Taker:
    """Makes tensors of arrays for the calls of one model."""

    def __init__(self, device: str, copies: str) -> None:
        if copies not in ("warn", "allow", "refuse"):
            raise UsageError(
                f"expected copies='warn', 'allow' or 'refuse' but got '{copies}'"
            )
        self.device = device
        self._copies = copies
        self._warned: Set[Tuple[str, str]] = set()

    def _copied(
        self, name: str, reason: str, copied: Dict[str, str], quiet: bool = False
    ) -> None:
        copied[name] = reason
        if self._copies == "refuse":
            raise UsageError(f"'{name}' has to be copied: {reason}")
        if self._copies == "warn" and not quiet:
            if (name, reason) not in self._warned:
                self._warned.add((name, reason))
                warnings.warn(
                    f"'{name}' is copied in each call: {reason}",
                    CopyWarning,
                    stacklevel=level_of_caller(),
                )

    def take(
        self,
        name: str,
        value: Any,
        spec: Value,
        copied: Dict[str, str],
        *,
        written: bool = False,
        owning: bool = False,
    ) -> Tensor:
        """A tensor of what is given as `name`. `written`: the call writes to
        it, so it must be the caller's memory. `owning`: it may be kept longer
        than the call."""
        kind = exchange.kind_of(value)
        if kind == TORCH:
            return self._torch(name, value, spec, copied, written, owning)
        if kind == OTHER:
            return exchange.of_dlpack(value)
        if kind == JAX and isinstance(value, sys.modules["jax"].core.Tracer):
            raise UsageError(
                f"'{name}' has no numbers yet: it is traced, as within jax.jit "
                "or jax.grad (tandem.jax.wrap makes a function for those)"
            )
        if kind == JAX:
            if written:
                raise UsageError(
                    f"the program writes to its input '{name}', and arrays of "
                    "JAX cannot be written"
                )
            if any(d.platform != "cpu" for d in value.devices()):
                return exchange.of_dlpack(value)
            value = np.asarray(value)
        return self._numpy(name, value, spec, copied, written)

    def _torch(
        self,
        name: str,
        value: Any,
        spec: Value,
        copied: Dict[str, str],
        written: bool,
        owning: bool,
    ) -> Tensor:
        if value.device.type == "cuda" and self.device == "cpu":
            raise UsageError(
                f"'{name}' is on {value.device}, but the model is on the CPU: "
                "compile it with target='cuda', or give it '.cpu()'"
            )
        if value.layout is not sys.modules["torch"].strided:
            raise UsageError(
                f"expected '{name}' to be dense but got {value.layout}: give it "
                "'.to_dense()'"
            )
        code = exchange.torch_codes().get(value.dtype)
        wanted = exchange.CODE_OF[spec.dtype]
        if code != wanted:
            ours = None if code is None else exchange.DTYPES[code]
            if written or not _is_widened(ours, spec.dtype):
                raise UsageError(
                    f"expected '{name}' of type {spec.dtype} but got PyTorch's "
                    f"{value.dtype}"
                )
            self._copied(
                name,
                f"it is {ours}, and the model takes {spec.dtype}",
                copied,
            )
            value = value.to(exchange.torch_type(spec.dtype))
        elif value.device.type == "cpu" and self.device == "cpu":
            if value.data_ptr() % ALIGNMENT or not value.is_contiguous():
                self._copied(
                    name,
                    "its memory is not dense and aligned to 64 bytes",
                    copied,
                )
        return exchange.of_torch(value, owning)

    def _numpy(
        self,
        name: str,
        value: Any,
        spec: Value,
        copied: Dict[str, str],
        written: bool,
    ) -> Tensor:
        plain = not isinstance(value, (np.ndarray, np.generic))
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise UsageError(f"'{name}' is no array: {error}") from error
        if plain:
            # Numbers and lists of Python have no type of their own.
            array = _of_python(name, array, spec)
        code = exchange.code_of_numpy(array.dtype)
        wanted = exchange.CODE_OF[spec.dtype]
        reason = None
        if code != wanted:
            target = _widened(array.dtype, spec.dtype)
            if target is None:
                raise UsageError(
                    f"expected '{name}' of type {spec.dtype} but got NumPy's "
                    f"{array.dtype}"
                )
            reason = f"it is {array.dtype}, and the model takes {spec.dtype}"
            if not written:
                array = array.astype(target)
        elif not exchange.fits(array):
            reason = "its strides are negative or no multiples of its elements"
            if not written:
                array = np.ascontiguousarray(array)
        if written and (reason is not None or not array.flags.writeable):
            raise UsageError(
                f"the program writes to its input '{name}', but "
                + (reason or "the array cannot be written")
            )
        if reason is not None and not plain:
            self._copied(name, reason, copied)
        elif not array.flags.c_contiguous:
            self._copied(name, "its elements are not dense", copied)
        elif array.size and array.__array_interface__["data"][0] % ALIGNMENT:
            # NumPy aligns to 16 bytes: worth a word in `copied`, no warning.
            self._copied(name, "it is not aligned to 64 bytes", copied, True)
        return exchange.of_numpy(array, wanted)


def _of_python(name: str, array: Any, spec: Value) -> Any:
    target = exchange.numpy_dtype(spec.dtype)
    if array.dtype == target:
        return array
    wrong = array.dtype.kind not in "biuf" or (
        array.dtype.kind == "f" and spec.dtype[0] in "iub"
    )
    with np.errstate(all="ignore"):
        made = None if wrong else array.astype(target)
    if made is not None and array.dtype.kind == "f":
        lost = np.isfinite(array) & ~np.isfinite(made.astype(array.dtype))
        if lost.any():
            raise UsageError(
                f"'{name}' has {array[lost].flat[0]}, which is beyond {spec.dtype}"
            )
    if made is None or (
        array.dtype.kind in "biu"
        and spec.dtype[0] in "iub"
        and not np.array_equal(made, array)
    ):
        raise UsageError(
            f"expected numbers for '{name}' that are {spec.dtype} but got "
            f"{array.dtype}"
        )
    return made


def _is_widened(ours: Optional[str], wanted: str) -> bool:
    """Whether elements of a type of Tandem are brought to another one without
    a loss."""
    if ours == "bf16":
        return wanted in ("f32", "f64")
    return (
        ours is not None
        and ours in exchange.PLAIN
        and _widened(exchange.numpy_dtype(ours), wanted) is not None
    )


def _widened(dtype: Any, wanted: str) -> Optional[Any]:
    """The type of NumPy to which elements of another type are brought, if
    nothing is lost by it."""
    if dtype.kind not in "iuf" or wanted not in exchange.PLAIN or wanted == "bool":
        return None
    if dtype.kind in "iu" and dtype.itemsize == 8 and wanted == "f64":
        return None  # safe to NumPy, though numbers beyond 2^53 lose digits
    target = exchange.numpy_dtype(wanted)
    return target if np.can_cast(dtype, target, "safe") else None


def empty(shape: Any, dtype: Any = np.float32) -> Any:
    """An array of NumPy whose memory is aligned to 64 bytes, which calls use
    without a copy."""
    dtype = np.dtype(dtype)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    count = int(np.prod(sizes, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(count + ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[start : start + count].view(dtype).reshape(sizes)
