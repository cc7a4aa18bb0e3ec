"""The chain from a camera's frames to the images of the ISS paper: each step does what it is for, on frames of known light, dust and drift."""

import numpy as np
import pytest

from experiments.inputs import preprocessing
from experiments.inputs.preprocessing import Camera
from xcorr.commands.autocorrelation import ring_image

MARGIN, WAVELENGTH, BLUR = 20, 16.0, 32.0
CLEAN = Camera(light=1.0, dust=0, drift=5, noise=0.0)


def frames_of(camera, seed=1, shape=(200, 160), count=4):
    rng = np.random.default_rng(seed)
    scene = ring_image((shape[0] + 2 * MARGIN, shape[1] + 2 * MARGIN), WAVELENGTH, rng)
    return preprocessing.frames_of(np.stack(count * [scene]), MARGIN, camera, rng)


def test_frames_of_a_clean_camera_show_the_scene_where_it_has_moved():
    frames, drift = frames_of(CLEAN)
    grey = preprocessing.grey(frames)
    assert frames.shape == (4, 200, 160, 3) and not drift[0].any() and np.abs(drift).max() > 0
    for one, (dy, dx) in zip(grey, drift):
        inner = one[60 + dy : 100 + dy, 60 + dx : 100 + dx]
        np.testing.assert_allclose(inner, grey[0][60:100, 60:100], atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("camera", [CLEAN, Camera(drift=5), Camera(light=0.3, dust=120, drift=9, noise=0.02)])
def test_the_drift_is_found_under_light_and_dust_that_stay(camera, seed):
    frames, drift = frames_of(camera, seed)
    np.testing.assert_array_equal(preprocessing.movements(preprocessing.grey(frames), BLUR), drift)


def test_aligned_frames_show_the_same_part_of_the_scene():
    frames, drift = frames_of(CLEAN)
    found = preprocessing.aligned(preprocessing.grey(frames), drift)
    assert found.shape[1:] == tuple(np.array((200, 160)) - np.ptp(drift, axis=0))
    np.testing.assert_allclose(found[1:], np.broadcast_to(found[0], found[1:].shape), atol=1e-4)


def test_light_is_more_even_after_the_layer():
    frames, _ = frames_of(Camera(light=0.4, dust=0, drift=0, noise=0.0), count=1)
    before = preprocessing.grey(frames)[0]
    after = preprocessing.evenly_lit(before, BLUR)

    def unevenness(image):
        corners = [image[y : y + 64, x : x + 64].mean() for y in (0, 136) for x in (0, 96)]
        return max(corners) / min(corners)

    assert unevenness(before) > 1.4 and unevenness(after) < 1 + 0.8 * (unevenness(before) - 1)


def test_dust_has_the_values_beside_it_and_nothing_else_changes():
    image = np.tile(np.linspace(0.3, 0.7, 60), (40, 1))
    dusty = image.copy()
    dusty[10:13, 20:23], dusty[30, 58] = 0.0, 1.0
    cleaned = preprocessing.without_dust(dusty, 6)
    assert cleaned.min() > 0.25 and cleaned.max() < 0.75
    far = np.ones_like(image, bool)
    far[6:17, 16:27], far[26:35, 53:] = False, False
    np.testing.assert_array_equal(cleaned[far], image[far])
    np.testing.assert_allclose(cleaned[10:13, 20:23], image[10:13, 26:29], atol=0.1)


def test_contrast_uses_all_grey_values_and_crops():
    image = np.random.default_rng(3).uniform(0.4, 0.6, (50, 30))
    found = preprocessing.contrasted(image, 4)
    assert found.shape == (42, 22) and found.dtype == np.uint8 and found.min() == 0 and found.max() == 255
    assert preprocessing.contrasted(np.full((10, 10), 0.5), 1).max() == 0, "a constant image has no contrast"
