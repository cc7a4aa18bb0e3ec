"""The chain from a camera's frames to the images of the ISS paper (its section 3 and Fig. 3), and frames to try it on.

The paper names programs and their settings: grey scale, alignment of the series, a blurred inverted copy as a layer in mode
Overlay, dust replaced by the image beside it, contrast and crop. Each step is a function here. Grey values are numbers from 0 to 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

Image = NDArray[np.float64]
GREY = (0.299, 0.587, 0.114)  # weights of red, green and blue
COLOURS = (1.0, 0.9, 0.7)  # of the lamp that the frames are made with
OPACITY = 0.5
BLACK, WHITE = 0.03, 0.97  # what is darker or brighter is dust
SATURATED = 0.002  # share of the pixels that become black, and of those that become white


@dataclass(frozen=True)
class Camera:
    """What a camera adds to a scene. `light`: brightness of the darkest part over that of the brightest one. `dust`: number of spots, half
    of them white. `drift`: largest movement between two frames, in pixels. `noise`: its SD."""

    light: float = 0.45
    dust: int = 60
    drift: int = 6
    noise: float = 0.01


def frames_of(
    scenes: NDArray[np.uint8], margin: int, camera: Camera, rng: np.random.Generator
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """16-bit frames (count, rows, cols, 3) of scenes (count, rows + 2 margin, cols + 2 margin), and the (dy, dx) by which the scene of each
    moved, at most `margin`.

    Light and dust belong to the camera: they stay where they are while the scene moves."""
    count, rows, cols = scenes.shape[0], scenes.shape[1] - 2 * margin, scenes.shape[2] - 2 * margin
    y, x = np.mgrid[0:rows, 0:cols]
    far = np.hypot(y - 0.3 * rows, x - 0.7 * cols)
    light = 1 - (1 - camera.light) * far / far.max()
    spots = np.zeros((rows, cols))
    for spot in range(camera.dust):
        at = rng.uniform((0, 0), (rows, cols))
        radius = rng.uniform(0.8, 2.5)
        spots[np.hypot(y - at[0], x - at[1]) <= radius] = 1 if spot % 2 else -1
    drift = np.cumsum(rng.integers(-camera.drift, camera.drift + 1, (count, 2)), axis=0)
    drift = np.clip(drift - drift[0], -margin, margin)
    frames = np.empty((count, rows, cols, 3), np.uint16)
    for frame, scene, (dy, dx) in zip(frames, scenes, drift):
        seen = scene[margin - dy : margin - dy + rows, margin - dx : margin - dx + cols] / 255
        grey = np.where(spots < 0, 0.0, np.where(spots > 0, 1.0, 0.1 + 0.8 * seen * light))
        colours = grey[..., np.newaxis] * np.where(spots[..., np.newaxis] > 0, 1.0, COLOURS)
        noisy = colours + camera.noise * rng.normal(size=colours.shape) * (spots == 0)[..., np.newaxis]
        frame[:] = np.rint(65535 * np.clip(noisy, 0, 1))
    return frames, drift


def grey(frames: NDArray[np.uint16]) -> Image:
    """Frames (count, rows, cols, 3) in grey: Fig. 3b."""
    found: Image = frames.astype(np.float64) @ np.array(GREY) / 65535
    return found


def movements(frames: Image, blur: float) -> NDArray[np.int64]:
    """(dy, dx) of each frame's scene against that of the first one, in whole pixels, by the largest cross-correlation. Light and dust do
    not move with the scene: light, which is smoother than `blur` pixels, is taken away, and dust has the mean's grey."""
    dust = (frames < BLACK) | (frames > WHITE)
    calm = np.where(dust, np.median(frames, axis=(1, 2), keepdims=True), frames)
    scenes = np.stack([one - gaussian_filter(one, blur) for one in calm])
    scenes[dust] = 0
    spectra = np.fft.rfft2(scenes)
    surfaces = np.fft.irfft2(np.conj(spectra[0]) * spectra, scenes.shape[1:])
    rows, cols = scenes.shape[1:]
    peaks = np.array([np.unravel_index(np.argmax(one), one.shape) for one in surfaces], dtype=np.int64)
    half = np.array([rows // 2, cols // 2])
    found: NDArray[np.int64] = (peaks + half) % (rows, cols) - half
    return found


def aligned(frames: Image, moved: NDArray[np.int64]) -> Image:
    """The part of the scene that all frames show, at the same pixels of each."""
    low, high = moved.min(axis=0), moved.max(axis=0)
    rows, cols = np.array(frames.shape[1:]) - (high - low)
    return np.stack([one[y : y + rows, x : x + cols] for one, (y, x) in zip(frames, moved - low)])


def evenly_lit(frame: Image, blur: float) -> Image:
    """The frame under a layer of its blurred inverse in mode Overlay, half opaque: Fig. 3c."""
    layer = 1 - gaussian_filter(frame, blur, mode="nearest")
    overlay = np.where(frame < 0.5, 2 * frame * layer, 1 - 2 * (1 - frame) * (1 - layer))
    found: Image = (1 - OPACITY) * frame + OPACITY * overlay
    return found


def without_dust(frame: Image, offset: int) -> Image:
    """Black and white pixels, and those beside them, have the values of the image `offset` pixels to the side, or further: Fig. 3d."""
    dust = gaussian_filter(((frame < BLACK) | (frame > WHITE)).astype(np.float64), 1.0) > 0.05
    found = frame.copy()
    for step in range(1, 5):
        for side in (1, -1):
            beside, clean = (np.roll(one, side * step * offset, axis=1) for one in (frame, ~dust))
            patched = dust & clean
            found[patched] = beside[patched]
            dust = dust & ~patched
    return found


def contrasted(frame: Image, crop: int) -> NDArray[np.uint8]:
    """8 bits, the middle grey values spread over all of them, without `crop` pixels at each side: Fig. 3e."""
    inner = frame[crop : frame.shape[0] - crop, crop : frame.shape[1] - crop]
    low, high = np.quantile(inner, [SATURATED, 1 - SATURATED])
    spread: NDArray[np.uint8] = np.rint(255 * np.clip((inner - low) / max(high - low, 1e-12), 0, 1)).astype(np.uint8)
    return spread


def chain(
    frames: NDArray[np.uint16], blur: float, offset: int, crop: int
) -> tuple[dict[str, NDArray[np.uint8]], NDArray[np.int64]]:
    """Images (count, rows, cols) in 8 bits after each step, by the step's name, in order; the last one is the paper's image. And the
    `movements` by which the frames were aligned."""
    seen = grey(frames)
    moved = movements(seen, blur)
    steps = {"grey": seen, "aligned": aligned(seen, moved)}
    steps["evenly lit"] = np.stack([evenly_lit(one, blur) for one in steps["aligned"]])
    steps["without dust"] = np.stack([without_dust(one, offset) for one in steps["evenly lit"]])
    found = {name: np.rint(255 * np.clip(images, 0, 1)).astype(np.uint8) for name, images in steps.items()}
    found["contrast"] = np.stack([contrasted(one, crop) for one in steps["without dust"]])
    return found, moved
