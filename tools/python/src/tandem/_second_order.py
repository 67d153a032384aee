"""Gradients of compiled programs that nobody may differentiate.

Under create_graph a gradient is a tensor of the graph: whoever asks for a derivative
of it gets an UnsupportedError. PyTorch runs a node only where it leads to
what was asked for (`torch.autograd.grad(loss, params)`, `backward(inputs=...)`), so
the node that raises leads to all that the gradients follow from: the
incoming gradients, and the parameters and inputs of the forward.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch

from ._errors import UnsupportedError

__all__ = ["origin", "refused", "sources"]


class _Origin(torch.autograd.Function):
    """No elements, with edges to where tensors come from: keeps none of them."""

    @staticmethod
    def forward(ctx: Any, *tensors: torch.Tensor) -> torch.Tensor:
        return tensors[0].new_empty(0)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        return (None,) * len(ctx.needs_input_grad)


class _Refuse(torch.autograd.Function):
    """Gradients that have none."""

    @staticmethod
    def forward(
        ctx: Any, count: int, *tensors: torch.Tensor
    ) -> Tuple[torch.Tensor, ...]:
        # Views could not be written in place.
        ctx.mark_dirty(*tensors[:count])
        return tensors[:count]

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise UnsupportedError(
            "the gradients of a compiled module cannot be differentiated: "
            "second derivatives (create_graph) need PyTorch's own module"
        )


def origin(
    tensors: Sequence[torch.Tensor],
) -> Optional[torch.Tensor]:
    """What leads to the inputs that a forward's node keeps no tensor of; leaves
    are found by `sources`."""
    inner = [t for t in tensors if t.requires_grad and not t.is_leaf]
    return _Origin.apply(*inner) if inner else None


def sources(node: Any) -> List[torch.Tensor]:
    """The leaves that a node gives gradients to."""
    leaves = [getattr(n, "variable", None) for n, _ in node.next_functions]
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def refused(
    grads: Sequence[Optional[torch.Tensor]],
    follow_from: Sequence[Optional[torch.Tensor]],
) -> List[Optional[torch.Tensor]]:
    """The gradients, as tensors whose derivatives are an error."""
    there = [g for g in grads if g is not None]
    known = [t for t in follow_from if t is not None and t.requires_grad]
    if not there or not known:
        return list(grads)
    made = iter(_Refuse.apply(len(there), *there, *known))
    return [None if g is None else next(made) for g in grads]
