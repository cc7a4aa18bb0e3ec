"""Scores of templates in photographs, by the variants that are made for them, against scikit-image and OpenCV."""

import numpy as np
import pytest

from xcorr.problem import Problem

FAMILY = "template_matching"
# As uint8 a frame; the place and shape of a template in it.
CASES = {
    "coins": ("coins", (70, 60, 41, 33)),
    "moon": ("moon", (200, 210, 64, 64)),
    "camera": ("camera", (20, 300, 16, 24)),  # sky: windows whose mean is far from that of the frame
}


@pytest.fixture(scope="module")
def variants(library):
    found = [one["id"] for one in library.variants() if one["family"] == FAMILY and one["backend"] == "cpu"]
    assert found
    return found


def photograph(case):
    """A frame of 220 x 260 and a template of it, float64."""
    data = pytest.importorskip("skimage.data", reason="scikit-image has the photographs and the rival scores")
    name, (y, x, rows, cols) = CASES[case]
    whole = getattr(data, name)().astype(np.float64)
    top, left = max(0, min(y - 30, whole.shape[0] - 220)), max(0, min(x - 40, whole.shape[1] - 260))
    return whole[top : top + 220, left : left + 260], whole[y : y + rows, x : x + cols], (y - top, x - left)


def request_of(template, frame, **fields):
    return Problem("one-to-one", template.shape, frame.shape, window="valid", score="zncc", **fields)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_scores_of_photographs_are_those_of_scikit_image(library, variants, case, precision):
    frame, template, place = photograph(case)
    feature = pytest.importorskip("skimage.feature", reason="scikit-image has match_template")
    expected = feature.match_template(frame, template)
    request = request_of(template, frame)
    truth = library.reference(request, template[None], frame[None])[0]
    np.testing.assert_allclose(truth, expected, atol=1e-6)
    for variant in variants:
        out = library.correlate(request, template, frame, variant=variant, precision=precision)[0]
        np.testing.assert_allclose(out, truth, atol=1e-5 if precision == "fp32" else 1e-11, err_msg=variant)
        assert np.unravel_index(out.argmax(), out.shape) == place
        assert out.max() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("offset", [0.0, 3e4])
def test_scores_do_not_depend_on_an_offset_nor_on_a_drift(library, variants, offset):
    """The pivot of a tile keeps the digits of float32 where the frame is far from 0 and its level changes."""
    frame, template, _ = photograph("camera")
    frame = (frame + offset + 20 * np.arange(frame.shape[1])).astype(np.float32)
    request = request_of(template, frame)
    truth = library.reference(request, template[None], frame[None])[0]
    for variant in variants:
        out = library.correlate(request, template, frame, variant=variant)[0]
        np.testing.assert_allclose(out, truth, atol=2e-5, err_msg=variant)


def test_constant_windows_score_0(library, variants):
    frame = np.full((60, 70), 9.0)
    frame[40:, :] = np.random.default_rng(1).normal(size=(20, 70))
    template = frame[45:53, 10:20]
    for variant in variants:
        out = library.correlate(request_of(template, frame), template, frame, variant=variant)[0]
        assert (out[:33] == 0).all() and out[45, 10] == pytest.approx(1, abs=1e-6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES)
def test_scores_of_photographs_are_those_of_opencv(library, variants, case):
    cv2 = pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
    frame, template, place = (
        one.astype(np.float32) if isinstance(one, np.ndarray) else one for one in photograph(case)
    )
    expected = cv2.matchTemplate(frame, template, cv2.TM_CCOEFF_NORMED)
    for variant in variants:
        out = library.correlate(request_of(template, frame), template, frame, variant=variant)[0]
        # OpenCV loses digits where a window is flat beside its mean; ours are within 1e-5 of float64 there too.
        assert np.median(np.abs(out - expected)) < 5e-4, variant
        np.testing.assert_allclose(out, expected, atol=2e-2, err_msg=variant)
        assert np.unravel_index(expected.argmax(), expected.shape) == place


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES)
def test_masked_scores_of_photographs_are_those_of_opencv(library, variants, case):
    cv2 = pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
    frame, template, _ = (one.astype(np.float32) if isinstance(one, np.ndarray) else one for one in photograph(case))
    y, x = (np.arange(extent) - (extent - 1) / 2 for extent in template.shape)
    mask = ((y[:, None] / template.shape[0]) ** 2 + (x / template.shape[1]) ** 2 <= 0.25).astype(np.uint8)
    expected = cv2.matchTemplate(frame, template, cv2.TM_CCOEFF_NORMED, mask=mask)
    request = request_of(template, frame, masks="left")
    for variant in variants:
        out = library.correlate(request, template, frame, variant=variant, left_mask=mask[None])[0]
        assert np.median(np.abs(out - expected)) < 1e-4, variant
        np.testing.assert_allclose(out, expected, atol=5e-2, err_msg=variant)
