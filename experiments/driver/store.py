"""Rows on disk: the only code that knows the columns and the layout of results/.

A local set lies in `results/local/<machine-key>/<experiment>/<run-id>-<chunk>.csv.gz`, one file per
process, rewritten atomically after every point, and `runs/<run-id>.json` beside them. A published
set is `results/published/<machine-key>/<experiment>.csv.gz` and one `runs.json`.
"""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import math
import os
import re
import secrets
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.driver.identity import architecture, identities
from experiments.driver.run_records import read_runs
from xcorr.errors import UserError, warn
from xcorr.fields import NAMES as FIELDS
from xcorr.problem import COLUMNS as PROBLEM
from xcorr.problem import FORMS, GEOMETRY, Problem

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "run experiment machine_key input variant family backend precision form left_rows left_cols "
    "right_rows right_cols lefts rights window params mode preset repetition iterations outcome "
    "reason compute_us forward_us hadamard_us inverse_us plan_us allocate_us upload_us download_us "
    "energy_uj max_error error_bound exact_error exact_bound rel_l2_error argmax_agrees fmas bytes "
    "seed source_hash clear_us launch_us overlap_checked rel_l2_bound "
    "boundary score masks result same views build_us normalised_error compile_us load_us registers"
).split()
# Absent from sets that are older than they are: read as empty. An empty field of a problem has its default.
ADDED = (
    *("clear_us", "launch_us", "overlap_checked", "rel_l2_bound", "build_us", *FIELDS, "normalised_error"),
    *("compile_us", "load_us", "registers"),
)
KEY = (
    "variant params precision form left_rows left_cols right_rows right_cols lefts rights window "
    "boundary score masks result same views mode input preset source_hash"
).split()
INTEGERS = ("left_rows left_cols right_rows right_cols lefts rights repetition iterations fmas bytes seed").split()
FLOATS = (
    "compute_us forward_us hadamard_us inverse_us plan_us allocate_us upload_us download_us "
    "energy_uj max_error error_bound exact_error exact_bound rel_l2_error clear_us launch_us "
    "rel_l2_bound build_us normalised_error compile_us load_us registers"
).split()
NEEDED = {*GEOMETRY, "repetition"}  # integers without which a row is no row
OUTCOMES = ("passed incorrect not_supported not_selected out_of_memory timeout failed published").split()

# Beside the columns in memory, in no file: the name of all hashes that stand for the same measured code.
IDENTITY = "identity"

CHUNK_NAME = re.compile(r"(\d{8}T\d{6}-[0-9a-f]{6})-\d{4,}\.csv\.gz")
PUBLISHED_NAME = re.compile(r"[A-Za-z0-9_-]+\.csv\.gz")

Row = dict[str, str]
Key = tuple[str, ...]


def new_run_id() -> str:
    """`<UTC yyyymmddThhmmss>-<6 hex>`: sorts by time, differs between simultaneous runs."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + secrets.token_hex(3)


def key_of(row: Row) -> Key:
    """The resume key of a row: two rows with equal keys are measurements of the same point."""
    return (*(row[name] for name in KEY[:-1]), source_of(row))


def source_of(row: Row) -> str:
    """What a row measured: its source_hash, or the name of the hashes that are equivalent to it."""
    return row.get(IDENTITY) or row["source_hash"]


def text_of(value: Any) -> str:
    """A cell: empty for None, true/false, and the shortest exact form of a float."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    # A cell is one line: readers and diffs of published sets rely on it.
    return " ".join(str(value).split()) if "\n" in str(value) else str(value)


def encode(rows: Iterable[Row]) -> bytes:
    """Gzipped CSV of rows; the same rows give the same bytes."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", extrasaction="raise", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: row[name] for name in row if name != IDENTITY} for row in rows)
    return gzip.compress(text.getvalue().encode(), mtime=0)


def write_atomic(path: Path, data: bytes, *, create: bool = False) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part.

    With `create`, a file that exists already is an error: no run writes over another's rows.
    Raises UserError when there is no space or no permission; the old content is then untouched.
    """
    tmp = path.parent / f".{path.name}.{os.getpid()}.tmp"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(tmp, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if create and path.exists():
                raise UserError(f"{path}: exists already and belongs to another run; run again")
            os.replace(tmp, path)
        except BaseException:
            tmp.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(explain(error, path)) from error


def explain(error: OSError, path: Path) -> str:
    """One line for a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        cause, way_out = "no space left", "free some space or choose another place with --results"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        cause, way_out = "no permission to write", "choose another place with --results"
    else:
        cause, way_out = error.strerror or str(error), "choose another place with --results"
    return f"{path}: {cause}; {way_out} (what was stored before is kept)"


def check_writable(folder: Path) -> None:
    """UserError unless files can be created in `folder`; sweeps call it before measuring."""
    probe = folder / f".probe-{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        raise UserError(explain(error, folder)) from error


def remove_stale_temporaries(folder: Path, older_than_s: float = 3600) -> None:
    """Delete the temporary files of writers that were killed; a live one exists for a moment."""
    for tmp in folder.glob("*/.*.tmp"):
        try:
            if time.time() - tmp.stat().st_mtime > older_than_s:
                tmp.unlink()
        except OSError:
            pass


class Chunk:
    """The rows of one process (variant, problem): a file that is rewritten after every point."""

    def __init__(self, folder: Path, run: str, number: int) -> None:
        self.path = folder / f"{run}-{number:04d}.csv.gz"
        self.rows: list[Row] = []
        self._created = False

    def add(self, rows: Iterable[Row]) -> None:
        """Append the rows of a finished point and write the file."""
        grown = self.rows + list(rows)
        write_atomic(self.path, encode(grown), create=not self._created)
        self.rows = grown
        self._created = True


class Damaged(Exception):
    """A file of rows that cannot be read; the message is the cause."""


def decode(path: Path) -> list[Row]:
    """All rows of one file; Damaged when it is truncated, lacks a column or has a bad cell."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            absent = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
            missing = [name for name in absent if name not in ADDED]
            if missing:
                raise Damaged(f"column {missing[0]} is missing")
            rows = [row | dict.fromkeys(absent, "") for row in reader]
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Damaged(f"truncated or not gzip ({error})") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise Damaged(f"not CSV ({error})") from error
    for line, row in enumerate(rows, start=2):
        _check(row, line)
    return rows


def _check(row: dict[Any, Any], line: int) -> None:
    """Damaged when a row is too short, too long or has a cell that is not what it must be."""
    if None in row or None in row.values():
        raise Damaged(f"line {line} has not as many cells as columns")
    if row["outcome"] not in OUTCOMES:
        raise Damaged(f"line {line} has the outcome {row['outcome']!r}")
    for kind, names in ((int, INTEGERS), (float, FLOATS)):
        for name in names:
            try:
                # An empty cell was not measured; those of a point's identity are always there.
                if (row[name] != "" or name in NEEDED) and not math.isfinite(kind(row[name])):
                    raise ValueError
            except (ValueError, OverflowError) as error:
                raise Damaged(f"line {line} has {name} = {row[name]!r}") from error
    fault = _problem_fault(*(row[name] for name in PROBLEM))
    if fault:
        raise Damaged(f"line {line} has no legal problem: {fault}")


@lru_cache(maxsize=None)
def _problem_fault(form: str, *cells: str) -> str:
    """Why these cells of PROBLEM are no problem, "" where they are one."""
    if form not in FORMS:
        return f"form {form!r}: unknown"
    *sizes, _ = cells[: len(GEOMETRY) - 1]
    if min(map(int, sizes)) < 1:
        return "a size or a count below 1"
    try:
        problem = Problem.of_cells(form, *cells)
    except UserError as error:
        return str(error).partition("; ")[0]
    given = cells[len(GEOMETRY) - 1 :]
    for name, text, one in zip(FIELDS, given, problem.fields.cells):
        if text != one:  # two texts of one value would be two points
            return f"{name} {text!r} is written {one!r}"
    return ""


def _cannot_read(path: Path, error: OSError) -> UserError:
    if isinstance(error, PermissionError):
        return UserError(f"{path}: no permission to read; change its mode or owner")
    return UserError(f"{path}: cannot be read ({error.strerror or error}); move it away")


def _read_local_file(path: Path, on_damage: Callable[[str], None], set_aside: bool) -> list[Row]:
    try:
        return decode(path)
    except FileNotFoundError:
        return []  # set aside by another reader in the meantime
    except OSError as error:
        raise _cannot_read(path, error) from error
    except Damaged as damage:
        aside = path.with_name(path.name + ".damaged")
        where = "left out"
        if set_aside:
            try:
                path.rename(aside)
                where = f"set aside as {aside.name}"
            except OSError:
                pass
        on_damage(f"{path}: {damage}; {where}, its points count as not measured")
        return []


def read_rows(folder: Path, on_damage: Callable[[str], None] = warn, *, set_aside: bool = True) -> list[Row]:
    """Every row of a set as text, without duplicates, in a fixed order.

    `folder` is `results/local/<machine-key>`, one experiment folder in it, or
    `results/published/<machine-key>`. Of each point only the rows of one run stay (`newest`). A damaged
    local file is named through `on_damage` and renamed `*.damaged`, unless `set_aside` is false, when
    nothing is written; a damaged published file is a UserError. A folder that does not exist holds no
    rows.
    """
    rows: list[Row] = []
    for path in sorted(folder.glob("*.csv.gz")):
        if CHUNK_NAME.fullmatch(path.name):
            rows += _read_local_file(path, on_damage, set_aside)
        elif PUBLISHED_NAME.fullmatch(path.name):
            try:
                rows += decode(path)
            except OSError as error:
                raise _cannot_read(path, error) from error
            except Damaged as damage:
                raise UserError(f"{path}: {damage}; restore it from git") from damage
    for path in sorted(folder.glob("*/*.csv.gz")):
        if CHUNK_NAME.fullmatch(path.name):
            rows += _read_local_file(path, on_damage, set_aside)
    runs, known = read_runs(folder), identities()
    for row in rows:
        where = architecture(row["backend"], runs.get(row["run"], {}).get("before") or {})
        row[IDENTITY] = known.of(row["variant"], row["source_hash"], where)
    return newest(rows, repeated(runs))


def repeated(runs: Mapping[str, dict[str, Any]]) -> set[str]:
    """The runs that measured again what a busy host had slowed down."""
    return {run for run, record in runs.items() if "--slowed" in record.get("argv", ())}


def newest(rows: list[Row], again: Collection[str] = ()) -> list[Row]:
    """Of each (experiment, resume key) the rows of its newest run, each repetition once.

    `not_selected` says nothing about a point: it never replaces an outcome that was found. A run of
    `again` measured what a busy host had slowed down; where it met a busier one (`launch_us` of its row
    is longer) the rows before it stay.
    """
    latest: dict[tuple[str, Key], str] = {}
    launch: dict[tuple[str, Key], float] = {}
    found: set[tuple[str, Key]] = set()  # points with another outcome than not_selected
    kept: dict[tuple[str, Key, str], Row] = {}
    for row in sorted(rows, key=lambda row: row["run"]):
        point = (row["experiment"], key_of(row))
        if row["run"] == latest.get(point):
            continue
        launch_us = float(row.get("launch_us") or "inf")
        if point in found and row["outcome"] == "not_selected":
            continue
        if row["run"] in again and point in found and launch_us >= launch[point]:
            continue
        latest[point], launch[point] = row["run"], launch_us
        if row["outcome"] != "not_selected":
            found.add(point)
    for row in rows:
        point = (row["experiment"], key_of(row))
        if row["run"] == latest[point]:
            kept.setdefault((*point, row["repetition"]), row)
    return [kept[place] for place in sorted(kept, key=_order)]


def _order(place: tuple[str, Key, str]) -> tuple[Any, ...]:
    experiment, key, repetition = place
    cells = (int(cell) if name in INTEGERS else cell for name, cell in zip(KEY, key))
    return (experiment, *cells, int(repetition))


def newest_sources(rows: list[Row]) -> list[Row]:
    """Only rows of the source that each variant had in its newest run, and of equivalent ones.

    Rows of an older version of a variant stay on disk, but are no statement about it any more. The hash of the reduction that
    rows of a reduced result have beside it, `HASH+HASH`, is compared among these rows only.
    """
    latest: dict[tuple[str, str], tuple[str, str]] = {}
    parts = [source_of(row).partition("+") for row in rows]
    for row, (own, plus, reduction) in zip(rows, parts):
        for place, one in (((row["variant"], ""), own), ((row["variant"], plus), reduction or own)):
            latest[place] = max((row["run"], one), latest.get(place, ("", "")))
    return [
        row
        for row, (own, plus, reduction) in zip(rows, parts)
        if own == latest[row["variant"], ""][1] and (not plus or reduction == latest[row["variant"], plus][1])
    ]


def read_set(folder: Path | str, *, all_sources: bool = False) -> pd.DataFrame:
    """The rows of a local or published set as a data frame, one row per repetition.

    Integer columns are int64, times and errors float64 (NaN where not measured), `argmax_agrees` is
    "true", "false" or "", everything else text. Rows of outdated sources are left out unless
    `all_sources`. Errors as in read_rows.
    """
    import pandas as pd  # only readers of whole sets pay for the import

    rows = read_rows(Path(folder))
    if not all_sources:
        rows = newest_sources(rows)
    frame = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    for name in INTEGERS:
        frame[name] = pd.Series([int(row[name] or 0) for row in rows], dtype="int64")
    for name in FLOATS:  # float() is exact, pandas' own conversion rounds the last digit
        frame[name] = pd.Series([float(row[name] or "nan") for row in rows], dtype="float64")
    return frame


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, keys sorted."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_atomic(path, text.encode())
