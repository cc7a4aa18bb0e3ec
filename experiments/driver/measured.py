"""Makes tables of measured times for `auto` from the rows of a set (format: xcorr/choice/table.py)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.driver import store
from experiments.driver.run_records import read_runs
from experiments.driver.studies import without_studies
from xcorr.choice import table
from xcorr.choice.table import Point, Times
from xcorr.problem import COLUMNS as PROBLEM
from xcorr.problem import Problem

FACTS = ("backend", "compute_capability", "cores")


def times_of(rows: Iterable[store.Row]) -> dict[str, Times]:
    """By precision, the medians of all repetitions that passed in mode stream on uniform inputs. Rows of side
    experiments count only for points that no other experiment has."""
    usual = (row for row in without_studies(rows) if row["input"] == "uniform")
    times = store.medians(usual, ("precision", "variant", "params", *PROBLEM))
    found: dict[str, dict[Problem, dict[Point, float]]] = defaultdict(lambda: defaultdict(dict))
    for (precision, variant, params, *cells), us in times.items():
        found[precision][Problem.of_cells(*cells)][variant, params] = us
    return {precision: dict(times) for precision, times in found.items()}


def read(folder: Path, rows: list[store.Row] | None = None) -> dict[str, Any] | None:
    """A set as an entry of a table, with `times` as Times; None without a verified time. `rows`: its rows, if read."""
    rows = store.read_rows(folder) if rows is None else rows
    times = times_of(store.shown(folder, rows))
    if not times:
        return None
    runs = read_runs(folder)
    newest = runs[max(runs)] if runs else {}
    facts = newest.get("before") or newest.get("machine") or {}
    backend = next(row["backend"] for row in rows if row["outcome"] == "passed")
    known = {**facts, "backend": backend}
    head = {"machine_key": folder.name, **{name: known.get(name) for name in FACTS}}
    return {**head, "rows": table.stamp(folder), "times": times}


def text_of(sets: Iterable[Mapping[str, Any]]) -> str:
    """The text of a table with the entries of `read`."""
    return table.text_of([{**one, "times": table.digest(one["times"])} for one in sets])


def write(folder: Path, rows: list[store.Row] | None = None) -> Path | None:
    """Writes the table of a set beside its rows. Its path; None without a verified time. `rows`: as in read."""
    found = read(folder, rows)
    if found is None:
        return None
    path = folder / table.NAME
    store.write_atomic(path, text_of([found]).encode())
    return path
