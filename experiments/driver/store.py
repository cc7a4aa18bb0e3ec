"""Reads and writes rows. No other code knows the layout of results/.

A local set is `results/local/<machine-key>/<experiment>/<run-id>-<chunk>.csv.gz`, one file per process and experiment,
rewritten atomically after every point, with `runs/<run-id>.json` beside these files. A published set is
`results/published/<machine-key>/<experiment>.csv.gz` and one `runs.json`.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import gzip
import io
import json
import os
import re
import secrets
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.driver.belonging import Belonging
from experiments.driver.columns import COLUMNS, FLOATS, INTEGERS, KEY, RIVALS, Key, Row
from experiments.driver.decoding import Damaged, Newer, decode
from experiments.driver.run_records import by_run, run_records
from xcorr.errors import UserError, warn
from xcorr.files import whole_file

if TYPE_CHECKING:
    import pandas as pd

CHUNK_NAME = re.compile(r"(\d{8}T\d{6}-[0-9a-f]{6})-\d{4,}\.csv\.gz")
PUBLISHED_NAME = re.compile(r"[A-Za-z0-9_-]+\.csv\.gz")
LONGEST_CELL = 4096
RUN_TIME = "%Y%m%dT%H%M%S"
Say = Callable[[str], None]  # gets a line for the user
CLOCKS_APART = timedelta(minutes=1)  # tolerated difference between machines that share a folder


def medians(rows: Iterable[Row], names: Iterable[str]) -> dict[Key, float]:
    """Median compute_us of all repetitions in mode stream that passed, by the cells of `names`."""
    names, samples = list(names), defaultdict(list)
    for row in rows:
        if row["outcome"] == "passed" and row["mode"] == "stream" and row["compute_us"]:
            samples[tuple(row[name] for name in names)].append(float(row["compute_us"]))
    return {place: statistics.median(times) for place, times in samples.items()}


def new_run_id(known: Iterable[str] = ()) -> str:
    """`<UTC yyyymmddThhmmss>-<6 hex>`, which sorts by time and differs between simultaneous runs.

    The order of ids is the order of runs, so the id is later than all of `known`. A warning says where the clock is
    behind them by more than CLOCKS_APART. UserError where no later id exists.
    """
    now = datetime.strptime(time.strftime(RUN_TIME, time.gmtime()), RUN_TIME)
    newest = max(known, default="")
    if newest:
        try:
            after = datetime.strptime(newest.partition("-")[0], RUN_TIME) + timedelta(seconds=1)
        except (ValueError, OverflowError) as error:
            raise UserError(f"run {newest}: no run can be later than its name; move its files away") from error
        if after - now > CLOCKS_APART:
            late = f"the clock is at {now}, before run {newest} of this machine"
            warn(f"{late}; this run is named as one that follows it")
        now = max(now, after)
    return f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def run_ids(folder: Path) -> set[str]:
    """The runs that wrote a file of rows into a local set; damaged files count."""
    names = (CHUNK_NAME.match(path.name) for path in folder.glob("*/*.csv.gz*"))
    return {name[1] for name in names if name}


def key_of(row: Row) -> Key:
    """The resume key of a row. Rows with equal keys are of the same point."""
    return tuple(row[name] for name in KEY)


def rivals_of(row: Row) -> Key:
    """The experiment and problem of a row, which are equal for rivals."""
    return (row["experiment"], *(row.get(name, "") for name in RIVALS))


def text_of(value: Any) -> str:
    """The text of a cell: empty for None, true or false, the shortest exact text of a float."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    # Readers and diffs of published sets rely on cells of one short line.
    text = " ".join(str(value).split()) if "\n" in str(value) else str(value)
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 4] + " ..."


def encode(rows: Iterable[Row]) -> bytes:
    """Gzipped CSV of rows. Equal rows give equal bytes."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", extrasaction="raise", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return gzip.compress(text.getvalue().encode(), mtime=0)


def write_atomic(path: Path, data: bytes, *, create: bool = False) -> None:
    """Writes a file atomically, and its folder (xcorr/files.py).

    UserError without space or permission, and with `create` where the file exists, since no run overwrites rows of
    another one. The old content then stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(data)
            if create and path.exists():
                raise UserError(f"{path}: exists already and belongs to another run; run again")
    except OSError as error:
        raise UserError(explain(error, path)) from error


def explain(error: OSError, path: Path) -> str:
    """The message for a file that cannot be written."""
    cause, way_out = error.strerror or str(error), "choose another place with --results"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        cause, way_out = "no space left", f"free some space or {way_out}"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        cause = "no permission to write"
    return f"{path}: {cause}; {way_out} (what was stored before is kept)"


def check_writable(folder: Path) -> None:
    """UserError unless files can be created in `folder`. Sweeps call it before they measure."""
    probe = folder / f".probe-{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        raise UserError(explain(error, folder)) from error


def remove_stale_temporaries(folder: Path, older_than_s: float = 3600) -> None:
    """Deletes old temporary files, which killed writers have left."""
    for tmp in folder.glob("*/.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - tmp.stat().st_mtime > older_than_s:
                tmp.unlink()


# A sweep spends at most one part in WRITING on the files of its rows, which grow with each point.
WRITING = 20


class Chunk:
    """The rows of one unit in a process, in a file that is written whole again and again, and takes WRITING times as long to grow."""

    def __init__(self, folder: Path, run: str, number: int) -> None:
        self.path = folder / f"{run}-{number:04d}.csv.gz"
        self.rows: list[Row] = []
        self._written = self._noted = False
        self._next = 0.0  # time.monotonic() of the next writing, at the earliest

    def add(self, rows: Iterable[Row]) -> None:
        """Appends the rows of a finished point. Writes the file, unless that has just been done."""
        self.note(rows)
        if time.monotonic() >= self._next:
            self._write()

    def note(self, rows: Iterable[Row]) -> None:
        """As add, but writes with a later point or close(): for rows without a measurement, of which a set may have many."""
        self.rows, self._noted = self.rows + list(rows), True

    def close(self) -> None:
        """Writes what was not written yet."""
        if self._noted:
            self._write()

    def _write(self) -> None:
        begin = time.monotonic()
        write_atomic(self.path, encode(self.rows), create=not self._written)
        self._written, self._noted = True, False
        end = time.monotonic()
        self._next = end + WRITING * (end - begin)

    def forget(self, params: str) -> None:
        """Leaves the rows of a point out of what is written next."""
        self.rows = [row for row in self.rows if row["params"] != params]


def _cannot_read(path: Path, error: OSError) -> UserError:
    if isinstance(error, PermissionError):
        return UserError(f"{path}: no permission to read; change its mode or owner")
    return UserError(f"{path}: cannot be read ({error.strerror or error}); move it away")


def _read_local_file(path: Path, on_damage: Say, set_aside: bool) -> list[Row]:
    try:
        at = path.stat()
        return [row.copy() for row in _decoded(path, at.st_mtime_ns, at.st_size)]
    except FileNotFoundError:
        return []  # set aside by another reader in the meantime
    except OSError as error:
        raise _cannot_read(path, error) from error
    except Damaged as damage:
        aside = path.with_name(path.name + ".damaged")
        where = "left out"
        if set_aside and not isinstance(damage, Newer):
            with contextlib.suppress(OSError):
                path.rename(aside)
                where = f"set aside as {aside.name}"
        on_damage(f"{path}: {damage}; {where}, its points count as not measured")
        return []


@cache
def _decoded(path: Path, changed_ns: int, size: int) -> list[Row]:
    """The rows of a file as it was at a time, which an evaluation reads again in each of its steps."""
    return decode(path)


def read_rows(folder: Path, on_damage: Say = warn, *, set_aside: bool = True, experiment: str = "*") -> list[Row]:
    """Every row of a set that counts, as text, without duplicates, in a fixed order; none for a missing folder.

    `folder` is `results/local/<machine-key>` or `results/published/<machine-key>`. With `experiment` only its rows are
    read. Each point keeps the rows of one run (`newest`). `on_damage` gets a line for a damaged local file, which is
    renamed `*.damaged` unless `set_aside` is false, and for each cause of rows that do not belong to the set
    (`Belonging`) and are left out. UserError for a damaged published file.
    """
    records = run_records(folder)
    rows = every_row(folder, records, on_damage, on_damage, set_aside=set_aside, experiment=experiment)
    return newest(rows, repeated(by_run(records)))


def every_row(
    folder: Path, records: list[Any], on_damage: Say, on_foreign: Say, *, set_aside: bool = True, experiment: str = "*"
) -> list[Row]:
    """As read_rows, with the rows of all runs of a point. `records`: run_records of the folder. `on_foreign` gets the
    lines about rows that do not belong to the set."""
    rows: list[Row] = []
    belonging = Belonging(folder, records)
    for path in sorted(folder.glob(f"{experiment}.csv.gz")):
        if PUBLISHED_NAME.fullmatch(path.name) and not CHUNK_NAME.fullmatch(path.name):
            try:
                found = decode(path)
            except OSError as error:
                raise _cannot_read(path, error) from error
            except Damaged as damage:
                way_out = "take that version of the sources" if isinstance(damage, Newer) else "restore it from git"
                raise UserError(f"{path}: {damage}; {way_out}") from damage
            rows += belonging.own(found, path, path.name.removesuffix(".csv.gz"))
    for path in sorted(folder.glob(f"{experiment}/*.csv.gz")):
        if name := CHUNK_NAME.fullmatch(path.name):
            found = _read_local_file(path, on_damage, set_aside)
            rows += belonging.own(found, path, path.parent.name, name[1])
    for fault in belonging.faults():
        on_foreign(fault)
    return rows


def repeated(runs: Mapping[str, dict[str, Any]]) -> set[str]:
    """The runs that measured points again which a busy host had slowed down."""
    return {run for run, record in runs.items() if "--slowed" in record.get("argv", ())}


def newest(rows: list[Row], again: Collection[str] = ()) -> list[Row]:
    """The rows of the newest run of each (experiment, resume key), each repetition once.

    `not_selected` never replaces another outcome. A run of `again` measured problems that a busy host had slowed down.
    Where its longest `launch_us` of a problem is no shorter than before, the host was no quieter, and the older rows of
    all rivals stay.
    """
    latest: dict[tuple[str, Key], str] = {}
    longest: dict[tuple[Key, str], float] = {}  # longest launch of a problem in a run
    for row in rows if again else ():
        place = rivals_of(row), row["run"]
        unmeasured = row["outcome"] in ("not_supported", "not_selected")  # no launch; a failure counts as the longest
        longest[place] = max(longest.get(place, 0.0), 0.0 if unmeasured else float(row.get("launch_us") or "inf"))
    found: set[tuple[str, Key]] = set()  # points with another outcome than not_selected
    kept: dict[tuple[str, Key, str], Row] = {}
    points = [(row["experiment"], key_of(row)) for row in rows]
    for row, point in sorted(zip(rows, points), key=lambda pair: pair[0]["run"]):
        if row["run"] == latest.get(point) or (point in found and row["outcome"] == "not_selected"):
            continue
        if row["run"] in again and point in found:
            problem = rivals_of(row)
            if longest[problem, row["run"]] >= longest[problem, latest[point]]:
                continue
        latest[point] = row["run"]
        if row["outcome"] != "not_selected":
            found.add(point)
    for row, point in zip(rows, points):
        if row["run"] == latest[point]:
            kept.setdefault((*point, row["repetition"]), row)
    return [kept[place] for place in sorted(kept, key=_order)]


def _order(place: tuple[str, Key, str]) -> tuple[Any, ...]:
    experiment, key, repetition = place
    cells = (int(cell) if name in INTEGERS else cell for name, cell in zip(KEY, key))
    return (experiment, *cells, int(repetition))


def newest_sources(rows: list[Row]) -> list[Row]:
    """The rows with the source hash of each variant's newest run.

    Rows of older versions of a variant stay on disk and do not count. Rows of a reduced result have `HASH+HASH`; the
    second hash, of the reduction, is compared among such rows only.
    """
    latest: dict[tuple[str, str], tuple[str, str]] = {}
    parts = [row["source_hash"].partition("+") for row in rows]
    for row, (own, plus, reduction) in zip(rows, parts):
        for place, one in (((row["variant"], ""), own), ((row["variant"], plus), reduction or own)):
            latest[place] = max((row["run"], one), latest.get(place, ("", "")))
    return [
        row
        for row, (own, plus, reduction) in zip(rows, parts)
        if own == latest[row["variant"], ""][1] and (not plus or reduction == latest[row["variant"], plus][1])
    ]


def is_imported(key: str) -> bool:
    """Whether the machine key is that of a set that was imported (scripts/import_published.py) and not measured."""
    return key.startswith("published-")


def shown(folder: Path, rows: list[Row]) -> list[Row]:
    """The rows of a set for figures and tables: all rows of a published set, `newest_sources` of a local one."""
    return rows if (folder / "runs.json").exists() else newest_sources(rows)


def read_set(folder: Path) -> pd.DataFrame:
    """The `shown` rows of a set as a data frame, one row per repetition.

    Integer columns are int64; times and errors are float64, NaN where not measured; all other columns are text. Errors
    as in read_rows.
    """
    return frame_of(shown(folder, read_rows(folder)))


def frame_of(rows: list[Row]) -> pd.DataFrame:
    import pandas as pd  # a slow import that only readers of whole sets need

    def column(name: str) -> pd.Series:
        cells = [row[name] for row in rows]
        if name in INTEGERS:
            return pd.Series([int(cell or 0) for cell in cells], dtype="int64")
        if name in FLOATS:  # float() is exact; the conversion of pandas rounds the last digit
            return pd.Series([float(cell or "nan") for cell in cells], dtype="float64")
        return pd.Series(cells, dtype=object)

    return pd.DataFrame({name: column(name) for name in COLUMNS})


def write_json(path: Path, value: Any) -> None:
    """Writes JSON atomically with sorted keys."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_atomic(path, text.encode())
