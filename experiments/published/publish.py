"""Compacts a local set to a published set, with one file per experiment, for git."""

import json
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments.driver import measured, store
from experiments.driver.columns import Key, Row
from experiments.driver.decoding import unknown_columns
from experiments.driver.run_records import by_run, run_records
from experiments.driver.schema import PRESETS
from experiments.driver.store import every_row
from experiments.published import provenance
from xcorr.errors import Parser, UserError, command, nearest, warn
from xcorr.files import load_json

EPILOG = """example:
  python3 -m experiments.published.publish amd-epyc-2-cores --experiments one-to-one
  python3 -m experiments.published.publish amd-epyc-2-cores --add      some problems measured again: the others stay

Of each point the newest run of the most thorough preset is kept, of each variant the newest source;
--preset keeps the rows of that preset only. Refused by name, whatever the options: rows of another machine or without the
record of their run, a record that does not say how many points its experiment has, columns of a newer program, modified or
unknown sources, an experiment that the repository lacks, a problem whose rivals did not meet in one run or block, an interrupted block."""
UNVERSIONED = [name for name in store.KEY if name not in ("preset", "source_hash")]
STAND_IN = "stand-in"  # machine key of the GPU stand-in of tests (tests/stand_in)


def _point(row: Row) -> Key:
    """The identity of a point without the version of its variant and the preset."""
    return tuple(row[name] for name in UNVERSIONED)


def _passed(rows: list[Row]) -> set[Key]:
    return {_point(row) for row in rows if row["outcome"] == "passed"}


def select(rows: list[Row], preset: str | None, where: str) -> list[Row]:
    """The rows of an experiment to publish: those of the newest source hashes, and for each point those of its most
    thorough preset, if possible one under which it passed."""
    present = {row["preset"] for row in rows}
    if preset is not None and preset not in present:
        have = ", ".join(sorted(present))
        raise UserError(f"{where}: no rows of preset {preset}; measured: {have}")
    kept = store.newest_sources([row for row in rows if preset in (None, row["preset"])])
    best: dict[Key, tuple[bool, int, str]] = {}
    for row in kept:
        best[_point(row)] = max(best.get(_point(row), _standing(row)), _standing(row))
    return [row for row in kept if _standing(row) == best[_point(row)]]


def _standing(row: Row) -> tuple[bool, int, str]:
    """The rank of a row among those of its point; the largest is published."""
    name = row["preset"]
    return row["outcome"] == "passed", PRESETS.index(name) if name in PRESETS else -1, name


def check_complete(folder: Path, rows: list[Row], runs: dict[str, dict[str, Any]]) -> None:
    """UserError for damaged files, or where no preset in `rows`, all rows of the experiment, has rows of every point.
    Parts of other presets may refine a complete preset."""
    damaged = sorted(path.name for path in folder.glob("*.damaged"))
    if damaged:
        raise UserError(f"{folder / damaged[0]}: damaged; run the sweep again and delete the file")
    missing = ""
    for preset in sorted({row["preset"] for row in rows}):
        records = [record for record in runs.values() if record.get("preset") == preset]
        if not records:
            raise UserError(f"{folder}: no run record of preset {preset}; run the sweep again")
        expected = int(max(records, key=lambda record: record["run"])["points"])
        have = len({store.key_of(row) for row in rows if row["preset"] == preset})
        if have >= expected:
            return
        missing = f"{have} of {expected} points of preset {preset} are measured"
    raise UserError(f"{folder}: {missing}; run the rest, or publish what there is with --partial")


def check_points(folder: Path, runs: Iterable[dict[str, Any]]) -> None:
    """UserError for a record without the number of its experiment's points: missing points could not be noticed."""
    for record in runs:
        points = record.get("points")
        if isinstance(points, bool) or not isinstance(points, int) or points < 1:
            raise UserError(
                f"{folder / 'runs' / record['run']}.json: points is {points!r}, not how many points the experiment has; "
                "restore the record, or delete the rows of this run and measure again"
            )


def check_loss(target: Path, rows: list[Row], force: bool) -> None:
    """UserError where the published file has unknown columns, or would lose passed points without `force`."""
    if not target.exists():
        return
    try:
        published = store.decode(target)
        if published and (unknown := unknown_columns(published[0])):
            raise store.Newer(f"column {unknown[0]} is of a newer program")
    except store.Newer as damage:
        raise UserError(f"{target}: {damage}; take that version of the sources") from damage
    except store.Damaged as damage:
        if force:
            return
        raise UserError(f"{target}: {damage}; restore it or use --force") from damage
    lost = _passed(published) - _passed(rows)
    if force or not lost:
        return
    first = dict(zip(UNVERSIONED, min(lost)))
    problem = f"{first['form']} {first['left_rows']}x{first['left_cols']} {first['lefts']}:{first['rights']}"
    example = f"{first['variant']} {first['params'] or '-'} {problem}"
    cause = f"{len(lost)} passed points would be lost, such as {example}"
    raise UserError(f"{target}: {cause}; measure them or publish with --force")


def _artifacts(folder: Path) -> list[Path]:
    """Files of an experiment other than rows: its tables, and artifacts/*."""
    files = [*sorted(folder.glob("*.csv.gz")), *sorted(folder.glob("artifacts/*"))]
    return [path for path in files if path.is_file() and not store.CHUNK_NAME.fullmatch(path.name)]


def _of_machine(path: Path, key: str) -> bytes:
    """The content of an artifact. UserError where it is of another machine."""
    said = load_json(path) if path.suffix == ".json" else None
    if isinstance(said, dict) and said.get("machine_key", key) != key:
        raise UserError(f"{path}: of machine {said['machine_key']}; measure it here, or delete it")
    return path.read_bytes()


def refuse(fault: str) -> None:
    """UserError: nothing is published while the set has rows that do not belong to it, and a published record that is
    left out would be lost in the new file."""
    raise UserError(fault.replace("; left out", "; restore it from git"))


def publish(
    local: Path, published: Path, names: list[str], preset: str | None, *, force: bool, partial: bool, add: bool = False
) -> list[Path]:
    """Writes the published files of the named experiments, after all checks, and returns their paths. With `add`,
    published rows of points that the local set lacks stay."""
    files: dict[Path, bytes] = {}
    together: list[Row] = []
    published_runs = run_records(published, refuse)
    by_place = {(run.get("experiment", ""), run["run"]): run for run in published_runs}
    published_rows = every_row(published, published_runs, warn, refuse) if add else []
    local_runs = run_records(local)
    repository = provenance.repository_of_sets()
    for name in names:
        folder = local / name
        rows = every_row(local, local_runs, warn, refuse, experiment=name)
        if rows:
            runs = by_run([record for record in local_runs if record.get("experiment") == name])
            measured_here = set(runs)
            check_points(folder, runs.values())
            provenance.check_experiment(folder, name, repository)
            if add:
                rows += [row for row in published_rows if row["experiment"] == name]
                runs = {run: one for (of, run), one in by_place.items() if of == name} | runs
            rows = provenance.newest_blocks(store.newest(rows, store.repeated(runs)))
            chosen = select(rows, preset, str(folder))
            if not (partial or add):
                counted = {row["preset"] for row in chosen}
                check_complete(folder, [row for row in store.newest_sources(rows) if row["preset"] in counted], runs)
            rows = chosen
            target = published / f"{name}.csv.gz"
            check_loss(target, rows, force)
            files[target] = store.encode(rows)
            used = {row["run"] for row in rows}
            provenance.check_sources(folder, runs, used & measured_here, repository)
            provenance.check_blocks(folder, rows, runs, measured_here)
            together += rows
            by_place = {place: run for place, run in by_place.items() if place[0] != name}
            by_place |= {(name, run): runs[run] for run in used if run in runs}
        for path in _artifacts(folder):
            files[published / path.name] = _of_machine(path, local.name)
    provenance.check_whole(local, together)
    if not files:
        raise UserError(f"{local}: holds nothing to publish; run an experiment first")
    if by_place:
        text = json.dumps([by_place[place] for place in sorted(by_place)], indent=1, sort_keys=True)
        files[published / "runs.json"] = (text + "\n").encode()
    for path, data in files.items():
        store.write_atomic(path, data)
    table = measured.write(published)
    return [*files, *([table] if table else [])]


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m experiments.published.publish", description=__doc__, epilog=EPILOG)
    parser.add_argument("machine_key", nargs="?", help="machine key of the local set (default: the only local set)")
    parser.add_argument("--experiments", help="names of experiments, comma-separated (default: all of the local set)")
    parser.add_argument("--preset", help="publish only the rows of this preset")
    parser.add_argument("--partial", action="store_true", help="publish unfinished experiments too")
    parser.add_argument("--add", action="store_true", help="keep published rows of problems that are not measured here")
    force_help = "publish even where published points that passed would be lost"
    parser.add_argument("--force", action="store_true", help=force_help)
    parser.add_results()
    options = parser.parse_args(argv)
    root = options.results / "local"
    keys = sorted(path.name for path in root.glob("*") if path.is_dir())
    key = options.machine_key or (keys[0] if len(keys) == 1 else "")
    if key not in keys:
        raise UserError(f"machine key {key or '(none given)'}: no local set; {nearest(key, keys)}")
    if key == STAND_IN:
        raise UserError(f"machine key {key}: no GPU made these rows, but the tests' stand-in; publish another set")
    known = sorted(path.name for path in (root / key).glob("*") if path.is_dir())
    names = options.experiments.replace(",", " ").split() if options.experiments else known
    for name in names:
        if name not in known:
            raise UserError(f"experiment {name}: not measured; {nearest(name, known)}")
    how = {"force": options.force, "partial": options.partial, "add": options.add}
    written = publish(root / key, options.results / "published" / key, names, options.preset, **how)
    print("published:\n" + "\n".join(f"  {path}" for path in written))
    return 0


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
