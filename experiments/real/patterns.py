"""Electron backscatter patterns with known sub-pixel shifts, and their preparation for correlation.

A pattern is kinematic: the Kossel cones of a B2 FeAl crystal (the alloy of the JPDC paper, figure 24) at
20 kV on a flat detector, smooth bright bands two Bragg angles wide over a smooth background. It is
evaluated as a function of position, so a tile can be shifted by any fraction of a pixel exactly, without
interpolation. The background belongs to the detector and does not move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from scipy.ndimage import gaussian_filter

LATTICE_NM = 0.2909           # FeAl
WAVELENGTH_NM = 0.00859       # electrons of 20 kV
REFLECTIONS = {(1, 1, 0): 1.0, (2, 0, 0): 0.8, (2, 1, 1): 0.8, (3, 1, 0): 0.6, (2, 2, 2): 0.5,
               (3, 2, 1): 0.4}
FULL_SCALE = 255
ELECTRONS_PER_COUNT = 40.0    # shot noise
READ_NOISE = 1.0              # counts
REFERENCE_FRAMES = 4          # the reference is averaged over this many exposures


@dataclass(frozen=True)
class Layout:
    """Tiles of `tile` x `tile` pixels on a grid without its four corners; the detector is round."""

    grid_rows: int
    grid_cols: int
    tile: int

    @property
    def corners(self) -> list[tuple[int, int]]:
        """Upper left pixel (y, x) of each tile, row by row."""
        last_row, last_col = self.grid_rows - 1, self.grid_cols - 1
        return [(row * self.tile, col * self.tile)
                for row in range(self.grid_rows) for col in range(self.grid_cols)
                if not (row in (0, last_row) and col in (0, last_col))]

    @property
    def tiles(self) -> int:
        return self.grid_rows * self.grid_cols - 4

    @property
    def pattern_shape(self) -> tuple[int, int]:
        return (self.grid_rows * self.tile, self.grid_cols * self.tile)


def known_shifts(layout: Layout, patterns: int, seed: int) -> np.ndarray:
    """Shift (sy, sx) in pixels of each tile in each pattern: tiles x patterns x 2.

    Each pattern has a displacement, up to 2 % of a tile, and a displacement gradient, up to 2.5 % of a
    tile at the rim: smooth over the pattern, as strain and rotation are.
    """
    rng = np.random.default_rng([seed, 2])
    centre = (np.array(layout.corners) + layout.tile / 2) / np.array(layout.pattern_shape) * 2 - 1
    constant = rng.uniform(-0.02, 0.02, (patterns, 1, 2))
    gradient = rng.uniform(-0.025, 0.025, (patterns, 2, 2))
    shifts = (constant + centre[np.newaxis] @ gradient) * layout.tile
    return np.ascontiguousarray(shifts.swapaxes(0, 1))


class Generator:
    """A seeded crystal and detector. The same seed, layout and tile give the same bytes."""

    def __init__(self, layout: Layout, seed: int):
        self.layout, self.seed = layout, seed
        rng = np.random.default_rng([seed, 3])
        rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        planes, self._sines, self._strengths = [], [], []
        for family, strength in REFLECTIONS.items():
            for plane in _equivalent(family):
                planes.append(np.array(plane) / np.linalg.norm(plane))
                self._sines.append(WAVELENGTH_NM * np.linalg.norm(plane) / (2 * LATTICE_NM))
                self._strengths.append(strength)
        self._normals = np.array(planes) @ rotation.T
        rows, cols = layout.pattern_shape
        self._centre = (0.45 * rows, 0.5 * cols)       # of the projection
        self._distance = 0.6 * cols                    # of the detector, in pixels

    def bands(self, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Intensity of the bands at positions (y, x) of the detector, in pixels; any shape."""
        dy, dx = y - self._centre[0], x - self._centre[1]
        scale = 1 / np.sqrt(dy * dy + dx * dx + self._distance ** 2)
        total = np.zeros(np.broadcast(y, x).shape)
        for normal, sine, strength in zip(self._normals, self._sines, self._strengths):
            # Sine of the angle to the plane, in Bragg angles: the band is where it is within -1 .. 1.
            across = (normal[0] * dx + normal[1] * dy + normal[2] * self._distance) * scale / sine
            if np.abs(across).min() < 4:
                total += strength * _profile(across)
        return total

    def _counts(self, corner: tuple[int, int], shift: np.ndarray) -> np.ndarray:
        """Expected detector counts of the tile at `corner`, its bands shifted by `shift` (sy, sx)."""
        y = np.arange(corner[0], corner[0] + self.layout.tile, dtype=np.float64)[:, np.newaxis]
        x = np.arange(corner[1], corner[1] + self.layout.tile, dtype=np.float64)[np.newaxis, :]
        rows, cols = self.layout.pattern_shape
        background = 60 + 90 * np.exp(-((y / rows - 0.4) ** 2 + (x / cols - 0.5) ** 2) / 0.2)
        return background * (1 + 0.2 * self.bands(y - shift[0], x - shift[1]))

    def reference(self, tile: int) -> np.ndarray:
        """tile x tile float64 counts of the undeformed pattern, averaged over several exposures."""
        rng = np.random.default_rng([self.seed, 4, tile])
        counts = self._counts(self.layout.corners[tile], np.zeros(2))
        return np.mean([_expose(counts, rng) for _ in range(REFERENCE_FRAMES)], axis=0)

    def deformed(self, tile: int, shifts: np.ndarray) -> Iterator[np.ndarray]:
        """tile x tile uint8 counts for each (sy, sx) of `shifts`, one exposure each."""
        rng = np.random.default_rng([self.seed, 5, tile])
        for shift in shifts:
            yield _expose(self._counts(self.layout.corners[tile], shift), rng).astype(np.uint8)


def _equivalent(family: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """Planes of a cubic family, one of each pair of opposite normals."""
    every = {tuple(sign * index for sign, index in zip(signs, order))
             for order in permutations(family) for signs in product((1, -1), repeat=3)}
    return sorted(plane for plane in every if plane > tuple(-index for index in plane))


def _profile(across: np.ndarray) -> np.ndarray:
    """A band across: bright to one Bragg angle with the fringes of dynamical diffraction, dark outside.

    The second order is a narrower step to two Bragg angles. Mean near zero.
    """
    square = across * across
    edge = square * square
    edge *= edge
    edge *= edge
    return ((1 + 0.5 * np.cos(3 * np.pi * across)) / (1 + edge) + 0.3 / (1 + edge / 65536)
            - 0.25 / (1 + square / 4))


def _expose(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One exposure: shot noise, read noise, 8-bit digitisation."""
    noise = np.sqrt(counts / ELECTRONS_PER_COUNT + READ_NOISE ** 2)
    exposed = counts + noise * rng.standard_normal(counts.shape)
    return np.clip(np.rint(exposed), 0, FULL_SCALE)


def tile_stack(patterns: np.ndarray, corners: list[tuple[int, int]], tile: tuple[int, int]) -> np.ndarray:
    """tiles x patterns x rows x cols cut from `patterns` (patterns x rows x cols)."""
    return np.stack([patterns[:, y:y + tile[0], x:x + tile[1]] for y, x in corners])


def remove_background(tiles: np.ndarray) -> np.ndarray:
    """`tiles` (... x rows x cols) less their own blur, sigma a sixteenth of a side; float64, zero mean."""
    sigma = [0.0] * (tiles.ndim - 2) + [extent / 16 for extent in tiles.shape[-2:]]
    tiles = np.asarray(tiles, np.float64)
    fine = tiles - gaussian_filter(tiles, sigma, mode="nearest", truncate=3)
    return fine - fine.mean(axis=(-2, -1), keepdims=True)


def taper(tiles: np.ndarray) -> np.ndarray:
    """`tiles` weighted by a Hann window in y and x, then with zero mean.

    Done to the left only: what a shift moves out of the tile counts little, so the peak is not drawn
    towards zero as it is between two tiles with hard edges.
    """
    rows, cols = tiles.shape[-2:]
    weight = np.outer(*(np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 for n in (rows, cols)))
    mean = (tiles * weight).sum(axis=(-2, -1), keepdims=True) / weight.sum()
    return (tiles - mean) * weight
