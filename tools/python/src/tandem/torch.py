"""Compiled programs in PyTorch's own autograd.

    model = tandem.torch.optimize(model, (x,))

compiles the forward and the backward of a module and puts them in its place:
parameters, optimizer, losses and loop stay as they are. `Compiled` is a module
made of an artifact, for models that are no modules of PyTorch.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

import torch

from ._artifact import Artifact
from ._autograd import Core, seed_of
from ._errors import UnsupportedError, UsageError
from ._inputs import by_name
from ._optimize import FallbackWarning, optimize, restore

__all__ = ["Compiled", "FallbackWarning", "optimize", "restore"]


class Compiled(torch.nn.Module):
    """A module made of an artifact that has the programs `forward` and
    `backward`: one that was compiled without an optimizer.

        net = tandem.torch.Compiled(tandem.compile("net.json"))
        optimizer = torch.optim.AdamW(net.parameters())
        net(x).backward()

    Its parameters and buffers have the names of the model's own, and begin as
    `tandem.Step` says. Inputs are given in the order of the model or by name.
    With one output that is returned, else a tuple. In `eval()` the program
    `evaluate` runs, whose outputs require no grad.
    """

    def __init__(
        self,
        artifact: Union[Artifact, str],
        params: Optional[Mapping[str, Any]] = None,
        *,
        device: Optional[str] = None,
        threads: int = 0,
        seed: Optional[int] = None,
    ) -> None:
        super().__init__()
        from ._step import Step

        step = Step(
            artifact, params, device=device, threads=threads, seed=seed_of(seed)
        )
        core = Core(step._model, seed)
        for name, spec in core.model.values.items():
            if core.model.artifact.is_training_state(name):
                continue
            try:
                tensor = core.model.tensor(name).torch()
            except UsageError as error:
                raise UsageError(f"{error}: give it one by params=") from None
            module: torch.nn.Module = self
            *path, last = name.split(".")
            for part in path:
                if part not in module._modules:
                    module.add_module(part, torch.nn.Module())
                module = module.get_submodule(part)
            if spec.role == "param":
                parameter = torch.nn.Parameter(tensor, spec.requires_grad)
                module.register_parameter(last, parameter)
            else:
                module.register_buffer(last, tensor)
            core.adopt(name, self)
        self.__dict__["_core"] = core

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs of the model."""
        core: Core = self.__dict__["_core"]
        names = core.program.inputs
        if self.training:
            given = by_name(list(names), args, kwargs, "the model")
            outputs = core.train(given)
        else:
            names = core.model.program("evaluate").inputs
            given = by_name(list(names), args, kwargs, "the model")
            if torch.is_grad_enabled() and any(
                t.requires_grad for t in given.values()
            ):
                raise UnsupportedError(
                    "in eval() the model has no gradients: call it in train(), "
                    "or under torch.no_grad()"
                )
            outputs = core.evaluate(given)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def __deepcopy__(self, memo: Any) -> Any:
        raise UnsupportedError(
            "a compiled module cannot be copied: make another one of its artifact"
        )

    def __reduce__(self) -> Any:
        raise UnsupportedError(
            "a compiled module cannot be pickled: save its state_dict()"
        )
