"""Tables as text. Names in a Markdown table are escaped, so that they are never read as markup."""

from collections.abc import Iterable, Sequence

from tabulate import tabulate

# HTML entities, since some readers do not know a backslash before < and &. A line break would end the table.
_SIGNS = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "\\\\", "|": "\\|", "`": "\\`", "\n": " ", "\r": " "}
)


def cell(value: object) -> str:
    """The escaped text of a value."""
    return str(value).translate(_SIGNS).replace("](", "]\\(")  # a link; brackets alone are text


def cells(rows: Iterable[Iterable[object]]) -> list[list[str]]:
    """Rows of a table as escaped cells."""
    return [[cell(value) for value in row] for row in rows]


def printed(rows: Iterable[Iterable[object]], headers: Sequence[str], markdown: bool) -> str:
    """A table for a terminal, or in Markdown. Numbers in text cells stay as they are."""
    shown: Iterable[Iterable[object]] = cells(rows) if markdown else rows
    return tabulate(shown, headers, tablefmt="github" if markdown else "simple", disable_numparse=True)
