"""Data whose range an FFT does not survive: auto takes a variant by definition, or says that it does not."""

import math

import numpy as np
import pytest
from scipy_library import ScipyLibrary, scipy_correlation

from xcorr.choice import auto, fft_range, table
from xcorr.problem import Problem

RNG = np.random.default_rng(14)


def square(side, lefts=1, rights=1, form="one-to-one"):
    return Problem(form, (side, side), (side, side), lefts, rights)


def uniform(count, side):
    return RNG.uniform(-1, 1, (count, side, side))


def with_outlier(stack, value, index=(0, 5, 7)):
    stack = stack.copy()
    stack[index] = value
    return stack


def risk_of(problem, left, right, precision="fp32"):
    scalar = np.float64 if precision == "fp64" else np.float32
    overlap = math.prod(map(min, problem.left, problem.right))
    return fft_range.risk(problem, overlap, left.astype(scalar), right.astype(scalar), precision)


@pytest.mark.parametrize("side", [1, 4, 64, 128, 256, 1024])
@pytest.mark.parametrize(
    "make",
    [
        lambda side: uniform(1, side),
        lambda side: RNG.normal(size=(1, side, side)),
        lambda side: RNG.uniform(0, 255, (1, side, side)),
        lambda side: uniform(1, side) + 1e4,
        lambda side: uniform(1, side) * 1e-30,
        lambda side: np.zeros((1, side, side)),
        lambda side: uniform(1, side) * (RNG.random((1, side, side)) < 0.3),  # a dark background
    ],
    ids=["uniform", "normal", "grey", "offset", "small", "zero", "dark"],
)
def test_ordinary_data_keep_the_fft_at_every_size(side, make):
    assert risk_of(square(side), make(side), make(side)) == ""


@pytest.mark.parametrize("side", [16, 128, 512])
@pytest.mark.parametrize("where", [0, 1])
def test_an_outlier_is_a_risk_wherever_it_is(side, where):
    stacks = [uniform(1, side), uniform(1, side)]
    stacks[where] = with_outlier(stacks[where], -1e9)
    assert "may reach" in risk_of(square(side), *stacks)
    assert risk_of(square(side), *stacks, "fp64") == "", "fp64 has the digits for it"


def test_only_pairs_that_are_computed_count():
    lefts, rights = uniform(2, 8), uniform(4, 8)
    lefts[0] *= 1e-3
    problem = square(8, 2, 4, "n-to-mn")
    assert risk_of(problem, lefts, rights) == "", "a scale is no range"
    wide = with_outlier(rights, 1e9, (3, 0, 0))
    assert risk_of(problem, lefts, wide) and risk_of(square(8, 2, 4, "n-to-m"), lefts, wide)


def test_transforms_that_overflow_are_a_risk():
    left, right = np.full((1, 8, 8), 1e18), np.full((1, 8, 8), 1e18)
    left[0, 3, 3] = 1e20
    assert "may overflow" in risk_of(square(8), left, right)
    assert "may overflow" not in risk_of(square(8), left, right, "fp64")
    assert "may overflow" in risk_of(square(8), left * 1e135, right * 1e135, "fp64"), "no square is taken"


def test_it_is_said_without_an_overflow_of_its_own():
    tiny = np.full((1, 4, 4), 5e-324)
    tiny[0, 0, 0] = 1e300
    with np.errstate(all="raise", under="ignore"):
        assert risk_of(square(4), tiny, tiny, "fp64")


@pytest.fixture
def fast_fft(monkeypatch):
    """A library whose every problem is fastest by FFT."""

    def sources(machine, device, precision, results):
        problem = square(128)
        times = {("cpu_fft", "threads=all"): 5e5, ("cpu_definition", "threads=all"): 9e5}  # long beside a plan
        yield auto.Source("made up", {problem: times})

    monkeypatch.setattr(table, "sources", sources)
    return ScipyLibrary()


def test_auto_takes_a_definition_where_an_outlier_costs_the_fft_the_small_outputs(save, fast_fft, xcorr):
    left, right = save("l.npy", uniform(1, 128)), save("r.npy", uniform(1, 128))
    wide = save("w.npy", with_outlier(uniform(1, 128), 1e12))
    err = xcorr(fast_fft, left, right).err
    assert fast_fft.calls.pop()[1] == "cpu_fft" and "no FFT" not in err
    err = xcorr(fast_fft, wide, right).err
    assert fast_fft.calls.pop()[1] == "cpu_definition"
    (said,) = (line for line in err.splitlines() if "no FFT" in line)
    assert said.startswith("auto: cpu_definition threads=all: ") and "of a typical output" in said


@pytest.mark.parametrize("quiet", ["", "--quiet"])
def test_auto_keeps_the_fft_where_no_definition_is_feasible_and_says_so(save, fast_fft, xcorr, monkeypatch, quiet):
    wide, right = save("w.npy", with_outlier(uniform(1, 128), 1e12)), save("r.npy", uniform(1, 128))
    monkeypatch.setattr(auto, "FEASIBLE_US", 8e5)
    err = xcorr(fast_fft, wide, right, quiet).err
    assert fast_fft.calls.pop()[1] == "cpu_fft"
    (said,) = (line for line in err.splitlines() if line.startswith("warning: "))
    assert said.startswith("warning: cpu_fft: the error of an FFT may reach")
    assert "no variant by definition computes it within" in said
    fast_fft.refuses = dict.fromkeys(("cpu_definition", "cpu_row_streaming"), "no")
    monkeypatch.undo()
    assert "warning: cpu_fft: " in xcorr(fast_fft, wide, right, quiet).err
    assert fast_fft.calls.pop()[1] == "cpu_fft"


def test_the_users_own_fft_stays_and_says_so(save, fast_fft, xcorr):
    wide, right = save("w.npy", with_outlier(uniform(1, 128), 1e12)), save("r.npy", uniform(1, 128))
    for variant, warned in (("cpu_fft", 1), ("cpu_definition", 0)):
        err = xcorr(fast_fft, wide, right, "--variant", variant).err
        assert fast_fft.calls.pop()[1] == variant
        assert err.count("warning: ") == warned


def test_the_outputs_of_auto_are_right_beside_an_outlier(save, tmp_path, library, xcorr):
    """In the built library, an outlier of 1e12 in 128 x 128: an FFT errs by thousands of typical outputs."""
    left, right = with_outlier(uniform(1, 128), 1e12).astype(np.float32), uniform(1, 128).astype(np.float32)
    truth = scipy_exact(left, right)
    errors = {}
    for variant in ("auto", "cpu_fft"):
        out = tmp_path / f"{variant}.npy"
        xcorr(library, save("l.npy", left), save("r.npy", right), f"--variant {variant} --output", out)
        errors[variant] = np.median(np.abs(np.load(out) - truth) / np.maximum(np.abs(truth), 1))
    assert errors["auto"] < 1e-5 and errors["cpu_fft"] > 1, errors


def scipy_exact(left, right):
    """By definition in float64, since a float64 FFT has no digits for this range either."""
    rest = left.astype(np.float64)
    spike = np.zeros_like(rest)
    spike[0, 5, 7], rest[0, 5, 7] = rest[0, 5, 7], 0
    sums = np.zeros((1, 255, 255))
    sums[0, 127 - 5 : 255 - 5, 127 - 7 : 255 - 7] = spike[0, 5, 7] * right[0].astype(np.float64)
    return sums + scipy_correlation(square(128), rest, right)


def test_outputs_are_finite_where_the_definition_is(save, tmp_path, library, xcorr):
    left, right = np.full((1, 8, 8), 1.0), np.full((1, 8, 8), 1e18)
    left[0, 3, 3] = 1e20
    left[0] *= 1e-2
    left[0, 0, 0] = 1e18
    out = tmp_path / "o.npy"
    xcorr(library, save("l.npy", left), save("r.npy", right), "--output", out)
    assert np.isfinite(np.load(out)).all()
