"""The figures of the sources' figures.toml: which points a curve takes, what is missing, and the caption.

A table there is a figure, but for `selections` and `drawn_by`. A curve shows fixed parameters (the paper's), not the best ones of a size: those are in the
comparison figures.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from experiments import folders
from experiments.driver.shown import NO_FIGURES, SIZES, Part, Where, parts_of, where_of
from experiments.driver.shown import PROBLEM as COLUMNS
from plots import tidy
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _curves, _facets
from plots.metrics import METRICS
from plots.tables.selection import with_params
from plots.tidy import ResultSet
from xcorr.errors import UserError

PAPER, STUDY = "paper", "study"
Cells = dict[tuple[int, int], list[_curves.Curve]]  # curves by row and column of the facets


@dataclass(frozen=True, kw_only=True)
class Spec(_facets.Layout):
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
    sizes: tuple[int, ...] = SIZES
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
    selections = tables.get("selections", {})
    found = {}
    for key, table in tables.items():
        if key in NO_FIGURES:
            continue
        values = {name: tuple(one) if isinstance(one, list) else one for name, one in table.items() if name != "use"}
        parts = {
            name: tuple(parts_of(table[name], selections)) for name in ("series", "columns", "rows") if name in table
        }
        text = table.get("caption", "").strip()
        found[key] = Spec(**{**values, **parts, "key": key, "where": where_of(table, selections), "caption": text})
    return found


def order(key: str) -> int:
    """Place in the report: the paper's figures by number, then the others as in figures.toml."""
    number = specs()[key].number
    return 100 + number if number else 200 + list(specs()).index(key)


def title(key: str) -> str:
    """`Figure 15: ...`, or the title alone of a plot that the paper leaves out."""
    spec = specs()[key]
    return f"Figure {spec.number}: {spec.title}" if spec.number else spec.title


def select(points: pd.DataFrame, where: Where) -> pd.DataFrame:
    """The points that have the values of `where`. Parameters that it does not name may be any."""
    own = tidy.select(points, **{key: value for key, value in where.items() if key in COLUMNS})
    return with_params(own, {key: value for key, value in where.items() if key not in COLUMNS})


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
    own = _bars.spread(own, METRICS[metric].of, part.plan).assign(_rank=own["outcome"].ne("passed"))
    own = own.sort_values(["_rank", "y", "params"], kind="stable").drop_duplicates("size")
    return own.sort_values("side")


def draw(results: ResultSet, key: str) -> list[Result]:
    """The figure `key` of figures.toml as one Drawing, or Omitted with what measures it."""
    spec = specs()[key]
    section = PAPER if spec.number else STUDY
    points = tidy.select(results.points, **tidy.USUAL)
    points = points[points["size"].isin([f"{s}x{s}" for s in spec.sizes])]
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
    drawn = {line.label for lines in cells.values() for line in lines}
    labels = [part.name for part in spec.series if part.name in drawn]
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
            caption=_caption(spec, base, shown, _missing(spec, cells, rows, columns)),
            alt=f"Line chart: {what}; curves: {', '.join(labels)}.",
            figure=figure,
            section=section,
        )
    ]


def _lines(points: pd.DataFrame, spec: Spec, facet: Part) -> list[_curves.Curve]:
    found = []
    for place, part in enumerate(spec.series):
        if facet.series and part.name not in facet.series:
            continue
        curve = _curve(points, part, spec.metric)
        if len(curve):
            look = _facets.look(spec.palette, place, len(spec.series), part.plan)
            hollow = bool(curve["outcome"].eq("published").any())
            found.append(_curves.Curve(part.name, look, curve, hollow=hollow))
    return found


def _caption(spec: Spec, base: Where, shown: pd.DataFrame, gone: list[str]) -> str:
    parts = [f"{METRICS[spec.metric].label} against matrix size."]
    if spec.file and not spec.number:
        parts.append(f"The artifact's package has this plot as {spec.file}; the paper leaves it out.")
    parts.append(spec.caption)
    if isinstance(spec.where.get("counts"), list):
        parts.append(f"Matrices: {base['counts']}.")
    parts.append(f"A point is the mean of {_curves.samples_text(shown)} repetitions.")
    parts.append(_curves.spread_text(shown))
    parts.append(_bars.said(shown).strip())
    if shown["outcome"].eq("published").any():
        parts.append("Hollow markers were published elsewhere and not verified here.")
    sizes = [one for one in (f"{s}x{s}" for s in spec.sizes) if one not in set(shown["size"])]
    if sizes:
        gone = [*gone, f"size{'s' if len(sizes) > 1 else ''} {', '.join(sizes)}"]
    if gone:
        parts.append(f"This set has no times of: {'; '.join(gone)}.")
    return " ".join(part for part in parts if part)


def _missing(spec: Spec, cells: Cells, rows: Sequence[int], columns: Sequence[int]) -> list[str]:
    """What the paper's figure has and this one has not: facets, then curves, then curves of single facets."""
    gone = [f"facet {p.name}" for r, p in enumerate(spec.rows) if r not in rows]
    gone += [f"facet {p.name}" for c, p in enumerate(spec.columns) if c not in columns]
    for part in spec.series:
        name = f"{spec.legend.lower() or 'curve'} {part.name}"
        if all(line.label != part.name for lines in cells.values() for line in lines):
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
