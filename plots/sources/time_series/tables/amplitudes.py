"""Outputs that variants in tf32 and half precision lose, by the amplitude of the samples (series-amplitudes)."""

import pandas as pd

from plots import real, style, tidy
from plots.tables.table import Grid, Page, Table


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


def page(results: tidy.ResultSet) -> Page:
    """A part of the chapter on time series; no file."""
    found = table(results)
    if isinstance(found, str):
        command = "python3 -m experiments.inputs.amplitudes"
        return Page(notes=[f"Lost outputs by amplitude are not known in this set ({found}). `{command}` counts them."])
    return Page(grids=[Grid(found, title=TABLE.title, open=False)])


TABLE = Table("amplitudes", "Lost outputs by amplitude of the samples", page, part_of=("time_series", 2))
