"""The float64 reference, both methods, against scipy: sign, order, windows and shapes."""

import numpy as np
import pytest
import scipy.signal
from built_library import built_library
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy_library import scipy_correlation

from xcorr.problem import Problem

METHODS = ("definition", "fft")


def random_inputs(request, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(request.lefts, *request.left)), rng.normal(size=(request.rights, *request.right)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("left, right", [((6, 9), (6, 9)), ((5, 7), (12, 9)), ((1, 1), (4, 6)), ((1, 16), (1, 40))])
@pytest.mark.parametrize("mode", ["full", "valid"])
def test_sign_and_order_are_those_of_correlate2d(library, method, left, right, mode):
    """out[sy][sx] = sum L[y][x] R[y+sy][x+sx] = scipy.signal.correlate2d(R, L, mode)."""
    request = Problem("one-to-one", left, right, window=mode)
    l, r = random_inputs(request)
    out = library.reference(request, l, r, method=method)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out[0], scipy.signal.correlate2d(r[0], l[0], mode), atol=1e-11)
    np.testing.assert_allclose(out[0], scipy.signal.correlate(r[0], l[0], mode), atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_valid_where_the_left_is_the_larger(library, method):
    """scipy swaps its arguments there; the window valid (docs/design.md, Problem) runs from Rh - Lh to 0."""
    request = Problem("one-to-one", (9, 11), (4, 6), window="valid")
    l, r = random_inputs(request)
    out = library.reference(request, l, r, method=method)[0]
    assert out.shape == (6, 6)
    for i, sy in enumerate(range(-5, 1)):
        for j, sx in enumerate(range(-5, 1)):
            expected = (l[0, -sy : -sy + 4, -sx : -sx + 6] * r[0]).sum()
            assert out[i, j] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_the_definition_spelled_out(library, method):
    request = Problem("one-to-one", (3, 4), (5, 3), window="sy:-2..3,sx:-3..2")
    l, r = random_inputs(request)
    out = library.reference(request, l, r, method=method)[0]
    for i, sy in enumerate(range(-2, 4)):
        for j, sx in enumerate(range(-3, 3)):
            expected = sum(
                l[0, y, x] * r[0, y + sy, x + sx]
                for y in range(3)
                for x in range(4)
                if 0 <= y + sy < 5 and 0 <= x + sx < 3
            )
            assert out[i, j] == pytest.approx(expected, abs=1e-11)


@st.composite
def requests(draw):
    side = st.integers(1, 14)
    left, right = (draw(side), draw(side)), (draw(side), draw(side))
    form = draw(st.sampled_from(["one-to-one", "one-to-many", "n-to-mn", "n-to-m"]))
    lefts = 1 if form.startswith("one") else draw(st.integers(1, 3))
    rights = {"one-to-one": 1, "n-to-mn": lefts * draw(st.integers(1, 3))}.get(form, draw(st.integers(1, 4)))
    windows = ["full"]
    if all(a <= b for a, b in zip(left, right)) or all(a >= b for a, b in zip(left, right)):
        windows.append("valid")
    ranges = []
    for a, b in zip(left, right):
        low = draw(st.integers(-(a - 1), b - 1))
        ranges.append(f"{low}..{draw(st.integers(low, b - 1))}")
    windows.append(f"sy:{ranges[0]},sx:{ranges[1]}")
    return Problem(form, left, right, lefts, rights, draw(st.sampled_from(windows)))


@settings(max_examples=80, deadline=None)
@given(request=requests(), seed=st.integers(0, 100))
def test_any_form_shape_and_window(request, seed):
    library = built_library()
    l, r = random_inputs(request, seed)
    truth = scipy_correlation(request, l, r)
    for method in METHODS:
        np.testing.assert_allclose(library.reference(request, l, r, method=method), truth, atol=1e-10, err_msg=method)


@pytest.mark.parametrize("method", METHODS)
def test_integers_are_exact(library, method):
    request = Problem("n-to-m", (8, 8), (8, 8), 2, 2)
    rng = np.random.default_rng(1)
    l, r = rng.integers(-500, 500, (2, 8, 8)), rng.integers(-500, 500, (2, 8, 8))
    truth = np.stack([scipy.signal.correlate2d(b, a) for a in l for b in r])
    out = library.reference(request, l, r, method=method)
    np.testing.assert_array_equal(out if method == "definition" else np.rint(out), truth)


def test_both_methods_agree_on_a_paper_size(library):
    request = Problem("one-to-many", (96, 96), (96, 96), 1, 2, "sy:-9..9,sx:-9..9")
    l, r = random_inputs(request)
    by_fft, by_definition = (library.reference(request, l, r, method=method) for method in ("fft", "definition"))
    np.testing.assert_allclose(by_fft, by_definition, atol=1e-9)
