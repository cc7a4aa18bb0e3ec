"""Particle image velocimetry: displacements between two frames, by the correlation of many small windows.

    field = displacements(library, first, second, window=[64, 32], passes=3, choose=lambda problem, calls: Job("template_fft_cpu"))

Windows are views of the frames. A pass searches, then measures:

1. The first and the second window of each pair lie half of the displacement that the pass before predicts on either side
   of a place of the grid, in whole pixels. The peak of their covariance, at shifts up to half a window, is a displacement
   in whole pixels. With masks the score is `zncc`, whose sums have valid pixels alone.
2. Both windows are read again, apart by this displacement: what is left is about a pixel at most. The peak of `zncc` at
   shifts up to REACH gives the fraction of a pixel and the value. `zncc` divides each output by the norms of what overlaps
   there. A covariance grows with the overlap, which draws peaks to shift 0: its fits are up to 0.2 pixels too small.

Displacements that the normalised median test finds (Westerweel and Scarano 2005), and those whose peak does not stand out
(`displacements`), are replaced by the median of their neighbours. A displacement (dy, dx) says that what lies at
(y, x) - (dy, dx) / 2 in the first frame lies at (y, x) + (dy, dx) / 2 in the second. Pixels; y down. At the border of the
frame, where a displacement would lead out of it, both windows are moved inwards together.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from xcorr import results
from xcorr.commands import windows
from xcorr.errors import UserError
from xcorr.fields import PLAIN
from xcorr.native.arrays import Windows
from xcorr.native.stream import Job
from xcorr.problem import Problem

NOISE = 0.1  # pixels, what the normalised median test adds to the median of the residuals
THRESHOLD = 2.0  # residuals above it are outliers
LEAST_VALUE = 0.5  # of a peak that is no outlier
STANDS_OUT = 1.5  # a search whose peak is so much higher than the largest other one
LEAST_VALID = 0.5  # of the pixels of a window, as a share
PAIRS_AT_A_TIME = 1 << 16
MASK_BYTES_AT_A_TIME = 1 << 26
REACH = 2  # pixels on either side of what the search found
MOST_PASSES = 20
FITS = ("gaussian", "parabola")


@dataclass(frozen=True)
class Field:
    """Displacements on a grid: arrays rows x cols, and the centres `y`, `x` of the rows and columns.

    `dy, dx`: displacement; where `outlier`, the median of the neighbours that are none, NaN if there is no such one, and
    where `blank`. `value`: the correlation coefficient of both windows at the peak, in [-1, 1]; `signal_to_noise`: the peak
    of the search over the largest other one, inf if there is none; `residual`: of the normalised median test, as measured;
    `blank`: a window is constant or has too few valid pixels, so that it has no displacement. A blank one is an outlier too.
    """

    y: NDArray[Any]
    x: NDArray[Any]
    dy: NDArray[Any]
    dx: NDArray[Any]
    value: NDArray[Any]
    signal_to_noise: NDArray[Any]
    residual: NDArray[Any]
    outlier: NDArray[Any]
    blank: NDArray[Any]


@dataclass(frozen=True)
class Pass:
    """Settings of a pass: side of the windows and what neighbours share, in pixels, and the fit of the peak."""

    window: int = 32
    overlap: int = 16
    fit: str = "gaussian"


def schedule(
    window: int | Sequence[int] = 32,
    overlap: int | Sequence[int] | None = None,
    fit: str | Sequence[str] = "gaussian",
    passes: int = 2,
) -> list[Pass]:
    """The settings of all passes. A sequence has one value a pass; if it is shorter, its last one is that of the passes that
    follow. `overlap` is half a window unless given. UserError for what no pass can have."""
    if not 1 <= passes <= MOST_PASSES:
        raise UserError(f"--passes {passes}: use 1 to {MOST_PASSES}")

    def spread(name: str, given: Any) -> list[Any]:
        values = [given] if isinstance(given, (int, np.integer, str)) else list(given)
        if not 1 <= len(values) <= passes:
            raise UserError(f"--{name}: {len(values)} values for {passes} passes; give one a pass, or raise --passes")
        return values + values[-1:] * (passes - len(values))

    sides, fits = spread("window", window), spread("fit", fit)
    overlaps = [one // 2 for one in sides] if overlap is None else spread("overlap", overlap)
    for one in fits:
        if one not in FITS:
            raise UserError(f"--fit {one}: unknown; use {' or '.join(FITS)}")
    return [Pass(*each) for each in zip(sides, overlaps, fits)]


def _pairs(window: int, pairs: int, shifts: str, masked: bool, **fields: str) -> Problem:
    form, shape = "n-to-mn" if pairs > 1 else "one-to-one", (window, window)
    masks = "both" if masked else "none"
    return Problem(form, shape, shape, pairs, pairs, shifts, PLAIN, masks=masks, views="windows", **fields)


def search_of(window: int, pairs: int, boundary: str, masked: bool = False) -> Problem:
    """The search of so many pairs of windows, at shifts up to half a window. With masks nothing lies outside a window."""
    half = window // 2
    shifts = f"sy:{-half}..{half - 1},sx:{-half}..{half - 1}"
    fields = {"score": "zncc"} if masked else {"score": "covariance", "boundary": boundary}
    return _pairs(window, pairs, shifts, masked, result="peak:gaussian", **fields)


def fit_of(window: int, fit: str, reach: int, masked: bool, pairs: int) -> Problem:
    """The measurement of so many pairs of windows, at shifts up to `reach` pixels."""
    shifts = f"sy:{-reach}..{reach},sx:{-reach}..{reach}"
    return _pairs(window, pairs, shifts, masked, score="zncc", result=f"peak:{fit}")


def grid(shape: tuple[int, int], window: int, overlap: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """First rows and first columns of the windows. UserError where no window fits."""
    if min(shape) < 4:
        raise UserError(f"frames of {shape[0]}x{shape[1]}: windows have 4x4 pixels at least; give larger frames")
    if not 4 <= window <= min(shape):
        raise UserError(f"--window {window}: frames of {shape[0]}x{shape[1]} have windows of 4 to {min(shape)}")
    if not 0 <= overlap < window:
        raise UserError(f"--overlap {overlap}: use 0 to {window - 1} pixels of the window of {window}")
    rows, cols = (np.arange(0, extent - window + 1, window - overlap) for extent in shape)
    return rows, cols


def displacements(
    library: Any,
    first: NDArray[Any],
    second: NDArray[Any],
    *,
    window: int | Sequence[int] = 32,
    overlap: int | Sequence[int] | None = None,
    fit: str | Sequence[str] = "gaussian",
    boundary: str = "circular",
    passes: int = 2,
    threshold: float = THRESHOLD,
    least_value: float = LEAST_VALUE,
    masks: tuple[NDArray[Any] | None, NDArray[Any] | None] = (None, None),
    least_valid: float = LEAST_VALID,
    choose: Callable[[Problem, int], Job],
) -> Field:
    """The field between two frames of one shape, float32. `choose`: what runs a problem, of which a pass makes so many calls.
    `window`, `overlap` and `fit` are as `schedule` takes them. `masks`: of each frame True or 1 where a pixel counts;
    windows of which less than `least_valid` counts are blank.

    Outliers: the residual of the normalised median test is above `threshold`; the value is below `least_value` and the peak
    of the search does not stand out either, by STANDS_OUT; or `zncc` has no local maximum within REACH of that peak.
    UserError for frames, windows and masks that do not fit."""
    if first.ndim != 2 or first.shape != second.shape:
        raise UserError(f"frames: shapes {first.shape} and {second.shape}; give two frames of one shape, rows x cols")
    frames, valid = windows.masked((first, second), masks)
    origin, nothing = np.zeros(1), np.zeros((1, 1))
    made: Sequence[NDArray[Any]] = origin, origin, nothing, nothing
    for one in schedule(window, overlap, fit, passes):
        rows, cols = grid((first.shape[0], first.shape[1]), one.window, one.overlap)
        y, x = rows + (one.window - 1) / 2, cols + (one.window - 1) / 2
        top, left = np.meshgrid(rows, cols, indexing="ij")
        run = _Run(library, frames, valid, (top, left), one, boundary, choose)
        found, measured, shift, blank = run.of(_at(y, x, made), least_valid)
        ratio = signal_to_noise(found)
        weak = ~(measured["value"] >= least_value) & ~(ratio >= STANDS_OUT)
        lost = blank | weak | ~(found["value"] > 0) | ((measured["flags"] & results.AT_BORDER) != 0)
        dy, dx, residual, outlier = replace_outliers(shift[0], shift[1], lost, threshold)
        made = y, x, dy, dx
    dy, dx, value, ratio = (np.where(blank, np.nan, of).astype(np.float64) for of in (dy, dx, measured["value"], ratio))
    return Field(y, x, dy, dx, value, ratio, residual, outlier, blank)


def signal_to_noise(found: NDArray[Any]) -> NDArray[Any]:
    """Of records of peaks: the value over the largest other peak; inf where that is none above 0, NaN where the value is not."""
    other = np.where(found["second"] > 0, found["second"], 0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(found["value"] > 0, found["value"] / other, np.nan)


def _at(y: NDArray[Any], x: NDArray[Any], made: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Displacements at (y, x) from those of a pass, `made`: y and x of its centres, dy, dx. Linear between the centres;
    outside the grid those of its rim; 0 where nothing is known."""

    def between(values: NDArray[Any]) -> NDArray[Any]:
        along = np.stack([np.interp(x, made[1], row) for row in np.nan_to_num(values)])
        return np.stack([np.interp(y, made[0], column) for column in along.T], axis=1)

    return [between(values) for values in made[2:]]


@dataclass(frozen=True)
class _Run:
    """The pairs of windows of a pass. `places`: rows and columns of their first pixels before they are moved."""

    library: Any
    frames: windows.Frames
    valid: windows.Frames | None
    places: tuple[NDArray[Any], NDArray[Any]]
    settings: Pass
    boundary: str
    choose: Callable[[Problem, int], Job]

    def of(
        self, predicted: Sequence[NDArray[Any]], least_valid: float
    ) -> tuple[NDArray[Any], NDArray[Any], list[NDArray[Any]], NDArray[Any]]:
        """Peaks of the search, peaks of the measurement, displacements, and which are blank."""
        side, masked = self.settings.window, self.valid is not None
        pairs, apart = self._apart([np.rint(one).astype(np.int64) for one in predicted])
        blank = windows.blank(self.frames, self.valid, pairs, side, least_valid)
        search = partial(search_of, side, boundary=self.boundary, masked=masked)
        found = self._peaks([one.ravel() for one in pairs], search).reshape(blank.shape)
        wanted = [whole + found[axis] for whole, axis in zip(apart, ("sy", "sx"))]
        pairs, apart = self._apart(wanted)
        # In a frame that is hardly larger than a window the two cannot be so far apart.
        rest = np.maximum(*(np.abs(want - whole) for want, whole in zip(wanted, apart)))
        measured = np.zeros(blank.shape, results.PEAK)
        for group in (rest == 0, rest > 0):
            reach = REACH + int(rest[group].max(initial=0))
            measure = partial(fit_of, side, self.settings.fit, reach, masked)
            measured[group] = self._peaks([one[group] for one in pairs], measure)
        shift = [whole + measured[axis] + measured["sub_" + axis] for whole, axis in zip(apart, ("sy", "sx"))]
        return found, measured, shift, blank

    def _apart(self, wanted: Sequence[NDArray[Any]]) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """First rows and columns of the first and of the second windows, which lie `wanted` pixels apart about their places,
        and how far they are apart: less where the frame ends."""
        before, after, apart = [], [], []
        for place, distance, extent in zip(self.places, wanted, self.frames[0].shape):
            margin = extent - self.settings.window
            whole = np.clip(distance, -margin, margin)
            early = np.clip(place - np.floor_divide(whole, 2), np.maximum(0, -whole), margin - np.maximum(0, whole))
            before.append(early)
            after.append(early + whole)
            apart.append(whole)
        return [*before, *after], apart

    def _peaks(self, pairs: Sequence[NDArray[Any]], problem_for: Callable[..., Problem]) -> NDArray[Any]:
        """Records of pairs, by the first rows and columns of their windows."""
        cols, side = self.frames[0].shape[1], self.settings.window
        corners = (pairs[0], pairs[1]), (pairs[2], pairs[3])
        found = np.empty(pairs[0].size, results.PEAK)
        step = PAIRS_AT_A_TIME if self.valid is None else max(1, MASK_BYTES_AT_A_TIME // side**2)
        for start in range(0, found.size, step):
            part = slice(start, min(start + step, found.size))
            problem = problem_for(pairs=part.stop - part.start)
            sides = [Windows(frame, (y * cols + x)[part]) for frame, (y, x) in zip(self.frames, corners)]
            masks = {}
            if self.valid is not None:
                for name, mask, (y, x) in zip(("left_mask", "right_mask"), self.valid, corners):
                    masks[name] = sliding_window_view(mask, (side, side))[y[part], x[part]]
            calls = found.size // step if part.stop - start == step else 1  # the last part has a plan of its own
            found[part] = self.choose(problem, calls).correlate(self.library, problem, sides[0], sides[1], **masks)
        return found


def neighbours_of(values: NDArray[Any]) -> NDArray[Any]:
    """The up to eight neighbours of each element, 8 x rows x cols; NaN beyond the border."""
    padded = np.pad(values, 1, constant_values=np.nan)
    rows, cols = values.shape
    around = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    return np.stack([padded[i : i + rows, j : j + cols] for i, j in around])


def _median(values: NDArray[Any]) -> NDArray[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no neighbour at all: NaN
        middle: NDArray[Any] = np.nanmedian(values, axis=0)
        return middle


def median_residual(dy: NDArray[Any], dx: NDArray[Any]) -> NDArray[Any]:
    """The residual of the normalised median test: the distance of each displacement from the median of its neighbours,
    over the median of their distances from it and NOISE. NaN without neighbours."""
    squares = np.zeros(dy.shape)
    for component in (dy, dx):
        around = neighbours_of(component)
        middle = _median(around)
        spread = _median(np.abs(around - middle))
        squares += ((component - middle) / (spread + NOISE)) ** 2
    return np.sqrt(squares)


def replace_outliers(
    dy: NDArray[Any], dx: NDArray[Any], lost: NDArray[Any], threshold: float = THRESHOLD
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
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
    field: Callable[[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]],
    rng: np.random.Generator,
    density: float = 0.03,
    width: float = 0.8,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two frames of Gaussian particles, 0 to about 255, float32. `field(y, x)` gives the displacement of a particle whose
    middle between both frames is (y, x); `density`: particles a pixel; `width`: standard deviation of a particle."""
    margin = 16
    count = int(density * (shape[0] + 2 * margin) * (shape[1] + 2 * margin))
    y, x = (rng.uniform(-margin, extent + margin, count) for extent in shape)
    bright = rng.uniform(100, 255, count)
    dy, dx = field(y, x)
    first = _particles(shape, y - dy / 2, x - dx / 2, bright, width)
    return first, _particles(shape, y + dy / 2, x + dx / 2, bright, width)


def _particles(
    shape: tuple[int, int], y: NDArray[Any], x: NDArray[Any], bright: NDArray[Any], width: float
) -> NDArray[Any]:
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
