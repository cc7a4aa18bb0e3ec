"""Stands in for `xcorr.native.library.Library` where the built library is not the subject of a test."""

import re

import numpy as np
import scipy.signal

from xcorr import results
from xcorr.commands import correlate, peaks
from xcorr.errors import LibraryError
from xcorr.native.library import Description, find_variant
from xcorr.native.precisions import scalar_type
from xcorr.problem import pair_indices


def window_of(problem) -> tuple[range, range]:
    """Shifts (sy, sx) of the window of `problem`."""
    ranges = []
    for left, right in zip(problem.left, problem.right):
        if problem.window == "valid":
            ranges.append(range(min(0, right - left), max(0, right - left) + 1))
        else:
            ranges.append(range(-(left - 1), right))
    if problem.window.startswith("sy:"):
        a, b, c, d = map(int, re.fullmatch(r"sy:(-?\d+)\.\.(-?\d+),sx:(-?\d+)\.\.(-?\d+)", problem.window).groups())
        ranges = [range(a, b + 1), range(c, d + 1)]
    elif problem.window not in ("full", "valid"):
        raise LibraryError(f"window '{problem.window}': not understood")
    return ranges[0], ranges[1]


def scipy_correlation(problem, left, right) -> np.ndarray:
    """The truth by scipy.signal.correlate(R, L, 'full'), cut to the window; float64."""
    left = np.reshape(left, (problem.lefts, *problem.left))
    right = np.reshape(right, (problem.rights, *problem.right))
    sy, sx = window_of(problem)
    y0, x0 = sy[0] + problem.left[0] - 1, sx[0] + problem.left[1] - 1
    out = [
        scipy.signal.correlate(np.asarray(right[r], np.float64), np.asarray(left[l], np.float64), "full")[
            y0 : y0 + len(sy), x0 : x0 + len(sx)
        ]
        for l, r in zip(*pair_indices(problem))
    ]
    return np.stack(out)


def peak_records(surfaces: np.ndarray, origin: list[int]) -> np.ndarray:
    """What the library returns for the result `peak`, but for the flag of plateaus."""
    found, records = peaks.find_peaks(surfaces, tuple(origin)), np.zeros(len(surfaces), results.PEAK)
    records["value"], records["sy"], records["sx"] = found.value, found.sy, found.sx
    records["sub_sy"], records["sub_sx"] = found.sub_sy - found.sy, found.sub_sx - found.sx
    records["second"], records["flags"] = found.value / found.peak_to_second, found.border * results.AT_BORDER
    return records


class ScipyLibrary:
    """The interface of `Library`; counts the calls of `correlate`."""

    def __init__(self):
        self.calls = []
        self.refuses = {}  # by variant a reason, or a function of the problem and the parameters that gives one

    def machine(self, device="cpu"):
        return {"machine_key": "stand-in-2-cores", "cores": 2}

    def supports(self, problem, *, variant, params="", precision="fp32", device="cpu"):
        reason = self.refuses.get(variant, "")
        return reason if isinstance(reason, str) else reason(problem, params)

    def variants(self):
        forms = ["one-to-one", "one-to-many", "n-to-mn", "n-to-m"]
        return [
            {
                "id": name,
                "family": "cpu",
                "backend": "cpu",
                "precisions": precisions,
                "forms": forms,
                "points": ["threads=1", "threads=all"],
                "modes": ["stream"],
                "summary": "stands in",
                "source_hash": name[-8:],
                "algorithm_class": "fft" if name == "cpu_fft" else "definition",
            }
            for name, precisions in (
                ("cpu_definition", ["fp32", "fp64"]),
                ("cpu_fft", ["fp32"]),
                ("cpu_row_streaming", ["fp32"]),
            )
        ]

    def variant(self, name):
        return find_variant(self.variants(), name)

    def describe(self, problem):
        sy, sx = window_of(problem)
        pairs = len(pair_indices(problem)[0])
        area = problem.left[0] * problem.left[1]
        return Description(pairs, len(sy), len(sx), sy[0], sx[0], pairs * area * len(sy) * len(sx), 1, area, 1)

    def correlate(self, problem, left, right, *, variant, params="", precision="fp32", device="cpu", out=None):
        refused = self.supports(problem, variant=variant, params=params)
        if refused:
            raise LibraryError(f"variant '{variant}': not supported: {refused}")
        self.calls.append((problem, variant, params, precision, device))
        assert left.dtype == right.dtype == scalar_type(precision)
        result = scipy_correlation(problem, left, right).astype(scalar_type(precision))
        if problem.fields.result_kind == "peak":
            return peak_records(result, [one[0] for one in window_of(problem)])
        if out is None:
            return result
        out[:] = result
        return out

    def reference(self, problem, left, right, *, method="fft", out=None):
        result = scipy_correlation(problem, left, right)
        if out is None:
            return result
        out[:] = result
        return out


def refused(capsys, *argv, library=None) -> str:
    """The one line of stderr of a run of xcorr that must end with exit code 2."""
    assert correlate.main(list(map(str, argv)), library or ScipyLibrary()) == 2
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), captured.err
    return lines[0]
