"""Tables as text. In Markdown what a variant, a machine or a file says is text, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import tabulate

# HTML as entities, since some readers know no backslash before it; a line break would end the table.
_SIGNS = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "\\\\", "|": "\\|", "`": "\\`", "\n": " ", "\r": " "}
)


def cell(value: object) -> str:
    """A value as a cell that shows its text."""
    return str(value).translate(_SIGNS).replace("](", "]\\(")  # a link; brackets alone are text


def cells(rows: Iterable[Iterable[object]]) -> list[list[str]]:
    """Rows of a table as cells."""
    return [[cell(value) for value in row] for row in rows]


def printed(rows: Iterable[Iterable[object]], headers: Sequence[str], markdown: bool) -> str:
    """A table for a terminal, or in Markdown; its text cells as they are."""
    shown: Iterable[Iterable[object]] = cells(rows) if markdown else rows
    return tabulate(shown, headers, tablefmt="github" if markdown else "simple", disable_numparse=True)
