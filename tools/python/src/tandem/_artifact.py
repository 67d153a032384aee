"""An artifact: the file that `tandem compile` writes, and what its manifest says
(docs/manifest.md)."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from ._errors import FailedError, UnsupportedError, UsageError
from ._html import table

__all__ = ["Artifact", "Value"]

_MAGIC = b"TANDEM\r\n"
_FORMAT = 2


@dataclass(frozen=True)
class Value:
    """An input, parameter, state or output of a model."""

    name: str
    role: str
    dtype: str
    shape: Tuple[int, ...]
    requires_grad: bool = False
    #: How it begins, as {"kind": "constant", "value": 0.0}; none: it is set.
    init: Optional[Mapping[str, Any]] = None
    #: Of integers: values are in [low, high), beside `ignored`.
    high: Optional[int] = None
    low: Optional[int] = None
    ignored: Optional[int] = None
    #: Of integers: what elements of some slices are, beside what `high` says of
    #: all: {"begins", "ends", "steps", "low", "high", "ignored"} of each.
    ranges: Tuple[Mapping[str, Any], ...] = ()
    #: Further names of a parameter that several modules share.
    also_called: Tuple[str, ...] = ()

    @property
    def type(self) -> str:
        """The type, as "f32[64, 10]"."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def _read_manifest(path: Path) -> List[Dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            head = file.read(32)
            if len(head) < 32 or head[:8] != _MAGIC:
                raise FailedError(f"'{path}' is no artifact of Tandem")
            number, count = struct.unpack_from("<II", head, 8)
            if number != _FORMAT:
                raise UnsupportedError(
                    f"'{path}' has format {number}, but this package reads "
                    f"{_FORMAT}"
                )
            if count > 65536:
                raise FailedError(f"'{path}' has {count} sections")
            entries = file.read(40 * count)
            if len(entries) < 40 * count:
                raise FailedError(f"'{path}' is cut short")
            manifests = []
            size = os.fstat(file.fileno()).st_size
            for index in range(count):
                name, offset, length = struct.unpack_from(
                    "<16sQQ", entries, 40 * index
                )
                if not name.rstrip(b"\0").startswith(b"manifest"):
                    continue
                if offset + length > size:
                    raise FailedError(f"'{path}' is cut short")
                file.seek(offset)
                manifests.append(json.loads(file.read(length)))
    except OSError as error:
        raise FailedError(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise FailedError(f"'{path}' has a damaged manifest: {error}") from error
    if not manifests:
        raise FailedError(f"'{path}' has no manifest")
    return manifests


@dataclass(frozen=True)
class Artifact:
    """A compiled model: a file, and what it says about itself.

    `Artifact(path)` opens one that was compiled before; `tandem.compile`
    returns one. It can be given wherever a path can.
    """

    path: Path
    #: The values that the model's parameters begin with, where its file has
    #: some (a safetensors file), or none.
    weights: Optional[Path] = None
    #: The same as arrays by name, of a module that was compiled from memory.
    initial: Optional[Mapping[str, Any]] = field(default=None, repr=False)
    #: What the compiler said: remarks and notes.
    messages: str = field(default="", repr=False)
    manifests: List[Dict[str, Any]] = field(
        default_factory=list, repr=False, compare=False
    )

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        weights: Union[str, "os.PathLike[str]", None] = None,
        initial: Optional[Mapping[str, Any]] = None,
        messages: str = "",
    ) -> None:
        put = object.__setattr__
        put(self, "path", Path(path))
        put(self, "weights", None if weights is None else Path(weights))
        put(self, "initial", initial)
        put(self, "messages", messages)
        put(self, "manifests", _read_manifest(self.path))

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def manifest(self) -> Dict[str, Any]:
        """The manifest of the first target."""
        return self.manifests[0]

    @property
    def name(self) -> str:
        """The model's name."""
        return str(self.manifest["model"])

    @property
    def targets(self) -> List[str]:
        """What it was compiled for, as ["cpu"]."""
        return [str(m["target"]["kind"]) for m in self.manifests]

    @property
    def optimizer(self) -> Optional[str]:
        """The optimizer that is compiled in."""
        return self.manifest.get("optimizer")

    @property
    def loss(self) -> Optional[str]:
        """The output that is the loss."""
        return self.manifest.get("loss")

    @property
    def values(self) -> List[Value]:
        """All values, in the order of the model."""
        return [
            Value(
                v["name"],
                v["role"],
                v["dtype"],
                tuple(v["shape"]),
                bool(v.get("requires_grad", False)),
                v.get("init"),
                v.get("high"),
                v.get("low"),
                v.get("ignored"),
                tuple(v.get("ranges", ())),
                tuple(v.get("also_called", ())),
            )
            for v in self.manifest["values"]
        ]

    def _of(self, role: str) -> Dict[str, Value]:
        return {v.name: v for v in self.values if v.role == role}

    @property
    def inputs(self) -> Dict[str, Value]:
        """What each call brings, by name, in the order of the model."""
        return self._of("input")

    @property
    def outputs(self) -> Dict[str, Value]:
        """What calls give, by name."""
        return self._of("output")

    @property
    def params(self) -> Dict[str, Value]:
        """The parameters by name."""
        return self._of("param")

    @property
    def states(self) -> Dict[str, Value]:
        """The states by name: the model's own, and those of training."""
        return self._of("state")

    @property
    def programs(self) -> List[str]:
        """The names of its programs."""
        return list(dict.fromkeys(p["name"] for p in self.manifest["programs"]))

    @property
    def sizes(self) -> List[str]:
        """The sizes that it is compiled for, where these are several
        (`variant=...`), as "batch=64". What is said elsewhere of shapes is of
        the first one."""
        return [str(s["name"]) for s in self.manifest.get("sizes", [])]

    def program(self, name: str) -> Dict[str, Any]:
        """What the manifest says of a program."""
        for program in self.manifest["programs"]:
            if program["name"] == name:
                return dict(program)
        raise UsageError(
            f"'{self.path}' has no program '{name}', but "
            + ", ".join(f"'{n}'" for n in self.programs)
            + _why_missing(name)
        )

    def is_training_state(self, name: str) -> bool:
        """Whether a state belongs to training and not to the model: an
        optimizer's, an average, or the state of random numbers."""
        value = self.states.get(name)
        if value is None:
            return False
        if value.init is not None and value.init.get("kind") == "seed":
            return True
        variable, colon, param = name.partition(":")
        if colon and param in self.params:
            return True
        return bool(self.optimizer) and variable.startswith(f"{self.optimizer}.")

    def _rows(self) -> List[Tuple[str, ...]]:
        return [
            (v.role, v.name, v.type, "requires grad" if v.requires_grad else "")
            for v in self.values
            if v.role != "state" or not self.is_training_state(v.name)
        ]

    def __repr__(self) -> str:
        return (
            f"tandem.Artifact('{self.path}', model '{self.name}', for "
            f"{'+'.join(self.targets)}, programs {', '.join(self.programs)})"
        )

    def _repr_html_(self) -> str:
        return table(
            f"{self.name}, for {'+'.join(self.targets)}",
            ("role", "name", "type", "gradient"),
            self._rows(),
        )


def _why_missing(name: str) -> str:
    if name in ("step", "update"):
        return ": compile it with a loss and optimizer=..."
    if name in ("forward", "backward"):
        return ": compile it without inference=True"
    return ""
