"""Arrays of NumPy, PyTorch, JAX and others as tensors of the C API, and back.

An array is used where it lies. `Tensor` owns a handle of the C API; it keeps
what its memory belongs to, and frees both when nothing of Python refers to it
any more. Nothing here imports PyTorch or JAX: an array of theirs is known by
its module.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_char_p, c_int64, c_void_p, py_object
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from ._errors import UnsupportedError, UsageError
from ._library import check, lib, loaded

__all__ = ["Tensor", "kind_of", "to_kind"]

# The order of tdm_dtype.
DTYPES = (
    "bool", "i8", "u8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64",
    "u16", "u32", "u64", "f8E4M3FN", "f8E5M2",
)
CODE_OF = {name: code for code, name in enumerate(DTYPES)}

_NUMPY = {
    "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16,
    "i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32,
    "f64": np.float64, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}
_CODE_OF_NUMPY = {np.dtype(t): CODE_OF[name] for name, t in _NUMPY.items()}
# Types that NumPy has by the package ml_dtypes alone.
_ML_DTYPES = {
    "bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2",
}
_CODE_OF_ML = {name: CODE_OF[ours] for ours, name in _ML_DTYPES.items()}
_TORCH = {
    "bool": "bool", "i8": "int8", "u8": "uint8", "i16": "int16",
    "i32": "int32", "i64": "int64", "f16": "float16", "bf16": "bfloat16",
    "f32": "float32", "f64": "float64", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2",
}
_ITEMSIZE = {
    "bool": 1, "i8": 1, "u8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2,
    "bf16": 2, "f32": 4, "f64": 8, "u16": 2, "u32": 4, "u64": 8,
    "f8E4M3FN": 1, "f8E5M2": 1,
}
#: Types that NumPy has itself.
PLAIN = frozenset(_NUMPY)
_code_of_torch: Dict[Any, int] = {}

NUMPY, TORCH, JAX, OTHER = "numpy", "torch", "jax", "tandem"
KINDS = (NUMPY, TORCH, JAX, OTHER)


def torch_codes() -> Dict[Any, int]:
    """The code of each type of PyTorch."""
    if not _code_of_torch:
        torch = sys.modules["torch"]
        for ours, theirs in _TORCH.items():
            if hasattr(torch, theirs):
                _code_of_torch[getattr(torch, theirs)] = CODE_OF[ours]
    return _code_of_torch


def torch_type(name: str) -> Any:
    """The type of PyTorch for one of Tandem."""
    return getattr(sys.modules["torch"], _TORCH[name])


def numpy_dtype(name: str) -> Any:
    """The type of NumPy for one of Tandem."""
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    try:
        import ml_dtypes
    except ImportError as error:
        raise UnsupportedError(
            f"NumPy has no type {name} without the package ml_dtypes: install "
            "it, or take the tensor to PyTorch or JAX"
        ) from error
    return np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))


def code_of_numpy(dtype: Any) -> Optional[int]:
    """The code of a type of NumPy; none if Tandem has no such type."""
    code = _CODE_OF_NUMPY.get(dtype)
    if code is None and dtype.kind in "Vf" and dtype.isnative:
        code = _CODE_OF_ML.get(dtype.name)
    return code


def kind_of(value: Any) -> str:
    """Whose array this is: "numpy", "torch", "jax", or "tandem" for a Tensor
    and what else speaks DLPack."""
    if isinstance(value, (np.ndarray, np.generic)):
        return NUMPY
    # Subclasses, as torch.nn.Parameter, are of their base's kind.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return TORCH
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.Array):
        return JAX
    if hasattr(value, "__dlpack__"):
        return OTHER
    return NUMPY


def _int64s(values: Sequence[int]) -> Any:
    return (c_int64 * max(1, len(values)))(*values)


# --- Capsules of DLPack ----------------------------------------------------

_LIVE, _USED = b"dltensor", b"used_dltensor"

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = py_object
_new_capsule.argtypes = [c_void_p, c_char_p, c_void_p]
_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.restype = ctypes.c_int
_is_capsule.argtypes = [py_object, c_char_p]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = c_void_p
_pointer_of.argtypes = [py_object, c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype = ctypes.c_int
_rename.argtypes = [py_object, c_char_p]
# The same for a destructor, which has the address of a capsule that is dying.
_raw_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_raw_pointer_of = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLManagedTensor(ctypes.Structure):
    _fields_ = [
        ("dl_tensor", _DLTensor),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
    ]


def _delete_managed(pointer: int) -> None:
    managed = _DLManagedTensor.from_address(pointer)
    if managed.deleter:
        _Deleter(managed.deleter)(pointer)


def _destroy(capsule: int) -> None:
    # Of a capsule that nobody took over. Names are compared by their text.
    if _raw_is_capsule(capsule, _LIVE):
        _delete_managed(_raw_pointer_of(capsule, _LIVE))


_destroy_capsule = ctypes.PYFUNCTYPE(None, c_void_p)(_destroy)
_destructor = ctypes.cast(_destroy_capsule, c_void_p)


def _capsule_of(handle: int, stream: Optional[int]) -> Any:
    managed = c_void_p()
    if stream is None:
        check(lib().tdm_tensor_to_dlpack(handle, byref(managed)))
    else:
        check(lib().tdm_tensor_to_dlpack_on(handle, stream, byref(managed)))
    return _new_capsule(managed, _LIVE, _destructor)


def take_capsule(capsule: Any) -> "Tensor":
    """Takes over what a capsule holds."""
    if not _is_capsule(capsule, _LIVE):
        raise UsageError(
            "expected a DLPack capsule that was not used before (of the form "
            "without a version)"
        )
    handle = c_void_p()
    check(
        lib().tdm_tensor_from_dlpack(_pointer_of(capsule, _LIVE), byref(handle))
    )
    _rename(capsule, _USED)
    return Tensor(handle)


# --- Tensors ---------------------------------------------------------------


def _free(handle: int, loaded: Any = loaded) -> None:
    library = loaded()
    if library is not None:
        library.tdm_tensor_free(handle)


class Tensor:
    """A tensor of Tandem: memory with a type and a shape, on a device.

    It speaks DLPack (`__dlpack__`), so PyTorch, JAX, CuPy and NumPy take it
    without a copy, and `numpy()`, `torch()` and `jax()` are short for that.
    What was made of it stays valid when the Tensor, and the Step that it came
    from, are gone.
    """

    __slots__ = ("_handle", "_owner", "_readonly", "__weakref__")

    def __init__(
        self, handle: Any, owner: Any = None, readonly: bool = False
    ) -> None:
        self._handle: int = handle.value
        self._owner = owner
        self._readonly = readonly

    def __del__(self, _free: Any = _free) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            _free(handle)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UnsupportedError(
            "a Tensor cannot be copied or pickled: take it as an array by "
            "numpy(), torch() or jax()"
        )

    @property
    def handle(self) -> int:
        """The address of the handle (tdm_tensor *)."""
        return self._handle

    @property
    def dtype(self) -> str:
        """The type of the elements, as "f32"."""
        return DTYPES[lib().tdm_tensor_dtype(self._handle)]

    @property
    def shape(self) -> Tuple[int, ...]:
        """The sizes."""
        rank = lib().tdm_tensor_rank(self._handle)
        return tuple(lib().tdm_tensor_shape(self._handle)[: max(rank, 0)])

    @property
    def strides(self) -> Tuple[int, ...]:
        """The strides, in elements."""
        rank = lib().tdm_tensor_rank(self._handle)
        return tuple(lib().tdm_tensor_strides(self._handle)[: max(rank, 0)])

    @property
    def device(self) -> str:
        """Where it lies: "cpu", "cuda:0"."""
        name = lib().tdm_tensor_device(self._handle)
        return "" if name is None else str(name.decode())

    @property
    def is_empty(self) -> bool:
        """Whether it shows nothing: an undefined gradient."""
        return bool(lib().tdm_tensor_rank(self._handle) < 0)

    def mark_written(self) -> None:
        """Says that the caller wrote to its memory: what was saved of it for a
        backward, and what was prepared from it, is not used any more."""
        lib().tdm_tensor_mark_written(self._handle)

    def to(self, device: str) -> "Tensor":
        """A copy on a device, or on the host ("cpu")."""
        copy = c_void_p()
        check(
            lib().tdm_tensor_copy_to(self._handle, device.encode(), byref(copy))
        )
        return Tensor(copy)

    def __dlpack__(self, *, stream: Optional[int] = None, **_: Any) -> Any:
        if self.device == "cpu":
            if self._owner is not None:
                return self.numpy().__dlpack__()
            return _capsule_of(self._handle, None)
        self.__dlpack_device__()
        # -1: no order is wanted. 0, 1 and none are CUDA's default stream.
        if stream == -1:
            return _capsule_of(self._handle, None)
        if stream in (None, 0, 1):
            return _capsule_of(self._handle, 0)
        return _capsule_of(self._handle, stream)

    def __dlpack_device__(self) -> Tuple[int, int]:
        name, _, number = self.device.partition(":")
        if name == "cpu":
            return (1, 0)
        if name == "cuda":
            return (2, int(number or 0))
        raise UnsupportedError(
            f"DLPack has no device '{self.device}': take a copy, to('cpu')"
        )

    def numpy(self) -> Any:
        """The tensor as an array of NumPy: of the host's memory without a copy,
        of a device's a copy."""
        if self.device != "cpu":
            return self.to("cpu").numpy()
        dtype = numpy_dtype(self.dtype)
        shape = self.shape
        if 0 in shape:
            return np.empty(shape, dtype)
        array = np.asarray(_Memory(self, dtype))
        return array if array.dtype == dtype else array.view(dtype)

    def torch(self) -> Any:
        """The tensor as one of PyTorch, of the same memory."""
        import torch

        if self.dtype in _ML_DTYPES and self.dtype != "bf16":
            # DLPack's codes of these are not known to every PyTorch.
            view = self.numpy_bits()
            return torch.from_numpy(view).view(
                getattr(torch, _TORCH[self.dtype])
            )
        if self.device != "cpu":
            stream = torch.cuda.current_stream(self.device).cuda_stream
            return torch.utils.dlpack.from_dlpack(
                _capsule_of(self._handle, stream)
            )
        if self._owner is not None:
            # Memory that is not Tandem's lives as long as NumPy's view of it.
            return torch.from_numpy(self.numpy())
        return torch.utils.dlpack.from_dlpack(_capsule_of(self._handle, None))

    def numpy_bits(self) -> Any:
        """The elements as unsigned integers of their size."""
        tensor = self if self.device == "cpu" else self.to("cpu")
        bits = np.dtype(f"u{_ITEMSIZE[tensor.dtype]}")
        if 0 in tensor.shape:
            return np.empty(tensor.shape, bits)
        return np.asarray(_Memory(tensor, bits)).view(bits)

    def jax(self) -> Any:
        """The tensor as an array of JAX, of the same memory, which nobody may
        write then."""
        import jax

        return jax.dlpack.from_dlpack(self)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __repr__(self) -> str:
        if self.is_empty:
            return "tandem.Tensor(empty)"
        sizes = ", ".join(str(size) for size in self.shape)
        return f"tandem.Tensor({self.dtype}[{sizes}] on {self.device})"


class _Memory:
    """What NumPy keeps as the base of an array over a tensor's memory."""

    def __init__(self, tensor: Tensor, dtype: Any) -> None:
        self._tensor = tensor
        size = dtype.itemsize
        kind = dtype.str if dtype.kind in "biuf" else f"<u{size}"
        self.__array_interface__ = {
            "version": 3,
            "shape": tensor.shape,
            "typestr": kind,
            "data": (
                lib().tdm_tensor_data(tensor.handle),
                tensor._readonly,
            ),
            "strides": tuple(stride * size for stride in tensor.strides),
        }


def empty() -> Tensor:
    """An empty handle, which a call sets to a new tensor."""
    handle = c_void_p()
    check(lib().tdm_tensor_empty(byref(handle)))
    return Tensor(handle)


def zeros(dtype: str, shape: Sequence[int]) -> Tensor:
    """Zeros in the host's memory."""
    handle = c_void_p()
    check(
        lib().tdm_tensor_zeros(
            CODE_OF[dtype], len(shape), _int64s(shape), byref(handle)
        )
    )
    return Tensor(handle)


def _wrap(
    address: int,
    code: int,
    shape: Sequence[int],
    strides: Sequence[int],
    owner: Any,
    device: Optional[str] = None,
) -> Tensor:
    handle = c_void_p()
    rank = len(shape)
    sizes, steps = _int64s(shape), _int64s(strides)
    if device is None:
        status = lib().tdm_tensor_wrap(
            address, code, rank, sizes, steps, byref(handle)
        )
    else:
        status = lib().tdm_tensor_wrap_on(
            device.encode(), address, code, rank, sizes, steps, byref(handle)
        )
    check(status)
    return Tensor(handle, owner)


# An address for arrays without elements, which have none of their own.
_nothing = ctypes.create_string_buffer(64)


def of_numpy(array: Any, code: int) -> Tensor:
    """A tensor over the memory of an array, whose strides are multiples of its
    elements and nowhere negative."""
    interface = array.__array_interface__
    size = array.dtype.itemsize
    address = interface["data"][0] or ctypes.addressof(_nothing)
    return _wrap(
        address,
        code,
        array.shape,
        [stride // size for stride in array.strides],
        array,
    )


def fits(array: Any) -> bool:
    """Whether a tensor can lie over the array's memory."""
    size = array.dtype.itemsize
    return bool(
        array.dtype.isnative
        and array.flags.aligned
        and all(s >= 0 and s % size == 0 for s in array.strides)
    )


def of_torch(tensor: Any, owning: bool = False) -> Tensor:
    """A tensor over the memory of one of PyTorch. `owning`: it keeps that
    memory also where the C API keeps the tensor, as a context does."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    code = torch_codes().get(tensor.dtype)
    if code is None:
        raise UsageError(f"Tandem has no type for PyTorch's {tensor.dtype}")
    device = tensor.device
    if device.type not in ("cpu", "cuda"):
        raise UnsupportedError(f"Tandem has no device '{device}'")
    if tensor.layout is not sys.modules["torch"].strided or tensor.is_conj():
        raise UnsupportedError("expected a dense tensor of PyTorch")
    if tensor.is_neg():  # a view that says minus, of memory that does not
        tensor = tensor.resolve_neg()
    if owning:
        return take_capsule(sys.modules["torch"].utils.dlpack.to_dlpack(tensor))
    name = None if device.type == "cpu" else f"cuda:{device.index or 0}"
    address = tensor.data_ptr()
    if not address and name is None:
        address = ctypes.addressof(_nothing)
    return _wrap(address, code, tensor.shape, tensor.stride(), tensor, name)


def of_dlpack(value: Any) -> Tensor:
    """A tensor of what speaks DLPack."""
    if isinstance(value, Tensor):
        return value
    device_type, _ = value.__dlpack_device__()
    if device_type in (1, 3):
        return take_capsule(value.__dlpack__())
    if device_type != 2:
        raise UnsupportedError(
            f"Tandem has no device for DLPack's number {device_type}"
        )
    # CUDA's default stream, which is the current one of the C API here.
    check(lib().tdm_stream_set_current(b"cuda", None))
    return take_capsule(value.__dlpack__(stream=1))


def to_kind(tensor: Tensor, kind: str) -> Any:
    """The tensor as an array of a kind."""
    if kind == NUMPY:
        return tensor.numpy()
    if kind == TORCH:
        return tensor.torch()
    if kind == JAX:
        return tensor.jax()
    return tensor
