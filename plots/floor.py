"""The floor (xcorr/choice/floor.py) of tidy lines."""

import pandas as pd

from plots.ceilings import Ceilings
from plots.tidy import PROBLEM
from xcorr.choice.floor import fft_flops, terms
from xcorr.problem import Problem

PARTS = ["launch", "memory", "direct", "fft"]
CAVEAT = (
    "Launches that overlap can be faster than the floor, because the floor counts an empty launch that waits for the one "
    "before it."
)


def parts(points: pd.DataFrame, ceilings: Ceilings) -> pd.DataFrame:
    """The terms of the floor in microseconds (columns PARTS), one line per tidy line; the launch is one in the point's
    mode (graph, else stream)."""
    graph = points["mode"].eq("graph")
    launch = graph.map({True: ceilings.launch_graph_us, False: ceilings.launch_stream_us}).astype(float)
    flops = [fft_flops(Problem.of_cells(*values)) for values in points[PROBLEM].to_numpy().tolist()]
    of_each = terms(
        launch,
        points["bytes"],
        points["fmas"],
        pd.Series(flops, points.index, float),
        ceilings.bytes_per_s,
        ceilings.fp32_product,
    )
    return pd.DataFrame(of_each, index=points.index, columns=PARTS)


def floor_us(points: pd.DataFrame, ceilings: Ceilings) -> pd.Series:
    """Floor of each tidy line in microseconds: max(launch, memory, min(direct, fft))."""
    each = parts(points, ceilings)
    return each.assign(compute=each[["direct", "fft"]].min(axis=1))[["launch", "memory", "compute"]].max(axis=1)


def below_launch(rows: pd.DataFrame) -> tuple[int, int]:
    """(points whose time is below that of the empty launch beside them, points with such a launch) of the verified
    rows of a set in mode stream; rows older than that column have none."""
    own = rows[(rows["outcome"] == "passed") & (rows["mode"] == "stream") & (rows["launch_us"] > 0)]
    point = [*PROBLEM, "variant", "params", "input", "precision", "experiment"]
    means = own.groupby(point)[["compute_us", "launch_us"]].mean()
    return int((means["compute_us"] < means["launch_us"]).sum()), len(means)


def bound_by(points: pd.DataFrame, ceilings: Ceilings) -> pd.Series:
    """Which term of PARTS is the floor of each tidy line."""
    each = parts(points, ceilings)
    cheaper = each[["direct", "fft"]].idxmin(axis=1)
    each["compute"] = each[["direct", "fft"]].min(axis=1)
    largest = each[["launch", "memory", "compute"]].idxmax(axis=1)
    return largest.where(largest != "compute", cheaper)
