"""Templates along a signal in float64: scores, thresholds and events. The library uses none of this code."""

from typing import Any

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.signal import butter, oaconvolve, sosfiltfilt

BAND_HZ = (2.0, 20.0)  # local earthquakes
SCALE = 1.4826  # median absolute deviations to standard deviations of normal noise


def band_pass(samples: np.ndarray, rate_hz: float) -> np.ndarray:
    """`samples` (... x time) filtered to BAND_HZ without a phase shift or a mean."""
    sections = butter(4, BAND_HZ, "bandpass", fs=rate_hz, output="sos")
    return sosfiltfilt(sections, samples - samples.mean(axis=-1, keepdims=True), axis=-1)


def zncc(template: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """S - T + 1 float64 scores of `template` (channels x T) along `signal` (channels x S).

    Means and norms are over all channels (docs/design.md). No window may be constant.
    """
    length = template.shape[1]
    left = np.asarray(template, np.float64) - template.mean(dtype=np.float64)
    right = np.asarray(signal, np.float64) - signal.mean(dtype=np.float64)
    products = sum(oaconvolve(r, l[::-1], "valid") for l, r in zip(left, right))
    centre = slice(length // 2, length // 2 + products.size)
    mean = uniform_filter1d(right.mean(axis=0), length, mode="constant")[centre]
    square = uniform_filter1d((right**2).mean(axis=0), length, mode="constant")[centre]
    energy = left.size * (square - mean**2)
    return np.clip(products / np.sqrt(np.einsum("cx,cx->", left, left) * energy), -1, 1)


class Truth:
    """Scores of a template in float64, their median and their median absolute deviation (MAD)."""

    def __init__(self, template: np.ndarray, signal: np.ndarray) -> None:
        self.scores = zncc(template, signal)
        self.median = float(np.median(self.scores))
        self.mad = float(np.median(np.abs(self.scores - self.median)))

    def mads(self, score: Any) -> Any:
        """Distance of a score, or of each in an array, above the median, in MAD."""
        return (score - self.median) / self.mad


def events(shifts: np.ndarray, apart: int) -> np.ndarray:
    """First shift of each group of sorted `shifts`. A gap of more than `apart` separates groups."""
    gaps = np.diff(shifts, prepend=-np.inf)
    return np.asarray(shifts, np.int64)[gaps > apart]


def stretched(samples: np.ndarray, channels: int, length: int, rng: np.random.Generator) -> np.ndarray:
    """`channels` x `length` of noise with unit scale from the samples of one component. Each channel uses another part
    of the samples. Where a part is shorter than `length`, its blocks follow in random order with smooth joints."""
    part = len(samples) // channels
    scaled = samples / (SCALE * np.median(np.abs(samples)))
    stretches = scaled[: channels * part].reshape(channels, part)
    if length <= part:
        return stretches[:, :length].copy()
    block, joint = min(16384, part // 2), min(1024, part // 4)
    fade = np.sin(0.5 * np.pi * (np.arange(joint) + 0.5) / joint)  # the squares of it and of its mirror image sum to 1
    out = np.zeros((channels, length + block))
    for channel, stretch in enumerate(stretches):
        for at in range(0, length, block - joint):
            start = int(rng.integers(0, part - block + 1))
            piece = stretch[start : start + block].copy()
            piece[:joint] *= fade
            piece[-joint:] *= fade[::-1]
            out[channel, at : at + block] += piece
    return out[:, :length]
