"""Calls and plans on arrays of a GPU. A call only enqueues; nothing here reads the numbers of an array."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xcorr.call import chosen, producers
from xcorr.call.foreign import CUPY, JAX, TORCH, Foreign, quick_facts, quick_pointer, read
from xcorr.call.plan import Plan, check_masks
from xcorr.call.question import EXACT_IN_FP32, SIDES, Options, Question, question_of
from xcorr.errors import LibraryError, NotEnqueued, UserError
from xcorr.native.device_session import DeviceSession, Layout

KEPT_PLANS = 4  # of calls without a plan; each has a workspace
WORD = np.dtype(np.int32)  # of which records consist
_MASKS = ("mask_left", "mask_right")
_MASK_TYPES = ("bool", "uint8")


class DevicePlan(Plan):
    """A planned call on arrays of a GPU."""

    def __init__(self, options: Options, like: Sequence[Kind | None]) -> None:
        """`like`: left, right, and the masks of both; None for what a call does not have."""
        self.options, self._like = options, tuple(like)
        facts = [None if one is None else one.like for one in like]
        left = facts[0]
        assert left is not None
        self._kind, self._device, self._blocking = left.kind, left.device, JAX in [one and one.kind for one in facts]
        self.device = f"cuda:{left.device}"
        _check_kinds(facts)
        self.question, self.variant, self.params, self._session = _opened(options, facts[:2], self.device)
        self._shape, self._type = result_words(self.question)
        self._out: Kind | None = None  # that of the last result
        self._is_above = self.question.problem.fields.result_kind == "above"
        self._last: tuple[Any, int, int] | None = None  # detections of the last call, address of its result, stream

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
        named = stream is not None
        if named:
            stream = producers.handle_of(stream)
        elif self._kind in (TORCH, CUPY):
            stream = producers.current_stream(self._kind, self._device)
        masks = (mask_left, mask_right)
        if mask_left is not None or mask_right is not None or self.options.masked:
            check_masks(self.options.masked, masks)
        given = (left, right, *masks)
        at: list[int | None] = []
        facts: list[Foreign] = []
        for name, array, kind in zip((*SIDES, *_MASKS), given, self._like):
            at.append(self._address(name, array, kind, stream, facts))
        if stream is None:
            stream = producers.default_stream(self._kind, self._device, facts)
        if out is None:
            first = read("left", left, stream)
            out = producers.allocate(first, self._shape, self._type, stream, named)
        pointer = self._out_address(out)
        self._session.enqueue(at[0] or 0, at[1], pointer, (at[2], at[3]), stream)
        self._last = (out if self._is_above else None, pointer, stream)
        if named and self._kind == TORCH and stream != producers.current_stream(TORCH, self._device):
            producers.keep_for(stream, TORCH, self._device, (*(one for one in given if one is not None), out))
        if self._blocking:
            self._session.check(pointer if self._is_above else None, stream)
        return out

    def _address(
        self, name: str, array: Any, kind: Kind | None, stream: int | None, facts: list[Foreign]
    ) -> int | None:
        """The address of an array, which must be as the plan's."""
        if kind is None:
            if array is not None:
                raise UserError(f"{name}: the plan has none, as `like` had none; make another plan")
            return None
        if array is None:
            raise UserError(f"{name}: None; give an array as the plan was made for")
        pointer = kind.quickly(array)
        if pointer is None:
            one = read(name, array, stream)
            facts.append(one)
            kind.check(name, one)
            pointer = one.pointer
        return pointer

    def _out_address(self, out: Any) -> int:
        """The address of the result. UserError unless it is dense, of the type and shape of the result, and on the device."""
        pointer = self._out.quickly(out) if self._out is not None else None
        if pointer is not None:
            return pointer
        one = read("out", out)
        if one.device != self._device:
            raise UserError(f"out: lies on cuda:{one.device}, and the plan is of {self.device}; give an array there")
        if one.shape != self._shape or one.type != self._type.name:
            raise UserError(f"out: {one.type} {one.shape}; give {self._type.name} {self._shape}")
        if not one.is_dense:
            raise UserError("out: its elements are not contiguous; give a dense array, as empty() makes it")
        self._out = Kind(one)
        return one.pointer

    def check(self) -> None:
        if self._last is None:
            return
        _, pointer, stream = self._last
        self._session.check(pointer, stream)

    def clone(self) -> DevicePlan:
        return DevicePlan(self.options, self._like)

    def close(self) -> None:
        self._last = None
        self._session.close()


class Kind:
    """What an array must have in common with the one that a plan was made for."""

    def __init__(self, like: Foreign) -> None:
        self._class = type(like.owner)
        self._facts = quick_facts(like.kind, like.owner)
        self.like = replace(like, owner=None)  # without the memory

    def quickly(self, array: Any) -> int | None:
        """The address of an array of PyTorch or CuPy with the same facts, in about a microsecond; None for others, which are read."""
        kind = self.like.kind
        if self._facts is not None and type(array) is self._class and quick_facts(kind, array) == self._facts:
            return quick_pointer(kind, array)
        return None

    def check(self, name: str, one: Foreign) -> None:
        """UserError unless the array is as the one of the plan."""
        like = self.like
        if (one.device, one.type, one.shape, one.strides) == (like.device, like.type, like.shape, like.strides):
            return
        if one.device != like.device:
            raise UserError(
                f"{name}: lies on cuda:{one.device}, and the plan is of cuda:{like.device}; give an array there"
            )
        if one.type != like.type:
            raise UserError(f"{name}: type {one.type}, and the plan has {like.type}; convert it, or make another plan")
        if one.shape != like.shape:
            raise UserError(f"{name}: shape {one.shape}, and the plan has {like.shape}; make another plan")
        if one.plain_strides != like.plain_strides:
            raise UserError(
                f"{name}: strides {one.strides}, and the plan has {like.strides}; give .contiguous() or "
                "ascontiguousarray() of it to a plan of dense arrays, or make another plan"
            )


def _check_kinds(like: Sequence[Foreign | None]) -> None:
    """UserError for arrays of several devices, for types that no kernel converts, and for masks that are not dense bytes."""
    devices = {one.device for one in like if one is not None}
    if len(devices) > 1:
        raise UserError(f"arrays: lie on several devices, {sorted(devices)}; move them to one")
    for name, mask in zip(_MASKS, like[2:]):
        if mask is not None and (mask.type not in _MASK_TYPES or not mask.is_dense):
            raise UserError(
                f"{name}: {mask.type} of strides {mask.strides}; give dense bool or uint8, by .contiguous()"
            )


def _opened(options: Options, like: Sequence[Foreign | None], device: str) -> tuple[Question, str, str, DeviceSession]:
    """The question, the variant with its parameters, and a session for it. Strided arrays are read as windows where a variant
    does so, else copied by every call."""
    shapes = tuple(None if one is None else one.shape for one in like)
    types = tuple(None if one is None else one.type for one in like)
    dense = question_of(options, shapes, types)
    _check_types(dense, like)
    questions = [dense]
    # The question refuses shapes that have no layout.
    sides = [None if one is None else one.layout for one in like]
    if _are_windows(dense, like, sides):
        questions.insert(0, question_of(options, shapes, types, views="windows"))
    refused: tuple[str, ...] = ()
    while True:
        question, (variant, params) = _first_choice(questions, options.variant, device, refused)
        how = {"variant": variant, "params": params, "precision": question.precision, "device": device}
        try:
            left, right = sides
            assert left is not None
            session = DeviceSession(chosen.library(), question.problem, how, left, right)
            return question, variant, params, session
        except NotEnqueued:
            if options.variant != chosen.AUTO:
                raise
            refused = (*refused, variant)


def _first_choice(
    questions: Sequence[Question], variant: str, device: str, refused: tuple[str, ...]
) -> tuple[Question, tuple[str, str]]:
    """The first question that the variant, or any, computes, and the choice."""
    for question in questions[:-1]:
        try:
            choice = chosen.choice_by_sizes(question, variant, device, refused)
            asked = {"variant": choice[0], "params": choice[1], "precision": question.precision, "device": device}
            if not chosen.library().supports(question.problem, **asked):
                return question, choice
        except (UserError, LibraryError):
            continue
    return questions[-1], chosen.choice_by_sizes(questions[-1], variant, device, refused)


def _check_types(question: Question, like: Sequence[Foreign | None]) -> None:
    wide = question.scalar is np.float64
    known = (*EXACT_IN_FP32, *(("int32", "float64") if wide else ()))
    for name, one in zip(SIDES, like):
        if one is not None and one.type not in known:
            raise UserError(
                f"{name}: type {one.type} with precision {question.precision}; give one of {', '.join(known)}"
                + ("" if wide else ", or precision='fp64'")
            )


def _are_windows(question: Question, like: Sequence[Foreign | None], sides: Sequence[Layout | None]) -> bool:
    """Whether both sides have whole rows of scalars at regular places, and one is not dense."""
    if all(one is None or one.is_dense for one in like):
        return False
    scalar = np.dtype(question.scalar).name
    for one, layout in zip(like, sides):
        if one is None or layout is None:
            continue
        of_matrix, of_row, of_element = layout.strides
        if layout.type != scalar or of_element != 1 or of_row < one.shape[-1] or of_matrix < 0 or not layout.aligned:
            return False
    return True


def result_words(question: Question) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of a result on a device, where records are words of 32 bits: eight a peak; four of the header of `above`,
    then four a detection."""
    kind = question.problem.fields.result_kind
    if kind in ("surface", "sum"):
        return question.shape, question.native_type
    if kind == "above":
        return (question.native_shape[0] // WORD.itemsize,), WORD
    return (*question.shape, question.native_type.itemsize // WORD.itemsize), WORD


_plans: OrderedDict[Any, DevicePlan] = OrderedDict()
_lock = threading.Lock()


def correlate(options: Options, arrays: Sequence[Any], out: Any, stream: Any) -> Any:
    """The result of one call, with the plan of an earlier call of the same kind in the same stream if it is kept. The least recently
    used plan is closed, which waits for the device."""
    like = _read(arrays)
    left = like[0]
    assert left is not None
    given = [one for one in like if one is not None]
    at = producers.default_stream(left.kind, left.device, given) if stream is None else producers.handle_of(stream)
    facts = [one and (one.kind, one.device, one.type, one.shape, one.plain_strides, one.aligned) for one in like]
    key = (options, tuple(facts), at)
    masks = {"mask_left": arrays[2], "mask_right": arrays[3]}
    with _lock:
        if key not in _plans:
            _plans[key] = DevicePlan(options, _kinds(like))
            while len(_plans) > KEPT_PLANS:
                _plans.popitem(last=False)[1].close()
        _plans.move_to_end(key)
        return _plans[key](arrays[0], arrays[1], out, at if stream is not None else None, **masks)


def plan(options: Options, arrays: Sequence[Any]) -> DevicePlan:
    """A plan for arrays like these: left, right and masks."""
    return DevicePlan(options, _kinds(_read(arrays)))


def _read(arrays: Sequence[Any]) -> list[Foreign | None]:
    return [None if one is None else read(name, one) for name, one in zip((*SIDES, *_MASKS), arrays)]


def _kinds(like: Sequence[Foreign | None]) -> list[Kind | None]:
    return [None if one is None else Kind(one) for one in like]
