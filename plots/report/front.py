"""What the report opens with: the chapters of the tables (plots.tables says which modules have one), and the claims."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pandas as pd

from plots import sources
from plots.tables.claims import verdicts
from plots.tidy import ResultSet

CLAIMS = 30  # place of the chapter on claims, as CHAPTER of a module


def chapters(results: ResultSet, claims: pd.DataFrame) -> list[dict[str, Any]]:
    """Chapters of the page as template data: id, title, lines of text, tables. `open` tables are shown, the
    others unfold. `claims` is the verdicts' table. A set without a verified time has none."""
    if not (results.points["outcome"] == "passed").any():
        return []
    modules = sources.modules("tables")
    parts = sorted((one for one in modules if hasattr(one, "PART_OF")), key=lambda one: one.PART_OF)
    found = [(CLAIMS, [_claims(claims)])]
    found += [(one.CHAPTER, one.chapter(results)) for one in modules if hasattr(one, "CHAPTER")]
    ordered = sorted(found, key=lambda one: one[0])
    return [_plain(_with_parts(one, parts, results)) for _, own in ordered for one in own]


def _with_parts(chapter: dict[str, Any], parts: list[ModuleType], results: ResultSet) -> dict[str, Any]:
    """The chapter with what other modules add to it."""
    for part in parts:
        if part.PART_OF[0] == chapter["id"]:
            notes, tables = part.chapter_parts(results)
            chapter = {**chapter, "notes": [*chapter["notes"], *notes], "tables": [*chapter["tables"], *tables]}
    return chapter


def _plain(chapter: dict[str, Any]) -> dict[str, Any]:
    return {**chapter, "tables": [_shown(*one) for one in chapter["tables"]]}


def _claims(lines: pd.DataFrame) -> dict[str, Any]:
    tables = [("Claims by class and verdict", verdicts.counts(lines), True)]
    for kind, meaning in verdicts.CLASSES.items():
        own = lines[lines["class"] == kind]
        if len(own):
            tables.append((f"{kind.capitalize()} ({len(own)}): {meaning}", verdicts.readable(own), False))
    return {"id": "claims", "title": "Claims of the paper", "notes": [], "tables": tables}


def _shown(title: str, frame: pd.DataFrame, is_open: bool) -> dict[str, Any]:
    plain = frame.astype(str).replace(r"\*\*", "", regex=True)
    grid = {"columns": [str(c) for c in plain.columns], "rows": plain.to_numpy().tolist()}
    return {"title": title, "grid": grid, "open": is_open}
