"""What a call gives back: outputs in order, by number, by name, or as
attributes."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence, Tuple

from ._html import table

__all__ = ["Outputs"]


class Outputs:
    """The outputs of a call: `loss, logits = step(x, labels)`,
    `step(x, labels).loss`, `step(x, labels)["loss"]`."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: Sequence[str], values: Sequence[Any]) -> None:
        self._names: Tuple[str, ...] = tuple(names)
        self._values: Tuple[Any, ...] = tuple(values)

    def keys(self) -> Tuple[str, ...]:
        """The names."""
        return self._names

    def values(self) -> Tuple[Any, ...]:
        """The arrays."""
        return self._values

    def items(self) -> List[Tuple[str, Any]]:
        """Names with their arrays."""
        return list(zip(self._names, self._values))

    def _asdict(self) -> Dict[str, Any]:
        return dict(self.items())

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            try:
                return self._values[self._names.index(key)]
            except ValueError:
                raise KeyError(
                    f"there is no output '{key}', but "
                    + ", ".join(f"'{n}'" for n in self._names)
                ) from None
        return self._values[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error.args[0])) from None

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._names]

    def __repr__(self) -> str:
        inside = ", ".join(f"{n}={_short(v)}" for n, v in self.items())
        return f"Outputs({inside})"

    def _repr_html_(self) -> str:
        rows = [
            (n, f"{getattr(v, 'dtype', '')}{list(v.shape)}", _short(v))
            for n, v in self.items()
        ]
        return table("outputs", ("name", "type", "value"), rows)


def _short(value: Any) -> str:
    shape = tuple(value.shape)
    if shape == () and getattr(value, "device", "cpu") is not None:
        return str(value)
    return f"{type(value).__name__}{list(shape)}"
