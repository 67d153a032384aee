"""`compile`: from a model to an artifact, by the program `tandem`.

A file is compiled as it is. A module of PyTorch is exported by torch.export to
an archive, a function of JAX by jax.export to StableHLO, and that is compiled
(_export_torch.py, _export_jax.py). What comes out is kept by the content of all
that went in (_cache.py).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _cache
from ._artifact import Artifact
from ._errors import UnsupportedError, UsageError, level_of_caller
from ._program import Progress, find_program, run

__all__ = ["CompilerWarning", "compile", "help_of"]

#: What a model can be a file of.
ENDINGS = (".mlir", ".mlirbc", ".json", ".onnx", ".pt2")

# What the package itself says, or what would give no artifact.
_REFUSED = {
    "o": "output=", "weights": "Artifact.weights", "stop_after": "the program",
    "print_pipeline": "the program", "help": "tandem.help_of('compile')",
}
# What leaves something behind beside the artifact: the compiler is called.
_NOT_CACHED = {
    "dump_phases", "dump_passes", "reproducer", "time_report", "time_passes",
}


# What an importer says of an operator that it has not.
_UNKNOWN_OPERATOR = "unsupported: the operator '"


class CompilerWarning(UserWarning):
    """A warning of the compiler, with its place in the model."""


@dataclass
class Source:
    """A model that is to be compiled."""

    #: Makes the file in a folder, and returns its path.
    write: Callable[[Path], Path]
    #: What it is to be known by in the cache.
    digest: bytes
    #: For messages.
    what: str
    initial: Optional[Mapping[str, Any]] = None
    options: Dict[str, Any] = field(default_factory=dict)
    #: Makes the same model without operators that are not supported, by what
    #: the compiler said of them; nothing if there is no other way to say it.
    again: Optional[Callable[[str], Optional["Source"]]] = None


def _text(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return os.fspath(value)  # type: ignore[no-any-return]
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_text(v) for v in value) + "]"
    return str(value)


def options_of(options: Mapping[str, Any]) -> List[str]:
    """The command line of keyword arguments: `dim={"batch": 64}` is
    `--dim=batch=64`, `fast_math=True` is `--fast-math`, a list is the option
    several times."""
    line: List[str] = []
    for name, value in options.items():
        if name in _REFUSED:
            raise UsageError(
                f"'{name}' is no option of tandem.compile: see {_REFUSED[name]}"
            )
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            line.append(option)
        elif isinstance(value, Mapping):
            items = []
            for key, item in value.items():
                if name == "shape" and isinstance(item, (list, tuple)):
                    text = "x".join(str(size) for size in item)
                else:
                    text = _text(item)
                items.append(f"{key}={text}")
            if name == "mesh":
                items = [",".join(items)]
            line += [f"{option}={item}" for item in items]
        elif isinstance(value, (list, tuple)):
            line += [f"{option}={_text(item)}" for item in value]
        else:
            line.append(f"{option}={_text(value)}")
    return line


def _digest(source: Source, program: str, line: Sequence[str]) -> str:
    digest = _cache.new_digest()
    digest.update(_cache.digest_file(program))
    digest.update(source.digest)
    for option in line:
        digest.update(option.encode() + b"\0")
        # A file that an option names, by its content.
        for part in (option.partition("=")[2], option.rpartition("=")[2]):
            if part and os.path.isfile(part):
                digest.update(_cache.digest_file(part))
    return digest.hexdigest()


def _of_file(name: str) -> Source:
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"'{name}' is no file")
    if path.suffix not in ENDINGS:
        raise UsageError(
            f"'{name}' is no model: expected a file that ends in "
            + ", ".join(ENDINGS)
        )
    digest = path.stem.encode() + path.suffix.encode() + b"\0"
    digest += _cache.digest_file(name)
    if path.suffix == ".onnx":
        for file_name in _cache.external_data(name):
            digest += os.path.basename(file_name).encode() + b"\0"
            digest += _cache.digest_file(file_name)
    return Source(lambda folder: path, digest, path.name)


def _of_graph(graph: Mapping[str, Any]) -> Source:
    text = json.dumps(graph)
    name = str(graph.get("name", "graph")).replace(os.sep, "_") or "graph"

    def write(folder: Path) -> Path:
        path = folder / f"{name}.json"
        path.write_text(text, encoding="utf-8")
        return path

    return Source(write, text.encode(), name)


def _source(
    model: Any, args: Any, kwargs: Any, options: Dict[str, Any]
) -> Source:
    is_file = isinstance(model, (str, os.PathLike))
    if is_file or isinstance(model, Mapping):
        if args is not None or kwargs is not None:
            raise UsageError(
                "'args' and 'kwargs' are for modules and functions: a file says "
                "its inputs itself"
            )
        return _of_file(os.fspath(model)) if is_file else _of_graph(model)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from ._export_torch import source_of_module

        return source_of_module(model, args, kwargs, options)
    if "jax" in sys.modules and callable(model):
        from ._export_jax import source_of_function

        return source_of_function(model, args, kwargs, options)
    raise UsageError(
        "expected a file, a graph as a dict, a torch.nn.Module, or a function of "
        "JAX, but got "
        f"{type(model).__name__}"
    )


def compile(
    model: Any,
    args: Optional[Tuple[Any, ...]] = None,
    kwargs: Optional[Dict[str, Any]] = None,
    *,
    optimizer: Optional[str] = None,
    loss: Optional[str] = None,
    output: Union[str, "os.PathLike[str]", None] = None,
    progress: Progress = None,
    cache: bool = True,
    **options: Any,
) -> Artifact:
    """Compiles a model into an artifact.

    `model` is a file (ONNX, an archive of torch.export, StableHLO, a JSON graph,
    MLIR) or a JSON graph as a dict; or what is exported with the example
    arguments `args` and `kwargs`:

    - a torch.nn.Module, in the mode (`train` or `eval`) that it is in; its
      parameters are those that steps begin with;
    - a function of JAX. Of `f(params, x)` the arrays of `params` are the
      parameters (`train=REGEX` names others), which begin as in `args`. With an
      optimizer the first result, one number, is the loss.

    `optimizer` ("adamw:lr=1e-3"), `loss` ("cross_entropy:logits,labels") and
    `options` are those of `tandem compile`, with `_` for `-`:
    `amp="bf16"`, `fast_math=True`, `dim={"batch": 64}`, `group=["...", "..."]`.
    `tandem.help_of("compile")` is the list of them.

    The artifact is kept in the cache (`tandem.cache_folder()`) under the
    content of all that it follows from: the model, its weights, the options,
    the compiler and this machine's processor. `output` names a file for it
    instead; `cache=False` compiles anew. `progress` is True for a line on
    stderr, or a function that gets each line of the compiler.

    Raises UsageError, UnsupportedError, CompileError or DeviceError, with the
    text of the compiler, its places in the model, and its exit code.
    """
    given: Dict[str, Any] = {"loss": loss, "optimizer": optimizer, **options}
    return compile_source(
        _source(model, args, kwargs, given),
        given,
        output=output,
        progress=progress,
        cache=cache,
    )


def compile_source(
    source: Source,
    given: Dict[str, Any],
    *,
    output: Union[str, "os.PathLike[str]", None] = None,
    progress: Progress = None,
    cache: bool = True,
) -> Artifact:
    """Compiles what became of a model, with the options `given`."""
    first: Optional[UnsupportedError] = None
    while True:
        try:
            return _compile_once(source, dict(given), output, progress, cache)
        except UnsupportedError as error:
            first = first or error
            other = None
            if source.again is not None and _UNKNOWN_OPERATOR in error.text:
                try:
                    other = source.again(error.text)
                except Exception:
                    pass
            if other is None:
                raise _with_rest(first, error)
            source = other
        except Exception:
            if first is None:
                raise
            raise first


def _with_rest(first: UnsupportedError, last: UnsupportedError) -> UnsupportedError:
    """What is said of the operators that the model was written with, and what is
    still not supported of those that they are made of."""
    if last is first:
        return first
    rest = [line for line in last.text.splitlines() if "unsupported" in line]
    more = "\nof what PyTorch decomposes these into:\n" + "\n".join(rest)
    return UnsupportedError(
        f"{first}{more}",
        text=first.text + more,
        command=first.command,
        exit_code=first.exit_code,
    )


def _compile_once(
    source: Source,
    given: Dict[str, Any],
    output: Union[str, "os.PathLike[str]", None],
    progress: Progress,
    cache: bool,
) -> Artifact:
    given.update(source.options)
    if output is None and given.get("force"):
        raise UsageError(
            "'force' lets the file that output= names be replaced, and no output= "
            "is given: the cache needs none"
        )
    line = options_of(given)
    program = find_program()

    def call(target: Path) -> str:
        with tempfile.TemporaryDirectory(prefix="tandem-") as scratch:
            path = source.write(Path(scratch))
            command = [program, "compile", str(path), "-o", str(target), *line]
            _, said = run(command, source.what, progress)
        return said

    if output is not None:
        target = Path(output)
        return _made(target, call(target), source)

    def make(folder: Path) -> None:
        said = call(folder / "model.tdm")
        (folder / "messages.txt").write_text(said, encoding="utf-8")

    names = ("model.tdm", "messages.txt")
    key = _digest(source, program, line)
    if not cache or _NOT_CACHED & {n for n, v in given.items() if v}:
        with tempfile.TemporaryDirectory(prefix="tandem-") as scratch:
            make(Path(scratch))
            _cache.replace(key, Path(scratch))
    folder = _cache.entry(key, names, make)
    said = (folder / "messages.txt").read_text(encoding="utf-8")
    return _made(folder / "model.tdm", said, source)


def _made(path: Path, said: str, source: Source) -> Artifact:
    for line in said.splitlines():
        if "warning:" in line:
            warnings.warn(line, CompilerWarning, stacklevel=level_of_caller())
    weights = path.with_suffix(".safetensors")
    return Artifact(
        path,
        weights if source.initial is None and weights.is_file() else None,
        source.initial,
        said,
    )


def help_of(subject: str = "compile") -> str:
    """What `tandem help SUBJECT` says: "compile", "optimizers", "losses",
    "schedules", "targets", or an option."""
    out, _ = run([find_program(), "help", subject], subject)
    return out
