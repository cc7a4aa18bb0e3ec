"""Choice of precision and variant by the numbers of a problem.

If the conversion to float32 loses too much (xcorr/native/conversion.py), auto takes fp64. If an FFT would lose small outputs
(xcorr/choice/fft_range.py), it takes a variant by definition. If it may not or cannot, a line says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.choice import fft_range
from xcorr.errors import LibraryError, UserError
from xcorr.native import conversion
from xcorr.native.arrays import Windows, check_type
from xcorr.native.conversion import Converted, Loss
from xcorr.native.precisions import scalar_type
from xcorr.native.stream import Job
from xcorr.problem import Problem

FLAT = (
    f"windows that deviate by less than {conversion.CONSTANT:.1g} of their largest value score 0 in any precision; "
    "remove the background first"
)


@dataclass(frozen=True)
class Side:
    """Matrices x rows x cols of the user, or the frame of windows; `valid`: 0 where an element is ignored, in the same shape."""

    name: str
    stack: NDArray[Any]
    valid: NDArray[Any] | None = None
    is_frame: bool = False


def sides_of(
    problem: Problem, left: Any, right: Any = None, left_mask: Any = None, right_mask: Any = None
) -> tuple[Side, Side]:
    """Both sides from arrays as in Library.correlate. LibraryError for arrays that do not fit the problem."""
    right = left if problem.fields.same == "yes" else right
    shapes = (problem.lefts, *problem.left), (problem.rights, *problem.right)
    made = []
    for name, array, mask, shape in zip(("left", "right"), (left, right), (left_mask, right_mask), shapes):
        is_frame = isinstance(array, Windows)
        stack = np.asarray(array.frame if isinstance(array, Windows) else array)
        check_type(name, stack)
        if stack.ndim < 2 or (not is_frame and stack.size != np.prod(shape)):
            raise LibraryError(f"{name}: array of shape {stack.shape}; {tuple(shape)} needed")
        stack = stack.reshape(1, -1, stack.shape[-1]) if is_frame else stack.reshape(shape)
        made.append(Side(name, stack, None if mask is None else np.asarray(mask).reshape(shape), is_frame))
    return made[0], made[1]


@dataclass(frozen=True)
class Cost:
    """Loss by conversion of the worse side of a problem, and its name."""

    side: str
    loss: Loss

    @classmethod
    def of(cls, problem: Problem, facts: Any, sides: tuple[Side, Side], made: Sequence[Converted]) -> Cost:
        """`facts`: Description of the problem or of a part of it."""
        shifts = range(facts.sy0, facts.sy0 + facts.out_rows), range(facts.sx0, facts.sx0 + facts.out_cols)
        window = conversion.least_overlap(problem, shifts)
        costs = [
            cls(side.name, conversion.loss(side.stack, one, problem.fields, window, side.valid, side.is_frame))
            for side, one in list(zip(sides, made))[: 1 if problem.fields.same == "yes" else 2]
        ]
        worst = max(costs, key=lambda one: one.loss.worst)
        return replace(worst, loss=replace(worst.loss, flat=any(one.loss.flat for one in costs)))

    @property
    def text(self) -> str:
        """The loss in words."""
        share = f"{100 * self.loss.worst:.2g} %" if self.loss.worst < 10 else "more than ten times"
        of = "a window" if self.loss.local else "a matrix"
        return f"{self.side}: rounding to float32 changes {of} by {share} of its deviation"

    def warning(self, problem: Problem) -> str:
        """The loss and the way out, for a precision that stays."""
        way_out = "subtract an offset first (--subtract-mean), or " if problem.fields.centring == "none" else ""
        return f"{self.text}; {way_out}compute in fp64"


def by_data(
    auto: Any,
    library: Any,
    problem: Problem,
    sides: tuple[Side, Side],
    precision: str | None,
    device: str,
    feasible_us: float,
) -> Any:
    """The choice of `auto` (an xcorr.choice.auto.Auto) for these numbers. `precision` None: fp32, or fp64 as in
    `converted`, where it takes at most `feasible_us`."""
    asked = precision or "fp32"
    auto.choose(problem, asked)  # refuses before anything is converted
    wider = partial(fp64_of, partial(auto.choose, problem, "fp64"), feasible_us) if precision is None else None
    stacks, cost, in_fp64 = converted(library, problem, sides, scalar_type(asked), wider)
    job = Job("", "", "fp64" if in_fp64 else asked, device)
    return settled(library, problem, cost, stacks, job, partial(auto.choose, problem, job.precision))


def fp64_of(choose: Callable[[], Any], feasible_us: float) -> Any:
    """What `choose` gives in fp64, None if there is nothing or it takes too long."""
    try:
        choice = choose()
    except (UserError, LibraryError):
        return None
    return choice if choice.us <= feasible_us else None


def converted(
    library: Any, problem: Problem, sides: tuple[Side, Side], scalar: type, wider: Callable[[], Any] | None
) -> tuple[list[NDArray[Any]], Cost, Any]:
    """Both stacks in `scalar`, what that cost, and None. In float64, with what `wider` gives, if float32 has too few
    digits, the score does not change with an offset, and `wider` gives something."""
    offset_free = problem.fields.centring != "none"

    def both(scalar: type) -> list[Converted]:
        return [conversion.converted(one.stack, scalar, offset_free, one.valid, one.is_frame) for one in sides]

    made = both(scalar)
    cost = Cost.of(problem, library.describe(problem), sides, made)
    found = wider() if cost.loss and wider and offset_free else None
    return [one.stack for one in (both(np.float64) if found else made)], cost, found


def settled(
    library: Any, problem: Problem, cost: Cost, stacks: Sequence[NDArray[Any]], job: Job, choose: Callable[[str], Any]
) -> Any:
    """The choice for converted stacks. `choose` gives it for a risk (fft_range.risk); `job`: precision and device."""
    choice, notes = choose(""), []
    if cost.loss and job.precision != "fp64":
        notes.append(cost.warning(problem))
    notes += [FLAT] * cost.loss.flat
    if library.variant(choice.variant)["algorithm_class"] == "fft":
        most = library.describe(problem).max_overlap
        choice = choose(fft_range.risk(problem, most, stacks[0], stacks[1], job.precision, job.device))
    notes += [choice.warning] * bool(choice.warning)
    why = f"{choice.why}; fp64: {cost.text}" if cost.loss and job.precision == "fp64" else choice.why
    return replace(choice, why=why, precision=job.precision, warning="; ".join(notes))
