"""What exports to torch.export have in common, so that threads do not disturb
each other.

torch.export keeps what it traces in global variables, and puts fake tensors in
the place of a module's parameters meanwhile. So exports run one after the
other, and where other threads may call the module a copy of it is exported: it
has the module's tensors, in modules of its own.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import os
import threading
import types
from typing import Any, Dict, Iterator, List, Tuple

import torch

__all__ = ["copied", "exclusive", "kept", "reaches"]

_lock = threading.RLock()


def _renew() -> None:
    """In a process that was forked: who had the lock is not there."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@contextlib.contextmanager
def exclusive() -> Iterator[None]:
    """Of all threads one is in here. It may come in again."""
    with _lock:
        yield


@contextlib.contextmanager
def kept(module: torch.nn.Module) -> Iterator[None]:
    """Afterwards a module has the parameters and buffers that it had."""
    places: List[Tuple[Dict[str, Any], Dict[str, Any]]] = [
        (place, dict(place))
        for part in module.modules()
        for place in (part._parameters, part._buffers)
    ]
    try:
        yield
    finally:
        for place, then in places:
            if list(place) != list(then) or any(
                place[name] is not tensor for name, tensor in then.items()
            ):
                place.clear()
                place.update(then)


def copied(module: torch.nn.Module, without: type) -> torch.nn.Module:
    """A module of copies of all modules in it, with the same tensors and other
    attributes, but for those of a class."""
    made: torch.nn.Module = _copy(module, without, {})
    return made


def _copy(value: Any, without: type, memo: Dict[int, Any]) -> Any:
    known = memo.get(id(value))
    if known is not None:
        return known
    kind = type(value)
    if isinstance(value, torch.nn.Module):
        if isinstance(value, torch.jit.ScriptModule):
            return value
        memo[id(value)] = other = object.__new__(kind)
        for name, attribute in list(value.__dict__.items()):
            if not isinstance(attribute, without):
                other.__dict__[name] = _copy(attribute, without, memo)
        return other
    if kind in (dict, collections.OrderedDict):
        memo[id(value)] = box = kind()
        box.update((key, _copy(v, without, memo)) for key, v in list(value.items()))
        return box
    if kind is list:
        memo[id(value)] = row = []
        row.extend(_copy(v, without, memo) for v in value)
        return row
    if kind is tuple:
        parts = tuple([_copy(v, without, memo) for v in value])
        same = all(a is b for a, b in zip(parts, value))
        return value if same else parts
    if kind is types.MethodType:
        owner = _copy(value.__self__, without, memo)
        if owner is value.__self__:
            return value
        return types.MethodType(value.__func__, owner)
    if kind is functools.partial:
        return functools.partial(
            _copy(value.func, without, memo),
            *_copy(value.args, without, memo),
            **_copy(value.keywords, without, memo),
        )
    return value


def reaches(program: Any, module: torch.nn.Module) -> bool:
    """Whether a program of a copy has tensors of the module in it as constants,
    because the forward came to the module by what is not copied."""
    own = {_address(t) for t in (*module.parameters(), *module.buffers())}
    # Buffers that are not saved are among its constants, and the copy's own.
    known = program.graph_signature.non_persistent_buffers
    return any(
        _address(t) in own
        for name, t in program.constants.items()
        if name not in known and isinstance(t, torch.Tensor) and _address(t)
    )


def _address(tensor: torch.Tensor) -> int:
    return tensor.data_ptr() if tensor.layout == torch.strided else 0
