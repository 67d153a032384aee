"""The compiled forward and backward of a model in PyTorch's autograd.

`Core` binds a model's parameters and states to tensors of PyTorch, and its calls
are a torch.autograd.Function. tandem.torch makes modules of it.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

import torch

from . import _exchange as exchange
from ._artifact import Artifact
from ._errors import FailedError, UnsupportedError, UsageError
from ._exchange import Tensor
from ._model import Context, Model
from ._second_order import origin, refused, sources
from ._storage import one_storage

__all__ = ["Core", "seed_of"]

# Whether the backward that runs keeps its graph (retain_graph).
_keeps_graph: Callable[[], bool] = getattr(
    torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: True
)

#: What a backward reads: its name, the tensor, its version after the forward.
_Kept = Tuple[str, torch.Tensor, int]
_ROLES = {
    "param": "parameter ", "state": "buffer ", "input": "input ",
    "output": "output ",
}


# What tells whether torch.func, or is_grads_batched, put several tensors into
# one.
_BATCHED = [
    getattr(torch._C._functorch, name)
    for name in ("is_batchedtensor", "is_legacy_batchedtensor")
    if hasattr(torch._C._functorch, name)
]


def _is_batched(tensor: torch.Tensor) -> bool:
    return any(asks(tensor) for asks in _BATCHED)


def in_forward_mode() -> bool:
    """Whether derivatives in forward mode are computed, which the programs do
    not give."""
    return getattr(torch.autograd.forward_ad, "_current_level", -1) >= 0


def _refuse_forward_mode() -> None:
    if in_forward_mode():
        raise UnsupportedError(
            "a compiled module has no derivatives in forward mode "
            "(torch.autograd.forward_ad)"
        )


def _version(tensor: torch.Tensor) -> int:
    """How often a tensor was written; those of inference mode do not say."""
    return 0 if tensor.is_inference() else tensor._version


class Core:
    """A model whose parameters and states are tensors of PyTorch, and its calls.

    The tensors show the model's own memory: what an optimizer writes is what
    the next forward reads, and what a forward writes to a buffer is seen in it.
    """

    def __init__(self, model: Model, seed: Optional[int] = None) -> None:
        self.model = model
        artifact = model.artifact
        self._seed = 0 if seed is None else seed % (1 << 63)
        #: Of each program the states of random numbers that it reads.
        self._random = {
            program: _random_states(artifact, program)
            for program in artifact.programs
        }
        self._values = {v.name: v for v in artifact.values}
        for name in ("forward", "backward"):
            artifact.program(name)
        self.program = model.program("forward")
        backward = artifact.program("backward")
        roles: Dict[str, Set[str]] = {}
        for slot in backward["arguments"]:
            roles.setdefault(slot["role"], set()).add(slot["name"])
        grads = {r["name"] for r in backward["results"] if r["role"] == "grad"}
        #: What can be differentiated: outputs, and inputs and parameters.
        self.cotangents = roles.get("cotangent", set())
        self.grads = grads
        #: What the backward reads where it lies, as the forward left it:
        #: arguments, and outputs.
        self.read = {
            slot["name"]
            for slot in backward["arguments"]
            if slot["role"] in ("input", "param", "state")
            and not slot.get("as_found")
            and not slot.get("unchecked")
        }
        forward = artifact.program("forward")
        self.read_outputs = {
            r["alias"]["output"]
            for r in forward["results"]
            if r["role"] == "saved" and "output" in r.get("alias", {})
        }
        self.views = {a["name"] for a in forward.get("aliases", [])}
        #: Outputs that others follow from, in the module that was compiled.
        self.inner: Set[str] = set()
        #: Outputs without a cotangent whose gradient for these is 0 in PyTorch.
        self.zeros: Mapping[str, FrozenSet[str]] = {}
        self.writes = {
            r["name"] for r in forward["results"] if r["role"] == "update"
        }
        if self.program.written:
            raise UnsupportedError(
                "the model writes to its inputs "
                + ", ".join(f"'{n}'" for n in sorted(self.program.written))
                + ", which PyTorch's autograd would not see"
            )
        if backward.get("results") and any(
            r["role"] == "update" for r in backward["results"]
        ):
            raise UnsupportedError("the model's backward writes to its arguments")
        #: The tensors of PyTorch by the model's names.
        self.tensors: Dict[str, torch.Tensor] = {}
        # Where the model has them. A view would not do: share_memory() moves
        # its storage, and with it the view.
        self._addresses: Dict[str, int] = {}
        self._is_bound = False
        #: How often the memory of each got other elements than calls left there.
        self._taken: Dict[str, int] = {}
        # Where a module keeps each of them.
        self._places: Dict[str, Tuple[Dict[str, Any], str]] = {}
        self._device = torch.device(
            "cpu" if model.device == "cpu" else model.device
        )

    def lacks(self, name: str) -> bool:
        """Whether the programs give no gradient of what was compiled as a
        constant. What no output follows from has none either, as in PyTorch."""
        value = self._values.get(name)
        return name not in self.grads and not (value and value.requires_grad)

    def bind(self, name: str, tensor: torch.Tensor) -> None:
        """Makes a tensor show the model's memory for a parameter or state, with
        the tensor's elements in it."""
        spec = self.model.values[name]
        if (
            tuple(tensor.shape) != spec.shape
            or exchange.torch_codes().get(tensor.dtype)
            != exchange.CODE_OF[spec.dtype]
            or tensor.device.type != self._device.type
        ):
            raise UsageError(
                f"the model was compiled for '{name}' as {spec.type} on "
                f"{self._device}, but it is {tensor.dtype}"
                f"{list(tensor.shape)} on {tensor.device}: compile it again"
            )
        self._order()
        # It may be the model's own memory, read in another order.
        value = tensor.detach().contiguous()
        if not self._has(name, tensor, value):
            self._leave(name, tensor)
            self.model.set(name, exchange.of_torch(value))
        view = self.model.tensor(name).torch()
        with torch.no_grad():
            tensor.data = view
        self.tensors[name] = tensor
        self._addresses[name] = view.data_ptr()

    def _has(self, name: str, tensor: torch.Tensor, value: torch.Tensor) -> bool:
        """Whether the model's memory has these elements, as where another
        optimized module took a shared parameter over and nobody wrote it since:
        then a backward of before still finds what its forward read."""
        if self.tensors.get(name) is not tensor or (
            self._device.type == "cuda"
            and torch.cuda.is_current_stream_capturing()
        ):
            return False
        return torch.equal(self.model.tensor(name).torch(), value)

    def _leave(self, name: str, tensor: torch.Tensor) -> None:
        """Before the model's memory gets other elements: who showed it until now
        keeps its own, as what torch.func.functional_call puts back, and a
        backward that would read it is an error. It is PyTorch's for another
        tensor; one that other modules have too is as it was for theirs."""
        previous = self.tensors.get(name)
        self._taken[name] = self._taken.get(name, 0) + 1
        if previous is None or previous is tensor:
            return
        if previous.data_ptr() == self._addresses[name]:
            previous.data = previous.detach().clone()
        torch.autograd.graph.increment_version(previous)

    def adopt(self, name: str, module: torch.nn.Module) -> None:
        """Binds the parameter or buffer of a module."""
        path, _, last = name.rpartition(".")
        owner = module.get_submodule(path)
        place: Dict[str, Any] = (
            owner._parameters if last in owner._parameters else owner._buffers
        )
        for other, tensor in self.tensors.items():
            if tensor is place[last]:
                raise UnsupportedError(
                    f"'{name}' and '{other}' are one tensor of the module, and "
                    "two of the artifact"
                )
        self.bind(name, place[last])
        self._places[name] = (place, last)

    def give(self, name: str, module: torch.nn.Module) -> None:
        """Gives the model a value that no program reads."""
        self._order()
        value = module.state_dict()[name]
        self.model.set(name, exchange.of_torch(value.contiguous()))

    def rebind(self) -> None:
        """Takes over tensors that show other memory since, as after
        `module.to`, `share_memory`, `param.data = ...` or a new Parameter."""
        if self._is_bound:
            self._is_bound = False  # until the next look
            return
        there = {n: place.get(last) for n, (place, last) in self._places.items()}
        moved = []
        for name, tensor in there.items():
            if tensor is None:
                raise UnsupportedError(f"'{name}' was taken out of the module")
            if tensor is not self.tensors[name] or self._moved(name, tensor):
                moved.append(name)
        tied = one_storage(self.current()) if moved else None
        if tied is not None:
            raise UnsupportedError(tied)
        for name in moved:
            if there[name] is not self.tensors[name]:
                self.bind(name, there[name])
        for name, tensor in self.tensors.items():
            if self._moved(name, tensor):
                self.bind(name, tensor)

    def current(self) -> Dict[str, torch.Tensor]:
        """The tensors that the module has now, as `unfit` saw them."""
        if self._is_bound:
            return self.tensors
        there = {n: place.get(last) for n, (place, last) in self._places.items()}
        return {n: t for n, t in there.items() if t is not None}

    def versions(self) -> Dict[str, Tuple[int, int]]:
        """What tells of each parameter and buffer of the module whether it was
        written or replaced."""
        return {
            name: (id(place.get(last)), getattr(place.get(last), "_version", 0))
            for name, (place, last) in self._places.items()
        }

    def _moved(self, name: str, tensor: torch.Tensor) -> bool:
        return (
            tensor.data_ptr() != self._addresses[name]
            or not tensor.is_contiguous()
        )

    def taken(self) -> Dict[str, int]:
        """What `check_taken` compares, of what the backward reads."""
        return {n: count for n, count in self._taken.items() if n in self.read}

    def check_taken(self, then: Mapping[str, int]) -> None:
        """Refuses a backward whose forward read other elements of a parameter
        than the model's memory has now, though nobody wrote the tensor: it was
        moved to other memory (`param.data = ...`)."""
        for name, count in self.taken().items():
            if count != then.get(name, 0):
                raise UnsupportedError(
                    f"'{name}' shows other memory, with other elements, than in "
                    "the forward whose backward this is, and a forward ran since"
                )

    def kept(
        self, given: Mapping[str, torch.Tensor], outputs: Sequence[torch.Tensor]
    ) -> List[_Kept]:
        """All that the backward reads where it lies, as a forward left it: what
        PyTorch's autograd does not know of, buffers and frozen parameters, and
        the rest, too, of which saved_tensors says nothing under
        saved_tensors_hooks."""
        # A detached one shows the writes, and keeps no graph alive.
        read = {n: t.detach() for n, t in given.items() if n in self.read}
        for name in self.read.difference(read):
            if name in self.tensors:
                read[name] = self.tensors[name]
        for name, output in zip(self.program.outputs, outputs):
            if name in self.read_outputs:
                read[name] = output.detach()
        return [(name, t, _version(t)) for name, t in read.items()]

    def check_kept(self, kept: Sequence[_Kept]) -> None:
        """Refuses a backward that would read what was written since its
        forward, as PyTorch does of what it saved."""
        for name, tensor, then in kept:
            now = _version(tensor)
            if now != then:
                value = self._values.get(name)
                role = "" if value is None else _ROLES.get(value.role, "")
                raise FailedError(
                    "one of the variables needed for gradient computation has "
                    f"been modified by an inplace operation: the {role}'{name}' "
                    f"is at version {now}; expected version {then} instead. The "
                    "compiled backward reads it where it lies: write to it "
                    "after the backward"
                )

    def unfit(self) -> Optional[str]:
        """A parameter or buffer that its module has no more, or that processes
        share, in words. Knows afterwards whether the next call has to rebind."""
        self._is_bound = False
        is_bound = True
        for name, (place, last) in self._places.items():
            tensor = place.get(last)
            if tensor is None:
                return f"'{name}' was taken out"
            if tensor is not self.tensors[name] or self._moved(name, tensor):
                is_bound = False
                if (
                    isinstance(self.tensors[name], torch.nn.Parameter)
                    and not isinstance(tensor, torch.nn.Parameter)
                ):
                    return f"'{name}' is no Parameter, as in functional_call"
                if tensor.device.type == "cpu" and tensor.is_shared():
                    return f"'{name}' is in memory that processes share"
        self._is_bound = is_bound
        return None if is_bound else one_storage(self.current())

    def _order(self) -> None:
        if self._device.type == "cuda":
            stream = torch.cuda.current_stream(self._device).cuda_stream
            self.model.use_stream(stream)

    def _draw(self, program: str) -> None:
        """Begins a program's random numbers with one of PyTorch's generator, so
        that torch.manual_seed, fork_rng and checkpoint reach them: numbers of a
        stream of their own would be others where a forward is repeated."""
        on_gpu = self._device.type == "cuda"
        # What is captured goes on by itself in each replay.
        if on_gpu and torch.cuda.is_current_stream_capturing():
            return
        for name in self._random[program]:
            drawn = int(torch.empty((), dtype=torch.int64, device="cpu").random_())
            state = torch.tensor([drawn ^ self._seed, 0], device="cpu")
            if on_gpu:  # in the order of the stream, which nobody waits for
                state = state.to(self._device, non_blocking=True)
            self.model.set(name, exchange.of_torch(state))

    def _outputs(self) -> Dict[str, Tensor]:
        return {name: exchange.empty() for name in self.program.outputs}

    def _give(self, name: str, tensor: Tensor) -> torch.Tensor:
        result: torch.Tensor = tensor.torch()
        # A view of an argument would be another tensor's memory to autograd.
        return result.clone() if name in self.views else result

    def _wrote(self) -> None:
        for name in self.writes:
            if name in self.tensors:
                torch.autograd.graph.increment_version(self.tensors[name])

    def evaluate(self, inputs: Mapping[str, torch.Tensor]) -> List[torch.Tensor]:
        """The outputs as after `eval()`."""
        _refuse_forward_mode()
        self.rebind()
        self._order()
        self._draw("evaluate")
        program = self.model.program("evaluate")
        outputs = {name: exchange.empty() for name in program.outputs}
        given = {
            n: exchange.of_torch(inputs[n], True) for n in program.inputs
        }
        self.model.run("evaluate", given, outputs)
        return [outputs[n].torch().clone() if program.has_aliases
                else outputs[n].torch() for n in program.outputs]

    def train(self, inputs: Mapping[str, torch.Tensor]) -> List[torch.Tensor]:
        """The outputs of `forward`, in PyTorch's graph."""
        _refuse_forward_mode()
        self.rebind()
        if not torch.is_grad_enabled():
            return list(self.forward(inputs, None))
        names = list(self.program.inputs)
        for name in names:
            if inputs[name].requires_grad and self.lacks(name):
                raise UnsupportedError(
                    f"the input '{name}' requires grad, but the model was "
                    "compiled without its gradient: detach it, or compile with "
                    "an example that requires grad"
                )
        params = []
        zeros: Set[str] = set().union(*self.zeros.values())
        for name, tensor in self.tensors.items():
            if name in self.grads or name in zeros:
                params.append(name)
            elif tensor.requires_grad and self.lacks(name):
                raise UnsupportedError(
                    f"'{name}' requires grad, but did not when the model was "
                    "compiled: compile it again"
                )
        result: Tuple[torch.Tensor, ...] = _Run.apply(
            self,
            tuple(names),
            tuple(params),
            [origin([inputs[n] for n in names if n not in self.read])],
            *[inputs[n] for n in names],
            *[self.tensors[n] for n in params],
        )
        for name, output in zip(self.program.outputs, result):
            if name in self.inner and output.grad_fn is not None:
                _watch(name, output)
        return list(result)

    def forward(
        self, inputs: Mapping[str, torch.Tensor], keep: Optional[List[Context]]
    ) -> Tuple[torch.Tensor, ...]:
        """Runs `forward`; with a list to `keep` the context in."""
        self._order()
        self._draw("forward")
        given = {
            n: exchange.of_torch(inputs[n], True) for n in self.program.inputs
        }
        outputs = self._outputs()
        if keep is None:
            self.model.run("forward", given, outputs)
        else:
            keep.append(self.model.forward(given, outputs))
        self._wrote()
        return tuple(self._give(n, t) for n, t in outputs.items())


class _Run(torch.autograd.Function):
    """One call of the compiled forward, and its backward."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        core: Core,
        inputs: Tuple[str, ...],
        params: Tuple[str, ...],
        origins: Sequence[Optional[torch.Tensor]],
        *tensors: torch.Tensor,
    ) -> Tuple[torch.Tensor, ...]:
        given = dict(zip(inputs + params, tensors))
        contexts: List[Context] = []
        ctx.taken, ctx.origins = core.taken(), origins
        outputs = core.forward(given, contexts)
        ctx.kept = core.kept(given, outputs)
        ctx.core, ctx.context, ctx.names = core, contexts[0], inputs + params
        ctx.kinds = [(t.shape, t.dtype, t.device) for t in tensors]
        # PyTorch compares the versions of what the backward reads.
        ctx.save_for_backward(
            *[t for n, t in given.items() if n in core.read],
            *[
                t
                for n, t in zip(core.program.outputs, outputs)
                if n in core.read_outputs
            ],
        )
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(
            *[
                t
                for n, t in zip(core.program.outputs, outputs)
                if n not in core.cotangents and n not in core.zeros
            ]
        )
        return outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Optional[torch.Tensor]) -> Any:
        saved = ctx.saved_tensors  # fails where one of them was written since
        grads = _Run.gradients(ctx, cotangents)
        if torch.is_grad_enabled():  # create_graph
            known = (*cotangents, *saved, *sources(ctx), *ctx.origins)
            grads = refused(grads, known)
        return (None, None, None, None, *grads)

    @staticmethod
    def gradients(
        ctx: Any, cotangents: Sequence[Optional[torch.Tensor]]
    ) -> List[Optional[torch.Tensor]]:
        """The gradients of what was given to the forward."""
        core: Core = ctx.core
        core.check_taken(ctx.taken)
        core.check_kept(ctx.kept)
        for watched in getattr(ctx, "watched", ()):
            watched.check()
        if any(c is not None and _is_batched(c) for c in cotangents):
            raise UnsupportedError(
                "the compiled backward takes one gradient of each output, and "
                "not several at once (is_grads_batched, vectorize=True): call "
                "it once for each"
            )
        core._order()
        given = {
            name: exchange.of_torch(value)
            for name, value in zip(core.program.outputs, cotangents)
            if value is not None and name in core.cotangents
        }
        wanted = {
            name: exchange.empty()
            for name, needs in zip(ctx.names, ctx.needs_input_grad[4:])
            if needs and (name in core.program.inputs or name in core.grads)
        }
        if given:
            core.model.backward(
                ctx.context, given, wanted, retain=_keeps_graph()
            )
        if not _keeps_graph():
            ctx.kept = []  # as PyTorch frees what it saved
        zeros: Set[str] = set()
        for name, value in zip(core.program.outputs, cotangents):
            if value is not None:
                zeros.update(core.zeros.get(name, ()))
        needed = zip(ctx.names, ctx.kinds, ctx.needs_input_grad[4:])
        return [
            wanted[name].torch()
            if name in wanted and not wanted[name].is_empty
            else torch.zeros(shape, dtype=dtype, device=device)
            if needs and name in zeros
            else None
            for name, (shape, dtype, device), needs in needed
        ]


class _Watched:
    """An output that others follow from. In PyTorch its gradient has what comes
    by way of these; here that stays inside of the backward."""

    def __init__(self, name: str, output: torch.Tensor) -> None:
        self.name = name
        # The dict of hooks, which the graph keeps when the tensor is gone.
        output.register_hook(_nothing).remove()
        hooks = output._backward_hooks
        self.hooks: Mapping[Any, Any] = {} if hooks is None else hooks
        self.tensor = weakref.ref(output)

    def check(self) -> None:
        tensor = self.tensor()
        keeps = tensor is not None and tensor.retains_grad
        if not self.hooks and not keeps:
            return
        raise UnsupportedError(
            f"{'retain_grad' if keeps else 'a hook'} of '{self.name}', an output "
            "that other outputs follow from: the gradient that comes by way of "
            "them does not pass it in a compiled module. "
            "tandem.torch.restore(module) brings PyTorch's own back"
        )


def _nothing(gradient: torch.Tensor) -> None:
    pass


def _watch(name: str, output: torch.Tensor) -> None:
    node: Any = output.grad_fn
    node.watched = [*getattr(node, "watched", ()), _Watched(name, output)]


def _random_states(artifact: Artifact, program: str) -> List[str]:
    slots = artifact.program(program)
    read = {b["index"] for b in slots["buffers"] if b["in"] == "argument"}
    return [
        slot["name"]
        for index, slot in enumerate(slots["arguments"])
        if slot["role"] == "state"
        and index in read
        and (artifact.states[slot["name"]].init or {}).get("kind") == "seed"
    ]


def seed_of(seed: Optional[int]) -> int:
    """A seed, or that of PyTorch."""
    return torch.initial_seed() % (1 << 63) if seed is None else seed
