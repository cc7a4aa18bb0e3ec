"""A problem: form, shapes, counts, window and fields. harness/problem/problem.cpp is the same in C++."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr import fields as field_texts
from xcorr import results
from xcorr.errors import UserError
from xcorr.fields import NORMALISED, PLAIN, Fields

FORMS = ("one-to-one", "one-to-many", "n-to-mn", "n-to-m")
LIMIT = 2**31 - 1
LARGEST = 2**32  # side and count, as in C++
_WINDOW = re.compile(r"sy:(-?\d+)\.\.(-?\d+),sx:(-?\d+)\.\.(-?\d+)")
_WINDOW_EXAMPLE = "; write full, valid or a range of shifts as sy:-3..3,sx:0..7"
_SIZE = re.compile(r"(-?\d+)(?:x(-?\d+))?(?::(-?\d+)(?:x(-?\d+))?)?")
_COUNTS = re.compile(r"(-?\d+):(-?\d+)")

# Columns of a problem in rows and tables, in the order of `Problem.of_cells`. A default field is empty text.
GEOMETRY = ("form", "left_rows", "left_cols", "right_rows", "right_cols", "lefts", "rights", "window")
COLUMNS = (*GEOMETRY, *field_texts.NAMES)

Shape = tuple[int, int]


def _positive(value: int, what: str) -> int:
    if not 1 <= value <= LIMIT:
        raise UserError(f"{what}: {value} is out of range; use 1 to {LIMIT}")
    return value


def _whole(name: str, value: Any) -> int:
    """A size or count of any integer type. UserError for other types and out of range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise UserError(f"{name} {value!r}: not a whole number; give an integer") from None
    if not 1 <= number <= LARGEST:
        raise UserError(f"{name} {number}: out of range; use 1 to {LARGEST}")
    return number


def _shape(name: str, shape: Any) -> Shape:
    try:
        rows, cols = shape
    except (TypeError, ValueError):
        raise UserError(f"{name} {shape!r}: not a shape; give (rows, cols)") from None
    return _whole(f"{name} rows", rows), _whole(f"{name} cols", cols)


def parse_size(size: int | str) -> tuple[Shape, Shape]:
    """Left and right shape (rows, cols) of `64`, `"36x90"` or, if unequal, `"8x8:32x64"`."""
    text = str(size)
    match = _SIZE.fullmatch(text)
    if not match:
        raise UserError(f"size {text}: not a size; write 64, 36x90 or LEFT:RIGHT as in 8x8:32x64")
    rows, cols, right_rows, right_cols = match.groups()
    left = (int(rows), int(cols or rows))
    right = (int(right_rows), int(right_cols or right_rows)) if right_rows else left
    for number in (*left, *right):
        _positive(number, f"size {text}")
    return left, right


def parse_counts(counts: str) -> tuple[int, int]:
    """(lefts, rights) of "8:32"; rights is the total number of right matrices."""
    match = _COUNTS.fullmatch(counts)
    if not match:
        raise UserError(f"counts {counts}: not counts; write LEFTS:RIGHTS as in 8:32")
    return _positive(int(match[1]), f"counts {counts}"), _positive(int(match[2]), f"counts {counts}")


def format_shape(shape: tuple[int, ...]) -> str:
    """`36x90`."""
    return "x".join(map(str, shape))


@dataclass(frozen=True, init=False)
class Problem:
    """One problem. Shapes are (rows, cols); `rights` is the total number of right matrices.

        Problem("n-to-m", (24, 24), (480, 640), lefts=3, rights=8, window="valid", score="zncc", result="peak")

    Texts by name replace those of `fields`. UserError for sizes and counts that are not integers or out of range, counts that
    contradict the form, an illegal window, element counts beyond 63 bits, and fields that contradict each other or the shapes.
    """

    form: str
    left: Shape
    right: Shape
    lefts: int
    rights: int
    window: str
    fields: Fields

    def __init__(
        self,
        form: str,
        left: Shape,
        right: Shape,
        lefts: int = 1,
        rights: int = 1,
        window: str = "full",
        fields: Fields = PLAIN,
        **texts: str,
    ) -> None:
        if form not in FORMS:
            raise UserError(f"form '{form}': unknown; use {', '.join(FORMS[:-1])} or {FORMS[-1]}")
        if not isinstance(window, str):
            raise UserError(f"window {window!r}: not a text{_WINDOW_EXAMPLE}")
        shapes = {name: _shape(name, shape) for name, shape in (("left", left), ("right", right))}
        counts = {name: _whole(name, count) for name, count in (("lefts", lefts), ("rights", rights))}
        own = replace(fields, **texts) if texts else fields
        for name, value in {"form": form, **shapes, **counts, "window": window, "fields": own}.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        """UserError for contradictory counts, window, fields or sizes."""
        counts = f"counts {self.lefts}:{self.rights}"
        if self.form == "one-to-one" and (self.lefts, self.rights) != (1, 1):
            raise UserError(f"{counts}: one-to-one means 1:1; use n-to-mn for several pairs")
        if self.form == "one-to-many" and self.lefts != 1:
            raise UserError(f"{counts}: one-to-many has one left; use n-to-mn or n-to-m")
        if self.form == "n-to-mn" and self.rights % self.lefts:
            more = (self.rights // self.lefts + 1) * self.lefts
            raise UserError(
                f"{counts}: n-to-mn needs rights divisible by lefts (rights is the total number); the next is {more}"
            )
        self._check_fields()
        rows, cols = self.output
        inputs = max(self.lefts * math.prod(self.left), self.rights * math.prod(self.right))
        if 8 * max(inputs, self.pairs * rows * cols, self.fmas // 8) >= 2**63:
            raise UserError(f"problem {self.id}: its elements or FMAs overflow; use smaller sizes or counts")

    def _check_fields(self) -> None:
        """UserError for fields that contradict each other, the shapes or the counts."""
        own, kind, (left, right) = self.fields, self.fields.score_kind, map(format_shape, (self.left, self.right))
        circular, same_shape = own.boundary == "circular", self.left == self.right
        if circular and not same_shape:
            raise UserError(
                f"boundary 'circular': shapes {left} and {right} differ; use two equal shapes or boundary zero"
            )
        if circular and kind in NORMALISED:
            raise UserError(f"score '{own.score}': has no meaning with boundary circular; use boundary zero")
        if kind == "phase" and self.window == "valid":
            raise UserError(f"score '{own.score}': has no valid window; use full or a range of shifts")
        if kind == "phase" and not circular:
            raise UserError(f"score '{own.score}': needs boundary circular; add it")
        if own.masks != "none" and kind not in NORMALISED:
            raise UserError(f"masks '{own.masks}': only ncc and zncc use masks; add score zncc or leave the masks out")
        if own.same == "yes" and not (same_shape and self.lefts == self.rights):
            raise UserError(
                "same 'yes': left and right are one array, so they need one shape and one count; got "
                f"{left} and {right}, {self.lefts}:{self.rights}"
            )
        if own.result.startswith("peak:upsample=") and self.window != "full":
            raise UserError(f"result '{own.result}': interpolation needs all shifts; use window full")
        records_have_shifts = own.result_kind not in ("surface", "sum")
        ends = (abs(end) for shifts in self.shifts for end in (shifts[0], shifts[-1]))
        if records_have_shifts and max(ends) > LIMIT:
            raise UserError(f"result '{own.result}': shifts beyond 2^31 - 1 do not fit a record; use a smaller window")

    @classmethod
    def of_cells(cls, form: Any, *cells: Any) -> Problem:
        """The problem of cells in the order of COLUMNS; numbers may be text, fields may be missing."""
        left_rows, left_cols, right_rows, right_cols, lefts, rights = map(int, cells[:6])
        fields = Fields.of(dict(zip(field_texts.NAMES, cells[7:])))
        return cls(str(form), (left_rows, left_cols), (right_rows, right_cols), lefts, rights, str(cells[6]), fields)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Problem:
        """The problem of a row with COLUMNS; missing fields have their defaults."""
        return cls.of_cells(*(row[name] for name in GEOMETRY), *(row.get(name, "") for name in field_texts.NAMES))

    @classmethod
    def of_id(cls, name: str) -> Problem:
        """Inverse of `id`. UserError for any other text."""
        parts = name.split("/")
        if len(parts) < 5 or not all("=" in part for part in parts[5:]):
            raise UserError(
                f"problem '{name}': not understood; write FORM/ROWSxCOLS/ROWSxCOLS/LEFTS:RIGHTS/WINDOW and then "
                "/NAME=VALUE for each field, as n-to-m/33x33/33x33/3:5/full/score=zncc"
            )
        form, left, right, counts, window = parts[:5]
        fields = Fields.of_text("/".join(parts[5:]))
        return cls(form, *parse_size(f"{left}:{right}"), *parse_counts(counts), window, fields)

    @property
    def cells(self) -> tuple[str | int, ...]:
        """Values of COLUMNS."""
        return (self.form, *self.left, *self.right, self.lefts, self.rights, self.window, *self.fields.cells)

    @property
    def id(self) -> str:
        """`<form>/<left>/<right>/<lefts>:<rights>/<window>`, then `/<name>=<value>` for each field that is not default."""
        shapes = f"{format_shape(self.left)}/{format_shape(self.right)}"
        fields = f"/{self.fields.text}" if self.fields != PLAIN else ""
        return f"{self.form}/{shapes}/{self.lefts}:{self.rights}/{self.window}{fields}"

    @property
    def is_plain(self) -> bool:
        """Whether every field but `same` is default: a surface of products of dense matrices."""
        return replace(self.fields, same="no") == PLAIN

    @property
    def surface(self) -> Problem:
        """The problem with result surface."""
        return replace(self, fields=replace(self.fields, result="surface"))

    @property
    def pairs(self) -> int:
        """Number of correlations."""
        return self.lefts * rights_of_a_left(self)

    @cached_property
    def shifts(self) -> tuple[range, range]:
        """Computed shifts (sy, sx), in rows and columns, of the right matrix against the left."""
        (lh, lw), (rh, rw) = self.left, self.right
        full = range(1 - lh, rh), range(1 - lw, rw)
        if self.fields.boundary == "circular":  # shifts s and s + length are equal; the one nearest to 0 is used
            full = range(-(lh // 2), (lh + 1) // 2), range(-(lw // 2), (lw + 1) // 2)
        if self.window == "full":
            return full
        if self.window == "valid":
            if not ((lh <= rh and lw <= rw) or (lh >= rh and lw >= rw)):
                left, right = map(format_shape, (self.left, self.right))
                raise UserError(
                    f"window 'valid': neither {left} nor {right} contains the other; use full or an explicit window"
                )
            return (range(min(0, rh - lh), max(0, rh - lh) + 1), range(min(0, rw - lw), max(0, rw - lw) + 1))
        match = _WINDOW.fullmatch(self.window)
        if not match:
            raise UserError(f"window '{self.window}': not understood{_WINDOW_EXAMPLE}")
        a, b, c, d = map(int, match.groups())
        for axis, first, last, whole in (("sy", a, b, full[0]), ("sx", c, d, full[1])):
            where = f"window '{self.window}': {axis}"
            if first > last:
                raise UserError(f"{where} is empty: its first shift is larger than its last; exchange the two")
            if first < whole[0] or last > whole[-1]:
                raise UserError(f"{where} leaves the full window; stay within {whole[0]}..{whole[-1]}")
        return range(a, b + 1), range(c, d + 1)

    @property
    def output(self) -> Shape:
        """Rows and columns of one output."""
        sy, sx = self.shifts
        return len(sy), len(sx)

    @property
    def out_elements(self) -> int:
        """Elements of the surfaces of all pairs, whatever the result."""
        return self.pairs * math.prod(self.output)

    @cached_property
    def fmas(self) -> int:
        """Useful work: sum of the overlaps of all shifts and pairs; an overlap is the whole area with boundary circular."""
        if self.fields.boundary == "circular":
            return self.pairs * math.prod(self.left) * math.prod(self.output)
        sy, sx = self.shifts
        return self.pairs * _overlaps(self.left[0], self.right[0], sy) * _overlaps(self.left[1], self.right[1], sx)

    def bytes(self, scalar: int) -> int:
        """Compulsory traffic in bytes: inputs, masks and result once; `scalar`: bytes of a scalar."""
        elements = {"left": self.lefts * math.prod(self.left), "right": self.rights * math.prod(self.right)}
        inputs = elements["left"] + (elements["right"] if self.fields.same == "no" else 0)
        masks = sum(elements[side] for side in self.fields.masked_sides)
        return inputs * scalar + masks + self.result_bytes(scalar)

    def result_bytes(self, scalar: int) -> int:
        """Bytes of the result (xcorr.results); `scalar`: bytes of an output."""
        elements = math.prod(results.shape_of(self.fields, (self.pairs, *self.output)))
        return elements * results.type_of(self.fields, np.dtype(f"f{scalar}").type).itemsize

    @cached_property
    def fft_work(self) -> float:
        """Sum of N^2 log N over the transforms of an FFT, padded unless the boundary is circular."""
        padded = (self.left[0] + self.right[0] - 1) * (self.left[1] + self.right[1] - 1)
        if self.fields.boundary == "circular":
            padded = math.prod(self.left)
        return (self.lefts + self.rights + self.pairs) * padded * math.log2(padded + 1)


def rights_of_a_left(problem: Problem) -> int:
    """Number of right matrices that each left one is correlated with."""
    return problem.rights // problem.lefts if problem.form == "n-to-mn" else problem.rights


def pair_indices(problem: Problem) -> tuple[NDArray[Any], NDArray[Any]]:
    """Left and right index of every pair."""
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
