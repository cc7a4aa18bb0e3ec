"""Windows beside nodata fills, faults and a second mode keep their scores, by every CPU variant that has them: inputs
of users' reports (EQcorrscan 71 and 357), the truth by numpy in float64."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from xcorr.problem import Problem

FILLS = {"lowest float": -3.4e38, "fault": 1e11, "nodata": 1e20, "smallest int32": -(2.0**31)}
SHAPES = "one-to-one", (16, 16), (80, 80), 1, 1, "valid"
REQUEST = {score: Problem(*SHAPES, score=score) for score in ("zncc:0.3", "ncc:0.3")}
PEAK = Problem(*SHAPES, score="zncc:0.3", result="peak")


@pytest.fixture(scope="module")
def scored(library):
    """The names of the CPU variants that compute each score."""

    names = [variant["id"] for variant in library.variants() if variant["backend"] == "cpu"]
    found = {
        score: [name for name in names if not library.supports(problem, variant=name)]
        for score, problem in REQUEST.items()
    }
    assert all(len(names) >= 5 for names in found.values())
    return found


def scene():
    """The report's frame, and the template that was cut out of it at (40, 30)."""
    frame = np.random.default_rng(0).normal(size=(80, 80)).astype(np.float32)
    return frame[40:56, 30:46].copy(), frame


def truth(template, frame, score):
    left, right = template.astype(np.float64), sliding_window_view(frame.astype(np.float64), (16, 16))
    if score.startswith("zncc"):
        left, right = left - left.mean(), right - right.mean(axis=(2, 3), keepdims=True)
    return (left * right).sum(axis=(2, 3)) / np.sqrt((left**2).sum() * (right**2).sum(axis=(2, 3)))


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize("score", REQUEST)
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("where", [np.s_[:16], np.s_[:1, :1]], ids=["rows", "a pixel"])
def test_a_fill_elsewhere_changes_no_score(library, scored, where, fill, score, precision):
    template, frame = scene()
    clean = truth(template, frame, score)
    frame[where] = FILLS[fill]
    beside = np.s_[16:] if where == np.s_[:16] else np.s_[1:]
    for name in scored[score]:
        sides = (side.astype(np.float32 if precision == "fp32" else np.float64) for side in (template, frame))
        surface = library.correlate(REQUEST[score], *sides, variant=name, precision=precision)[0]
        np.testing.assert_allclose(surface[beside], clean[beside], atol=1e-4, rtol=0, err_msg=name)


@pytest.mark.parametrize("fill", FILLS)
def test_the_peak_is_where_the_template_was(library, scored, fill):
    template, frame = scene()
    frame[:16] = FILLS[fill]
    for name in scored["zncc:0.3"]:
        (record,) = library.correlate(PEAK, template, frame, variant=name).ravel()
        assert (record["sy"], record["sx"]) == (40, 30), name
        assert record["value"] == pytest.approx(1, abs=1e-4), name


@pytest.mark.parametrize("deviation", [1, 0.1])
def test_windows_of_both_modes_have_their_scores(library, scored, deviation):
    template, frame = scene()
    frame = (deviation * frame + np.where(np.arange(80) < 40, 0, 1e4)).astype(np.float32)
    template = frame[40:56, 50:66].copy()
    for name in scored["zncc:0.3"]:
        surface = library.correlate(REQUEST["zncc:0.3"], template, frame, variant=name)[0]
        np.testing.assert_allclose(surface, truth(template, frame, "zncc:0.3"), atol=3e-4, rtol=0, err_msg=name)
        assert surface[40, 50] == pytest.approx(1, abs=1e-4), name
