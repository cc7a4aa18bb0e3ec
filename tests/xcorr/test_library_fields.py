"""The binding with fields of a problem: records, masks, one array twice, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy_library import scipy_correlation
from test_fields import GEOMETRIC, READ_BACK, REFUSED, REFUSED_IDS, SAME

from xcorr import results
from xcorr.errors import LibraryError, UserError
from xcorr.fields import Fields
from xcorr.problem import Problem

PLAIN = Problem("n-to-m", (4, 6), (5, 7), 2, 3)
VARIANT = {"variant": "cpu_definition"}


def inputs(problem, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (problem.lefts, *problem.left), (problem.rights, *problem.right)
    return tuple(rng.integers(-9, 9, shape).astype(np.float32) for shape in shapes)


@pytest.mark.parametrize("name", [GEOMETRIC, *(GEOMETRIC + fields for fields in READ_BACK), SAME])
def test_python_and_cpp_count_alike(library, name):
    problem = Problem.of_id(name)
    facts = library.describe(problem)
    assert facts.fmas == problem.fmas and facts.bytes == problem.bytes(4)
    assert facts.result_bytes == problem.result_bytes(4)
    assert facts.out_shape == (problem.pairs, *problem.output)
    assert (facts.sy0, facts.sx0) == tuple(shifts[0] for shifts in problem.shifts)


def is_of_fields(name):
    """Whether what is refused is a field, not the text of an id, which has words of its own."""
    return name.count("=") == name.count("/") - 4 > 0 and "/colour=" not in name


NONSENSE = [*(GEOMETRIC + fields for fields, _ in REFUSED), *(name for name, _ in REFUSED_IDS)]


@pytest.mark.parametrize("name", filter(is_of_fields, NONSENSE))
def test_python_and_cpp_refuse_in_the_same_words(library, name):
    form, left, right, counts, window, *fields = name.split("/")
    shapes = [list(map(int, shape.split("x"))) for shape in (left, right)]
    lefts, rights = map(int, counts.split(":"))
    asked = {"form": form, "left": shapes[0], "right": shapes[1], "lefts": lefts, "rights": rights, "window": window}
    asked |= dict(one.split("=", 1) for one in fields)
    with pytest.raises(LibraryError) as cpp:
        library._json("describe", json.dumps(asked).encode())
    with pytest.raises(UserError) as python:
        Problem.of_id(name)
    assert str(cpp.value) == str(python.value)


def test_records_of_the_surface(library):
    left, right = inputs(PLAIN)
    surface = library.correlate(PLAIN, left, right, **VARIANT)
    np.testing.assert_array_equal(surface, scipy_correlation(PLAIN, left, right).round())
    facts = library.describe(PLAIN)
    places = surface.reshape(6, -1).argmax(axis=1)
    y, x = np.divmod(places, facts.out_cols)

    peak = library.correlate(replace(PLAIN, result="peak"), left, right, **VARIANT)
    assert peak.dtype == results.PEAK and peak.shape == (6,)
    np.testing.assert_array_equal(peak["value"], surface.reshape(6, -1).max(axis=1))
    np.testing.assert_array_equal(peak["sy"], y + facts.sy0)
    np.testing.assert_array_equal(peak["sx"], x + facts.sx0)

    peaks = library.correlate(replace(PLAIN, result="peaks:3"), left, right, **VARIANT)
    assert peaks.shape == (6, 3) and (peaks["value"][:, 0] == peak["value"]).all()
    sums = library.correlate(replace(PLAIN, result="sum"), left, right, **VARIANT)
    np.testing.assert_allclose(sums, surface.sum(axis=(1, 2), dtype=np.float64))


def test_detections_are_in_order_and_too_many_are_an_error(library):
    left, right = inputs(PLAIN)
    surface = library.correlate(PLAIN, left, right, **VARIANT)
    facts = library.describe(PLAIN)
    level = float(np.sort(surface.ravel())[-10])
    found = library.correlate(replace(PLAIN, result=f"above:{level}:50"), left, right, **VARIANT)
    expected = np.argwhere(surface >= level) + [0, facts.sy0, facts.sx0]
    assert found.dtype == results.DETECTION
    np.testing.assert_array_equal(np.stack([found["pair"], found["sy"], found["sx"]], axis=1), expected)
    with pytest.raises(LibraryError, match="the capacity is 3") as caught:
        library.correlate(replace(PLAIN, result=f"above:{level}:3"), left, right, **VARIANT)
    assert "\n" not in str(caught.value)


def test_one_array_twice(library):
    twice = Problem("n-to-mn", (5, 4), (5, 4), 3, 3, same="yes")
    left, _ = inputs(twice)
    expected = library.correlate(replace(twice, same="no"), left, left, **VARIANT)
    np.testing.assert_array_equal(library.correlate(twice, left, **VARIANT), expected)
    np.testing.assert_array_equal(library.correlate(twice, left, left, **VARIANT), expected)
    with pytest.raises(LibraryError, match="right: with same yes"):
        library.correlate(twice, left, left.copy(), **VARIANT)


def test_masks_take_pixels_out(library):
    asked = Problem("one-to-one", (4, 4), (9, 8), window="valid", score="zncc:1", masks="left")
    if library.supports(asked, **VARIANT):
        pytest.skip("this build computes no masks on the CPU")
    left, right = inputs(asked)
    mask = np.ones((4, 4), bool)
    mask[1, 2] = mask[3, 3] = False
    spoiled = left.copy()
    spoiled[0][~mask] = 1000
    first, second = (library.correlate(asked, one, right, **VARIANT, left_mask=mask) for one in (left, spoiled))
    np.testing.assert_array_equal(first, second)
    kept = left[0][mask].astype(np.float64)
    window = right[0][2 : 2 + 4, 3 : 3 + 4][mask].astype(np.float64)
    assert abs(first[0, 2, 3] - np.corrcoef(kept, window)[0, 1]) < 1e-5
    whole = library.correlate(replace(asked, masks="none"), left, right, **VARIANT)
    assert abs(whole - first).max() > 0.01


@pytest.mark.parametrize(
    "change, arrays, says",
    [
        ({}, {"left_mask": np.ones((2, 4, 6))}, "left_mask: the problem names no mask"),
        ({"score": "zncc", "masks": "left"}, {}, "left_mask: missing"),
        ({"score": "zncc", "masks": "left"}, {"left_mask": np.full((2, 4, 6), 2)}, "give 0 and 1"),
        ({"score": "zncc", "masks": "left"}, {"left_mask": np.ones((2, 4, 5), bool)}, "needed"),
        ({"score": "zncc", "masks": "left"}, {"left_mask": np.ones((2, 4, 6))}, "give booleans"),
        ({"score": "best"}, {}, "use product, covariance, ncc, zncc or phase"),
        ({"score": "phase"}, {}, "needs boundary circular"),
        ({"same": True}, {}, "use no or yes"),
        ({"result": "above:1:5"}, {"out": np.empty(96, np.uint8)}, "leave it out"),
        ({"result": "peak"}, {"out": np.empty((6, 8, 12), np.float32)}, "needed"),
    ],
)
def test_refusals_are_one_line(library, change, arrays, says):
    left, right = inputs(PLAIN)
    with pytest.raises((UserError, LibraryError), match=says) as caught:
        if "masks" in change:  # whatever variants this build has
            library.reference(replace(PLAIN, **change), left, right, **arrays)
        else:
            library.correlate(replace(PLAIN, **change), left, right, **VARIANT, **arrays)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("distance", ["", ":3"])
def test_a_capacity_beyond_all_outputs_takes_no_memory(library, distance):
    left, right = np.ones((1, 4, 6), np.float32), np.ones((1, 4, 6), np.float32)
    problem = Problem("one-to-one", (4, 6), (4, 6), result=f"above:0.5:1073741824{distance}")
    found = library.correlate(problem, left, right, variant="cpu_definition")
    assert len(found) == (7 * 11 if not distance else 1)


def test_sizes_of_records_are_those_of_cpp():
    assert (results.PEAK.itemsize, results.DETECTION.itemsize, results.HEADER.itemsize) == (32, 16, 16)
    surface = (6, 8, 12)
    assert results.shape_of(Fields(result="peaks:2"), surface) == (6, 2)
    assert results.shape_of(Fields(result="above:1:5"), surface) == (16 + 5 * 16,)
    assert results.shape_of(Fields(result="above:1:1000000000"), surface) == (16 + 6 * 8 * 12 * 16,)
    assert results.type_of(Fields(result="sum"), np.float32) == np.float64
