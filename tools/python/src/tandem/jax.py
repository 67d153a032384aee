"""Compiled programs under functions of JAX.

    f = tandem.jax.wrap(f)

computes `f`, and its gradient, by a pair of compiled programs, which
`jax.grad` and `jax.jit` see as one function with a rule of its own
(jax.custom_vjp over jax.pure_callback).
"""

from __future__ import annotations

import functools
import threading
from typing import (
    Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar,
)

import jax
import jax.numpy as jnp
import numpy as np

from ._compile import compile_source
from ._errors import UnsupportedError, UsageError
from ._export_jax import source_of_text, text_of
from ._program import Progress
from ._step import Step

__all__ = ["restore", "wrap"]

Function = TypeVar("Function", bound=Callable[..., Any])


class _Program:
    """A function without gradients, compiled: arrays in, arrays out."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        name: str,
        threads: int,
        progress: Progress,
        cache: bool,
        options: Mapping[str, Any],
    ) -> None:
        exported = text_of(function, args, {})
        source = source_of_text(exported.mlir_module(), name)
        artifact = compile_source(
            source,
            {**options, "inference": True},
            progress=progress,
            cache=cache,
        )
        self._step = Step(artifact, threads=threads, copies="allow")
        facts = self._step._model.program("evaluate")
        # The arrays in the order of the function's, those that are read.
        self._inputs = [
            (index, input_)
            for index, input_ in enumerate(artifact.inputs)
            if input_ in facts.inputs
        ]
        self._outputs = [f"result[{i}]" for i in range(len(exported.out_avals))]
        if set(self._outputs) != set(facts.outputs):
            raise UnsupportedError(
                "the artifact's outputs are not those of the function: "
                + ", ".join(f"'{n}'" for n in facts.outputs)
            )
        self._shapes = [
            jax.ShapeDtypeStruct(a.shape, a.dtype) for a in exported.out_avals
        ]

    def _call(self, *arrays: Any) -> Tuple[Any, ...]:
        given = {name: np.asarray(arrays[index]) for index, name in self._inputs}
        made = self._step.evaluate(**given)
        # Views of arguments come last among the artifact's outputs.
        return tuple(made[name] for name in self._outputs)

    def __call__(self, *arrays: Any) -> List[Any]:
        if not self._shapes:
            return []
        return list(
            jax.pure_callback(
                self._call, self._shapes, *arrays, vmap_method="sequential"
            )
        )


def _is_float(aval: Any) -> bool:
    return bool(jnp.issubdtype(aval.dtype, jnp.floating))


class _Pair:
    """A function for arguments of one structure and of one shape each: its
    forward, which also gives what the backward needs, and its backward."""

    def __init__(
        self, function: Callable[..., Any], tree: Any, avals: List[Any], **how: Any
    ) -> None:
        self._avals = avals
        name = getattr(function, "__name__", "function").strip("<>_") or "function"

        def flat(*leaves: Any) -> Tuple[Any, ...]:
            args, kwargs = jax.tree.unflatten(tree, leaves)
            made, self.out_tree = jax.tree.flatten(function(*args, **kwargs))
            return tuple(made)

        trains = [i for i, a in enumerate(avals) if _is_float(a)]
        self._trains = trains
        #: What the pullback holds: the argument of a number, or else a value.
        saved: List[int] = []
        pullback_tree: List[Any] = []

        def forward(*leaves: Any) -> Tuple[Any, Any]:
            def of_floats(*floats: Any) -> Tuple[Any, ...]:
                whole = list(leaves)
                for i, value in zip(trains, floats):
                    whole[i] = value
                return flat(*whole)

            made, pullback = jax.vjp(of_floats, *[leaves[i] for i in trains])
            held, held_tree = jax.tree.flatten(pullback)
            pullback_tree[:] = [held_tree]
            saved[:] = [
                next((i for i, leaf in enumerate(leaves) if leaf is value), -1)
                for value in held
            ]
            return made, [v for v, i in zip(held, saved) if i < 0]

        outputs, values = jax.eval_shape(forward, *avals)
        self._outputs = list(outputs)
        self._saved = list(saved)
        floats = [i for i, a in enumerate(self._outputs) if _is_float(a)]
        self._floats = floats

        def backward(held: Any, cotangents: Any) -> Tuple[Any, ...]:
            given = iter(cotangents)
            whole = [
                next(given)
                if i in floats
                else np.zeros(a.shape, jax.dtypes.float0)
                for i, a in enumerate(self._outputs)
            ]
            pullback = jax.tree.unflatten(pullback_tree[0], held)
            return tuple(pullback(tuple(whole)))

        count = len(self._outputs)
        self._count = count

        def both(*leaves: Any) -> Tuple[Any, ...]:
            made, rest = forward(*leaves)
            return (*made, *rest)

        rest = iter(values)
        held = [avals[i] if i >= 0 else next(rest) for i in self._saved]
        cotangents = [self._outputs[i] for i in floats]
        self._backward = None
        #: Why there is no gradient (a loop that runs until data says so).
        self._refusal: Optional[UnsupportedError] = None
        try:
            if trains and floats:
                self._backward = _Program(
                    backward, (held, cotangents), f"{name}_backward", **how
                )
        except UnsupportedError as error:
            self._refusal = error
        self._forward = _Program(
            flat if self._refusal else both, avals, name, **how
        )
        self.call = jax.custom_vjp(self._primal)
        self.call.defvjp(self._fwd, self._bwd)

    def _primal(self, *leaves: Any) -> Tuple[Any, ...]:
        return tuple(self._forward(*leaves)[: self._count])

    def _fwd(self, *leaves: Any) -> Tuple[Any, Any]:
        if self._refusal is not None:
            raise UnsupportedError(
                f"the function has no gradient: {self._refusal}",
                text=self._refusal.text,
            ) from self._refusal
        made = self._forward(*leaves)
        rest = iter(made[self._count :])
        held = [leaves[i] if i >= 0 else next(rest) for i in self._saved]
        return tuple(made[: self._count]), held

    def _bwd(self, held: List[Any], cotangents: Sequence[Any]) -> Tuple[Any, ...]:
        grads: Dict[int, Any] = {}
        if self._backward is not None:
            made = self._backward(*held, *[cotangents[i] for i in self._floats])
            grads = dict(zip(self._trains, made))
        return tuple(
            grads[i]
            if i in grads
            else jnp.zeros(a.shape, a.dtype)
            if _is_float(a)
            else np.zeros(a.shape, jax.dtypes.float0)
            for i, a in enumerate(self._avals)
        )


def wrap(
    function: Function,
    *,
    threads: int = 0,
    progress: Progress = None,
    cache: bool = True,
    **options: Any,
) -> Function:
    """Compiles a function of JAX, and its gradient, on their first call for
    each structure, shape and type of the arguments.

        f = tandem.jax.wrap(f)
        loss, grads = jax.value_and_grad(f)(params, x)

    The function is pure, of arrays or trees of them; arguments of integers have
    no gradient. A function whose gradient JAX or the compiler refuses (of a
    `while_loop` that runs until data says so) runs forward, and is an
    UnsupportedError where it is differentiated. The gradient is JAX's own rule (jax.vjp), compiled for the CPU.
    `jax.jit`, `jax.grad` and `jax.vjp` go through; `jax.vmap` calls the programs
    once for each element; forward mode and second derivatives are JAX's error.
    `options` are those of `tandem compile`.
    """
    if not callable(function):
        raise UsageError("expected a function")
    pairs: Dict[Any, _Pair] = {}
    lock = threading.Lock()

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = jax.tree.flatten((args, kwargs))
        leaves = [jnp.asarray(leaf) for leaf in leaves]
        avals = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in leaves]
        key = (tree, tuple((a.shape, str(a.dtype)) for a in avals))
        with lock:
            pair = pairs.get(key)
            if pair is None:
                pair = pairs[key] = _Pair(
                    function,
                    tree,
                    avals,
                    threads=threads,
                    progress=progress,
                    cache=cache,
                    options=options,
                )
        return jax.tree.unflatten(pair.out_tree, pair.call(*leaves))

    return call  # type: ignore[return-value]


def restore(step: Step, like: Any, name: str = "params") -> Any:
    """The parameters of a step as a tree of the structure of `like`, which was
    the argument `name` of the function that was compiled."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(like)
    names = [name + jax.tree_util.keystr(path) for path, _ in leaves]
    state = step.state_dict("jax")
    missing = [n for n in names if n not in state]
    if missing:
        raise UsageError(
            "these are no parameters of the step: "
            + ", ".join(f"'{n}'" for n in missing)
        )
    return jax.tree.unflatten(tree, [state[n] for n in names])
