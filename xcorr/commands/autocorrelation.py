"""Autocorrelation C2D of images, its azimuthal average C1D, and the length R_max of a pattern (ISS paper, Eqs. 1 and 2).

C2D(X0, Y0) = sum I(x, y) I(x + X0, y + Y0) / sum I^2, with zeros outside the image. C1D(R) is its mean over all shifts of
length R. R_max is the first maximum of C1D after its first trough. In raw images, as in Eq. 1, the mean brightness hides the
ripples of C1D. Without the mean C1D falls below 0, as in Fig. 5b.

Rings of whole pixels have noise of a few 1e-4 in C1D. A trough or maximum therefore counts only if C1D then rises or falls by
the prominence, in units of C1D(0) = 1. Its position is that of a cubic fitted to the points within FIT of it, which is exact
to 0.1 % for a ring spectrum, whose C1D is a Bessel function.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.problem import Problem

PROMINENCE = 0.01  # in units of C1D(0)
FIT = 0.15  # half width of the fit, as a share of the radius of the maximum
# Position of the first maximum of the Bessel function J0 after its first trough. R_max of a ring spectrum is J0_MAXIMUM / wave number.
J0_MAXIMUM = 7.0155866698


def problem_of(shape: tuple[int, int], frames: int, radius: int) -> Problem:
    """Each frame against itself at the half plane of shifts sy:0..R,sx:-R..R."""
    form = "one-to-one" if frames == 1 else "n-to-mn"
    window = f"sy:0..{radius},sx:{-radius}..{radius}"
    return Problem(form, shape, shape, frames, frames, window, same="yes")


def without_mean(frames: NDArray[Any]) -> NDArray[Any]:
    """Each frame less its mean, in float32; means in float64."""
    means = frames.mean(axis=(-2, -1), dtype=np.float64, keepdims=True)
    apart: NDArray[Any] = np.subtract(frames, means, dtype=np.float64)
    return apart.astype(np.float32)


def normalised(half: NDArray[Any]) -> NDArray[Any]:
    """C2D of the whole plane, (2R+1) x (2R+1) with shift 0 in the middle, from a half plane.

    NaN if the value at shift 0 is not positive: an image of zeros, or a constant image without its mean."""
    radius = half.shape[0] - 1
    centre = float(half[0, radius])
    half = half.astype(np.float64) / (centre if centre > 0 else np.nan)
    return np.concatenate([half[:0:-1, ::-1], half])


def azimuthal_average(plane: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """(radii, C1D): mean of C2D over the shifts of length R - 1/2 to R + 1/2 for R = 0, 1, ..., and their mean length."""
    size = plane.shape[0] // 2
    y, x = np.ogrid[-size : size + 1, -size : size + 1]
    length = np.hypot(y, x)
    ring = np.rint(length).astype(int)
    inside = ring <= size
    count = np.bincount(ring[inside])
    radii = np.bincount(ring[inside], weights=length[inside]) / count
    return radii, np.bincount(ring[inside], weights=plane[inside]) / count


def r_max(radii: NDArray[Any], c1d: NDArray[Any], prominence: float = PROMINENCE) -> float:
    """Radius of the first maximum after the first trough, in pixels; NaN if there is none that C1D falls from again."""
    place = _first_maximum(c1d, prominence)
    if place < 0:
        return float("nan")
    around = np.abs(radii - radii[place]) <= max(2.0, FIT * radii[place])
    offset, values = radii[around] - radii[place], c1d[around]
    if offset.size < 4:
        return float(radii[place])
    a, b, c, _ = np.polyfit(offset, values, 3)
    # The root of 3 a x^2 + 2 b x + c at the maximum, in the form that holds for a = 0 too.
    inner = b * b - 3 * a * c
    if b >= 0 or inner < 0:
        return float(radii[place])
    vertex = c / (-b + np.sqrt(inner))
    return float(radii[place] + np.clip(vertex, offset[0], offset[-1]))


def _first_maximum(c1d: NDArray[Any], prominence: float) -> int:
    """Index of the first maximum after the first trough, else -1."""
    if not np.isfinite(c1d).all():
        return -1
    trough, place = 0, -1
    for index, value in enumerate(c1d):
        if place < 0:
            if value < c1d[trough]:
                trough = index
            elif value - c1d[trough] >= prominence and index > trough > 0:
                place = index
        elif value > c1d[place]:
            place = index
        elif c1d[place] - value >= prominence:
            return place
    return -1


def ring_image(
    shape: tuple[int, int], wavelength: float, rng: np.random.Generator, width: float = 0.0, contrast: float = 40.0
) -> NDArray[Any]:
    """An 8-bit image whose spectrum is a ring: plane waves of one wavelength, random directions and phases.

    `width`: relative SD of the wave numbers. `contrast`: SD of the grey values about 128, clipped to 0 to 255. R_max of infinite
    images is J0_MAXIMUM / (2 pi) = 1.117 wavelengths."""
    rows, cols = shape
    waves = 256
    wave_number = 2 * np.pi / wavelength * (1 + width * rng.normal(size=waves))
    angle, phase = rng.uniform(0, 2 * np.pi, (2, waves))
    along_y = np.exp(1j * np.outer(np.arange(rows), wave_number * np.sin(angle)))
    along_x = np.exp(1j * (np.outer(wave_number * np.cos(angle), np.arange(cols)) + phase[:, np.newaxis]))
    field = (along_y @ along_x).real
    pixels: NDArray[Any] = np.clip(np.rint(128 + contrast * (field - field.mean()) / field.std()), 0, 255)
    return pixels.astype(np.uint8)


def of_planes(halves: NDArray[Any], prominence: float = PROMINENCE) -> list[dict[str, Any]]:
    """`radii`, `c1d` and `r_max` of each half plane."""
    found = []
    for half in halves:
        radii, c1d = azimuthal_average(normalised(half))
        found.append({"radii": radii, "c1d": c1d, "r_max": r_max(radii, c1d, prominence)})
    return found
