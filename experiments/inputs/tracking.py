"""template-tracking: is a template that moves through a sequence of frames followed within a fraction of a pixel?

The frames show a photograph that moves by fractions of a pixel, with noise and changing brightness and contrast. In the
case `rotation` it also rotates about the template. The template is cut from the first frame. The new place of the
template is the peak of its score zncc at the shifts within REACH of the last place; a parabola gives the fraction of a
pixel. The search window is copied from the frame on the host, since every variant of zncc takes dense matrices, and a
GPU then gets less data. The run fails (exit code 1) where the error exceeds TOLERANCES.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from experiments.inputs import common, datasets
from experiments.inputs.datasets import CAMERA
from xcorr.native.stream import Job
from xcorr.problem import Problem

EXPERIMENT, TITLE = "template-tracking", "Tracking of a template"
TABLE = "places"
COLUMNS = "dataset substituted case variant params frame known_y known_x angle y x score error seconds".split()
FRAME = (240, 320)
TEMPLATE = (64, 64)
REACH = 9  # pixels: largest motion in y and x between two frames
NOISE = 4.0  # standard deviation, of 255
TURN = 1.0  # degrees at most, in the case `rotation`
# Pixels, root mean square of the distances. The strongest detail of the template is 22 pixels from its middle, so a rotation
# by a degree moves the best place by 0.4 pixels.
TOLERANCES = {"shift": 0.15, "rotation": 0.4}
FRAMES = {"smoke": 30, "quick": 200, "paper": 600}
START = (110.0, 150.0)  # of the middle of the template in the first frame


@dataclass(frozen=True)
class Motion:
    """Arrays with an element per frame: the middle of the template, its angle in degrees, contrast and brightness."""

    y: np.ndarray
    x: np.ndarray
    angle: np.ndarray
    gain: np.ndarray
    offset: np.ndarray


def motion(case: str, frames: int) -> Motion:
    """A closed curve of 30 x 44 pixels in 120 frames, at most 2.4 pixels a frame."""
    t = 2 * np.pi * np.arange(frames) / 120
    y = START[0] + 15 * np.sin(2 * t) + 0.37 * np.sin(11 * t)
    x = START[1] + 22 * (np.cos(t) - 1)
    angle = TURN * np.sin(1.5 * t) * (case == "rotation")
    return Motion(y, x, angle, 1 + 0.3 * np.sin(0.7 * t), 25 * np.sin(0.9 * t))


def render(photo: np.ndarray, path: Motion, frame: int, rng: np.random.Generator) -> np.ndarray:
    """A frame, FRAME pixels, float32: the moved photograph, interpolated by cubic splines."""
    from scipy import ndimage

    y, x = np.mgrid[: FRAME[0], : FRAME[1]].astype(np.float64)
    down, right = y - path.y[frame], x - path.x[frame]
    angle = np.deg2rad(path.angle[frame])
    middle = [extent / 2 for extent in photo.shape]
    places = (
        middle[0] + np.cos(angle) * down - np.sin(angle) * right,
        middle[1] + np.sin(angle) * down + np.cos(angle) * right,
    )
    clean = ndimage.map_coordinates(photo, places, order=3, mode="mirror")
    noisy = path.gain[frame] * clean + path.offset[frame] + NOISE * rng.normal(size=FRAME)
    return np.clip(np.rint(noisy), 0, 255).astype(np.float32)


def request_of() -> Problem:
    """The problem of the peak of the scores of a template in a search window."""
    search = (TEMPLATE[0] + 2 * REACH, TEMPLATE[1] + 2 * REACH)
    return Problem("one-to-one", TEMPLATE, search, window="valid", score="zncc", result="peak")


def part_of(frame: np.ndarray, corner: Sequence[int], shape: tuple[int, int]) -> np.ndarray:
    """A copy of the part of the frame with the first pixel `corner`: 1 x rows x cols."""
    rows, cols = (slice(start, start + extent) for start, extent in zip(corner, shape))
    return np.ascontiguousarray(frame[np.newaxis, rows, cols])


def follow(context: common.Context, job: Job, frames: Sequence[np.ndarray]) -> list[dict[str, float]]:
    """Place of the template's middle, score and seconds in each frame after the first. `seconds`: the copy of the
    search window and the call, transfers included."""
    request, half = request_of(), [(extent - 1) / 2 for extent in TEMPLATE]
    first = [int(round(start - middle)) for start, middle in zip(START, half)]
    template = part_of(frames[0], first, TEMPLATE)
    # The corner is a whole pixel, so the middle differs from START by a fraction.
    offset = [start - (corner + middle) for start, corner, middle in zip(START, first, half)]

    def best_place(frame: np.ndarray, origin: Sequence[int]) -> np.ndarray:
        return job.correlate(context.library, request, template, part_of(frame, origin, request.right))

    corner, found = first, []
    for frame in frames[1:]:
        origin = [int(np.clip(at - REACH, 0, extent - size)) for at, extent, size in zip(corner, FRAME, request.right)]
        (peak,), seconds = common.timed(best_place, frame, origin, rounds=1)
        corner = [origin[0] + int(peak["sy"]), origin[1] + int(peak["sx"])]
        y, x = (
            at + float(peak[name]) + middle + more
            for at, name, middle, more in zip(corner, ("sub_sy", "sub_sx"), half, offset)
        )
        found.append({"y": y, "x": x, "score": float(peak["value"]), "seconds": seconds})
    return found


def compute(context: common.Context) -> int:
    content, note = context.fetch(CAMERA)
    photo = datasets.grey_photo(content) if content else datasets.photo_twin(context.seed)
    key = common.resume_key(context, {CAMERA.name: "synthetic" if note else CAMERA.sha256})
    if common.is_done(context, key, TABLE):
        return 0
    count, request = FRAMES[context.preset], request_of()
    jobs = common.requested_jobs(context, [request]) or [common.auto_job(context, request)]
    rows: list[dict[str, Any]] = []
    variants: list[dict[str, Any]] = []
    mistakes, previews = [], {}
    for number, (case, tolerance) in enumerate(TOLERANCES.items()):
        path = motion(case, count)
        rng = np.random.default_rng([context.seed, 23, number])
        frames = [render(photo, path, frame, rng) for frame in range(count)]
        for job in jobs:
            job_rows = follow(context, job, frames)
            for frame, one in enumerate(job_rows, 1):
                one["error"] = float(np.hypot(one["y"] - path.y[frame], one["x"] - path.x[frame]))
                place = {"dataset": CAMERA.name, "substituted": int(bool(note)), "case": case, "variant": job.variant}
                known = {"known_y": path.y[frame], "known_x": path.x[frame], "angle": path.angle[frame]}
                rows.append({**place, "params": job.params, "frame": frame, **known, **one})
            errors = np.array([one["error"] for one in job_rows])
            rms = float(np.sqrt(np.mean(errors**2)))
            seconds = float(np.median([one["seconds"] for one in job_rows[1:]]))  # the first call plans
            point = {"case": case, "variant": job.variant, "params": job.params, "precision": job.precision}
            own = {"frames": len(job_rows), "rms": rms, "largest": float(errors.max()), "tolerance": tolerance}
            variants.append({**point, **own, "frames_per_second": 1 / seconds})
            if not rms < tolerance:
                mistakes.append(f"{case}, {job.variant}: the error is {rms:.3g} pixels, {tolerance} are allowed")
        shown = count // 2
        previews[f"{case}_frame"] = frames[shown].astype(np.uint8)
        previews[f"{case}_place"] = np.array([path.y[shown], path.x[shown], path.angle[shown]])
    if mistakes:
        print(f"error: {EXPERIMENT}: {len(mistakes)} wrong; {mistakes[0]}", file=sys.stderr)
        return 1
    summary = {**CAMERA.facts(), "substituted": bool(note), "note": note, "variants": variants}
    facts = {"template": TEMPLATE, "search": request.right, "frame": FRAME, "noise": NOISE, "turn": TURN}
    code = common.write_artifacts(context, TITLE, key, COLUMNS, rows, [summary], previews, facts, TABLE)
    for one in variants:
        speed = f"{one['rms']:.3g} pixels, {one['frames_per_second']:.0f} frames/s"
        print(f"{EXPERIMENT}: {one['case']}, {one['variant']}: {speed}")
    return code


main = partial(common.run_main, EXPERIMENT, __doc__ or "", compute)

if __name__ == "__main__":
    sys.exit(main())
