"""The floor of a problem: what no call goes below that starts after the one before it has ended, from measured ceilings.

A limit, not a model: dependency chains, synchronisation and imperfect balance are ignored. It is no lower bound for
launches that overlap: the launch part counts an empty launch that waits for the one before it.
"""

from __future__ import annotations

import math
from typing import Any

from xcorr.problem import Problem

MICRO = 1e-6


def fft_flops(problem: Problem) -> float:
    """FLOPs of the transform theorem: 2.5 A log2(A) per real transform of A = Ny Nx elements, for
    lefts + rights + pairs transforms, and 4 A per pair for the product of two half spectra.

    Per axis N is the least circular length in which no wanted shift wraps around, rounded up to
    even: of shifts a..b it is max(b + left, right - a), so 2h of a full window of two h x h.
    """
    (left, right), (sy, sx) = (problem.left, problem.right), problem.shifts
    area = math.prod(
        2 * math.ceil(max(shifts[-1] + left[axis], right[axis] - shifts[0]) / 2) for axis, shifts in enumerate((sy, sx))
    )
    transforms = problem.lefts + problem.rights + problem.pairs
    return transforms * 2.5 * area * math.log2(area) + 4.0 * area * problem.pairs


def terms(launch_us: Any, bytes_: Any, fmas: Any, flops: Any, bytes_per_s: float, flop_per_s: float) -> dict[str, Any]:
    """The terms of the floor in microseconds, of numbers or of columns: launch: an empty kernel (more than one launch is
    nowhere needed); memory: compulsory bytes at the faster of fill and copy; direct: two FLOPs per useful FMA; fft:
    `flops`, of fft_flops(); both at the rate of an FP32 matrix product. The floor is max(launch, memory, min(direct,
    fft))."""
    return {
        "launch": launch_us,
        "memory": bytes_ / bytes_per_s / MICRO,
        "direct": 2.0 * fmas / flop_per_s / MICRO,
        "fft": flops / flop_per_s / MICRO,
    }
