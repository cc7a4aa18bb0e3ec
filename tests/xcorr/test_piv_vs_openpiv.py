"""Displacements of a real pair of frames against those of openpiv-python."""

import numpy as np
import pytest

from experiments.inputs import datasets
from xcorr.commands import piv, velocimetry


@pytest.mark.exhaustive
@pytest.mark.parametrize(("boundary", "method"), [("circular", "circular"), ("zero", "linear")])
@pytest.mark.parametrize("variant", ["cpu_fft", "template_fft_cpu"])
def test_a_real_pair_has_the_displacements_of_openpiv(library, boundary, method, variant):
    pyprocess = pytest.importorskip("openpiv.pyprocess", reason="openpiv is not installed")
    try:
        first, second = datasets.particle_frames(datasets.fetch(datasets.PARTICLES, datasets.cache_directory()))
    except datasets.Unavailable as reason:
        pytest.skip(f"the frames cannot be had: {reason}")
    method = {"sig2noise_method": "peak2peak", "correlation_method": method, "normalized_correlation": False}
    frames = first.astype(np.int32), second.astype(np.int32)
    right, down, _ = pyprocess.extended_search_area_piv(
        *frames, window_size=32, overlap=16, search_area_size=32, **method
    )
    frames = first.astype(np.float32), second.astype(np.float32)
    options = {"boundary": boundary, "passes": 1, "threshold": np.inf}
    found = velocimetry.displacements(library, *frames, choose=piv.chooser(library, variant, "cpu"), **options)
    apart = np.hypot(found.dx - right, found.dy - down)
    assert found.dx.shape == right.shape and np.median(np.hypot(right, down)) > 1
    assert np.median(apart) < 0.1
