"""What a forward says about gradients, and torch.export does not keep.

It follows a forward's operators alone: through a torch.autograd.Function, whose
backward may be anything, and past hooks that forward registers on tensors. Their
gradients would be wrong without a word, so both are watched while exporting.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, Iterator, List, Tuple

import torch

__all__ = ["watched"]

_HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
#: Backwards of PyTorch's own are those of their forwards, but for these.
_OTHERS = ("torch.ao.", "torch.distributed.", "torch.nn.parallel.")

_lock = threading.Lock()
_seen = threading.local()
_watches = 0
_originals: Dict[Tuple[type, str], Any] = {}


def _note(what: str) -> None:
    """Only of the thread that exports; others train meanwhile."""
    for found in getattr(_seen, "stack", ()):
        if what not in found:
            found.append(what)


def _note_function(context: Any) -> None:
    function = getattr(type(context), "_forward_cls", type(context))
    place = function.__module__ + "."
    if place.startswith("torch.") and not place.startswith(_OTHERS):
        # Hooks of modules that are called in a backward.
        if function.__name__ == "BackwardHookFunction":
            _note("backward hooks of an inner module")
        # Its forward is one of no_grad.
        if function.__name__ == "CheckpointFunction":
            _note(
                "gradients through torch.utils.checkpoint with use_reentrant=True "
                "(False is the same, and is kept)"
            )
        return
    _note(f"the backward of {function.__qualname__} (a torch.autograd.Function)")


def _replace(owner: type, name: str, make: Any) -> None:
    _originals[owner, name] = owner.__dict__.get(name)
    setattr(owner, name, make(getattr(owner, name)))


def _watching_init(original: Any) -> Any:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        _note_function(self)
        original(self, *args, **kwargs)

    return init


def _watching_hook(name: str) -> Any:
    def make(original: Any) -> Any:
        def register(self: Any, hook: Any) -> Any:
            _note(f"a hook that forward registers on a tensor (Tensor.{name})")
            return original(self, hook)

        return register

    return make


def _begin() -> None:
    global _watches
    with _lock:
        _watches += 1
        if _watches > 1:
            return
        # Each `apply` makes its context, also one that was taken of its class
        # before (`self.act = Round.apply`).
        context = torch.autograd.function.BackwardCFunction
        _replace(context, "__init__", _watching_init)
        for name in _HOOKS:
            if hasattr(torch.Tensor, name):
                _replace(torch.Tensor, name, _watching_hook(name))


def _end() -> None:
    global _watches
    with _lock:
        _watches -= 1
        if _watches:
            return
        for (owner, name), original in _originals.items():
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        _originals.clear()


@contextlib.contextmanager
def watched() -> Iterator[List[str]]:
    """Gives a list, in which is at the end what was lost meanwhile."""
    found: List[str] = []
    stack = _seen.__dict__.setdefault("stack", [])
    _begin()
    stack.append(found)
    try:
        yield found
    finally:
        stack.pop()
        _end()
