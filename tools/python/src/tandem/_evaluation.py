"""Whether a forward in `eval()` is its graph of `train()` with dropout off and
statistics fixed, which is what the program `evaluate` computes.

Both graphs are brought into one form, node by node, and compared. Numbers would
not do: what a forward adds, of other values, may be as small as rounding on one
call and large on the next.
"""

from __future__ import annotations

import hashlib
import operator
from typing import Any, Dict, List, Optional, Sequence, Set

import torch

__all__ = ["Form", "form_of"]

# Arguments that say whether an operator trains.
_MODES = ("train", "training", "use_input_stats", "dropout_p")
# Operators that are off in `evaluate`, and what is off then; of others that
# train nothing is known.
_OFF = {
    "aten::batch_norm": "training",
    "aten::scaled_dot_product_attention": "dropout_p",
    "aten::lstm": "train",
    "aten::gru": "train",
    "aten::rnn_tanh": "train",
    "aten::rnn_relu": "train",
}
_DROPOUTS = (
    "aten::dropout", "aten::dropout_", "aten::feature_dropout",
    "aten::feature_dropout_",
)
# What may return its argument, and does not say so.
_MAY_SHOW = (
    "aten::type_as", "aten::atleast_1d", "aten::atleast_2d", "aten::atleast_3d",
    "aten::broadcast_tensors", "aten::meshgrid", "aten::alpha_dropout",
    "aten::feature_alpha_dropout",
)
# These have a mutable argument, and leave its elements as they are.
_WRITES_NOTHING = ("aten::detach_", "aten::requires_grad_")


class Form:
    """What a graph computes, so that two can be compared."""

    def __init__(
        self, digest: Optional[bytes], written: Sequence[str], draws: bool
    ) -> None:
        #: None where it has what cannot be compared.
        self.digest = digest
        #: The parameters, buffers and inputs that it writes.
        self.written = written
        #: Whether its results follow from random numbers.
        self.draws = draws

    def same(self, other: Form) -> bool:
        return self.digest is not None and self.digest == other.digest


class _Storage:
    """What views of one tensor share. Those of one family are one storage
    where dropout is off, and several where it is on."""

    def __init__(
        self, name: str = "", family: Optional[_Storage] = None, since: int = 0
    ) -> None:
        self.name = name
        self.family: _Storage = self if family is None else family.family
        #: How many steps there were before it was made.
        self.since = since


class _Value:
    """A result of a step, or what the graph is given."""

    def __init__(self, key: str, storage: _Storage, step: Optional[_Step]) -> None:
        self.key, self.storage, self.step = key, storage, step


class _Step:
    def __init__(self, what: str, arguments: Any) -> None:
        self.what, self.arguments = what, arguments
        self.reads: List[_Value] = []
        self.writes: List[_Storage] = []
        self.draws = False
        #: It counts whoever reads it: a graph inside that writes.
        self.stays = False
        self.number = -1


class _Unknown(Exception):
    """What cannot be compared."""


def form_of(program: Any, evaluated: bool) -> Form:
    """The form of an exported program; `evaluated` is that of `evaluate`, which
    is compiled of it."""
    reader = _Reader(evaluated)
    try:
        return reader.read(program)
    except _Unknown:
        return Form(None, reader.written(), False)


class _Reader:
    def __init__(self, evaluated: bool) -> None:
        self.evaluated = evaluated
        self.region = ""
        self.steps: List[_Step] = []

    def written(self) -> List[str]:
        return [w.name for s in self.steps for w in s.writes if w.name]

    def read(self, program: Any) -> Form:
        signature = program.graph_signature
        inputs = {spec.arg.name: spec for spec in signature.input_specs}
        kinds = torch.export.graph_signature.InputKind
        given: List[Any] = []
        for node in program.graph.nodes:
            if node.op != "placeholder":
                continue
            spec = inputs.get(node.name)
            if spec is None:
                raise _Unknown
            if spec.kind == kinds.USER_INPUT:
                number = len([v for v in given if v.key.startswith("input ")])
                given.append(_Value(f"input {number}", _Storage(node.name), None))
            elif spec.kind in (kinds.PARAMETER, kinds.BUFFER):
                key = f"{spec.kind.name} {spec.target}"
                given.append(_Value(key, _Storage(spec.target), None))
            elif spec.kind == kinds.CONSTANT_TENSOR:
                key = _elements(program.constants.get(spec.target))
                given.append(_Value(key, _Storage(), None))
            else:
                raise _Unknown
        outputs = self.walk(program.graph_module, given)
        kind = torch.export.graph_signature.OutputKind.USER_OUTPUT
        if any(spec.kind != kind for spec in signature.output_specs):
            raise _Unknown
        return self.form(outputs)

    def walk(self, module: Any, given: Sequence[Any]) -> Any:
        """Adds the steps of a graph; its outputs."""
        known: Dict[Any, Any] = {}
        rest = iter(given)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                known[node] = next(rest)
            elif node.op == "get_attr":
                value = operator.attrgetter(node.target)(module)
                known[node] = (
                    value
                    if isinstance(value, torch.fx.GraphModule)
                    else _Value(_elements(value), _Storage(), None)
                )
            else:
                args, kwargs = torch.fx.node.map_arg(
                    (node.args, dict(node.kwargs)), lambda n: known[n]
                )
                if node.op == "output":
                    return args[0]
                if node.op != "call_function":
                    raise _Unknown
                known[node] = self.call(node.target, args, kwargs)
        raise _Unknown

    def call(self, target: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(target, torch._ops.OpOverload):
            return self.operate(target, args, kwargs)
        name = getattr(target, "__name__", str(target))
        if target is operator.getitem and not isinstance(args[0], _Value):
            return args[0][args[1]]
        # Nothing that `evaluate` computes has a gradient.
        if name == "wrap_with_set_grad_enabled":
            return self.walk(args[1], args[2:])
        if name == "wrap_with_autocast":
            outside, self.region = self.region, f"in {_key(args[:4])} "
            outputs = self.walk(args[4], args[5:])
            self.region = outside
            return outputs
        step = self.add(name, [args, kwargs])
        if target is operator.getitem:
            return _Value("", args[0].storage, step)
        return _Value("", _Storage(), step)

    def operate(self, target: Any, args: Any, kwargs: Any) -> Any:
        schema = target._schema
        named: Dict[str, Any] = {}
        for index, argument in enumerate(schema.arguments):
            if index < len(args) and not argument.kwarg_only:
                named[argument.name] = args[index]
            else:
                named[argument.name] = kwargs.get(
                    argument.name, argument.default_value
                )
        if schema.name in _DROPOUTS:
            x = named["input" if "input" in named else "self"]
            trains = named["train"] and named["p"] > 0
            if self.evaluated or not trains:
                if schema.name.endswith("_"):
                    return x
                own = _Storage("", x.storage, len(self.steps))
                return _Value(x.key, own, x.step)
            raise _Unknown
        off = _OFF.get(schema.name)
        # Without running statistics those of the batch are taken in any mode.
        stateless = "running_mean" in named and named["running_mean"] is None
        if off and self.evaluated and not stateless:
            named[off] = 0.0 if off == "dropout_p" else False
        modes = [m for m in _MODES if m in named]
        if any(named[m] for m in modes) and not stateless:
            raise _Unknown
        step = self.add(str(target), list(named.values()))
        tags = getattr(target, "tags", ())
        step.draws = not modes and torch.Tag.nondeterministic_seeded in tags
        storage = None
        for argument in schema.arguments:
            alias = argument.alias_info
            if alias is None:
                continue
            for value in _values(named[argument.name]):
                storage = storage or value.storage
                if alias.is_write and schema.name not in _WRITES_NOTHING:
                    step.writes.append(value.storage)
        shows = any(r.alias_info is not None for r in schema.returns)
        if schema.name in _MAY_SHOW and step.reads:
            storage, shows = step.reads[0].storage, True
        return _Value("", storage if shows and storage else _Storage(), step)

    def add(self, what: str, arguments: Any) -> _Step:
        step = _Step(self.region + what, arguments)
        step.reads = _values(arguments)
        for graph in _graphs(arguments):
            inner = _Reader(self.evaluated)
            count = sum(n.op == "placeholder" for n in graph.graph.nodes)
            form = inner.form(
                inner.walk(
                    graph,
                    [
                        _Value(f"given {i}", _Storage("given"), None)
                        for i in range(count)
                    ],
                )
            )
            step.what += f" {form.digest!r}"
            step.draws |= form.draws
            if form.written:
                step.stays = True
                step.writes += [v.storage for v in step.reads]
        self.steps.append(step)
        return step

    def form(self, outputs: Any) -> Form:
        last = _values(outputs)
        self.check_families(last)
        needed: Set[_Step] = {v.step for v in last if v.step}
        live: Set[_Storage] = {v.storage for v in last}
        kept: List[_Step] = []
        for step in reversed(self.steps):
            if (
                step in needed
                or step.stays
                or any(s in live for s in step.writes)
            ):
                kept.append(step)
                needed.update(v.step for v in step.reads if v.step)
                live.update(v.storage for v in step.reads)
        kept.reverse()
        digest = hashlib.sha256()
        for number, step in enumerate(kept):
            step.number = number
            digest.update(f"{step.what} {_key(step.arguments)}\n".encode())
        digest.update(_key(outputs).encode())
        return Form(
            digest.digest(), self.written(), any(step.draws for step in kept)
        )

    def check_families(self, outputs: Sequence[_Value]) -> None:
        """Dropout gives a tensor of its own where it is on, and else what it was
        given: where one of the two is written, the other must not be read."""
        written: Dict[_Storage, Dict[_Storage, int]] = {}
        for number, step in enumerate([*self.steps, None]):
            for value in outputs if step is None else step.reads:
                mine = value.storage
                for other, last in written.get(mine.family, {}).items():
                    if other is not mine and last >= mine.since:
                        raise _Unknown
            for storage in () if step is None else step.writes:
                written.setdefault(storage.family, {})[storage] = number


def _values(arguments: Any) -> List[_Value]:
    if isinstance(arguments, _Value):
        return [arguments]
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    if isinstance(arguments, (list, tuple)):
        return [v for a in arguments for v in _values(a)]
    return []


def _graphs(arguments: Any) -> List[Any]:
    if isinstance(arguments, torch.fx.GraphModule):
        return [arguments]
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    if isinstance(arguments, (list, tuple)):
        return [g for a in arguments for g in _graphs(a)]
    return []


_NAMED = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def _key(value: Any) -> str:
    """A value of a graph, so that two that differ have different texts."""
    if isinstance(value, _Value):
        return f"%{value.step.number}" if value.step else f"<{value.key}>"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_key, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{_key(v)}" for k, v in value.items()) + "}"
    if isinstance(value, torch.fx.GraphModule):
        return "graph"  # its form is in the name of the step
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, _NAMED):
        return str(value)
    raise _Unknown


def _elements(tensor: Any) -> str:
    """The elements of a constant."""
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
        raise _Unknown
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    digest = hashlib.sha256(
        flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    )
    return f"{tensor.dtype}{list(tensor.shape)} {digest.hexdigest()}"
