"""The floor (xcorr/choice/floor.py) of tidy lines."""

import math

import pandas as pd

from plots.ceilings import Ceilings
from plots.tidy import PROBLEM
from xcorr.choice.floor import crossing_bytes, fft_flops, terms
from xcorr.problem import Problem

ROOFS = {  # terms of the floor
    "launch": "the launch",
    "memory": "memory",
    "direct": "direct arithmetic",
    "fft": "FFT arithmetic",
    "exchange": "exchange between threads",
}
PARTS = list(ROOFS)
CAVEAT = (
    "Launches that overlap can be faster than the floor, because the floor counts an empty launch that waits for the one "
    "before it."
)


def parts(points: pd.DataFrame, ceilings: Ceilings) -> pd.DataFrame:
    """The terms of the floor in microseconds (columns PARTS), one line per tidy line; the launch is one in the point's
    mode (graph, else stream)."""
    graph = points["mode"].eq("graph")
    launch = graph.map({True: ceilings.launch_graph_us, False: ceilings.launch_stream_us}).astype(float)
    problems = [Problem.of_cells(*values) for values in points[PROBLEM].to_numpy().tolist()]
    flops, crossed = (
        pd.Series([count(one) for one in problems], points.index, float) for count in (fft_flops, crossing_bytes)
    )
    of_each = terms(
        launch,
        points["bytes"],
        points["fmas"],
        flops,
        crossed,
        ceilings.bytes_per_s,
        ceilings.fp32_product,
        ceilings.crossing_per_s,
    )
    return pd.DataFrame(of_each, index=points.index, columns=PARTS)


def _compute(each: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Time of the cheaper of direct computation and FFT in microseconds, and the term of PARTS that it is."""
    by_fft = each[["fft", "exchange"]]
    term = by_fft.idxmax(axis=1).where(by_fft.max(axis=1) < each["direct"], "direct")
    return by_fft.max(axis=1).clip(upper=each["direct"]), term


def floor_us(points: pd.DataFrame, ceilings: Ceilings) -> pd.Series:
    """Floor of each tidy line in microseconds: max(launch, memory, min(direct, max(fft, exchange)))."""
    each = parts(points, ceilings)
    return each[["launch", "memory"]].assign(compute=_compute(each)[0]).max(axis=1)


def binding(points: pd.DataFrame, ceilings: Ceilings) -> str:
    """Which term is the floor on how many of `points` (tidy lines, one a problem), and how near exchange comes, in sentences."""
    counts = bound_by(points, ceilings).value_counts()
    of_each = ", ".join(f"{name} on {counts[term]}" for term, name in ROOFS.items() if term in counts)
    said = f"The limit that binds is {of_each} of these {len(points)} problems."
    if math.isinf(ceilings.crossing_per_s):
        return f"{said} Exchange between the threads of an SM was not measured and is left out."
    share = (parts(points, ceilings)["exchange"] / floor_us(points, ceilings)).max()
    return f"{said} Exchange between the threads of an SM takes {100 * share:.0f} % of the floor at most."


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
    compute, term = _compute(each)
    largest = each[["launch", "memory"]].assign(compute=compute).idxmax(axis=1)
    return largest.where(largest != "compute", term)
