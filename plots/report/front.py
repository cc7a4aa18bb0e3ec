"""What the report opens with: the best algorithm by mode, Table 1 of the paper for this machine, the papers' claims, time
series, autocorrelations, template matching, results that are no surfaces, and how accurate variants are.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from plots.tables import (
    accuracy,
    amplitudes,
    application,
    autocorrelation,
    best_by_mode,
    detections,
    table1,
    template_matching,
    template_passes,
    template_scores,
    time_series,
)
from plots.tables import results as not_surfaces
from plots.tables.claims import verdicts
from plots.tidy import ResultSet


def chapters(results: ResultSet, cells: pd.DataFrame, claims: pd.DataFrame) -> list[dict[str, Any]]:
    """Chapters of the page as template data: id, title, lines of text, tables. `open` tables are shown, the
    others unfold. `cells` are table1's, `claims` the verdicts' table. A set without a verified time has none."""
    if not (results.points["outcome"] == "passed").any():
        return []
    own = (
        _series(results),
        autocorrelation.chapter(results),
        _templates(results),
        _not_surfaces(results),
        accuracy.chapter(results),
    )
    modes, *others = ([_plain(one) for one in chapters] for chapters in (best_by_mode.chapter(results), *own))
    return [*modes, _table1(cells), _claims(claims), *(one for some in others for one in some)]


def _series(results: ResultSet) -> list[dict[str, Any]]:
    """The chapter on time series: products, matched filters, amplitudes."""
    (chapter,) = time_series.chapter(results)
    for notes, tables in (detections.chapter_parts(results), amplitudes.chapter_parts(results)):
        chapter = {**chapter, "notes": [*chapter["notes"], *notes], "tables": [*chapter["tables"], *tables]}
    return [chapter]


def _templates(results: ResultSet) -> list[dict[str, Any]]:
    """The chapter on template matching: variants, passes of the paper, scores beside products."""
    (chapter,) = template_matching.chapter(results)
    for notes, tables in (template_passes.chapter_parts(results), template_scores.chapter_parts(results)):
        chapter = {**chapter, "notes": [*chapter["notes"], *notes], "tables": [*chapter["tables"], *tables]}
    return [chapter]


def _not_surfaces(results: ResultSet) -> list[dict[str, Any]]:
    """The chapter on peaks in place of surfaces, with the application of the first paper."""
    (chapter,) = not_surfaces.chapter(results)
    notes, tables = application.chapter_parts(results)
    return [{**chapter, "notes": [*chapter["notes"], *notes], "tables": [*chapter["tables"], *tables]}]


def _plain(chapter: dict[str, Any]) -> dict[str, Any]:
    return {**chapter, "tables": [_shown(*one) for one in chapter["tables"]]}


def _table1(cells: pd.DataFrame) -> dict[str, Any]:
    tables, notes = [], [table1.RULE]
    if cells.empty:
        notes = ["No cell of the paper's Table 1 is decided in this set: its algorithms were not measured here."]
    for name, accounting in table1.ACCOUNTINGS.items():
        if not (cells["accounting"] == name).any():
            continue
        title = f"{name.capitalize()}: {accounting.meaning}"
        tables.append(_shown(title, table1.paper_shaped(cells, name), name == "paper"))
        tables.append(_shown(f"{title}; all sizes and counts", table1.extended(cells, name), False))
        if note := table1.incomplete(cells, name):
            notes.append(f"{name.capitalize()}. {note}")
    return {"id": "table1", "title": "Table 1 of the paper", "notes": notes, "tables": tables}


def _claims(lines: pd.DataFrame) -> dict[str, Any]:
    tables = [_shown("Claims by class and verdict", verdicts.counts(lines), True)]
    for kind, meaning in verdicts.CLASSES.items():
        own = lines[lines["class"] == kind]
        if len(own):
            tables.append(_shown(f"{kind.capitalize()} ({len(own)}): {meaning}", verdicts.readable(own), False))
    return {"id": "claims", "title": "Claims of the paper", "notes": [], "tables": tables}


def _shown(title: str, frame: pd.DataFrame, is_open: bool) -> dict[str, Any]:
    plain = frame.astype(str).replace(r"\*\*", "", regex=True)
    grid = {"columns": [str(c) for c in plain.columns], "rows": plain.to_numpy().tolist()}
    return {"title": title, "grid": grid, "open": is_open}
