"""`Step`: a compiled training step, called from Python."""

from __future__ import annotations

import json
import os
from ctypes import byref, c_void_p
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

import numpy as np

from . import _exchange as exchange
from ._artifact import Artifact
from ._errors import UnsupportedError, UsageError
from ._exchange import JAX, NUMPY, TORCH, Tensor
from ._html import table
from ._inputs import Taker, by_name
from ._library import check, lib
from ._model import Model, seed_in_range
from ._outputs import Outputs

__all__ = ["Step"]

Path = Union[str, "os.PathLike[str]"]

_ATTRIBUTES = ("artifact", "copied", "_model", "_taker")


def _names_in(path: Path) -> Optional[Set[str]]:
    """Of a safetensors file the names that its header has; None of others."""
    try:
        if not os.path.isfile(path):
            return None  # a folder, or a pipe, which is read once
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size)) if size < 1 << 27 else None
        return set(header) if isinstance(header, dict) else None
    except (OSError, ValueError, RecursionError):
        return None  # tdm_load says what is wrong


class Step:
    """A model that trains: one call is one step.

        step = tandem.Step(artifact)
        for x, labels in batches:
            loss = step(x, labels).loss

    `artifact` is what `tandem.compile` returned, or a path. `params` are the
    values to begin with: a checkpoint (a safetensors file, an index, a folder
    of one), or arrays by name, as a `state_dict()`; without it they are those
    of the model's file or module, or drawn by `seed` where the model says how.
    `device` is "cpu", "cuda", "cuda:1"; `threads` is the number of threads on
    the CPU (0: one for each processor).

    Arrays of NumPy, PyTorch (on CPU or GPU), JAX, and what else speaks DLPack
    are used where they lie, and outputs are of the caller's kind: that of the
    first argument that is no array of NumPy, else NumPy's. An output's memory
    is its own; one that the model declares a view of an input or parameter is
    that view. What has to be copied is a `CopyWarning` once for each input, or
    an error (`copies="refuse"`), and `copied` names it after the call.
    Integers are widened so; all other types must be the model's.

    On a GPU a call queues its work on PyTorch's current stream and returns;
    arrays of other kinds are on the default stream.

    Threads: calls may come from any thread. Those of one Step run one after the
    other, and other threads run meanwhile: the interpreter is not locked while
    a program runs. `copied` is that of the last call of any thread.
    """

    def __init__(
        self,
        artifact: Union[Artifact, Path],
        params: Union[Path, Mapping[str, Any], None] = None,
        *,
        device: Optional[str] = None,
        threads: int = 0,
        seed: int = 0,
        copies: str = "warn",
        graphs: bool = True,
        libraries: bool = True,
        require_signature: Union[str, "os.PathLike[str]", None] = None,
        memory_limit: int = 0,
    ) -> None:
        if not isinstance(artifact, Artifact):
            artifact = Artifact(artifact)
        self.artifact = artifact
        self._model = Model(
            artifact,
            device=device,
            threads=threads,
            seed=seed,
            graphs=graphs,
            libraries=libraries,
            require_signature=require_signature,
            memory_limit=memory_limit,
        )
        self._taker = Taker(self._model.device, copies)
        #: What the last call copied: the names of inputs with the reasons.
        self.copied: Dict[str, str] = {}
        if params is None:
            params = artifact.initial or artifact.weights
        if isinstance(params, Mapping):
            self._set_all(params, strict=params is not artifact.initial)
        elif params is not None:
            self._begin_from(params)

    def __setattr__(self, name: str, value: Any) -> None:
        # What a class that is derived from it has is its own.
        if type(self) is Step and name not in _ATTRIBUTES:
            rates = [n for n in self._names(True) if n.endswith(".lr")]
            raise UsageError(
                f"a Step has no '{name}' that can be set: step['NAME'] = array "
                "overwrites a parameter or a state, of the model or of training"
                + (f" (the rate is step['{rates[0]}'])" if rates else "")
            )
        super().__setattr__(name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UnsupportedError(
            "a Step cannot be copied or pickled: make another one of its "
            "artifact, and give it state_dict(optimizer=True)"
        )

    # --- Calls -------------------------------------------------------------

    def __call__(self, /, *args: Any, **kwargs: Any) -> Outputs:
        """Runs a step: forward, backward and update. Inputs are given in the
        order of the model or by name."""
        return self.run("step", *args, **kwargs)

    def evaluate(self, /, *args: Any, **kwargs: Any) -> Outputs:
        """Computes the outputs as after `eval()`, and changes nothing."""
        return self.run("evaluate", *args, **kwargs)

    def accumulate(self, /, *args: Any, **kwargs: Any) -> Outputs:
        """Adds the gradients of a batch to sums, of which the next step takes
        the mean (of an artifact that was compiled with `accumulate=True`)."""
        return self.run("accumulate", *args, **kwargs)

    def run(self, program: str, /, *args: Any, **kwargs: Any) -> Outputs:
        """Runs a program that needs nothing but inputs, parameters and states:
        "step", "evaluate", "forward", "accumulate"."""
        facts = self._model.program(program)
        given = by_name(list(facts.inputs), args, kwargs, f"'{program}'")
        kind, device = self._caller(given)
        copied: Dict[str, str] = {}
        inputs = {
            name: self._taker.take(
                name,
                value,
                facts.inputs[name],
                copied,
                written=name in facts.written,
                owning=facts.has_aliases,
            )
            for name, value in given.items()
        }
        on_host = kind in (NUMPY, JAX, TORCH) and device == "cpu"
        outputs = {
            name: (
                exchange.zeros(
                    facts.results[name]["dtype"], facts.results[name]["shape"]
                )
                if on_host
                and self._model.device != "cpu"
                and name in facts.results
                and not self.artifact.sizes
                else exchange.empty()
            )
            for name in facts.outputs
        }
        self._model.run(program, inputs, outputs)
        self.copied = copied
        return self._give(facts.outputs, outputs, inputs, facts.has_aliases, kind)

    def predict(
        self,
        /,
        *args: Any,
        outputs: Optional[Sequence[str]] = None,
        **kwargs: Any,
    ) -> Outputs:
        """Computes outputs of `evaluate` for any number of rows. Inputs that
        the outputs do not follow from, as labels, can be left out. `outputs`
        are their names; without it, those that have a row for each row of the
        inputs and follow from those that are given. They are on the host."""
        facts = self._model.program("evaluate")
        given = by_name(
            list(facts.inputs), args, kwargs, "'evaluate'", optional=True
        )
        if outputs is None:
            outputs = [
                name
                for name, result in facts.results.items()
                if result["shape"]
                and result.get("rows") != "mean"
                and all(i in given for i in result.get("inputs", facts.inputs))
            ]
            if not outputs:
                raise UsageError(
                    "no output with rows follows from the given inputs "
                    + (", ".join(f"'{n}'" for n in given) or "(none)")
                )
        kind, _ = self._caller(given)
        copied: Dict[str, str] = {}
        inputs = {
            name: self._taker.take(name, value, facts.inputs[name], copied)
            for name, value in given.items()
        }
        wanted = {name: exchange.empty() for name in outputs}
        self._model.predict(inputs, wanted)
        self.copied = copied
        return self._give(list(outputs), wanted, inputs, False, kind)

    def _caller(self, given: Mapping[str, Any]) -> Tuple[str, str]:
        """Whose arrays these are and where they lie; tells the C API the
        caller's stream."""
        kind, device = NUMPY, "cpu"
        for value in given.values():
            theirs = exchange.kind_of(value)
            if theirs != NUMPY:
                kind = theirs
                break
        if self._model.device == "cpu":
            return kind, device
        stream = 0
        if kind == TORCH:
            torch: Any = __import__("torch")
            if any(
                exchange.kind_of(v) == TORCH and v.device.type == "cuda"
                for v in given.values()
            ):
                device = self._model.device
            if self._model.device.startswith("cuda:"):
                current = torch.cuda.current_stream(
                    torch.device(self._model.device)
                )
                stream = current.cuda_stream
        elif kind == JAX:
            if any(
                d.platform != "cpu"
                for v in given.values()
                if exchange.kind_of(v) == JAX
                for d in v.devices()
            ):
                device = self._model.device
        elif kind == exchange.OTHER:
            device = self._model.device
        self._model.use_stream(stream)
        return kind, device

    def _give(
        self,
        names: Sequence[str],
        outputs: Mapping[str, Tensor],
        inputs: Mapping[str, Tensor],
        has_aliases: bool,
        kind: str,
    ) -> Outputs:
        given = []
        for name in names:
            tensor = outputs[name]
            if has_aliases:
                # It may show the memory of an input, which its owner keeps.
                owners = [t._owner for t in inputs.values()]
                if any(owner is not None for owner in owners):
                    tensor._owner = owners
                if kind == JAX:
                    # JAX's arrays never change.
                    tensor = tensor.to(tensor.device)
            given.append(exchange.to_kind(tensor, kind))
        return Outputs(names, given)

    # --- Parameters and states ---------------------------------------------

    @property
    def device(self) -> str:
        """Where the model lives."""
        return self._model.device

    def _names(self, training: bool) -> List[str]:
        return [
            name
            for name in self._model.values
            if self.artifact.is_training_state(name) == training
        ]

    def tensor(self, name: str) -> Tensor:
        """A parameter or state, of the model's own memory: what steps make of
        it is seen in it."""
        return self._model.tensor(self._own(name))

    def _own(self, name: str) -> str:
        """The model's own name of a parameter or state that may be called by
        another one, as one that is tied."""
        if name not in self._model.values:
            for spec in self._model.values.values():
                if name in spec.also_called:
                    return spec.name
            import difflib

            near = difflib.get_close_matches(name, self._model.values, 1)
            raise UsageError(
                f"'{self.artifact.name}' has no parameter or state '{name}'"
                + (f"; did you mean '{near[0]}'?" if near else "")
            )
        return name

    def __getitem__(self, name: str) -> Any:
        """A copy of a parameter or state, as an array of NumPy."""
        return _snapshot(self._model.tensor(self._own(name)), NUMPY)

    def __setitem__(self, name: str, value: Any) -> None:
        """Overwrites a parameter or state: same type and shape."""
        self._set_all({self._own(name): value}, strict=False)

    def state_dict(
        self, kind: str = NUMPY, *, optimizer: bool = False
    ) -> Dict[str, Any]:
        """Copies of the parameters and the model's own states by name, as
        `module.load_state_dict` takes them. `kind` is "numpy", "torch" or
        "jax". `optimizer`: with what `optimizer_state_dict` has."""
        names = self._names(False)
        if optimizer:
            names = names + self._names(True)
        return self._copies(names, kind)

    def optimizer_state_dict(self, kind: str = NUMPY) -> Dict[str, Any]:
        """Copies of the states of training by name: the optimizer's moments,
        steps and rate, averages, and the state of random numbers."""
        return self._copies(self._names(True), kind)

    def _copies(self, names: Iterable[str], kind: str) -> Dict[str, Any]:
        if kind not in (NUMPY, TORCH, JAX):
            raise UsageError(
                f"expected kind 'numpy', 'torch' or 'jax' but got '{kind}'"
            )
        copies: Dict[str, Any] = {}
        for name in names:
            copies[name] = _snapshot(self._model.tensor(name), kind)
            for other in self._model.values[name].also_called:
                copies[other] = copies[name]
        return copies

    def load_state_dict(
        self, values: Mapping[str, Any], *, strict: bool = True
    ) -> None:
        """Overwrites parameters and states by name. States of training may be
        among them, and keep their values if they are not. `strict`: a parameter
        or state of the model's own that is missing, or a name that it does not
        have, is an error; one message has all of them, and nothing is
        changed."""
        self._set_all(values, strict=strict)

    def load_optimizer_state_dict(self, values: Mapping[str, Any]) -> None:
        """Overwrites states of training by name."""
        known = set(self._names(True))
        wrong = [name for name in values if name not in known]
        if wrong:
            raise UsageError(
                "these are no states of training: "
                + ", ".join(f"'{n}'" for n in wrong)
            )
        self._set_all(values, strict=False)

    def _set_all(self, values: Mapping[str, Any], strict: bool) -> None:
        wrong: List[str] = []
        tensors: Dict[str, Tensor] = {}
        further = {
            other: spec.name
            for spec in self._model.values.values()
            for other in spec.also_called
        }
        values = {
            further.get(name, name): value
            for name, value in values.items()
            if further.get(name) not in values
        }
        for name, value in values.items():
            spec = self._model.values.get(name)
            if spec is None:
                if strict:
                    wrong.append(f"'{name}' is no parameter or state")
                continue
            try:
                tensor = Taker(self._model.device, "allow").take(
                    name, value, spec, {}
                )
                if tensor.shape != spec.shape or tensor.dtype != spec.dtype:
                    sizes = ", ".join(map(str, tensor.shape))
                    raise UsageError(
                        f"expected '{name}' as {spec.type} but got "
                        f"{tensor.dtype}[{sizes}]"
                    )
                tensors[name] = tensor
            except UsageError as error:
                wrong.append(str(error))
        if strict:
            missing = [n for n in self._names(False) if n not in values]
            if missing:
                wrong.append(
                    "missing: " + ", ".join(f"'{n}'" for n in missing)
                )
        if wrong:
            raise UsageError("; ".join(wrong))
        self._caller(values)
        for name, tensor in tensors.items():
            self._model.set(name, tensor)

    def initialize(self, seed: int = 0) -> None:
        """Draws every parameter and state that has an initial value anew."""
        check(lib().tdm_initialize(self._model.handle, seed_in_range(seed)))

    # --- Files -------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Writes all parameters and states to a checkpoint (safetensors), as
        `tandem train --save` does. An earlier file stays until the new one is
        complete; a file of another kind is not replaced."""
        check(lib().tdm_save(self._model.handle, os.fsencode(path)))

    def load(self, path: Path) -> None:
        """Reads all parameters and states of a checkpoint, to go on with a
        training: a safetensors file, an index, or a folder of one. It must have
        every parameter; a state that it lacks keeps its value."""
        check(lib().tdm_load(self._model.handle, os.fsencode(path)))

    def _begin_from(self, path: Path) -> None:
        # As `train --params`: what belongs to training begins anew. What the
        # file does not have stays by itself, and a copy would double it.
        given = _names_in(path)
        kept = {
            n: self._model.tensor(n).to(self._model.device)
            for n in self._names(True)
            if given is None
            or not given.isdisjoint((n, *self._model.values[n].also_called))
        }
        self.load(path)
        for name, tensor in kept.items():
            self._model.set(name, tensor)

    # --- What it is --------------------------------------------------------

    def memory(self) -> Dict[str, int]:
        """Bytes: `planned` by the compiler for the largest program, `current`,
        allocated now, and `peak`, the most so far."""
        return self._model.memory()

    def synchronize(self) -> None:
        """Returns when all work that was queued on the model's device is
        done."""
        check(lib().tdm_synchronize(self._model.device.encode()))

    def __repr__(self) -> str:
        inputs = ", ".join(
            f"{v.name}: {v.type}" for v in self.artifact.inputs.values()
        )
        outputs = ", ".join(
            f"{v.name}: {v.type}" for v in self.artifact.outputs.values()
        )
        return (
            f"tandem.Step({self.artifact.name}, ({inputs}) -> ({outputs}), "
            f"optimizer {self.artifact.optimizer or 'none'}, on {self.device})"
        )

    def _repr_html_(self) -> str:
        rows = [
            (v.role, v.name, v.type)
            for v in self.artifact.values
            if not self.artifact.is_training_state(v.name)
        ]
        return table(
            f"{self.artifact.name} with {self.artifact.optimizer or 'no optimizer'}"
            f" on {self.device}",
            ("role", "name", "type"),
            rows,
        )


def _snapshot(tensor: Tensor, kind: str) -> Any:
    """A copy of a tensor of the model's memory, which no step changes."""
    if kind == NUMPY:
        return tensor.to("cpu").numpy()
    return exchange.to_kind(tensor.to(tensor.device), kind)
