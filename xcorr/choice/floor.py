"""Floor of a problem: a lower bound of the time of a call that starts after the call before it has ended, from measured ceilings.

The floor ignores dependency chains, synchronisation and imbalance. It does not hold for overlapping launches, since the launch
term is the time of an empty launch that waits for its predecessor.
"""

import math
from collections.abc import Mapping
from typing import Any

from xcorr.problem import Problem

MICRO = 1e-6
HELD = 64  # complex values of a thread: 128 of its at most 255 registers, and 128 values would need 256
COMPLEX_BYTES = 8


def _transforms(problem: Problem) -> tuple[int, int]:
    """(lefts + rights + pairs transforms, real elements A = Ny Nx of each).

    N of an axis is the smallest even circular length in which no shift of a..b wraps around: max(b + left, right - a).
    """
    (left, right), (sy, sx) = (problem.left, problem.right), problem.shifts
    area = math.prod(
        2 * math.ceil(max(shifts[-1] + left[axis], right[axis] - shifts[0]) / 2) for axis, shifts in enumerate((sy, sx))
    )
    return problem.lefts + problem.rights + problem.pairs, area


def fft_flops(problem: Problem) -> float:
    """FLOPs by FFT: 2.5 A log2(A) for each of lefts + rights + pairs real transforms of A elements (_transforms), and 4 A
    per pair for the product of two half spectra."""
    transforms, area = _transforms(problem)
    return transforms * 2.5 * area * math.log2(area) + 4.0 * area * problem.pairs


def crossings(values: int) -> int:
    """Fewest times that all values of a transform of `values` complex values pass from thread to thread.

    Every output depends on every input. A thread holds HELD values, so before the first crossing a value depends on at
    most HELD inputs, and each crossing multiplies this number by HELD at most. HELD^(crossings + 1) >= values gives
    crossings = ceil(log(values) / log(HELD)) - 1. `values` of two axes is the product of both lengths: the result is at least
    the sum of the crossings along each axis, and it includes the crossing between the axes.
    """
    found, reached = 0, HELD
    while reached < values:
        found, reached = found + 1, reached * HELD
    return found


def crossing_bytes(problem: Problem) -> float:
    """Bytes that pass from thread to thread by FFT: in each crossing of each of lefts + rights + pairs real transforms of
    A elements (_transforms) A / 2 complex values of two reals, COMPLEX_BYTES each. Zeros of the padding count."""
    transforms, area = _transforms(problem)
    return float(transforms * crossings(area // 2) * area // 2 * COMPLEX_BYTES)


def crossing_rate(ceilings: Mapping[str, Any]) -> float:
    """Bytes that pass from thread to thread in a second, by the keys of ceilings.json: a shuffle moves a value once, shared memory
    stores it and loads it. Both use the same data path of an SM, so the faster counts alone. Infinite where neither was
    measured."""
    rates = float(ceilings.get("shuffle_bytes_per_s") or 0), float(ceilings.get("shared_bytes_per_s") or 0) / 2
    return max(rates) or math.inf


def terms(
    launch_us: Any,
    bytes_: Any,
    fmas: Any,
    flops: Any,
    crossed: Any,
    bytes_per_s: float,
    flop_per_s: float,
    crossing_per_s: float,
) -> dict[str, Any]:
    """Terms of the floor in microseconds, for numbers or columns. The floor is
    max(launch, memory, min(direct, max(fft, exchange))).

    launch: one empty kernel; memory: compulsory bytes at the faster rate of fill and copy; direct: two FLOPs per useful FMA;
    fft: `flops` of fft_flops(); direct and fft at the rate of an FP32 matrix product; exchange: `crossed` of crossing_bytes() at
    the rate of crossing_rate()."""
    return {
        "launch": launch_us,
        "memory": bytes_ / bytes_per_s / MICRO,
        "direct": 2.0 * fmas / flop_per_s / MICRO,
        "fft": flops / flop_per_s / MICRO,
        "exchange": crossed / crossing_per_s / MICRO,
    }
