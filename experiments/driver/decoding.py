"""Reads one file of rows line by line, and refuses a damaged or too large file at the first wrong line."""

import csv
import gzip
import math
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from experiments.driver.columns import ADDED, COLUMNS, FLOATS, INTEGERS, NEEDED, OUTCOMES, Row
from xcorr.errors import UserError
from xcorr.fields import NAMES as FIELDS
from xcorr.problem import COLUMNS as PROBLEM
from xcorr.problem import FORMS, GEOMETRY, Problem

# The largest published file has 6 MiB of text and lines below 1 KiB.
MOST_BYTES = 256 * 2**20
LONGEST_LINE = 64 * 2**10


class Damaged(Exception):
    """A file of rows cannot be read; the message is the cause."""


class Newer(Damaged):
    """A file has columns that this program does not know; a newer program may have written it."""


def unknown_columns(row: Row) -> list[str]:
    return [name for name in row if name not in _KNOWN]


_KNOWN = frozenset(COLUMNS)


def decode(path: Path) -> list[Row]:
    """All rows of one file, with columns that are unknown here.

    Damaged for a file that is truncated, lacks a column, or has a bad cell, an empty line, a line longer than
    LONGEST_LINE or more than MOST_BYTES of text, of which no more is unpacked. Newer where such a file has unknown
    columns.
    """
    rows: list[Row] = []
    unknown: list[str] = []
    try:
        with gzip.open(path, "rb") as file:
            reader = csv.DictReader(_lines(file), strict=True)
            names = list(reader.fieldnames or [])
            absent = [name for name in COLUMNS if name not in names]
            missing = [name for name in absent if name not in ADDED]
            if missing:
                raise Damaged(f"column {missing[0]} is missing")
            unknown = [name for name in names if name not in _KNOWN]
            if len(set(names)) != len(names):
                raise Damaged("a column is there twice")
            for line, row in enumerate(reader, start=2):
                row |= dict.fromkeys(absent, "")
                _check(row, line)
                rows.append(row)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Damaged(f"truncated or not gzip ({error})") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise Damaged(f"not CSV ({error})") from error
    except Damaged as damage:
        if unknown:
            raise Newer(f"{damage}, and column {unknown[0]} is of a newer program") from damage
        raise
    return rows


def _lines(file: gzip.GzipFile) -> Iterator[str]:
    """The lines of a file as text. No cell has a line break, so a line is a row."""
    number = total = 0
    while line := file.readline(LONGEST_LINE + 1):
        number, total = number + 1, total + len(line)
        if len(line) > LONGEST_LINE:
            raise Damaged(f"line {number} has more than {LONGEST_LINE >> 10} KiB")
        if total > MOST_BYTES:
            raise Damaged(f"more than {MOST_BYTES >> 20} MiB unpacked")
        if not line.strip():
            raise Damaged(f"line {number} is empty")
        yield line.decode("utf-8")


def _check(row: dict[Any, Any], line: int) -> None:
    """Damaged for a row with too few or too many cells, or with a bad cell."""
    if None in row or None in row.values():
        raise Damaged(f"line {line} has not as many cells as columns")
    if row["outcome"] not in OUTCOMES:
        raise Damaged(f"line {line} has the outcome {row['outcome']!r}")
    for kind, names in ((int, INTEGERS), (float, FLOATS)):
        for name in names:
            try:
                # An empty cell was not measured. NEEDED cells are never empty.
                if (row[name] != "" or name in NEEDED) and not math.isfinite(kind(row[name])):
                    raise ValueError
            except (ValueError, OverflowError) as error:
                raise Damaged(f"line {line} has {name} = {row[name]!r}") from error
    fault = _problem_fault(*(row[name] for name in PROBLEM))
    if fault:
        raise Damaged(f"line {line} has no legal problem: {fault}")


@cache
def _problem_fault(form: str, *cells: str) -> str:
    """Why these cells of PROBLEM are not a legal problem, or ""."""
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
        if text != one:  # two spellings of one value would be two points
            return f"{name} {text!r} is written {one!r}"
    return ""
