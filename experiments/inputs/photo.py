"""real-photo: is the shift between two overlapping crops of a photograph recovered, sign included?

A case cuts two crops from a photograph at seeded places, adds detector noise, removes the local means and the mean of
each crop, correlates the crops with an FFT variant and compares the sub-pixel peak with the known shift. The local
means are removed because large light and dark areas can outweigh the details: in one of 50 cases the peak was then at
their largest overlap. An error of more than half a pixel in y or x fails the run (exit code 1).
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from tqdm import tqdm

from experiments.inputs import common, datasets
from experiments.inputs.accuracy import distance_summary
from xcorr.commands.peaks import find_peaks
from xcorr.native.stream import Job
from xcorr.problem import Problem

EXPERIMENT, TITLE = "real-photo", "Shift between two crops of a photograph"
PLACES = "left_y0 left_x0 left_rows left_cols right_y0 right_x0 right_rows right_cols known_sy known_sx".split()
FOUND = "sy sx value sub_sy sub_sx peak_to_second error_px passed".split()
COLUMNS = ["dataset", "substituted", "variant", "precision", "case", *PLACES, *FOUND]
CASES = {"smoke": 4, "quick": 12, "paper": 24}  # per photograph; multiples of 4 have all signs equally often
SHAPES = (((256, 224), (256, 224)), ((224, 288), (224, 288)), ((160, 192), (288, 256)))
NOISE = 5.0  # standard deviation, of 255
LOCAL = 8.0  # pixels
PREVIEW_CASE = 1
MAP_SIDE = 81


@dataclass(frozen=True)
class Case:
    """Two crops of a photograph: their upper left pixels (y, x) and shapes (rows, cols)."""

    left_at: tuple[int, int]
    left: tuple[int, int]
    right_at: tuple[int, int]
    right: tuple[int, int]

    @property
    def shift(self) -> tuple[int, int]:
        """What lies at (y, x) in the left crop lies at (y, x) + shift in the right crop."""
        return (self.left_at[0] - self.right_at[0], self.left_at[1] - self.right_at[1])


def draw_cases(photo: tuple[int, int], count: int, seed: int) -> list[Case]:
    """`count` cases within a photo of that shape. Their shifts have all four combinations of signs."""
    rng = np.random.default_rng([seed, 6])
    cases = []
    for number in range(count):
        left, right = SHAPES[number % len(SHAPES)]
        signs = (1 if number & 1 else -1, 1 if number & 2 else -1)
        places = []
        for axis in range(2):
            # Of crops with different extents the smaller lies within the larger: the shift is positive.
            slack = right[axis] - left[axis]
            shift = int(rng.integers(1, slack)) if slack else signs[axis] * int(rng.integers(1, left[axis] // 6))
            low, high = (max(0, shift), min(photo[axis] - left[axis], photo[axis] - right[axis] + shift))
            place = int(rng.integers(low, high + 1))
            places.append((place, place - shift))
        cases.append(Case((places[0][0], places[1][0]), left, (places[0][1], places[1][1]), right))
    return cases


def cut(photo: np.ndarray, case: Case, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The left and the right crop, float64, with independent noise."""
    rng = np.random.default_rng([seed, 7, number])
    crops = []
    for (y, x), (rows, cols) in ((case.left_at, case.left), (case.right_at, case.right)):
        crops.append(photo[y : y + rows, x : x + cols] + rng.normal(0, NOISE, (rows, cols)))
    return crops[0], crops[1]


def remove_means(crop: np.ndarray) -> np.ndarray:
    """`crop` minus its local mean (Gaussian, sigma LOCAL pixels), then minus the mean of the difference."""
    detail = crop - gaussian_filter(crop, LOCAL, mode="nearest")
    return detail - detail.mean()


def correlate(library: Any, job: Job, crops: Sequence[np.ndarray]) -> tuple[np.ndarray, tuple[int, int]]:
    """Full correlation (out_rows x out_cols) of two crops without their means, and the shift of its first output."""
    left, right = (remove_means(crop).astype(np.float32) for crop in crops)
    request = Problem("one-to-one", left.shape, right.shape)
    facts = library.describe(request)
    out = job.correlate(library, request, left, right)
    return out[0], (facts.sy0, facts.sx0)


def compute(context: common.Context) -> int:
    twins = [partial(datasets.photo_twin, context.seed + number) for number in (0, 1)]
    both = zip((datasets.CAMERA, datasets.BRICK), twins)
    photos = [context.load(dataset, datasets.grey_photo, twin, "seeded generator") for dataset, twin in both]
    key = common.resume_key(context, {facts["dataset"]: facts["sha256"] or "synthetic" for _, facts in photos})
    if common.is_done(context, key):
        return 0
    jobs = common.choose_jobs(context, [Problem("one-to-one", *shapes) for shapes in SHAPES], definition=False)
    total = len(photos) * len(jobs) * CASES[context.preset]
    with tqdm(total=total, desc=EXPERIMENT, unit="pair", disable=None, leave=False) as bar:
        summaries, tables, pictures = zip(*(_measure(context, *photo, jobs, bar) for photo in photos))
    rows = [row for table in tables for row in table]
    previews = {name: picture for own in pictures for name, picture in own.items()}
    wrong = []
    for row in rows:
        if not row["passed"]:
            shifts = f"({row['sub_sy']:.2f}, {row['sub_sx']:.2f}) where ({row['known_sy']}, {row['known_sx']}) is known"
            wrong.append(f"{row['dataset']} case {row['case']}, {row['variant']}: shift {shifts}")
    extra = {"tolerance_px": 0.5, "failed": len(wrong)}
    code = common.write_artifacts(context, TITLE, key, COLUMNS, rows, [*summaries], previews, extra, mistakes=wrong)
    if not wrong:
        worst = max(row["error_px"] for row in rows)
        print(f"{EXPERIMENT}: all {len(rows)} shifts recovered, worst error {worst:.2f} pixel")
    return code


def _measure(
    context: common.Context, photo: np.ndarray, facts: dict[str, Any], jobs: list[Job], bar: tqdm
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Runs every case of a photograph; the summary's entry, rows and previews."""
    cases = draw_cases(photo.shape, CASES[context.preset], context.seed)
    entries, rows, previews = [], [], {}
    for job in jobs:
        errors, seconds = [], 0.0
        shared = {"dataset": facts["dataset"], "substituted": int(facts["substituted"])}
        shared |= {"variant": job.variant, "precision": job.precision}
        for number, case in enumerate(cases):
            crops = cut(photo, case, number, context.seed)
            (out, origin), took_s = common.timed(correlate, context.library, job, crops, rounds=1)
            seconds += took_s
            peak = find_peaks(out[np.newaxis], origin)
            off = (peak.sub_sy[0] - case.shift[0], peak.sub_sx[0] - case.shift[1])
            errors.append(float(np.hypot(*off)))
            places = (*case.left_at, *case.left, *case.right_at, *case.right, *case.shift)
            found = {**common.peak_cells(peak, 0), "error_px": errors[-1], "passed": int(max(map(abs, off)) <= 0.5)}
            rows.append({**shared, "case": number, **dict(zip(PLACES, places)), **found})
            if number == PREVIEW_CASE and job is jobs[0]:
                previews = _previews(facts["dataset"], photo, case, crops, out, origin)
            bar.update()
        distances = {"pairs": len(cases), "seconds": seconds, "error_px": distance_summary(np.array(errors))}
        entries.append({**context.entry_of(job), **distances})
    shapes = {"pattern_shape": list(photo.shape), "tile_shape": list(cases[0].left)}
    counts = {"cases": len(cases), "pairs": len(cases), "window": "full", "preview_case": PREVIEW_CASE}
    return {**facts, **shapes, **counts, "variants": entries}, rows, previews


def _previews(
    name: str, photo: np.ndarray, case: Case, crops: Sequence[np.ndarray], out: np.ndarray, origin: tuple[int, int]
) -> dict[str, Any]:
    small, scale = common.preview(photo)
    top, left = (
        min(max(int(index) - MAP_SIDE // 2, 0), extent - MAP_SIDE)
        for index, extent in zip(np.unravel_index(out.argmax(), out.shape), out.shape)
    )
    return {
        f"{name}_photo": small,
        f"{name}_scale": np.float64(scale),
        f"{name}_boxes": np.array([[*case.left_at, *case.left], [*case.right_at, *case.right]]),
        f"{name}_left": np.clip(crops[0], 0, 255).astype(np.uint8),
        f"{name}_right": np.clip(crops[1], 0, 255).astype(np.uint8),
        f"{name}_correlation": out[top : top + MAP_SIDE, left : left + MAP_SIDE].astype(np.float32),
        f"{name}_origin": np.array([origin[0] + top, origin[1] + left]),
    }


main = partial(common.run_main, EXPERIMENT, __doc__ or "", compute)

if __name__ == "__main__":
    sys.exit(main())
