"""Particle image velocimetry: displacements between two frames, by the covariance of many small windows.

    field = displacements(library, first, second, window=32, overlap=16, choose=lambda request: Job("template_fft_cpu"))

Windows are views of the frames. In the first pass both windows of a pair lie at the same place. In each later one the
two lie half of the displacement found before on either side of this place, in whole pixels, so that what is left is below
a pixel. The peak of each pair is fitted by a Gaussian; the largest peak beside it gives the signal-to-noise ratio.
Displacements that the normalised median test finds (Westerweel and Scarano 2005) are replaced by the median of their
neighbours. A displacement (dy, dx) says that what lies at (y, x) - (dy, dx) / 2 in the first frame lies at
(y, x) + (dy, dx) / 2 in the second. Pixels; y down.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr import results
from xcorr.arguments import Windows
from xcorr.errors import UserError
from xcorr.library import Request
from xcorr.stream import Job

NOISE = 0.1  # pixels, what the normalised median test adds to the median of the residuals
THRESHOLD = 2.0  # residuals above it are outliers
PAIRS_AT_A_TIME = 1 << 16


@dataclass(frozen=True)
class Field:
    """Displacements on a grid: arrays rows x cols, and the centres `y`, `x` of the rows and columns.

    `dy, dx`: displacement; where `outlier`, the median of the neighbours that are none, NaN if there is no such one.
    `value`: the largest covariance; `signal_to_noise`: over the largest other peak, inf if there is none; `residual`:
    of the normalised median test, as measured.
    """

    y: np.ndarray
    x: np.ndarray
    dy: np.ndarray
    dx: np.ndarray
    value: np.ndarray
    signal_to_noise: np.ndarray
    residual: np.ndarray
    outlier: np.ndarray


def request_of(window: int, pairs: int, boundary: str) -> Request:
    """The correlation of so many pairs of windows, at shifts up to half a window."""
    half = window // 2
    return Request(
        form="n-to-mn" if pairs > 1 else "one-to-one",
        left=(window, window),
        right=(window, window),
        lefts=pairs,
        rights=pairs,
        window=f"sy:{-half}..{half - 1},sx:{-half}..{half - 1}",
        boundary=boundary,
        score="covariance",
        result="peak:gaussian",
        views="windows",
    )


def grid(shape: tuple[int, int], window: int, overlap: int) -> tuple[np.ndarray, np.ndarray]:
    """First rows and first columns of the windows. UserError where no window fits."""
    if not 4 <= window <= min(shape):
        raise UserError(f"--window {window}: frames of {shape[0]}x{shape[1]} have windows of 4 to {min(shape)}")
    if not 0 <= overlap < window:
        raise UserError(f"--overlap {overlap}: use 0 to {window - 1} pixels of the window of {window}")
    rows, cols = (np.arange(0, extent - window + 1, window - overlap) for extent in shape)
    return rows, cols


def displacements(
    library: Any,
    first: np.ndarray,
    second: np.ndarray,
    *,
    window: int = 32,
    overlap: int | None = None,
    boundary: str = "circular",
    passes: int = 2,
    threshold: float = THRESHOLD,
    choose: Callable[[Request], Job],
) -> Field:
    """The field between two frames of one shape, float32. `choose`: what runs a request. `overlap` is half a window
    unless given. UserError for frames and windows that do not fit."""
    if first.ndim != 2 or first.shape != second.shape:
        raise UserError(f"frames: shapes {first.shape} and {second.shape}; give two frames of one shape, rows x cols")
    if passes < 1:
        raise UserError(f"--passes {passes}: use 1 or more")
    rows, cols = grid((first.shape[0], first.shape[1]), window, window // 2 if overlap is None else overlap)
    top, left = np.meshgrid(rows, cols, indexing="ij")
    dy, dx = np.zeros(top.shape), np.zeros(top.shape)
    for _ in range(passes):
        found, shift = _correlate(library, first, second, (top, left), (dy, dx), window, boundary, choose)
        measured = found["sy"] + found["sub_sy"] + shift[0], found["sx"] + found["sub_sx"] + shift[1]
        lost = ~(found["value"] > 0) | ((found["flags"] & results.AT_BORDER) != 0)
        dy, dx, residual, outlier = replace_outliers(*measured, lost, threshold)
    with np.errstate(divide="ignore", invalid="ignore"):
        other = np.where(found["second"] > 0, found["second"], 0).astype(np.float64)
        ratio = np.where(~(found["value"] > 0), np.nan, found["value"] / other)
    middle = (window - 1) / 2
    return Field(rows + middle, cols + middle, dy, dx, found["value"], ratio, residual, outlier)


def _correlate(
    library: Any,
    first: np.ndarray,
    second: np.ndarray,
    places: tuple[np.ndarray, np.ndarray],
    predicted: tuple[np.ndarray, np.ndarray],
    window: int,
    boundary: str,
    choose: Callable[[Request], Job],
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The peaks of all pairs, and by how much their second windows are displaced against their first ones."""
    before, after = [], []
    for place, displacement, extent in zip(places, predicted, first.shape):
        whole = np.rint(np.nan_to_num(displacement)).astype(np.int64)
        half = np.floor_divide(whole, 2)
        before.append(np.clip(place - half, 0, extent - window))
        after.append(np.clip(place + whole - half, 0, extent - window))
    offsets = [(y * first.shape[1] + x).ravel() for y, x in (before, after)]
    found = np.empty(offsets[0].size, results.PEAK)
    for start in range(0, found.size, PAIRS_AT_A_TIME):
        part = slice(start, min(start + PAIRS_AT_A_TIME, found.size))
        request = request_of(window, part.stop - part.start, boundary)
        sides = (Windows(frame, offset[part]) for frame, offset in zip((first, second), offsets))
        found[part] = choose(request).correlate(library, request, *sides)
    return found.reshape(places[0].shape), [late - early for early, late in zip(before, after)]


def neighbours_of(values: np.ndarray) -> np.ndarray:
    """The up to eight neighbours of each element, 8 x rows x cols; NaN beyond the border."""
    padded = np.pad(values, 1, constant_values=np.nan)
    rows, cols = values.shape
    around = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    return np.stack([padded[i : i + rows, j : j + cols] for i, j in around])


def _median(values: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no neighbour at all: NaN
        return np.nanmedian(values, axis=0)


def median_residual(dy: np.ndarray, dx: np.ndarray, noise: float = NOISE) -> np.ndarray:
    """The residual of the normalised median test: the distance of each displacement from the median of its neighbours,
    over the median of their distances from it and `noise`. NaN without neighbours."""
    squares = np.zeros(dy.shape)
    for component in (dy, dx):
        around = neighbours_of(component)
        middle = _median(around)
        spread = _median(np.abs(around - middle))
        squares += ((component - middle) / (spread + noise)) ** 2
    return np.sqrt(squares)


def replace_outliers(
    dy: np.ndarray, dx: np.ndarray, lost: np.ndarray, threshold: float = THRESHOLD
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """dy, dx with outliers replaced by the median of their neighbours that are none, the residuals, and the outliers:
    the `lost` ones and those whose residual exceeds the threshold. A lost one is no neighbour."""
    dy, dx = (np.where(lost, np.nan, component).astype(np.float64) for component in (dy, dx))
    residual = median_residual(dy, dx)
    outlier = lost | (residual > threshold)
    kept = [np.where(outlier, np.nan, component) for component in (dy, dx)]
    made = list(kept)
    for _ in range(max(dy.shape)):  # from the rim of a group of outliers inwards
        holes = np.isnan(made[0])
        filled = [np.where(holes, _median(neighbours_of(component)), component) for component in made]
        if not holes.any() or np.array_equal(np.isnan(filled[0]), holes):
            break
        made = filled
    return made[0], made[1], residual, outlier


def particle_pair(
    shape: tuple[int, int],
    field: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    rng: np.random.Generator,
    density: float = 0.03,
    width: float = 0.8,
) -> tuple[np.ndarray, np.ndarray]:
    """Two frames of Gaussian particles, 0 to about 255, float32. `field(y, x)` gives the displacement of a particle whose
    middle between both frames is (y, x); `density`: particles a pixel; `width`: standard deviation of a particle."""
    margin = 16
    count = int(density * (shape[0] + 2 * margin) * (shape[1] + 2 * margin))
    y, x = (rng.uniform(-margin, extent + margin, count) for extent in shape)
    bright = rng.uniform(100, 255, count)
    dy, dx = field(y, x)
    return _particles(shape, y - dy / 2, x - dx / 2, bright, width), _particles(
        shape, y + dy / 2, x + dx / 2, bright, width
    )


def _particles(shape: tuple[int, int], y: np.ndarray, x: np.ndarray, bright: np.ndarray, width: float) -> np.ndarray:
    reach = int(np.ceil(4 * width)) + 1
    steps = np.arange(-reach, reach + 1)
    inside = (y > -reach) & (y < shape[0] + reach - 1) & (x > -reach) & (x < shape[1] + reach - 1)
    y, x, bright = y[inside], x[inside], bright[inside]
    rows, cols = (np.rint(at).astype(int)[:, np.newaxis] + steps for at in (y, x))
    along_y, along_x = (
        np.exp(-((places - at[:, np.newaxis]) ** 2) / (2 * width**2)) for places, at in ((rows, y), (cols, x))
    )
    image = np.zeros((shape[0] + 4 * reach + 2, shape[1] + 4 * reach + 2))
    margin = 2 * reach
    spots = bright[:, np.newaxis, np.newaxis] * along_y[:, :, np.newaxis] * along_x[:, np.newaxis, :]
    np.add.at(image, (rows[:, :, np.newaxis] + margin, cols[:, np.newaxis, :] + margin), spots)
    return image[margin : margin + shape[0], margin : margin + shape[1]].astype(np.float32)
