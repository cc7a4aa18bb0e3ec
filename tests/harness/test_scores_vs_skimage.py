"""The float64 scores against numpy and scipy, and on photographs against scikit-image."""

import numpy as np
import pytest
import scipy.signal

from xcorr.problem import Problem

METHODS = ("definition", "fft")


@pytest.fixture(scope="module")
def photographs():
    """Coins and the moon, as grey values; both come with scikit-image."""
    data = pytest.importorskip("skimage.data", reason="scikit-image has the photographs and the rival scores")
    return data.coins().astype(np.float64), data.moon().astype(np.float64)


def random_pair(shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(3, 1, (1, *shape)), rng.normal(-2, 1, (1, *shape))


@pytest.mark.parametrize("method", METHODS)
def test_circular_is_the_inverse_of_the_cross_spectrum(library, method):
    left, right = random_pair((6, 9))
    out = library.reference(Problem("one-to-one", (6, 9), (6, 9), boundary="circular"), left, right, method=method)
    circular = np.fft.ifft2(np.conj(np.fft.fft2(left[0])) * np.fft.fft2(right[0])).real
    np.testing.assert_allclose(out[0], np.fft.fftshift(circular), atol=1e-10)


def cross_spectrum(left, right):
    return np.conj(np.fft.fft2(left[0])) * np.fft.fft2(right[0])


def whitened(left, right, exponent, least=4 * 2.0**-24):
    """The cross spectrum of two images without their means, whose frequency 0 is 0 and whose magnitudes are to the power
    `exponent`; small ones are divided by the floor of docs/design.md."""
    left, right = left - left.mean(), right - right.mean()
    cross = cross_spectrum(left, right)
    floor = least * np.log2(left.size) * np.linalg.norm(left) * np.linalg.norm(right)
    assert floor > 0
    cross /= np.maximum(np.abs(cross), floor) ** (1 - float(exponent))
    cross[0, 0] = 0
    return cross


def circular_phase(library, exponent, left, right, method):
    """Our score `phase` of a pair, boundary circular."""
    shape = left.shape[1:]
    request = Problem("one-to-one", shape, shape, boundary="circular", score=f"phase:{exponent}")
    return library.reference(request, left, right, method=method)[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("exponent", ["0", "0.25", "0.8"])
def test_phase_divides_the_cross_spectrum(library, method, exponent):
    left, right = random_pair((8, 7))
    cross = whitened(left, right, exponent)
    out = circular_phase(library, exponent, left, right, method)
    np.testing.assert_allclose(out, np.fft.fftshift(np.fft.ifft2(cross).real), atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("power", ["0", "0.25", "0.8"])
def test_phase_is_the_hybrid_correlation_of_diffraction_patterns(library, method, power):
    """corrPower of py4DSTEM: the cross spectrum with its magnitudes to a power, 1 a correlation and 0 its phases alone."""
    left, right = random_pair((12, 9))
    left -= left.mean()
    cross = cross_spectrum(left, right)
    cross[0, 0] = 0
    size = np.abs(cross) ** float(power)
    size[0, 0] = 0
    hybrid = np.fft.ifft2(size * np.exp(1j * np.angle(cross))).real
    out = circular_phase(library, power, left, right, method)
    np.testing.assert_allclose(out, np.fft.fftshift(hybrid), atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_phase_0_is_the_phase_correlation_of_frames_of_a_microscope(library, method):
    """suite2p adds 1e-5 to each magnitude before it divides; ours raises small ones to a floor. Both leave other frequencies as
    good as whitened. suite2p keeps the brightness, which has no texture."""
    left, right = random_pair((12, 9))
    left -= left.mean()
    cross = cross_spectrum(left, right)
    cross[0, 0] = 0
    out = circular_phase(library, "0", left, right, method)
    expected = np.fft.fftshift(np.fft.ifft2(cross / (1e-5 + np.abs(cross))).real)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    assert np.argmax(out) == np.argmax(expected)


@pytest.mark.parametrize("method", METHODS)
def test_covariance_is_the_product_without_the_means(library, method):
    left, right = random_pair((6, 9))
    out = library.reference(Problem("one-to-one", (6, 9), (6, 9), score="covariance"), left, right, method=method)
    expected = scipy.signal.correlate(right[0] - right.mean(), left[0] - left.mean(), "full")
    np.testing.assert_allclose(out[0], expected, atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_zncc_is_the_correlation_coefficient_of_the_overlap(library, method):
    left, right = random_pair((5, 8))
    out = library.reference(Problem("one-to-one", (5, 8), (5, 8), score="zncc:0.5"), left, right, method=method)[0]
    for i, sy in enumerate(range(-4, 5)):
        for j, sx in enumerate(range(-7, 8)):
            l = left[0][max(0, -sy) : 5 - max(0, sy), max(0, -sx) : 8 - max(0, sx)]
            r = right[0][max(0, sy) : 5 - max(0, -sy), max(0, sx) : 8 - max(0, -sx)]
            expected = np.corrcoef(l.ravel(), r.ravel())[0, 1] if l.size >= 20 else 0
            assert out[i, j] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_zncc_of_valid_windows_is_match_template(library, photographs, method):
    feature = pytest.importorskip("skimage.feature")
    coins, _ = photographs
    image, template = coins[40:140, 30:150], coins[70:102, 60:90]
    request = Problem("one-to-one", template.shape, image.shape, window="valid", score="zncc")
    out = library.reference(request, template[None], image[None], method=method)[0]
    np.testing.assert_allclose(out, feature.match_template(image, template), atol=1e-9)
    assert np.unravel_index(out.argmax(), out.shape) == (30, 30)
    assert out.max() == pytest.approx(1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("least", [0.3, 0.7])
def test_masked_zncc_is_padfields(library, photographs, method, least):
    registration = pytest.importorskip("skimage.registration._masked_phase_cross_correlation")
    coins, moon = photographs
    left, right = coins[50:90, 60:110], moon[200:245, 220:262]
    rng = np.random.default_rng(1)
    masks = [(rng.random(one.shape) < 0.8) for one in (left, right)]
    request = Problem("one-to-one", left.shape, right.shape, score=f"zncc:{least}", masks="both")
    given = {"left_mask": masks[0][None].astype(np.uint8), "right_mask": masks[1][None].astype(np.uint8)}
    out = library.reference(request, left[None], right[None], method=method, **given)[0]
    # Its correlation has the arguments in the order of scipy.signal.correlate.
    expected = registration.cross_correlate_masked(
        right, left, masks[1], masks[0], mode="full", axes=(0, 1), overlap_ratio=least
    )
    np.testing.assert_array_equal(out == 0, expected == 0)
    np.testing.assert_allclose(out, expected, atol=1e-8)
