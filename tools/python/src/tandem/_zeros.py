"""Outputs that have a gradient of zeros in PyTorch and none in an artifact:
those of roundings and signs."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

import torch

__all__ = ["zero_gradients"]

_ROUNDED = {"sign", "sgn", "round", "floor", "trunc", "ceil", "fix"}


def zero_gradients(
    program: Any,
    names: Sequence[Optional[str]],
    tensors: Mapping[str, Any],
) -> Dict[str, FrozenSet[str]]:
    """Of each output that follows from a rounding or a sign by operators which
    have gradients: the parameters and inputs that get zeros of it, those of
    `tensors` that require grad. Of norm(0), which counts, none gets any."""
    specs = program.graph_signature.input_specs
    called = {s.arg.name: s.target or s.arg.name for s in specs}
    #: Of each node what gets its gradient, whether it requires one, and whether
    #: by way of zeros.
    known: Dict[Any, Tuple[FrozenSet[str], bool, bool]] = {}
    outputs: List[Any] = []
    for node in program.graph.nodes:
        if node.op == "placeholder":
            name = called.get(node.name, node.name)
            requires = getattr(tensors.get(name), "requires_grad", False)
            known[node] = (frozenset([name] if requires else []), requires, False)
        elif node.op == "output":
            outputs = list(node.args[0])
        else:
            before = [known[n] for n in node.all_input_nodes if n in known]
            requires = _passes(node) and any(r for _, r, _ in before)
            found: Set[str] = set()
            if requires and not _counts(node):
                found = found.union(*[sources for sources, _, _ in before])
            is_zero = (
                _counts(node) or _is_rounded(node) or any(z for _, _, z in before)
            )
            known[node] = (frozenset(found), requires, requires and is_zero)
    kind = torch.export.graph_signature.OutputKind.USER_OUTPUT
    made = [
        node
        for node, spec in zip(outputs, program.graph_signature.output_specs)
        if spec.kind == kind
    ]
    return {
        name: known[node][0]
        for name, node in zip(names, made)
        if name is not None and node in known and known[node][2]
    }


def _named(node: Any) -> str:
    """`round` of aten.round_.default."""
    packet = getattr(node.target, "overloadpacket", node.target)
    return str(getattr(packet, "__name__", packet)).rstrip("_")


def _passes(node: Any) -> bool:
    """Whether PyTorch's result requires grad where an operand does."""
    name = _named(node)
    if "set_grad_enabled" in name and node.args and node.args[0] is False:
        return False
    if "detach" in name or name.endswith("_like") or name.startswith("new_"):
        return False
    value = node.meta.get("val")
    return not isinstance(value, torch.Tensor) or value.is_floating_point()


def _counts(node: Any) -> bool:
    if "norm" not in _named(node):
        return False
    order = node.args[1] if len(node.args) > 1 else node.kwargs.get("ord")
    return isinstance(order, (int, float)) and order == 0


def _is_rounded(node: Any) -> bool:
    return _named(node) in _ROUNDED or node.kwargs.get("rounding_mode") is not None
