"""The C API (runtime/tandem.h) by ctypes: where the library is found, and the
functions of it that the package calls.

The library is looked for where TANDEM_LIBRARY says, beside the package, beside
the program `tandem`, and where the system finds libraries.
"""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any, Iterator, List, Optional

from ._errors import NotInstalledError, of_status

__all__ = ["Argument", "Options", "arguments", "check", "lib", "library_path"]

SONAME = "libtandem.so.1"


class Options(ctypes.Structure):
    """tdm_options."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("threads", c_int),
        ("seed", ctypes.c_uint64),
        ("device", c_char_p),
        ("no_graphs", c_int),
        ("no_libraries", c_int),
        ("require_signature", c_char_p),
        ("memory_limit", c_int64),
    ]


class Argument(ctypes.Structure):
    """tdm_argument."""

    _fields_ = [("name", c_char_p), ("tensor", c_void_p)]


class Memory(ctypes.Structure):
    """tdm_memory."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("planned_bytes", c_int64),
        ("current_bytes", c_int64),
        ("peak_bytes", c_int64),
    ]


_shape = POINTER(c_int64)
_out = POINTER(c_void_p)
_args = POINTER(Argument)

# Name, result, arguments. What gives a status is checked by `check`.
_FUNCTIONS = [
    ("tdm_last_error", c_char_p, []),
    ("tdm_version", c_char_p, []),
    ("tdm_model_load", c_int, [c_char_p, POINTER(Options), _out]),
    ("tdm_model_free", None, [c_void_p]),
    ("tdm_memory_use", c_int, [c_void_p, POINTER(Memory)]),
    ("tdm_tensor_empty", c_int, [_out]),
    ("tdm_tensor_zeros", c_int, [c_int, c_int, _shape, _out]),
    ("tdm_tensor_wrap", c_int, [c_void_p, c_int, c_int, _shape, _shape, _out]),
    (
        "tdm_tensor_wrap_on",
        c_int,
        [c_char_p, c_void_p, c_int, c_int, _shape, _shape, _out],
    ),
    ("tdm_tensor_copy_to", c_int, [c_void_p, c_char_p, _out]),
    ("tdm_tensor_from_dlpack", c_int, [c_void_p, _out]),
    ("tdm_tensor_to_dlpack", c_int, [c_void_p, _out]),
    ("tdm_tensor_to_dlpack_on", c_int, [c_void_p, c_void_p, _out]),
    ("tdm_tensor_free", None, [c_void_p]),
    ("tdm_tensor_device", c_char_p, [c_void_p]),
    ("tdm_tensor_use_on", c_int, [c_void_p, c_void_p]),
    ("tdm_tensor_dtype", c_int, [c_void_p]),
    ("tdm_tensor_rank", c_int, [c_void_p]),
    ("tdm_tensor_shape", _shape, [c_void_p]),
    ("tdm_tensor_strides", _shape, [c_void_p]),
    ("tdm_tensor_data", c_void_p, [c_void_p]),
    ("tdm_tensor_mark_written", None, [c_void_p]),
    ("tdm_stream_set_current", c_int, [c_char_p, c_void_p]),
    ("tdm_synchronize", c_int, [c_char_p]),
    ("tdm_get", c_int, [c_void_p, c_char_p, _out]),
    ("tdm_set", c_int, [c_void_p, c_char_p, c_void_p]),
    ("tdm_initialize", c_int, [c_void_p, ctypes.c_uint64]),
    ("tdm_save", c_int, [c_void_p, c_char_p]),
    ("tdm_load", c_int, [c_void_p, c_char_p]),
    (
        "tdm_run",
        c_int,
        [c_void_p, c_char_p, _args, c_size_t, _args, c_size_t],
    ),
    ("tdm_predict", c_int, [c_void_p, _args, c_size_t, _args, c_size_t]),
    (
        "tdm_forward",
        c_int,
        [c_void_p, _args, c_size_t, _args, c_size_t, _out],
    ),
    (
        "tdm_backward",
        c_int,
        [c_void_p, c_void_p, _args, c_size_t, _args, c_size_t, c_uint],
    ),
    ("tdm_context_free", None, [c_void_p]),
]

_lock = threading.Lock()
_loaded: Optional[Any] = None
_path: Optional[str] = None


def _candidates() -> Iterator[str]:
    package = Path(__file__).resolve().parent
    yield str(package / "lib" / SONAME)
    from ._program import find_program

    try:
        prefix = Path(find_program()).resolve().parent.parent
    except NotInstalledError:
        prefix = None
    if prefix is not None:
        yield str(prefix / "lib" / SONAME)
        for folder in sorted(prefix.glob("lib/*-linux-gnu")):
            yield str(folder / SONAME)
        yield str(prefix / "lib64" / SONAME)


def _open() -> Any:
    global _path
    given = os.environ.get("TANDEM_LIBRARY")
    if given:
        try:
            library = ctypes.CDLL(given)
        except OSError as error:
            raise NotInstalledError(
                f"TANDEM_LIBRARY names '{given}', which cannot be opened: {error}"
            ) from error
        _path = given
        return library
    tried: List[str] = []
    for name in _candidates():
        tried.append(name)
        if os.path.exists(name):
            try:
                library = ctypes.CDLL(name)
            except OSError as error:
                raise NotInstalledError(
                    f"'{name}' cannot be opened: {error}"
                ) from error
            _path = name
            return library
    try:
        library = ctypes.CDLL(SONAME)
    except OSError as error:
        raise NotInstalledError(
            f"the library {SONAME} of Tandem was not found: install it, or say "
            f"where it is in TANDEM_LIBRARY (looked for {', '.join(tried)}, and "
            "where the system finds libraries)"
        ) from error
    _path = SONAME
    return library


def lib() -> Any:
    """The library, loaded once."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                library = _open()
                for name, result, arguments_ in _FUNCTIONS:
                    try:
                        function = getattr(library, name)
                    except AttributeError as error:
                        raise NotInstalledError(
                            f"'{_path}' has no function {name}: it is no "
                            "library of Tandem, or one of another version"
                        ) from error
                    function.restype = result
                    function.argtypes = arguments_
                _loaded = library
    return _loaded


def loaded() -> Optional[Any]:
    """The library, if it was loaded and the interpreter is not at its end."""
    return _loaded


def library_path() -> str:
    """The file that the library was loaded from."""
    lib()
    assert _path is not None
    return _path


def check(status: int) -> None:
    """Raises the exception of a status that is not TDM_OK."""
    if status:
        text = lib().tdm_last_error().decode("utf-8", "replace")
        raise of_status(status, text)


def arguments(count: int) -> Any:
    """An array of `count` tdm_argument."""
    return (Argument * count)()
