"""The pivot, exact differences, and what conversion costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcorr.fields import Fields
from xcorr.native import conversion

RNG = np.random.default_rng(4)
ZNCC, COVARIANCE = Fields(score="zncc"), Fields(score="covariance")
FILLS = {"nodata": -3.4e38, "netcdf": 9.96921e36, "1e20": 1e20, "-9999": -9999.0, "int32": float(-(2**31)), "zero": 0.0}


def counts(kind, size=(40, 48)):
    return 20_000_000 + RNG.integers(-3, 4, size).astype(kind)


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
@pytest.mark.parametrize("share", [0.2, 0.49, 0.51, 0.9])
def test_no_fill_becomes_the_pivot(fill, share):
    values = 1e6 + 0.01 * RNG.normal(size=(100, 50))
    values[: int(100 * share)] = fill
    assert abs(conversion.pivot(values) - 1e6) < 0.1


def test_two_fills_are_left_out_one_after_the_other():
    values = 1e6 + 0.01 * RNG.normal(size=(100, 50))
    values[:30], values[30:70], values[70:85] = -3.4e38, -9999, np.nan
    assert abs(conversion.pivot(values) - 1e6) < 0.1


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32, np.uint64])
def test_the_smallest_and_largest_integer_as_fills(kind):
    info = np.iinfo(kind)
    for fill in (info.min, info.max):
        values = counts(kind)
        values[:21] = fill
        assert abs(int(conversion.pivot(values)) - 20_000_000) <= 3
        made = conversion.converted(values[None], np.float32, True).stack[0]
        exact = values[21:].astype(np.int64) - int(conversion.pivot(values))
        np.testing.assert_array_equal(made[21:], exact)


def test_the_pivot_is_the_lower_median_and_masks_count():
    values = np.arange(100.0).reshape(10, 10)
    assert conversion.pivot(values) == 49.0
    valid = np.zeros((10, 10), np.uint8)
    valid[5:] = 1
    values[:5] = np.nan
    assert conversion.pivot(values, valid) == 74.0
    assert conversion.pivot(np.full((3, 3), np.nan)) == 0
    assert conversion.pivot(np.full((3, 3), 7.5)) == 7.5


@given(
    st.sampled_from([np.int32, np.int64, np.uint32, np.uint64]).flatmap(
        lambda kind: st.lists(
            st.integers(int(np.iinfo(kind).min), int(np.iinfo(kind).max)), min_size=1, max_size=20
        ).map(lambda numbers: np.array(numbers, kind))
    )
)
def test_differences_of_integers_are_exact(values):
    for middle in values:
        found = conversion.differences(values, middle)
        assert [int(one) for one in found] == [int(one) - int(middle) for one in values]


@given(
    st.floats(-1e9, 1e9),
    st.floats(1e-3, 1e3),
    st.integers(0, 2**32 - 1),
    st.sampled_from([np.float64, np.int32, np.int64]),
)
def test_what_is_removed_is_one_number_and_the_rest_keeps_its_digits(offset, scale, seed, kind):
    """Against float64: the matrix less its mean is the same but for 1e-6 of its deviation."""
    rng = np.random.default_rng(seed)
    values = (offset + scale * rng.normal(size=(1, 12, 15))).astype(kind)
    exact = values[0].astype(np.float64)
    made = conversion.converted(values, np.float32, True).stack[0].astype(np.float64)
    deviation, found = exact - exact.mean(), made - made.mean()
    # The last digit of float64 itself is 1e-7 of 1e9.
    assert np.abs(found - deviation).max() <= 1e-6 * np.abs(deviation).max() + 2e-15 * abs(offset) * 8


def test_numbers_that_are_float32_all_the_same_are_left_alone():
    small = RNG.normal(size=(2, 8, 8)).astype(np.float32)
    for stack in (small, small.astype(np.float64), RNG.integers(0, 1000, (2, 8, 8))):
        made = conversion.converted(stack, np.float32, True)
        assert made.pivots == [None, None]
        np.testing.assert_array_equal(made.stack, stack)
    other = conversion.converted(counts(np.int32)[None], np.float32, False)
    assert other.pivots == [None], "a product changes with an offset"


def test_each_matrix_has_its_pivot_and_a_frame_has_one():
    stack = np.stack([1e6 + 0.01 * RNG.normal(size=(8, 8)), -1e5 + 0.01 * RNG.normal(size=(8, 8))])
    first, second = conversion.converted(stack, np.float32, True).pivots
    assert abs(first - 1e6) < 1 and abs(second + 1e5) < 1
    one = conversion.converted(stack, np.float32, True, one=True).pivots
    assert one[0] == one[1]


def test_what_a_mask_leaves_out_may_be_anything():
    stack = 1e6 + 0.01 * RNG.normal(size=(1, 8, 8))
    for values in (stack, stack.astype(np.float32)):
        valid = np.ones((1, 8, 8), np.uint8)
        valid[0, :5] = 0
        values[0, 0], values[0, 1], values[0, 2] = np.nan, np.inf, -1e300 if values.dtype == np.float64 else -3e38
        made = conversion.converted(values, np.float32, True, valid).stack
        assert np.isfinite(made).all() and np.ptp(made) < 1


def test_roundings_of_float64_stay_constant():
    plateau = np.full((1, 8, 8), 0.3)
    plateau[0, 2:4] = 0.1 + 0.2  # 0.30000000000000004
    assert not conversion.converted(plateau, np.float32, True).stack.any()


def cost_of(matrix, fields, window, offset_free=True):
    made = conversion.converted(matrix[None], np.float32, offset_free)
    return conversion.loss(matrix[None], made, fields, window)


def test_a_pivot_costs_nothing_where_one_number_serves_all():
    noise = 1e6 + 0.01 * RNG.normal(size=(40, 48))
    assert not cost_of(noise, ZNCC, (8, 8)) and not cost_of(noise, COVARIANCE, (8, 8))
    assert cost_of(noise, Fields(), (8, 8), offset_free=False).worst > 0.5
    assert cost_of(noise, Fields(score="ncc"), (8, 8), offset_free=False).worst > 0.5
    assert not cost_of(noise.astype(np.float32), Fields(), (8, 8), offset_free=False)


def test_two_plateaus_need_two_pivots_and_it_is_said():
    left = np.arange(48) < 24
    for height, flat in ((1e6, True), (1e4, False), (10.0, None)):
        values = np.where(left, 0.0, height) + 0.01 * RNG.normal(size=(40, 48))
        found = cost_of(values, ZNCC, (8, 8))
        assert bool(found) == (flat is not None) and found.flat == bool(flat), (height, found)
    exact = np.where(left, 0.0, 1e6 + 0.01 * RNG.normal(size=(40, 48)))
    assert not cost_of(exact, ZNCC, (8, 8)), "a plateau of one value is a fill"


@given(st.integers(0, 2**32 - 1), st.sampled_from([(3, 3), (8, 8), (5, 16)]), st.floats(0, 5))
def test_the_cost_is_that_of_the_worst_window(seed, window, exponent):
    rng = np.random.default_rng(seed)
    matrix = np.where(np.arange(30) < 15, 0.0, 10.0**exponent) + 0.01 * rng.normal(size=(20, 30))
    made = conversion.converted(matrix[None], np.float32, True)
    exact = matrix - made.pivots[0]
    parts = np.lib.stride_tricks.sliding_window_view(np.stack([exact, exact - made.stack[0]]), window, axis=(1, 2))
    ratio = np.sqrt((parts[1] ** 2).sum((-1, -2)) / (parts[0].var((-1, -2)) * np.prod(window))).max()
    found = conversion.loss(matrix[None], made, ZNCC, window).worst
    assert found == pytest.approx(ratio, rel=1e-3) if ratio > 1.001e-3 else found <= 1.001e-3
