"""Finding the program `tandem`, and calling it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Callable, List, Optional, Sequence, TextIO, Tuple, Union

from ._errors import NotInstalledError, of_exit

__all__ = ["Progress", "find_program", "run"]

#: What `compile` takes as `progress`: true for a line on stderr, or a function
#: that is called with each line that the compiler says.
Progress = Union[bool, Callable[[str], None], None]


def find_program() -> str:
    """The path of the program `tandem`: what the variable TANDEM names (the
    program, or a folder that has it), else one beside the package, else one in
    PATH."""
    given = os.environ.get("TANDEM")
    if given:
        for name in (given, os.path.join(given, "tandem"),
                     os.path.join(given, "bin", "tandem")):
            if os.path.isfile(name) and os.access(name, os.X_OK):
                return os.path.abspath(name)
        raise NotInstalledError(
            f"TANDEM names '{given}', which is no program and no folder that "
            "has the program 'tandem'"
        )
    beside = Path(__file__).resolve().parent / "bin" / "tandem"
    if beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("tandem")
    if found:
        return os.path.abspath(found)
    raise NotInstalledError(
        "the program 'tandem' was not found: install Tandem, put the folder of "
        "its programs into PATH, or name it in the variable TANDEM"
    )


def _first_error(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    # The text of the compiler is the message: errors with their places first.
    for index, line in enumerate(lines):
        if "error:" in line:
            return "\n".join(lines[index:])
    return "\n".join(lines)


class _Ticker:
    """A line on a terminal that counts seconds while the compiler runs."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what = what
        self._stream = stream
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._start = time.monotonic()
        self._terminal = stream.isatty()

    def __enter__(self) -> "_Ticker":
        if self._terminal:
            self._thread.start()
        else:
            print(f"tandem: compiling {self._what}", file=self._stream)
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        seconds = time.monotonic() - self._start
        if self._terminal:
            self._thread.join()
            self._stream.write("\r\x1b[K")
        print(
            f"tandem: compiled {self._what} in {seconds:.1f} s",
            file=self._stream,
        )
        self._stream.flush()

    def _run(self) -> None:
        while not self._done.wait(0.25):
            seconds = time.monotonic() - self._start
            self._stream.write(
                f"\rtandem: compiling {self._what} ... {seconds:.0f} s"
            )
            self._stream.flush()


def run(
    command: Sequence[str], what: str, progress: Progress = None
) -> Tuple[str, str]:
    """Runs a command of the program and returns what it said on stdout and on
    stderr; raises the exception of its exit code."""
    if progress is True:
        with _Ticker(what, sys.stderr):
            return _call(command, None)
    return _call(command, progress if callable(progress) else None)


def _call(
    command: Sequence[str], listener: Optional[Callable[[str], None]]
) -> Tuple[str, str]:
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.PIPE,
        )
        errors: List[str] = []
        try:
            assert process.stderr is not None
            for raw in process.stderr:
                line = raw.decode("utf-8", "replace").rstrip("\n")
                errors.append(line)
                if listener is not None:
                    listener(line)
            code = process.wait()
        except BaseException:
            # An interruption, or an exception of the listener: the compiler
            # ends with the call.
            process.kill()
            process.wait()
            raise
        finally:
            if process.stderr is not None:
                process.stderr.close()
        said.seek(0)
        out = said.read().decode("utf-8", "replace")
    text = "\n".join(errors)
    if code == 0:
        return out, text
    message = _first_error(text) or f"'{command[0]}' ended with {code}"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        message = f"the compiler was ended by {name}\n{message}"
        code = 128 - code
    raise of_exit(code, message, text, command)
