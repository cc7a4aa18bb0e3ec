"""Phase correlation knows no brightness: against its own formula in float64, and on what users bring."""

import numpy as np
import pytest

from xcorr.choice.auto import Auto
from xcorr.problem import Problem

VARIANTS = ("cpu_definition", "cpu_fft")


def phase(library, left, right, exponent="0", variant="cpu_fft"):
    """The surface of a pair, its shift (0, 0) at [0, 0]."""
    problem = Problem("one-to-one", left.shape, left.shape, boundary="circular", score=f"phase:{exponent}")
    out = library.correlate(problem, left, right, variant=variant)[0]
    return np.fft.ifftshift(out)


def formula(left, right, exponent):
    left, right = (side.astype(np.float64) - side.astype(np.float64).mean() for side in (left, right))
    cross = np.conj(np.fft.fft2(left)) * np.fft.fft2(right)
    floor = 4 * 2.0**-24 * np.log2(left.size) * np.linalg.norm(left) * np.linalg.norm(right)
    cross /= np.maximum(np.abs(cross), floor) ** (1 - exponent)
    cross[0, 0] = 0
    return np.fft.ifft2(cross).real


def best(surface):
    """The shift of the largest output, each axis from -half to half, and the output."""
    at = np.unravel_index(np.argmax(surface), surface.shape)
    rows, cols = surface.shape
    return tuple((int(i) + n // 2) % n - n // 2 for i, n in zip(at, (rows, cols), strict=True)), surface[at]


def photograph(size, mean, deviation, seed=0):
    """Grey values with the spectrum of photographs, 1 / frequency."""
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.fftfreq(size))
    frequency[0, 0] = 1
    noise = np.fft.fft2(np.random.default_rng(seed).normal(size=(size, size)))
    grey = np.fft.ifft2(noise / frequency).real
    return mean + deviation * (grey - grey.mean()) / grey.std()


def hill(size):
    y, x = np.mgrid[:size, :size] - size / 2
    return np.exp(-(x * x + y * y) / 16200)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("exponent", ["0", "0.5"])
def test_it_is_its_formula(library, variant, exponent):
    rng = np.random.default_rng(3)
    left, right = (rng.normal(1e4, 3, (32, 32)).astype(np.float32) for _ in range(2))
    expected = formula(left, right, float(exponent))
    out = phase(library, left, right, exponent, variant)
    np.testing.assert_allclose(out, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("mean", [0, 30, 1000, 30000])
@pytest.mark.parametrize("dtype", ["uint16", "float32", "float64"])
def test_a_rolled_photograph_of_any_mean_scores_one(library, mean, dtype):
    still = photograph(128, max(mean, 128), 30)
    if dtype == "uint16":
        still = np.rint(np.clip(still, 0, 65535))
    still = (still if mean else still - still.mean()).astype(dtype if mean else "float32")
    shift, score = best(phase(library, still, np.roll(still, (9, -14), (0, 1))))
    assert shift == (9, -14)
    assert score >= 0.99


def test_an_additive_vignette_does_not_hide_the_shift(library):
    """F2 of the review of users' inputs: 16-bit frames under a bright hill that does not move."""
    rng = np.random.default_rng(0)
    ground, texture = 1000 + 3000 * hill(256), 20 * rng.normal(size=(256, 256))
    still = (ground + texture).astype("u2")
    moved = (ground + np.roll(texture, (9, -14), (0, 1))).astype("u2")
    shift, score = best(phase(library, still, moved))
    assert shift == (9, -14)
    assert score >= 0.98


def test_a_multiplicative_vignette_does_not_hide_the_shift(library):
    photo, shade = photograph(256, 1000, 100), 0.3 + 0.7 * hill(256)
    still, moved = photo * shade, np.roll(photo, (9, -14), (0, 1)) * shade
    shift, _ = best(phase(library, still.astype("f4"), moved.astype("f4")))
    assert shift == (9, -14)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("value", [0.0, 0.1, 33333.3])
def test_a_blank_side_gives_zeros(library, variant, value):
    left = np.full((16, 20), value)
    right = np.random.default_rng(1).normal(size=(16, 20))
    for pair in ((left, right), (right, left)):
        assert not np.any(phase(library, *pair, variant=variant))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_it_knows_no_scale(library, scale):
    rng = np.random.default_rng(2)
    left, right = (rng.normal(size=(24, 24)) for _ in range(2))
    plain = phase(library, left, right)
    np.testing.assert_allclose(phase(library, left * scale, right / scale), plain, atol=1e-6)


@pytest.mark.parametrize("side", [48, 100])
@pytest.mark.parametrize("mean", [0, 1e4])
def test_auto_keeps_the_transform_beside_an_outlier_and_it_is_its_formula(library, side, mean, tmp_path):
    """A line said that an FFT errs by hundreds of typical outputs, and cpu_definition took hundreds of times as long for the same
    surface: both compute in float64."""
    left = np.random.default_rng(5).normal(mean, 1, (side, side)).astype(np.float32)
    right = np.roll(left, (5, -7), (0, 1))
    right[20, 20] = 1e8
    problem = Problem("one-to-one", left.shape, left.shape, boundary="circular", score="phase:0")
    choice = Auto(library, "cpu", tmp_path).choose_for(problem, left, right)
    assert choice.variant == "cpu_fft" and not choice.warning and "no FFT" not in choice.why
    expected = formula(left, right, 0)
    np.testing.assert_allclose(phase(library, left, right), expected, atol=1e-5 * np.abs(expected).max())
