"""Differences of float32 outputs from float64: relative, as in the paper, and divided by the norms."""

from __future__ import annotations

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

    elements: int = 0
    relative: int = 0
    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    scaled_squares: float = 0.0
    scaled_largest: float = 0.0
    pairs: list[tuple[float, float, float]] = field(default_factory=list)

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
            mean, most = (relative.mean(), relative.max()) if relative.size else (0.0, 0.0)
            self.pairs.append((float(mean), float(most), float(scaled.max())))
            self.elements += truth.size
            self.relative += relative.size
            self.total += float(relative.sum())
            self.squares += float((relative * relative).sum())
            self.largest = max(self.largest, float(most))
            self.scaled_squares += float((scaled * scaled).sum())
            self.scaled_largest = max(self.scaled_largest, float(scaled.max()))

    def summary(self) -> dict[str, float]:
        """The `float32_vs_float64` object of the summary."""
        count = max(self.relative, 1)
        mean = self.total / count
        return {
            "elements": self.elements,
            "mean_rel_diff": mean,
            "max_rel_diff": self.largest,
            "variance_rel_diff": max(self.squares / count - mean * mean, 0.0),
            "norm_scaled_max": self.scaled_largest,
            "norm_scaled_rms": float(np.sqrt(self.scaled_squares / max(self.elements, 1))),
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
