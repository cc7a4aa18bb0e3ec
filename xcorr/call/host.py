"""Calls on arrays of the host: NumPy's, and what NumPy can read."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.call import chosen
from xcorr.call.foreign import kind_of
from xcorr.call.plan import Plan, check_masks
from xcorr.call.question import SIDES, Options, Question, Shapes, Types, question_of
from xcorr.errors import UserError
from xcorr.native.library import Session


class HostInputs:
    """Left, right and masks of a call as NumPy arrays, and how a result gets back to the kind of the left array."""

    def __init__(self, left: Any, right: Any, mask_left: Any = None, mask_right: Any = None) -> None:
        self._is_torch = type(left).__module__.partition(".")[0] == "torch"
        self.left: Any = numpy_of("left", left)
        self.right: Any = numpy_of("right", right)
        if self.left is None:
            raise UserError("left: None; give an array")
        self.masks: dict[str, Any] = {
            f"{side}_mask": numpy_of(f"mask_{side}", one) for side, one in zip(SIDES, (mask_left, mask_right))
        }
        self.shapes: Shapes = tuple(None if one is None else one.shape for one in (self.left, self.right))
        self.types: Types = tuple(None if one is None else one.dtype.name for one in (self.left, self.right))

    def returned(self, result: NDArray[Any]) -> Any:
        """The result, as a tensor where the left array is one; records stay NumPy's."""
        if not self._is_torch or result.dtype.names:
            return result
        torch: Any = sys.modules["torch"]
        return torch.from_numpy(result)


def numpy_of(name: str, array: Any) -> NDArray[Any] | None:
    """The array, or a NumPy array of the same memory. bfloat16, which NumPy does not compute with, becomes float32."""
    if kind_of(array) is not None:
        raise UserError(f"{name}: lies on a GPU, and the left array on the host; give all arrays on one device")
    if array is None or isinstance(array, np.ma.MaskedArray):
        return array  # the library says what to do with masked elements
    if type(array).__module__.partition(".")[0] == "torch":
        array = array.detach()
        array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()
    try:
        made = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name}: no array ({error}); give one") from None
    return made.astype(np.float32) if made.dtype.name == "bfloat16" else made


def native_out(question: Question, out: Any) -> NDArray[Any] | None:
    """`out` in the shape in which the library writes. UserError unless it is a dense array of the type and shape of the result."""
    if out is None:
        return None
    made = numpy_of("out", out)
    if question.problem.fields.result_kind == "above":
        raise UserError("out: of result above nobody knows the length before; leave it out")
    if made is None or made.shape != question.shape or made.dtype != question.native_type:
        given = type(out).__name__ if made is None else f"{made.dtype} {made.shape}"
        raise UserError(f"out: {given}; give {question.native_type} {question.shape}")
    if not made.flags.c_contiguous:
        raise UserError("out: its elements are not contiguous; give a dense array, as numpy.empty makes it")
    return made.reshape(question.native_shape)


def shaped(question: Question, result: NDArray[Any]) -> NDArray[Any]:
    """A result of the library in the shape of the call's."""
    return result if question.problem.fields.result_kind == "above" else result.reshape(question.shape)


def correlate(options: Options, inputs: HostInputs, out: Any, stream: Any) -> Any:
    """The result of one call, with the plan of an earlier call of the same kind if the library has kept it."""
    if stream is not None:
        raise UserError("stream: arrays of the host have none; leave it out")
    question = question_of(options, inputs.shapes, inputs.types)
    into = native_out(question, out)
    variant, params = chosen.choice_by_data(question, options.variant, inputs.left, inputs.right, inputs.masks)
    made = chosen.library().correlate(
        question.problem,
        inputs.left,
        inputs.right,
        variant=variant,
        params=params,
        precision=question.precision,
        out=into,
        **inputs.masks,
    )
    return inputs.returned(shaped(question, made)) if out is None else out


class HostPlan(Plan):
    """A planned call on arrays of the host. Calls of several threads run one after the other."""

    def __init__(self, options: Options, shapes: Shapes, types: Types) -> None:
        self.options, self._shapes, self._types = options, shapes, types
        self.question = question_of(options, shapes, types)
        self.device = "cpu"
        self.variant, self.params = chosen.choice_by_sizes(self.question, options.variant, self.device)
        how = {"variant": self.variant, "params": self.params, "precision": self.question.precision}
        self._session = Session(chosen.library(), self.question.problem, {**how, "device": self.device})

    def __call__(
        self,
        left: Any,
        right: Any = None,
        out: Any = None,
        stream: Any = None,
        *,
        mask_left: Any = None,
        mask_right: Any = None,
    ) -> Any:
        if stream is not None:
            raise UserError("stream: this plan computes on the CPU, which has none; leave it out")
        check_masks(self.options.masked, (mask_left, mask_right))
        inputs = HostInputs(left, right, mask_left, mask_right)
        for side, given, planned in zip(SIDES, inputs.shapes, self._shapes):
            if given != planned:
                raise UserError(f"{side}: shape {given}, and the plan has {planned}; make another plan")
        into = native_out(self.question, out)
        made = self._session.correlate(inputs.left, inputs.right, into, **inputs.masks)
        return inputs.returned(shaped(self.question, made)) if out is None else out

    def check(self) -> None:
        """Does nothing: a call on the host raises its errors itself."""

    def clone(self) -> HostPlan:
        return HostPlan(self.options, self._shapes, self._types)

    def close(self) -> None:
        self._session.close()
