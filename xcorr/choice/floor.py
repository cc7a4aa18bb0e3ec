"""Floor of a problem: a lower bound of the time of a call that starts after the call before it has ended, from measured ceilings.

The floor ignores dependency chains, synchronisation and imbalance. It does not hold for overlapping launches, since the launch
term is the time of an empty launch that waits for its predecessor.
"""

import math
from typing import Any

from xcorr.problem import Problem

MICRO = 1e-6


def fft_flops(problem: Problem) -> float:
    """FLOPs by FFT: 2.5 A log2(A) for each of lefts + rights + pairs real transforms of A = Ny Nx elements, and 4 A per pair for
    the product of two half spectra.

    N of an axis is the smallest even circular length in which no shift of a..b wraps around: max(b + left, right - a).
    """
    (left, right), (sy, sx) = (problem.left, problem.right), problem.shifts
    area = math.prod(
        2 * math.ceil(max(shifts[-1] + left[axis], right[axis] - shifts[0]) / 2) for axis, shifts in enumerate((sy, sx))
    )
    transforms = problem.lefts + problem.rights + problem.pairs
    return transforms * 2.5 * area * math.log2(area) + 4.0 * area * problem.pairs


def terms(launch_us: Any, bytes_: Any, fmas: Any, flops: Any, bytes_per_s: float, flop_per_s: float) -> dict[str, Any]:
    """Terms of the floor in microseconds, for numbers or columns. The floor is max(launch, memory, min(direct, fft)).

    launch: one empty kernel; memory: compulsory bytes at the faster rate of fill and copy; direct: two FLOPs per useful FMA;
    fft: `flops` of fft_flops(); direct and fft at the rate of an FP32 matrix product."""
    return {
        "launch": launch_us,
        "memory": bytes_ / bytes_per_s / MICRO,
        "direct": 2.0 * fmas / flop_per_s / MICRO,
        "fft": flops / flop_per_s / MICRO,
    }
