"""Every figure of a set, in report order: the entries of figures/paper.toml, and the modules of figures/."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from plots import figures, tidy
from plots.drawing import Result
from plots.figures import _paper


@dataclass(frozen=True)
class Entry:
    """A figure: `name` is what experiments feed and its files begin with; `experiment`: that on real input that
    measures it, if one does."""

    name: str
    order: int
    title: str
    draw: Callable[[tidy.ResultSet], list[Result]]
    experiment: str = ""


@lru_cache(maxsize=1)
def entries() -> dict[str, Entry]:
    """Every figure by name, in report order."""
    found = [Entry(key, _paper.order(key), _paper.title(key), partial(_paper.draw, key=key)) for key in _paper.specs()]
    for listed in pkgutil.iter_modules(figures.__path__):
        if not listed.name.startswith("_"):
            module = importlib.import_module(f"{figures.__name__}.{listed.name}")
            experiment = getattr(module, "EXPERIMENT", "")
            found.append(Entry(listed.name, module.ORDER, module.TITLE, module.draw, experiment))
    return {one.name: one for one in sorted(found, key=lambda one: (one.order, one.name))}
