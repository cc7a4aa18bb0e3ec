"""xcorr piv: particle image velocimetry, the displacements between two frames on a grid of windows."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.choice.auto import Auto
from xcorr.commands import formats, matrices, outputs, velocimetry
from xcorr.errors import NOTHING_WRITTEN, Parser, UserError, command
from xcorr.files import replaced_file
from xcorr.native import conversion
from xcorr.native.library import Library, find_variant
from xcorr.native.stream import Job
from xcorr.problem import Problem, format_shape

COLUMNS = ("y", "x", "dy", "dx", "value", "signal_to_noise", "residual", "outlier", "blank")
# Options with the names of parameters of velocimetry.displacements.
SETTINGS = ("window", "overlap", "fit", "boundary", "passes", "threshold", "least_value", "least_valid")
MOST_ARROWS = 48  # along a side of a figure
DESCRIPTION = """\
Finds by how much the particles of FIRST have moved in SECOND (2D, one shape): a displacement for each window of a
grid, by the peak of the correlation of two windows, to a fraction of a pixel. Prints a line a window."""
EPILOG = f"""\
columns: {", ".join(COLUMNS)}
  y, x: middle of the window; dy, dx: displacement in pixels, y down; value: correlation coefficient of both windows, -1 to 1;
  signal_to_noise: the peak over the largest other one (inf: there is none; empty: no peak); residual: of the normalised median
  test; outlier: 1 where dy, dx are the median of the neighbours, since the residual is above the threshold, the value is
  below the least one with a signal_to_noise below {velocimetry.STANDS_OUT:g}, or there is no peak; blank: 1 where a window is constant or has
  too few pixels that count: dy, dx are empty
{formats.HELP}
examples:
  xcorr piv first.npy second.npy --window 32 --overlap 16 --output vectors.csv --figure vectors.svg
  xcorr piv first.npy second.npy --passes 3 --window 64,32,16 --overlap 32,16,12 --fit parabola,gaussian --mask valid.npy"""


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="xcorr piv", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    add = parser.add_argument
    add("first", type=Path, metavar="FIRST.npy")
    add("second", type=Path, metavar="SECOND.npy")
    numbers: dict[str, Any] = {"type": whole_numbers, "metavar": "N[,N...]"}
    text = (
        "side of the windows: 16, 32 (default), 64 or any other; with commas of each pass, the last one of those that "
    )
    add("--window", **numbers, default=[32], help=text + "follow")
    add("--overlap", **numbers, help="pixels that neighbouring windows share, likewise (default: half a window)")
    text = "of a peak between pixels, likewise: gaussian (default) or parabola"
    add("--fit", type=lambda text: text.split(","), default=["gaussian"], metavar="F[,F...]", help=text)
    add("--boundary", choices=("circular", "zero"), default="circular", help="circular (default) or zero padding")
    add("--passes", type=int, default=2, metavar="N", help="each after the first one shifts the windows (default: 2)")
    text = "0 or 1 a pixel of both frames: 0 does not count. The search is zncc then, with zero padding"
    add("--mask", type=Path, metavar="FILE.npy", help=text)
    add("--mask-second", type=Path, metavar="FILE.npy", help="the same of SECOND, where its mask is another one")
    add("--nan-is-masked", action="store_true", help="pixels that are NaN do not count, as those of a mask")
    text = "share of the pixels of a window that must count, else it is blank (default: %(default)g)"
    add("--least-valid", type=float, default=velocimetry.LEAST_VALID, metavar="S", help=text)
    text = "a residual of the normalised median test above it is an outlier (default: %(default)g)"
    add("--threshold", type=float, default=velocimetry.THRESHOLD, metavar="R", help=text)
    text = "a correlation coefficient below it is an outlier, unless the peak stands out (default: %(default)g)"
    add("--least-value", type=float, default=velocimetry.LEAST_VALUE, metavar="V", help=text)
    outputs.add_options(add, "FILE.csv", "arrows")
    return parser


def whole_numbers(text: str) -> list[int]:
    """The numbers of "64,32"."""
    return [int(word) for word in text.split(",")]


def main(argv: Sequence[str], library: Any | None = None) -> int:
    return command(lambda words: run(build_parser().parse_args(words), library), argv, NOTHING_WRITTEN)


def run(arguments: argparse.Namespace, library: Any | None = None) -> int:
    inputs = [arguments.first, arguments.second, arguments.mask, arguments.mask_second]
    outputs.check_targets([arguments.output], inputs, arguments.force, arguments.figure)
    if not arguments.threshold > 0:
        raise UserError(f"--threshold {arguments.threshold:g}: give a number above 0")
    if not -1 <= arguments.least_value <= 1:
        raise UserError(f"--least-value {arguments.least_value:g}: is a correlation coefficient; use -1 to 1")
    if not 0 <= arguments.least_valid <= 1:
        raise UserError(f"--least-valid {arguments.least_valid:g}: is a share of pixels; use 0 to 1")
    # Before anything is read.
    velocimetry.schedule(arguments.window, arguments.overlap, arguments.fit, arguments.passes)
    given = (arguments.first, arguments.mask), (arguments.second, arguments.mask_second or arguments.mask)
    frames = [read_frame(path, mask, arguments.nan_is_masked) for path, mask in given]
    (first, second), masks = (frame for frame, _ in frames), (frames[0][1], frames[1][1])
    if first.shape != second.shape:
        shapes = f"{format_shape(first.shape)} and {format_shape(second.shape)}"
        raise UserError(f"{arguments.second}: {shapes} pixels; give two frames of one shape")
    library = library or Library()
    choose = chooser(library, arguments.variant, arguments.device)
    settings = {name: getattr(arguments, name) for name in SETTINGS}
    field = velocimetry.displacements(library, first, second, masks=masks, choose=choose, **settings)
    write(arguments.output, field)  # first: no failure to draw loses it
    if arguments.figure is not None:
        draw(arguments.figure, first, field)
    return 0


def read_frame(path: Path, of_mask: Path | None, nan_is_masked: bool) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """A frame as float32, and its mask, to which NaN are added where they may be. Pixels that do not count may have any
    value, none included."""
    mask = None
    if of_mask is not None:
        mask = matrices.read_matrices(of_mask, matrices.read_header(of_mask, stack=True))
    header = matrices.read_header(path, stack=True)
    if len(header.shape) != 2:
        raise UserError(
            f"{path}: {len(header.shape)} dimensions; give one frame, rows x cols, and of colour a channel or the mean"
        )
    array = matrices.read_matrices(path, header, mask is not None or nan_is_masked, matrices.WITHOUT_NAN)
    stack = matrices.as_stack(str(path), array)
    if mask is not None and mask.shape != stack.shape[1:]:
        raise UserError(
            f"{path}: its mask has {format_shape(mask.shape)} pixels; give one of {format_shape(stack.shape[1:])}"
        )
    if nan_is_masked:
        mask = matrices.without_nan(array, mask)
    valid = None if mask is None else mask[np.newaxis]
    matrices.check_finite(str(path), stack, valid, matrices.WITHOUT_NAN)
    made = conversion.converted(stack, np.float32, True, valid).stack
    matrices.check_range(str(path), made)
    return made[0], mask


def chooser(library: Any, variant: str, device: str) -> Callable[[Problem, int], Job]:
    """What runs a problem in so many calls: the variant, or the choice of auto for each kind of problem. The choice of auto
    measures what the variant has searched, where the variant has no such score."""
    named = None if variant == "auto" else Job.of_variant(find_variant(library.variants(), variant), device)
    auto = Auto(library, device)

    def choose(problem: Problem, calls: int) -> Job:
        if named and (problem.fields.score == "covariance" or not library.supports(problem, **asdict(named))):
            return named
        choice = auto.choose(problem, calls=calls)
        return Job(choice.variant, choice.params, "fp32", device)

    return choose


def write(where: str, field: velocimetry.Field) -> None:
    """The table of COLUMNS, a line a window."""
    y, x = np.meshgrid(field.y, field.x, indexing="ij")
    columns = [y, x, field.dy, field.dx, field.value, field.signal_to_noise, field.residual]
    columns += [field.outlier.astype(int), field.blank.astype(int)]
    outputs.write_columns(where, COLUMNS, [one.ravel() for one in columns])


def draw(target: Path, frame: NDArray[Any], field: velocimetry.Field) -> None:
    """Arrows over the first frame, coloured by their length; outliers are red. Of a fine grid only some are drawn."""
    from matplotlib.figure import Figure

    steps = [-(-extent // MOST_ARROWS) for extent in field.dy.shape]
    part = tuple(slice(step // 2, None, step) for step in steps)
    y, x = np.meshgrid(field.y, field.x, indexing="ij")
    rows, cols = frame.shape
    figure = Figure(figsize=(7.0, min(10.0, 0.6 + 6.0 * rows / cols)), layout="constrained")
    axes = figure.subplots()
    small = frame[:: max(1, rows // 512), :: max(1, cols // 512)]
    low, high = np.percentile(small, (1, 99.5))
    extent = (-0.5, cols - 0.5, rows - 0.5, -0.5)
    axes.imshow(small, cmap="gray", vmin=low, vmax=low + 2 * max(high - low, 1e-9), extent=extent)
    dy, dx, outlier = field.dy[part], field.dx[part], field.outlier[part]
    # Arrows are as long in the figure as they may be without meeting: a fraction of the distance of two.
    distances = [step * float(at[1] - at[0]) for step, at in zip(steps, (field.y, field.x)) if at.size > 1]
    spacing = min(distances, default=float(max(rows, cols)))
    longest = float(np.nanmax(np.hypot(dy, dx), initial=0)) or 1.0
    shown = {"angles": "xy", "scale_units": "xy", "scale": longest / spacing, "width": 0.002}
    kept = ~outlier
    arrows = axes.quiver(x[part][kept], y[part][kept], dx[kept], dy[kept], np.hypot(dy, dx)[kept], **shown)
    axes.quiver(x[part][outlier], y[part][outlier], dx[outlier], dy[outlier], color="red", **shown)
    figure.colorbar(arrows, ax=axes, label="Displacement [pixels]")
    axes.set_xlabel("x [pixels]")
    axes.set_ylabel("y [pixels]")
    with replaced_file(target) as file:
        figure.savefig(file, format=target.suffix[1:])
