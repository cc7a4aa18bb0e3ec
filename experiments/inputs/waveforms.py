"""series-waveforms: how large is ERR on real waveforms, and on noise of the same size?

The tensor-core paper reports its error measure ERR, the largest difference of an output from float64 (equation 3), on observed
waveforms. Here templates are cut from one component of a real earthquake, which is planted in real noise of another station
as real-seismic does, and every variant of time series correlates them. The problem has the samples and the number of
templates of the paper's Table 2. The run fails (exit code 1) if an output differs by more than LOST of the norms of its
template and of the loudest stretch.
"""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.signal import oaconvolve
from tqdm import tqdm

from experiments.driver import schema
from experiments.inputs import common, datasets, seismic
from experiments.inputs.amplitudes import LOST, SAMPLES, TEMPLATES, stretch_norms
from xcorr.native.library import find_variant
from xcorr.native.precisions import scalar_type
from xcorr.problem import Problem

EXPERIMENT, TITLE = "series-waveforms", "ERR on real waveforms and on noise"
TABLE = "errors"
COLUMNS = "input variant precision params outputs error of_largest".split()
LIKE = "time-series-table2"  # the experiment whose variants are run
PRECISIONS = ("fp32", "3xtf32", "bf16x3", "tf32", "fp16")
WAVEFORMS, NOISE = "waveforms", "noise"  # inputs
SIGNAL = {"smoke": (65_536, 12), "quick": (1_000_000, 24), "paper": (4_320_000, 96)}  # shifts, and planted earthquakes


def size_of(preset: str) -> seismic.Size:
    shifts, events = SIGNAL[preset]
    return seismic.Size(TEMPLATES, shifts + SAMPLES - 1, events)


def inputs_of(content: bytes, size: seismic.Size, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, templates (n x T) and signal (S) of each input, in float32."""
    case = seismic.make_case(*datasets.seismograms(content), size, seed, channels=1)
    yield WAVEFORMS, case.templates[:, 0], case.signal[0]
    rng = np.random.default_rng([seed, 29])
    templates: np.ndarray = rng.uniform(-1, 1, (size.templates, SAMPLES))
    signal: np.ndarray = rng.uniform(-1, 1, size.signal)
    yield NOISE, templates.astype(np.float32), signal.astype(np.float32)


class Truth:
    """Outputs in float64 (templates x shifts), and what errors are divided by."""

    def __init__(self, left: np.ndarray, right: np.ndarray) -> None:
        templates: np.ndarray = left.astype(np.float64)
        signal: np.ndarray = right.astype(np.float64)
        self.outputs = np.stack([oaconvolve(signal, one[::-1], "valid") for one in templates])
        self.templates = np.linalg.norm(templates, axis=1)
        self.stretches = stretch_norms(signal, left.shape[1])
        self.largest = float(np.abs(self.outputs).max())

    def errors(self, out: np.ndarray) -> dict[str, float]:
        """Of the outputs of a variant: `error`, the largest after division by the norms of template and stretch; `of_largest`, ERR of
        Eq. 3 where the largest output is 1; `of_loudest`, the largest over the norms of template and loudest stretch. Infinite where an
        output is not finite."""
        found = dict.fromkeys(("error", "of_largest", "of_loudest"), 0.0)
        for own, true, norm in zip(out, self.outputs, self.templates):
            off = np.abs(own - true)
            off = np.where(np.isfinite(off), off, np.inf)
            most = float(off.max())
            new = (float((off / self.stretches).max()) / norm, most / self.largest, most / norm / self.stretches.max())
            found = {name: max(old, float(one)) for (name, old), one in zip(found.items(), new)}
        return found


def chosen(context: common.Context) -> list[dict[str, Any]]:
    """The variants that the user named, by default those of the experiment LIKE."""
    names = schema.load_experiments()[LIKE].variants
    asked = [find_variant(context.variants, name) for name in context.requested]
    return asked or [one for one in context.variants if {one["id"], one["family"]} & set(names)]


def compute(context: common.Context) -> int:
    size = size_of(context.preset)
    request = Problem("n-to-m", (1, SAMPLES), (1, size.signal), TEMPLATES, 1, "valid")
    jobs, reasons = common.jobs_of(context, chosen(context), [request], PRECISIONS)
    if not jobs:
        why = f": {reasons[0]}" if reasons else ""
        raise common.LeftOut(f"no variant computes time series in single or lower precision on {context.device}{why}")
    data = datasets.SEISMOGRAMS
    content, reason = context.fetch(data)
    if reason:
        raise common.LeftOut(f"{data.package} has the seismograms, and {reason}")
    print(f"data: {data.credit}")
    key = common.resume_key(context, {data.name: data.sha256})
    if common.is_done(context, key, TABLE):
        return 0
    rows: list[dict[str, Any]] = []
    mistakes = []
    for name, left, right in inputs_of(content, size, context.seed):
        truth = Truth(left, right)
        for job in tqdm(jobs, desc=f"{EXPERIMENT}, {name}", unit="variant", disable=None, leave=False):
            scalar = scalar_type(job.precision)
            templates: np.ndarray = left[:, np.newaxis].astype(scalar)
            signal: np.ndarray = right[np.newaxis, np.newaxis].astype(scalar)
            out = job.correlate(context.library, request, templates, signal).reshape(truth.outputs.shape)
            errors = truth.errors(out)
            cells = (name, job.variant, job.precision, job.params, out.size, errors["error"], errors["of_largest"])
            rows.append(dict(zip(COLUMNS, cells)))
            if not errors["of_loudest"] <= LOST:
                far = f"an output differs from float64 by {errors['of_loudest']:.2g} of the norms of template and loudest stretch"
                mistakes.append(
                    f"{job.variant} in {job.precision}: {name}: {far}, more than {LOST:g}; the variant is wrong"
                )
    facts = {"templates": TEMPLATES, "samples": SAMPLES, "shifts": SIGNAL[context.preset][0]}
    note = "One component of the earthquake is planted in noise of another station and year; both are band-passed."
    summary = {**data.facts(), "note": note, "events": size.events}
    code = common.write_artifacts(context, TITLE, key, COLUMNS, rows, [summary], {}, facts, TABLE, mistakes)
    for row in rows if not code else ():
        print(
            f"{EXPERIMENT}: {row['variant']} {row['precision']}, {row['input']}: ERR {row['error']:.2g} of the norms, "
            f"{row['of_largest']:.2g} of the largest output"
        )
    return code


main = partial(common.run_main, EXPERIMENT, __doc__ or "", compute)

if __name__ == "__main__":
    sys.exit(main())
