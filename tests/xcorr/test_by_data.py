"""Numbers of more digits than float32, and outliers: through Library, Auto and the command, in the built library."""

import numpy as np
import pytest
import scipy.signal
from gpu_library import DEVICE, GpuLibrary

from xcorr.choice import auto, fft_range
from xcorr.choice.auto import Auto
from xcorr.errors import LibraryError
from xcorr.native.arrays import Windows
from xcorr.problem import Problem

VALID = {"window": "valid", "result": "peak"}
PEAK = "--window valid --score zncc --result peak"


@pytest.fixture
def chooser(library, tmp_path):
    """Without times: what was measured on this machine may take another variant."""
    return Auto(library, "cpu", tmp_path)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def offset_frames(rng):
    """Frames whose pattern has no digit left in float32: the template lies at (10, 20)."""
    floats = 1e6 + 0.01 * rng.normal(size=(40, 48))
    integers = 20_000_000 + rng.integers(-3, 4, (40, 48))
    return [floats, integers.astype(np.int32), integers.astype(np.uint32), integers.astype(np.int64), 10**15 + integers]


def plateaus(rng, height):
    """A frame whose left half is at 0, and its right half at `height`."""
    return np.where(np.arange(48) < 24, 0.0, height) + 0.01 * rng.normal(size=(40, 48))


def request_of(frame, size=(8, 8), **fields):
    return Problem("one-to-one", size, frame.shape, **{**VALID, **fields})


@pytest.mark.parametrize("case", range(5))
@pytest.mark.parametrize("variant", ["cpu_definition", "cpu_fft", "template_pearson_cpu"])
def test_a_small_pattern_on_a_large_offset_is_found(library, rng, case, variant):
    """Users' F4: the score was 0 at (0, 0)."""
    frame = offset_frames(rng)[case]
    template = frame[10:18, 20:28]
    for score in ("zncc", "covariance"):
        (found,) = library.correlate(request_of(frame, score=score), template, frame, variant=variant)
        assert (found["sy"], found["sx"]) == (10, 20)
        deviations = template - template.mean(dtype=np.float64)
        expected = 1.0 if score == "zncc" else (deviations**2).sum()
        assert found["value"] == pytest.approx(expected, rel=0.15 if score == "covariance" else 1e-5)


def test_covariance_and_phase_keep_the_digits(library, rng):
    frame = offset_frames(rng)[0]
    moved = np.roll(frame, (5, -7), (0, 1))
    circular = {"boundary": "circular", "window": "full"}
    for score in ("covariance", "phase:0"):
        problem = request_of(frame, frame.shape, score=score, **circular)
        (found,) = library.correlate(problem, frame, moved, variant="cpu_fft")
        assert (found["sy"], found["sx"]) == (5, -7)
    assert found["value"] == pytest.approx(1, abs=0.01)
    problem = request_of(frame, frame.shape, score="covariance", same="yes", window="full")
    (same,) = library.correlate(problem, frame, variant="cpu_fft")
    assert (same["sy"], same["sx"]) == (0, 0) and same["value"] == pytest.approx(frame.var() * frame.size, rel=1e-4)


def test_windows_of_a_frame_have_one_pivot(library, rng):
    frame = offset_frames(rng)[0]
    offsets = np.array([0, 10 * 48 + 3, 20 * 48 + 30])
    fields = {"score": "zncc", "views": "windows", "result": "peak"}
    problem = Problem("n-to-mn", (16, 16), (16, 16), 3, 3, "sy:-2..2,sx:-2..2", **fields)
    sides = (Windows(one, offsets) for one in (frame, np.roll(frame, (1, 2), (0, 1))))
    found = library.correlate(problem, *sides, variant="cpu_definition")
    assert found["sy"].tolist()[1:] == [1, 1] and found["sx"].tolist()[1:] == [2, 2]
    np.testing.assert_allclose(found["value"][1:], 1, rtol=1e-5)


def test_what_lies_beneath_a_mask_does_not_count(library, rng):
    for frame in (offset_frames(rng)[0], rng.normal(size=(40, 48)).astype(np.float32)):
        template, valid = frame[10:18, 20:28].copy(), np.ones(frame.shape, np.uint8)
        valid[:, :6] = 0
        frame[:, 0], frame[:, 1], frame[:, 2:6] = np.nan, np.inf, -3.4e38
        problem = request_of(frame, score="zncc", masks="right")
        for variant in ("cpu_definition", "cpu_fft"):
            (found,) = library.correlate(problem, template, frame, variant=variant, right_mask=valid)
            assert (found["sy"], found["sx"]) == (10, 20) and found["value"] == pytest.approx(1, abs=1e-5)
        with pytest.raises(LibraryError, match=r"right: nan at \[0, 0, 0\]"):
            library.correlate(problem, template, frame, variant="cpu_fft", right_mask=np.ones_like(valid))


def test_auto_takes_fp64_where_float32_has_too_few_digits(library, chooser, rng):
    frame = plateaus(rng, 1e4)
    problem = request_of(frame, score="zncc")
    for y, x in ((10, 30), (10, 3)):
        template = frame[y : y + 8, x : x + 8]
        choice = chooser.choose_for(problem, template, frame)
        assert choice.precision == "fp64" and "rounding to float32" in choice.why and not choice.warning
        how = {"variant": choice.variant, "params": choice.params, "precision": choice.precision}
        (found,) = library.correlate(problem, template, frame, **how)
        assert (found["sy"], found["sx"]) == (y, x) and found["value"] == pytest.approx(1, abs=1e-5)
    kept = chooser.choose_for(problem, template, frame, precision="fp32")
    assert kept.precision == "fp32" and "compute in fp64" in kept.warning
    template = 1e6 + template
    plain = chooser.choose_for(request_of(frame), template, frame)
    assert plain.precision == "fp32" and "--subtract-mean" in plain.warning
    ordinary = rng.normal(size=frame.shape)
    choice = chooser.choose_for(problem, ordinary[:8, :8], ordinary)
    assert choice.precision == "fp32" and not choice.warning


def test_windows_that_score_0_in_any_precision_are_told(chooser, rng):
    frame = plateaus(rng, 1e6)
    choice = chooser.choose_for(request_of(frame, score="zncc"), frame[10:18, 30:38], frame)
    assert "score 0 in any precision" in choice.warning


def test_auto_computes_covariance_beside_an_outlier_by_definition(library, chooser, rng):
    """Users' F5: an error of 23.7 against a signal of 23.8."""
    frame = rng.normal(size=(300, 400)).astype(np.float32)
    template = frame[100:124, 200:224].copy()
    frame[20, 20] = 1e8
    problem = Problem("one-to-one", (24, 24), frame.shape, window="valid", score="covariance")
    choice = chooser.choose_for(problem, template, frame)
    assert "no FFT" in choice.why
    out = library.correlate(problem, template, frame, variant=choice.variant, params=choice.params)[0]
    left, right = template.astype(np.float64), frame.astype(np.float64)
    rest, mean = right.copy(), right.mean()
    rest[20, 20] = mean
    truth = scipy.signal.correlate(rest - mean, left - left.mean(), "valid")
    far = np.ones(out.shape, bool)
    far[:21, :21] = False  # outputs that contain the outlier
    assert np.abs(out - truth)[far].max() < 1e-4 * truth[100, 200]
    clean = rng.normal(size=(300, 400)).astype(np.float32)
    assert "no FFT" not in chooser.choose_for(problem, template, clean).why


def test_scores_on_a_gpu_have_a_risk_where_an_outlier_lies_in_a_tile(rng):
    frame = rng.normal(size=(1, 300, 400)).astype(np.float32)
    problem = Problem("one-to-one", (24, 24), (300, 400), window="valid", score="zncc")

    def risk(device):
        return fft_range.risk(problem, 576, frame[:, :24, :24], frame, "fp32", device)

    assert risk("cuda:0") == risk("cpu") == ""
    frame[0, 200, 300] = 1e8
    assert "an outlier spoils the windows near it" in risk("cuda:0") and risk("cpu") == ""


def phases_beside_an_outlier(rng):
    """A pair of matrices whose mean is large beside the outlier, and the outlier beside their deviation."""
    left = rng.normal(1e5, 1, (1, 64, 64)).astype(np.float32)
    right = np.roll(left, (5, -7), (1, 2))
    right[0, 20, 20] += 1e6
    return Problem("one-to-one", (64, 64), (64, 64), boundary="circular", score="phase:0"), left, right


def test_phase_has_a_risk_beside_an_outlier_by_matrices_without_their_means(rng):
    problem, left, right = phases_beside_an_outlier(rng)

    def risk(device, score="phase:0", precision="fp32", right=right):
        of_score = Problem("one-to-one", (64, 64), (64, 64), boundary="circular", score=score)
        return fft_range.risk(of_score, 64 * 64, left, right, precision, device)

    assert "of a typical output" in risk(DEVICE)
    assert risk(DEVICE, "product") == "", "beside a mean of 1e5 an outlier of 1e6 is no range"
    assert risk(DEVICE, right=left) == risk(DEVICE, precision="fp64") == ""
    assert risk("cpu") == "", "the variants for the CPU compute phase in float64"


def test_auto_on_a_gpu_says_what_phase_loses_beside_an_outlier(library, rng):
    """No CUDA variant computes phase by definition."""
    problem, left, right = phases_beside_an_outlier(rng)
    chooser = Auto(GpuLibrary(library, {"cufft": "cpu_fft"}), DEVICE)
    assert not chooser.choose_for(problem, left, left).warning
    choice = chooser.choose_for(problem, left, right)
    assert choice.variant == "cufft" and choice.warning.startswith("the error of an FFT may reach")
    assert "no variant by definition computes it" in choice.warning


@pytest.mark.parametrize("options, taken", [("", "fp64"), ("--precision fp32", "fp32"), ("--variant cpu_fft", "fp32")])
def test_the_command_says_in_one_line_what_float32_costs(library, rng, save, xcorr, options, taken):
    frame = plateaus(rng, 1e4)
    out, err = xcorr(library, save("t.npy", frame[10:18, 30:38]), save("f.npy", frame), PEAK, options)
    assert f" {taken}, score zncc" in err
    said = [line for line in err.splitlines() if "rounding to float32 changes a window" in line]
    assert len(said) == 1 and said[0].startswith("warning: " if taken == "fp32" else "auto: ")
    if taken == "fp64":
        (line,) = out.splitlines()[1:]
        sy, sx, value = line.split(",")[3:6]
        assert (sy, sx) == ("10", "30") and float(value) == pytest.approx(1, abs=1e-5)


def test_the_command_finds_patterns_on_offsets_and_ignores_what_is_masked(library, rng, save, xcorr):
    for frame in offset_frames(rng):
        options = []
        template = frame[10:18, 20:28].copy()
        if frame.dtype.kind == "f":
            frame[:, :4] = np.nan
            options = ["--mask-right", save("m.npy", np.isfinite(frame))]
        out, err = xcorr(library, save("t.npy", template), save("f.npy", frame), PEAK, *options, "--quiet")
        (line,) = out.splitlines()[1:]
        assert line.split(",")[3:5] == ["10", "20"] and not err


def test_nothing_feasible_in_fp64_is_said(chooser, rng, monkeypatch):
    monkeypatch.setattr(auto, "FEASIBLE_US", 0.0)
    frame = plateaus(rng, 1e4)
    choice = chooser.choose_for(request_of(frame, score="zncc"), frame[10:18, 30:38], frame)
    assert choice.precision == "fp32" and "compute in fp64" in choice.warning
