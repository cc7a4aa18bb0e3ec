"""Shares of the passes of template matching in the time of a call: averages, denominators, numerators."""

import pandas as pd

from plots.metrics import si_time
from plots.sources.template_matching.tables import template_matching as matching
from plots.tables.table import MISSING, Grid, Page, Table
from plots.tidy import ResultSet, select
from xcorr.native.variants import assignments

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
    return select(matching.of_patient(every, patient, templates), variant=matching.variant("tiled"))


def of_frames(one: pd.Series) -> float:
    """Time of averages and denominators together, in microseconds; NaN where it is not known."""
    together = float(one[PHASES["averages"]])
    return together + float(one[PHASES["denominators"]]) if is_apart(one) else together


def of_templates(one: pd.Series) -> float:
    """Time of numerators, in microseconds; NaN where it is not known."""
    return float(one[PHASES["numerators"]])


def has_phases(one: pd.Series) -> bool:
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
        shown = {part: f"{100 * parts[part]:.0f} %" if part in parts else MISSING for part in (*PHASES, TOGETHER, REST)}
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
    joined = [name for name, one in fastest(results).items() if not is_apart(one)]
    return [
        ABOUT,
        *([f"Averages and denominators were measured as one phase for {', '.join(joined)}."] if joined else []),
    ]


def page(results: ResultSet) -> Page:
    """What the table says of a set; nothing in the report where no passes were measured."""
    lines = table(results)
    if lines.empty:
        return Page(["No times of the passes were measured in this set."], notes=())
    grid = Grid(lines, title=f"{TABLE.title}, {matching.TEMPLATES} templates", open=False)
    return Page([*notes(results), grid])


TABLE = Table("template_passes", "Shares of the passes", page, part_of=("template_matching", 1))
