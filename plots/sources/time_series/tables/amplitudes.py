"""Outputs that variants in tf32 and half precision lose, by the amplitude of the samples (series-amplitudes)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from plots import real, style, tidy

COMMAND = "python3 -m experiments.inputs.amplitudes"
NONE = f"Lost outputs by amplitude are not known in this set ({{}}). `{COMMAND}` counts them."
TITLE = "Lost outputs by amplitude of the samples"
PART_OF = ("time_series", 2)


def table(results: tidy.ResultSet) -> pd.DataFrame | str:
    """A line per variant and precision with a column for each amplitude: lost outputs of all; or why it is not known."""
    data = real.load(results.folder, real.AMPLITUDES)
    if isinstance(data, str):
        return data
    lines = []
    for (variant, precision), own in data.rows.groupby(["variant", "precision"], sort=True):
        cells = {
            f"{one['amplitude']:g}": f"{100 * one['lost'] / one['outputs']:.3g} %" if one["lost"] else "0"
            for _, one in own.sort_values("amplitude").iterrows()
        }
        lines.append({"Variant": style.label(variant, precision), "Class": precision, **cells})
    return pd.DataFrame(lines)


def chapter_parts(results: tidy.ResultSet) -> tuple[list[str], list[tuple[str, Any, bool]]]:
    """Notes and tables for the chapter on time series."""
    found = table(results)
    if isinstance(found, str):
        return [NONE.format(found)], []
    return [], [(TITLE, found, False)]
