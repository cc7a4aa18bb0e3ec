"""What plans cost: a single call counts its plan, calls of a known number share it, a plan that is kept costs nothing. All
times are made up."""

import argparse

import numpy as np
import pytest
from fixtures import sets
from scipy_library import ScipyLibrary
from tables import results

from experiments.driver import measured
from xcorr import auto as command
from xcorr.choice import auto, plans, speeds
from xcorr.commands import autocorr, autocorrelation, piv, velocimetry
from xcorr.errors import UserError
from xcorr.native import stream
from xcorr.native.variants import Variant
from xcorr.problem import Problem

__all__ = ["results"]
PLAIN, LINKED = "callbacks=none;launch=graph", "callbacks=layout;launch=graph"
WINDOWS = {"form": "n-to-mn", "lefts": 9, "rights": 9}
CIRCULAR = {"boundary": "circular", "score": "covariance", "result": "peak:gaussian"}


class Gpu(ScipyLibrary):
    """A definition and cuFFT, which links at run time where it has callbacks."""

    def variants(self):
        like = super().variants()[0]
        return [
            {**like, "id": name, "family": name, "backend": "cuda", "points": points, "algorithm_class": kind}
            | {"precisions": ["fp32"], "scores": ["product", "covariance"], "results": ["surface", "peak"]}
            for name, points, kind in (("overlap_wise", [""], "definition"), ("cufft", [PLAIN, LINKED], "fft"))
        ]


class Cpu(ScipyLibrary):
    def variants(self):
        both = {"scores": ["product", "covariance"], "results": ["surface", "peak"]}
        return [{**one, **both} for one in super().variants()]


def measure(results, times, backend, **given):
    """The table of this machine, of one problem with times in microseconds by point."""
    rows = [
        sets.row(variant=variant, params=params, compute_us=us, backend=backend, **given)
        for (variant, params), us in times.items()
    ]
    measured.write(sets.write_set(results, rows, ScipyLibrary().machine("cpu")["machine_key"], "local"))


def variant_of(library, name):
    return Variant.from_list(library.variant(name))


def test_the_share_of_a_plan():
    shipped, problem = speeds.shipped(), Problem("one-to-one", (64, 64), (64, 64), 1, 1, "full")
    cufft, direct = (variant_of(Gpu(), name) for name in ("cufft", "overlap_wise"))

    def share(variant, params, calls):
        return plans.share_us(shipped, variant, params, problem, calls)

    assert share(cufft, LINKED, plans.SINGLE) > 50 * share(cufft, PLAIN, plans.SINGLE) > 0
    assert share(cufft, LINKED, 100) == share(cufft, LINKED, plans.SINGLE) / 100
    assert share(cufft, LINKED, plans.KEPT) == 0 == share(direct, "", plans.SINGLE)
    compiled = Variant.from_list({**Gpu().variants()[0], "id": "template_pearson_jit"})
    assert share(compiled, "", plans.SINGLE) > 1e5, "run-time compilation"


@pytest.mark.parametrize("fields", [{}, CIRCULAR], ids=["plain", "fields"])
@pytest.mark.parametrize(
    "calls, best, said",
    [
        (plans.SINGLE, ("overlap_wise", ""), "; for a single call, whose plan counts"),
        (100, ("cufft", PLAIN), "; for 100 calls, which share a plan"),
        (10**6, ("cufft", LINKED), "; for 1e+06 calls, which share a plan"),
        (plans.KEPT, ("cufft", LINKED), ""),
    ],
)
def test_plans_of_a_gpu_count(results, fields, calls, best, said):
    times = {("overlap_wise", ""): 500.0, ("cufft", PLAIN): 20.0, ("cufft", LINKED): 10.0}
    measure(results, times, "cuda", **sets.square(64), **WINDOWS, **fields)
    problem = Problem("n-to-mn", (64, 64), (64, 64), 9, 9, **fields)
    choice = auto.Auto(Gpu(), "cuda", results, calls=calls).choose(problem)
    assert (choice.variant, choice.params) == best
    assert choice.us == times[best], "its time is that of a call"
    assert choice.why.endswith(said) and ("plan" in choice.why) == bool(said)


def test_plans_count_where_nothing_was_measured(results):
    problem = Problem("one-to-one", (16, 16), (16, 16), **CIRCULAR)
    for asked in (problem, Problem("one-to-one", (16, 16), (16, 16))):
        found = auto.Auto(Gpu(), "cuda", results, calls=plans.SINGLE).choose(asked)
        assert found.variant == "overlap_wise" and "by rule" in found.why
        slow = Problem("one-to-one", (2048, 2048), (2048, 2048), **asked.fields.given)
        assert auto.Auto(Gpu(), "cuda", results, calls=plans.SINGLE).choose(slow).params == PLAIN


def test_one_chooser_knows_requests_of_different_numbers_of_calls(results):
    times = {("cpu_row_streaming", "threads=all"): 900.0, ("cpu_fft", "threads=all"): 300.0}
    measure(results, times, "cpu", **sets.square(5000), **WINDOWS, **CIRCULAR)
    problem = Problem("n-to-mn", (5000, 5000), (5000, 5000), 9, 9, **CIRCULAR)
    chooser = auto.Auto(Cpu(), "cpu", results)
    names = [chooser.choose(problem, calls=calls).variant for calls in (1, plans.KEPT, 1, 100)]
    assert names == ["cpu_row_streaming", "cpu_fft", "cpu_row_streaming", "cpu_fft"]
    assert chooser.choose(problem).variant == "cpu_fft"


def test_velocimetry_says_how_many_calls_share_a_plan(monkeypatch):
    monkeypatch.setattr(velocimetry, "PAIRS_AT_A_TIME", 4)
    rng = np.random.default_rng(1)
    frame = rng.uniform(size=(64, 48)).astype(np.float32)
    asked = []
    library = ScipyLibrary()

    class Peaks:
        def correlate(self, _, problem, *sides, **masks):
            from xcorr import results

            return np.zeros(problem.lefts, results.PEAK)

    def choose(problem, calls):
        asked.append((problem.fields.score, problem.lefts, calls))
        return Peaks()

    velocimetry.displacements(library, frame, frame, window=16, overlap=0, passes=1, choose=choose)
    of_search = [one for one in asked if one[0] == asked[0][0]]
    assert of_search == [(asked[0][0], 4, 3)] * 3, "12 windows, 4 at a time"
    asked.clear()
    velocimetry.displacements(library, frame[:, :47], frame[:, :47], window=16, overlap=0, passes=1, choose=choose)
    assert [one[1:] for one in asked if one[0] == asked[0][0]] == [(4, 2), (4, 2)]
    monkeypatch.setattr(velocimetry, "PAIRS_AT_A_TIME", 5)
    asked.clear()
    velocimetry.displacements(library, frame, frame, window=16, overlap=0, passes=1, choose=choose)
    assert [one[1:] for one in asked if one[0] == asked[0][0]] == [(5, 2), (5, 2), (2, 1)]


class Spy:
    """Stands in for Auto and remembers what it was asked."""

    asked: list = []

    def __init__(self, library, device="cpu", results=None, *, calls=plans.KEPT):
        self.calls = calls

    def choose(self, problem, precision="fp32", risk="", *, calls=None):
        self.asked.append(self.calls if calls is None else calls)
        return auto.Choice("cpu_fft", "threads=all", 1.0, "")


def test_the_command_piv_passes_the_number_on(monkeypatch):
    monkeypatch.setattr(Spy, "asked", [])
    monkeypatch.setattr(piv, "Auto", Spy)
    choose = piv.chooser(ScipyLibrary(), "auto", "cpu")
    assert [choose(Problem("one-to-one", (8, 8), (8, 8)), calls).variant for calls in (1, 7)] == ["cpu_fft"] * 2
    assert Spy.asked == [1, 7]


@pytest.mark.parametrize("frames, limit, calls", [(1, 10**9, 2), (6, 2, 6), (7, 2, 6)])
def test_the_command_autocorr_counts_both_of_its_curves(monkeypatch, frames, limit, calls):
    """With the mean and without it: two calls of each chunk."""
    monkeypatch.setattr(Spy, "asked", [])
    monkeypatch.setattr(autocorr, "Auto", Spy)
    radius = 2
    monkeypatch.setattr(stream, "DEFAULT_CHUNK_BYTES", limit * 4 * (radius + 1) * (2 * radius + 1))
    monkeypatch.setattr(stream, "run_chunks", lambda *_: iter(()))
    stack = np.ones((frames, 16, 16), np.float32)
    arguments = argparse.Namespace(variant="auto", device="cpu", prominence=autocorrelation.PROMINENCE)
    autocorr.curves(ScipyLibrary(), arguments, stack, radius)
    assert Spy.asked == [calls]


@pytest.mark.parametrize("words, asked", [([], plans.KEPT), (["--calls", "many"], plans.KEPT), (["--calls", "1"], 1)])
def test_the_command_auto_takes_the_number(monkeypatch, capsys, words, asked):
    monkeypatch.setattr(Spy, "asked", [])
    monkeypatch.setattr(command, "Auto", Spy)
    monkeypatch.setattr(command, "Library", ScipyLibrary)
    assert command.run(["--left", "8", *words]) == 0
    assert Spy.asked == [asked] and "cpu_fft threads=all" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "", "9" * 99])
def test_the_command_auto_refuses_what_is_no_number_of_calls(text):
    with pytest.raises(UserError, match="--calls .*give 1 to 999999999, or many"):
        command.run(["--left", "8", f"--calls={text}"])
