"""Best variant and parameters per form, count and size, with its margin and honest ties.

Two accountings, never mixed: `compute` (the plan is kept between calls) and `compute + plan` (one
call, one plan). Only verified (`passed`) times take part. Signs mark cells in which a family was not asked, and
cells in which the position of a peak was not the truth's; footnotes say which.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from plots import metrics, noise, style
from plots.metrics import MICRO, si_time
from plots.tables import coverage
from plots.tables.coverage import CELL
from plots.tables.table import MISSING, PARAMETERS, TIME, Grid, Page, Table
from plots.tables.table import readable as read
from plots.tables.text import csv, tabular, tex_escape
from plots.tidy import CONDITION, USUAL, ResultSet, best_parameters, ordered, passed, select, unusual
from xcorr.native.variants import is_transform

ACCOUNTINGS: dict[str, tuple[str, Callable[[pd.DataFrame], pd.Series]]] = {
    "compute": ("plan kept between calls", metrics.seconds),
    "compute + plan": ("every call plans anew", metrics.seconds_with_plan),
}
BETWEEN = {"compute": "between_us", "compute + plan": "between_plan_us"}  # spread between runs of an accounting's time
COLUMNS = [
    *("accounting", *CELL),
    *"counts size best params time_us sd_us n runs tied_with runner_up runner_up_params runner_up_us".split(),
    *"margin is_tie contenders missing_families peak_disagrees".split(),
]
UNASKED, PEAK = "†", "‡"
NAMES = 3  # of a tie that a cell of a table names


def of_set(results: ResultSet, name: str = "best_table") -> pd.DataFrame:
    """The table of the points that feed `name`, with what the other rows of the set say of families without a time."""
    return best_table(results.feeding(name), results.rows)


def best_table(points: pd.DataFrame, rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """One line per accounting and cell (problem x mode x input x precision); see COLUMNS. `margin` is runner-up time /
    best time. The runner-up is the best other variant; variants within noise of the best are ties (plots.noise):
    `is_tie`, all named in `tied_with` (joined by `;`, best first). `runs`: how many runs measured the winner's point.
    `missing_families`: those that were not asked (plots.coverage, which takes all `rows` of the set). `peak_disagrees`:
    variants whose largest output is not the truth's. Without any plan in the set the second accounting would repeat the
    first and is left out, and so are cells in which no transform was measured although its form has some (`left_out`
    names them)."""
    times = passed(points)
    mask = undecided(times)
    cells = times[mask].drop_duplicates(CELL)
    times = times[~mask]
    records = []
    for accounting, (_, time_of) in ACCOUNTINGS.items():
        if accounting != "compute" and not (times["plan_us"] > 0).any():
            continue
        timed = times.assign(time_us=time_of(times) / MICRO, between_us=times[BETWEEN[accounting]])
        absent = coverage.missing(timed, rows)
        best = best_parameters(timed, timed["time_us"])
        for values, cell in best.groupby(CELL, sort=False):
            unasked = ";".join(absent.get(values, []))
            place = {"accounting": accounting, **dict(zip(CELL, values))}
            records.append({**place, **_judge(cell), "missing_families": unasked})
    table = pd.DataFrame.from_records(records, columns=COLUMNS)
    side = table["left_rows"] * table["left_cols"] * table["right_rows"] * table["right_cols"]
    accountings = table["accounting"].map(list(ACCOUNTINGS).index)
    by = ["_place", "form", "lefts", "rights", *CONDITION, "window", "_side", "size"]
    table = ordered(table, by, _place=accountings, _side=side.astype(float)).reset_index(drop=True)
    table.attrs["undecided"] = [f"{cell['form']} {cell['counts']} {cell['size']}" for _, cell in cells.iterrows()]
    table.attrs["tie_rule"] = noise.rule(points)
    return table


def undecided(passed: pd.DataFrame) -> pd.Series:
    """Mask of the points of cells without a transform, in forms that have some: whatever is fastest
    there, the one rival that overtakes with size was not asked."""
    transform = passed["variant"].map(is_transform).astype(bool)
    has = transform.groupby([passed[name] for name in CELL]).transform("any")
    return transform.groupby(passed["form"]).transform("any") & ~has


def left_out(table: pd.DataFrame) -> list[str]:
    """One sentence about the cells that the table leaves out, if there are any."""
    cells = table.attrs.get("undecided", [])
    return [f"Not decided, since no transform was measured there: {', '.join(cells)}."] if cells else []


def footnotes(table: pd.DataFrame, places: bool = True) -> list[str]:
    """A line for each sign that the table has: what it means, and where it stands unless `places` is false. Expects
    lines of one accounting where it says so."""
    lines = []
    marked = table[table["missing_families"] != ""]
    if len(marked):
        where = f": {_places(marked, marked['missing_families'])}" if places else ""
        lines.append(f"{UNASKED} {coverage.RULE}{where}.")
    marked = table[table["peak_disagrees"] != ""]
    if len(marked):
        own = [row["best"] in row["peak_disagrees"].split(";") for _, row in marked.iterrows()]
        where = f": {_places(marked, ['the winner too' if one else '' for one in own])}" if places else ""
        lines.append(
            f"{PEAK} At least one variant has the largest output of a pair at another shift than the float64 reference; "
            f"every value is within its error bound{where}."
        )
    return lines


def _places(cells: pd.DataFrame, words: Iterable[str]) -> str:
    """`form counts, counts at sizes (words); ...` of lines of one accounting; those with the same sizes and words together."""
    sizes: dict[tuple[str, str, str, str], list[str]] = {}
    for (_, row), said in zip(cells.iterrows(), words):
        text = ", ".join(name.replace("_", "-") for name in said.split(";"))
        sizes.setdefault((row["form"], " ".join(unusual(row)), text, row["counts"]), []).append(row["size"])
    counts: dict[tuple[str, str, str, str], list[str]] = {}
    for (form, condition, text, count), own in sizes.items():
        counts.setdefault((form, condition, text, ", ".join(own)), []).append(count)
    return "; ".join(
        " ".join(filter(None, [form, ", ".join(own), condition, "at", where, text and f"({text})"]))
        for (form, condition, text, where), own in counts.items()
    )


def signs(row: pd.Series) -> str:
    """The signs of a cell, with a space before them; empty without any."""
    found = (UNASKED if row["missing_families"] else "") + (PEAK if row["peak_disagrees"] else "")
    return f" {found}" if found else ""


def _judge(cell: pd.DataFrame) -> dict[str, object]:
    """Winner, ties and runner-up among the variants of one cell (one line each)."""
    ranked = cell.sort_values(["time_us", "variant"], kind="stable")
    first = ranked.iloc[0]
    return {
        **noise.standing([row for _, row in ranked.iterrows()], list(ranked["variant"])),
        **first[["counts", "size", "sd_us", "n", "runs"]].to_dict(),
        "best": first["variant"],
        "contenders": len(ranked),
        "peak_disagrees": ";".join(ranked.loc[ranked["argmax_agrees"] == "false", "variant"]),
    }


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it (text cells). Window, mode, input and precision have a column
    only where something unusual occurs. Expects lines of one accounting."""
    shown = pd.DataFrame({"Form": table["form"], "Matrices": table["counts"], "Size": table["size"]})
    for name, usual in USUAL.items():
        if (table[name] != usual).any():
            shown[name.capitalize()] = table[name]
    shown["Best variant"] = [" = ".join(winners(row)) + signs(row) for _, row in table.iterrows()]
    shown[["Parameters", "Time"]] = read(table, (PARAMETERS, TIME)).to_numpy()
    shown["Runner-up"] = [style.label(name) if name else MISSING for name in table["runner_up"]]
    shown["Margin"] = [margin(row) for _, row in table.iterrows()]
    return shown


def winners(row: pd.Series) -> list[str]:
    """Labels of the winner and of those that tie with it; of many the first NAMES and how many more there are."""
    tied = [name for name in str(row["tied_with"]).split(";") if name]
    names = [style.label(name) for name in [row["best"], *tied]]
    return names if len(names) <= NAMES + 1 else [*names[:NAMES], f"{len(names) - NAMES} more"]


def margin(row: pd.Series, alone: str = MISSING) -> str:
    """Runner-up time over best time: `1.34x`, `tie`, or `alone` where there is no runner-up."""
    if row["is_tie"]:
        return "tie"
    return alone if math.isnan(row["margin"]) else f"{row['margin']:.2f}x"


def overview(table: pd.DataFrame, least: int = 1) -> pd.DataFrame:
    """Winners only, lines form and count, columns size: the paper's Table 1. One accounting and the
    usual window, mode and input; of several precisions fp32. Sizes with fewer than `least` cells (in
    a small table: than half of them), and lines without a cell, are left out."""
    usual = select(table, **USUAL)
    by_area = usual.assign(area=(usual["left_rows"] * usual["left_cols"]).astype(float)).sort_values(["area", "size"])
    sizes = list(by_area["size"].unique())
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for _, row in usual.iterrows():
        cell = f"{' = '.join(winners(row))} {si_time(row['time_us'] * MICRO)}{signs(row)}"
        lines.setdefault((row["form"], row["counts"]), {})[row["size"]] = cell
    shown = [
        {"Form": form, "Matrices": counts, **{size: cells.get(size, "") for size in sizes}}
        for (form, counts), cells in lines.items()
    ]
    wide = pd.DataFrame(shown, columns=["Form", "Matrices", *sizes])
    least = min(least, (len(wide) + 1) // 2)
    kept = [size for size in sizes if (wide[size] != "").sum() >= least]
    return wide.loc[(wide[kept] != "").any(axis=1), ["Form", "Matrices", *kept]]


def in_overview(table: pd.DataFrame, shown: pd.DataFrame) -> pd.DataFrame:
    """The lines of `table` (one accounting) whose cells `shown`, its overview, has."""
    usual, lines = select(table, **USUAL), set(zip(shown["Form"], shown["Matrices"]))
    usual = usual[usual["size"].isin(shown.columns)]
    return usual[np.array([one in lines for one in zip(usual["form"], usual["counts"])], dtype=bool)]


def present_accountings(table: pd.DataFrame) -> list[str]:
    """Accountings of a table, in order."""
    return [name for name in ACCOUNTINGS if (table["accounting"] == name).any()]


def rule(table: pd.DataFrame) -> list[str]:
    """One sentence about what a tie is, if the table has some."""
    return [table.attrs["tie_rule"]] if table["is_tie"].any() and "tie_rule" in table.attrs else []


def page(table: pd.DataFrame) -> Page:
    """What is said of the best_table of a set: a table per accounting, and the cells that were left out."""
    text: list[str | Grid] = []
    tex = []
    for name in present_accountings(table):
        own = table[table["accounting"] == name]
        shown, head = readable(own), ACCOUNTINGS[name][0]
        text += [f"## {name.capitalize()} ({head})", Grid(shown), *footnotes(own)]
        below = "".join(f"\n\\par {tex_escape(line)}" for line in footnotes(own))
        tex.append(f"% {name}: {head}\n{tabular(shown, ('Time', 'Margin'))}{below}\n")
    text = [*(text or ["No verified time in this set."]), *rule(table), *left_out(table)]
    more = {
        "best_algorithm.csv": csv(table),
        "best_algorithm.tex": "\n".join(tex) or "% No verified time in this set.\n",
    }
    return Page(text, more=more)


TABLE = Table("best_algorithm", "Best algorithm", lambda results: page(of_set(results)))
