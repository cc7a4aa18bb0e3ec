"""Differences of float32 outputs from float64: relative, as in the paper, and divided by the norms."""

from dataclasses import dataclass, field

import numpy as np

# JPDC paper, section 5.6: its program against a double-precision Python script.
PAPER = {"mean_rel_diff": 2.39e-6, "max_rel_diff": 0.038, "variance_rel_diff": 8.49e-6}


@dataclass
class Accuracy:
    """Collects |out - ref| over pairs.

    The relative difference divides by |ref| and leaves out ref = 0; values near 0 dominate its statistics. The
    norm-scaled difference divides by |L| |R|, the largest possible output.
    """

    pairs: list[tuple[float, float, float]] = field(default_factory=list)
    _sums: list[tuple[float, ...]] = field(default_factory=list)  # in the order of `summary`, for each pair

    def add(self, out: np.ndarray, reference: np.ndarray, norms: np.ndarray) -> None:
        """Adds `out` and `reference` (pairs x out_rows x out_cols), with |L| |R| of each pair in `norms`.

        Appends (mean_rel_diff, max_rel_diff, norm_error) of each pair to `pairs`.
        """
        for got, truth, norm in zip(out, reference, norms):
            difference = np.abs(got - truth)
            scaled = difference / norm if norm > 0 else difference
            size = np.abs(truth)
            known = size > 0
            relative = difference[known] / size[known]
            mean = relative.mean() if relative.size else 0.0
            self.pairs.append((float(mean), float(relative.max(initial=0.0)), float(scaled.max())))
            self._sums.append((truth.size, relative.size, relative.sum(), (relative**2).sum(), (scaled**2).sum()))

    def summary(self) -> dict[str, float]:
        """The `float32_vs_float64` object of the summary."""
        elements, relative, total, squares, scaled_squares = (float(sum(column)) for column in zip(*self._sums))
        _, largest, scaled_largest = map(max, zip(*self.pairs))
        count = max(relative, 1)
        mean = total / count
        return {
            "elements": int(elements),
            "mean_rel_diff": mean,
            "max_rel_diff": largest,
            "variance_rel_diff": max(squares / count - mean * mean, 0.0),
            "norm_scaled_max": scaled_largest,
            "norm_scaled_rms": float(np.sqrt(scaled_squares / elements)),
        }


def distance_summary(error: np.ndarray) -> dict[str, float]:
    """The `error_px` object of the summary. NaN (unknown shift) does not count."""
    known = error[~np.isnan(error)]
    if not known.size:
        return {"count": 0}
    return {
        "count": int(known.size),
        "median": float(np.median(known)),
        "mean": float(known.mean()),
        "p95": float(np.percentile(known, 95)),
        "max": float(known.max()),
        "within_half_pixel": float((known <= 0.5).mean()),
    }
