"""One module per figure. A module offers ORDER (place in the report), TITLE and `draw(set)`.

`draw` returns a list of Drawing and Omitted. Modules are found by listing this folder, so a new
figure is a new file; names that start with an underscore are helpers.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Union

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Drawing:
    """A finished figure. `name` is its file stem, `alt` what a reader who cannot see it is told."""

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure
    section: str = "synthetic"  # or "paper", "study", "beyond", "real"


@dataclass(frozen=True)
class Omitted:
    """A figure that could not be drawn, and why."""

    name: str
    reason: str
    section: str = "synthetic"


Result = Union[Drawing, Omitted]


def by_reason(omitted: Iterable[Omitted]) -> list[tuple[str, str]]:
    """(names, reason) of what was left out, in order: a machine without a GPU misses dozens for one cause."""
    names: dict[str, list[str]] = {}
    for one in omitted:
        names.setdefault(one.reason, []).append(one.name.replace("_", " "))
    return [(", ".join(found), reason) for reason, found in names.items()]


def modules() -> dict[str, ModuleType]:
    """Every figure module by name, in report order."""
    names = [m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    found = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    return dict(sorted(found.items(), key=lambda item: (item[1].ORDER, item[0])))
