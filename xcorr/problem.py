"""What is computed: form, shapes, counts and window, and what follows from them. harness/problem.cpp is the same in C++."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from xcorr.errors import UserError

FORMS = ("one-to-one", "one-to-many", "n-to-mn", "n-to-m")
LIMIT = 2**31 - 1
_WINDOW = re.compile(r"sy:(-?\d+)\.\.(-?\d+),sx:(-?\d+)\.\.(-?\d+)")
_SIZE = re.compile(r"(-?\d+)(?:x(-?\d+))?(?::(-?\d+)(?:x(-?\d+))?)?")
_COUNTS = re.compile(r"(-?\d+):(-?\d+)")

# Columns of rows and tables that hold a problem, in the order of `Problem.of_cells`.
COLUMNS = ("form", "left_rows", "left_cols", "right_rows", "right_cols", "lefts", "rights", "window")

Shape = tuple[int, int]


def _positive(value: int, what: str) -> int:
    if not 1 <= value <= LIMIT:
        raise UserError(f"{what}: {value} is out of range; use 1 to {LIMIT}")
    return value


def parse_size(size: int | str, what: str = "size") -> tuple[Shape, Shape]:
    """Left and right shape (rows, cols) of `64`, `"36x90"` or, if unequal, `"8x8:32x64"`."""
    text = str(size)
    match = _SIZE.fullmatch(text)
    if not match:
        raise UserError(f"{what} {text}: not a size; write 64, 36x90 or LEFT:RIGHT as in 8x8:32x64")
    rows, cols, right_rows, right_cols = match.groups()
    left = (int(rows), int(cols or rows))
    right = (int(right_rows), int(right_cols or right_rows)) if right_rows else left
    for number in (*left, *right):
        _positive(number, f"{what} {text}")
    return left, right


def parse_counts(counts: str, what: str = "counts") -> tuple[int, int]:
    """(lefts, rights) of "8:32"; rights is the total number of right matrices."""
    match = _COUNTS.fullmatch(counts)
    if not match:
        raise UserError(f"{what} {counts}: not counts; write LEFTS:RIGHTS as in 8:32")
    lefts, rights = int(match[1]), int(match[2])
    return _positive(lefts, f"{what} {counts}"), _positive(rights, f"{what} {counts}")


def format_shape(shape: Shape) -> str:
    """`36x90`."""
    return f"{shape[0]}x{shape[1]}"


@dataclass(frozen=True)
class Problem:
    """One problem: shapes are (rows, cols), `rights` is the total number of right matrices.

    Raises UserError for counts that do not fit the form, a window that is not legal, and sizes
    whose element counts overflow 63 bits.
    """

    form: str
    left: Shape
    right: Shape
    lefts: int
    rights: int
    window: str

    def __post_init__(self) -> None:
        where = f"problem {self.id}"
        if self.form == "one-to-one" and (self.lefts, self.rights) != (1, 1):
            raise UserError(f"{where}: one-to-one takes counts 1:1; use n-to-mn for several pairs")
        if self.form == "one-to-many" and self.lefts != 1:
            raise UserError(f"{where}: one-to-many takes one left; use counts 1:{self.rights}")
        if self.form == "n-to-mn" and self.rights % self.lefts:
            raise UserError(
                f"{where}: {self.rights} right matrices cannot be split evenly among {self.lefts} "
                f"left ones; use a multiple of {self.lefts}"
            )
        rows, cols = self.output
        elements = (
            self.lefts * math.prod(self.left),
            self.rights * math.prod(self.right),
            self.pairs * rows * cols,
            self.fmas // 8,
        )
        if max(elements) * 8 >= 2**63:
            raise UserError(f"{where}: its elements or FMAs overflow; use smaller sizes or counts")

    @classmethod
    def of_cells(cls, form: Any, *cells: Any) -> Problem:
        """The problem of cells in the order of COLUMNS, numbers as text or not."""
        *numbers, window = cells
        left_rows, left_cols, right_rows, right_cols, lefts, rights = map(int, numbers)
        return cls(str(form), (left_rows, left_cols), (right_rows, right_cols), lefts, rights, str(window))

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Problem:
        """The problem of a row that has COLUMNS."""
        return cls.of_cells(*(row[name] for name in COLUMNS))

    @classmethod
    def of_id(cls, name: str) -> Problem:
        """The problem with this id."""
        form, left, right, counts, window = name.split("/")
        return cls(form, *parse_size(f"{left}:{right}"), *parse_counts(counts), window)

    @property
    def cells(self) -> tuple[str | int, ...]:
        """Values of COLUMNS."""
        return (self.form, *self.left, *self.right, self.lefts, self.rights, self.window)

    @property
    def id(self) -> str:
        """`<form>/<left>/<right>/<lefts>:<rights>/<window>`."""
        shapes = f"{format_shape(self.left)}/{format_shape(self.right)}"
        return f"{self.form}/{shapes}/{self.lefts}:{self.rights}/{self.window}"

    @property
    def pairs(self) -> int:
        """Number of correlations."""
        return self.lefts * rights_of_a_left(self)

    @cached_property
    def shifts(self) -> tuple[range, range]:
        """Shifts (sy, sx) that are computed: rows and columns by which the right matrix is displaced."""
        (lh, lw), (rh, rw) = self.left, self.right
        if self.window == "full":
            return range(1 - lh, rh), range(1 - lw, rw)
        if self.window == "valid":
            if not ((lh <= rh and lw <= rw) or (lh >= rh and lw >= rw)):
                raise UserError(f"problem {self.id}: valid needs one matrix to contain the other; use full")
            return (range(min(0, rh - lh), max(0, rh - lh) + 1), range(min(0, rw - lw), max(0, rw - lw) + 1))
        match = _WINDOW.fullmatch(self.window)
        if not match:
            raise UserError(f"window {self.window}: unknown; use full, valid or sy:a..b,sx:c..d (inclusive)")
        a, b, c, d = map(int, match.groups())
        if a > b or c > d or max(map(abs, (a, b, c, d))) > LIMIT:
            raise UserError(f"window {self.window}: empty or out of range; the smaller first")
        if a <= -lh or b >= rh or c <= -lw or d >= rw:
            raise UserError(
                f"window {self.window}: leaves the full window of {format_shape(self.left)} and "
                f"{format_shape(self.right)}; stay within sy:{1 - lh}..{rh - 1},sx:{1 - lw}..{rw - 1}"
            )
        return range(a, b + 1), range(c, d + 1)

    @property
    def output(self) -> Shape:
        """Rows and columns of one output."""
        sy, sx = self.shifts
        return len(sy), len(sx)

    @cached_property
    def fmas(self) -> int:
        """Useful work: total overlap area of all pairs."""
        sy, sx = self.shifts
        return self.pairs * _overlaps(self.left[0], self.right[0], sy) * _overlaps(self.left[1], self.right[1], sx)

    def bytes(self, scalar: int) -> int:
        """Compulsory traffic: inputs once, outputs once, for scalars of that many bytes."""
        return scalar * (
            self.lefts * math.prod(self.left)
            + self.rights * math.prod(self.right)
            + self.pairs * math.prod(self.output)
        )

    @cached_property
    def fft_work(self) -> float:
        """N^2 log N of a padded FFT pipeline, summed over its transforms."""
        padded = (self.left[0] + self.right[0] - 1) * (self.left[1] + self.right[1] - 1)
        return (self.lefts + self.rights + self.pairs) * padded * math.log2(padded + 1)


def rights_of_a_left(problem: Any) -> int:
    """Number of right matrices that each left one is correlated with; of a Problem or a xcorr.library.Request."""
    return problem.rights // problem.lefts if problem.form == "n-to-mn" else problem.rights


def pair_indices(problem: Any) -> tuple[np.ndarray, np.ndarray]:
    """Left and right index of every pair of a Problem or a xcorr.library.Request."""
    each = rights_of_a_left(problem)
    pair = np.arange(problem.lefts * each)
    return pair // each, (pair % problem.rights if problem.form == "n-to-m" else pair)


def _overlaps(left: int, right: int, shifts: range) -> int:
    """Sum over the shifts of the length of the overlap of two intervals.

    The length grows, stays and falls linearly in the shift, so three arithmetic series give it.
    """

    def length(shift: int) -> int:
        return min(left, right - shift) - max(0, -shift)

    first, stop = max(shifts.start, 1 - left), min(shifts.stop, right)
    corners = sorted(min(max(corner, first), stop) for corner in (0, right - left))
    total = 0
    for a, b in zip((first, *corners), (*corners, stop)):
        if a < b:
            total += (b - a) * (length(a) + length(b - 1)) // 2
    return total
