"""Table 1 of the paper for any machine: the fastest class per form, count and size, by rule.

The rule is the paper's: of the optimised definition-based classes of a form and the transform with
its plan, the lowest wall time wins. Two more accountings: the plan kept between calls, and every
call with its plan and its transfers to and from the device. What the classes are, and what the paper
prints, is data: experiments/jpdc/baselines.toml. Only verified (`passed`) times take part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from experiments import folders
from plots import noise
from plots.metrics import MICRO, si_time
from plots.tables.claims.rows import Asked, asked
from plots.tables.selection import Choice, parse
from plots.tables.table import Grid, Page, Table
from plots.tables.text import csv, tabular
from plots.tidy import TRANSFERS, USUAL, ordered, select

CLASSES = ("paper", "ours")  # the paper's contenders, and those with our variants
INFINITY = "∞"
UNMEASURED = "–"
COLUMNS = [
    *"accounting form counts lefts rights side size winner tied_with variant params time_us".split(),
    *"runner_up runner_up_us margin is_tie transfers_us absent unasked".split(),
]
RULE = (
    "A cell has a winner where the transform and at least one definition-based class have verified times. "
    f"{UNMEASURED}: not measured. In parentheses: classes that tie, since their difference is within the noise. "
    f"{INFINITY}: not measured but certain, because the work of the definition grows with s^4 and that of the transform "
    "with s^2 log s."
)


@dataclass(frozen=True)
class Accounting:
    """What a call costs beside its computation."""

    meaning: str
    plan: bool
    transfers: bool


ACCOUNTINGS = {
    "paper": Accounting("the paper's rule: a transform plans at every call", True, False),
    "plan amortised": Accounting("plans are kept between calls", False, False),
    "with transfers": Accounting(
        "a plan, and the problem's transfers (their median over all variants, as all move the same "
        "arrays), at every call",
        True,
        True,
    ),
}


@dataclass(frozen=True)
class Layout:
    """The data of Table 1: contenders are classes (letters) by form, those of the paper, and `ours`, with our variants in place of
    the paper's; printed orders by line."""

    sizes: list[int]
    words: dict[str, str]
    transform: str
    kept: str
    contenders: dict[str, dict[str, Choice]]
    ours: dict[str, dict[str, Choice]]
    printed: dict[tuple[str, str], list[str]]

    def word(self, letter: str, accounting: str) -> str:
        """The class as the paper prints it; the transform has another word where plans are kept."""
        kept = letter == self.transform and not ACCOUNTINGS[accounting].plan
        return self.kept if kept else self.words[letter]


@lru_cache
def layout() -> Layout:
    """Reads experiments/jpdc/baselines.toml. UserError when it is damaged."""
    raw = folders.part("jpdc", "baselines")["table1"]
    contenders = {
        form: {letter: parse(one, f"table1: {form}.{letter}") for letter, one in own.items()}
        for form, own in raw["contenders"].items()
    }
    ours = {
        form: {
            **own,
            **{
                letter: parse(one, f"table1: ours.{form}.{letter}") for letter, one in raw["ours"].get(form, {}).items()
            },
        }
        for form, own in contenders.items()
    }
    return Layout(
        list(raw["sizes"]),
        dict(raw["words"]),
        raw["transform"]["class"],
        raw["transform"]["kept"],
        contenders,
        ours,
        {(line["form"], line["counts"]): list(line["printed"]) for line in raw["lines"]},
    )


def cells(
    points: pd.DataFrame, outcome: str = "passed", asked: Asked | None = None, classes: str = "paper"
) -> pd.DataFrame:
    """One line per accounting and decided cell; see COLUMNS. Square sizes only; the window, mode, input and precision
    of tidy.USUAL. `classes`: one of CLASSES. `winner`, `tied_with` (joined by `;`), `absent` (classes without a time) and
    `unasked` (those of them without a row that says why, by `asked`; none where that is not known) are letters; times in
    microseconds are whole: with plan and transfers where the accounting has them."""
    data = layout()
    contenders = {"paper": data.contenders, "ours": data.ours}[classes]
    usual = select(points, outcome=outcome, **USUAL)
    usual = usual[usual["size"] == [f"{n}x{n}" for n in usual["left_rows"]]]
    records = []
    keys = ["form", "counts", "lefts", "rights", "left_rows", "size"]
    for values, cell in usual.groupby(keys, sort=True):
        named = contenders.get(values[0], {})
        own = {letter: cell[choice.mask(cell)] for letter, choice in named.items()}
        there = (
            None if asked is None else asked.get((values[0], values[1], int(values[4]), USUAL["mode"], USUAL["input"]))
        )
        moved = cell[TRANSFERS].sum(axis=1, min_count=len(TRANSFERS)).dropna().median()
        for name, accounting in ACCOUNTINGS.items():
            best = {}
            for letter, contender in own.items():
                times = contender["compute_us"].to_numpy()
                if accounting.transfers:
                    times = times + moved
                if accounting.plan and letter == data.transform:
                    times = times + contender["plan_us"].to_numpy()
                if np.isfinite(times).any():
                    fastest = int(np.nanargmin(times))
                    point = contender.iloc[fastest].copy()
                    point["time_us"] = times[fastest]
                    if accounting.plan and letter == data.transform:
                        point["between_us"] = point["between_plan_us"]
                    best[letter] = point
            if data.transform in best and len(best) > 1:
                place = dict(zip(["form", "counts", "lefts", "rights", "side", "size"], values))
                absent = [letter for letter in named if letter not in best]
                unasked = [one for one in absent if there is not None and there.isdisjoint(named[one].variants)]
                moves = moved if accounting.transfers else float("nan")
                own_line = {"accounting": name, "transfers_us": moves}
                own_line |= {"absent": ";".join(absent), "unasked": ";".join(unasked)}
                records.append({**own_line, **place, **_judge(best, list(data.words))})
    table = pd.DataFrame.from_records(records, columns=COLUMNS)
    place = table["accounting"].map(list(ACCOUNTINGS).index)
    return ordered(table, ["_place", "form", "lefts", "rights", "side"], _place=place).reset_index(drop=True)


def _judge(best: dict[str, pd.Series], letters: list[str]) -> dict[str, Any]:
    """Winner, ties and runner-up among the best points of the classes of a cell (at least two)."""
    ranked = sorted(best, key=lambda letter: (best[letter]["time_us"], letters.index(letter)))
    said = noise.standing([best[letter] for letter in ranked], ranked)
    return {**said, "winner": ranked[0], "variant": best[ranked[0]]["variant"]}


def winners(row: pd.Series) -> list[str]:
    """Letters of the winner and of the classes that tie with it."""
    return [row["winner"], *_letters(row["tied_with"])]


def _letters(joined: str) -> list[str]:
    return [letter for letter in str(joined).split(";") if letter]


def compare(line: pd.DataFrame, printed: Sequence[str]) -> str:
    """`same`, `same where measured`, or `differs`: can the cells of a line (one accounting), the
    transform at infinity added, be read as the printed order? A tie may be read either way. In
    the second case only cells of `sizes` that were not measured, or classes that were not asked, could complete the order."""
    data = layout()
    if line.empty:
        return "not measured"
    measured = {int(row["side"]): {*winners(row), *_letters(row["unasked"])} for _, row in line.iterrows()}
    complete = not line["unasked"].any()
    if complete and _reads_as([measured[size] for size in sorted(measured)] + [{data.transform}], printed):
        return "same"
    # A class may also lie between two measured sizes: as if all were open.
    opened = [measured.get(size, set(printed)) for size in sorted({*measured, *data.sizes})]
    return "same where measured" if _reads_as([*opened, {data.transform}], printed) else "differs"


def _reads_as(allowed: list[set[str]], printed: Sequence[str]) -> bool:
    """Whether one letter can be taken of each set so that, repetitions joined, `printed` results."""
    places = {0} if allowed[0] & {printed[0]} else set()
    for one in allowed[1:]:
        places = {
            next_ for place in places for next_ in (place, place + 1) if next_ < len(printed) and printed[next_] in one
        }
    return len(printed) - 1 in places


def order_here(line: pd.DataFrame) -> list[str]:
    """The winners of a line from left to right, repetitions joined, the transform at infinity last."""
    data = layout()
    letters = [*line.sort_values("side")["winner"], data.transform] if len(line) else []
    return [one for place, one in enumerate(letters) if place == 0 or letters[place - 1] != one]


def paper_shaped(table: pd.DataFrame, accounting: str) -> pd.DataFrame:
    """The paper's lines and columns as text; in its own accounting beside the printed order."""
    data = layout()
    own = table[table["accounting"] == accounting]
    shown = []
    for (form, counts), printed in data.printed.items():
        line = own[(own["form"] == form) & (own["counts"] == counts)]
        found = {"Matrices": counts, **_texts(line, accounting, data.sizes)}
        if accounting == "paper":
            found["Here"] = _arrows(order_here(line), accounting) or UNMEASURED
            found["Printed"] = _arrows(printed, accounting)
            verdict = compare(line, printed)
            found["Order"] = f"**{verdict}**" if verdict == "differs" else verdict
        shown.append(found)
    return pd.DataFrame(shown)


def extended(table: pd.DataFrame, accounting: str) -> pd.DataFrame:
    """Every decided form, count and size as text; empty without any."""
    own = table[table["accounting"] == accounting]
    sizes = sorted({int(side) for side in own["side"]})
    lines = own.groupby(["form", "counts"], sort=False)
    return pd.DataFrame(
        [{"Form": form, "Matrices": counts, **_texts(line, accounting, sizes)} for (form, counts), line in lines]
    )


def _texts(line: pd.DataFrame, accounting: str, sizes: list[int]) -> dict[str, str]:
    data = layout()
    found = dict.fromkeys([f"{size}x{size}" for size in sizes] + [INFINITY], UNMEASURED)
    for _, row in line.iterrows():
        words = " = ".join(data.word(letter, accounting) for letter in winners(row))
        if row["size"] in found:
            found[row["size"]] = f"({words})" if row["is_tie"] else words
    if len(line):
        found[INFINITY] = data.word(data.transform, accounting)
    return found


def _arrows(letters: Sequence[str], accounting: str) -> str:
    return " → ".join(layout().word(letter, accounting) for letter in letters)


def incomplete(table: pd.DataFrame, accounting: str) -> str:
    """A sentence on cells that were decided although a class has no time; empty without any."""
    own = table[(table["accounting"] == accounting) & (table["absent"] != "")]
    named = [
        f"{row['counts']} {row['size']} ({', '.join(layout().words[one] for one in row['absent'].split(';'))})"
        for _, row in own.iterrows()
    ]
    return f"Decided without a class that has no time there: {', '.join(named)}." if named else ""


def _share(own: pd.DataFrame) -> str:
    part = own["transfers_us"] / own["time_us"]
    most = own.loc[part.idxmax()]
    return (
        f"Transfers are {100 * part.median():.0f} % of the winner's time at the median cell, at most "
        f"{100 * part.max():.0f} % ({most['counts']}, {most['size']}: {si_time(most['transfers_us'] * MICRO)})."
    )


def page(table: pd.DataFrame) -> Page:
    """What is said of the `cells` of a set: per accounting the paper's shape, then everything that was measured."""
    if table.empty:
        nothing = "No cell of the paper's Table 1 is decided in this set: its algorithms were not measured here."
        files = {"table1.csv": csv(table), "table1.tex": "% No cell of Table 1 is decided in this set.\n"}
        return Page([RULE, "No cell of it is decided in this set."], [nothing], more=files)
    text: list[str | Grid] = [RULE]
    notes, grids, tex = [RULE], [], []
    for name, accounting in ACCOUNTINGS.items():
        title, own = f"{name.capitalize()}: {accounting.meaning}", table[table["accounting"] == name]
        text.append(f"## {name.capitalize()} ({accounting.meaning})")
        if own.empty:
            text.append("No cell is decided: its times were not measured.")
            continue
        paper = Grid(paper_shaped(table, name), title=title, open=name == "paper")
        every = Grid(extended(table, name), title=f"{title}; all sizes and counts", open=False)
        note = incomplete(table, name)
        text += [paper, note, "All measured sizes and counts:", every]
        text += [_share(own)] if accounting.transfers else []
        notes += [f"{name.capitalize()}. {note}"] if note else []
        grids += [paper, every]
        tex.append(f"% {name}: {accounting.meaning}\n{tabular(paper.lines.replace(r'[*][*]', '', regex=True))}\n")
    return Page(text, notes, grids, {"table1.csv": csv(table), "table1.tex": "\n".join(tex)})


TABLE = Table(
    "table1",
    "Table 1: the fastest class",
    lambda results: page(cells(results.points, asked=asked(results.rows))),
    chapter=20,
    heading="Table 1 of the paper",
)
