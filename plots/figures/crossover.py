"""Who wins where: a map of size x count per form, coloured by the winner, its margin as text."""

import pandas as pd
from matplotlib.patches import Patch

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _cells, _classes
from plots.figures._panels import FORM_TITLES
from plots.tables import best_table
from plots.tidy import USUAL, ResultSet, select
from xcorr.native.variants import is_transform

ORDER = 60
TITLE = "Crossover map"
ROW_IN = 0.52  # five lines of text
SUFFIXES = {"compute": "", "compute + plan": "_plan"}


def draw(results: ResultSet) -> list[Result]:
    """A map per accounting of best_table, whose judgement it shows."""
    points = results.feeding("crossover")
    table = select(best_table.of_set(results, "crossover"), **USUAL)
    if table.empty:
        return [Omitted("crossover", "no verified time in this set", "beyond")]
    families = dict(zip(points["variant"], points["family"]))
    return [_one(name, table[table["accounting"] == name], families) for name in best_table.present_accountings(table)]


def _one(accounting: str, table: pd.DataFrame, families: dict[str, str]) -> Drawing:
    meaning = best_table.ACCOUNTINGS[accounting][0]
    panels = [_panel(*group, families) for group in _cells.by_form(table)]
    legend: dict[str, object] = {}
    for variant in sorted(table["best"].unique(), key=lambda v: _classes.order(v, families[v])):
        name = _classes.class_label(variant, families[variant])
        legend[name] = Patch(facecolor=_colour(variant, families), edgecolor="none")
    if table["is_tie"].any():
        legend["tie (within noise)"] = Patch(facecolor="#bbbbbb", hatch="////", edgecolor="#ffffff", linewidth=0)
    wins = table["best"].map(style.label).value_counts()
    signs = "".join(f"{line} " for line in best_table.footnotes(table, places=False))  # where they stand is seen
    most = ", ".join(f"{name} {count}" for name, count in list(wins.items())[:4])
    return Drawing(
        name=f"crossover{SUFFIXES[accounting]}",
        title=f"Fastest variant, {accounting} ({meaning})",
        caption=(
            f"Fastest variant by form, number of matrices and size, {accounting} ({meaning}). Below its name stands how many "
            "times longer the best other variant takes, each with its best parameters. Hatched cells are ties: the "
            "difference is within the noise, and the table names all variants that tie. “Alone” means that nothing else was "
            f"measured. {signs}The heavy line is where a transform overtakes the definition. "
            f"Cells won: {most}."
        ),
        alt=f"Map of the fastest variant by form, number of matrices and size, {accounting}.",
        figure=_cells.draw(panels, ROW_IN, legend),
        section="beyond",
    )


def _colour(variant: str, families: dict[str, str]) -> str:
    """Hue of the winner's class. Transforms are darker, so that the border shows in grey too."""
    dark = is_transform(variant)
    hue = _classes.class_hue(variant, families[variant])
    return style.shaded(style.HUES[hue], 0.5 if dark else 0.72)


def _panel(
    form: str, counts: list[str], sizes: list[str], lines: pd.DataFrame, families: dict[str, str]
) -> _cells.Panel:
    cells, transforms = {}, {}
    for _, line in lines.iterrows():
        place = (line["counts"], line["size"])
        text = f"{style.label(line['best'])}\n{best_table.margin(line, 'alone')}{best_table.signs(line)}"
        hatch = "////" if line["is_tie"] else ""
        cells[place] = _cells.Cell(text, _colour(line["best"], families), hatch)
        transforms[place] = is_transform(line["best"])
    return _cells.Panel(FORM_TITLES.get(form, form), counts, sizes, cells, borders(counts, sizes, transforms))


def borders(
    rows: list[str], columns: list[str], flags: dict[tuple[str, str], bool]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Edges between measured neighbours of which one is flagged and the other is not; where cells
    between them were not measured, the edge is that of the right or lower one."""
    edges = []
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            here = flags.get((row, column))
            left = [flags[row, other] for other in columns[:x] if (row, other) in flags]
            above = [flags[other, column] for other in rows[:y] if (other, column) in flags]
            if here is not None and left and left[-1] != here:
                edges.append(((x, y), (x, y + 1)))
            if here is not None and above and above[-1] != here:
                edges.append(((x, y), (x + 1, y)))
    return edges
