"""One style for every figure, sized to the paper's columns, and the one map from id to label.

A look (colour, marker, line) is a function of family and id alone: a variant added later needs no
edit here and changes nobody else's look. Markers and line styles differ as well as colours, so
that figures survive grey print and colour blindness (hues: Okabe and Ito, darkened for thin lines).
"""

import colorsys
import hashlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.colors import to_hex, to_rgb

COLUMN_IN = 3.4
PAGE_IN = 7.0
NAME_PT = 7.0  # of the names of lines, at their ends or in a legend
READABLE = 4.5  # contrast of a text with the paper
SMALLEST = 6.0  # points, of any text in a figure: 8 pixels of a screen at the figure's natural size

RC = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 6.8,
    "ytick.labelsize": 6.8,
    "legend.fontsize": NAME_PT,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.0,
    "hatch.linewidth": 0.6,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "path.simplify": False,
    "axes.unicode_minus": True,
}

# Paper's or field's label of a registered id. An id without an entry is shown as itself.
LABELS: dict[str, str] = {
    "cpu_definition": "definition",
    "cpu_row_streaming": "row streaming",
    "cpu_fft": "FFT (FFTW)",
    "overlap_wise": "overlap-wise",
    "warp_shuffle": "warp-shuffle",
    "split_row": "split-row",
    "grouped_overlap": "grouped-overlap",
    "multi_matrix_right": "multi-matrix-right",
    "multi_matrix_both": "multi-matrix-both",
    "warp_per_overlap": "warp-per-overlap",
    "block_per_overlap": "block-per-overlap",
    "cufft": "FFT (cuFFT)",
    "cufft_paper": "FFT (cuFFT, paper)",
}
# What speed-ups are taken over: the first of these that was measured.
BASELINES = ("overlap_wise", "cpu_definition")

HUES = {
    "blue": "#0072b2",
    "vermillion": "#d55e00",
    "green": "#00805e",
    "purple": "#a0478a",
    "ochre": "#b07f00",
    "sky": "#2f9fd6",
    "slate": "#444444",
    "brown": "#7a4a21",
    "wine": "#8a1538",
    "olive": "#6b7a12",
}
# Of pinned looks alone: with some of HUES they stay apart to colour-blind readers where many lines meet.
MORE_HUES = {"navy": "#23184e", "umber": "#3f0c08", "grey": "#898786", "plum": "#702eaa"}
FAMILY_HUES = {
    "cpu": "blue",
    "fft": "vermillion",
    "overlap_wise": "slate",
    "warp_shuffle": "green",
    "warp_per_overlap": "purple",
    "tiled": "sky",
}
# A line of a whole family, marker and dash by place in this list. Any two of these colours stay apart (by at least 20 of CAM02-UCS) to
# readers with each of the three kinds of colour blindness, simulated at full severity.
FAMILY_COLOURS = {
    "cpu": "#23184e",
    "fft": "#e2660f",
    "fused_fft": "#3f0c08",
    "overlap_wise": "#898786",
    "tiled": "#4291ca",
    "warp_per_overlap": "#702eaa",
    "warp_shuffle": "#116241",
}
# Words of an id that say more about a curve than its folder does.
WORD_HUES = {
    "fft": "vermillion",
    "cufft": "vermillion",
    "definition": "slate",
    "tf32": "green",
    "3xtf32": "purple",
    "fp16": "brown",
}
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h"]
DASHES: list[str | tuple[int, tuple[float, ...]]] = [
    "-",
    (0, (5, 1.6)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1.2)),
    (0, (6, 1.3, 1.2, 1.3, 1.2, 1.3)),
]
PLAN_DASH: tuple[int, tuple[float, ...]] = (0, (1.1, 1.3))
# Looks of the variants that stand side by side in many figures: (hue, marker, dash), by id, or by id and precision where it is not fp32.
PINNED = {
    "cpu_definition": ("slate", "s", 1),
    "cpu_row_streaming": ("blue", "o", 0),
    "cpu_fft": ("vermillion", "^", 2),
    "overlap_wise": ("slate", "s", 1),
    "warp_shuffle": ("olive", "v", 3),
    "split_row": ("ochre", "P", 1),
    "grouped_overlap": ("green", "o", 0),
    "multi_matrix_right": ("sky", ">", 3),
    "multi_matrix_both": ("brown", "<", 4),
    "warp_per_overlap": ("purple", "D", 0),
    "cufft": ("vermillion", "^", 2),
    "autocorr_cuda_simple": ("brown", "X", 0),
    "autocorr_cuda_line": ("sky", "h", 1),
    "autocorr_cuda_two_kernels": ("purple", "D", 2),
    "autocorr_cuda_tile": ("green", "p", 0),
    "autocorr_fft": ("umber", "v", 2),
    "autocorr_simple": ("navy", "P", 0),
    "autocorr_reordered": ("grey", "<", 0),
    "autocorr_simd": ("plum", "o", 0),
    "timeseries_cufft": ("vermillion", "^", 2),
    "timeseries_fft": ("umber", "v", 1),
    "timeseries_tf32_wgmma/tf32": ("sky", "s", 3),
    "timeseries_3xtf32_wgmma/3xtf32": ("plum", "D", 4),
    "timeseries_fp16_wgmma/fp16": ("grey", "o", 0),
}
PHASE_LOOKS = {  # colour and hatch; light to dark, so that they differ in grey too
    "forward": ("#c6dbef", ""),
    "Hadamard": ("#f4a261", "////"),
    "inverse": ("#3b7fb6", ""),
    "rest": ("#f0f0f0", "\\\\\\\\"),
}


@dataclass(frozen=True)
class Look:
    """How one series is drawn."""

    colour: str
    marker: str
    dash: str | tuple[int, tuple[float, ...]]

    def point(self) -> dict[str, Any]:
        """Keywords of a point of a paper, thin and hollow: nobody measured it here."""
        return {**self.line(hollow=True), "linestyle": "none", "markeredgewidth": 0.7}

    def line(self, hollow: bool = False) -> dict[str, Any]:
        """Keywords of a line; hollow: nobody verified its points here."""
        face = "white" if hollow else self.colour
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash, "markerfacecolor": face}


def at_place(colour: str, place: int) -> Look:
    """A look whose marker and dash are those of a place in a list."""
    return Look(colour, MARKERS[place % len(MARKERS)], DASHES[place % len(DASHES)])


def label(variant: str, precision: str = "fp32") -> str:
    """Legend text of a variant; the precision class is named when it is not the usual fp32."""
    text = LABELS.get(variant, variant.replace("_", "-"))
    return text if precision == "fp32" else f"{text}, {precision}"


def look(variant: str, family: str, precision: str = "fp32") -> Look:
    """Deterministic look of a series from family and id alone."""
    if pinned := PINNED.get(variant if precision == "fp32" else f"{variant}/{precision}"):
        hue, marker, dash = pinned
        return Look({**HUES, **MORE_HUES}[hue], marker, DASHES[dash])
    digest = hashlib.sha256(f"{variant}/{precision}".encode()).digest()
    colour = turned(HUES[hue_name(variant, family)], (digest[3] % 3 - 1) * 0.05)
    colour = shaded(colour, (-0.3, -0.15, 0.0, 0.15, 0.3)[digest[2] % 5])
    return Look(colour, MARKERS[digest[0] % len(MARKERS)], DASHES[digest[1] % len(DASHES)])


def family_look(family: str, transform: bool, turn: int = 0) -> Look:
    """Look of the line of a family, or of those of its variants that are transforms where it has others too; `turn` changes marker
    and dash, for another precision."""
    name = "fft" if transform and family not in FAMILY_COLOURS else family
    if name in FAMILY_COLOURS:
        return at_place(FAMILY_COLOURS[name], list(FAMILY_COLOURS).index(name) + turn)
    hue = hue_name("", name)
    return at_place(HUES[hue], list(HUES).index(hue) + turn)


def hue_name(variant: str, family: str) -> str:
    """Hue of a variant: a telling word of its id, else its family's (hashed when new)."""
    for word in variant.split("_"):
        if word in WORD_HUES:
            return WORD_HUES[word]
    if family in FAMILY_HUES:
        return FAMILY_HUES[family]
    free = [name for name in HUES if name not in FAMILY_HUES.values()]
    return free[hashlib.sha256(family.encode()).digest()[0] % len(free)]


def shaded(colour: str, amount: float) -> str:
    """`colour` mixed with white (amount > 0) or black (amount < 0); |amount| <= 1."""
    target = 1.0 if amount > 0 else 0.0
    return to_hex([c + (target - c) * abs(amount) for c in to_rgb(colour)])


def as_text(colour: str) -> str:
    """`colour`, as dark as text on white must be to be read: a contrast of READABLE at least."""
    while _contrast(colour) < READABLE:
        colour = shaded(colour, -0.06)
    return colour


def _contrast(colour: str) -> float:
    """With white, as the guidelines for accessible pages (WCAG 2) define it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


def turned(colour: str, amount: float) -> str:
    """`colour` with its hue turned by `amount` of the circle."""
    hue, light, saturation = colorsys.rgb_to_hls(*to_rgb(colour))
    return to_hex(colorsys.hls_to_rgb((hue + amount) % 1.0, light, saturation))


def context(salt: str = "xcorr-bench") -> AbstractContextManager[None]:
    """The style for the duration of a `with`; `salt` makes the ids inside an SVG reproducible."""
    return matplotlib.rc_context({**matplotlib.rcParamsDefault, **RC, "svg.hashsalt": salt})
