"""Imports the results of the published artifact, from a user's clone, into result sets.

The folder of a GPU becomes the set `published-<folder>`. Its rows have the outcome `published`: they are drawn hollow
and are in no table. The values are not verified. Times are converted to microseconds; compute of an FFT is forward +
Hadamard + inverse of the same repetition; plan and allocation are the medians of a point, as in our rows. The reader
was tested with the long format of all three folders and with made-up files in the package's layout, which its
documentation and public headings give. It has not read the whole package.
"""

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from experiments.driver import store
from experiments.driver.store import Row
from experiments.published import guard
from experiments.published.artifact_files import Found, Names, Point, read_flat, read_folder
from xcorr.errors import Parser, UserError, command, nearest
from xcorr.problem import COLUMNS as PROBLEM

PRESET = "published"
SCALAR_BYTES = 4
PHASES = ("forward_us", "hadamard_us", "inverse_us")
ONCE = ("plan_us", "allocate_us")  # measured outside the loop: one value a point
EPILOG = """example:
  scripts/import_published.py artifact/presented-results            all of ampere, volta, ada that is there
  scripts/import_published.py --flat v100.csv --folder volta        one GPU in the long format

Then: python3 -m plots.render published-ampere, python3 -m plots.machines published-ampere MY-KEY. Labels of GPUs are
checked against the GPUs' peaks over all imported sets; what does not fit is said, and no label is changed. Nothing is
written before all of it was read. Exit code: 0; 2 for a mistake in the request or a file that cannot be read."""


def rows_of(point: Point, key: str) -> list[Row]:
    """The rows of a point, one per repetition. UserError for a point without a kernel time and without all phases."""
    problem = point.problem
    shared = dict.fromkeys(store.COLUMNS, "") | {"run": key, "machine_key": key, "experiment": problem.form}
    shared |= {name: getattr(point, name) for name in ("input", "variant", "family", "params")}
    shared |= {"backend": "cuda", "precision": "fp32", "mode": "stream", "preset": PRESET, "source_hash": PRESET}
    shared |= zip(PROBLEM, map(str, problem.cells))
    shared |= {"fmas": str(problem.fmas), "bytes": str(problem.bytes(SCALAR_BYTES)), "outcome": "published"}
    notes = ("imported, not verified", point.note and f"timer: {point.note}", point.about)
    shared["reason"] = "; ".join(filter(None, notes))
    for name in ONCE:
        values = [sample[name] for sample in point.samples if name in sample]
        if values:
            shared[name] = store.text_of(statistics.median(values))
    rows = []
    for repetition, sample in enumerate(point.samples):
        if "compute_us" not in sample:
            absent = [name for name in PHASES if name not in sample]
            if absent:
                raise UserError(f"{key}: {' '.join(point.key)} has no {absent[0]}; get the file again")
            sample = {**sample, "compute_us": sum(sample[name] for name in PHASES)}
        times = {name: store.text_of(value) for name, value in sample.items() if name not in ONCE}
        counted = {"repetition": str(repetition), "iterations": point.iterations[repetition]}
        rows.append({**shared, **counted, **times})
    return rows


def write_set(results: Path, found: Found, names: Names, argv: Sequence[str]) -> tuple[Path, int]:
    """Writes a set; returns its folder and the number of rows."""
    entry = names.data["folders"][found.folder]
    target = results / "published" / entry["key"]
    by_experiment: dict[str, list[Row]] = defaultdict(list)
    for point in found.points.values():
        for row in rows_of(point, entry["key"]):
            by_experiment[row["experiment"]].append(row)
    files = {f"{name}.csv.gz": store.encode(rows) for name, rows in sorted(by_experiment.items())}
    for name, data in files.items():
        store.write_atomic(target / name, data)
    for old in target.glob("*.csv.gz"):
        if old.name not in files:
            old.unlink()
    gpu = guard.load_peaks().gpus[entry["gpu"]]
    name = f"{gpu.name} (label of the published folder {found.folder})"
    machine = {"machine_key": entry["key"], "device_name": name}
    imported = {"folder": found.folder, "gpu": entry["gpu"], "label": gpu.name, "files": found.files}
    imported |= {"left_out": found.skipped, "verified": False, "source": names.data["source"]}
    words = [Path(word).name for word in argv]
    record = {"run": entry["key"], "preset": PRESET, "argv": words, "machine": machine, "imported": imported}
    store.write_json(target / "runs.json", [record])
    return target, sum(map(len, by_experiment.values()))


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    made = Parser(prog="scripts/import_published.py", description=__doc__, epilog=EPILOG)
    add = made.add_argument
    add("dir", nargs="?", type=Path, metavar="DIR", help="folder presented-results of the published artifact")
    add("--flat", type=Path, metavar="FILE", help="read one file in the long format instead of DIR")
    folder_help = "folder of one GPU: ampere, volta or ada (default: all that are there; needed with --flat)"
    add("--folder", metavar="NAME", help=folder_help)
    made.add_results()
    add("--force", action="store_true", help="replace sets of an earlier import")
    return made.parse_args(argv)


def read(asked: argparse.Namespace, names: Names) -> list[Found]:
    """The content of all requested folders or files, read before anything is written."""
    folders = names.data["folders"]
    if (asked.dir is None) == (asked.flat is None):
        raise UserError("command line: give DIR or --flat FILE; see --help")
    if asked.folder is not None and asked.folder not in folders:
        raise UserError(f"folder {asked.folder}: unknown; {nearest(asked.folder, folders)}")
    if asked.flat is not None:
        if asked.folder is None:
            raise UserError("command line: --flat needs --folder; see --help")
        return [read_flat(asked.flat, asked.folder, names)]
    root = asked.dir / "data" if (asked.dir / "data").is_dir() else asked.dir
    wanted = [asked.folder] if asked.folder else [name for name in folders if (root / name).is_dir()]
    if not wanted or not (root / wanted[0]).is_dir():
        raise UserError(f"{asked.dir}: holds no folder {asked.folder or ' or '.join(folders)}; give presented-results")
    return [read_folder(root / name, name, names) for name in wanted]


def run(argv: Sequence[str]) -> int:
    asked = parsed(argv)
    names = Names()
    read_sets = read(asked, names)
    for found in read_sets:
        target = asked.results / "published" / names.data["folders"][found.folder]["key"]
        if target.exists() and not asked.force:
            raise UserError(f"{target}: exists already; replace it with --force")
    for found in read_sets:
        folder, count = write_set(asked.results, found, names, argv)
        print(f"{folder}: {len(found.points)} points, {count} rows, from {len(found.files)} files; none verified here")
        for line in found.skipped:
            print(f"left out: {line}")
    for line in guard.check_sets(asked.results):
        print(line)
    return 0


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
