"""Tensors that show the same memory."""

from __future__ import annotations

from typing import Mapping, Optional, Tuple

import torch

__all__ = ["one_storage"]


def _span(tensor: torch.Tensor) -> Tuple[int, int]:
    """Where the elements of a tensor, which has some, begin and end."""
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    begin = tensor.data_ptr()
    return begin, begin + (last + 1) * tensor.element_size()


def one_storage(tensors: Mapping[str, torch.Tensor]) -> Optional[str]:
    """Two parameters or buffers of a module that show the same memory now, in
    words. A model has memory of its own for each, so that what is written to one
    would not be in the other."""
    spans = sorted(
        (*_span(tensor), name) for name, tensor in tensors.items() if tensor.numel()
    )
    for (_, end, name), (begin, _, other) in zip(spans, spans[1:]):
        if begin < end:
            return (
                f"'{name}' and '{other}' show one storage, and did not when "
                "compiled; make them one (a.weight = b.weight) and optimize "
                "again, or copy the data"
            )
    return None
