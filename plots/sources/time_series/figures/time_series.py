"""Time series: the sweeps of experiments/time_series/figures.toml, and which kind of algorithm is fastest by samples and templates."""

import re
from functools import lru_cache
from typing import Any

import pandas as pd

from experiments import folders
from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _cells, _panels
from plots.metrics import METRICS, si_time
from plots.sources.time_series.tables import time_series
from plots.tidy import ResultSet, select
from xcorr.native.variants import assignments, is_transform

ORDER = 90
TITLE = "Time series"
SECTION = time_series.TABLE.name
LABELS = {"samples": "Samples of a template", "templates": "Templates", "shifts": "Shifts of a template"}
MISSING = "not measured in this set (python3 -m experiments.driver.run --experiments {})"
TENSOR = ("tf32", "3xtf32", "fp16", "bf16x3")  # precisions that tensor cores compute
KINDS = {"direct": "#f0f0f0", "tensor cores": "#c6dbef", "transform": "#fdd0a2"}
HATCHES = {"direct": "", "tensor cores": "////", "transform": "...."}
MAP_SHIFTS = 1_000_000
HOLLOW = " Hollow: Table 2 of the paper as it is printed, on its machines, not checked here."
ALONE = " †"
NO_TRANSFORM = " †: no transform with segments that are long enough was measured there, so the cell does not say which kind is faster."
PREFIX = "timeseries-"  # of nearly every variant of the map


@lru_cache(maxsize=1)
def sweeps() -> dict[str, dict[str, Any]]:
    return dict(folders.part("time_series", "figures")["drawn_by"]["time_series"])


def kind(variant: str, precision: str) -> str:
    if is_transform(variant):
        return "transform"
    return "tensor cores" if precision in TENSOR else "direct"


def _starved(points: pd.DataFrame) -> pd.Series:
    """Whether a transform's segments are so short for the template that less than half of their outputs are kept: what such a point
    shows is the largest segment of the variant, not how fast transforms are."""
    segments = [int(assignments(params).get("segment", 0)) for params in points["params"]]
    return pd.Series([0 < one < 2 * n - 1 for one, n in zip(segments, points["samples"])], points.index, dtype=bool)


def _usable(points: pd.DataFrame) -> pd.DataFrame:
    return points[~_starved(points)]


def _starving(left_out: pd.DataFrame) -> str:
    """What is not drawn, in a sentence with a space before it; empty where everything is."""
    if left_out.empty:
        return ""
    named = [
        f"{style.label(one['variant'], one['precision'])} at {one['samples']:,} samples ({si_time(one['compute_us'] * 1e-6)})"
        for _, one in left_out.drop_duplicates(["variant", "precision", "samples"]).iterrows()
    ]
    return f" Not drawn, because its segments are shorter than twice the template, so that most of their outputs are dropped: {', '.join(named)}."


def draw(results: ResultSet) -> list[Result]:
    """The sweeps, then the map; Omitted with what measures it where there are no rows."""
    points = time_series.points(results)
    return [*(_sweep(points, key, spec) for key, spec in sweeps().items()), _map(points)]


def _sweep(points: pd.DataFrame, key: str, spec: dict[str, Any]) -> Result:
    name = f"time_series_{key}"
    points = select(points, **spec["fixed"])
    # A variant of one point only, as of Table 2, is no curve.
    curve = ["variant", "family", "precision"]
    points = points[points.groupby(curve)[spec["x"]].transform("nunique") > 1]
    if points.empty:
        return Omitted(name, MISSING.format("time-series"), SECTION)
    metric = METRICS[spec["metric"]]
    points, left_out = _usable(points), points[_starved(points)]
    points = _bars.spread(points, metric.of).sort_values(spec["x"])
    curves = [
        (style.label(variant, precision), own.set_index(spec["x"]), style.look(variant, family, precision).line())
        for (variant, family, precision), own in points.groupby(curve, sort=True)
    ]
    paper = _papers(spec)
    curves += paper
    labels = ", ".join(label for label, _, _ in curves)
    measured = sorted({*map(int, points[spec["x"]].unique()), *(int(own.index[0]) for _, own, _ in paper)})
    ticks = {one: f"{one / 1e6:g} M" if one >= 1e6 else f"{one:,}" for one in measured}
    return Drawing(
        name=name,
        title=f"{TITLE}: {spec['title'].lower()}",
        caption=f"{metric.label} against {LABELS[spec['x']].lower()}. {spec['caption']} Each variant has its fastest parameters at each point."
        + _starving(left_out)
        + _bars.said(points)
        + HOLLOW * bool(paper),
        alt=f"Line chart: {metric.label.lower()} against {LABELS[spec['x']].lower()}; curves: {labels}.",
        figure=_panels.curve_chart(curves, ticks, LABELS[spec["x"]], metric.axis_label, metric.unit),
        section=SECTION,
    )


def _papers(spec: dict[str, Any]) -> list[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """A hollow point for each line of Table 2 of the paper, where the sweep passes through its problem."""
    problem = time_series.data()["headline"]
    shifts = problem["right_cols"] - problem["left_cols"] + 1
    place = {
        "samples": problem["left_cols"],
        "templates": problem["lefts"],
        "shifts": shifts,
        "left_rows": problem["left_rows"],
    }
    if spec["metric"] != "useful_flops" or any(place[name] != value for name, value in spec["fixed"].items()):
        return []
    return [
        (
            f"paper: {one['device']}, {re.split('[,;]', one['method'])[0]}",
            pd.DataFrame({"y": [1e12 * one["tflops"]]}, [place[spec["x"]]]),
            style.look(one["variant"], "time_series", one["class"]).point(),
        )
        for one in time_series.data()["published"]
    ]


def _map(points: pd.DataFrame) -> Result:
    """The fastest variant by templates and samples, a grid for each precision class."""
    name = "time_series_crossover"
    points = points[(points["shifts"] == MAP_SHIFTS) & (points["left_rows"] == 1)]
    if points["samples"].nunique() < 2:
        return Omitted(name, MISSING.format("time-series"), SECTION)
    points = points.sort_values("compute_us", kind="stable")
    starved, points = points[_starved(points)], _usable(points)
    samples, templates = (sorted(map(int, points[one].unique())) for one in ("samples", "templates"))
    transforms = points[points["variant"].map(is_transform).astype(bool)]
    tried = set(zip(transforms["samples"], transforms["templates"]))
    alone = len(tried) < len(points[["samples", "templates"]].drop_duplicates())
    panels = []
    for one in sorted(set(points["class"]), key=time_series.ORDER.index):
        cells = {}
        # Who is content with few digits may have more: otherwise transforms would be in one grid alone.
        may = {one, time_series.GRADE} if one in TENSOR else {one}
        fastest = points[points["class"].isin(may)].drop_duplicates(["samples", "templates"])
        for _, row in fastest.iterrows():
            of = kind(row["variant"], row["precision"])
            short = style.label(row["variant"]).removeprefix(PREFIX)
            sign = "" if (row["samples"], row["templates"]) in tried else ALONE
            text = f"{short}\n{si_time(row['compute_us'] * 1e-6)}{sign}"
            cells[str(row["templates"]), str(row["samples"])] = _cells.Cell(text, KINDS[of], HATCHES[of])
        named = one if len(may) == 1 else f"{one} or {time_series.GRADE}"
        title = f"{named}: templates (down), samples (across)"
        panels.append(_cells.Panel(title, list(map(str, templates)), list(map(str, samples)), cells))
    return Drawing(
        name=name,
        title=f"{TITLE}: which kind of algorithm is fastest",
        caption=(
            "Fastest variant by number of templates (rows) and samples of a template (columns), at a million shifts, for each precision class. A class of few digits may take "
            "a variant of FP32 grade where that is faster. "
            f"White: sums on ordinary cores; blue, hatched: tensor cores; orange, dotted: transforms. Names are those of the variants without “{PREFIX}”."
            + NO_TRANSFORM * alone
            + _starving(starved.drop_duplicates(["variant", "samples"]))
        ),
        alt="Grids of the fastest variant by templates and samples, one for each precision class.",
        figure=_cells.draw(panels, 0.32, left=0.6),
        section=SECTION,
    )
