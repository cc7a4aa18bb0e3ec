"""Writes the files with published times that `auto` and its experiment read.

    python3 -m experiments.published.auto_table              after publishing: results/auto_table.json, the table of each
                                                             published set and the points that auto-regret.toml measures
    python3 -m experiments.published.auto_table --check      only says whether they are up to date (exit code 1)
    python3 -m experiments.published.auto_table --add KEY    a local set that is not published yet counts as published
    python3 -m experiments.published.auto_table --local KEY  only the table of that local set, whose rows changed without a
                                                             run, as when they were copied here

For each published set and group of problems (form and fields) the shipped table keeps the fastest point of each of the
three fastest variants of every problem, with the times of these points on all problems of the group.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments.driver import measured, store
from experiments.driver.schema import FOLDER, Experiment, grid, parse
from xcorr.choice import table
from xcorr.choice.prediction import predict
from xcorr.choice.table import Point, Times
from xcorr.errors import Parser, UserError, command, nearest
from xcorr.files import load_toml
from xcorr.paths import RESULTS

REGRET = FOLDER / "beyond" / "auto-regret.toml"
POINTS = RESULTS / "auto_regret_points.json"
LEADERS = 3  # fastest variants of a problem in the shipped table
CLOSE = 2  # points of each variant in the experiment on regret
Sets = list[dict[str, Any]]  # as measured.read gives them


def leaders(times: Times) -> Times:
    """The times of the points that are among the LEADERS of a problem in their group."""
    kept: dict[str, set[Point]] = defaultdict(set)
    for problem, found in times.items():
        best: dict[str, Point] = {}
        for point in sorted(found, key=lambda one: (found[one], one)):
            best.setdefault(point[0], point)
        kept[table.group_of(problem)] |= set(list(best.values())[:LEADERS])
    return {
        problem: {point: us for point, us in found.items() if point in kept[table.group_of(problem)]}
        for problem, found in times.items()
    }


def shipped_text(sets: Sets) -> str:
    """results/auto_table.json."""
    kept = []
    for one in sorted(sets, key=lambda one: one["machine_key"]):
        times = {precision: leaders(own) for precision, own in one["times"].items()}
        kept.append({**{name: value for name, value in one.items() if name != "rows"}, "times": times})
    return measured.text_of(kept)


def regret_points(sets: Sets, path: Path = REGRET) -> dict[str, list[str]]:
    """By variant, the CLOSE points predicted to be fastest on a problem of the experiment, without its rows."""
    raw = {key: value for key, value in load_toml(path).items() if key != "presets"}  # they name POINTS
    judged = grid(parse(Experiment, raw, path), "")
    kept: dict[str, set[str]] = defaultdict(set)
    for one in sets:
        for own in one["times"].values():
            known = {problem: found for problem, found in own.items() if problem not in judged}
            for problem in judged:
                fastest: dict[str, list[str]] = defaultdict(list)
                for variant, params in (one.point for one in predict(problem, known)):
                    fastest[variant].append(params)
                for variant, points in fastest.items():
                    kept[variant] |= set(points[:CLOSE])
    return {variant: sorted(points) for variant, points in sorted(kept.items())}


def texts(folders: Mapping[str, Path], results: Path) -> dict[Path, str]:
    """The texts of the files for these sets."""
    found = {folder: measured.read(folder) for folder in folders.values()}
    sets = [one for one in found.values() if one]
    if not sets:
        raise UserError(f"{results}: no set with verified times; publish one first")
    points = json.dumps(regret_points(sets), indent=1) + "\n"
    own = {folder / table.NAME: measured.text_of([one]) for folder, one in found.items() if one}
    return {table.SHIPPED: shipped_text(sets), POINTS: points, **own}


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m experiments.published.auto_table", description=__doc__)
    made.add_argument("--check", action="store_true", help="write nothing; exit code 1 when something is stale")
    many: dict[str, Any] = {"action": "append", "default": [], "metavar": "KEY"}
    made.add_argument("--add", **many, help="count this local set as published")
    made.add_argument("--local", **many, help="write only the table of this local set")
    made.add_results()
    options = made.parse_args(argv)
    local = {key: local_set(options.results, key) for key in (*options.add, *options.local)}
    for key in options.local:
        path = measured.write(local[key])
        print(f"wrote {path}" if path else f"{local[key]}: no verified times, no table")
    if options.local:
        return 0
    published = {path.name: path for path in sorted((options.results / "published").glob("*")) if path.is_dir()}
    stale = 0
    for path, text in texts(published | local, options.results).items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale = 1
        if options.check:
            print(f"stale: {path}; run python3 -m experiments.published.auto_table")
        else:
            store.write_atomic(path, text.encode())
            print(f"wrote {path}")
    return stale if options.check else 0


def local_set(results: Path, key: str) -> Path:
    """The folder of a local set. UserError where there is none."""
    folder = results / "local" / key
    if not folder.is_dir():
        known = [path.name for path in (results / "local").glob("*")]
        raise UserError(f"machine key {key}: no local set; {nearest(key, known)}")
    return folder


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
