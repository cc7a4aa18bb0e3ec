"""The peak finder against analytic peaks, its border rule and its ratio."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy_library import peak_records

from xcorr import results
from xcorr.commands import peaks
from xcorr.commands.peaks import find_peaks


@settings(max_examples=60, deadline=None)
@given(*[st.floats(-0.49, 0.49)] * 2, *[st.floats(0.1, 5)] * 2, *[st.integers(-20, 20)] * 2)
def test_a_parabola_is_found_exactly(dy, dx, ay, ax, sy0, sx0):
    y, x = np.mgrid[0:9, 0:11]
    out = 100 - ay * (y - 4 - dy) ** 2 - ax * (x - 6 - dx) ** 2
    peak = find_peaks(out[np.newaxis], (sy0, sx0))
    assert (peak.sy[0], peak.sx[0]) == (sy0 + 4, sx0 + 6)
    assert peak.sub_sy[0] == pytest.approx(sy0 + 4 + dy, abs=1e-9)
    assert peak.sub_sx[0] == pytest.approx(sx0 + 6 + dx, abs=1e-9)
    assert peak.border[0] == 0


@pytest.mark.parametrize("dy, dx", [(0.0, 0.0), (0.3, -0.2), (-0.45, 0.45)])
def test_a_wide_gaussian_is_found_to_a_hundredth(dy, dx):
    y, x = np.mgrid[-10:11, -10:11]
    out = np.exp(-((y - dy) ** 2 + (x - dx) ** 2) / (2 * 4.0**2)).astype(np.float32)
    peak = find_peaks(out[np.newaxis], (-10, -10))
    assert peak.sub_sy[0] == pytest.approx(dy, abs=0.01)
    assert peak.sub_sx[0] == pytest.approx(dx, abs=0.01)


def test_on_the_border_the_integer_shift_of_that_axis_is_kept():
    out = np.zeros((3, 5, 5))
    out[0, 0, 2], out[0, 0, 1] = 4, 3  # first row: y kept, x fitted towards the larger neighbour
    out[1, 4, 4] = 1  # corner
    out[2, 2, 4], out[2, 1, 4] = 4, 3  # last column
    peak = find_peaks(out, (10, 20))
    assert peak.border.tolist() == [1, 1, 1]
    assert peak.sub_sy.tolist()[:2] == [10, 14] and peak.sub_sx.tolist()[1:] == [24, 24]
    assert 21.5 <= peak.sub_sx[0] < 22 and 11.5 <= peak.sub_sy[2] < 12


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2)])
def test_windows_too_small_for_a_fit(shape):
    out = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(1, *shape) + 1
    peak = find_peaks(out, (0, 0))
    assert (peak.sub_sy[0], peak.sub_sx[0]) == (shape[0] - 1, shape[1] - 1)
    assert peak.border[0] == 1 and np.isnan(peak.peak_to_second[0])


def test_a_plateau_has_its_first_element_and_the_shift_of_its_middle():
    peak = find_peaks(np.ones((1, 4, 4)), (0, 0))
    assert (peak.sy[0], peak.sx[0], peak.sub_sy[0], peak.sub_sx[0]) == (0, 0, 0, 0)
    for equal, middle in ((2, 1.5), (3, 2), (4, 2.5)):
        out = np.zeros((2, 7, 7), np.float32)
        out[0, 2, 1 : 1 + equal] = 1
        out[1, 1 : 1 + equal, 2:4] = 1
        peak = find_peaks(out, (0, 0))
        assert (peak.sy[0], peak.sx[0], peak.sub_sy[0], peak.sub_sx[0]) == (2, 1, 2, middle)
        assert (peak.sy[1], peak.sx[1], peak.sub_sy[1], peak.sub_sx[1]) == (1, 2, middle, 2.5)


@pytest.mark.parametrize("ulps", [-3, -1, 1, 3])
def test_what_rounding_makes_of_equal_values_is_half_a_pixel_too(ulps):
    line = np.array([0, 1, 4, 7, 7 + ulps * np.spacing(np.float32(7)), 4, 1, 0], np.float32)
    peak = find_peaks(np.vstack([0 * line, line, 0 * line])[np.newaxis], (0, 0))
    assert peak.sub_sx[0] == pytest.approx(3.5, abs=1e-5)


def test_second_peak_is_a_local_peak_outside_the_neighbourhood():
    out = np.zeros((4, 9, 9))
    out[:, 4, 4] = 8
    out[0, 4, 5] = 7  # a neighbour of the peak is not a second peak
    out[0, 0, 0] = 2
    out[1, 4, 7], out[1, 4, 6] = 4, 5  # a shoulder: 4 lies below its neighbour 5, which is among the 5 x 5
    out[1, 8, 8] = 1
    out[2] -= 1  # everything else is negative
    out[3, 8, 0], out[3, 7, 1] = 3, 4
    ratio = find_peaks(out, (0, 0)).peak_to_second
    assert ratio[0] == 4 and ratio[1] == 8 and np.isnan(ratio[2]) and ratio[3] == 2


def test_ratio_against_a_plain_search():
    rng = np.random.default_rng(3)
    out = rng.normal(size=(20, 6, 8))
    found = find_peaks(out, (0, 0))
    for pair, matrix in enumerate(out):
        top = np.unravel_index(matrix.argmax(), matrix.shape)
        second = -1
        for y, x in np.ndindex(6, 8):
            around = matrix[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2]
            if max(abs(y - top[0]), abs(x - top[1])) > 2 and matrix[y, x] == around.max():
                second = max(second, matrix[y, x])
        expected = matrix.max() / second if second > 0 else np.nan
        np.testing.assert_equal(found.peak_to_second[pair], expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value):
    out = np.zeros((3, 4, 4), np.float32)
    out[1, 2, 3] = value
    with pytest.raises(ValueError, match="pair 1"):
        find_peaks(out, (0, 0))


def test_peaks_of_records_are_those_of_surfaces():
    rng = np.random.default_rng(7)
    surfaces = rng.standard_normal((6, 9, 11)).astype(np.float32)
    surfaces[0, 0, 3] = 9  # on the border
    expected = peaks.find_peaks(surfaces, (-4, -5))
    found = peaks.of_records(peak_records(surfaces, [-4, -5]))
    assert expected.border.any() and not expected.border.all()
    for name in ("sy", "sx", "value", "sub_sy", "sub_sx", "peak_to_second", "border"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-6)
    spoiled = peak_records(surfaces, [-4, -5])
    spoiled["flags"][2] |= results.NOT_FINITE
    with pytest.raises(ValueError, match="pair 2: the correlation is not finite"):
        peaks.of_records(spoiled)
