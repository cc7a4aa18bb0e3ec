"""particle-velocimetry: are displacements of particles found within 0.1 pixel, and do they agree with openpiv-python?

Synthetic pairs of frames have a known field, a vortex or a shear. They are evaluated with windows of 16, 32 and 64,
both boundaries, and one or two passes. The run fails (exit code 1) where the error with windows of 32 reaches TOLERANCE
in two passes, or in one pass on frames of at least ONE_PASS_SIDE. A real pair of frames is part of the package openpiv
and has no twin. Where openpiv can be imported, its displacements and times stand beside ours.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from experiments.inputs import common, datasets
from experiments.inputs.datasets import PARTICLES
from xcorr.choice.auto import Auto
from xcorr.commands import velocimetry
from xcorr.errors import UserError
from xcorr.native.stream import Job
from xcorr.problem import Problem

EXPERIMENT, TITLE = "particle-velocimetry", "Particle image velocimetry"
TABLE = "fields"
COLUMNS = (
    "case variant params rows cols window boundary passes vectors rms bias_y bias_x largest outliers signal_to_noise seconds "
    "peer_difference peer_seconds"
).split()
TOLERANCE = 0.1  # pixels, root mean square of the distances, at 32 x 32
ONE_PASS_SIDE = 512  # pixels; in a frame half as large the field changes twice as much within a window
PEER_TOLERANCE = 0.1  # pixels, median distance from openpiv-python
DENSITY = 0.05  # particles per pixel
SIDES = {"smoke": 256, "quick": 512, "paper": 1024}
ROUNDS = 2  # calls, of which the last one counts: the first one plans
METHODS = {"circular": "circular", "zero": "linear"}  # our boundary -> its name in openpiv

Frames = tuple[np.ndarray, np.ndarray]
Choose = Callable[[Problem, int], Job]
FieldOf = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Setting:
    window: int
    boundary: str
    passes: int


DRAWN = Setting(32, "circular", 2)


def fields(side: int) -> dict[str, FieldOf]:
    """The known fields. Vortex: Gaussian, at most 2 pixels. Shear: about 3.4 pixels to the right with a difference of 4
    pixels between the upper and the lower border, and 0.6 pixels up."""

    def vortex(y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        down, right, radius = y - side / 2, x - side / 2, 0.3125 * side
        turn = 2 / radius * np.exp(0.5 - (down**2 + right**2) / (2 * radius**2))
        return turn * right, -turn * down

    def shear(y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full_like(y, -0.6), 4 * (y / side - 0.5) + 3.4

    return {"vortex": vortex, "shear": shear}


def settings(preset: str) -> list[Setting]:
    """All windows and boundaries in two passes, and windows of 32 in one."""
    asked = [(window, 2) for window in (16, 32, 64)] + [(32, 1)]
    return [Setting(window, boundary, passes) for window, passes in asked for boundary in METHODS]


def chooser(context: common.Context, device: str) -> Choose:
    """A choice of variants: the first one that the user named, else the one that auto chooses on the device. A named
    variant that only supports the search leaves the measurement to auto."""
    auto, own = Auto(context.library, device), replace(context, device=device)
    asked = replace(context, requested=context.requested[:1])

    def choose(request: Problem, _: int) -> Job:  # a repeated call finds its plans
        if asked.requested:
            try:
                return common.requested_jobs(asked, [request])[0]
            except UserError:
                if request.fields.score == "covariance":
                    raise
        return common.auto_job(own, request, auto)

    return choose


def measured(
    context: common.Context, frames: Frames, setting: Setting, choose: Choose, threshold: float = velocimetry.THRESHOLD
) -> tuple[velocimetry.Field, dict[str, Any]]:
    """The field, and the cells of its row that need no truth. `seconds`: one call, transfers included."""
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = velocimetry.displacements(
            context.library, *frames, **asdict(setting), threshold=threshold, choose=choose
        )
        seconds = time.perf_counter() - start
    job = choose(velocimetry.search_of(setting.window, found.dy.size, setting.boundary), 1)
    finite = found.signal_to_noise[np.isfinite(found.signal_to_noise)]
    ratio = float(np.median(finite)) if finite.size else ""
    point = {"variant": job.variant, "params": job.params, **dict(zip(("rows", "cols"), frames[0].shape))}
    counts = {"vectors": found.dy.size, "outliers": int(found.outlier.sum())}
    return found, {**point, **asdict(setting), **counts, "signal_to_noise": ratio, "seconds": seconds}


def against(found: velocimetry.Field, truth: FieldOf) -> dict[str, float]:
    """Errors of all vectors, replaced outliers included."""
    y, x = np.meshgrid(found.y, found.x, indexing="ij")
    known_y, known_x = truth(y, x)
    down, right = found.dy - known_y, found.dx - known_x
    bias = {"bias_y": float(down.mean()), "bias_x": float(right.mean())}
    return {"rms": float(np.sqrt(np.mean(down**2 + right**2))), **bias, "largest": float(np.hypot(down, right).max())}


def peer(frames: Frames, setting: Setting) -> tuple[np.ndarray, np.ndarray, float] | str:
    """dy, dx and seconds of openpiv-python, or the reason why there are none."""
    try:
        from openpiv import pyprocess
    except ImportError:
        return "openpiv cannot be imported"
    whole = [frame.astype(np.int32) for frame in frames]
    size = {"window_size": setting.window, "overlap": setting.window // 2, "search_area_size": setting.window}
    method = {"correlation_method": METHODS[setting.boundary], "normalized_correlation": False}
    method["sig2noise_method"] = "peak2peak"
    for _ in range(ROUNDS):  # its first call takes twice as long
        start = time.perf_counter()
        right, down, _ = pyprocess.extended_search_area_piv(*whole, **size, **method)
        seconds = time.perf_counter() - start
    return down, right, seconds


def real(
    context: common.Context, content: bytes, choose: Choose
) -> tuple[list[dict[str, Any]], velocimetry.Field, np.ndarray, str]:
    """Rows of the real pair, its field in two passes, its first frame, and why there is no peer, or "". With a GPU
    there are also rows of the host's CPU, on which the peer runs."""
    eight_bit = datasets.particle_frames(content)
    frames = (eight_bit[0].astype(np.float32), eight_bit[1].astype(np.float32))
    rows, note = [], ""
    on_host = [] if context.requested or context.device == "cpu" else [chooser(context, "cpu")]
    for boundary in METHODS:
        setting = Setting(32, boundary, 1)
        beside = peer(frames, setting)
        for chosen in (choose, *on_host):
            found, row = measured(context, frames, setting, chosen, threshold=np.inf)
            if isinstance(beside, str):
                note = beside
            else:
                row["peer_difference"] = float(np.median(np.hypot(found.dy - beside[0], found.dx - beside[1])))
                row["peer_seconds"] = beside[2]
            rows.append({"case": PARTICLES.name, **row})
    found, row = measured(context, frames, DRAWN, choose)
    rows.append({"case": PARTICLES.name, **row})
    return rows, found, eight_bit[0], note


def arrows(name: str, found: velocimetry.Field) -> dict[str, np.ndarray]:
    y, x = np.meshgrid(found.y, found.x, indexing="ij")
    return {f"{name}_vectors": np.stack([y, x, found.dy, found.dx, found.outlier]).astype(np.float32)}


def wrong(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each result that is not allowed."""
    found = []
    for row in rows:
        at = f"{row['case']}, windows of {row['window']}, {row['boundary']}, {row['passes']} passes"
        judged = row["window"] == 32 and (row["passes"] > 1 or row["rows"] >= ONE_PASS_SIDE)
        if "rms" in row and judged and not row["rms"] < TOLERANCE:
            found.append(f"{at}: the error is {row['rms']:.3g} pixels, {TOLERANCE} are allowed")
        if "peer_difference" in row and not row["peer_difference"] < PEER_TOLERANCE:
            found.append(f"{at}: {row['peer_difference']:.3g} pixels from openpiv, {PEER_TOLERANCE} are allowed")
    return found


def compute(context: common.Context) -> int:
    content, note = context.fetch(PARTICLES)
    key = common.resume_key(context, {PARTICLES.name: PARTICLES.sha256 if content else "absent"})
    if common.is_done(context, key, TABLE):
        return 0
    side, choose = SIDES[context.preset], chooser(context, context.device)
    rows: list[dict[str, Any]] = []
    previews: dict[str, Any] = {}
    for number, (name, truth) in enumerate(fields(side).items()):
        rng = np.random.default_rng([context.seed, 19, number])
        frames = velocimetry.particle_pair((side, side), truth, rng, DENSITY)
        for setting in settings(context.preset):
            found, row = measured(context, frames, setting, choose)
            rows.append({"case": name, **row, **against(found, truth)})
            if setting == DRAWN:
                previews |= arrows(name, found)
    summaries = []
    if content:
        own, found, frame, note = real(context, content, choose)
        rows += own
        previews |= arrows(PARTICLES.name, found)
        previews[f"{PARTICLES.name}_frame"], previews[f"{PARTICLES.name}_scale"] = common.preview(frame)
        summaries.append({**PARTICLES.facts(), "note": note})
        print(f"{EXPERIMENT}: {PARTICLES.credit}")
    if note:
        print(f"{EXPERIMENT}: {'no peer' if content else 'no real frames'}: {note}")
    if mistakes := wrong(rows):
        print(f"error: {EXPERIMENT}: {len(mistakes)} wrong; {mistakes[0]}", file=sys.stderr)
        return 1
    extra = {"tolerance": TOLERANCE, "peer_tolerance": PEER_TOLERANCE, "missing": note}
    return common.write_artifacts(context, TITLE, key, COLUMNS, rows, summaries, previews, extra, TABLE)


main = partial(common.run_main, EXPERIMENT, __doc__ or "", compute)

if __name__ == "__main__":
    sys.exit(main())
