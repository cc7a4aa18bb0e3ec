"""The problem that a call asks for: form from the axes of its arrays, precision from their types, and the shape of its result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from xcorr import results
from xcorr.errors import UserError
from xcorr.fields import Fields
from xcorr.native.precisions import PRECISIONS, scalar_type
from xcorr.problem import FORMS, Problem

# Types whose values float32 holds. All others ask for float64, as NumPy's promotion with float32 does.
EXACT_IN_FP32 = ("bool", "uint8", "int8", "uint16", "int16", "float16", "bfloat16", "float32")
SIDES = ("left", "right")
# Of left and right; None for a right side that is the left one.
Shapes = tuple[tuple[int, ...] | None, ...]
Types = tuple[str | None, ...]


@dataclass(frozen=True)
class Options:
    """The keywords of a call that say what is computed."""

    form: str | None = None
    window: str = "full"
    score: str = "product"
    boundary: str = "zero"
    result: str = "surface"
    precision: str | None = None
    variant: str = "auto"
    masked: tuple[str, ...] = ()  # sides with a mask

    def __post_init__(self) -> None:
        if self.form is not None and self.form not in FORMS:
            raise UserError(f"form {self.form!r}: unknown; use None, {', '.join(FORMS[:-1])} or {FORMS[-1]}")
        if self.precision is not None and self.precision not in PRECISIONS:
            raise UserError(f"precision {self.precision!r}: unknown; use None, {', '.join(PRECISIONS)}")
        if not isinstance(self.variant, str) or not self.variant:
            raise UserError(f"variant {self.variant!r}: not a text; use auto, or the id of a variant")


@dataclass(frozen=True)
class Question:
    """A problem with its precision. `lead`: axes of the result before those of one pair."""

    problem: Problem
    precision: str
    lead: tuple[int, ...]

    @property
    def scalar(self) -> type:
        return scalar_type(self.precision)

    @cached_property
    def native_shape(self) -> tuple[int, ...]:
        """Shape of the result as the library writes it, pairs first."""
        return results.shape_of(self.problem.fields, (self.problem.pairs, *self.problem.output))

    @cached_property
    def native_type(self) -> np.dtype[Any]:
        return results.type_of(self.problem.fields, self.scalar)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result of the call. Detections of `above` are one list for all pairs."""
        if self.problem.fields.result_kind == "above":
            return self.native_shape
        return (*self.lead, *self.native_shape[1:])


def question_of(options: Options, shapes: Shapes, types: Types, views: str = "dense") -> Question:
    """The question of a call. UserError for shapes that no form has and for contradictory options."""
    same = shapes[1] is None
    given = (shapes[0], shapes[0] if same else shapes[1])
    left, right = (_stack(side, shape) for side, shape in zip(SIDES, given))
    stacked = [len(shape or ()) == 3 for shape in given]
    form = options.form or _inferred(stacked[0], stacked[1])
    lead = tuple(stack[0] for stack, has_axis in zip((left, right), stacked) if has_axis)
    if form == "n-to-mn":
        lead = (right[0],)
    masks = {(): "none", ("left",): "left", ("right",): "right"}.get(options.masked, "both")
    texts = {"score": options.score, "boundary": options.boundary, "result": options.result, "masks": masks}
    texts |= {"same": "yes" if same else "no", "views": views}
    try:
        problem = Problem(form, left[1:], right[1:], left[0], right[0], options.window, Fields.of(texts))
    except UserError as error:
        taken = "" if options.form else f", taken as {form}"
        raise UserError(f"{error} (left {given[0]}, right {given[1]}{taken})") from None
    precision = options.precision or ("fp32" if all(one in EXACT_IN_FP32 for one in types if one) else "fp64")
    return Question(problem, precision, lead)


def _inferred(left_is_stack: bool, right_is_stack: bool) -> str:
    if not left_is_stack and not right_is_stack:
        return "one-to-one"
    return "n-to-m" if left_is_stack else "one-to-many"


def _stack(side: str, shape: tuple[int, ...] | None) -> tuple[int, int, int]:
    """Matrices, rows and columns of a shape. UserError unless it has two or three axes and elements."""
    shape = shape or ()
    if len(shape) not in (2, 3):
        raise UserError(f"{side}: an array of shape {shape}; give (rows, cols) or (matrices, rows, cols)")
    if 0 in shape:
        raise UserError(f"{side}: an array of shape {shape} has no elements; give at least one")
    matrices, rows, cols = (1, *shape)[-3:]
    return matrices, rows, cols
