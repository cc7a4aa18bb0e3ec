"""Shares of the passes of template matching in the time of a call: averages, denominators, numerators."""

from __future__ import annotations

import pandas as pd

from plots.metrics import si_time
from plots.sources.template_matching.tables import template_matching as matching
from plots.tables.text import markdown
from plots.tidy import ResultSet
from xcorr.native.variants import assignments

NAME = "template_passes"
TITLE = "Shares of the passes"
PART_OF = ("template_matching", 1)
NONE = "No times of the passes were measured in this set."
# The column of a row that has the time of a pass: variants mark passes with the names of phases that rows have. Rows without a time of
# denominators are of sources that marked averages and denominators as one phase, `forward`.
PHASES = {"averages": "forward_us", "denominators": "inverse_us", "numerators": "hadamard_us"}
TOGETHER = "averages and denominators"
REST = "the rest"
ABOUT = (
    "The passes are those of the tile with the shortest time, of the points whose passes were all measured apart if there are any. Averages and denominators are made once a frame, numerators and scores once a template. The rest "
    "is the norms of templates, and the means of frames."
)


def points(every: pd.DataFrame, patient: str, templates: int = matching.TEMPLATES) -> pd.DataFrame:
    """Those of template_matching.every_point that have the paper's passes of a patient, the fastest first."""
    own = matching.of_patient(every, patient, templates)
    return own[own["variant"] == matching.variant("tiled")] if len(own) else own


def of_frames(one: pd.Series) -> float:
    """Time of averages and denominators together, in microseconds; NaN where it is not known."""
    together = float(one[PHASES["averages"]])
    return together + float(one[PHASES["denominators"]]) if is_apart(one) else together


def of_templates(one: pd.Series) -> float:
    """Time of numerators, in microseconds; NaN where it is not known."""
    return float(one[PHASES["numerators"]])


def has_phases(one: pd.Series) -> bool:
    """Whether a point has times of passes."""
    return bool(pd.notna(of_frames(one)) and pd.notna(of_templates(one)))


def is_apart(one: pd.Series) -> bool:
    """Whether averages and denominators of a point have times of their own."""
    return bool(pd.notna(one[PHASES["denominators"]]))


def shares(one: pd.Series) -> dict[str, float]:
    """Parts of the time of a point, which add up to 1: averages, denominators (or TOGETHER), numerators, REST; empty without phases."""
    if not has_phases(one):
        return {}
    columns = PHASES if is_apart(one) else {TOGETHER: PHASES["averages"], "numerators": PHASES["numerators"]}
    parts = {name: float(one[column]) / float(one["time_us"]) for name, column in columns.items()}
    return {**parts, REST: 1 - sum(parts.values())}


def fastest(results: ResultSet) -> dict[str, pd.Series]:
    """By patient its fastest point that has times of all passes; where none has, its fastest one, if that has times of some."""
    every = matching.every_point(results)
    first = {}
    for name in matching.patients():
        own = points(every, name)
        if len(own):
            apart = own[own.apply(is_apart, axis=1)]
            first[name] = (apart if len(apart) else own).iloc[0]
    return {name: one for name, one in first.items() if shares(one)}


def table(results: ResultSet) -> pd.DataFrame:
    """A line per patient as a reader sees it; empty without times of passes."""
    lines = []
    for name, one in fastest(results).items():
        parts = shares(one)
        parts.setdefault(TOGETHER, sum(parts.get(part, 0) for part in ("averages", "denominators")))
        shown = {
            part: f"{100 * parts[part]:.0f} %" if part in parts else matching.MISSING
            for part in (*PHASES, TOGETHER, REST)
        }
        lines.append(
            {
                "Patient": name,
                "Tile": assignments(one["params"])["template_tile"],
                "Time": si_time(float(one["time_us"]) * 1e-6),
                "Averages": shown["averages"],
                "Denominators": shown["denominators"],
                "Both": shown[TOGETHER],
                "Numerators": shown["numerators"],
                "Rest": shown[REST],
            }
        )
    return pd.DataFrame(lines)


def notes(results: ResultSet) -> list[str]:
    """What the table is; of which patients averages and denominators have no times of their own."""
    found = fastest(results)
    if not found:
        return []
    joined = [name for name, one in found.items() if not is_apart(one)]
    more = f"Averages and denominators were measured as one phase for {', '.join(joined)}." if joined else ""
    return [*filter(None, (ABOUT, more))]


def files(results: ResultSet) -> dict[str, str]:
    """The file of the table; without rows, one that says so."""
    lines = table(results)
    text = "\n\n".join([*notes(results), markdown(lines)]) if len(lines) else f"{NONE}\n"
    return {f"{NAME}.md": f"# {TITLE}\n\n{text}"}


def chapter_parts(results: ResultSet) -> tuple[list[str], list[tuple[str, pd.DataFrame, bool]]]:
    """Notes and tables for the chapter on template matching (see plots.report.front)."""
    lines = table(results)
    return notes(results), [(f"{TITLE}, {matching.TEMPLATES} templates", lines, False)] if len(lines) else []
