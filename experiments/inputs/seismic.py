"""real-seismic: does a matched filter find in real noise what float64 finds?

Templates are cut from the three components of a real earthquake. The whole earthquake is planted in real noise of
another station, at seeded places and with falling amplitude. Every variant computes zncc along the signal and returns
the scores that lie 8 MAD (median absolute deviations) above the median of their template. The run fails (exit code 1)
unless, against float64 of the same samples, the detections are the same, except for scores that differ from the
threshold by less than the bound of the precision class; the values differ by less than this bound; and every planted
event of at least 12 MAD is found. Events far from all planted events are false. They are counted, also for float64.
"""

import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from experiments.inputs import common, datasets, matched_filter
from experiments.inputs.matched_filter import Truth
from xcorr.errors import LibraryError, UserError
from xcorr.native.library import find_variant
from xcorr.native.precisions import PRECISIONS, scalar_type
from xcorr.native.stream import Job
from xcorr.problem import Problem
from xcorr.results import DETECTION

EXPERIMENT, TITLE = "real-seismic", "Planted earthquakes in real noise"
TABLE = "detections"
COLUMNS = (
    "dataset substituted variant precision template event amplitude known_sx mads score value error found required"
).split()
RATE_HZ = 100.0
CHANNELS, SAMPLES = 3, 256  # of a template
EVENT = (6100, 7124)  # samples of the recorded earthquake from its first arrival on
THRESHOLD, REQUIRED = 8.0, 12.0  # MAD
AMPLITUDES = (4.0, 0.1)  # of the first and the last planted event: rms of the strongest template over that of the noise
CAPACITY = 1 << 18
# Largest error of a score, as in harness/verdict/score_bounds.hpp for a drifting mean. GRADE is for all other precisions.
NARROW = {"tf32": 3e-4, "fp16": 3e-4, "bf16x3": 3e-4}
GRADE = 1e-5
PREVIEW = 3000  # samples


@dataclass(frozen=True)
class Size:
    """Numbers of templates, of samples of the signal and of planted events."""

    templates: int
    signal: int
    events: int


# 20 minutes, 52 minutes, a day.
SIZES = {"smoke": Size(4, 120_000, 12), "quick": Size(16, 312_000, 24), "paper": Size(16, 8_640_000, 96)}


@dataclass(frozen=True)
class Case:
    """Templates (n x channels x T) and signal (channels x S) in float32, and the planted events."""

    templates: np.ndarray
    signal: np.ndarray
    offsets: np.ndarray  # of each template in the event
    places: np.ndarray  # first samples of the planted events
    amplitudes: np.ndarray
    length: int  # of an event

    @property
    def request(self) -> Problem:
        count, *shape = self.templates.shape
        right = self.signal.shape
        result = f"above:{THRESHOLD:g}mad:{CAPACITY}"
        return Problem("n-to-m", tuple(shape), right, count, 1, "valid", score="zncc", result=result)


def make_case(quiet: np.ndarray, event: np.ndarray, size: Size, seed: int, channels: int = CHANNELS) -> Case:
    """The case of one component of noise and the first `channels` components of an earthquake, both at RATE_HZ."""
    rng = np.random.default_rng([seed, 17])
    edge = 1000  # samples at both ends that the filter distorts
    noise = matched_filter.band_pass(quiet, RATE_HZ)[edge:-edge]
    signal = matched_filter.stretched(noise, channels, size.signal, rng)
    whole = matched_filter.band_pass(event, RATE_HZ)[:channels, slice(*EVENT)]
    length = whole.shape[1]
    offsets = np.linspace(0, length - SAMPLES, size.templates).astype(int)
    cut = np.stack([whole[:, at : at + SAMPLES] for at in offsets])
    strongest = np.sqrt((cut**2).mean(axis=(1, 2)).max())
    amplitudes = np.geomspace(*AMPLITUDES, size.events)
    slot = size.signal // size.events
    places = np.arange(size.events) * slot + rng.integers(0, slot - length, size.events)
    for place, amplitude in zip(places, amplitudes):
        signal[:, place : place + length] += amplitude / strongest * whole
    return Case(cut.astype(np.float32), signal.astype(np.float32), offsets, places, amplitudes, length)


def find_truth(case: Case) -> list[Truth]:
    return [Truth(template, case.signal) for template in case.templates]


def threshold_of(truth: Truth) -> float:
    return truth.median + THRESHOLD * truth.mad


def bound_of(precision: str) -> float:
    return NARROW.get(precision, GRADE)


def judge(truth: Truth, shifts: np.ndarray, values: np.ndarray, bound: float) -> dict[str, Any]:
    """Compares the detections of a template (ascending shifts) with float64: the number that differ, the number that
    the bound does not allow, and the largest error of a value."""
    reported = np.zeros(truth.scores.size, bool)
    reported[shifts] = True
    threshold = threshold_of(truth)
    differ = np.flatnonzero(reported != (truth.scores >= threshold))
    wrong = differ[np.abs(truth.scores[differ] - threshold) > bound]
    errors = np.abs(values.astype(np.float64) - truth.scores[shifts])
    first, count = int(wrong[0]) if wrong.size else -1, wrong.size + int((~(errors <= bound)).sum())
    return {"differ": differ.size, "wrong": count, "max_error": float(errors.max(initial=0.0)), "first_wrong": first}


def false_events(case: Case, shifts: np.ndarray) -> int:
    """The number of groups of detections that touch no planted event."""
    starts = matched_filter.events(shifts, SAMPLES)
    away = np.abs(starts[:, None] - case.places[None, :] - case.length // 2) > case.length // 2 + SAMPLES
    return int(away.all(axis=1).sum())


def choose(context: common.Context, request: Problem) -> list[Job]:
    """The variants that the user named, by default all that return detections themselves, in each precision in which
    they compute the request. Without any, the variant that auto chooses for fp32. UserError where none computes it."""
    asked = [find_variant(context.variants, name) for name in context.requested]
    backend = context.device.partition(":")[0]
    own = [one for one in context.variants if one["backend"] == backend and "above" in one.get("results", ())]
    jobs, reasons = common.jobs_of(context, asked or own, [request], PRECISIONS)
    if asked and not jobs:
        raise UserError(f"{reasons[0]}; choose another")
    return jobs or [common.auto_job(context, request)]


def compute(context: common.Context) -> int:
    data = datasets.SEISMOGRAMS
    content, reason = context.fetch(data)
    if reason:
        raise common.LeftOut(f"{data.package} has the seismograms, and {reason}")
    quiet, event = datasets.seismograms(content)
    print(f"data: {data.credit}")
    key = common.resume_key(context, {data.name: data.sha256})
    if common.is_done(context, key, TABLE):
        return 0
    case = make_case(quiet, event, SIZES[context.preset], context.seed)
    jobs = choose(context, case.request)
    truths = find_truth(case)
    rows: list[dict[str, Any]] = []
    results = []
    for job in tqdm(jobs, desc=EXPERIMENT, unit="variant", disable=None, leave=False):
        own_rows, result = _measure(context, job, case, truths)
        rows += own_rows
        results.append(result)
    failed = [one for one in results if one["wrong"] or one["missed"]]
    summary = _summary(case, truths, results, whole=case.signal.shape[1] <= quiet.size // CHANNELS)
    mistakes = [
        f"{one['variant']} in {one['precision']}: {one['wrong']} detections or values differ from float64 by more than "
        f"{one['bound']:g} (first at {one['first_wrong']}), {one['missed']} planted events of at least {REQUIRED:g} MAD are missing"
        for one in failed
    ]
    extra, previews = {"failed": len(failed)}, _previews(case, truths)
    code = common.write_artifacts(context, TITLE, key, COLUMNS, rows, [summary], previews, extra, TABLE, mistakes)
    for one in results if not failed else ():
        print(
            f"{EXPERIMENT}: {one['variant']} {one['precision']}: {one['detections']} detections as float64, {one['found']} of "
            f"{one['required']} planted events of at least {REQUIRED:g} MAD, {one['false_events']} false events "
            f"(float64: {summary['float64']['false_events']}), largest error {one['max_error']:.2g}"
        )
    return code


def _summary(case: Case, truths: list[Truth], results: list[dict[str, Any]], whole: bool) -> dict[str, Any]:
    """The dataset's entry in the summary. `whole`: no part of the noise was cut into blocks."""
    data = datasets.SEISMOGRAMS
    count, channels, samples = case.templates.shape
    length = case.signal.shape[1]
    note = (
        "The earthquake is planted in noise of another station and year. Each channel of the noise is a stretch of "
        "one vertical component" + ("." if whole else ", its blocks in random order.")
    )
    shapes = {"templates": count, "channels": channels, "samples": samples, "signal": length, "rate_hz": RATE_HZ}
    events = {"events": len(case.places), "threshold_mad": THRESHOLD, "required_mad": REQUIRED}
    fields = f"valid/score=zncc/result={case.request.fields.result}"
    problem = f"n-to-m/{channels}x{samples}/{channels}x{length}/{count}:1/{fields}"
    above = [np.flatnonzero(truth.scores >= threshold_of(truth)) for truth in truths]
    false = sum(false_events(case, one) for one in above)
    float64 = {"detections": sum(one.size for one in above), "false_events": false}
    found = {"problem": problem, "float64": float64, "variants": results}
    return {**data.facts(), "note": note, **shapes, **events, **found}


def _measure(
    context: common.Context, job: Job, case: Case, truths: list[Truth]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Runs a job twice and times the second run: a row for each template and planted event, and the result."""
    scalar = scalar_type(job.precision)
    left: NDArray[Any] = case.templates.astype(scalar)
    right: NDArray[Any] = case.signal[np.newaxis].astype(scalar)
    found, seconds = common.timed(job.correlate, context.library, case.request, left, right)
    if found.dtype != DETECTION:
        raise LibraryError(f"{job.variant}: returns {found.dtype}, no detections")
    bound = bound_of(job.precision)
    rows: list[dict[str, Any]] = []
    verdicts, false = [], 0
    point = {"dataset": datasets.SEISMOGRAMS.name, "substituted": 0}
    point |= {"variant": job.variant, "precision": job.precision}
    for number, truth in enumerate(truths):
        own = np.sort(found[found["pair"] == number], order="sx")
        verdicts.append(judge(truth, own["sx"], own["value"], bound))
        false += false_events(case, own["sx"])
        values = dict(zip(own["sx"].tolist(), own["value"].tolist()))
        for event, (place, amplitude) in enumerate(zip(case.places, case.amplitudes)):
            shift = int(place + case.offsets[number])
            score = float(truth.scores[shift])
            mads, value = float(truth.mads(score)), values.get(shift)
            planted_at = {"template": number, "event": event, "amplitude": float(amplitude), "known_sx": shift}
            scored = {"mads": mads, "score": score, "found": int(value is not None), "required": int(mads >= REQUIRED)}
            returned = {} if value is None else {"value": value, "error": abs(value - score)}
            rows.append({**point, **planted_at, **scored, **returned})
    firsts = [f"template {i} sx={one['first_wrong']}" for i, one in enumerate(verdicts) if one["first_wrong"] >= 0]
    total = {name: sum(one[name] for one in verdicts) for name in ("differ", "wrong")}
    total |= {"max_error": max(one["max_error"] for one in verdicts), "first_wrong": (firsts or [""])[0]}
    required, hits = (sum(row["required"] and row[name] for row in rows) for name in ("required", "found"))
    counts = {"planted": len(rows), "required": required, "found": hits, "missed": required - hits}
    timed = {"seconds": seconds, "bound": bound, "detections": len(found)}
    return rows, {**context.entry_of(job), **timed, **total, **counts, "false_events": false}


def _previews(case: Case, truths: list[Truth]) -> dict[str, Any]:
    """Signal and scores of the strongest template around the planted event whose score is nearest to REQUIRED."""
    number = int((case.templates.astype(np.float64) ** 2).mean(axis=(1, 2)).argmax())
    truth, offset = truths[number], int(case.offsets[number])
    mads = truth.mads(truth.scores[case.places + offset])
    event = int(np.abs(np.where(mads >= REQUIRED, mads, np.inf) - REQUIRED).argmin())
    first = int(np.clip(case.places[event] + offset - PREVIEW // 2, 0, truth.scores.size - PREVIEW))
    last = first + PREVIEW
    return {
        "signal": case.signal[:, first:last].astype(np.float32),
        "template": case.templates[number],
        "scores": truth.mads(truth.scores[first:last]).astype(np.float32),
        "first": np.int64(first),
        "place": np.int64(case.places[event] + offset),
        "template_number": np.int64(number),
        "amplitude": np.float64(case.amplitudes[event]),
    }


main = partial(common.run_main, EXPERIMENT, __doc__ or "", compute)

if __name__ == "__main__":
    sys.exit(main())
