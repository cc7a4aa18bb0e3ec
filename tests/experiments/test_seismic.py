"""real-seismic: float64 scores, planted events, verdicts on right and wrong libraries, what is left out without its data."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from built_library import built_library
from scipy_library import ScipyLibrary

from experiments.inputs import common, datasets, matched_filter, seismic
from plots import real
from xcorr.choice.auto import Auto
from xcorr.problem import Problem
from xcorr.results import DETECTION

SIZE = seismic.Size(3, 40_000, 8)


def content(seed: int = 3) -> bytes:
    """Made-up seismograms as ObsPy ships the real ones."""
    rng = np.random.default_rng(seed)
    quiet = rng.normal(0, 300, 160_000) + 500
    time = np.arange(12_000) - seismic.EVENT[0]
    decay = np.where(time > 0, np.exp(-np.maximum(time, 0) / 300), 0)
    event = rng.normal(0, 4000, (3, 12_000)) * decay + rng.normal(0, 5, (3, 12_000))
    lines = ["\n".join(f"{value:.3f}" for value in part) + "\n" for part in (quiet, *event)]
    return gzip.compress(lines[0].encode()) + "".join(lines[1:]).encode()


def slow_zncc(template: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """By the definition."""
    stretches = np.lib.stride_tricks.sliding_window_view(signal, template.shape[1], axis=1).swapaxes(0, 1)
    left = template - template.mean()
    right = stretches - stretches.mean(axis=(1, 2), keepdims=True)
    products = np.einsum("cx,scx->s", left, right)
    return products / np.sqrt((left**2).sum() * np.einsum("scx,scx->s", right, right))


class Matching(ScipyLibrary):
    """Returns detections; `spoil(scores)` changes the scores first."""

    def __init__(self, spoil=lambda scores: scores, lost=lambda found: found):
        super().__init__()
        self.spoil, self.lost = spoil, lost

    def correlate(self, request, left, right, *, variant, params="", precision="fp32", device="cpu", out=None):
        self.calls.append((request, variant, precision))
        assert request.fields.result == f"above:8mad:{seismic.CAPACITY}" and request.fields.score == "zncc:0.3"
        found = []
        for pair, template in enumerate(left.astype(np.float64)):
            scores = self.spoil(slow_zncc(template, right[0].astype(np.float64)))
            median = np.median(scores)
            (above,) = np.nonzero(scores >= median + 8 * np.median(np.abs(scores - median)))
            found.append(np.array([(pair, 0, shift, scores[shift]) for shift in above], DETECTION))
        return self.lost(np.concatenate(found))


@pytest.fixture
def run(run_input, monkeypatch):
    monkeypatch.setattr(datasets, "fetch", lambda *_: content())
    monkeypatch.setitem(seismic.SIZES, "smoke", SIZE)

    def call(library, *more):
        code, out, err, folder = run_input(seismic, library, *more)
        return code, out, err, folder.parents[1]

    return call


@pytest.mark.parametrize("length", [1, 2, 31, 256])
def test_float64_scores_are_those_of_the_definition(length):
    rng = np.random.default_rng(length)
    signal = rng.normal(size=(3, 900)) + 1e4 + np.arange(900)
    if length == 1:
        signal[0] += 5  # else a stretch of one sample and channel may be even
    template = rng.normal(size=(3, length)) - 7
    found = matched_filter.zncc(template, signal)
    np.testing.assert_allclose(found, slow_zncc(template, signal), atol=1e-7)
    assert found.size == 900 - length + 1


def test_noise_longer_than_its_source_keeps_its_power_and_its_channels_differ():
    rng = np.random.default_rng(1)
    samples = rng.normal(0, 7, 30_000)
    short = matched_filter.stretched(samples, 3, 10_000, rng)
    assert short.shape == (3, 10_000)
    np.testing.assert_allclose(short[2] * 7, samples[20_000:], rtol=0.05)
    long = matched_filter.stretched(samples, 3, 100_001, rng)
    assert long.shape == (3, 100_001)
    parts = long[:, :100_000].reshape(3, 20, -1).std(axis=2)
    assert parts.min() > 0.9 and parts.max() < 1.1, "joints neither weaken nor strengthen the noise"
    assert abs(np.corrcoef(long)[0, 1]) < 0.05


def test_events_are_groups_of_detections():
    assert matched_filter.events(np.array([3, 4, 9, 300, 301]), 100).tolist() == [3, 300]
    assert matched_filter.events(np.array([], int), 100).size == 0


def test_a_case_has_what_was_planted_where_it_says():
    quiet, event = datasets.seismograms(content())
    assert quiet.shape == (160_000,) and event.shape == (3, 12_000)
    case = seismic.make_case(quiet, event, SIZE, 5)
    assert case.templates.shape == (3, 3, 256) and case.signal.shape == (3, 40_000)
    assert case.templates.dtype == case.signal.dtype == np.float32
    assert (np.diff(case.places) > 0).all() and (np.diff(case.amplitudes) < 0).all()
    truth = seismic.find_truth(case)[0]
    place = int(case.places[0] + case.offsets[0])
    assert truth.scores[place] > 0.9, "the first one is the loudest"
    assert truth.scores[place - 50 : place + 50].argmax() == 50
    again = seismic.make_case(quiet, event, SIZE, 5)
    np.testing.assert_array_equal(case.signal, again.signal)
    assert not np.array_equal(case.signal, seismic.make_case(quiet, event, SIZE, 6).signal)
    assert case.request == Problem(
        "n-to-m", (3, 256), (3, 40_000), 3, 1, "valid", score="zncc", result="above:8mad:262144"
    )


def test_a_right_library_passes_and_is_not_run_again(run):
    library = Matching()
    code, out, err, folder = run(library, "--variants", "cpu_fft")
    assert code == 0 and err == "" and "as float64" in out and "LGPLv3" in out
    data = real.load(folder, "real-seismic")
    (one,) = data.datasets()
    (facts,) = one["variants"]
    assert facts["differ"] == facts["wrong"] == facts["missed"] == 0 and facts["max_error"] < 1e-7
    assert facts["required"] == facts["found"] > 0 and facts["planted"] == 24 == len(data.rows)
    assert facts["detections"] == one["float64"]["detections"] > 0
    assert facts["false_events"] == one["float64"]["false_events"]
    assert data.rows[data.rows["required"] == 1]["found"].eq(1).all() and data.rows["found"].eq(0).any()
    assert data.previews["signal"].shape == (3, seismic.PREVIEW)
    calls = len(library.calls)
    assert "computed already" in run(library, "--variants", "cpu_fft")[1] and len(library.calls) == calls


def test_differences_within_the_bound_beside_the_threshold_pass(run):
    rng = np.random.default_rng(0)
    noisy = Matching(spoil=lambda scores: scores + rng.uniform(-5e-6, 5e-6, scores.size))
    assert run(noisy, "--variants", "cpu_fft")[0] == 0


@pytest.mark.parametrize(
    "library",
    [
        Matching(spoil=lambda scores: scores + 3e-5),
        Matching(spoil=lambda scores: 0.97 * scores),
        Matching(spoil=lambda scores: np.roll(scores, 1)),
        Matching(lost=lambda found: np.delete(found, found["value"].argmax())),
        Matching(lost=lambda found: np.append(found, np.array([(0, 0, 5, 0.5)], DETECTION))),
    ],
)
def test_wrong_values_and_lost_or_added_detections_fail_the_run(run, library):
    code, _, err, folder = run(library, "--variants", "cpu_fft")
    assert code == 1 and err.startswith("error: real-seismic: cpu_fft in fp32") and err.count("\n") == 1
    assert not (folder / "real-seismic" / "artifacts" / "real-seismic.summary.json").exists()


def test_false_events_are_those_that_touch_no_planted_one():
    nothing = np.zeros(0)
    case = seismic.Case(nothing, nothing, nothing, np.array([1000, 9000]), nothing, 500)
    assert seismic.false_events(case, np.array([1000, 1499, 1700, 5000, 5001, 9200, 20_000])) == 2
    assert seismic.false_events(case, np.zeros(0, int)) == 0


def test_bounds_are_those_of_the_classes():
    assert seismic.bound_of("fp32") == seismic.bound_of("3xtf32") == 1e-5
    assert seismic.bound_of("tf32") == seismic.bound_of("fp16") == 3e-4


def test_without_obspy_it_is_left_out_with_the_reason(run, monkeypatch):
    def unavailable(*_):
        raise datasets.Unavailable("offline was asked for")

    monkeypatch.setattr(datasets, "fetch", unavailable)
    code, out, err, folder = run(Matching())
    assert code == 0 and err == "" and "left out: obspy==1.5.1 has the seismograms, and offline" in out
    assert real.load(folder, "real-seismic") == "real-seismic was not run for this set"


class Choosing(ScipyLibrary):
    """Two variants that return detections, one of which refuses tf32."""

    def variants(self):
        found = super().variants()
        for one in found[1:]:
            one.update(precisions=["fp32", "tf32"], results=["surface", "above"])
        return found

    def supports(self, request, *, variant, params="", precision="fp32", device="cpu"):
        return "no tf32 here" if (variant, precision) == ("cpu_row_streaming", "tf32") else ""


def test_variants_that_return_detections_run_in_each_precision(tmp_path):
    request = Problem("n-to-m", (3, 8), (3, 90), 2, 1, "valid", score="zncc", result="above:8mad:9")

    def jobs(library, *asked):
        context = common.Context(
            "e", "smoke", 1, "cpu", library, library.variants(), list(asked), "k", tmp_path, tmp_path, True, False
        )
        return [(job.variant, job.precision) for job in seismic.choose(context, request)]

    assert jobs(Choosing()) == [("cpu_fft", "fp32"), ("cpu_fft", "tf32"), ("cpu_row_streaming", "fp32")]
    assert jobs(Choosing(), "cpu_definition") == [("cpu_definition", "fp64"), ("cpu_definition", "fp32")]
    assert jobs(ScipyLibrary()) == [(Auto(ScipyLibrary()).choose(request).variant, "fp32")], "what auto takes"
    refusing = ScipyLibrary()
    refusing.refuses = {"cpu_fft": "too long"}
    with pytest.raises(seismic.UserError, match="'cpu_fft' in fp32: too long; choose another"):
        jobs(refusing, "cpu_fft")


def test_the_built_library_agrees_with_float64(run, tmp_path):
    code, out, err, folder = run(built_library(), "--variants", "cpu_fft,cpu_row_streaming")
    assert code == 0 and err == "", err
    summary = json.loads((folder / "real-seismic" / "artifacts" / "real-seismic.summary.json").read_text())
    ran = [(one["variant"], one["precision"]) for one in summary["datasets"][0]["variants"]]
    assert ran == [(name, p) for name in ("cpu_fft", "cpu_row_streaming") for p in ("fp64", "fp32")]
    table = pd.read_csv(folder / "real-seismic" / "artifacts" / "real-seismic.detections.csv.gz")
    assert table.columns.tolist() == list(seismic.COLUMNS) and len(table) == 4 * 24
