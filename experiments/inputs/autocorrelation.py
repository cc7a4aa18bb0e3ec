"""image-autocorrelation: does R_max of an image's autocorrelation equal the length that the image was made with?

The C1D of an image whose spectrum is a ring is a Bessel function, so R_max is exactly 1.117 wavelengths. The experiment
has four parts. `truth`: R_max with the mean removed, R_max of the raw image, and the length by the peak of the
spectrum, which the ISS paper calls less accurate, for 20 images per wavelength. The run fails (exit code 1) where the
error with the mean removed exceeds TOLERANCE. `growth`: a series whose wavelength grows; all variants of the family
must find the same R_max. `chain`: frames of a camera with
uneven light, dust, noise and drift, through the steps of the paper's Fig. 3; the run fails where the last step's R_max is wrong by more than
TOLERANCE_OF_CHAIN, or where a drift was not found. `loop`: the times of an array-language loop, as in the paper's MATLAB program, and of the
variants on one image.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from experiments.inputs import common, preprocessing
from xcorr.commands import autocorrelation
from xcorr.commands.autocorrelation import J0_MAXIMUM
from xcorr.native.stream import Job
from xcorr.problem import Problem

EXPERIMENT, TITLE = "image-autocorrelation", "Length of a pattern by autocorrelation"
TABLE = "lengths"
COLUMNS = "case variant params rows cols radius wavelength seed mean known r_max index spectral seconds".split()
FAMILY = "autocorrelation"
LOOP = "array-language loop"  # its name in the column of variants
TOLERANCE = 0.01  # of 80 images of 1500 x 750 the largest error is 0.7 %
TRUE = J0_MAXIMUM / (2 * np.pi)  # R_max in wavelengths
TOLERANCE_OF_CHAIN = (
    0.02  # of 9 series of 300 x 200 to 750 x 500 the largest error is 0.8 %, and 1.0 % without the chain
)
SAME_PIXELS = 0.01  # largest difference between the R_max of two variants
REACH = 1.6  # the largest shift as a multiple of R_max
ROUNDS = 3


@dataclass(frozen=True)
class Size:
    """Amount of work of a preset. `truth`, `growing`: shapes of images. `frames`: length of the growing series.
    `loop_radius`: largest shift of the array-language loop. `camera`: shape of a camera's frames."""

    truth: tuple[int, int]
    wavelengths: tuple[float, ...]
    seeds: int
    growing: tuple[int, int]
    frames: int
    loop_radius: int
    camera: tuple[int, int]


LARGE = (1500, 750)
SIZES = {
    "smoke": Size((300, 200), (20.0,), 2, (120, 100), 3, 1, (300, 200)),
    "quick": Size(LARGE, (20.0, 40.0, 80.0, 120.0), 20, (200, 160), 9, 5, (750, 500)),
    "paper": Size(LARGE, (20.0, 30.0, 40.0, 60.0, 80.0, 100.0, 120.0), 20, (400, 300), 16, 20, LARGE),
}
FIRST_WAVELENGTH, GROWTH = 8.0, 3.0  # of the growing series: pixels, and pixels a frame
FIGURE_WAVELENGTH = 80.0  # near the 88 pixels of the paper's Fig. 5
FIGURE_RADIUS = 140
# Of the chain: waves over the frame's smaller side, frames, pixels that a scene may drift, width of the blur in wavelengths, pixels from which
# dust is replaced, pixels cut at each side.
WAVES, SHOTS, MARGIN, BLUR, BESIDE, CROP = 12, 4, 24, 2.0, 5, 8


def spectral_index(image: np.ndarray) -> float:
    """Position of the peak of the power spectrum's mean over directions, in cycles over the smaller side. A parabola
    through the logarithms of three bins gives the fraction of a bin."""
    side = min(image.shape)
    values = image.astype(np.float64)
    power = np.abs(np.fft.rfft2(values - values.mean())) ** 2
    y, x = np.fft.fftfreq(image.shape[0])[:, np.newaxis], np.fft.rfftfreq(image.shape[1])
    ring = np.rint(side * np.hypot(y, x)).astype(int)
    mean = np.bincount(ring.ravel(), weights=power.ravel()) / np.maximum(np.bincount(ring.ravel()), 1)
    peak = 1 + int(np.argmax(mean[1 : side // 2]))
    low, top, high = np.log(np.maximum(mean[peak - 1 : peak + 2], 1e-300))
    curvature = 2 * top - low - high
    return peak + ((high - low) / (2 * curvature) if curvature > 0 else 0.0)


def loop(image: np.ndarray, radius: int) -> np.ndarray:
    """The half plane of outputs of an image: numpy multiplies and sums arrays, Python loops over the shifts."""
    rows, cols = image.shape
    out = np.empty((radius + 1, 2 * radius + 1), np.float32)
    for sy in range(radius + 1):
        for sx in range(-radius, radius + 1):
            left = image[: rows - sy, max(0, -sx) : cols - max(0, sx)]
            right = image[sy:, max(0, sx) : cols + min(0, sx)]
            out[sy, sx + radius] = np.sum(left * right)
    return out


def choose(context: common.Context, request: Problem) -> tuple[Job, list[Job]]:
    """The first variant, and all: those that the user named, else auto's choice and the others of the family."""
    if context.requested:
        jobs = common.requested_jobs(context, [request])
        return jobs[0], jobs
    first = common.auto_job(context, request)
    others = [one for one in context.variants if one["family"] == FAMILY and one["id"] != first.variant]
    return first, [first, *common.jobs_of(context, others, [request])[0]]


def correlate(context: common.Context, job: Job, frames: np.ndarray, radius: int) -> np.ndarray:
    """The half planes of float32 frames."""
    request = autocorrelation.problem_of((frames.shape[1], frames.shape[2]), len(frames), radius)
    return job.correlate(context.library, request, frames, None)


def half_planes(context: common.Context, job: Job, images: np.ndarray, radius: int) -> dict[str, np.ndarray]:
    """The half planes of 8-bit images with the mean `removed` and of `raw` images."""
    kinds = {"removed": autocorrelation.without_mean(images), "raw": images.astype(np.float32)}
    return {kind: correlate(context, job, frames, radius) for kind, frames in kinds.items()}


def lengths(context: common.Context, job: Job, images: np.ndarray, radius: int) -> dict[str, list[dict[str, Any]]]:
    """Results of autocorrelation.of_planes for the half planes of `images`."""
    halves = half_planes(context, job, images, radius)
    return {kind: autocorrelation.of_planes(half) for kind, half in halves.items()}


def radius_for(shape: tuple[int, int], wavelength: float) -> int:
    return min(int(REACH * TRUE * wavelength) + 8, min(shape) - 1)


def truth(context: common.Context, size: Size, job: Job) -> list[dict[str, Any]]:
    """A row for each wavelength, seed and kind."""
    rows = []
    cases = [(wavelength, seed) for wavelength in size.wavelengths for seed in range(1, size.seeds + 1)]
    for wavelength, seed in tqdm(cases, desc=EXPERIMENT, unit="image", disable=None, leave=False):
        rng = np.random.default_rng([context.seed, seed, int(wavelength)])
        image = autocorrelation.ring_image(size.truth, wavelength, rng)
        radius = radius_for(size.truth, wavelength)
        index = spectral_index(image)
        shared = {"case": "truth", **shown(job, size.truth, radius), "wavelength": wavelength, "seed": seed}
        shared |= {"known": TRUE * wavelength, "index": index, "spectral": TRUE * min(size.truth) / index}
        for kind, (found,) in lengths(context, job, image[np.newaxis], radius).items():
            rows.append({**shared, "mean": kind, "r_max": found["r_max"]})
    return rows


def shown(job: Job, shape: tuple[int, int], radius: int) -> dict[str, Any]:
    return {"variant": job.variant, "params": job.params, "rows": shape[0], "cols": shape[1], "radius": radius}


def growth(context: common.Context, size: Size, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """A row for each variant and frame of the series; `seed` is the number of the frame."""
    wavelengths = [FIRST_WAVELENGTH + GROWTH * frame for frame in range(size.frames)]
    rngs = [np.random.default_rng([context.seed, 91, frame]) for frame in range(size.frames)]
    images = np.stack([autocorrelation.ring_image(size.growing, *one) for one in zip(wavelengths, rngs)])
    radius = radius_for(size.growing, wavelengths[-1])
    rows = []
    for job in jobs:
        found = lengths(context, job, images, radius)["removed"]
        for frame, (wavelength, one) in enumerate(zip(wavelengths, found), 1):
            own = {"case": "growth", "wavelength": wavelength, "seed": frame, "mean": "removed"}
            rows.append({**own, **shown(job, size.growing, radius), "known": TRUE * wavelength, "r_max": one["r_max"]})
    return rows


Chained = tuple[float, dict[str, np.ndarray], np.ndarray]


def chained(context: common.Context, size: Size) -> Chained:
    """Wavelength of the scene of a camera's frames, the images after each step, and (dy, dx) that are left of each drift."""
    rng = np.random.default_rng([context.seed, 7])
    rows, cols = size.camera
    wavelength = min(rows, cols) / WAVES
    scene = autocorrelation.ring_image((rows + 2 * MARGIN, cols + 2 * MARGIN), wavelength, rng)
    frames, drift = preprocessing.frames_of(np.stack(SHOTS * [scene]), MARGIN, preprocessing.Camera(), rng)
    steps, moved = preprocessing.chain(frames, BLUR * wavelength, BESIDE, CROP)
    return wavelength, steps, moved - drift


def chain(context: common.Context, job: Job, made: Chained) -> list[dict[str, Any]]:
    """A row for each frame and step (in column `mean`) of `chained`; `known` is NaN for a frame whose drift was not found."""
    wavelength, steps, lost = made
    rows = []
    for step, images in steps.items():
        shape = (images.shape[1], images.shape[2])
        radius = radius_for(shape, wavelength)
        found = autocorrelation.of_planes(correlate(context, job, autocorrelation.without_mean(images), radius))
        for frame, (one, left) in enumerate(zip(found, lost), 1):
            known = TRUE * wavelength if not left.any() else np.nan
            own = {"case": "chain", "wavelength": wavelength, "seed": frame, "mean": step, "known": known}
            rows.append({**own, **shown(job, shape, radius), "r_max": one["r_max"]})
    return rows


def peers(context: common.Context, size: Size, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Seconds of the array-language loop and of each variant on one image: the shortest of ROUNDS interleaved calls."""
    rng = np.random.default_rng([context.seed, 5])
    image = autocorrelation.ring_image(size.truth, 20.0, rng).astype(np.float32)
    radius = size.loop_radius
    calls: dict[str, Callable[[], Any]] = {LOOP: partial(loop, image, radius)}
    for job in jobs:
        calls[job.variant] = partial(correlate, context, job, image[np.newaxis], radius)
    least = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            least[name] = min(least[name], common.timed(call, rounds=1)[1])
    facts = {job.variant: shown(job, size.truth, radius) for job in jobs}
    facts[LOOP] = shown(Job(LOOP), size.truth, radius)
    return [{"case": "loop", **facts[name], "seconds": seconds} for name, seconds in least.items()]


def previews(context: common.Context, size: Size, job: Job, steps: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """C2D and C1D of one image, and a frame of a camera after each of `steps`, for figures."""
    wavelength = min(FIGURE_WAVELENGTH, max(size.wavelengths))
    image = autocorrelation.ring_image(size.truth, wavelength, np.random.default_rng([context.seed, 3]))
    radius = min(FIGURE_RADIUS, radius_for(size.truth, wavelength))
    halves = half_planes(context, job, image[np.newaxis], radius)
    planes = {kind: autocorrelation.normalised(half[0]) for kind, half in halves.items()}
    curves = {kind: autocorrelation.azimuthal_average(plane) for kind, plane in planes.items()}
    return {
        **{f"chain {step}": images[-1] for step, images in steps.items()},
        "plane": planes["removed"].astype(np.float32),
        "radii": curves["raw"][0],
        **{kind: c1d for kind, (_, c1d) in curves.items()},
        "lengths": np.array([autocorrelation.r_max(*curves[kind]) for kind in ("removed", "raw")]),
    }


def wrong(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each result that is not allowed."""
    found = []
    for row in rows:
        limits = {("truth", "removed"): TOLERANCE, ("chain", "contrast"): TOLERANCE_OF_CHAIN}
        limit = limits.get((row["case"], row.get("mean", "")))
        if limit is not None and not abs(row["r_max"] / row["known"] - 1) <= limit:
            at = f"{row['case']}, wavelength {row['wavelength']:g}, seed {row['seed']}"
            found.append(f"{at}: R_max {row['r_max']:.4g} for {row['known']:.4g}")
    for frame in sorted({row["seed"] for row in rows if row["case"] == "growth"}):
        own = np.array([row["r_max"] for row in rows if row["case"] == "growth" and row["seed"] == frame])
        if not own.max() - own.min() <= SAME_PIXELS:  # nor where one is NaN
            found.append(f"frame {frame}: R_max from {own.min():.6g} to {own.max():.6g} pixels, by variant")
    return found


def compute(context: common.Context) -> int:
    key = common.resume_key(context, {})
    if common.is_done(context, key, TABLE):
        return 0
    size = SIZES[context.preset]
    first, jobs = choose(context, autocorrelation.problem_of(size.truth, 1, size.loop_radius))
    camera = chained(context, size)
    rows = [
        *truth(context, size, first),
        *growth(context, size, jobs),
        *chain(context, first, camera),
        *peers(context, size, jobs),
    ]
    if mistakes := wrong(rows):
        print(f"error: {EXPERIMENT}: {len(mistakes)} wrong; {mistakes[0]}", file=sys.stderr)
        return 1
    facts = {"tolerance": TOLERANCE, "same_pixels": SAME_PIXELS, "prominence": autocorrelation.PROMINENCE}
    arrays = previews(context, size, first, camera[1])
    return common.write_artifacts(context, TITLE, key, COLUMNS, rows, [], arrays, facts, TABLE)


main = partial(common.run_main, EXPERIMENT, __doc__ or "", compute)

if __name__ == "__main__":
    sys.exit(main())
