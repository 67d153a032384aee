"""Tables for notebooks."""

from __future__ import annotations

from html import escape
from typing import Sequence

__all__ = ["table"]

_LONGEST = 40


def table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """A table in HTML, with at most 40 rows."""
    lines = [f"<table><caption>{escape(caption)}</caption><thead><tr>"]
    lines += [f"<th>{escape(cell)}</th>" for cell in head]
    lines.append("</tr></thead><tbody>")
    for row in rows[:_LONGEST]:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    if len(rows) > _LONGEST:
        lines.append(
            f'<tr><td colspan="{len(head)}">and {len(rows) - _LONGEST} more'
            "</td></tr>"
        )
    lines.append("</tbody></table>")
    return "".join(lines)
