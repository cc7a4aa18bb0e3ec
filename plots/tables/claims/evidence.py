"""What the sources themselves have for their claims: of a claim's quantity the values on a source's own published rows, and by its
program on a machine of ours. Data: evidence.toml of each source (keys: experiments/README.md, A claim)."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments import folders
from plots.tables.claims.values import DIFFERS, HOLDS, Found, Value, known, limits, verdict
from xcorr.errors import UserError, choose

KEYS = ("rows", "claims")
ROWS = ("name", "origin", "decides", "machine_key")
# The range of a source's GPUs counts as near where no value is further than this factor from the number of the source: beyond it
# they do not bear that number out themselves.
RANGE = 1.5


@dataclass(frozen=True)
class Part:
    """Values of a claim's quantity from the rows `name`. `decides`: the text of the source is about these rows. `machine_key`: a
    program of the source made them on this machine; empty: the source published them."""

    name: str
    found: Found
    decides: bool = False
    machine_key: str = ""


@dataclass(frozen=True)
class Evidence:
    """What a source has for one of its claims."""

    parts: tuple[Part, ...] = field(default=())

    @property
    def own(self) -> list[Part]:
        return [one for one in self.parts if not one.machine_key]

    def program(self, key: str) -> list[Part]:
        return [one for one in self.parts if one.machine_key == key]

    def own_text(self) -> str:
        return "; ".join(f"{one.name}: {one.found.short()}" for one in self.own)

    def program_text(self, key: str) -> str:
        return "; ".join(one.found.short() for one in self.program(key))

    def against(self, test: Mapping[str, Any]) -> list[str]:
        """The published rows that the text of the source is about and that fail the claim's test, by name."""
        deciding = [one for one in self.own if one.decides]
        return [one.name for one in deciding if test and verdict(one.found, test) == DIFFERS]

    def program_holds(self, key: str, test: Mapping[str, Any]) -> bool:
        """Whether the program of the source bears the claim out on a machine."""
        return any(verdict(one.found, self.widened(test)) == HOLDS for one in self.program(key))

    def widened(self, test: Mapping[str, Any]) -> Mapping[str, Any]:
        """The test of a claim on one number that says `near`, with the range of the source's GPUs beside the tolerance; any other test
        as it is."""
        numbers = [one for part in self.own for one in part.found.values]
        single = len(self.own) > 1 and all(len(part.found.values) == 1 for part in self.own)
        if "near" not in test or not single or any(one.word for one in numbers) or self.against(test):
            return test
        low, high = min(one.low for one in numbers), max(one.high for one in numbers)
        if not test["near"] / RANGE <= low <= high <= test["near"] * RANGE:
            return test
        own = limits(test)
        others = {name: value for name, value in test.items() if name not in ("near", "tolerance")}
        return {"between": [min(own[0], low), max(own[1], high)], **others}


NOTHING = Evidence()


def load(ids: Iterable[str], folder: Path = folders.FOLDER) -> dict[str, Evidence]:
    """The evidence of all sources by claim. UserError naming the file and what is wrong; a claim must be one of `ids`."""
    wanted, found = list(ids), {}
    for path, raw in folders.parts("evidence", folder):
        file = f"{path.parent.name}/{path.name}"
        choose(f"{file}: key", raw, KEYS)
        rows = raw.get("rows", {})
        for name, about in rows.items():
            choose(f"{file}: rows {name}: key", about, ROWS)
            if not about.get("name") or not about.get("origin"):
                raise UserError(
                    f"{file}: rows {name}: name or origin is missing; say whose rows they are and where they are from"
                )
        for claim in choose(f"{file}: claim", raw.get("claims", {}), wanted):
            values = raw["claims"][claim]
            choose(f"{file}: claim {claim}: rows", values, rows)
            parts = [
                _part(rows[name], values[name], f"{file}: claim {claim}: {name}") for name in rows if name in values
            ]
            found[claim] = Evidence(tuple(parts))
    return found


def _part(about: Mapping[str, Any], raw: Any, where: str) -> Part:
    labelled = raw if isinstance(raw, Mapping) else {"": raw}
    values = [value for label, one in labelled.items() for value in _values(label, one, where)]
    return Part(about["name"], Found(values), about.get("decides", False), about.get("machine_key", ""))


def _values(label: str, raw: Any, where: str) -> Iterator[Value]:
    """The values of a label: a number, a bound (`>256`, `<16`), a word, or a list of numbers that is a trend."""
    if isinstance(raw, list):
        for place, one in enumerate(raw, start=1):
            yield known(f"{label}, {place}", _number(one, where), label)
    elif isinstance(raw, str):
        bound, rest = raw[:1], raw[1:]
        if bound in ("<", ">") and rest.replace(".", "", 1).isdigit():
            yield Value(label, *((0.0, float(rest)) if bound == "<" else (float(rest), math.inf)))
        else:
            yield Value(label, word=raw)
    else:
        yield known(label, _number(raw, where))


def _number(raw: Any, where: str) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
        raise UserError(f"{where}: {raw} is no number; give a number, a text or a list of numbers")
    return float(raw)
