"""Whether a module is still what was compiled.

What a forward reads beside tensors is compiled in: which modules there are, and
their attributes. PyTorch lets all of it be changed at any time, so each call
compares. Objects are compared by identity first, so that 50 modules that are as
they were take some 20 microseconds.
"""

from __future__ import annotations

import dataclasses
import types
from typing import Any, Dict, List, Mapping, Optional, Tuple

import torch

__all__ = ["Unchanged", "same", "shown"]

# Modes and hooks are compared by who calls; the others say how a module is
# called.
_IGNORED = {
    "training", "_compiled_call_impl", "_is_accelerate_prepared",
    "_is_full_backward_hook",
}
_PLAIN = (bool, int, float, complex, str, bytes, tuple, frozenset, torch.dtype)
_GONE = object()


def same(a: Any, b: Any) -> bool:
    """Whether two values are one, or of one class and equal; tensors are not."""
    if a is b:
        return True
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return False
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # of whatever class the attribute is
        return False


def _copied(value: Any) -> Any:
    """Containers anew, what is in them as it is."""
    if type(value) is dict:
        return {k: _copied(v) for k, v in value.items()}
    if type(value) is list:
        return [_copied(v) for v in value]
    return value.copy() if isinstance(value, (dict, list, set)) else value


def _same_box(now: Any, then: Any) -> bool:
    """Whether two containers have the same in them, tensors by identity."""
    if type(now) is not type(then) or not isinstance(now, (dict, list)):
        return same(now, then)
    if len(now) != len(then):
        return False
    if isinstance(now, dict):
        return all(_same_box(v, then.get(k, _GONE)) for k, v in now.items())
    return all(_same_box(a, b) for a, b in zip(now, then))


def shown(value: Any) -> str:
    """A value in a message: what is long, or no plain value, by its class."""
    if value is _GONE:
        return "not there"
    if value is None or isinstance(value, _PLAIN):
        text = repr(value)
        if len(text) <= 40:
            return text
    if isinstance(value, torch.Tensor):
        return f"a tensor, {value.dtype}{list(value.shape)}"
    return f"a {type(value).__name__}"


def _has_fields(value: Any) -> bool:
    """Whether an object is one of settings, as a model's configuration."""
    kind = type(value)
    if isinstance(value, (type, torch.nn.Module, torch.Tensor)):
        return False
    if isinstance(value, (types.FunctionType, types.ModuleType)):
        return False
    return dataclasses.is_dataclass(value) or isinstance(
        value, types.SimpleNamespace
    ) or (
        kind.__name__.lower().endswith(("config", "settings", "args", "options"))
        and hasattr(value, "__dict__")
    )


class _Part:
    """One module, as it was."""

    __slots__ = ("fields", "inner", "kind", "label", "module", "sizes")

    def __init__(self, path: str, module: torch.nn.Module) -> None:
        self.module = module
        self.kind = type(module)
        name = self.kind.__name__
        self.label = f"'{path}' ({name})" if path else f"the {name}"
        self.fields = dict(module.__dict__)
        self.inner = dict(module._modules)
        self.sizes = len(module._parameters), len(module._buffers)


class Unchanged:
    """A module's tree and attributes as they were when this was made."""

    def __init__(self, root: torch.nn.Module) -> None:
        self._root = root
        self._parts: List[_Part] = []
        #: Lists, dicts and settings that are attributes, with copies.
        self._boxes: Dict[int, Tuple[str, Any, Any]] = {}
        #: Parameters and buffers that are None.
        self._nones: List[Tuple[Mapping[str, Any], str, str]] = []
        #: Tensors that are attributes, and neither parameters nor buffers.
        self.tensors: Dict[str, torch.Tensor] = {}
        self._forwards: Dict[Any, Any] = {}
        self._told: Dict[Tuple[str, str], str] = {}
        for path, module in root.named_modules():
            part = _Part(path, module)
            self._parts.append(part)
            self._forwards[part.kind] = part.kind.forward
            for place in (module._parameters, module._buffers):
                for name, tensor in place.items():
                    if tensor is None:
                        self._nones.append((place, name, part.label))
            for name, value in part.fields.items():
                if name.startswith("_") and name in _OWN:
                    continue
                where = f"'{name}' of {part.label}"
                if isinstance(value, torch.Tensor):
                    self.tensors[f"{path}.{name}" if path else name] = value
                elif isinstance(value, (list, dict, set)):
                    self._boxes.setdefault(
                        id(value), (where, value, _copied(value))
                    )
                elif _has_fields(value):
                    live = vars(value)
                    self._boxes.setdefault(
                        id(live),
                        (where, live, {k: _copied(v) for k, v in live.items()}),
                    )
        self._fast = [
            (p.module, p.module.__dict__, p.fields, p.inner, p.sizes, p.kind)
            for p in self._parts
        ]

    def why_not(self) -> Optional[str]:
        """What is otherwise now, in words."""
        try:
            for index, (module, live, fields, inner, sizes, kind) in enumerate(
                self._fast
            ):
                parameters, buffers = live["_parameters"], live["_buffers"]
                if (
                    live != fields
                    or (inner or live["_modules"])
                    and live["_modules"] != inner
                    or (len(parameters), len(buffers)) != sizes
                    or type(module) is not kind
                ):
                    reason = self._difference(self._parts[index])
                    if reason is not None:
                        return reason
        except Exception:  # of comparing attributes of whatever class
            for part in self._parts:
                reason = self._difference(part)
                if reason is not None:
                    return reason
        for place, name, label in self._nones:
            if place.get(name, _GONE) is not None:
                return f"'{name}' of {label} was None when compiled"
        for kind, forward in self._forwards.items():
            if kind.forward is not forward:
                return f"the forward of the class {kind.__name__} was replaced"
        for where, now, then in self._boxes.values():
            try:
                same = now == then
            except Exception:
                same = False
            if not same and not _same_box(now, then):
                key = self._other_key(now, then)
                return f"{where} has other contents than when compiled{key}"
        return None

    @staticmethod
    def _other_key(now: Any, then: Any) -> str:
        if isinstance(now, dict):
            for key in {**then, **now}:
                if not _same_box(now.get(key, _GONE), then.get(key, _GONE)):
                    return f": {shown(key)}"
        return ""

    def _difference(self, part: _Part) -> Optional[str]:
        """What is otherwise in a module; takes over what does not count."""
        module, fields = part.module, part.fields
        live = module.__dict__
        if type(module) is not part.kind:
            return f"{part.label} is of the class {type(module).__name__} now"
        inner = live["_modules"]
        for name in {**part.inner, **inner}:
            then, now = part.inner.get(name), inner.get(name)
            if then is not now:
                return (
                    f"the module '{name}' of {part.label} is "
                    f"{shown(now)}, and was {shown(then)} when compiled: not "
                    "the same one"
                    if now is not None and then is not None
                    else f"the module '{name}' of {part.label} was "
                    + ("added" if then is None else "taken out")
                )
        for name in {**fields, **live}:
            then, now = fields.get(name, _GONE), live.get(name, _GONE)
            if same(then, now):
                continue
            if name in _IGNORED or (name == "forward" and module is self._root):
                if now is _GONE:
                    del fields[name]
                else:
                    fields[name] = now
                continue
            # A count that each call moves on is one difference, said once.
            return self._told.setdefault(
                (part.label, name),
                f"'{name}' of {part.label} is {shown(now)}, and was "
                f"{shown(then)} when compiled",
            )
        if (len(module._parameters), len(module._buffers)) != part.sizes:
            return f"{part.label} has other parameters or buffers"
        return None


# What PyTorch keeps in every module.
_OWN = set(torch.nn.Module().__dict__)
