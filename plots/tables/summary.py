"""Four times of each problem: the paper's best algorithm, the FFT library, the fastest variant here, and the floor.

On the machine of the baseline the problems are the baseline's cells, elsewhere those that the comparison figures show
and that have a time of one of the paper's algorithms. `chosen` takes one number of matrices of each form, `typical` at
most ROWS problems of it, both by rule.
"""

import math

import numpy as np
import pandas as pd

from experiments.compare.artifact import load_baseline
from plots import ceilings, floor, noise, style
from plots.tables import beyond
from plots.tables.table import FORM, duration
from plots.tidy import ResultSet, is_power_of_two, ordered

ROWS = 10
SERIES = {"paper_us": "paper's best", "library_us": "cuFFT", "ours_us": "this project", "floor_us": "floor"}
# The ends of the intervals of the times that are measured.
ENDS = [f"{name}_{end}" for name in SERIES if name != "floor_us" for end in ("low", "high")]
COLUMNS = [*beyond.CELL, "counts", "pairs", "size", *SERIES, "variant", "params", *ENDS]
OVER = "{:.2f}x".format
SHOWN = (
    FORM,
    ("Matrices", "counts"),
    ("Size", "size"),
    ("Fastest variant", "variant", style.label),
    ("Time", "ours_us", duration),
    ("Speed-up over the paper's best", "paper_us ours_us", lambda paper, ours: OVER(paper / ours)),
    ("Speed-up over cuFFT", "library_us ours_us", lambda library, ours: OVER(library / ours)),
    ("Time over the floor", "ours_us floor_us", lambda ours, floor: OVER(ours / floor)),
)


def cells(results: ResultSet) -> pd.DataFrame:
    """A line per problem, by form, pairs and size; see COLUMNS. Times in microseconds, NaN where one is not known. The
    paper's best is the faster of our own rows of its algorithms and, on the machine of the baseline, of the baseline.
    A time of the baseline has no interval."""
    raw, baseline = load_baseline(beyond.BASELINE)
    is_theirs = raw["beyond"]["machine_key"] == results.key
    points = beyond.usual(results.points if is_theirs else results.feeding("comparison"))
    fastest = beyond.fastest(points)
    papers = beyond.fastest(points[beyond.of_paper(points, raw["beyond"])])
    libraries = beyond.fastest(points[points["variant"] == raw["fft"]["variant"]])
    paper, library = papers["compute_us"], libraries["compute_us"]
    frame = fastest[["counts", "pairs", "size", "variant", "params"]].assign(
        paper_us=paper.reindex(fastest.index),
        library_us=library.reindex(fastest.index),
        ours_us=fastest["compute_us"],
        floor_us=math.nan,
    )
    if is_theirs:
        known = {cell: beyond.baseline_us(row) for cell, row in baseline.items()}
        theirs = pd.Series([known.get(cell, math.nan) for cell in frame.index], frame.index, dtype=float)
        frame["paper_us"] = np.fmin(frame["paper_us"], theirs).where(theirs.notna())
    for name, own in (("paper_us", papers), ("library_us", libraries), ("ours_us", fastest)):
        known = own.reindex(frame.index)
        repeated = known["compute_us"] == frame[name]  # a time of the baseline has no repetitions
        for end, values in noise.ends_us(known).where(repeated).items():
            frame[f"{name}_{end}"] = values
    measured = ceilings.load(results.folder)
    if isinstance(measured, ceilings.Ceilings) and len(frame):
        frame["floor_us"] = floor.floor_us(fastest.reset_index(), measured).to_numpy()
    frame = frame[frame["paper_us"].notna()].reset_index()
    return ordered(frame, ["form", "pairs", "lefts", "left_rows"])[COLUMNS].reset_index(drop=True)


def chosen(found: pd.DataFrame) -> pd.DataFrame:
    """Of each form the lines of one number of matrices: the one with most sizes that have every time, of several the one
    with most pairs."""
    kept = []
    for _, own in found.groupby("form", sort=False):
        known = own[list(SERIES)].notna().all(axis=1).groupby(own["counts"]).sum()
        pairs = own.groupby("counts")["pairs"].first()
        best = max(known.index, key=lambda counts: (known[counts], pairs[counts]))
        kept.append(own[own["counts"] == best])
    return pd.concat(kept) if kept else found


def typical(found: pd.DataFrame) -> pd.DataFrame:
    """Of the chosen lines with every time whose side is a power of two, every k-th, so that at most ROWS are left."""
    own = chosen(found).dropna(subset=list(SERIES))
    own = own[own["left_rows"].map(is_power_of_two).astype(bool)]
    return own.iloc[:: max(1, math.ceil(len(own) / ROWS))]
