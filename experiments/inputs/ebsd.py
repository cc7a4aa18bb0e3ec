"""real-ebsd: displacement of tiles of electron backscatter patterns, the JPDC paper's application.

Section 5.6 of the paper: one reference pattern and 50 deformed patterns, 86 tiles of 96 x 96 each, n-to-mn 86:4300,
float32 against float64. There are two datasets. The patterns of a seeded generator have known sub-pixel shifts. Of the
nickel patterns, noisy crops of the reference at whole-pixel offsets have known shifts, and the other measured patterns
have none. Tiles are band-passed, and the left tiles are tapered (experiments/inputs/patterns.py). The displacements are
peaks of the variant that auto chooses for this result. Surfaces are computed for the comparison with float64.
"""

import sys
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from tqdm import tqdm

from experiments.driver.shown import shown
from experiments.inputs import common, datasets, patterns
from experiments.inputs.accuracy import PAPER, Accuracy, distance_summary
from xcorr.choice.auto import Auto, Choice
from xcorr.commands.memory import check_memory
from xcorr.commands.peaks import Peaks, concatenate, find_peaks, of_records
from xcorr.native import stream
from xcorr.problem import Problem, pair_indices

EXPERIMENT, TITLE = "real-ebsd", "Displacement of electron backscatter patterns"
COLUMNS = (
    "dataset substituted variant precision pair tile pattern kind centre_y centre_x known_sy "
    "known_sx sy sx value sub_sy sub_sx peak_to_second error_px mean_rel_diff max_rel_diff "
    "norm_error result"
).split()
LAYOUTS = {
    "smoke": (patterns.Layout(4, 4, 48), 6),
    "quick": (patterns.Layout(9, 10, 96), 50),
    "paper": (patterns.Layout(9, 10, 96), 50),
}  # grid and tile, patterns
DEFINITION_LIMIT_S = {"smoke": 2.0, "quick": 10.0, "paper": 120.0}
REFERENCE_CHUNK_BYTES = 64 << 20
GENERATOR = "seeded generator experiments/inputs/patterns.py"
NICKEL_TILE, NICKEL_STEP, NICKEL_MARGIN = 32, 9, 5
NICKEL_REFERENCE = 4  # the middle of 3 x 3 scan points
NICKEL_OFFSETS = ((0, 0), (2, 1), (-1, 3), (4, -2), (-3, -4), (0, 5), (-5, 0), (3, 3))
NICKEL_NOISE = 3.0  # counts
PREVIEW_PATTERN = 1


@dataclass
class Tiles:
    """A dataset, prepared for correlation."""

    facts: dict[str, Any]  # for the summary: title, source, licence and so on
    left: np.ndarray  # tiles x rows x cols float32
    right: np.ndarray  # (tiles * patterns) x rows x cols float32, grouped by tile
    centres: np.ndarray  # tiles x 2, (y, x) in the pattern
    shifts: np.ndarray  # tiles x patterns x 2: (sy, sx), NaN where unknown
    pattern_shape: tuple[int, int]
    previews: tuple[np.ndarray, np.ndarray]

    @property
    def name(self) -> str:
        return str(self.facts["dataset"])

    @property
    def patterns(self) -> int:
        return self.shifts.shape[1]

    @property
    def request(self) -> Problem:
        shape = self.left.shape[1:]
        return Problem("n-to-mn", shape, shape, len(self.left), len(self.right))


def synthetic_tiles(preset: str, seed: int) -> Tiles:
    """Patterns of the generator with known shifts."""
    layout, count = LAYOUTS[preset]
    generator = patterns.Generator(layout, seed)
    shifts = patterns.known_shifts(layout, count, seed)
    side = layout.tile
    tile_bytes = layout.tiles * (count + 1) * side * side * 4
    check_memory(f"{EXPERIMENT} synthetic", {"tiles": tile_bytes, "outputs": stream.DEFAULT_CHUNK_BYTES})
    left = np.empty((layout.tiles, side, side), np.float32)
    right = np.empty((layout.tiles, count, side, side), np.float32)
    whole = np.zeros((2, *layout.pattern_shape))
    for tile, (y, x) in enumerate(tqdm(layout.corners, desc="patterns", unit="tile", disable=None, leave=False)):
        reference = generator.reference(tile)
        deformed = np.stack(list(generator.deformed(tile, shifts[tile])))
        left[tile] = patterns.taper(patterns.band_pass(reference))
        right[tile] = patterns.band_pass(deformed)
        whole[0, y : y + side, x : x + side] = reference
        whole[1, y : y + side, x : x + side] = deformed[PREVIEW_PATTERN]
    title = f"synthetic FeAl, {layout.tiles} tiles of {side}x{side}, {count} patterns"
    own = {"dataset": "synthetic", "title": title, "substituted": False}
    facts = datasets.NICKEL.twin_facts("", GENERATOR) | own
    centres, flat = np.array(layout.corners) + side / 2, right.reshape(-1, side, side)
    return Tiles(facts, left, flat, centres, shifts, layout.pattern_shape, (whole[0], whole[1]))


def nickel_tiles(stack: np.ndarray, facts: dict[str, Any], seed: int) -> Tiles:
    """3 x 3 overlapping tiles of `stack` (9 x 60 x 60).

    The right matrices of a tile at (y, x) are crops of the reference with new noise at (y - sy, x - sx) for each (sy,
    sx) of NICKEL_OFFSETS, which is the known shift, and then the eight other measured patterns at (y, x).
    """
    side = NICKEL_TILE
    corners = [(NICKEL_MARGIN + NICKEL_STEP * i, NICKEL_MARGIN + NICKEL_STEP * j) for i in range(3) for j in range(3)]
    rng = np.random.default_rng([seed, 8])
    reference = stack[NICKEL_REFERENCE].astype(np.float64)
    others = np.delete(stack, NICKEL_REFERENCE, axis=0)
    left, right = [], []
    for y, x in corners:
        left.append(reference[y : y + side, x : x + side])
        for sy, sx in NICKEL_OFFSETS:
            crop = reference[y - sy : y - sy + side, x - sx : x - sx + side]
            right.append(crop + rng.normal(0, NICKEL_NOISE, crop.shape))
        right += [other[y : y + side, x : x + side] for other in others]
    shifts = np.full((len(corners), len(NICKEL_OFFSETS) + len(others), 2), np.nan)
    shifts[:, : len(NICKEL_OFFSETS)] = NICKEL_OFFSETS
    sy, sx = NICKEL_OFFSETS[PREVIEW_PATTERN]
    rows, cols = (np.clip(np.arange(60) - shift, 0, 59) for shift in (sy, sx))
    moved = reference[np.ix_(rows, cols)] + rng.normal(0, NICKEL_NOISE, reference.shape)
    lefts = patterns.taper(patterns.band_pass(np.stack(left))).astype(np.float32)
    rights = patterns.band_pass(np.stack(right)).astype(np.float32)
    shown = (show_bands(reference), show_bands(moved))
    return Tiles(facts, lefts, rights, np.array(corners) + side / 2, shifts, reference.shape, shown)


def show_bands(pattern: np.ndarray) -> np.ndarray:
    """A slightly smoothed `pattern` without its smooth background, for figures."""
    return gaussian_filter(pattern, 0.8) - gaussian_filter(pattern, 8)


def load_nickel(context: common.Context) -> tuple[np.ndarray, dict[str, Any]]:
    """Nickel patterns or those of the generator (9 x 60 x 60), and their entry in the summary."""

    def twin() -> np.ndarray:
        generator = patterns.Generator(patterns.Layout(3, 3, 60), context.seed + 1)
        offsets = np.random.default_rng([context.seed, 9]).uniform(-3, 3, (9, 2))
        return np.stack(list(generator.deformed(2, offsets)))  # a tile of a larger detector

    return context.load(datasets.NICKEL, datasets.nickel_patterns, twin, GENERATOR)


@dataclass(eq=False)
class Measured:
    """Peaks, accuracy and seconds of a variant on the first pairs of a dataset."""

    job: stream.Job
    result_kind: str = "surface"
    accuracy: Accuracy = field(default_factory=Accuracy)
    seconds: float = 0.0
    peaks: list[Peaks] = field(default_factory=list)
    chunks: float = np.inf  # number of chunks to cover

    def result(self) -> Peaks:
        return concatenate(self.peaks)


def norm(stack: np.ndarray) -> np.ndarray:
    """L2 norm of each matrix, summed in float64."""
    return np.sqrt(np.einsum("kij,kij->k", stack, stack, dtype=np.float64))


def measure(context: common.Context, tiles: Tiles, jobs: list[stream.Job]) -> list[Measured]:
    """Runs each variant and the float64 reference on the dataset, chunk by chunk.

    A definition-based variant that the user did not name stops after the number of chunks that fit into
    DEFINITION_LIMIT_S by the time of the first chunk.
    """
    library, request = context.library, tiles.request
    facts = library.describe(request)
    pair_bytes = facts.out_rows * facts.out_cols * 8
    chunks = stream.plan_chunks(request, pair_bytes, REFERENCE_CHUNK_BYTES)
    left_of, right_of = pair_indices(request)
    norms = norm(tiles.left)[left_of] * norm(tiles.right)[right_of]
    measured = [Measured(job) for job in jobs]
    stacks = tiles.left, tiles.right
    references = stream.run_chunks(library, request, jobs[0], *stacks, chunks, compute=library.reference)
    with tqdm(total=facts.pairs, desc=f"{EXPERIMENT} {tiles.name}", unit="pair", disable=None, leave=False) as bar:
        for number, (chunk, reference) in enumerate(references):
            counts = (chunk.lefts.stop - chunk.lefts.start, chunk.rights.stop - chunk.rights.start)
            part = Problem(request.form, request.left, request.right, *counts)
            for each in (one for one in measured if number < one.chunks):
                stacks = tiles.left[chunk.lefts], tiles.right[chunk.rights]
                out, seconds = common.timed(each.job.correlate, library, part, *stacks, rounds=1)
                each.seconds += seconds
                each.accuracy.add(out, reference, norms[chunk.first : chunk.first + chunk.pairs])
                each.peaks.append(find_peaks(out, (facts.sy0, facts.sx0)))
                definition = library.variant(each.job.variant)["algorithm_class"] == "definition"
                if number == 0 and definition and not context.requested:
                    each.chunks = max(1, int(DEFINITION_LIMIT_S[context.preset] / max(seconds, 1e-9)))
            bar.update(chunk.pairs)
    return measured


def measure_peaks(context: common.Context, tiles: Tiles) -> tuple[Measured, Choice]:
    """Peaks of the whole dataset by the variant that auto chooses. On a GPU the second of two runs is timed."""
    library, request = context.library, replace(tiles.request, fields=replace(tiles.request.fields, result="peak"))
    choice = Auto(library, context.device).choose(request)
    job = stream.Job(choice.variant, choice.params, "fp32", context.device)
    records = stream.writes_itself(library, choice.variant, request)
    chunks, _ = stream.chunks_of(request, library.describe(request), job, stream.DEFAULT_CHUNK_BYTES, records)
    measured = Measured(job, "peak")

    def every_peak() -> list[np.ndarray]:
        return [out.copy() for _, out in stream.run_chunks(library, request, job, tiles.left, tiles.right, chunks)]

    found, measured.seconds = common.timed(every_peak, rounds=1 if context.device == "cpu" else 2)
    measured.peaks = [of_records(np.concatenate(found))]
    return measured, choice


def rows_of(context: common.Context, tiles: Tiles, measured: Measured) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Table rows of a variant, and its entry of the summary."""
    found, count = measured.result(), tiles.patterns
    rows, pairs = [], len(found.sy)
    known = tiles.shifts.reshape(-1, 2)[:pairs]
    error = np.hypot(found.sub_sy - known[:, 0], found.sub_sx - known[:, 1])
    shared = {"dataset": tiles.name, "substituted": int(tiles.facts["substituted"]), "result": measured.result_kind}
    shared |= {"variant": measured.job.variant, "precision": measured.job.precision}
    for pair in range(pairs):
        tile = pair // count
        place: dict[str, Any] = {"pair": pair, "tile": tile, "pattern": pair % count}
        place |= zip(("centre_y", "centre_x"), map(float, tiles.centres[tile]))
        place |= zip(("known_sy", "known_sx"), map(float, known[pair]))
        kind = "measured" if np.isnan(known[pair, 0]) else "known"
        differences = measured.accuracy.pairs[pair] if measured.accuracy.pairs else (np.nan,) * 3
        place |= zip(("mean_rel_diff", "max_rel_diff", "norm_error"), differences)
        rows.append({**shared, **place, "kind": kind, **common.peak_cells(found, pair), "error_px": float(error[pair])})
    accuracy = measured.accuracy.summary() if measured.accuracy.pairs else {}
    facts = {"result": measured.result_kind, "pairs": pairs, "seconds": measured.seconds}
    entry = {**context.entry_of(measured.job), **facts, "error_px": distance_summary(error)}
    return rows, {**entry, "float32_vs_float64": accuracy}


def jobs_of_claims(context: common.Context, requests: list[Problem], chosen: Collection[str]) -> list[stream.Job]:
    """The variants of this device that claims about this experiment name, without those of `chosen`."""
    groups = (one for one in shown() if EXPERIMENT in (one.experiments or ()))
    names = {name for one in groups for name in one.variants or ()} - set(chosen)
    return common.jobs_of(context, [one for one in context.variants if one["id"] in names], requests)[0]


def compute(context: common.Context) -> int:
    stack, facts = load_nickel(context)
    key = common.resume_key(context, {"nickel": facts["sha256"] or "synthetic"})
    if common.is_done(context, key):
        return 0
    both = (nickel_tiles(stack, facts, context.seed), synthetic_tiles(context.preset, context.seed))
    jobs = common.choose_jobs(context, [tiles.request for tiles in both], definition=True)
    if not context.requested and context.preset != "smoke":
        jobs += jobs_of_claims(context, [tiles.request for tiles in both], {job.variant for job in jobs})
    rows: list[dict[str, Any]] = []
    summaries, wrong = [], []
    previews: dict[str, Any] = {}
    for tiles in both:
        entries, main = [], ""
        surfaces, chosen = measure(context, tiles, jobs), []
        if not context.requested:
            peaks, choice = measure_peaks(context, tiles)
            print(f"auto: {choice.variant} {choice.params}".rstrip() + f": {choice.why}")
            chosen, main = [peaks], choice.variant
        for measured in (*surfaces, *chosen):
            table, entry = rows_of(context, tiles, measured)
            if measured in surfaces and main == measured.job.variant:
                table = []  # its peaks have the rows
            if measured not in surfaces:
                entry["same_position"] = same_position(surfaces[0].result(), measured.result())
            rows += table
            entries.append(entry)
            wrong += report(tiles, entry)
        shapes = {"pattern_shape": list(tiles.pattern_shape), "tile_shape": list(tiles.left.shape[1:])}
        counts = {"tiles": len(tiles.left), "patterns": tiles.patterns, "pairs": len(tiles.right), "window": "full"}
        drawn = {"preview_pattern": PREVIEW_PATTERN, "main": main}
        summaries.append({**tiles.facts, **shapes, **counts, **drawn, "variants": entries})
        for name, image in zip(("reference", "deformed"), tiles.previews):
            previews[f"{tiles.name}_{name}"], scale = common.preview(image)
        previews[f"{tiles.name}_scale"] = np.float64(scale)
        previews[f"{tiles.name}_tile"] = np.array(tiles.left.shape[1:])
    extra = {"paper": PAPER}
    return common.write_artifacts(context, TITLE, key, COLUMNS, rows, summaries, previews, extra, mistakes=wrong)


def same_position(one: Peaks, other: Peaks) -> float:
    """Fraction of the common pairs with the same integer peak."""
    both = min(len(one.sy), len(other.sy))
    return float(np.mean((one.sy[:both] == other.sy[:both]) & (one.sx[:both] == other.sx[:both])))


def report(tiles: Tiles, entry: dict[str, Any]) -> list[str]:
    """Prints a variant's result. The lines that are returned say where the known shifts are not found."""
    error, accuracy = entry["error_px"], entry["float32_vs_float64"]
    if accuracy:
        mean, largest = accuracy["mean_rel_diff"], accuracy["norm_scaled_max"]
        more = f"float32 against float64: mean relative difference {mean:.2e}, norm-scaled at most {largest:.1e}"
    else:
        same = f"{entry['same_position']:.2%} at the shift of the surface's"
        more = f"{entry['result']}, {same}, {entry['seconds']:.3g} s with transfers"
    data = f"{tiles.name}{' (synthetic twin)' if tiles.facts['substituted'] else ''}"
    distances = f"error median {error['median']:.3f}, 95 % within {error['p95']:.3f} pixel"
    print(f"{EXPERIMENT}: {data}, {entry['variant']}, {entry['pairs']} pairs: {distances}; {more}")
    wrong = f"median error {error['median']:.2f} pixel against the known shifts; half a pixel is allowed"
    return [f"{tiles.name}, {entry['variant']}: {wrong}"] if error["median"] > 0.5 else []


main = partial(common.run_main, EXPERIMENT, __doc__ or "", compute)

if __name__ == "__main__":
    sys.exit(main())
