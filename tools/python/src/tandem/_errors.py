"""The exceptions of the package: one class for each status of the C API and
each exit code of the program `tandem`."""

from __future__ import annotations

import sys
from typing import Optional, Sequence

__all__ = [
    "CompileError",
    "CopyWarning",
    "DeviceError",
    "DiffersError",
    "FailedError",
    "NotInstalledError",
    "TandemError",
    "UnsupportedError",
    "UsageError",
]


class TandemError(Exception):
    """What every error of the package is.

    `exit_code` is the status of the C API, or the exit code of the program
    `tandem`; `text` is all that it said, with the places in the model;
    `command` is the command line, where a program was called.
    """

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        text: Optional[str] = None,
        command: Optional[Sequence[str]] = None,
        exit_code: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        self.text = message if text is None else text
        self.command = None if command is None else list(command)
        if exit_code is not None:
            self.exit_code = exit_code


class FailedError(TandemError, RuntimeError):
    """A file, memory, or a file that is not what it should be."""


class CompileError(FailedError):
    """The compiler refused the model, or failed."""


class UsageError(TandemError, ValueError):
    """A wrong option, name, shape or type; something that is missing."""

    exit_code = 2


class UnsupportedError(TandemError, NotImplementedError):
    """Right, but this compiler, artifact or package cannot do it."""

    exit_code = 3


class DiffersError(TandemError):
    """Numbers differ."""

    exit_code = 4


class DeviceError(TandemError, RuntimeError):
    """A device, driver or feature of the processor is not available."""

    exit_code = 5


class NotInstalledError(TandemError, ImportError):
    """The program or the library of Tandem was not found."""


class CopyWarning(UserWarning):
    """An array could not be used where it lies, and was copied."""


_BY_CODE = {
    2: UsageError,
    3: UnsupportedError,
    4: DiffersError,
    5: DeviceError,
}


def of_status(code: int, message: str) -> TandemError:
    """The exception for a status of the C API."""
    return _BY_CODE.get(code, FailedError)(message, exit_code=code)


def of_exit(
    code: int, message: str, text: str, command: Sequence[str]
) -> TandemError:
    """The exception for an exit code of `tandem compile`."""
    kind = _BY_CODE.get(code, CompileError)
    return kind(message, text=text, command=command, exit_code=code)


def level_of_caller() -> int:
    """The level, for warnings of a function that calls this one, of the
    nearest frame outside of the package and of what calls it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get(
        "__name__", ""
    ).partition(".")[0] in ("tandem", "torch", "jax"):
        level, frame = level + 1, frame.f_back
    return level
