"""Fields of a problem: boundary, score, masks, result, same, views. harness/problem/fields.cpp has the same texts and errors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from xcorr.errors import UserError

# In the order of a problem's id and of the columns of a row.
NAMES = ("boundary", "score", "masks", "result", "same", "views")
SCORES = ("product", "covariance", "ncc", "zncc", "phase")
RESULTS = ("surface", "peak", "peaks", "above", "sum")
WORDS = {
    "boundary": ("zero", "circular"),
    "masks": ("none", "left", "right", "both"),
    "same": ("no", "yes"),
    "views": ("dense", "windows", "channels"),
}
NORMALISED = ("ncc", "zncc")
# The mean that a score subtracts from the elements, as Centring in harness/problem/fields.hpp.
CENTRING = {"product": "none", "covariance": "matrix", "ncc": "none", "zncc": "overlap", "phase": "matrix"}

MOST_PEAKS, FINEST, MOST_DETECTIONS, LARGEST_DISTANCE = 1024, 1000, 2**30, 32767
DEFAULT_OVERLAP = 0.3
_REAL = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"-?0*\d{1,19}", re.ASCII)
_ABOVE = "above:0.8:1000 or above:8mad:1000, a threshold and a capacity, or above:0.8:1000:16 with a least distance"


@dataclass(frozen=True)
class Fields:
    """Fields of a problem as canonical texts: `Fields(score="zncc").score` is "zncc:0.3".

    UserError for an unknown value. xcorr.problem.Problem checks whether fields fit each other.
    """

    boundary: str = "zero"
    score: str = "product"
    masks: str = "none"
    result: str = "surface"
    same: str = "no"
    views: str = "dense"

    def __post_init__(self) -> None:
        for name in NAMES:
            object.__setattr__(self, name, canonical(name, getattr(self, name)))

    @classmethod
    def of(cls, texts: Mapping[str, Any]) -> Fields:
        """Fields from texts by name. An absent or empty text is the default. UserError for an unknown name."""
        for name in texts:
            if name not in NAMES:
                _refuse("field", name, "unknown; use boundary, score, masks, result, same or views")
        given = {name: text for name, text in texts.items() if text != ""}
        return cls(**given) if given else PLAIN

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Text of each field in the order of NAMES, "" for a default."""
        return tuple("" if getattr(self, name) == getattr(PLAIN, name) else getattr(self, name) for name in NAMES)

    @property
    def given(self) -> dict[str, str]:
        """Fields that differ from their default."""
        return {name: text for name, text in zip(NAMES, self.cells) if text}

    @classmethod
    def of_text(cls, text: str) -> Fields:
        """Inverse of `text`. UserError for any other text."""
        pairs = [part.split("=", 1) for part in text.split("/") if part]
        if any(len(pair) < 2 for pair in pairs):
            _refuse("fields", text, "not understood; write NAME=VALUE, separated by /, as score=zncc/masks=left")
        return cls.of({name: value for name, value in pairs})

    @cached_property
    def text(self) -> str:
        """`name=value` of `given`, separated by `/`: the end of a problem's id."""
        return "/".join(f"{name}={value}" for name, value in self.given.items())

    @cached_property
    def alike(self) -> Fields:
        """Representative of the fields whose calls take as long: without thresholds, counts, distances and exponents. A
        distance above 1 stays, since only the harness applies it."""
        kind, _, rest = self.result.partition(":")
        above = ("above:8mad:1" if "mad" in rest else "above:0:1") + (":2" if self.distance > 1 else "")
        result = {"peaks": "peaks:1", "above": above}.get(kind, kind)
        if rest.startswith("upsample"):
            result = "peak:upsample=2"
        return replace(self, score=self.score_kind, result=result)

    @property
    def score_kind(self) -> str:
        """One of SCORES."""
        return self.score.partition(":")[0]

    @property
    def centring(self) -> str:
        """Mean that the score subtracts from the elements: none, matrix (of the whole matrix) or overlap. But for none,
        an offset of a matrix leaves the score unchanged."""
        return CENTRING[self.score_kind]

    @property
    def min_overlap(self) -> float:
        """Smallest overlap of ncc and zncc as a share of the largest overlap in the window; else the default."""
        return float(self.score.partition(":")[2]) if self.score_kind in NORMALISED else DEFAULT_OVERLAP

    @property
    def exponent(self) -> float:
        """Exponent p of phase; else 0."""
        return float(self.score.partition(":")[2]) if self.score_kind == "phase" else 0.0

    @property
    def result_kind(self) -> str:
        """One of RESULTS."""
        return self.result.partition(":")[0]

    @property
    def peaks(self) -> int:
        """PEAK records of each pair: 1 for peak, k for peaks:k, else 0."""
        kind, _, count = self.result.partition(":")
        return int(count) if kind == "peaks" else int(kind == "peak")

    @property
    def capacity(self) -> int:
        """Largest number of detections of above; else 0."""
        return int(self.result.split(":")[2]) if self.result_kind == "above" else 0

    @property
    def distance(self) -> int:
        """Smallest distance of a detection of above from a larger output, in pixels; else 1."""
        words = self.result.split(":")
        return int(words[3]) if words[0] == "above" and len(words) > 3 else 1

    @property
    def masked_sides(self) -> tuple[str, ...]:
        """Sides with a mask, of "left" and "right"."""
        return {"none": (), "both": ("left", "right")}.get(self.masks, (self.masks,))


def canonical(name: str, text: Any) -> str:
    """Canonical text of a value of the field `name`. UserError for an illegal value."""
    text = str(text)
    if name == "score":
        return _score(text)
    if name == "result":
        return _result(text)
    return _one_of(WORDS[name], name, text)


def decimal(value: float) -> str:
    """Shortest decimal text without exponent that parses to the same number."""
    return str(int(value)) if abs(value) >= 2**53 else np.format_float_positional(value, trim="-")


def _refuse(name: str, text: str, why: str) -> NoReturn:
    raise UserError(f"{name} '{text}': {why}")


def _one_of(known: tuple[str, ...], name: str, value: str) -> str:
    if value not in known:
        _refuse(name, value, f"unknown; use {', '.join(known[:-1])} or {known[-1]}")
    return value


def _real(digits: str, name: str, text: str, example: str) -> float:
    value = float(digits) if _REAL.fullmatch(digits) else math.nan
    too_small = value == 0 and re.search("[1-9]", re.split("[eE]", digits)[0])
    if not math.isfinite(value) or too_small:
        _refuse(name, text, f"a number was expected; write {example}")
    return value + 0.0  # -0 is 0


def _whole(digits: str, text: str, example: str, bits: int) -> int:
    value = int(digits) if _WHOLE.fullmatch(digits) else 2**bits
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        _refuse("result", text, f"a number was expected; write {example}")
    return value


def _score(text: str) -> str:
    kind, colon, argument = text.partition(":")
    _one_of(SCORES, "score", kind)
    if kind in NORMALISED:
        value, example = DEFAULT_OVERLAP, f"{kind}:0.3, a least overlap above 0 and at most 1"
    elif kind == "phase":
        value, example = 0.0, "phase:0.5, an exponent of at least 0 and below 1"
    elif colon:
        _refuse("score", text, f"takes no number; write {kind}")
    else:
        return kind
    if colon:
        value = _real(argument, "score", text, example)
    if not (0 <= value < 1 if kind == "phase" else 0 < value <= 1):
        _refuse("score", text, f"out of range; write {example}")
    return f"{kind}:{decimal(value)}"


def _result(text: str) -> str:
    kind, colon, argument = text.partition(":")
    _one_of(RESULTS, "result", kind)
    if kind == "peak":
        return _peak(text, colon, argument)
    if kind == "peaks":
        count = _whole(argument, text, "peaks:5, the number of peaks a pair", 32)
        if not 1 <= count <= MOST_PEAKS:
            _refuse("result", text, f"out of range; use 1..{MOST_PEAKS}")
        return f"peaks:{count}"
    if kind == "above":
        return _above(text, argument)
    if colon:
        _refuse("result", text, f"takes no number; write {kind}")
    return kind


def _peak(text: str, colon: str, argument: str) -> str:
    if not colon or argument == "parabola":
        return "peak"
    if argument == "gaussian":
        return "peak:gaussian"
    if not argument.startswith("upsample="):
        _refuse("result", text, "unknown; use peak:parabola, peak:gaussian or peak:upsample=20")
    upsample = _whole(argument.removeprefix("upsample="), text, "peak:upsample=20", 32)
    if not 2 <= upsample <= FINEST:
        _refuse("result", text, f"out of range; use 2..{FINEST}")
    return f"peak:upsample={upsample}"


def _above(text: str, argument: str) -> str:
    threshold, _, rest = argument.partition(":")
    capacity, colon, distance = rest.partition(":")
    if not capacity:
        _refuse("result", text, f"a capacity is missing; write {_ABOVE}")
    of_deviations = threshold.endswith("mad")
    value = _real(threshold.removesuffix("mad"), "result", text, _ABOVE)
    count = _whole(capacity, text, _ABOVE, 64)
    if not 1 <= count <= MOST_DETECTIONS:
        way_out = "and a larger threshold or a least distance if more are found"
        _refuse("result", text, f"capacity out of range; use 1 to {MOST_DETECTIONS}, {way_out}")
    least = _whole(distance, text, _ABOVE, 32) if colon else 1
    if not 1 <= least <= LARGEST_DISTANCE:
        _refuse("result", text, f"distance out of range; use 1 to {LARGEST_DISTANCE} pixels")
    if of_deviations and value < 0:
        _refuse("result", text, f"a negative number of deviations; write {_ABOVE}")
    return f"above:{decimal(value)}{'mad' * of_deviations}:{count}" + (f":{least}" if least > 1 else "")


PLAIN = Fields()
