"""What the binding refuses, and what it takes: types, values, sizes and the array of the result."""

from dataclasses import replace

import numpy as np
import pytest
from scipy_library import scipy_correlation

from xcorr.choice.auto import Auto
from xcorr.errors import LibraryError, UserError
from xcorr.problem import Problem

GOOD = Problem("n-to-mn", (4, 4), (4, 4), 2, 4)


def inputs(problem, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.uniform(-1, 1, (problem.lefts, *problem.left)).astype(np.float32),
        rng.uniform(-1, 1, (problem.rights, *problem.right)).astype(np.float32),
    )


@pytest.mark.parametrize("name", ["left", "right"])
@pytest.mark.parametrize(
    "make, words",
    [
        (lambda a: a + 1j, "type complex64; give real numbers"),
        (lambda a: a.astype(object), "type object"),
        (lambda a: a.astype(str), "give real numbers"),
        (lambda a: np.ma.masked_less(a, 0), "masked"),
        (lambda a: np.where(a == a[1, 2, 3], np.nan, a), r"nan at \[1, 2, 3\] is not finite"),
        (lambda a: np.where(a == a[1, 2, 3], -np.inf, a), r"-inf at \[1, 2, 3\] is not finite"),
        (lambda a: np.where(a == a[1, 2, 3], 1e39, a.astype(np.float64)), r"1e\+39 at \[1, 2, 3\] is beyond float32"),
        (lambda a: [a.tolist()[0], [1.0]], "no array|type object"),
    ],
    ids=["complex", "object", "text", "masked", "nan", "inf", "overflow", "ragged"],
)
def test_inputs_that_would_be_read_as_something_else_are_refused(library, name, make, words):
    left, right = inputs(GOOD)
    arrays = {"left": left, "right": right} | {name: make(left if name == "left" else right)}
    calls = [
        lambda: library.correlate(GOOD, **arrays, variant="cpu_definition"),
        lambda: library.session(GOOD, variant="cpu_definition").correlate(**arrays),
    ]
    if "beyond" not in words:  # of float32, which the reference does not use
        calls.append(lambda: library.reference(GOOD, **arrays))
    for call in calls:
        with pytest.raises(LibraryError, match=f"^{name}: .*({words})") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_what_is_not_finite_is_read_where_that_is_allowed(library):
    left, right = inputs(GOOD)
    right[0, 3, 3] = np.inf
    session = library.session(GOOD, variant="cpu_definition")
    for call in (
        lambda: library.correlate(GOOD, left, right, variant="cpu_definition", allow_nonfinite=True),
        lambda: session.correlate(left, right, allow_nonfinite=True),
        lambda: library.reference(GOOD, left, right, method="definition", allow_nonfinite=True),
    ):
        out = call()
        assert not np.isfinite(out[0]).all() and np.isfinite(out[1:]).all()


def test_large_finite_inputs_are_finite(library):
    problem = Problem("one-to-one", (4, 4), (4, 4))
    left = np.full((4, 4), 3e38, np.float32)
    out = library.correlate(problem, left, np.full((4, 4), 1e-38), variant="cpu_definition")
    assert np.isfinite(out).all(), "whose sum is not"


def test_an_out_that_must_not_be_written_is_not(library):
    problem = Problem("one-to-one", (3, 3), (3, 3))
    left, right = inputs(problem)
    out = np.zeros((1, 5, 5), np.float32)
    out.flags.writeable = False
    with pytest.raises(LibraryError, match="out: is read-only"):
        library.correlate(problem, left, right, variant="cpu_definition", out=out)
    assert not out.any()
    shared = np.ones(100, np.float32)
    inside = shared[:25].reshape(1, 5, 5)
    for words, arrays in (("left", (shared[20:29].reshape(3, 3), right)), ("right", (left, shared[:9].reshape(3, 3)))):
        with pytest.raises(LibraryError, match=f"out: shares memory with {words}"):
            library.correlate(problem, *arrays, variant="cpu_definition", out=inside)
        with pytest.raises(LibraryError, match="out: shares memory"):
            library.session(problem, variant="cpu_definition").correlate(*arrays, out=inside)
    assert (shared == 1).all()
    with pytest.raises(LibraryError, match="out: list; a numpy array"):
        library.correlate(problem, left, right, variant="cpu_definition", out=[0.0] * 25)
    odd = np.zeros(101, np.uint8)[1:].view(np.float32).reshape(1, 5, 5)
    with pytest.raises(LibraryError, match="out: .*dense"):
        library.correlate(problem, left, right, variant="cpu_definition", out=odd)


def test_unaligned_inputs_are_copied(library):
    problem = Problem("one-to-one", (3, 3), (3, 3))
    left, right = inputs(problem)
    odd = np.zeros(37, np.uint8)[1:].view(np.float32).reshape(1, 3, 3)
    odd[:] = left
    assert not odd.flags.aligned
    out = library.correlate(problem, odd, right, variant="cpu_row_streaming")
    np.testing.assert_allclose(out, scipy_correlation(problem, left, right), atol=1e-5)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"left": (4.5, 4)}, "left rows 4.5: not a whole number"),
        ({"right": (4, 4.0)}, "right cols 4.0"),
        ({"lefts": 2.5}, "lefts 2.5: not a whole number"),
        ({"rights": "4"}, "rights '4'"),
        ({"rights": 2**70}, "rights 1180591620717411303424: out of range"),
        ({"left": (4, 4, 4)}, "left [(]4, 4, 4[)]: not a shape"),
        ({"left": 4}, "left 4: not a shape"),
        ({"left": None}, "left None"),
        ({"window": None}, "window None: not a text"),
        ({"form": 3}, "form '3': unknown"),
    ],
)
def test_sizes_are_whole_numbers(change, words):
    with pytest.raises(UserError, match=words):
        replace(GOOD, **change)


def test_integers_of_numpy_are_sizes(library):
    asked = replace(GOOD, left=tuple(np.array([4, 4])), lefts=np.int32(2), rights=np.uint8(4))
    assert library.describe(asked) == library.describe(GOOD)
    np.testing.assert_array_equal(
        library.correlate(asked, *inputs(GOOD), variant="cpu_definition"),
        library.correlate(GOOD, *inputs(GOOD), variant="cpu_definition"),
    )


def test_a_right_that_was_forgotten_is_named(library):
    left, _ = inputs(GOOD)
    calls = [
        lambda: library.correlate(GOOD, left, variant="cpu_definition"),
        lambda: library.session(GOOD, variant="cpu_definition").correlate(left),
        lambda: library.reference(GOOD, left),
        lambda: Auto(library, "cpu").choose_for(GOOD, left, None),
    ]
    missing = "^right: missing; give an array, or same='yes' in the problem"
    for call in calls:
        with pytest.raises(LibraryError, match=missing) as caught:
            call()
        assert "\n" not in str(caught.value)
    with pytest.raises(LibraryError, match="^left: missing; give an array$"):
        library.correlate(GOOD, None, left, variant="cpu_definition")
