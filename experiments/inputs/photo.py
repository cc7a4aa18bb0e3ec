"""real-photo: is the shift between two overlapping crops of a photograph recovered, sign included?

Each case cuts two crops from a photograph at seeded places, adds detector noise to each, removes
the local means and then each crop's mean, correlates them with an FFT variant and compares the
sub-pixel peak with the known shift. (Without the local means the large light and dark areas of a
photograph can outweigh its details: one of 50 cases then peaks where they overlap most.)
A component that is off by more than half a pixel fails the run (exit code 1).
"""

from __future__ import annotations

import sys
import time
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
COLUMNS = (
    "dataset substituted variant precision case left_y0 left_x0 left_rows left_cols right_y0 "
    "right_x0 right_rows right_cols known_sy known_sx sy sx value sub_sy sub_sx peak_to_second "
    "error_px passed"
).split()
CASES = {"smoke": 4, "quick": 12, "paper": 24}  # a photograph; a multiple of four: all signs
SHAPES = (((256, 224), (256, 224)), ((224, 288), (224, 288)), ((160, 192), (288, 256)))
NOISE = 5.0  # standard deviation, of 255
LOCAL = 8.0  # pixels
PREVIEW_CASE = 1
MAP_SIDE = 81


@dataclass(frozen=True)
class Case:
    """Two crops of a photograph: upper left pixels (y, x) and shapes (rows, cols)."""

    left_at: tuple[int, int]
    left: tuple[int, int]
    right_at: tuple[int, int]
    right: tuple[int, int]

    @property
    def shift(self) -> tuple[int, int]:
        """What lies at (y, x) in the left lies at (y, x) + shift in the right."""
        return (self.left_at[0] - self.right_at[0], self.left_at[1] - self.right_at[1])


def draw_cases(photo: tuple[int, int], count: int, seed: int) -> list[Case]:
    """`count` cases within a photo of that shape; their shifts run through all four signs."""
    rng = np.random.default_rng([seed, 6])
    cases = []
    for number in range(count):
        left, right = SHAPES[number % len(SHAPES)]
        signs = (1 if number & 1 else -1, 1 if number & 2 else -1)
        places = []
        for axis in range(2):
            # The smaller crop of two unlike ones lies within the larger: the shift stays positive.
            slack = right[axis] - left[axis]
            shift = int(rng.integers(1, slack)) if slack else signs[axis] * int(rng.integers(1, left[axis] // 6))
            low, high = (max(0, shift), min(photo[axis] - left[axis], photo[axis] - right[axis] + shift))
            place = int(rng.integers(low, high + 1))
            places.append((place, place - shift))
        cases.append(Case((places[0][0], places[1][0]), left, (places[0][1], places[1][1]), right))
    return cases


def cut(photo: np.ndarray, case: Case, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Left and right crop, float64, each with its own noise."""
    rng = np.random.default_rng([seed, 7, number])
    crops = []
    for (y, x), (rows, cols) in ((case.left_at, case.left), (case.right_at, case.right)):
        crops.append(photo[y : y + rows, x : x + cols] + rng.normal(0, NOISE, (rows, cols)))
    return crops[0], crops[1]


def remove_means(crop: np.ndarray) -> np.ndarray:
    """`crop` less its local mean (Gaussian, sigma LOCAL pixels), then less its mean."""
    detail = crop - gaussian_filter(crop, LOCAL, mode="nearest")
    return detail - detail.mean()


def correlate(library: Any, job: Job, crops: Sequence[np.ndarray]) -> tuple[np.ndarray, tuple[int, int]]:
    """Full correlation (out_rows x out_cols) of two crops less their means, and its origin."""
    left, right = (remove_means(crop).astype(np.float32) for crop in crops)
    request = Problem("one-to-one", left.shape, right.shape)
    facts = library.describe(request)
    out = job.correlate(library, request, left, right)
    return out[0], (facts.sy0, facts.sx0)


def load(context: common.Context) -> list[dict[str, Any]]:
    """The photographs, or their twins: dicts of `dataset`, `photo`, `substituted`, `note`."""
    found = []
    for number, dataset in enumerate((datasets.CAMERA, datasets.BRICK)):
        try:
            photo = datasets.grey_photo(datasets.fetch(dataset, context.cache, context.offline))
            print(f"data: {dataset.credit}")
            found.append({"dataset": dataset, "photo": photo, "substituted": False, "note": ""})
        except datasets.Unavailable as reason:
            note = f"synthetic twin in place of {dataset.name}: {reason}"
            print(f"data: {note}")
            found.append(
                {
                    "dataset": dataset,
                    "photo": datasets.photo_twin(context.seed + number),
                    "substituted": True,
                    "note": note,
                }
            )
    return found


def compute(context: common.Context) -> int:
    photos = load(context)
    key = common.resume_key(
        context,
        {entry["dataset"].name: "synthetic" if entry["substituted"] else entry["dataset"].sha256 for entry in photos},
    )
    if common.is_done(context, key):
        return 0
    jobs = common.choose_jobs(context, [Problem("one-to-one", *shapes) for shapes in SHAPES], definition=False)
    rows: list[list[Any]] = []
    summaries: list[dict[str, Any]] = []
    previews: dict[str, Any] = {}
    total = len(photos) * len(jobs) * CASES[context.preset]
    with tqdm(total=total, desc=EXPERIMENT, unit="pair", disable=None, leave=False) as bar:
        for entry in photos:
            summaries.append(_measure(context, entry, jobs, rows, previews, bar))
    failed = [row for row in rows if not row[-1]]
    common.write_artifacts(
        context, TITLE, key, COLUMNS, rows, summaries, previews, {"tolerance_px": 0.5, "failed": len(failed)}
    )
    for row in failed:
        case = dict(zip(COLUMNS, row))
        print(
            f"error: {EXPERIMENT}: {case['dataset']} case {case['case']}, {case['variant']}: shift "
            f"({case['sub_sy']:.2f}, {case['sub_sx']:.2f}) where ({case['known_sy']}, "
            f"{case['known_sx']}) is known",
            file=sys.stderr,
        )
    if failed:
        context.path("summary.json").unlink(missing_ok=True)  # so that it is not resumed
        return 1
    worst = max(row[COLUMNS.index("error_px")] for row in rows)
    print(f"{EXPERIMENT}: all {len(rows)} shifts recovered, worst error {worst:.2f} pixel")
    return 0


def _measure(
    context: common.Context,
    entry: dict[str, Any],
    jobs: list[Job],
    rows: list[list[Any]],
    previews: dict[str, Any],
    bar: tqdm,
) -> dict[str, Any]:
    """Runs every case of a photograph; appends rows and previews, returns the summary's entry."""
    dataset, photo = entry["dataset"], entry["photo"]
    cases = draw_cases(photo.shape, CASES[context.preset], context.seed)
    results = []
    for job in jobs:
        errors, seconds = [], 0.0
        for number, case in enumerate(cases):
            crops = cut(photo, case, number, context.seed)
            start = time.perf_counter()
            out, origin = correlate(context.library, job, crops)
            seconds += time.perf_counter() - start
            peak = find_peaks(out[np.newaxis], origin)
            off = (peak.sub_sy[0] - case.shift[0], peak.sub_sx[0] - case.shift[1])
            errors.append(float(np.hypot(*off)))
            rows.append(
                [
                    dataset.name,
                    int(entry["substituted"]),
                    job.variant,
                    job.precision,
                    number,
                    *case.left_at,
                    *case.left,
                    *case.right_at,
                    *case.right,
                    *case.shift,
                    int(peak.sy[0]),
                    int(peak.sx[0]),
                    float(peak.value[0]),
                    float(peak.sub_sy[0]),
                    float(peak.sub_sx[0]),
                    float(peak.peak_to_second[0]),
                    errors[-1],
                    int(max(map(abs, off)) <= 0.5),
                ]
            )
            if number == PREVIEW_CASE and job is jobs[0]:
                previews.update(_previews(dataset.name, photo, case, crops, out, origin))
            bar.update()
        results.append(
            {
                "variant": job.variant,
                "params": job.params,
                "precision": job.precision,
                "algorithm_class": context.library.variant(job.variant)["algorithm_class"],
                "pairs": len(cases),
                "seconds": seconds,
                "error_px": distance_summary(np.array(errors)),
            }
        )
    return {
        "dataset": dataset.name,
        "title": f"synthetic twin of {dataset.title}" if entry["substituted"] else dataset.title,
        "substituted": entry["substituted"],
        "note": entry["note"],
        "source": "seeded generator" if entry["substituted"] else dataset.source,
        "licence": "MIT" if entry["substituted"] else dataset.licence,
        "citation": "" if entry["substituted"] else dataset.citation,
        "sha256": "" if entry["substituted"] else dataset.sha256,
        "pattern_shape": list(photo.shape),
        "tile_shape": list(cases[0].left),
        "cases": len(cases),
        "pairs": len(cases),
        "window": "full",
        "preview_case": PREVIEW_CASE,
        "variants": results,
    }


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
