"""Columns of records by name, on the host and on a device."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from xcorr.errors import UserError
from xcorr.results import DETECTION, HEADER, PEAK

_WORD = 4  # bytes


def columns(records: Any, result: str = "peak") -> dict[str, Any]:
    """The columns of the records of `result` (peak, peaks:k or above:t:c) as arrays that share their memory.

    Of a result on a device these are views of its 32-bit words, in the library of the result, without a copy or a wait. `above`
    then has also `count`, an array of one int64: of its columns only the first `count` rows are written, and with a count beyond the
    capacity `Plan.check` raises. UserError for a result without records.
    """
    kind = result.partition(":")[0]
    if kind not in ("peak", "peaks", "above"):
        raise UserError(f"result '{result}': has no records; use peak, peaks:k or above:t:c")
    record = DETECTION if kind == "above" else PEAK
    if isinstance(records, np.ndarray) and records.dtype.names:
        return {name: records[name] for name in record.names or ()}
    words, found = records, {}
    if kind == "above":
        first = HEADER.itemsize // _WORD
        found["count"] = _viewed(records[:2], "int64")
        words = records[first:].reshape(-1, DETECTION.itemsize // _WORD)
    if words.shape[-1] != record.itemsize // _WORD:
        raise UserError(
            f"records: shape {tuple(records.shape)} is not that of result {result}; give the result of that call"
        )
    reals = _viewed(words, "float32")
    places: Any = record.fields
    for name in record.names or ():
        of_type, offset = places[name][:2]
        found[name] = (reals if of_type.kind == "f" else words)[..., offset // _WORD]
    return found


def _viewed(words: Any, name: str) -> Any:
    if type(words).__module__.partition(".")[0] == "torch":
        torch: Any = sys.modules["torch"]
        return words.view(getattr(torch, name))
    return words.view(np.dtype(name))
