"""Moments of windows against numpy, by windows that are looked at one by one."""

import numpy as np
import pytest

from xcorr.native import moments

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("window", [(1, 1), (3, 5), (7, 7), (8, 8), (13, 20), (20, 1), (20, 33)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_are_those_of_each_window(window, offset):
    values, valid = offset + 0.01 * RNG.normal(size=(20, 33)), RNG.random((20, 33)) < 0.6
    count, mean, squares = moments.of_windows(values, window, valid)
    sums = moments.sums(np.abs(values), window)
    for y, x in np.ndindex(count.shape):
        part = slice(y, y + window[0]), slice(x, x + window[1])
        own = values[part][valid[part]]
        assert count[y, x] == own.size
        assert sums[y, x] == pytest.approx(np.abs(values[part]).sum(), rel=1e-13)
        if own.size:
            assert mean[y, x] == pytest.approx(own.mean(), rel=1e-14, abs=1e-14)
            assert squares[y, x] == pytest.approx(((own - own.mean()) ** 2).sum(), rel=1e-6, abs=1e-16)


def test_an_outlier_counts_in_its_own_windows_only():
    values = RNG.normal(size=(40, 50))
    before = moments.of_windows(values, (8, 8))[2]
    values[3, 3] = -3.4e38
    after = moments.of_windows(values, (8, 8))[2]
    np.testing.assert_array_equal(after[4:], before[4:])
    np.testing.assert_array_equal(after[:, 4:], before[:, 4:])
    assert (after[:4, :4] > 1e70).all()


def test_slabs_have_every_window_once(monkeypatch):
    monkeypatch.setattr(moments, "_SLAB_ELEMENTS", 70)
    values = RNG.normal(size=(23, 17))
    parts = [moments.of_windows(values[rows], (5, 4))[2] for rows, _ in moments.slabs(values.shape, (5, 4))]
    np.testing.assert_array_equal(np.concatenate(parts), moments.of_windows(values, (5, 4))[2])
