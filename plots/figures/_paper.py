"""The figures of the sources' figures.toml: which points a curve takes, what is missing, and the caption.

A table there is a figure, but for `selections` and `drawn_by`. A curve shows fixed parameters (the paper's), not the best ones of a size: those are in the
comparison figures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import folders
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _curves, _facets, _panels
from plots.metrics import METRICS
from plots.tidy import ResultSet
from xcorr.errors import UserError
from xcorr.native.variants import assignments

NO_FIGURES = ("selections", "drawn_by")  # tables of figures.toml: named selections, and data of modules that draw
COLUMNS = ("form", "counts", "rights", "variant")  # of a point; every other key is a parameter
SIZES = (16, 32, 64, 128, 256)
PAPER, STUDY = "paper", "study"
Where = dict[str, Any]
Cells = dict[tuple[int, int], list[_facets.Line]]  # curves by row and column of the facets


@dataclass(frozen=True)
class Part:
    """A curve or a facet: its name, what its points must have; `series`: labels shown (or all)."""

    name: str
    where: Where
    plan: bool = False
    series: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spec:
    """A table of figures.toml, selections resolved."""

    key: str
    title: str
    metric: str
    experiments: tuple[str, ...]
    where: Where
    series: tuple[Part, ...]
    file: str = ""
    columns: tuple[Part, ...] = (Part("", {}),)
    rows: tuple[Part, ...] = (Part("", {}),)
    palette: str = "Set1"
    legend: str = ""
    scale: str = "common"
    x: str = "log"
    sizes: tuple[int, ...] = SIZES
    ticks: tuple[int, ...] = SIZES
    caption: str = ""

    @property
    def number(self) -> int:
        """The paper's number of the figure; 0 for one that the paper leaves out."""
        match = re.fullmatch(r"fig(\d+)", self.key)
        return int(match[1]) if match else 0


@lru_cache
def specs(folder: Path = folders.FOLDER) -> dict[str, Spec]:
    """Every figure of the figures.toml of all sources by key. An unknown key in a table raises TypeError, an unknown
    selection KeyError, a key of two sources UserError."""
    found: dict[str, Spec] = {}
    for path, tables in folders.parts("figures", folder):
        own = _specs(tables)
        if twice := found.keys() & own.keys():
            raise UserError(f"{path}: figure {min(twice)}: stands in another source too; rename one of them")
        found.update(own)
    return found


def _specs(tables: dict[str, Any]) -> dict[str, Spec]:
    """The figures of one figures.toml."""
    selections = tables.get("selections", {})
    found = {}
    for key, table in tables.items():
        if key in NO_FIGURES:
            continue
        values: dict[str, Any] = {"where": {}, **table}
        values["where"] = _where(values, selections)
        values.pop("use", None)
        for name in ("series", "columns", "rows"):
            if name in values:
                values[name] = tuple(_parts(values[name], selections))
        for name in ("experiments", "sizes", "ticks"):
            if name in values:
                values[name] = tuple(values[name])
        values["caption"] = values.get("caption", "").strip()
        found[key] = Spec(key=key, **values)
    return found


def _where(table: dict[str, Any], selections: dict[str, Where]) -> Where:
    """The selections that a table uses, and its own `where` on top."""
    used = table.get("use", [])
    merged: Where = {}
    for name in [used] if isinstance(used, str) else used:
        merged.update(selections[name])
    return {**merged, **table.get("where", {})}


def _parts(listed: list[Any] | dict[str, Any], selections: dict[str, Where]) -> list[Part]:
    """Curves or facets, from a list of tables or from one value for several keys at a time."""
    if isinstance(listed, dict):
        form = listed.get("title", "{}")
        return [Part(form.format(value), dict.fromkeys(listed["each"], value)) for value in listed["values"]]
    return [
        Part(
            table["label"] if "label" in table else table["title"],
            _where(table, selections),
            table.get("plan", False),
            tuple(table.get("series", ())),
        )
        for table in listed
    ]


def order(key: str) -> int:
    """Place in the report: the paper's figures by number, then the others as in figures.toml."""
    number = specs()[key].number
    return 100 + number if number else 200 + list(specs()).index(key)


def title(key: str) -> str:
    """`Figure 15: ...`, or the title alone of a plot that the paper leaves out."""
    spec = specs()[key]
    return f"Figure {spec.number}: {spec.title}" if spec.number else spec.title


parameters = lru_cache(maxsize=None)(assignments)


def select(points: pd.DataFrame, where: Where) -> pd.DataFrame:
    """The points that have the values of `where`. Parameters that it does not name may be any."""
    mask = np.ones(len(points), dtype=bool)
    fixed = {}
    for key, value in where.items():
        if key in COLUMNS:
            mask &= points[key].eq(value).to_numpy()
        else:
            fixed[key] = str(value)
    own = points[mask]
    fitting = [p for p in own["params"].unique() if fixed.items() <= parameters(p).items()]
    return own[own["params"].isin(fitting)]


def _drawable(points: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Square fp32 points of the figure's sizes under the paper's conditions."""
    mask = points["precision"].eq("fp32") & points["size"].isin([f"{s}x{s}" for s in spec.sizes])
    for name, value in _panels.DEFAULTS.items():
        mask &= points[name].eq(value)
    return points[mask]


def _counts(points: pd.DataFrame, where: Where) -> Where:
    """`where` with the first of its alternative counts that has points."""
    listed = where.get("counts")
    if not isinstance(listed, list):
        return where
    there = [one for one in listed if len(select(points, {**where, "counts": one}))]
    return {**where, "counts": (there or listed)[0]}


def _curve(points: pd.DataFrame, part: Part, metric: str) -> pd.DataFrame:
    """Points of one curve in one facet by size, with column `y`; verified ones come first, then the
    fastest where the figure leaves a parameter open."""
    own = select(points, part.where)
    if part.plan:
        own = own[own["plan_us"].notna()]
        metric = "time_with_plan"
    own = own.assign(y=METRICS[metric].of(own), _rank=own["outcome"].ne("passed"))
    own = own.sort_values(["_rank", "y", "params"], kind="stable").drop_duplicates("size")
    return own.sort_values("side")


def draw(results: ResultSet, key: str) -> list[Result]:
    """The figure `key` of figures.toml as one Drawing, or Omitted with what measures it."""
    spec = specs()[key]
    section = PAPER if spec.number else STUDY
    points = _drawable(results.points, spec)
    base = _counts(points, spec.where)
    chosen = select(points, base)
    cells: Cells = {}
    for r, row in enumerate(spec.rows):
        own = select(chosen, row.where)
        for c, column in enumerate(spec.columns):
            cells[r, c] = _lines(select(own, column.where), spec, column)
    rows = sorted({r for (r, _), lines in cells.items() if lines})
    columns = sorted({c for (_, c), lines in cells.items() if lines})
    if not rows:
        names = ",".join(spec.experiments)
        reason = f"not measured in this set (python3 -m experiments.driver.run --experiments {names})"
        return [Omitted(key, reason, section)]
    shown = pd.concat([line.points for lines in cells.values() for line in lines])
    labels = [part.name for part in spec.series if _is_drawn(part.name, cells)]
    figure = _facets.draw(
        [[cells[r, c] for c in columns] for r in rows],
        row_titles=[spec.rows[r].name for r in rows],
        column_titles=[spec.columns[c].name for c in columns],
        labels=labels,
        metric=METRICS[spec.metric],
        layout=spec,
    )
    what = f"{METRICS[spec.metric].label.lower()} against matrix size, {spec.title}"
    return [
        Drawing(
            name=key,
            title=title(key),
            caption=_caption(spec, base, shown, cells, rows, columns),
            alt=f"Line chart: {what}; curves: {', '.join(labels)}.",
            figure=figure,
            section=section,
        )
    ]


def _lines(points: pd.DataFrame, spec: Spec, facet: Part) -> list[_facets.Line]:
    """The curves that the points of one facet make."""
    found = []
    for place, part in enumerate(spec.series):
        if facet.series and part.name not in facet.series:
            continue
        curve = _curve(points, part, spec.metric)
        if len(curve):
            look = _facets.look(spec.palette, place, len(spec.series), part.plan)
            hollow = bool(curve["outcome"].eq("published").any())
            found.append(_facets.Line(part.name, look, curve, hollow))
    return found


def _is_drawn(name: str, cells: Cells) -> bool:
    return any(line.label == name for lines in cells.values() for line in lines)


def _caption(
    spec: Spec, base: Where, shown: pd.DataFrame, cells: Cells, rows: Sequence[int], columns: Sequence[int]
) -> str:
    parts = [f"{METRICS[spec.metric].label} against matrix size."]
    if spec.file and not spec.number:
        parts.append(f"The artifact's package has this plot as {spec.file}; the paper leaves it out.")
    parts.append(spec.caption)
    if isinstance(spec.where.get("counts"), list):
        parts.append(f"Matrices: {base['counts']}.")
    parts.append(f"A point is the mean of {_curves.samples_text(shown)} repetitions.")
    parts.append(_curves.spread_text(shown))
    if shown["outcome"].eq("published").any():
        parts.append("Hollow markers were published elsewhere and not verified here.")
    gone = _missing(spec, cells, rows, columns)
    there = set(shown["size"])
    sizes = [f"{s}x{s}" for s in spec.sizes if f"{s}x{s}" not in there]
    if sizes:
        gone.append(f"sizes {', '.join(sizes)}" if len(sizes) > 1 else f"size {sizes[0]}")
    if gone:
        parts.append(f"This set has no times of: {'; '.join(gone)}.")
    return " ".join(part for part in parts if part)


def _missing(spec: Spec, cells: Cells, rows: Sequence[int], columns: Sequence[int]) -> list[str]:
    """What the paper's figure has and this one has not: facets, then curves, then curves of single
    facets."""
    gone = [f"facet {p.name}" for r, p in enumerate(spec.rows) if r not in rows]
    gone += [f"facet {p.name}" for c, p in enumerate(spec.columns) if c not in columns]
    for part in spec.series:
        name = f"{spec.legend.lower() or 'curve'} {part.name}"
        if not _is_drawn(part.name, cells):
            gone.append(name)
            continue
        lacking = []
        for r in rows:
            for c in columns:
                expected = not spec.columns[c].series or part.name in spec.columns[c].series
                if expected and all(line.label != part.name for line in cells[r, c]):
                    titles = (spec.rows[r].name, spec.columns[c].name)
                    lacking.append(" / ".join(text for text in titles if text))
        if lacking:
            gone.append(f"{name} in {', '.join(lacking)}")
    return gone
