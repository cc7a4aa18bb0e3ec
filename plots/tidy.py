"""From the rows of a set (experiments.driver.store reads them) to a tidy frame: outlier rule, statistics.

A row of a result set is one repetition (docs/design.md, Rows). A row of the tidy frame is one point:
a variant with its parameters on one problem in one mode. Only `passed` rows are kept, and
`published` ones (imported, unverified), which figures draw hollow and tables never use.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.driver import store
from experiments.driver.schema import PRESETS, SELECT, feeds, studies
from plots import noise
from xcorr.fields import NAMES as FIELDS
from xcorr.fields import Fields
from xcorr.problem import FORMS, GEOMETRY, Problem

PROBLEM = list(GEOMETRY)
CONDITION = ["mode", "input", "precision"]
PLAIN_POINT = ["variant", "family", "backend", "params", *PROBLEM, *CONDITION]
# `fields`: those fields of the problem that do not have their default, as in its id; "" of a plain one.
POINT = [*PLAIN_POINT, "fields"]
PHASES = ["forward_us", "hadamard_us", "inverse_us"]
TIMES = ["compute_us", *PHASES, "build_us", "plan_us"]
# Of the point, not of a repetition: errors are of its verification, energy is counted over many.
CHECKED = ["max_error", "error_bound", "rel_l2_error", "energy_uj", "normalised_error"]
TRANSFERS = ["upload_us", "download_us"]
CLEAR = "clear_us"  # the clear of the output within compute; of variants that need one
# Of variants that are compiled at run time.
COMPILED = ["compile_us", "load_us", "registers"]
CARRIED = ["preset", "fmas", "bytes", "source_hash", "experiments", "argmax_agrees", "block", *CHECKED, *COMPILED]
BETWEEN = ["runs", "between_us", "between_plan_us"]
PRESET_RANK = {name: rank for rank, name in enumerate(PRESETS)}
DRAWN_OUTCOMES = ("passed", "published")
MIN_SAMPLES_FOR_OUTLIERS = 4
# What a figure or table shows that names nothing else.
USUAL = {"window": "full", "mode": "stream", "input": "uniform", "precision": "fp32"}


@dataclass(frozen=True)
class ResultSet:
    """What one machine measured: raw rows, the tidy frame, run records, folder and kind. `studies` has the tidy
    frame of each side experiment by itself. All of them are of plain problems, whose fields have their defaults;
    `with_fields` is the tidy frame of the others, which no plain figure or table meets."""

    key: str
    kind: str  # "published" or "local"
    folder: Path
    rows: pd.DataFrame
    points: pd.DataFrame
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    feeds: dict[str, list[str]] = field(default_factory=dict)
    studies: dict[str, pd.DataFrame] = field(default_factory=dict)
    with_fields: pd.DataFrame = field(default_factory=pd.DataFrame)

    def feeding(self, name: str) -> pd.DataFrame:
        """The points of the experiments that feed the figure or table `name`. An experiment whose
        file is gone feeds everything. What side experiments alone feed has the times of their own rows, so that what is
        compared was measured side by side."""
        own = [frame for study, frame in self.studies.items() if name in self.feeds.get(study, [])]
        if own and all(one in self.studies for one, names in self.feeds.items() if name in names):
            found = pd.concat(own, ignore_index=True) if len(own) > 1 else own[0]
            found.attrs = dict(self.points.attrs)
            return found
        mask = [
            any(name in self.feeds.get(one, [name]) for one in measured.split(";"))
            for measured in self.points["experiments"]
        ]
        return self.points[np.array(mask, dtype=bool)]

    def fed(self, points: pd.DataFrame, name: str) -> pd.DataFrame:
        """Those of the points that an experiment measured of which a file says that it feeds `name`."""
        own = {one for one, names in self.feeds.items() if name in names}
        mask = [not own.isdisjoint(measured.split(";")) for measured in points["experiments"]]
        return points[np.array(mask, dtype=bool)]


def drop_outliers(samples: pd.Series, points: pd.Series) -> pd.Series:
    """Keep mask over `samples`, those of each of `points` (a label a sample) by themselves: inside
    [Q1 - 1.5 IQR, Q3 + 1.5 IQR], quartiles by linear interpolation. Everything is kept of a point
    with fewer than 4 samples (too few for quartiles)."""
    by = samples.groupby(points)
    q1, q3 = by.transform("quantile", 0.25), by.transform("quantile", 0.75)
    reach = 1.5 * (q3 - q1)
    inside = samples.between(q1 - reach, q3 + reach)
    return inside | (by.transform("size") < MIN_SAMPLES_FOR_OUTLIERS)


def _thorough(rows: pd.DataFrame, side: Collection[str]) -> pd.DataFrame:
    """Rows with a time to draw: per point those of main experiments if it has any (`side` names the others), of these
    the most thorough preset, and of that the newest run. `_point` numbers the points in their order. Outdated sources
    are gone already (experiments.driver.store). Run ids start with their UTC time."""
    rows = rows[rows["outcome"].isin(DRAWN_OUTCOMES) & (rows["compute_us"] > 0)]
    point = rows.groupby([*POINT, "outcome"], dropna=False, sort=True).ngroup()
    names = rows.assign(_point=point)[["_point", "experiment"]].drop_duplicates().sort_values("experiment")
    rows = rows.assign(
        _point=point,
        _rank=rows["preset"].map(PRESET_RANK).fillna(-1),
        _run=_numbers(rows["run"]),
        experiments=point.map(names.groupby("_point")["experiment"].agg(";".join)),
        # Counted by an experiment of its own: kept, whichever run gives the point its times.
        energy_uj=rows["energy_uj"].groupby(point).transform("mean"),
        # A peak that was wrong once is wrong, whichever run gives the times.
        argmax_agrees=np.select(
            [rows["argmax_agrees"].eq(said).groupby(point).transform("any") for said in ("false", "true")],
            ["false", "true"],
            "",
        ),
    )
    rows = _of_blocks(rows)
    study = rows["experiment"].isin(side)
    rows = rows[~study | study.groupby(rows["_point"]).transform("all")]
    for column in ("_rank", "_run"):
        best = rows.groupby("_point")[column].transform("max")
        rows = rows[rows[column] == best]
    return rows.drop_duplicates(["_point", "repetition"], keep="last")


def _numbers(texts: pd.Series) -> pd.Series:
    """The place of each text among all of them in order: a maximum of numbers is much faster than one of texts."""
    return pd.Series(pd.factorize(texts, sort=True)[0], index=texts.index)


def _of_blocks(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows without those of stage select, and of each problem that a block measured those of its newest block alone: its
    rivals met there."""
    rows = rows[rows["preset"] != SELECT]
    runs = _numbers(rows["run"].where(rows["block"] != "", ""))
    problem = rows.groupby([*PROBLEM, "fields"], dropna=False, sort=False).ngroup()
    newest = runs.groupby(problem).transform("max")
    return rows[runs == newest]


def tidy(rows: pd.DataFrame, side: Collection[str] = (), every: pd.DataFrame | None = None) -> pd.DataFrame:
    """One line per point: mean, SD (n-1), median and n of the kept repetitions, in microseconds. Rows of the
    experiments `side` never replace those of others: they give the times of points that nothing else measured. Added to
    POINT: outcome and CARRIED (`experiments`: all that measured it, joined by `;`; `argmax_agrees`: `false` where a
    peak was elsewhere than the truth's in any of them, `true`, or empty where none says; `energy_uj`: mean of all that
    counted it); `<time>` (mean) for every column of TIMES, TRANSFERS and CLEAR; `sd_us`, `median_us` (of compute_us), `n`,
    `dropped`; BETWEEN: spread between all runs of the point, those of side experiments included (see plots.noise), in
    `rows`, or in `every`, which has older runs too; `block` and noise.SPREAD: of points of a block; pairs, outputs (elements per pair), side (for the size axis), size
    and counts (labels). An outlier repetition is dropped whole, so that phases still add up to their compute time.
    Empty input gives an empty frame. `attrs["usual_ranges"]`: plots.noise.usual_ranges of the set."""
    rows = _with_fields(rows)
    return _points(rows, side, _run_ranges(rows if every is None else _with_fields(every)))


def _points(rows: pd.DataFrame, side: Collection[str], known: pd.DataFrame) -> pd.DataFrame:
    """tidy() of rows as _with_fields makes them, with _run_ranges of all runs."""
    rows = _thorough(rows, side).sort_values(["_point", "repetition"], kind="stable")
    kept = rows[drop_outliers(rows["compute_us"], rows["_point"])]
    by = kept.groupby("_point")
    points = rows.drop_duplicates("_point").set_index("_point")[[*POINT, "outcome", *CARRIED]]
    points[[*TIMES, *TRANSFERS, CLEAR]] = by[[*TIMES, *TRANSFERS, CLEAR]].mean()
    points["sd_us"] = by["compute_us"].std(ddof=1)
    points["median_us"] = by["compute_us"].median()
    points["n"] = by.size()
    points["dropped"] = rows.groupby("_point").size() - points["n"]
    points[noise.SPREAD] = noise.of_samples(kept, "_point").reindex(points.index)
    usual = noise.usual_ranges(known[known.index.get_level_values("mode") == "stream"])
    points[BETWEEN] = noise.between_runs(points, known.reindex(pd.MultiIndex.from_frame(points[_RUN_POINT])), usual)
    extra = [
        "outcome",
        *TIMES,
        *TRANSFERS,
        CLEAR,
        "sd_us",
        "median_us",
        "n",
        "dropped",
        *BETWEEN,
        *noise.SPREAD,
        *CARRIED,
    ]
    found = _derive(points.reset_index(drop=True)[[*POINT, *extra]])
    found.attrs["usual_ranges"] = usual
    return found


def _with_fields(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of store.frame_of with the column `fields`, and counts that may be divided."""
    texts = [_fields_text(*one) for one in zip(*(rows[name] for name in FIELDS))]
    return rows.assign(fields=texts, **{name: rows[name].astype(float) for name in ("fmas", "bytes")})


@cache
def _fields_text(*cells: str) -> str:
    """The column `fields` of a row by its columns of FIELDS."""
    return Fields.of(dict(zip(FIELDS, cells))).text


_RUN_POINT = [*POINT, "outcome"]


def _run_ranges(rows: pd.DataFrame) -> pd.DataFrame:
    """plots.noise.of_points of the rows with a time to draw."""
    return noise.of_points(rows[rows["outcome"].isin(DRAWN_OUTCOMES) & (rows["compute_us"] > 0)], _RUN_POINT)


def _derive(points: pd.DataFrame) -> pd.DataFrame:
    """Add pairs, outputs per pair, labels and the size axis to a tidy frame."""
    shape = points[["left_rows", "left_cols", "right_rows", "right_cols"]].astype(float)
    counts = np.array(
        [counts_of(*cells) for cells in points[[*PROBLEM, "fields"]].to_numpy().tolist()], dtype=float
    ).reshape(-1, 2)
    area = shape["left_rows"] * shape["left_cols"] * shape["right_rows"] * shape["right_cols"]
    return points.assign(
        pairs=counts[:, 0],
        outputs=counts[:, 1],
        side=area.astype(float) ** 0.25,
        size=[size_label(*map(int, s)) for s in shape.to_numpy()],
        counts=[f"{a}-to-{b}" for a, b in zip(points["lefts"], points["rights"])],
    )


@cache
def counts_of(*cells: Any) -> tuple[int, int]:
    """Pairs, and outputs of a pair, of a problem by its columns PROBLEM and its fields."""
    *geometry, fields = cells
    problem = Problem.of_cells(*geometry, *Fields.of_text(fields).cells)
    return problem.pairs, math.prod(problem.output)


def size_label(left_rows: int, left_cols: int, right_rows: int, right_cols: int) -> str:
    """`16x16` for equal shapes, else `left:right`, as on axes, in tables and in experiments."""
    left, right = f"{left_rows}x{left_cols}", f"{right_rows}x{right_cols}"
    return left if left == right else f"{left}:{right}"


def is_power_of_two(side: float) -> bool:
    return abs(math.log2(side) - round(math.log2(side))) < 1e-9


def best_parameters(points: pd.DataFrame, by: pd.Series | None = None) -> pd.DataFrame:
    """Per variant, problem and condition the line with the smallest `by` (default compute_us)."""
    if points.empty:
        return points
    score = points["compute_us"] if by is None else by
    keys = ["variant", "outcome", *PROBLEM, "fields", *CONDITION]
    best = ordered(points, ["_score", "params"], _score=score).drop_duplicates(keys)
    return best.sort_values(keys, kind="stable").reset_index(drop=True)


def select(lines: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The lines whose columns have these values; an empty frame may lack the columns."""
    for name, value in values.items():
        lines = lines[lines[name] == value] if len(lines) else lines
    return lines


def unusual(line: Mapping[str, Any], *names: str) -> list[str]:
    """Those of the conditions `names` (default: all of USUAL) of a line that are not the usual ones."""
    return [str(line[name]) for name in names or USUAL if line[name] != USUAL[name]]


def joined(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The frames below each other; those without lines may lack columns."""
    kept = [one for one in frames if len(one)]
    return pd.concat(kept, ignore_index=True) if kept else pd.DataFrame()


def ordered(lines: pd.DataFrame, by: Sequence[str], **keys: Any) -> pd.DataFrame:
    """The lines sorted by the columns `by`, forms in the paper's order. `keys` are columns for sorting alone."""

    def place(column: pd.Series) -> pd.Series:
        return column.map(form_order) if column.name == "form" else column

    return lines.assign(**keys).sort_values(list(by), kind="stable", key=place)[lines.columns]


def passed(points: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The verified points whose columns have these values."""
    return select(points, outcome="passed", **values)


def form_order(form: str) -> tuple[int, str]:
    """Sort key that puts the four forms in the paper's order and unknown ones last."""
    return (FORMS.index(form) if form in FORMS else len(FORMS), form)


def _said(_: str) -> None:
    """store.read_set has told the user."""


def _every_run(folder: Path, records: list[dict[str, Any]]) -> pd.DataFrame:
    """The rows of a local set that count, older runs too, of the newest source of each variant."""
    rows = store.every_row(folder, records, _said, _said, set_aside=False)
    return _with_fields(store.frame_of(store.newest_sources(rows)))


def load(folder: Path, key: str, kind: str) -> ResultSet:
    """Read the set of machine `key` in `folder` (`results/published/<key>` or local). Raises xcorr.errors.UserError
    when a published file is damaged."""
    rows = store.read_set(folder)
    records = store.run_records(folder, _said)
    runs = store.by_run(records)
    # A published set has one run of each point and experiment; a local one keeps the older ones too.
    typed, side = _with_fields(rows), studies()
    known = _run_ranges(
        pd.concat([typed, _every_run(folder, records)], ignore_index=True) if kind == "local" else typed
    )
    is_plain = typed["fields"] == ""
    rows, plain, others = rows[is_plain], typed[is_plain], typed[~is_plain]
    own = {
        name: _points(plain[plain["experiment"] == name], (), known) for name in sorted(side & set(rows["experiment"]))
    }
    points = _points(plain, side, known)
    return ResultSet(key, kind, folder, rows, points, runs, feeds(), own, _points(others, side, known))
