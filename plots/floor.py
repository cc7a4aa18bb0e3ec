"""The floor of a problem: what no call goes below that starts after the one before it has ended, from measured
ceilings.

A limit, not a model: dependency chains, synchronisation and imperfect balance are ignored. It is no lower bound for
launches that overlap: the launch part counts an empty launch that waits for the one before it.
"""

from __future__ import annotations

import math

import pandas as pd

from plots.ceilings import Ceilings
from plots.metrics import MICRO
from plots.tidy import PROBLEM
from xcorr.problem import COLUMNS, Problem

PARTS = ["launch", "memory", "direct", "fft"]
CAVEAT = (
    "Launches that overlap can be faster than the floor, because the floor counts an empty launch that waits for the one "
    "before it."
)


def fft_flops(problem: Problem) -> float:
    """FLOPs of the transform theorem: 2.5 A log2(A) per real transform of A = Ny Nx elements, for
    lefts + rights + pairs transforms, and 4 A per pair for the product of two half spectra.

    Per axis N is the least circular length in which no wanted shift wraps around, rounded up to
    even: of shifts a..b it is max(b + left, right - a), so 2h of a full window of two h x h.
    """
    (left, right), (sy, sx) = (problem.left, problem.right), problem.shifts
    area = math.prod(
        2 * math.ceil(max(shifts[-1] + left[axis], right[axis] - shifts[0]) / 2) for axis, shifts in enumerate((sy, sx))
    )
    transforms = problem.lefts + problem.rights + problem.pairs
    return transforms * 2.5 * area * math.log2(area) + 4.0 * area * problem.pairs


def parts(points: pd.DataFrame, ceilings: Ceilings) -> pd.DataFrame:
    """The terms of the floor in microseconds (columns PARTS), one line per tidy line.

    launch: an empty kernel launched in the point's mode (graph, else stream; more than one launch
    is nowhere needed); memory: compulsory bytes at the faster of fill and copy; direct: two FLOPs
    per useful FMA; fft: fft_flops(); both at the rate of an FP32 matrix product.
    """
    graph = points["mode"].eq("graph")
    launch = graph.map({True: ceilings.launch_graph_us, False: ceilings.launch_stream_us})
    transforms = [fft_flops(Problem.of_cells(*values)) for values in points[list(COLUMNS)].to_numpy().tolist()]
    return pd.DataFrame(
        {
            "launch": launch.astype(float),
            "memory": points["bytes"] / ceilings.bytes_per_s / MICRO,
            "direct": 2.0 * points["fmas"] / ceilings.fp32_product / MICRO,
            "fft": pd.Series(transforms, points.index, float) / ceilings.fp32_product / MICRO,
        },
        index=points.index,
        columns=PARTS,
    )


def floor_us(points: pd.DataFrame, ceilings: Ceilings) -> pd.Series:
    """Floor of each tidy line in microseconds: max(launch, memory, min(direct, fft))."""
    terms = parts(points, ceilings)
    return terms.assign(compute=terms[["direct", "fft"]].min(axis=1))[["launch", "memory", "compute"]].max(axis=1)


def below_launch(rows: pd.DataFrame) -> tuple[int, int]:
    """(points whose time is below that of the empty launch beside them, points with such a launch) of the verified
    rows of a set in mode stream; rows older than that column have none."""
    own = rows[(rows["outcome"] == "passed") & (rows["mode"] == "stream") & (rows["launch_us"] > 0)]
    point = [*PROBLEM, "variant", "params", "input", "precision", "experiment"]
    means = own.groupby(point)[["compute_us", "launch_us"]].mean()
    return int((means["compute_us"] < means["launch_us"]).sum()), len(means)


def bound_by(points: pd.DataFrame, ceilings: Ceilings) -> pd.Series:
    """Which term of PARTS is the floor of each tidy line."""
    terms = parts(points, ceilings)
    cheaper = terms[["direct", "fft"]].idxmin(axis=1)
    terms["compute"] = terms[["direct", "fft"]].min(axis=1)
    largest = terms[["launch", "memory", "compute"]].idxmax(axis=1)
    return largest.where(largest != "compute", cheaper)
