"""Transforms inside kernels: the vendor's and the called library's against the fastest of our own."""

from __future__ import annotations

import pandas as pd

from plots.figures import Drawing, Omitted, Result, _cells, _ratios
from plots.tidy import PROBLEM, ResultSet, best_parameters

ORDER = 85
TITLE = "Transforms inside kernels"
FAMILY, VENDORS = "fused_fft", "fused_fft_cufftdx"


def draw(results: ResultSet) -> list[Result]:
    """One grid: variants x problems, time over that of the fastest own variant of the family."""
    points = results.feeding("in_kernel")
    points = best_parameters(points[(points["outcome"] == "passed") & (points["mode"] == "stream")])
    own = points[(points["family"] == FAMILY) & (points["variant"] != VENDORS)]
    fastest = own.groupby(PROBLEM, as_index=False)["compute_us"].min()
    lines = points.merge(fastest.rename(columns={"compute_us": "own_us"}), on=PROBLEM)
    if lines.empty:
        reason = f"no variant of {FAMILY} measured (experiment in-kernel-transforms)"
        return [Omitted("in_kernel", reason, "beyond")]
    lines = lines.assign(ratio=lines["compute_us"] / lines["own_us"])
    return [
        Drawing(
            name="in_kernel",
            title=TITLE,
            caption=(
                "Time over that of the fastest of our own fused transforms on the same problem, best "
                f"parameters of each. {_verdict(lines)}"
            ),
            alt="Heat map: time of transforms over that of the fastest own one, variants by problems.",
            figure=_cells.draw([_ratios.panel(lines, "time / fastest own")], _ratios.ROW_IN, left=_ratios.LEFT_IN),
            section="beyond",
        )
    ]


def _verdict(lines: pd.DataFrame) -> str:
    vendors = lines[lines["variant"] == VENDORS]
    if vendors.empty:
        return "cuFFTDx was not built (its headers: option mathdx)."
    wins = int((vendors["ratio"] < 1).sum())
    return (
        f"cuFFTDx: geometric mean {_ratios.middle(vendors):.2f}x over {len(vendors)} problems, "
        f"faster on {wins}."
    )
