"""The harness's reduction of surfaces against scikit-image and numpy, through the library."""

import numpy as np
import pytest

from xcorr.fields import Fields
from xcorr.problem import Problem

registration = pytest.importorskip("skimage.registration")


def shifted(image: np.ndarray, by: tuple[float, float]) -> np.ndarray:
    """The image, moved by its Fourier series."""
    spectrum = np.fft.fft2(image)
    for axis, (length, shift) in enumerate(zip(image.shape, by)):
        turn = np.exp(-2j * np.pi * np.fft.fftfreq(length) * shift)
        spectrum *= turn.reshape((-1, 1) if axis == 0 else (1, -1))
    return np.fft.ifft2(spectrum).real


def smooth(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    rows, cols = (np.fft.fftfreq(length)[:, None] for length in shape)
    return np.fft.ifft2(np.fft.fft2(rng.normal(size=shape)) * np.exp(-60 * (rows**2 + cols.T**2))).real


@pytest.mark.parametrize("shape", [(32, 48), (31, 45)])
@pytest.mark.parametrize("by", [(3.3, -7.65), (-0.05, 0.4), (9.0, 2.5)])
def test_upsampled_peaks_are_those_of_phase_cross_correlation(library, shape, by):
    rng = np.random.default_rng(3)
    left = smooth(rng, shape)
    right = shifted(left, by)
    fields = Fields(boundary="circular", result="peak:upsample=20")
    request = Problem("one-to-one", shape, shape, **fields.given)
    (peak,) = library.correlate(request, left, right, variant="cpu_fft", precision="fp64")
    # With even lengths both take the highest frequency in another way, which a smooth image does not have.
    expected = registration.phase_cross_correlation(right, left, upsample_factor=20, normalization=None)[0]
    found = (peak["sy"] + peak["sub_sy"], peak["sx"] + peak["sub_sx"])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found, by, atol=0.026)
