"""A function of JAX as a module of StableHLO."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import jax
from jax import export as jax_export

from ._compile import Source
from ._errors import TandemError, UnsupportedError, UsageError

__all__ = ["names_of_arguments", "source_of_function", "text_of"]


def text_of(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A function as jax.export has it, for the CPU, with all its arguments."""
    try:
        # Arguments that are not used stay: they are counted.
        jitted = jax.jit(function, keep_unused=True)
        return jax_export.export(jitted, platforms=["cpu"])(*args, **kwargs)
    except TandemError:
        raise
    except Exception as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise UnsupportedError(
            f"jax.export cannot export '{name}': {error}"
        ) from error


def source_of_text(text: str, name: str) -> Source:
    """A module of StableHLO as what is compiled. Places in Python are part of
    it, and of its digest."""

    def write(folder: Path) -> Path:
        path = folder / f"{name}.mlir"
        path.write_text(text, encoding="utf-8")
        return path

    digest = hashlib.sha256(text.encode()).digest()
    return Source(write, digest, name)


def names_of_arguments(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> List[Tuple[str, Any]]:
    """Each array of the arguments with the name that JAX gives it:
    "params['dense']['kernel']"."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the arguments do not fit the function: {error}") from error
    named: List[Tuple[str, Any]] = []
    parameters = inspect.signature(function).parameters
    for name, value in bound.arguments.items():
        kind = parameters[name].kind
        if kind == inspect.Parameter.VAR_POSITIONAL:
            parts = [(f"{name}[{i}]", v) for i, v in enumerate(value)]
        elif kind == inspect.Parameter.VAR_KEYWORD:
            parts = list(value.items())
        else:
            parts = [(name, value)]
        for part, tree in parts:
            leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
            for path, leaf in leaves:
                named.append((part + jax.tree_util.keystr(path), leaf))
    return named


def source_of_function(
    function: Callable[..., Any],
    args: Optional[Tuple[Any, ...]],
    kwargs: Optional[Mapping[str, Any]],
    options: Dict[str, Any],
) -> Source:
    """A function as what is compiled. The arrays that it was given are those
    that its parameters begin with."""
    if args is None and kwargs is None:
        raise UsageError(
            "a function needs example arguments: tandem.compile(f, (params, x))"
        )
    args, kwargs = tuple(args or ()), dict(kwargs or {})
    exported = text_of(function, args, kwargs)
    name = getattr(function, "__name__", type(function).__name__)
    name = "".join(c if c.isalnum() or c in "_-" else "_" for c in name)
    source = source_of_text(exported.mlir_module(), name.strip("_") or "function")
    source.initial = dict(names_of_arguments(function, args, kwargs))
    if options.get("optimizer") and not options.get("loss"):
        # What is minimized is the function's result, or the first of several.
        first = exported.out_avals[0] if exported.out_avals else None
        if first is not None and first.shape == ():
            options["loss"] = (
                "result" if len(exported.out_avals) == 1 else "result[0]"
            )
    return source
