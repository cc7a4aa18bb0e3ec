"""Every figure of a set, in report order: the figures of the sources' figures.toml, and the modules that draw."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from plots import sources, tidy
from plots.drawing import Result
from plots.figures import _paper


@dataclass(frozen=True)
class Entry:
    """A figure: `name` is what experiments feed and its files begin with; `experiment`: that on real input that
    measures it, if one does; `section`: the chapter of the report that it stands in, if one does; `command`: what measures it, where
    no experiment does."""

    name: str
    order: int
    title: str
    draw: Callable[[tidy.ResultSet], list[Result]]
    experiment: str = ""
    section: str = ""
    command: str = ""


@lru_cache(maxsize=1)
def entries() -> dict[str, Entry]:
    """Every figure by name, in report order."""
    found = [Entry(key, _paper.order(key), _paper.title(key), partial(_paper.draw, key=key)) for key in _paper.specs()]
    for module in sources.modules("figures"):
        name = module.__name__.rpartition(".")[2]
        more = [getattr(module, attribute, "") for attribute in ("EXPERIMENT", "SECTION", "COMMAND")]
        found.append(Entry(name, module.ORDER, module.TITLE, module.draw, *more))
    return {one.name: one for one in sorted(found, key=lambda one: (one.order, one.name))}
