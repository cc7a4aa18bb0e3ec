"""series-amplitudes: at which amplitudes do variants in tf32 and half precision lose outputs?

Templates and signal are uniform noise of one amplitude, from 1e-6 to 1e4. An output is lost if it is not finite, or if
its error divided by the norms of the template and of the signal's window exceeds LOST.
"""

import sys
from functools import partial
from typing import Any

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.signal import oaconvolve
from tqdm import tqdm

from experiments.inputs import common
from xcorr.native.library import find_variant
from xcorr.problem import Problem

EXPERIMENT, TITLE = "series-amplitudes", "Outputs that are lost at small and large amplitudes"
TABLE = "errors"
COLUMNS = "variant precision params amplitude outputs lost max_error".split()
PRECISIONS = ("tf32", "fp16")
AMPLITUDES = tuple(10.0**exponent for exponent in range(-6, 5))
LOST = 1e-3  # ten times the error of tf32
TEMPLATES, SAMPLES = 16, 256
SHIFTS = {"smoke": 4096, "quick": 65_536, "paper": 1_000_000}


def request_of(preset: str) -> Problem:
    return Problem("n-to-m", (1, SAMPLES), (1, SAMPLES + SHIFTS[preset] - 1), TEMPLATES, 1, "valid")


def stretch_norms(right: np.ndarray, samples: int) -> np.ndarray:
    """Norm of each stretch of `samples` samples of a signal, by its first sample; float64."""
    squares = uniform_filter1d(right.astype(np.float64) ** 2, samples, mode="constant")
    norms: np.ndarray = np.sqrt(samples * squares[samples // 2 :][: right.size - samples + 1])
    return norms


def normalised_errors(out: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Error of each output against float64, divided by the norms (templates x shifts). `left`: templates x samples;
    `right`: the signal. Infinite where an output is not finite."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    stretches = stretch_norms(right, left.shape[1])
    errors = np.empty(out.shape)
    for found, template, line in zip(out, left, errors):
        truth = oaconvolve(right, template[::-1], "valid")
        with np.errstate(invalid="ignore", over="ignore"):
            line[:] = np.abs(found - truth) / (np.linalg.norm(template) * stretches)
    return np.where(np.isfinite(out) & np.isfinite(errors), errors, np.inf)


def compute(context: common.Context) -> int:
    request = request_of(context.preset)
    asked = [find_variant(context.variants, name) for name in context.requested] or context.variants
    chosen, _ = common.jobs_of(context, asked, [request], PRECISIONS)
    if not chosen:
        raise common.LeftOut(f"no variant computes time series in {' or '.join(PRECISIONS)} on {context.device}")
    key = common.resume_key(context, {})
    if common.is_done(context, key, TABLE):
        return 0
    rng = np.random.default_rng([context.seed, 23])
    left = rng.uniform(-1, 1, (TEMPLATES, SAMPLES))
    right = rng.uniform(-1, 1, request.right[1])
    rows: list[dict[str, Any]] = []
    for job in tqdm(chosen, desc=EXPERIMENT, unit="variant", disable=None, leave=False):
        for amplitude in AMPLITUDES:
            own = [(amplitude * side).astype(np.float32) for side in (left, right)]
            out = job.correlate(context.library, request, own[0][:, np.newaxis], own[1][np.newaxis, np.newaxis])
            errors = normalised_errors(out.reshape(TEMPLATES, -1), *own)
            lost, largest = int((errors > LOST).sum()), float(errors.max())
            cells = (job.variant, job.precision, job.params, amplitude, errors.size, lost, largest)
            rows.append(dict(zip(COLUMNS, cells)))
    facts = {"lost_beyond": LOST, "outputs": TEMPLATES * SHIFTS[context.preset]}
    common.write_artifacts(context, TITLE, key, COLUMNS, rows, [], {}, facts, TABLE)
    for job in chosen:
        own_rows = [row for row in rows if (row["variant"], row["precision"]) == (job.variant, job.precision)]
        losses = [f"{row['amplitude']:g}: {row['lost']}" for row in own_rows if row["lost"]]
        print(f"{EXPERIMENT}: {job.variant} {job.precision}: lost outputs by amplitude: {', '.join(losses) or 'none'}")
    return 0


main = partial(common.run_main, EXPERIMENT, __doc__ or "", compute)

if __name__ == "__main__":
    sys.exit(main())
