"""Electron backscatter patterns with known sub-pixel shifts, and their preparation for correlation.

A pattern shows the Kossel cones of a B2 FeAl crystal (the alloy of figure 24 of the JPDC paper) at 20 kV on a flat
detector: smooth bright bands two Bragg angles wide on a smooth background. It is a function of the position, so a tile
is shifted by any fraction of a pixel without interpolation. The background belongs to the detector and does not move.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from scipy.ndimage import gaussian_filter

LATTICE_NM = 0.2909  # FeAl
WAVELENGTH_NM = 0.00859  # electrons of 20 kV
REFLECTIONS = {(1, 1, 0): 1.0, (2, 0, 0): 0.8, (2, 1, 1): 0.8, (3, 1, 0): 0.6, (2, 2, 2): 0.5, (3, 2, 1): 0.4}
FULL_SCALE = 255
ELECTRONS_PER_COUNT = 40.0  # shot noise
READ_NOISE = 1.0  # counts
REFERENCE_FRAMES = 4  # the reference is averaged over this many exposures


@dataclass(frozen=True)
class Layout:
    """Tiles of `tile` x `tile` pixels on a grid without its four corners, since the detector is round."""

    grid_rows: int
    grid_cols: int
    tile: int

    @property
    def corners(self) -> list[tuple[int, int]]:
        """Upper left pixel (y, x) of each tile, row by row."""
        rim = {0, self.grid_rows - 1}, {0, self.grid_cols - 1}
        grid = product(range(self.grid_rows), range(self.grid_cols))
        return [(row * self.tile, col * self.tile) for row, col in grid if not (row in rim[0] and col in rim[1])]

    @property
    def tiles(self) -> int:
        return self.grid_rows * self.grid_cols - 4

    @property
    def pattern_shape(self) -> tuple[int, int]:
        return (self.grid_rows * self.tile, self.grid_cols * self.tile)


def known_shifts(layout: Layout, patterns: int, seed: int) -> np.ndarray:
    """Shift (sy, sx) in pixels of each tile in each pattern: tiles x patterns x 2.

    The displacement of a pattern is constant, up to 2 % of a tile, plus a gradient, up to 2.5 % of a tile at the rim,
    as strain and rotation cause.
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
        strengths = {plane: strength for family, strength in REFLECTIONS.items() for plane in _equivalent(family)}
        planes = np.array(list(strengths), np.float64)
        lengths = np.linalg.norm(planes, axis=1)
        self._normals = planes / lengths[:, np.newaxis] @ rotation.T
        self._sines = WAVELENGTH_NM * lengths / (2 * LATTICE_NM)  # of the Bragg angles
        self._strengths = np.array(list(strengths.values()))
        rows, cols = layout.pattern_shape
        self._centre = (0.45 * rows, 0.5 * cols)  # of the projection
        self._distance = 0.6 * cols  # of the detector, in pixels

    def _directions(self, corner: tuple[int, int], shift: np.ndarray) -> np.ndarray:
        """Unit vectors from the source to the pixels of a tile shifted by -shift: 3 x tile x tile."""
        steps = np.arange(self.layout.tile)
        dy = (corner[0] + steps - shift[0] - self._centre[0])[:, np.newaxis]
        dx = (corner[1] + steps - shift[1] - self._centre[1])[np.newaxis, :]
        scale = 1 / np.sqrt(dy * dy + dx * dx + self._distance**2)
        return np.stack([dx * scale, dy * scale, self._distance * scale])

    def bands(self, corner: tuple[int, int], shift: np.ndarray) -> np.ndarray:
        """Intensity of the bands, shifted by `shift` (sy, sx) pixels, in the tile at `corner`: tile x tile float32.
        Single precision places a band within 1e-4 pixel."""
        side = self.layout.tile
        middle = self._directions(corner, np.zeros(2))[:, side // 2, side // 2]
        # The bands within about three Bragg angles of the tile's circumscribed circle.
        near = np.abs(self._normals @ middle) < 3 * self._sines + side / self._distance
        directions = self._directions(corner, shift).reshape(3, -1).astype(np.float32)
        # Sine of the angle to the plane divided by that of the Bragg angle: the band is at -1 .. 1.
        normals = (self._normals[near] / self._sines[near, np.newaxis]).astype(np.float32)
        total = np.zeros(directions.shape[1], np.float32)
        for normal, strength in zip(normals, self._strengths[near].astype(np.float32)):
            total += strength * _profile(normal @ directions)  # band by band, so that the data stays in the cache
        return total.reshape(side, side)

    def _counts(self, corner: tuple[int, int], shift: np.ndarray) -> np.ndarray:
        """Expected detector counts of the tile at `corner` with its bands shifted by `shift` (sy, sx)."""
        steps = np.arange(self.layout.tile)
        y, x = (corner[0] + steps)[:, np.newaxis], (corner[1] + steps)[np.newaxis, :]
        rows, cols = self.layout.pattern_shape
        background = 60 + 90 * np.exp(-((y / rows - 0.4) ** 2 + (x / cols - 0.5) ** 2) / 0.2)
        return background * (1 + 0.2 * self.bands(corner, shift))

    def reference(self, tile: int) -> np.ndarray:
        """tile x tile float64 counts of the undeformed pattern, the mean of REFERENCE_FRAMES exposures."""
        rng = np.random.default_rng([self.seed, 4, tile])
        counts = self._counts(self.layout.corners[tile], np.zeros(2))
        return np.mean([_expose(counts, rng) for _ in range(REFERENCE_FRAMES)], axis=0)

    def deformed(self, tile: int, shifts: np.ndarray) -> Iterator[np.ndarray]:
        """tile x tile uint8 counts of one exposure for each (sy, sx) of `shifts`."""
        rng = np.random.default_rng([self.seed, 5, tile])
        for shift in shifts:
            yield _expose(self._counts(self.layout.corners[tile], shift), rng).astype(np.uint8)


def _equivalent(family: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """Planes of a cubic family, one for each pair of opposite normals."""
    orders = permutations(family)
    every = {(a * h, b * k, c * l) for h, k, l in orders for a, b, c in product((1, -1), repeat=3)}
    return sorted(plane for plane in every if plane > tuple(-index for index in plane))


def _profile(across: np.ndarray) -> np.ndarray:
    """Profile of a band: bright to one Bragg angle with the fringes of dynamical diffraction, then dark. The second
    order is a lower step to two Bragg angles. The mean is near 0."""
    square = across * across
    edge = square * square
    edge *= edge
    edge *= edge
    return (1 + 0.5 * np.cos(3 * np.pi * across)) / (1 + edge) + 0.3 / (1 + edge / 65536) - 0.25 / (1 + square / 4)


def _expose(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One exposure: shot noise, read noise, 8-bit digitisation."""
    noise = np.sqrt(counts / ELECTRONS_PER_COUNT + READ_NOISE**2)
    exposed = counts + noise * rng.standard_normal(counts.shape)
    return np.clip(np.rint(exposed), 0, FULL_SCALE)


def band_pass(tiles: np.ndarray) -> np.ndarray:
    """`tiles` (... x rows x cols) without background and pixel noise and with even contrast; float64.

    Gaussian blurs with a sigma in fractions of a side remove details below 1/96 and above 1/8, and divide by the
    contrast within 1/12. The mean is 0, the variance about 1.
    """

    def blur(stack: np.ndarray, fraction: float) -> np.ndarray:
        sigma = [0.0] * (tiles.ndim - 2) + [fraction * extent for extent in tiles.shape[-2:]]
        return gaussian_filter(stack, sigma, mode="nearest", truncate=3)

    tiles = np.asarray(tiles, np.float64)
    detail = blur(tiles, 1 / 96) - blur(tiles, 1 / 8)
    detail /= np.sqrt(blur(detail * detail, 1 / 12)) + 1e-3
    return detail - detail.mean(axis=(-2, -1), keepdims=True)


def taper(tiles: np.ndarray) -> np.ndarray:
    """`tiles` weighted by a Hann window in y and x, with zero mean.

    Only left tiles are tapered. What a shift moves out of the tile then has little weight, so the peak is not biased
    towards 0 as between two tiles with hard edges.
    """
    rows, cols = tiles.shape[-2:]
    weight = np.outer(*(np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 for n in (rows, cols)))
    mean = (tiles * weight).sum(axis=(-2, -1), keepdims=True) / weight.sum()
    return (tiles - mean) * weight
