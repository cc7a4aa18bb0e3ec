"""Looks up times of named series at cells of a set; says which rows are missing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plots import metrics
from plots.tables import steps
from plots.tables.selection import Choice
from plots.tables.selection import parse as parse_choice
from plots.tidy import CLEAR, USUAL, select
from xcorr.errors import UserError, choose

METRICS = {
    "time": lambda p: p["compute_us"],
    "time_without_clear": lambda p: p["compute_us"] - p[CLEAR].fillna(0.0),
    "time_with_plan": lambda p: p["compute_us"] + p["plan_us"],
    "plan": lambda p: p["plan_us"],
    "phases": lambda p: p["forward_us"] + p["hadamard_us"] + p["inverse_us"],
    "time_per_fma": metrics.METRICS["time_per_fma"].of,
    "time_per_pair": metrics.METRICS["time_per_pair"].of,
    "teraflops": lambda p: metrics.METRICS["useful_flops"].of(p) / 1e12,
}
PLACE = ("form", "counts", "size")
SIDE = ("series", "metric", "input", "mode", *PLACE)

# Variants by form, counts, side, mode and input.
Asked = dict[tuple[str, str, int, str, str], set[str]]
TOO_LONG = "predicted to take longer than the preset allows"


@dataclass(frozen=True)
class Cell:
    """A problem of square matrices, e.g. ("one-to-many", "1-to-8", 64)."""

    form: str
    counts: str
    size: int


@dataclass
class Rows:
    """A set's points with the named series. `missing` collects what lookups did not find: cells by
    what was wanted there, and why not if `too_long` says so. `asked` has the variants with a row of any outcome by condition
    (`asked` below). Of the outcomes `passed` rows are used; of an imported set, which has none, the `published` ones, which are
    of the papers' own programs. `kept` is what a computation keeps for further claims."""

    points: pd.DataFrame
    series: dict[str, tuple[Choice, ...]]
    folder: Path | None = None
    too_long: Mapping[Cell, set[str]] = field(default_factory=dict)
    asked: Asked = field(default_factory=dict)
    missing: dict[tuple[str, str], list[Cell]] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        outcome = "published" if self.imported else "passed"
        points = select(self.points, outcome=outcome, **{name: USUAL[name] for name in ("window", "precision")})
        square = points["size"] == [f"{n}x{n}" for n in points["left_rows"]]
        self.points = steps.with_faithful(points[square]) if self.imported else points[square]
        self._by_cell = {Cell(*values): own for values, own in self.points.groupby(["form", "counts", "left_rows"])}

    @property
    def imported(self) -> bool:
        """Whether the set holds imported rows and nothing verified."""
        outcomes = set(self.points["outcome"])
        return "published" in outcomes and "passed" not in outcomes

    def at(self, cell: Cell, mode: str = USUAL["mode"], input: str = USUAL["input"]) -> pd.DataFrame:
        """All points of a cell under a condition."""
        own = self._by_cell.get(cell, self.points.iloc[:0])
        return own[(own["mode"] == mode) & (own["input"] == input)]

    def choices(self, name: str) -> tuple[Choice, ...]:
        """The choices of a series. UserError with the nearest name."""
        choose("claims: series", [name], self.series)
        return self.series[name]

    def best(self, side: Mapping[str, Any], cell: Cell) -> tuple[pd.Series, float] | None:
        """The fastest point of a side's series at a cell (fastest with plan if its metric says so), and
        its metric; None, noted in `missing`, where there is none."""
        names = side["series"] if isinstance(side["series"], list) else [side["series"]]
        choices = [choice for name in names for choice in self.choices(name)]
        condition = side.get("mode", USUAL["mode"]), side.get("input", USUAL["input"])
        here = self.at(cell, *condition)
        own = here[of_any(choices, here)]
        unasked = [name for name in names if len(names) > 1 and self._unasked(name, here, cell, *condition)]
        for name in unasked:
            self.note(self.wanted(side, self.choices(name)), cell)
        if unasked:
            return None
        (name,) = choose("claims: metric", [side.get("metric", "time")], METRICS)
        metric = METRICS[name](own).to_numpy(dtype=float)
        score = metric if name == "time_with_plan" else own["compute_us"].to_numpy(dtype=float)
        score = np.where(np.isfinite(metric), score, np.nan)
        if not np.isfinite(score).any():
            self.note(self.wanted(side, choices), cell)
            return None
        place = int(np.nanargmin(score))
        return own.iloc[place], float(metric[place])

    def _unasked(self, name: str, here: pd.DataFrame, cell: Cell, mode: str, input: str) -> bool:
        """Whether a series has no point at a cell and no row there that says why: of several series it may be the fastest. Rows of
        an imported set never say why."""
        choices = self.choices(name)
        asked = self.asked.get((cell.form, cell.counts, cell.size, mode, input), set())
        known = self.imported or any(not asked.isdisjoint(choice.variants) for choice in choices)
        return not known and not of_any(choices, here).any()

    def value(self, side: Mapping[str, Any], cell: Cell) -> float | None:
        found = self.best(side, cell)
        return None if found is None else found[1]

    @staticmethod
    def wanted(side: Mapping[str, Any], choices: Iterable[Choice]) -> str:
        """What rows a lookup needs, in words."""
        text = " or ".join(dict.fromkeys(choice.describe() for choice in choices))
        conditions = [f"{name} {side[name]}" for name in ("mode", "input") if name in side]
        return ", ".join([text, *conditions])

    def note(self, wanted: str, cell: Cell) -> None:
        """Remember that rows are missing at a cell."""
        too_long = not self.too_long.get(cell, set()).isdisjoint(wanted.replace(",", " ").split())
        cells = self.missing.setdefault((wanted, TOO_LONG if too_long else ""), [])
        if cell not in cells:
            cells.append(cell)

    def take_missing(self) -> list[str]:
        """What lookups missed since the last call: one line per kind of rows, with the cells."""
        lines = []
        for (wanted, why), cells in self.missing.items():
            counts: dict[str, list[str]] = {}
            for cell in cells:
                counts.setdefault(f"{cell.form} {cell.counts}", []).append(str(cell.size))
            where = ", ".join(f"{name} at {' '.join(sizes)}" for name, sizes in counts.items())
            lines.append(f"{wanted} ({where}{why and ': ' + why})")
        self.missing = {}
        return lines


def asked(rows: pd.DataFrame) -> Asked:
    """Of a set's raw rows the variants with a row of any outcome, by form, counts, side, mode and input."""
    names = ["form", "lefts", "rights", "left_rows", "mode", "input", "variant"]
    found: Asked = {}
    for form, lefts, rights, size, mode, input, variant in (
        rows[names].drop_duplicates().itertuples(index=False, name=None)
    ):
        found.setdefault((str(form), f"{lefts}-to-{rights}", int(size), str(mode), str(input)), set()).add(str(variant))
    return found


def predicted_too_long(rows: pd.DataFrame) -> dict[Cell, set[str]]:
    """Of a set's raw rows the variants with points that the preset did not select, by cell."""
    skipped = rows[rows["outcome"] == "not_selected"]
    groups = skipped.groupby(["form", "lefts", "rights", "left_rows"])
    return {
        Cell(str(form), f"{lefts}-to-{rights}", int(size)): set(own["variant"])
        for (form, lefts, rights, size), own in groups
    }


def of_any(choices: Iterable[Choice], points: pd.DataFrame) -> np.ndarray:
    """Which lines of a tidy frame belong to one of the choices."""
    return np.logical_or.reduce([choice.mask(points) for choice in choices])


def side_of(raw: Any, common: Mapping[str, Any]) -> dict[str, Any]:
    """A side of a comparison: a series, a list of them (the fastest counts) or a table of SIDE keys;
    keys that it leaves out come from `common`."""
    own = dict(raw) if isinstance(raw, Mapping) else {"series": raw}
    choose("claims: key", own, SIDE)
    if "metric" in common:
        own.setdefault("metric", common["metric"])
    return own


def grid(common: Mapping[str, Any]) -> Iterator[Cell]:
    """Cells of a computation: `counts` x `sizes`, each a value or a list."""
    for key in ("form", "counts", "sizes"):
        if key not in common:
            raise UserError(f"claims: {key} missing; name form, counts and sizes of the cells")
    for counts, size in product(_listed(common["counts"]), _listed(common["sizes"])):
        yield Cell(common["form"], counts, size)


def placed(side: Mapping[str, Any], cell: Cell) -> Cell:
    """The cell of a side: what the side fixes itself, else that of the comparison."""
    return Cell(*(side.get(name, getattr(cell, name)) for name in PLACE))


def label(cell: Cell, common: Mapping[str, Any]) -> str:
    several = len(_listed(common["counts"])) > 1
    return f"{cell.counts} {cell.size}" if several else str(cell.size)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def parse_series(raw: Mapping[str, Any]) -> dict[str, tuple[Choice, ...]]:
    """The series of a claims.toml by name."""
    found: dict[str, tuple[Choice, ...]] = {}
    for name, one in raw.items():
        choices = one.get("any", [one]) if isinstance(one, Mapping) else [one]
        found[name] = tuple(parse_choice(choice, f"claims: series {name}") for choice in choices)
    return found
