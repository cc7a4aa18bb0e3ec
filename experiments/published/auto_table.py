"""Where `auto` reads times from: the rows of this machine, and the shipped table of other ones.

    python3 -m experiments.published.auto_table          after publishing: writes auto_table.json and the points of
                                               auto-regret.toml from the published sets
    python3 -m experiments.published.auto_table --check  only says whether they are up to date (exit code 1)
    python3 -m experiments.published.auto_table --local KEY   with that local set beside the published ones

The shipped table keeps, of each published set and form, the points that lead somewhere: of each problem the fastest
point of each of its three fastest variants, with their times on every problem.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.driver import store
from xcorr.auto import Point, Source, Times, neighbours, predict
from xcorr.errors import Parser, UserError, command, nearest
from experiments.driver.points import ROOT
from xcorr.problem import Problem, parse_counts, parse_size
from experiments.driver.schema import FOLDER, grid, load_experiment
from experiments.driver.studies import without_studies
from xcorr.library import build_directory

TABLE = FOLDER.parent / "results" / "auto_table.json"
REGRET = FOLDER / "auto-regret.toml"
MARK = "# Written by python3 -m experiments.published.auto_table from here on.\n"
LEADERS = 3  # variants of each problem that the shipped table knows
CLOSE = 2  # points of each variant that the experiment on regret measures
Digest = dict[str, dict[str, Any]]  # by precision: {"points": [...], "problems": {id: [us or null, ...]}} by form
Sets = dict[str, tuple[dict[str, Any], dict[str, Times]]]  # by machine key: facts, times by precision


def times_of(rows: Iterable[store.Row]) -> dict[str, Times]:
    """Medians of all repetitions that passed in mode stream on uniform inputs, by precision; outdated sources left out, and
    side experiments where another one has the point."""
    samples: dict[tuple[str, ...], list[float]] = defaultdict(list)
    names = ("precision", "form", "left_rows", "left_cols", "right_rows", "right_cols", "lefts", "rights", "window")
    for row in without_studies(store.newest_sources(list(rows))):
        usual = row["mode"] == "stream" and row["input"] == "uniform"
        if row["outcome"] == "passed" and usual and row["compute_us"]:
            samples[(*(row[name] for name in names), row["variant"], row["params"])].append(float(row["compute_us"]))
    found: dict[str, dict[Problem, dict[Point, float]]] = defaultdict(lambda: defaultdict(dict))
    for (precision, form, a, b, c, d, lefts, rights, window, *point), values in samples.items():
        problem = Problem(form, (int(a), int(b)), (int(c), int(d)), int(lefts), int(rights), window)
        found[precision][problem][point[0], point[1]] = statistics.median(values)
    return {precision: dict(times) for precision, times in found.items()}


def digest(times: Mapping[str, Times]) -> Digest:
    """Times as JSON, four digits each; `undigest` is the inverse."""
    made: Digest = {}
    for precision, all_forms in sorted(times.items()):
        for form in sorted({problem.form for problem in all_forms}):
            own = {problem: all_forms[problem] for problem in all_forms if problem.form == form}
            points = sorted({point for found in own.values() for point in found})
            made.setdefault(precision, {})[form] = {
                "points": [list(point) for point in points],
                "problems": {
                    problem.id: [float(f"{found[p]:.4g}") if p in found else None for p in points]
                    for problem, found in sorted(own.items(), key=lambda item: item[0].id)
                },
            }
    return made


def undigest(made: Digest) -> dict[str, Times]:
    """Times by precision."""
    found: dict[str, dict[Problem, dict[Point, float]]] = {}
    for precision, forms in made.items():
        times = found.setdefault(precision, {})
        for table in forms.values():
            points = [(variant, params) for variant, params in table["points"]]
            for name, values in table["problems"].items():
                times[problem_of(name)] = {p: us for p, us in zip(points, values) if us is not None}
    return found


def problem_of(name: str) -> Problem:
    """The problem with this id."""
    form, left, right, counts, window = name.split("/")
    return Problem(form, *parse_size(f"{left}:{right}"), *parse_counts(counts), window)


def leaders(times: Times) -> Times:
    """Of each form the points that lead somewhere, on every problem."""
    kept: dict[str, set[Point]] = defaultdict(set)
    for problem, found in times.items():
        best: dict[str, Point] = {}
        for point in sorted(found, key=lambda one: (found[one], one)):
            best.setdefault(point[0], point)
        kept[problem.form] |= set(list(best.values())[:LEADERS])
    return {
        problem: {point: us for point, us in found.items() if point in kept[problem.form]}
        for problem, found in times.items()
    }


def sources(machine: Mapping[str, Any], device: str, precision: str, results: Path) -> Iterator[Source]:
    """What is known for this machine, the best first: its own rows, of which local ones replace published ones, and
    those of the nearest machine. fp32 where nothing is known of the precision."""
    key = machine["machine_key"]
    own: dict[str, dict[Problem, dict[Point, float]]] = {}
    kinds = [kind for kind in ("published", "local") if (results / kind / key).is_dir()]
    for kind in kinds:
        for which, times in _kept(results / kind / key, kind).items():
            for problem, found in times.items():
                own.setdefault(which, {}).setdefault(problem, {}).update(found)
    yield from _of_precision(own, precision, f"{' and '.join(reversed(kinds))} rows of this machine, {key}")
    backend = device.partition(":")[0]
    shipped = [one for one in json.loads(TABLE.read_text(encoding="utf-8")) if one["backend"] == backend]
    for one in sorted(shipped, key=lambda one: (_apart(one, machine), one["machine_key"]))[:1]:
        where = f"times of another machine, {one['machine_key']} (the nearest shipped)"
        yield from _of_precision(undigest(one["times"]), precision, where)


def _of_precision(times: Mapping[str, Times], precision: str, where: str) -> Iterator[Source]:
    if precision in times:
        yield Source(where, times[precision])
    elif "fp32" in times:
        yield Source(f"{where}, in fp32", times["fp32"])


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """How far two machines of one backend are: compute capabilities, on CPUs octaves of cores."""
    if one["backend"] == "cuda":
        return abs(float(one.get("compute_capability") or 0) - float(other.get("compute_capability") or 0))
    return abs(math.log2(int(one.get("cores") or 1)) - math.log2(int(other.get("cores") or 1)))


def _kept(folder: Path, kind: str) -> dict[str, Times]:
    """Times of a set, from the build folder when nothing of the set has changed: rows take seconds to read."""
    files = [(str(path), path.stat().st_size, path.stat().st_mtime_ns)
             for path in sorted([*folder.glob("*.csv.gz"), *folder.glob("*/*.csv.gz")])]  # fmt: skip
    stamp = hashlib.sha256(json.dumps([str(folder.resolve()), files]).encode()).hexdigest()
    path = build_directory() / "auto" / f"{kind}-{folder.name}.json"
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["stamp"] == stamp:
            return undigest(kept["times"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    made = digest(times_of(store.read_rows(folder)))
    if build_directory().is_dir():
        try:
            store.write_atomic(path, json.dumps({"stamp": stamp, "times": made}).encode())
        except UserError:
            pass  # read again the next time
    return undigest(made)


def read_sets(folders: Iterable[Path]) -> Sets:
    """Facts and times of the sets that hold verified times."""
    found: Sets = {}
    for folder in folders:
        rows = store.read_rows(folder)
        times = times_of(rows)
        if times:
            runs = store.read_runs(folder)
            newest = runs[max(runs)] if runs else {}
            facts = newest.get("before") or newest.get("machine") or {}
            backend = next(row["backend"] for row in rows if row["outcome"] == "passed")
            found[folder.name] = ({**facts, "backend": backend}, times)
    return found


def table_text(sets: Sets) -> str:
    """auto_table.json: a line a problem."""
    lines = []
    for key, (facts, times) in sorted(sets.items()):
        head = {"machine_key": key, **{name: facts.get(name) for name in ("backend", "compute_capability", "cores")}}
        made = digest({precision: leaders(own) for precision, own in times.items()})
        lines.append(json.dumps({**head, "times": made}))
    text = "[\n" + ",\n".join(lines) + "\n]\n"
    for opening in ('"points": ', '"problems": {'):
        text = text.replace(opening, "\n  " + opening)
    return text.replace("], \"", "],\n    \"")


def regret_points(sets: Sets, path: Path = REGRET) -> dict[str, list[str]]:
    """By variant the points that come first by prediction on a problem of the experiment, its rows set aside."""
    judged = grid(load_experiment(path), "")
    kept: dict[str, set[str]] = defaultdict(set)
    for _, times in sets.values():
        for own in times.values():
            known = {problem: found for problem, found in own.items() if problem not in judged}
            for problem in judged:
                count: dict[str, int] = defaultdict(int)
                for one in predict(problem, known):
                    variant, params = one.point
                    if count[variant] < CLOSE:
                        kept[variant].add(params)
                        count[variant] += 1
    return {variant: sorted(points) for variant, points in sorted(kept.items())}


def regret_text(sets: Sets, text: str) -> str:
    """auto-regret.toml with its generated part anew."""
    lines = []
    for variant, points in regret_points(sets).items():
        lines += [f"{variant} = [", *(f'    "{point}",' for point in points), "]"]
    return text.partition(MARK)[0] + MARK + "[presets.quick.points]\n" + "\n".join(lines) + "\n"


def run(argv: Sequence[str]) -> int:
    """The command; raises UserError."""
    made = Parser(prog="python3 -m experiments.published.auto_table", description=__doc__,
                  formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    made.add_argument("--check", action="store_true", help="write nothing; exit code 1 when something is stale")
    made.add_argument("--local", action="append", default=[], metavar="KEY", help="a local set too")
    made.add_argument("--results", type=Path, default=ROOT / "results", metavar="DIR",
                      help="root of the results (default: results)")  # fmt: skip
    options = made.parse_args(argv)
    there = {path.name: path for path in sorted((options.results / "published").glob("*")) if path.is_dir()}
    for key in options.local:
        folder = options.results / "local" / key
        if not folder.is_dir():
            known = [path.name for path in (options.results / "local").glob("*")]
            raise UserError(f"machine key {key}: no local set; {nearest(key, known)}")
        there[key] = folder
    sets = read_sets(there.values())
    if not sets:
        raise UserError(f"{options.results}: no set with verified times; publish one first")
    stale = 0
    for path, text in ((TABLE, table_text(sets)), (REGRET, regret_text(sets, REGRET.read_text(encoding="utf-8")))):
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale = 1
        if options.check:
            print(f"stale: {path}; run python3 -m experiments.published.auto_table")
        else:
            store.write_atomic(path, text.encode())
            print(f"wrote {path}")
    return stale if options.check else 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; every mistake of the user is one line."""
    return command(run, argv)


if __name__ == "__main__":
    sys.exit(main())
