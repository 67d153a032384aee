"""Compiled programs in the place of a module's forward, and back."""

from __future__ import annotations

import collections
import contextlib
import types
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

import torch

from ._artifact import Artifact, Value
from ._autograd import Core, in_forward_mode, seed_of
from ._errors import CompileError, UnsupportedError, UsageError, level_of_caller
from ._evaluation import Form, form_of
from ._exported import OVERLAPS, inner_outputs, program_with_copies, unused_values
from ._exporting import copied, exclusive, reaches
from ._model import Model, seed_in_range
from ._program import Progress
from ._unchanged import Unchanged, same, shown
from ._zeros import zero_gradients

__all__ = ["FallbackWarning", "optimize", "restore"]


# What torch.func transforms now, as vmap and grad.
_transforms: Callable[[], Any] = getattr(
    torch._C._functorch, "peek_interpreter_stack", lambda: None
)
_has_global_hooks: Callable[[], bool] = getattr(
    torch.nn.modules.module, "_has_any_global_hook", lambda: False
)


class FallbackWarning(UserWarning):
    """A call of an optimized module was PyTorch's own, and why."""


class _Reason(str):
    """Why a call is PyTorch's own, with what it is about: of calls that differ
    in the same thing the first one is said."""

    about: str

    @staticmethod
    def of(about: str, text: str) -> _Reason:
        reason = _Reason(text)
        reason.about = about
        return reason


class _Forward:
    """What stands in the place of a module's `forward`."""

    def __init__(
        self,
        module: torch.nn.Module,
        core: Core,
        program: Any,
        example: Any,
        structure: Any,
        fallback: str,
        evaluated: Optional[Form],
    ) -> None:
        self.module = module
        self.core = core
        self._fallback = fallback
        self._said: Set[str] = set()
        pytree = torch.utils._pytree
        leaves, self._spec = pytree.tree_flatten(example)
        signature = program.graph_signature
        kind = torch.export.graph_signature.InputKind.USER_INPUT
        names = [s.arg.name for s in signature.input_specs if s.kind == kind]
        #: Of each leaf of the arguments its name, or what it must be.
        self._leaves: List[Tuple[str, Optional[Value], Any]] = []
        inputs = core.model.artifact.inputs
        for name, leaf in zip(names, leaves):
            is_tensor = isinstance(leaf, torch.Tensor)
            self._leaves.append(
                (name, inputs.get(name), None if is_tensor else leaf)
            )
        self._shapes = [
            (tuple(v.shape), v.dtype) if isinstance(v, torch.Tensor) else None
            for v in leaves
        ]
        self._out_spec = structure
        out_kind = torch.export.graph_signature.OutputKind.USER_OUTPUT
        #: Of each leaf of the result: the name of a tensor, or what it is. One
        #: that is returned twice is one tensor, so that writes show in both.
        self._results: List[Tuple[Optional[str], Any]] = []
        firsts: Dict[str, str] = {}
        made: List[Optional[str]] = []
        for spec in signature.output_specs:
            if spec.kind == out_kind:
                is_tensor = isinstance(
                    spec.arg, torch.export.graph_signature.TensorArgument
                )
                name = f"output{len(made)}"
                made.append(name if is_tensor else None)
                self._results.append(
                    (firsts.setdefault(spec.arg.name, name), None)
                    if is_tensor
                    else (None, spec.arg.value)
                )
        tensors = {**dict(zip(names, leaves)), **core.tensors}
        core.zeros = {
            name: sources
            for name, sources in zero_gradients(program, made, tensors).items()
            if name not in core.cotangents
        }
        if {name for name in made if name} != set(core.program.outputs):
            raise UnsupportedError(
                "the artifact's outputs are not those of the module: "
                + ", ".join(f"'{n}'" for n in core.program.outputs)
            )
        self._modules = list(module.modules())
        #: The hooks of inner modules, whose calls are compiled in.
        self._hooks = [
            hooks
            for m in self._modules[1:]
            for hooks in (
                m._forward_hooks,
                m._forward_pre_hooks,
                m._backward_hooks,
                m._backward_pre_hooks,
            )
        ]
        #: Those of inner modules that are there now are in the program.
        self._hooked = any(self._hooks) or _has_global_hooks()
        self._unchanged = Unchanged(module)
        self._evaluate_differs: Optional[str] = None
        #: What `evaluate` computes, until a forward in eval() was compared.
        self._evaluated = evaluated
        self._modes = self._training()
        # Trees are taken apart where there are some.
        self._plain = not example[1] and all(
            isinstance(v, torch.Tensor) for v in example[0]
        )
        #: Buffers and tensors that are compiled in, with their versions.
        self._constants = [
            (n, b, b._version, b.data_ptr())
            for n, b in module.named_buffers()
            if n not in core.tensors
        ] + [
            (n, t, t._version, t.data_ptr())
            for n, t in self._unchanged.tensors.items()
            if t.layout == torch.strided
        ]

    def _training(self) -> Tuple[bool, ...]:
        return tuple([m.training for m in self._modules])

    def _why_not(self, leaves: Sequence[Any], spec: Any) -> Optional[str]:
        """Why the compiled programs cannot do this call."""
        if spec != self._spec:
            return "its arguments have another structure than the examples"
        for (name, _, known), shape, leaf in zip(
            self._leaves, self._shapes, leaves
        ):
            if shape is None:
                if not same(leaf, known):
                    return _Reason.of(
                        name,
                        f"'{name}' is {shown(leaf)}, and was {shown(known)} when "
                        "compiled",
                    )
            elif not isinstance(leaf, torch.Tensor):
                return _Reason.of(name, f"'{name}' is no tensor")
            elif (tuple(leaf.shape), leaf.dtype) != shape:
                return _Reason.of(
                    f"the {'type' if leaf.dtype != shape[1] else 'shape'} of {name}",
                    f"'{name}' is {leaf.dtype}{list(leaf.shape)}, and was "
                    f"{shape[1]}{list(shape[0])} when compiled",
                )
        if self._hooks and _has_global_hooks():
            return "hooks of all modules are registered, and inner calls compiled in"
        if any(self._hooks):
            inner = next(
                m for i, m in enumerate(self._modules[1:])
                if any(self._hooks[4 * i : 4 * i + 4])
            )
            return (
                f"a hook is registered on an inner {type(inner).__name__}, "
                "whose calls are compiled in"
            )
        if self._hooked:
            return "hooks were there when it was compiled: optimize it again"
        if torch.compiler.is_dynamo_compiling():
            return "it is called in torch.compile"
        if _transforms() is not None:
            return "it is called in a transform of torch.func"
        if in_forward_mode():
            return "it is called in forward mode (torch.autograd.forward_ad)"
        reason = self._unchanged.why_not() or self.core.unfit()
        if reason is not None:
            return reason
        if torch.is_autocast_enabled(self.core._device.type):
            return (
                "it is called under torch.autocast: compile it with amp='bf16' "
                "instead"
            )
        for name, buffer, version, address in self._constants:
            if buffer._version != version or buffer.data_ptr() != address:
                return f"the tensor '{name}', which is compiled in, was changed"
        return None

    def _needs_grad(self, leaves: Sequence[Any]) -> bool:
        return torch.is_grad_enabled() and (
            any(isinstance(v, torch.Tensor) and v.requires_grad for v in leaves)
            or any(t.requires_grad for t in self.core.current().values())
        )

    def _ungraded(self, leaves: Sequence[Any]) -> Optional[str]:
        core = self.core
        for (name, _, _), leaf in zip(self._leaves, leaves):
            if (
                isinstance(leaf, torch.Tensor)
                and leaf.requires_grad
                and core.lacks(name)
            ):
                return (
                    f"'{name}' requires grad, and its example did not: give an "
                    "example that does"
                )
        for name, tensor in core.current().items():
            if tensor.requires_grad and core.lacks(name):
                return f"'{name}' requires grad, and did not when compiled"
        return None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves: Sequence[Any] = args
        spec = self._spec
        if not (
            self._plain
            and not kwargs
            and len(args) == len(self._leaves)
            and all([isinstance(v, torch.Tensor) for v in args])
        ):
            leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
        reason = self._why_not(leaves, spec)
        needs = self._needs_grad(leaves)
        evaluates = False
        if reason is None:
            modes = self._training()
            if modes != self._modes:
                if any(modes):
                    reason = (
                        "modules are in train() or eval() otherwise than when "
                        "compiled"
                    )
                elif needs:
                    reason = (
                        "it is called in eval() with gradients: under "
                        "torch.no_grad() the program 'evaluate' runs"
                    )
                evaluates = True
            elif not any(modes) and not needs:
                # Compiled in eval(), forward is evaluate, and writes buffers.
                evaluates = not self.core.writes
        if reason is None and needs:
            reason = self._ungraded(leaves)
        if reason is not None:
            return self._eager(reason, args, kwargs)
        inputs = {
            name: leaf
            for (name, value, _), leaf in zip(self._leaves, leaves)
            if value is not None
        }
        core = self.core
        if evaluates and self._evaluated is not None:
            with exclusive():
                if self._evaluated is not None:
                    self._evaluate_differs = self._other_in_eval(args, kwargs)
                    self._evaluated = None
        if evaluates and self._evaluate_differs is not None:
            return self._eager(self._evaluate_differs, args, kwargs)
        made = self._evaluate(inputs) if evaluates else dict(
            zip(core.program.outputs, core.train(inputs))
        )
        return self._result(made)

    def _evaluate(self, inputs: Mapping[str, torch.Tensor]) -> Dict[str, Any]:
        order = self.core.model.program("evaluate").outputs
        return dict(zip(order, self.core.evaluate(inputs)))

    def _other_in_eval(self, args: Any, kwargs: Any) -> Optional[str]:
        """What a forward does in eval() that `evaluate` does not, of what was
        compiled in train(): that is the graph of train() with dropout off and
        statistics fixed."""
        from ._export_torch import export

        # Other threads call the module meanwhile.
        shadow = copied(self.module, _Forward)
        pads: List[bool] = []
        try:
            with _without_hooks(shadow), _seeing_masks(shadow, pads):
                with torch.inference_mode(False), torch.no_grad():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # said when compiled
                        program = export(
                            shadow, *_apart((args, kwargs)), has_gradients=False
                        )
        except UnsupportedError as error:
            return f"torch.export cannot follow its forward in eval(): {error}"
        if reaches(program, self.module):
            return (
                "its forward comes to its parameters by what cannot be copied, as "
                "a closure, so that its forward in eval() is not known"
            )
        form = form_of(program, False)
        structure = program.module_call_graph[0].signature.out_spec
        if form.written:
            return f"its forward writes to '{form.written[0]}' in eval()"
        if form.draws:
            return "its forward draws random numbers in eval()"
        if pads:
            return "a TransformerEncoder with a mask of padding makes rows 0 in eval()"
        if structure != self._out_spec or not form.same(self._evaluated):
            return (
                "its forward does something else in eval() than in train() "
                "with dropout off and statistics fixed"
            )
        return None

    def _result(self, made: Mapping[str, Any]) -> Any:
        results = [
            value if name is None else made[name]
            for name, value in self._results
        ]
        return torch.utils._pytree.tree_unflatten(results, self._out_spec)

    def _eager(self, reason: str, args: Any, kwargs: Any) -> Any:
        self._say(reason)
        return type(self.module).forward(self.module, *args, **kwargs)

    def _say(self, reason: str) -> None:
        what = f"{type(self.module).__name__}: {reason}"
        if self._fallback == "refuse":
            raise UnsupportedError(what)
        about = reason.about if isinstance(reason, _Reason) else reason
        if about not in self._said:
            self._said.add(about)
            warnings.warn(
                f"{what}; such calls are PyTorch's own",
                FallbackWarning,
                stacklevel=level_of_caller(),
            )

    def __deepcopy__(self, memo: Any) -> Any:
        # The copy of a module is PyTorch's own, with parameters of its own.
        other = memo.get(id(self.module))
        if other is None:
            raise UnsupportedError("the forward of a module cannot be copied")
        return types.MethodType(type(self.module).forward, other)

    def __reduce__(self) -> Any:
        raise UnsupportedError(
            "an optimized module cannot be pickled: save its state_dict(), or "
            "call tandem.torch.restore(module) before"
        )


def optimize(
    module: torch.nn.Module,
    args: Union[torch.Tensor, Tuple[Any, ...]],
    kwargs: Optional[Mapping[str, Any]] = None,
    *,
    fallback: str = "warn",
    threads: int = 0,
    seed: Optional[int] = None,
    progress: Progress = None,
    cache: bool = True,
    **options: Any,
) -> torch.nn.Module:
    """Compiles the forward and the backward of a module, puts them in the place
    of its `forward`, and returns it.

        model = tandem.torch.optimize(model, (x,))

    The rest of the loop stays as it is: parameters are the same Parameter
    objects, whose memory the programs read and optimizers write; buffers are
    updated in place; losses, hooks on parameters, gradient accumulation,
    GradScaler and several calls before one backward are PyTorch's.

    `args` and `kwargs` are examples; inputs whose gradient is wanted must
    require grad in them. The module is compiled in the mode that it is in. In
    `eval()` without gradients the program `evaluate` runs. `options` are those
    of `tandem compile` (`amp="bf16"`). Dropout begins with
    a number of PyTorch's generator on each call, so that torch.manual_seed and
    checkpoints reach it, and draws other numbers than PyTorch from there;
    another `seed` draws others again.

    What the programs cannot do is PyTorch's own forward, with a
    FallbackWarning once for each reason, or an UnsupportedError
    (`fallback="refuse"`): other shapes than the examples', hooks on inner
    modules, autocast, gradients in `eval()`, and a module whose submodules or
    attributes are otherwise than when it was compiled. Second derivatives are an
    UnsupportedError.

    `copy.deepcopy(module)` gives a module that is PyTorch's own;
    `tandem.torch.restore(module)` takes the programs out.
    """
    if fallback not in ("warn", "refuse"):
        raise UsageError(
            f"expected fallback='warn' or 'refuse' but got '{fallback}'"
        )
    _check_options(options)
    seed = None if seed is None else seed_in_range(seed)
    from ._compile import compile_source
    from ._export_torch import (
        LostGradient, export, number_outputs, source_of_program,
    )

    for part in module.modules():
        restore(part)
    if isinstance(args, torch.Tensor):
        args = (args,)
    example = (tuple(args), dict(kwargs or {}))
    # Addresses of buffers that are compiled in are compared later, so what is
    # exported is what is there now.
    try:
        with _without_hooks(module):
            program = export(module, *_apart(example))
    except LostGradient as error:
        if fallback == "refuse":
            raise
        warnings.warn(
            f"calls of {type(module).__name__} are PyTorch's own: {error}",
            FallbackWarning,
            stacklevel=level_of_caller(),
        )
        return module
    structure = number_outputs(program)
    devices = {t.device for t in module.state_dict().values()}
    device = next((d for d in devices if d.type == "cuda"), None)
    if len(devices) > 1:
        raise UnsupportedError(
            "the module is on several devices: "
            + ", ".join(sorted(str(d) for d in devices))
        )
    if device is not None:
        options.setdefault("target", "cuda")
    inner = inner_outputs(program)
    trains = any(part.training for part in module.modules())
    evaluated = form_of(program, True) if trains else None

    def compiled(program: Any) -> Artifact:
        source = source_of_program(program, type(module).__name__, {})
        return compile_source(
            source, dict(options), progress=progress, cache=cache
        )

    try:
        artifact = compiled(program)
    except CompileError as error:
        if OVERLAPS not in error.text:
            raise
        artifact = compiled(program_with_copies(program))
    if "backward" not in artifact.programs:
        raise UsageError(
            f"no result of {type(module).__name__} has a gradient: none of its "
            "parameters that the results follow from requires grad, and no "
            "example does. Give an example that requires grad; for inference "
            "alone, tandem.compile(module, args, inference=True) and tandem.Step"
        )
    model = Model(
        artifact,
        device="cpu" if device is None else f"cuda:{device.index or 0}",
        threads=threads,
        seed=seed_of(seed),
    )
    core = Core(model, seed)
    core.inner = inner
    names = [n for n in model.values if not artifact.is_training_state(n)]
    tensors = module.state_dict(keep_vars=True)
    added = [n for n in names if n not in tensors]
    if added:
        raise UnsupportedError(
            "the module has no "
            + ", ".join(f"'{n}'" for n in added)
            + ", which options (lora) added: tandem.compile(module, args, ...) "
            "and tandem.Step train what a module does not have"
        )
    unused = unused_values(program)
    many = collections.Counter(id(tensors[n]) for n in names)
    for name in names:
        if many[id(tensors[name])] > 1 and name in unused:
            core.give(name, module)
        else:
            core.adopt(name, module)
    module.__dict__["forward"] = _Forward(
        module, core, program, example, structure, fallback, evaluated
    )
    return module


# What is PyTorch's in a module that is optimized, and what to do instead.
_NOT_HERE = {
    "optimizer": "the loss and the optimizer are PyTorch's here: "
    "tandem.compile(module, args, optimizer=...) compiles them in",
    "inference": "a module is compiled with its gradients here: "
    "tandem.compile(module, args, inference=True) and tandem.Step are for "
    "inference alone",
    "output": "the programs are put into the module here: "
    "tandem.compile(module, args, output=...) writes a file",
    "device": "a module is compiled for the device that it is on here: "
    "module.to(device) before",
}
_NOT_HERE["loss"] = _NOT_HERE["optimizer"]


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuses options that would have no effect, or another one."""
    for name, why in _NOT_HERE.items():
        if options.get(name) not in (None, False):
            raise UsageError(f"'{name}' is no option of optimize: {why}")
    if str(options.get("order") or 1) != "1":
        raise UnsupportedError(
            f"order={options['order']}: the gradients of an optimized module "
            "cannot be differentiated in PyTorch's autograd"
        )


def _apart(example: Any) -> Any:
    """Examples in memory of their own. Of a tensor that is given twice, or is a
    buffer of the module, too, torch.export makes one, and later calls may give
    different ones."""

    def copied(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)

    return torch.utils._pytree.tree_map(copied, example)


@contextlib.contextmanager
def _without_hooks(module: torch.nn.Module) -> Iterator[None]:
    """A module without hooks of its own: PyTorch calls them around the compiled
    forward, so that they would count twice."""
    names = (
        "_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
        "_backward_pre_hooks",
    )
    kept = {name: module.__dict__[name] for name in names}
    module.__dict__.update({name: collections.OrderedDict() for name in names})
    try:
        yield
    finally:
        module.__dict__.update(kept)


@contextlib.contextmanager
def _seeing_masks(module: torch.nn.Module, seen: List[bool]) -> Iterator[None]:
    """Sees encoders that take rows of padding out in eval(), which torch.export
    does not follow."""

    def look(part: Any, args: Any, kwargs: Any) -> None:
        masks = [kwargs.get("src_key_padding_mask"), *args[2:3]]
        if any(mask is not None for mask in masks):
            seen.append(True)

    handles = [
        part.register_forward_pre_hook(look, with_kwargs=True)
        for part in module.modules()
        if isinstance(part, torch.nn.TransformerEncoder)
        and getattr(part, "use_nested_tensor", part.enable_nested_tensor)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def restore(module: torch.nn.Module) -> torch.nn.Module:
    """Takes compiled programs out of a module; its parameters stay as they
    are."""
    if isinstance(module.__dict__.get("forward"), _Forward):
        del module.__dict__["forward"]
    return module
