"""What auto costs: the time of its choice over that of the fastest point measured, per problem.

    python3 -m plots.tables.regret KEY                       on the problems of the experiment that feeds this table
    python3 -m plots.tables.regret KEY --leave-one-size-out  on every problem of the set, rows of its size set aside

The choice is made again from the set's other rows: those of judged problems are set aside, whatever measured them.
"""

import math
import sys
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from plots import style, tidy
from plots.metrics import geometric_mean
from plots.sets import loaded
from plots.tables.table import FORM, MISSING, PARAMETERS, TIME, Grid, Page, Table, duration, parameters, readable
from plots.tables.text import markdown
from xcorr.choice import auto
from xcorr.choice.table import Point, Source, Times
from xcorr.errors import Parser, command
from xcorr.problem import Problem

TARGET_MEAN, TARGET_WORST = 1.15, 1.6
COLUMNS = "form counts size window variant params time_us best best_params best_us regret why".split()
SHOWN = (
    FORM,
    ("Matrices", "counts"),
    ("Size", "size"),
    ("auto", "variant", lambda name: style.label(name) if name else MISSING),
    *(PARAMETERS, TIME),
    ("Best", "best", style.label),
    ("Best parameters", "best_params", parameters),
    ("Best time", "best_us", duration),
    ("Regret", "regret", lambda value: "not measured" if math.isnan(value) else f"{value:.2f}"),
    ("Why", "why"),
)


def times_of(points: pd.DataFrame) -> dict[Problem, dict[Point, float]]:
    """Mean times of the points that passed in the usual mode, input and precision, by problem."""
    usual = tidy.passed(points, mode="stream", precision="fp32", input="uniform")
    found: dict[Problem, dict[Point, float]] = {}
    for values in usual[[*tidy.PROBLEM, "variant", "params", "compute_us"]].itertuples(index=False):
        *cells, variant, params, us = values
        found.setdefault(Problem.of_cells(*cells), {})[variant, params] = float(us)
    return found


def table(results: tidy.ResultSet) -> pd.DataFrame:
    """One line per judged problem; see COLUMNS. `regret` is NaN where the choice itself was not measured."""
    judged = times_of(results.feeding("regret"))
    known = {problem: found for problem, found in times_of(results.points).items() if problem not in judged}
    return _table(judged, dict.fromkeys(judged, known), refused(results.rows))


def leave_one_size_out(results: tidy.ResultSet) -> pd.DataFrame:
    """The same for every problem of the set, from the problems of other sizes."""
    everything = times_of(results.points)
    known: dict[Problem, Times] = {
        judged: {
            problem: found
            for problem, found in everything.items()
            if (problem.left, problem.right) != (judged.left, judged.right)
        }
        for judged in everything
    }
    return _table(everything, known, refused(results.rows))


def refused(rows: pd.DataFrame) -> set[tuple[Any, ...]]:
    """(problem's columns, variant, params) that the program did not compute: auto would have been told so."""
    names = [*tidy.PROBLEM, "variant", "params"]
    return set(rows.loc[~rows["outcome"].isin(["passed", "published"]), names].itertuples(index=False, name=None))


def _why_not(problem: Problem, measured: Container[Point], not_run: set[tuple[Any, ...]], point: Point) -> str:
    """Of a point that was refused, not measured; "" of any other."""
    place = (*problem.cells[: len(tidy.PROBLEM)], *point)
    return "not run" if point not in measured and place in not_run else ""


def _table(judged: Times, known: Mapping[Problem, Times], not_run: set[tuple[Any, ...]]) -> pd.DataFrame:
    lines = []
    for problem, measured in judged.items():
        choice = auto.pick(problem, Source("this set", known[problem]), partial(_why_not, problem, measured, not_run))
        best = min(measured, key=lambda one: (measured[one], one))
        line: dict[str, Any] = {
            "form": problem.form,
            "counts": f"{problem.lefts}-to-{problem.rights}",
            "window": problem.window,
            "size": tidy.size_label(*problem.left, *problem.right),
            "best": best[0],
            "best_params": best[1],
            "best_us": measured[best],
            "variant": "",
            "params": "",
            "time_us": math.nan,
            "why": "nothing was measured",
        }
        if choice:
            us = measured.get((choice.variant, choice.params), math.nan)
            line |= {"variant": choice.variant, "params": choice.params, "time_us": us, "why": choice.why}
        lines.append(line | {"regret": line["time_us"] / line["best_us"], "_work": problem.fmas})
    frame = pd.DataFrame(lines, columns=[*COLUMNS, "_work"])
    return tidy.ordered(frame, ["form", "counts", "_work", "size"])[COLUMNS].reset_index(drop=True)


def summary(lines: pd.DataFrame) -> str:
    """Geometric mean and worst, per form and in all, against their targets, in one paragraph."""
    known = lines[lines["regret"].notna()]
    if known.empty:
        return "No choice of auto was measured in this set."

    def said(own: pd.DataFrame) -> str:
        return f"{geometric_mean(own['regret']):.3f} and {own['regret'].max():.2f}"

    forms = "; ".join(f"{form} {said(own)}" for form, own in known.groupby("form", sort=False))
    missing = len(lines) - len(known)
    left_out = f" {missing} choices were not measured and are not in these numbers." if missing else ""
    return (
        f"Geometric mean and worst regret of {len(known)} problems: {said(known)} "
        f"(targets: {TARGET_MEAN} and {TARGET_WORST}). By form: {forms}.{left_out}"
    )


def page(results: tidy.ResultSet) -> Page | None:
    lines = table(results)
    return Page([summary(lines), Grid(lines, SHOWN, file="regret")]) if len(lines) else None


TABLE = Table("regret", "Regret of auto", page)


def run(argv: Sequence[str]) -> int:
    """The command; raises UserError. Exit code 1 when a target is missed or a choice was not measured."""
    made = Parser(prog="python3 -m plots.tables.regret", description=__doc__)
    made.add_argument("key", nargs="?", metavar="machine-key", help="set (default: every published one)")
    made.add_argument("--local", action="store_true", help="a local set, even where a published one exists")
    made.add_argument("--leave-one-size-out", action="store_true", help="judge every problem of the set")
    made.add_results()
    options = made.parse_args(argv)
    missed = False
    for results in loaded(options.results, [options.key] if options.key else [], options.local):
        lines = leave_one_size_out(results) if options.leave_one_size_out else table(results)
        if len(lines):
            print(markdown(readable(lines, SHOWN)))
        print(f"{results.key}: {summary(lines)}")
        regrets = lines["regret"]
        within = regrets.max() <= TARGET_WORST and geometric_mean(regrets) <= TARGET_MEAN
        missed |= not (len(lines) and regrets.notna().all() and within)
    return int(missed)


main = partial(command, run)  # every mistake of the user is one line

if __name__ == "__main__":
    sys.exit(main())
