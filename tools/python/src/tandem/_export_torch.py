"""A module of PyTorch as an archive of torch.export."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import weakref
import zipfile
from pathlib import Path
from typing import Any, Dict, FrozenSet, Mapping, Optional, Tuple

import torch

from ._compile import Source
from ._errors import TandemError, UnsupportedError, UsageError
from ._exporting import exclusive, kept
from ._lost import watched

__all__ = ["LostGradient", "export", "number_outputs", "source_of_module", "source_of_program"]

# Members of an archive that no code follows from: the values of parameters and
# buffers, which the package gives itself, examples, and numbers of the writing.
_NOT_CODE = (
    "data/weights/weight_", "data/sample_inputs/", ".data/serialization_id",
    "serialized_state_dict.pt", "serialized_example_inputs.pt",
)

# What the importer says of each operator that it has not.
_UNKNOWN = re.compile(r"unsupported: the operator '([^']+)'")


class LostGradient(UnsupportedError):
    """A forward whose gradients are not those of its operators."""


def export(
    module: torch.nn.Module,
    args: Optional[Tuple[Any, ...]],
    kwargs: Optional[Mapping[str, Any]],
    dynamic_shapes: Any = None,
    has_gradients: bool = True,
) -> Any:
    """The program of a module, in the mode that the module is in."""
    if isinstance(args, torch.Tensor):
        args = (args,)
    if args is None and kwargs is None:
        raise UsageError(
            "a module needs example arguments: tandem.compile(module, (x,))"
        )
    # Before 2.7 `export` gave a graph for inference alone.
    function: Any = torch.export.export
    if torch.__version__.split(".")[:2] == ["2", "6"]:
        function = getattr(torch.export, "export_for_training")
    try:
        with exclusive(), kept(module), watched() as lost:
            program = function(
                module,
                tuple(args or ()),
                dict(kwargs or {}),
                dynamic_shapes=dynamic_shapes,
                strict=False,
            )
    except TandemError:
        raise
    except Exception as error:
        raise UnsupportedError(
            f"torch.export cannot export {type(module).__name__}: {error}"
        ) from error
    if lost and has_gradients:
        raise LostGradient(
            f"torch.export does not keep {' and '.join(lost)}, so that gradients "
            f"of {type(module).__name__} would be those of its forward alone"
        )
    return program


def number_outputs(program: Any) -> Any:
    """Makes the leaves of what a program returns one tuple, so that their names
    in the artifact are `output0`, `output1`, ... Returns their structure."""
    signature = program.module_call_graph[0].signature
    structure = signature.out_spec
    flat = tuple(range(structure.num_leaves))
    signature.out_spec = torch.utils._pytree.tree_flatten(flat)[1]
    return structure


def _digest(path: Path) -> bytes:
    digest = hashlib.sha256()
    with zipfile.ZipFile(path) as archive:
        for info in sorted(archive.infolist(), key=lambda i: i.filename):
            # The first folder is the archive's own name.
            name = info.filename.partition("/")[2] or info.filename
            if name.startswith(_NOT_CODE):
                continue
            digest.update(name.encode() + b"\0")
            with archive.open(info) as member:
                for piece in iter(lambda: member.read(1 << 20), b""):
                    digest.update(piece)
    return digest.digest()


def source_of_program(
    program: Any,
    name: str,
    initial: Mapping[str, Any],
    *,
    decomposed: FrozenSet[str] = frozenset(),
) -> Source:
    """An exported program as what is compiled. Operators that are not supported
    are decomposed into those that they are made of, and what they became again,
    until nothing new is found; `decomposed` are those that were so far. All
    others stay: what PyTorch decomposes them into would have gradients of its
    own, which are no numbers where a branch that is not taken overflows."""
    # It is read twice, for its digest and by the compiler, and is gone with the
    # source.
    folder = tempfile.mkdtemp(prefix="tandem-")
    path = Path(folder) / f"{name}.pt2"
    try:
        with exclusive():
            torch.export.save(_decomposed(program, decomposed), path)
    except Exception as error:  # as of a namedtuple that is not registered
        shutil.rmtree(folder, True)
        raise UnsupportedError(
            f"torch.export cannot save what it exported of {name}: {error}"
        ) from error

    def write(_: Path) -> Path:
        return path

    def again(said: str) -> Optional[Source]:
        unknown = decomposed.union(_UNKNOWN.findall(said))
        if unknown == decomposed:
            return None
        return source_of_program(program, name, initial, decomposed=unknown)

    source = Source(write, _digest(path), name, initial, again=again)
    weakref.finalize(source, shutil.rmtree, folder, True)
    return source


def _decomposed(program: Any, operators: FrozenSet[str]) -> Any:
    """The program without these operators, with the names of its outputs."""
    if not operators:
        return program
    table = torch.export.default_decompositions()
    for one in list(table):
        if str(getattr(one, "overloadpacket", one)) not in operators:
            table.pop(one)
    made = program.run_decompositions(table)
    for old, new in zip(program.module_call_graph, made.module_call_graph):
        if old.signature is not None and new.signature is not None:
            new.signature.out_spec = old.signature.out_spec
    return made


def source_of_module(
    module: torch.nn.Module,
    args: Any,
    kwargs: Any,
    options: Dict[str, Any],
) -> Source:
    """A module as what is compiled. Its parameters and buffers are those that
    the artifact begins with."""
    program = export(
        module,
        args,
        kwargs,
        options.pop("dynamic_shapes", None),
        has_gradients=not options.get("inference"),
    )
    initial = {n: t.detach() for n, t in module.state_dict().items()}
    return source_of_program(program, type(module).__name__, initial)
