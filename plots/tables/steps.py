"""What each step of ours brought: the time of a variant as its source has it over that of the variant which took the step.

The pairs are data: `[[steps]]` in baselines.toml of the sources. Of both variants the fastest point of a problem counts, if both
points are of one block: blocks are measured on one card within minutes, and other rows may be of different cards. A pair of a
problem whose points are of different blocks, or of none, is left out and said.
"""

from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

import pandas as pd

from experiments import folders
from plots import noise, style, tidy
from plots.metrics import geometric_mean
from plots.tables.table import FORM, Grid, Page, Table
from plots.tables.text import csv
from plots.tidy import PROBLEM, USUAL, ResultSet
from xcorr.errors import UserError, choose

ABOUT = (
    "A variant as its source has it beside the variant that took a step of ours: time of the first over time of the second, each with "
    "its fastest parameters on the problem, both of one block. Above 1 the step pays. The mean is geometric, over the problems of a form."
)
COLUMNS = [
    *"section faithful ours step".split(),
    *(*PROBLEM, "counts", "size", "fields"),
    *"faithful_params faithful_us ours_params ours_us block ratio".split(),
]
SUMMARY = "section faithful ours step form problems mean least least_at most most_at".split()
CONDITIONS = {name: value for name, value in USUAL.items() if name != "window"}
Apart = list[tuple["Step", int]]


@dataclass(frozen=True)
class Step:
    """A pair of variants: `faithful` has what the source says in `section`, `ours` took the `step`."""

    faithful: str
    ours: str
    step: str
    section: str


@lru_cache
def steps(folder: Path = folders.FOLDER) -> tuple[Step, ...]:
    """The steps of all sources. UserError naming the file, the pair and the key that is wrong."""
    names, found = [one.name for one in fields(Step)], []
    for path, raw in folders.parts("baselines", folder):
        for one in raw.get("steps", []):
            where = f"{path.parent.name}/{path.name}: step {one.get('faithful', '?')} to {one.get('ours', '?')}"
            choose(f"{where}: key", one, names)
            if absent := [name for name in names if not one.get(name)]:
                raise UserError(f"{where}: key {absent[0]}: missing; give a text")
            found.append(Step(**one))
    return tuple(found)


def with_faithful(points: pd.DataFrame) -> pd.DataFrame:
    """The points of an imported set, once more under the name of the variant that the source has: they are of its own program,
    and are imported under the name of ours."""
    copies = [points[points["variant"] == one.ours].assign(variant=one.faithful) for one in steps()]
    return pd.concat([points, *copies], ignore_index=True)


def compared(results: ResultSet, folder: Path = folders.FOLDER) -> tuple[pd.DataFrame, Apart]:
    """A line per step and problem (COLUMNS), and of each step how many problems have points of both that are not of one block."""
    points = tidy.passed(tidy.joined([results.points, results.with_fields]), **CONDITIONS)
    by, lines, apart = [*PROBLEM, "fields"], [], []
    for step in steps(folder):
        both = _fastest(points, step.faithful, by).join(
            _fastest(points, step.ours, by), lsuffix="_1", rsuffix="_2", how="inner"
        )
        left_out = 0
        for place, pair in both.iterrows():
            first, second = (pair.filter(regex=f"_{n}$").rename(lambda name: name[:-2]) for n in (1, 2))
            if not noise.of_one_block(first, second):
                left_out += 1
                continue
            line = {**step.__dict__, **dict(zip(by, place if isinstance(place, tuple) else (place,)))}
            line |= {"counts": first["counts"], "size": first["size"], "block": first["block"]}
            for name, one in (("faithful", first), ("ours", second)):
                line |= {f"{name}_params": one["params"], f"{name}_us": one["compute_us"]}
            lines.append({**line, "ratio": first["compute_us"] / second["compute_us"]})
        apart.append((step, left_out))
    return pd.DataFrame(lines, columns=COLUMNS), apart


def _fastest(points: pd.DataFrame, variant: str, by: list[str]) -> pd.DataFrame:
    """The fastest point of a variant on each problem, by problem."""
    own = tidy.select(points, variant=variant)
    own = own.reindex(columns=[*by, "params", "compute_us", "counts", "size", "block"])
    return own.sort_values(["compute_us", "params"], kind="stable").drop_duplicates(by).set_index(by)


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """A line per step and form (SUMMARY): the geometric mean of the ratios, and the ends of their range with the problems."""
    found = []
    for (section, faithful, ours, step, form), own in lines.groupby(SUMMARY[:5], sort=False):
        least, most = own.loc[own["ratio"].idxmin()], own.loc[own["ratio"].idxmax()]
        ends = (least["ratio"], _place(least), most["ratio"], _place(most))
        found.append((section, faithful, ours, step, form, len(own), geometric_mean(own["ratio"]), *ends))
    table = pd.DataFrame(found, columns=SUMMARY)
    pairs = {(one.faithful, one.ours): place for place, one in enumerate(steps())}
    order = [pairs.get(pair, len(pairs)) for pair in zip(table["faithful"], table["ours"])]
    return tidy.ordered(table, ["_pair", "form"], _pair=order).reset_index(drop=True)


def _place(line: pd.Series) -> str:
    return " ".join([line["counts"], line["size"], *tidy.unusual(line, "window")])


def unmeasured(results: ResultSet, apart: Apart) -> list[str]:
    """A sentence on the pairs of which the set has rows of one variant alone, or of a variant that took a further step, and one on
    problems that were left out."""
    frames = [one for one in (results.points, results.with_fields) if len(one)]
    there = {name for frame in frames for name in tidy.passed(frame)["variant"]}
    pairs = [(one.faithful, one.ours) for one, _ in apart]
    reached = set(there)
    for _ in pairs:  # as long as the longest chain of steps can be
        reached |= {faithful for faithful, ours in pairs if ours in reached}
    absent = [(faithful, ours) for faithful, ours in pairs if faithful not in there and ours in reached]
    absent += [(ours, faithful) for faithful, ours in pairs if ours not in reached and faithful in there]
    said = [f"`{name}` beside `{other}`" for name, other in absent]
    left = [f"`{one.faithful}` and `{one.ours}` {count}" for one, count in apart if count]
    notes = [f"Not measured in this set, so that the step has no number: {', '.join(said)}."] if said else []
    if left:
        notes.append(
            f"Left out, since the two points of the problem are not of one block (number of problems): {', '.join(left)}."
        )
    return notes


SHOWN = (
    ("Source", "section"),
    ("As its source has it", "faithful", style.label),
    ("Ours", "ours", style.label),
    ("Step", "step"),
    FORM,
    ("Problems", "problems"),
    ("Mean", "mean", "{:.2f}x".format),
    ("Least", "least least_at", "{:.2f}x ({})".format),
    ("Most", "most most_at", "{:.2f}x ({})".format),
)


def page(results: ResultSet) -> Page | None:
    lines, apart = compared(results)
    notes = unmeasured(results, apart)
    if lines.empty and not notes:
        return None
    return Page([ABOUT, Grid(summary(lines), SHOWN, TABLE.title), *notes], more={"steps.csv": csv(lines)})


TABLE = Table("steps", "What our steps brought", page, chapter=35)
