"""What drawing a figure gives: a Drawing, or Omitted with the reason."""

from collections.abc import Iterable
from dataclasses import dataclass

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Drawing:
    """A finished figure. `name` is its file stem, `alt` what a reader who cannot see it is told."""

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure
    section: str = "synthetic"  # or "paper", "study", "beyond", "real", or a chapter of the report


@dataclass(frozen=True)
class Omitted:
    name: str
    reason: str
    section: str = "synthetic"


Result = Drawing | Omitted


def by_reason(omitted: Iterable[Omitted]) -> list[tuple[str, str]]:
    """(names, reason) of what was left out, in order: a machine without a GPU misses dozens for one cause."""
    names: dict[str, list[str]] = {}
    for one in omitted:
        names.setdefault(one.reason, []).append(one.name.replace("_", " "))
    return [(", ".join(found), reason) for reason, found in names.items()]
