"""Output of the commands: checks of files, CSV tables, and the error for correlations that are not finite."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.commands import peaks
from xcorr.commands.formats import file_of
from xcorr.errors import UserError
from xcorr.files import replaced_file, resolved
from xcorr.problem import Problem, pair_indices

PEAK_COLUMNS = ("pair", "left", "right", "sy", "sx", "value", "sub_sy", "sub_sx", "peak_to_second", "border")
FIGURES = (".svg", ".png", ".pdf")


def add_options(add: Any, table: str, drawn: str) -> None:
    """The options of a command that writes a table and a figure. `add`: add_argument of its parser."""
    add("--output", default="-", metavar=table, help="the table; - is stdout (default)")
    add("--figure", type=Path, metavar="FILE.svg", help=f"draw the {drawn}, as .svg, .png or .pdf")
    add("--variant", default="auto", metavar="ID", help="from xcorr --list (default: auto, the fastest known)")
    add("--device", default="cpu", help="cpu (default) or cuda:N")
    add("--force", action="store_true", help="replace existing files")


def check_targets(
    targets: Sequence[Path | str | None], inputs: Sequence[Path | None], force: bool, figure: Path | None = None
) -> None:
    """UserError if `figure` or one of `targets` ("-" is stdout) cannot be written, exists without `force`, or is one of `inputs`."""
    if figure is not None and figure.suffix not in FIGURES:
        raise UserError(f"--figure {figure}: end it with {', '.join(FIGURES[:-1])} or {FIGURES[-1]}")
    taken = {resolved(file_of(path)) for path in inputs if path is not None}
    for target in (Path(one) for one in (*targets, figure) if one is not None and str(one) != "-"):
        if os.path.exists(target) and not target.is_file():
            raise UserError(f"{target}: is not a regular file; name a file")
        if resolved(target) in taken:
            raise UserError(f"{target}: is named twice; choose another output")
        if os.path.exists(target) and not force:
            raise UserError(f"{target}: exists; use --force to replace it")
        with replaced_file(target, keep=False):
            pass
        taken.add(resolved(target))


def check_finite(out: NDArray[Any], first: int) -> None:
    """UserError naming the first pair with an output that is not finite. `first`: number of the first pair of `out`."""
    for pair, surface in enumerate(out, first):
        if not np.isfinite(surface).all():
            raise UserError(
                f"pair {pair}: the correlation overflows; scale the matrices (--allow-nonfinite writes such --output "
                "all the same)"
            )


def write_peaks(where: str, problem: Problem, found: peaks.Peaks) -> None:
    """The CSV of PEAK_COLUMNS to a file or, for '-', to stdout."""
    left, right = pair_indices(problem)
    columns = {"pair": np.arange(len(left)), "left": left, "right": right, **vars(found)}
    write_columns(where, PEAK_COLUMNS, [columns[name] for name in PEAK_COLUMNS])


def write_columns(where: str, names: Sequence[str], columns: Sequence[NDArray[Any]]) -> None:
    """A CSV of columns of numbers to a file or, for '-', to stdout."""
    write_rows(where, names, zip(*(one.tolist() for one in columns)))


def write_rows(where: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV of rows of numbers to a file or, for '-', to stdout."""
    lines = "".join(",".join(map(cell, row)) + "\n" for row in (names, *rows))
    if where == "-":
        sys.stdout.write(lines)
        sys.stdout.flush()
        return
    with replaced_file(Path(where)) as file:
        file.write(lines.encode())


def cell(value: Any) -> str:
    """Text of a number in a CSV: up to 9 digits, empty for NaN."""
    if isinstance(value, float):
        return "" if value != value else f"{value:.9g}"
    return str(value)
