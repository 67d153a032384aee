"""The folder in which compiled models are kept, by what they were made of.

An entry is a folder whose name is a digest. It is made under another name and
renamed, so that it is there whole or not at all. A lock per entry has one of
several processes compile while the others wait; where the file system has no
locks, all compile, and the first one's entry stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import platform
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Set, Tuple

from ._errors import FailedError

__all__ = ["cache_folder", "clear_cache", "digest_file", "entry"]

# What a digest is of; another number when that changes.
_VERSION = b"tandem-python-cache-1"


def cache_folder() -> Path:
    """The folder of compiled models: `tandem/python` in XDG_CACHE_HOME, or in
    ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification has relative paths ignored.
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return root / "tandem" / "python"


def clear_cache() -> None:
    """Removes all compiled models from the cache. Artifacts that are loaded
    stay as they are."""
    shutil.rmtree(cache_folder(), ignore_errors=True)


def new_digest() -> "hashlib._Hash":
    """A digest that has begun with the form of entries and this machine's
    processor, for which models are compiled."""
    digest = hashlib.sha256(_VERSION)
    digest.update(_processor())
    return digest


_machine: Dict[str, bytes] = {}


def _processor() -> bytes:
    if "processor" not in _machine:
        lines: Set[str] = {platform.machine(), platform.system()}
        try:
            with open("/proc/cpuinfo", encoding="utf-8") as file:
                for line in file:
                    name = line.partition(":")[0].strip()
                    if name in ("model name", "flags", "Features", "CPU part"):
                        lines.add(line.strip())
        except OSError:
            pass
        _machine["processor"] = "\n".join(sorted(lines)).encode()
    return _machine["processor"]


_files: Dict[Tuple[str, int, int], bytes] = {}


def digest_file(path: str) -> bytes:
    """The digest of a file's bytes; not read again while its size and time of
    change stay."""
    status = os.stat(path)
    key = (os.path.realpath(path), status.st_size, status.st_mtime_ns)
    if key not in _files:
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while True:
                piece = file.read(1 << 20)
                if not piece:
                    break
                digest.update(piece)
        _files[key] = digest.digest()
    return _files[key]


# An entry of external_data in ONNX: key (1) "location", value (2).
_LOCATION = re.compile(rb"\x0a\x08location\x12")


def external_data(path: str) -> Iterator[str]:
    """The files beside a model in ONNX that it may have its data in. What looks
    like the name of one and is none does no harm: it is in the digest, too."""
    if os.path.getsize(path) == 0:
        return
    folder = os.path.dirname(os.path.abspath(path))
    names: Set[str] = set()
    with open(path, "rb") as file, mmap.mmap(
        file.fileno(), 0, access=mmap.ACCESS_READ
    ) as data:
        for match in _LOCATION.finditer(data):
            at, length, shift = match.end(), 0, 0
            while at < len(data) and shift < 35:
                byte = data[at]
                at += 1
                length |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            if 0 < length <= 4096:
                names.add(os.fsdecode(data[at : at + length]))
    for name in sorted(names):
        if "\0" not in name:
            file_name = os.path.join(folder, name)
            if os.path.isfile(file_name):
                yield file_name


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        import fcntl

        file = open(path, "ab")
    except (ImportError, OSError):
        yield
        return
    with file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _root() -> Path:
    """The folder of compiled models, which can be written to now."""
    root = cache_folder()
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not os.access(root, os.W_OK | os.X_OK):
            raise PermissionError(f"'{root}' cannot be written to")
    except OSError as error:
        raise FailedError(
            f"compiled models cannot be kept in '{root}': {error}; set "
            "XDG_CACHE_HOME to another folder, or give output="
        ) from error
    return root


def replace(key: str, made: Path) -> None:
    """Puts the files of a folder in the place of an entry."""
    root = _root()
    shutil.rmtree(root / key, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=f"{key[:16]}.", dir=root))
    try:
        shutil.copytree(made, new, dirs_exist_ok=True)
        os.rename(new, root / key)
    except OSError:
        # Somebody made it meanwhile, of the same.
        if not (root / key).is_dir():
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def entry(key: str, names: Tuple[str, ...], make: Callable[[Path], Any]) -> Path:
    """The folder of an entry. Where it is not there, `make` fills a new one;
    an entry is one if it has the files `names`."""
    folder = cache_folder() / key

    def there() -> bool:
        return all((folder / name).is_file() for name in names)

    if there():
        return folder
    root = _root()
    with _locked(root / f"{key}.lock"):
        if there():
            return folder
        made = Path(tempfile.mkdtemp(prefix=f"{key[:16]}.", dir=root))
        try:
            make(made)
            if folder.exists() and not there():
                # Somebody took files out of it.
                shutil.rmtree(folder, ignore_errors=True)
            try:
                os.rename(made, folder)
            except OSError:
                # Another process, on a file system without locks.
                if not there():
                    raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.unlink(root / f"{key}.lock")
    return folder
