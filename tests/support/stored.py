"""Rows of a made-up variant as files of a local set."""

from pathlib import Path

from experiments.driver import store
from xcorr.paths import RESULTS

PUBLISHED = sorted(path.parent for path in (RESULTS / "published").glob("*/runs.json"))  # folders of the sets
OLD, NEW = "20260101T000000-aaaaaa", "20260102T000000-bbbbbb"


PASSED = f"""run={OLD} experiment=one-to-one machine_key=m input=uniform variant=v family=cpu backend=cpu precision=fp32
form=one-to-one left_rows=4 left_cols=4 right_rows=4 right_cols=4 lefts=1 rights=1 window=full mode=stream preset=quick
repetition=0 iterations=9 outcome=passed compute_us=0.1 fmas=256 bytes=324 seed=1 source_hash={"h" * 16}"""


def square(side: object) -> dict[str, object]:
    """Cells of a row of square matrices."""
    return dict.fromkeys(("left_rows", "left_cols", "right_rows", "right_cols"), side)


def row(**cells: object) -> store.Row:
    """A passed row; `cells` replace its values."""
    made = dict.fromkeys(store.COLUMNS, "") | dict(word.split("=") for word in PASSED.split())
    return made | {name: store.text_of(value) for name, value in cells.items()}


def save(folder: Path, run: str, rows: list[store.Row], number: int = 0) -> Path:
    """A file of rows of one run in the set `folder`, whose name is the machine key, and the record of the run; for each
    experiment of the rows. The last file's path."""
    for experiment in dict.fromkeys(one["experiment"] for one in rows):
        record(folder, run, experiment)
        chunk = store.Chunk(folder / experiment, run, number)
        own = [one for one in rows if one["experiment"] == experiment]
        chunk.add([{**one, "run": run, "machine_key": folder.name} for one in own])
    return chunk.path


def record(folder: Path, run: str, experiment: str = "one-to-one", **values: object) -> Path:
    """The record of a run of a local set, if it has none yet; `values` replace its own."""
    path = folder / experiment / "runs" / f"{run}.json"
    if values or not path.exists():
        known = {"run": run, "experiment": experiment, "machine_key": folder.name, "points": 1}
        store.write_json(path, {**known, **values})
    return path
