"""Best variant and parameters per form, count and size, with its margin and honest ties.

Two accountings, never mixed: `compute` (the plan is kept between calls) and `compute + plan` (one
call, one plan). Only verified (`passed`) times take part.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from plots import metrics, style
from plots.metrics import MICRO, si_time
from plots.tidy import CONDITION, PROBLEM, best_parameters, form_order

ACCOUNTINGS: dict[str, tuple[str, Callable[[pd.DataFrame], pd.Series]]] = {
    "compute": ("plan kept between calls", metrics.seconds),
    "compute + plan": ("every call plans anew", metrics.seconds_with_plan),
}
RELATIVE_NOISE = 0.01
SPREADS = 2.0
CELL = [*PROBLEM, *CONDITION]
COLUMNS = [
    "accounting", *CELL, "counts", "size", "best", "params", "time_us", "sd_us", "n", "tied_with",
    "runner_up", "runner_up_params", "runner_up_us", "margin", "is_tie", "contenders",
]  # fmt: skip
USUAL = {"window": "full", "mode": "stream", "input": "uniform", "precision": "fp32"}


def noise_us(first: pd.Series, second: pd.Series) -> float:
    """Largest difference of two mean times (us) that is taken for noise: twice the combined
    standard error of the means, and at least 1 % of the faster. An unknown SD (n = 1) counts 0."""
    errors = [
        (row["sd_us"] / math.sqrt(row["n"])) if row["n"] > 1 and row["sd_us"] > 0 else 0.0
        for row in (first, second)
    ]
    faster = min(first["time_us"], second["time_us"])
    return max(SPREADS * math.hypot(*errors), RELATIVE_NOISE * faster)


def best_table(points: pd.DataFrame) -> pd.DataFrame:
    """One line per accounting and cell (problem x mode x input x precision); see COLUMNS.

    `margin` is runner-up time / best time. The runner-up is the best other variant; variants within
    noise of the best are ties: `is_tie`, all named in `tied_with` (joined by `;`, best first).
    Without any plan in the set the second accounting would repeat the first and is left out, and so
    are cells in which no transform was measured although its form has some (`left_out` names them).
    """
    passed = points[points["outcome"] == "passed"]
    mask = undecided(passed)
    cells = passed[mask].drop_duplicates(CELL)
    passed = passed[~mask]
    records = []
    for accounting, (_, time_of) in ACCOUNTINGS.items():
        if accounting != "compute" and not (passed["plan_us"] > 0).any():
            continue
        timed = passed.assign(time_us=time_of(passed) / MICRO)
        best = best_parameters(timed, timed["time_us"])
        for values, cell in best.groupby(CELL, sort=False):
            records.append({"accounting": accounting, **dict(zip(CELL, values)), **_judge(cell)})
    table = pd.DataFrame.from_records(records, columns=COLUMNS)
    order = {name: place for place, name in enumerate(ACCOUNTINGS)}
    forms = table["form"].map(form_order)
    side = (table["left_rows"] * table["left_cols"] * table["right_rows"] * table["right_cols"])
    keys = table.assign(_a=table["accounting"].map(order), _f=forms, _s=side.astype(float))
    by = ["_a", "_f", "lefts", "rights", *CONDITION, "window", "_s", "size"]
    table = table.loc[keys.sort_values(by, kind="stable").index].reset_index(drop=True)
    table.attrs["undecided"] = [
        f"{cell['form']} {cell['counts']} {cell['size']}" for _, cell in cells.iterrows()
    ]
    return table


def undecided(passed: pd.DataFrame) -> pd.Series:
    """Mask of the points of cells without a transform, in forms that have some: whatever is fastest
    there, the one rival that overtakes with size was not asked."""
    names = zip(passed["variant"], passed["family"])
    transform = pd.Series([style.is_transform(*name) for name in names], passed.index, dtype=bool)
    has = transform.groupby([passed[name] for name in CELL]).transform("any")
    return transform.groupby(passed["form"]).transform("any") & ~has


def left_out(table: pd.DataFrame) -> list[str]:
    """One sentence about the cells that the table leaves out, if there are any."""
    cells = table.attrs.get("undecided", [])
    return [f"Not decided, since no transform was measured there: {', '.join(cells)}."] if cells else []


def _judge(cell: pd.DataFrame) -> dict[str, object]:
    """Winner, ties and runner-up among the variants of one cell (one line each)."""
    ranked = cell.sort_values(["time_us", "variant"], kind="stable")
    first = ranked.iloc[0]
    rest = [row for _, row in ranked.iloc[1:].iterrows()]
    tied = [r["variant"] for r in rest if r["time_us"] - first["time_us"] <= noise_us(first, r)]
    second = rest[0] if rest else None
    return {
        "counts": first["counts"],
        "size": first["size"],
        "best": first["variant"],
        "params": first["params"],
        "time_us": first["time_us"],
        "sd_us": first["sd_us"],
        "n": first["n"],
        "tied_with": ";".join(tied),
        "runner_up": "" if second is None else second["variant"],
        "runner_up_params": "" if second is None else second["params"],
        "runner_up_us": math.nan if second is None else second["time_us"],
        "margin": math.nan if second is None else second["time_us"] / first["time_us"],
        "is_tie": bool(tied),
        "contenders": len(ranked),
    }


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it (text cells). Window, mode, input and precision have a column
    only where something unusual occurs. Expects lines of one accounting."""
    shown = pd.DataFrame(
        {
            "Form": table["form"],
            "Matrices": table["counts"],
            "Size": table["size"],
        }
    )
    for name, usual in USUAL.items():
        if (table[name] != usual).any():
            shown[name.capitalize()] = table[name]
    shown["Best variant"] = [_names(row) for _, row in table.iterrows()]
    shown["Parameters"] = [text.replace(";", ", ") or "–" for text in table["params"]]
    shown["Time"] = [si_time(time * MICRO) for time in table["time_us"]]
    shown["Runner-up"] = [style.label(name) if name else "–" for name in table["runner_up"]]
    shown["Margin"] = [_margin(row) for _, row in table.iterrows()]
    return shown


def winners(row: pd.Series) -> list[str]:
    """Labels of the winner and of all that tie with it."""
    tied = [name for name in str(row["tied_with"]).split(";") if name]
    return [style.label(name) for name in [row["best"], *tied]]


def _names(row: pd.Series) -> str:
    return " = ".join(winners(row))


def _margin(row: pd.Series) -> str:
    if row["is_tie"]:
        return "tie"
    return "–" if math.isnan(row["margin"]) else f"{row['margin']:.2f}x"


def overview(table: pd.DataFrame, least: int = 1) -> pd.DataFrame:
    """Winners only, lines form and count, columns size: the paper's Table 1. One accounting and the
    usual window, mode and input; of several precisions fp32. Sizes with fewer than `least` cells (in
    a small table: than half of them), and lines without a cell, are left out."""
    usual = table
    for name, value in USUAL.items():
        usual = usual[usual[name] == value]
    sizes = list(dict.fromkeys(usual.assign(
        area=(usual["left_rows"] * usual["left_cols"]).astype(float)
    ).sort_values(["area", "size"])["size"]))  # fmt: skip
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for _, row in usual.iterrows():
        cell = f"{_names(row)} {si_time(row['time_us'] * MICRO)}"
        lines.setdefault((row["form"], row["counts"]), {})[row["size"]] = cell
    shown = [
        {"Form": form, "Matrices": counts, **{size: cells.get(size, "") for size in sizes}}
        for (form, counts), cells in lines.items()
    ]
    wide = pd.DataFrame(shown, columns=["Form", "Matrices", *sizes])
    least = min(least, (len(wide) + 1) // 2)
    kept = [size for size in sizes if (wide[size] != "").sum() >= least]
    return wide.loc[(wide[kept] != "").any(axis=1), ["Form", "Matrices", *kept]]


def present_accountings(table: pd.DataFrame) -> list[str]:
    """Accountings of a table, in order."""
    return [name for name in ACCOUNTINGS if (table["accounting"] == name).any()]


def to_markdown(table: pd.DataFrame) -> str:
    """Markdown: a heading and a table per accounting, and the cells that were left out."""
    parts = ["# Best algorithm\n"]
    for name in present_accountings(table):
        shown = readable(table[table["accounting"] == name])
        parts += [f"## {name.capitalize()} ({ACCOUNTINGS[name][0]})\n", markdown(shown)]
    if len(parts) == 1:
        parts.append("No verified time in this set.\n")
    parts += [f"{line}\n" for line in left_out(table)]
    return "\n".join(parts)


def markdown(shown: pd.DataFrame) -> str:
    """A frame of text cells as a Markdown table."""
    lines = [list(map(str, shown.columns)), ["---"] * len(shown.columns)]
    lines += [[str(cell).replace("|", "\\|") for cell in row] for row in shown.to_numpy()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def to_csv(table: pd.DataFrame) -> str:
    """CSV of all columns; times in microseconds, six significant digits."""
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")


_TEX = {
    "\\": r"\textbackslash{}", "_": r"\_", "&": r"\&", "%": r"\%", "#": r"\#", "$": r"\$",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "µ": r"$\mu$", "∞": r"$\infty$", "→": r"$\rightarrow$", "–": "--", "=": "=", "<": r"$<$", ">": r"$>$",
}  # fmt: skip


def tex_escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_TEX.get(letter, letter) for letter in str(text))


def to_tex(table: pd.DataFrame) -> str:
    """LaTeX: a complete tabular per accounting, no package needed."""
    parts = []
    for name in present_accountings(table):
        shown = readable(table[table["accounting"] == name])
        aligned = "".join("r" if c in ("Time", "Margin") else "l" for c in shown.columns)
        rows = [[tex_escape(c) for c in shown.columns]]
        rows += [[tex_escape(cell) for cell in row] for row in shown.to_numpy()]
        text = [" & ".join(row) + r" \\" for row in rows]
        body = "\n".join([r"\hline", text[0], r"\hline", *text[1:], r"\hline"])
        head = f"% {name}: {ACCOUNTINGS[name][0]}"
        parts.append(f"{head}\n\\begin{{tabular}}{{{aligned}}}\n{body}\n\\end{{tabular}}\n")
    return "\n".join(parts) or "% No verified time in this set.\n"
