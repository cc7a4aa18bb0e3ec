"""xcorr autocorr: azimuthal average C1D of the autocorrelation of images, and length R_max of their pattern."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.choice.auto import Auto
from xcorr.commands import autocorrelation, formats, matrices, outputs
from xcorr.errors import NOTHING_WRITTEN, Parser, UserError, command
from xcorr.files import replaced_file
from xcorr.native import stream
from xcorr.native.library import Library, find_variant

COLUMNS = ("frame", "r", "c1d", "c1d_raw", "r_max", "r_max_raw")
KINDS = ("mean removed", "raw")
WITHOUT_NAN = "use xcorr FRAMES --same --score zncc --nan-is-masked, which leaves NaN out"
MOST_CURVES = 12  # that a figure shows
DESCRIPTION = """\
Correlates each image of FRAMES (2D, or a stack) with itself at the shifts up to R, divides by the value at shift 0 and
averages over directions. R_max, in pixels, is the first maximum of C1D after its first trough: the length of the pattern.
Prints a line a frame and radius, once with the mean of each frame removed and once raw."""
EPILOG = f"""\
columns: {", ".join(COLUMNS)}; r is the mean length of the shifts of a ring, a length that is not found is empty
{formats.HELP}
example:
  xcorr autocorr frames.npy --radius 250 --output c1d.csv --figure c1d.svg"""


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="xcorr autocorr", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    add = parser.add_argument
    add("frames", type=Path, metavar="FRAMES.npy")
    add("--stack", action="store_true", help=matrices.STACK_HELP)
    add("--radius", type=int, metavar="R", help="largest shift in pixels (default: a third of the smaller side)")
    text = "a trough or maximum counts where C1D then rises or falls by so much; C1D is 1 at 0 (default: %(default)s)"
    add("--prominence", type=float, default=autocorrelation.PROMINENCE, metavar="P", help=text)
    outputs.add_options(add, "C1D.csv", "curves")
    return parser


def main(argv: Sequence[str], library: Any | None = None) -> int:
    return command(lambda words: run(build_parser().parse_args(words), library), argv, NOTHING_WRITTEN)


def run(arguments: argparse.Namespace, library: Any | None = None) -> int:
    outputs.check_targets([arguments.output], [arguments.frames], arguments.force, arguments.figure)
    header = matrices.read_header(arguments.frames, arguments.stack)
    radius = radius_of(arguments, header.shape[-2:])  # before anything is read
    array = matrices.read_matrices(arguments.frames, header, of_nan=WITHOUT_NAN)
    frames = matrices.as_stack(str(arguments.frames), array)
    if not 0 < arguments.prominence < 2:
        raise UserError(f"--prominence {arguments.prominence:g}: give a number above 0 and below 2")
    library = library or Library()
    with np.errstate(over="ignore"):
        raw = frames.astype(np.float32)
    matrices.check_range(str(arguments.frames), raw)
    images = dict(zip(KINDS, (autocorrelation.without_mean(frames), raw)))
    found = {kind: curves(library, arguments, own, radius) for kind, own in images.items()}
    write(arguments.output, found)  # before the figure, which may fail
    if arguments.figure is not None:
        draw(arguments.figure, found)
    return 0


def radius_of(arguments: argparse.Namespace, shape: tuple[int, ...]) -> int:
    """R of --radius, else a third of the smaller side, since few pixels overlap beyond it. UserError for images without
    directions, where no shift of 1 overlaps."""
    largest, frames = min(shape) - 1, arguments.frames
    if largest < 1:
        raise UserError(
            f"{frames}: images of {shape[0]}x{shape[1]} have one direction, and C1D averages over all; use xcorr {frames} "
            "--same --output surfaces.npy for every shift"
        )
    radius = max(1, min(shape) // 3) if arguments.radius is None else arguments.radius
    if not 1 <= radius <= largest:
        raise UserError(f"--radius {radius}: images of {shape[0]}x{shape[1]} have shifts of 1 to {largest}")
    return radius


def curves(library: Any, arguments: argparse.Namespace, frames: NDArray[Any], radius: int) -> list[dict[str, Any]]:
    """`radii`, `c1d` and `r_max` of each frame."""
    problem = autocorrelation.problem_of((frames.shape[1], frames.shape[2]), len(frames), radius)
    pair_bytes = (radius + 1) * (2 * radius + 1) * np.dtype(np.float32).itemsize
    chunks = stream.plan_chunks(problem, pair_bytes, stream.DEFAULT_CHUNK_BYTES)
    if arguments.variant == "auto":
        calls = len(KINDS) * stream.calls_of(chunks)  # share a plan
        choice = Auto(library, arguments.device, calls=calls).choose(problem)
        job = stream.Job(choice.variant, choice.params, "fp32", arguments.device)
    else:
        job = stream.Job.of_variant(find_variant(library.variants(), arguments.variant), arguments.device)
    found = []
    for _, out in stream.run_chunks(library, problem, job, frames, frames, chunks):
        found += autocorrelation.of_planes(out, arguments.prominence)
    return found


def write(where: str, found: dict[str, list[dict[str, Any]]]) -> None:
    """The table of COLUMNS."""
    removed, raw = (found[kind] for kind in KINDS)
    rows = (
        (number, r, c, c_raw, one["r_max"], other["r_max"])
        for number, (one, other) in enumerate(zip(removed, raw))
        for r, c, c_raw in zip(one["radii"].tolist(), one["c1d"].tolist(), other["c1d"].tolist())
    )
    outputs.write_rows(where, COLUMNS, rows)


def draw(target: Path, found: dict[str, list[dict[str, Any]]]) -> None:
    """Figure of C1D of at most MOST_CURVES frames, without the mean and raw, and of R_max by frame."""
    from matplotlib.figure import Figure

    frames = len(found[KINDS[0]])
    shown = np.unique(np.linspace(0, frames - 1, min(frames, MOST_CURVES)).astype(int))
    figure = Figure(figsize=(9.0, 3.0), layout="constrained")
    axes = figure.subplots(1, 3)
    for panel, kind in zip(axes, KINDS):
        for place, number in enumerate(shown):
            one = found[kind][number]
            colour = str(0.75 * (1 - place / max(1, len(shown) - 1))) if len(shown) > 1 else "0"
            panel.plot(one["radii"], one["c1d"], color=colour, linewidth=1)
            if np.isfinite(one["r_max"]):
                panel.plot(one["r_max"], np.interp(one["r_max"], one["radii"], one["c1d"]), "o", color="tab:blue")
        panel.axhline(0, color="0.8", linewidth=0.5)
        panel.set_xlabel("R [pixels]")
        panel.set_ylabel(f"C1D, {kind}")
    for kind, mark in zip(KINDS, ("o", "x")):
        axes[2].plot(range(frames), [one["r_max"] for one in found[kind]], mark, label=kind)
    axes[2].set_xlabel("Frame")
    axes[2].set_ylabel("R_max [pixels]")
    axes[2].legend()
    with replaced_file(target) as file:
        figure.savefig(file, format=target.suffix[1:])
