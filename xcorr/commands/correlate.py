"""xcorr, the command of `scripts/xcorr`: cross-correlates a user's matrices with any variant of this tree."""

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from xcorr.choice.auto import FEASIBLE_US, Auto, Choice
from xcorr.choice.by_data import Side, converted, fp64_of, settled
from xcorr.commands import autocorr, formats, matrices, peaks, piv, scored
from xcorr.commands.formats import Header
from xcorr.commands.memory import check_memory
from xcorr.commands.outputs import check_finite, check_targets, write_peaks
from xcorr.errors import NOTHING_WRITTEN, Parser, UserError, command, warn
from xcorr.files import replaced_file
from xcorr.native import stream
from xcorr.native.library import Description, Library
from xcorr.problem import FORMS, Problem

AUTO = "auto"
COMMANDS = {"autocorr": autocorr.main, "piv": piv.main}  # of their own, in the place of LEFT.npy
DESCRIPTION = """\
Cross-correlates matrices of files: float32, float64 or integers; 1D: one row, 2D: one matrix, 3D: a stack,
4D (RIGHT only): tiles x patterns x rows x cols.
  out[p][sy][sx] = sum L[y][x] * R[y+sy][x+sx]
The sign is that of scipy.signal.correlate2d(R, L, mode)."""
EPILOG = f"""\
{formats.HELP}
forms, as pair p -> left, right (m rights a left; R rights in all):
  one-to-one 0, 0    one-to-many 0, p    n-to-mn p // m, p    n-to-m p // R, p % R
peaks (CSV): sy, sx of the largest value; sub_sy, sub_sx by a parabola through three points, an axis
  at a time (on the border of the window the integer shift is kept and border is 1; two equal values
  are half a pixel); peak_to_second = peak over the largest local peak outside 5 x 5, empty where none is
  positive. Of --result peak: sub_sy, sub_sx as there, second = that local peak. It needs no
  surface where the variant writes peaks itself, and no surface is copied from the device.
examples:
  xcorr reference.npy deformed.npy                                     peak on stdout
  xcorr template.npy frames.npy --window valid --output maps.npy       every value
  xcorr tiles.npy patterns.npy --right-order pattern --subtract-mean --peaks peaks.csv
  xcorr template.npy frames.npy --window valid --score zncc --result peak      where the template lies
  xcorr template.npy frame.npy --window valid --score zncc --result above:0.8:1000 --mask-left mask.npy
  xcorr still.npy moved.npy --boundary circular --score phase:0 --result peak:upsample=20
  xcorr noise.npy --same                                               autocorrelation
  xcorr autocorr frames.npy                                            C1D and R_max; see xcorr autocorr --help
  xcorr piv first.npy second.npy                                       displacements of particles; see xcorr piv --help
  xcorr a.npy b.npy --form n-to-m --window sy:-8..8,sx:-8..8 --variant cpu_row_streaming --peaks -
  xcorr --list"""


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="xcorr", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    add = parser.add_argument
    add("left", nargs="?", type=Path, metavar="LEFT.npy")
    add("right", nargs="?", type=Path, metavar="RIGHT.npy")
    text = "how matrices are paired (default: inferred where the counts allow one form only)"
    add("--form", choices=FORMS, help=text)
    text = "what the first axis of a 4D RIGHT counts; in a 3D RIGHT: what runs slower"
    add("--right-order", choices=("tile", "pattern"), help=text)
    add("--window", default="full", help="full (default), valid or sy:a..b,sx:c..d, inclusive")
    text = "from --list, or auto (default): the fastest by what was measured on this machine, else the nearest; "
    text += "no FFT where the range of the numbers would cost it the small outputs"
    add("--variant", default=AUTO, metavar="ID", help=text)
    add("--params", default="", help="key=value;..., a point of its grid (default: all threads)")
    add("--precision", help="fp32, fp64, ... (default: the variant's first; fp32 for auto)")
    add("--device", default="cpu", help="cpu (default) or cuda:N")
    scored.add_options(add)
    add("--stack", action="store_true", help=matrices.STACK_HELP)
    add("--subtract-mean", action="store_true", help="subtract each matrix's own mean first")
    add("--output", type=Path, metavar="OUT.npy", help="every value: pairs x out_rows x out_cols; or the records")
    add("--peaks", metavar="PEAKS.csv", help="the peak of each pair, or the records of --result; - is stdout (default)")
    text = "write --output even where sums overflow to inf or NaN (default: refused, nothing is written)"
    add("--allow-nonfinite", action="store_true", help=text)
    add("--force", action="store_true", help="replace existing output files")
    text = "surfaces kept in memory at a time (default 256); of a variant that writes the records of --result itself: "
    text += "its matrices and records"
    add("--chunk-mib", type=_positive, default=256, metavar="N", help=text)
    add("--quiet", action="store_true", help="no progress bar, no description")
    add("--list", action="store_true", help="the variants of this build")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


_positive.__name__ = "positive integer"


def main(argv: Sequence[str] | None = None, library: Any | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] in COMMANDS:
        return COMMANDS[words[0]](words[1:], library)
    return command(lambda words: run(build_parser().parse_args(words), library), words, NOTHING_WRITTEN)


def run(arguments: argparse.Namespace, library: Any | None = None) -> int:
    if arguments.list:
        print_variants((library or Library()).variants())
        return 0
    if arguments.same and arguments.right is not None:
        raise UserError(f"{arguments.right}: --same takes LEFT alone; leave one of them out")
    arguments.right = arguments.left if arguments.same else arguments.right
    if arguments.left is None or arguments.right is None:
        raise UserError("command line: LEFT.npy and RIGHT.npy are needed; see --help")
    if arguments.precision == "":
        raise UserError("--precision '': names none; write fp32 or fp64, or leave it out")
    if arguments.output is None and arguments.peaks is None:
        arguments.peaks = "-"
    inputs_named = [arguments.left, arguments.right, arguments.mask_left, arguments.mask_right]
    check_targets([arguments.output, arguments.peaks], inputs_named, arguments.force)
    headers = [matrices.read_header(path, arguments.stack) for path in (arguments.left, arguments.right)]
    library = library or Library()
    problem = make_problem(arguments, headers[0], headers[1], scored.sides_with_nan(arguments, headers))
    facts = library.describe(problem)
    ready = prepare(library, arguments, problem, facts, arguments.precision)
    check_space(arguments, headers, problem, facts, ready)
    masks = scored.read_masks(arguments, problem)
    sides = read_sides(arguments, headers, problem, masks)
    masks = {name: side.valid for name, side in zip(("left", "right"), sides) if side.valid is not None}
    wider = None
    if arguments.variant == AUTO and arguments.precision is None:
        wider = partial(fp64_of, partial(prepare, library, arguments, problem, facts, "fp64"), FEASIBLE_US)
    inputs, cost, in_fp64 = converted(library, problem, sides, ready.job.scalar, wider)
    ready = in_fp64 or ready
    for side, stack in zip(sides, inputs):
        matrices.check_range(side.name, stack)
    if ready.job.precision == "fp64":  # surfaces may take twice as much now
        check_space(arguments, headers, problem, facts, ready)
    choice = settled(library, problem, cost, inputs, ready.job, ready.choose)
    ready = replace(ready, job=replace(ready.job, variant=choice.variant, params=choice.params))
    compute(library, arguments, problem, facts, ready, inputs, masks, choice)
    return 0


@dataclass(frozen=True)
class Prepared:
    """A run before the data are read. `choose` gives the choice for the largest chunk once the risk of the data is
    known (fft_range.risk); until then the job of auto has no variant. `held`: bytes of each pair of a chunk that are in
    memory for its output."""

    job: stream.Job
    chunks: list[stream.Chunk]
    held: int
    choose: Callable[[str], Choice]

    @property
    def us(self) -> float:
        """Microseconds of the choice without a risk."""
        return self.choose("").us


def prepare(
    library: Any, arguments: argparse.Namespace, problem: Problem, facts: Description, precision: str | None
) -> Prepared:
    """The variant asked for with its default precision and parameters, and the chunks; or what auto needs.

    Where the variant writes the records of the result itself, no surface is made, and chunks are as large as their matrices
    and records allow. auto is asked for such chunks first.
    """
    limit = arguments.chunk_mib << 20
    if arguments.variant != AUTO:
        variant = library.variant(arguments.variant)
        has = variant["precisions"]
        if precision and precision not in has:
            way_out = "choose one of them or another --variant"
            raise UserError(f"precision '{precision}': {variant['id']} has {', '.join(has)}; {way_out}")
        job = stream.Job.of_variant(variant, arguments.device, precision or has[0], arguments.params)
        records = stream.writes_itself(library, job.variant, problem)

        def named(risk: str) -> Choice:
            told = f"{risk}; --variant auto takes one by definition where that is feasible" if risk else ""
            return Choice(job.variant, job.params, 0.0, "", told)

        return Prepared(job, *stream.chunks_of(problem, facts, job, limit, records), named)
    if arguments.params:
        raise UserError("--params: are of one variant, auto chooses them; name a --variant")
    job = stream.Job(AUTO, "", precision or "fp32", arguments.device)
    known = sorted({one for variant in library.variants() for one in variant["precisions"]})
    if job.precision not in known:
        raise UserError(f"precision '{job.precision}': this build has {', '.join(known)}; choose one")
    for records in (True, False) if problem.fields.result_kind != "surface" else (False,):
        chunks, held = stream.chunks_of(problem, facts, job, limit, records)
        chooser = Auto(library, arguments.device, calls=stream.calls_of(chunks))
        largest = max(chunks, key=lambda chunk: chunk.pairs)
        lefts, rights = (part.stop - part.start for part in (largest.lefts, largest.rights))
        part = replace(problem, lefts=lefts, rights=rights)
        fastest = chooser.choose(part, job.precision)  # refuses before anything is read
        if not records or stream.writes_itself(library, fastest.variant, problem):
            break

    def choose(risk: str) -> Choice:
        return chooser.choose(part, job.precision, risk) if risk else fastest

    return Prepared(job, chunks, held, choose)


def make_problem(arguments: argparse.Namespace, left: Header, right: Header, nan: tuple[bool, bool]) -> Problem:
    if len(left.shape) == 4:
        raise UserError(f"{arguments.left}: 4 dimensions; only RIGHT may be tiles x patterns x rows x cols")
    lefts = left.shape[0] if len(left.shape) == 3 else 1
    asked = arguments.form or ("n-to-mn" if arguments.same and lefts > 1 else None)
    form = matrices.infer_form(asked, lefts, right.shape, arguments.right_order)
    left_shape, right_shape = ((shape[-2], shape[-1]) for shape in (left.shape, right.shape))
    fields = scored.fields_of(arguments, nan)
    return Problem(form, left_shape, right_shape, lefts, prod(right.shape[:-2]), arguments.window, fields)


def summary(arguments: argparse.Namespace, problem: Problem, facts: Description, job: stream.Job, why: str) -> str:
    """What was run, why if that was auto's choice, and the shift origin of the output."""
    reason = f"auto: {job.variant} {job.params}".rstrip() + f": {why}\n" if why else ""
    return (
        f"{problem.form}{'' if arguments.form else ' (inferred)'}: {facts.pairs} pairs of "
        f"{facts.out_rows}x{facts.out_cols} shifts, {job.variant} {job.precision}, "
        f"{''.join(f'{name} {text}, ' for name, text in problem.fields.given.items())}"
        f"{facts.fmas:.3g} multiply-adds\n{reason}"
        f"shift origin: output index [0][0] is shift sy={facts.sy0} sx={facts.sx0}"
    )


def check_space(
    arguments: argparse.Namespace, headers: Sequence[Header], problem: Problem, facts: Description, ready: Prepared
) -> None:
    """UserError naming the bytes where memory or disk cannot hold the run."""
    elements = sum(prod(header.shape) for header in headers)
    as_read = sum(prod(header.shape) * header.dtype.itemsize for header in headers)
    parts = {
        "input files": max(as_read, 8 * elements * arguments.subtract_mean),
        "inputs": elements * np.dtype(ready.job.scalar).itemsize,
        "output at a time": max(chunk.pairs for chunk in ready.chunks) * ready.held,
    }
    check_memory("correlation", parts)
    if arguments.output is not None:
        needed = facts.result_bytes
        if problem.fields.result == "surface":
            needed = facts.pairs * stream.pair_bytes(facts, ready.job)
        free = shutil.disk_usage(arguments.output.parent).free
        if needed > free:
            raise UserError(
                f"{arguments.output}: needs {needed} bytes of disk, {free} are free; use --peaks or a smaller --window"
            )


def read_sides(
    arguments: argparse.Namespace, headers: Sequence[Header], problem: Problem, masks: dict[str, NDArray[Any]]
) -> tuple[Side, Side]:
    """Left and right stacks, checked and ordered, in the type of their files. What a mask leaves out may be anything."""
    made = []
    for name, header in zip(("left", "right"), headers):
        path: Path = getattr(arguments, name)
        masked = name in problem.fields.masked_sides
        stack = matrices.read_matrices(path, header, masked, matrices.WITHOUT_NAN)
        if name == "left":
            stack = matrices.as_stack(str(path), stack)
        else:
            stack = matrices.order_rights(str(path), stack, problem.lefts, problem.form, arguments.right_order)
        valid = masks.get(name)
        if arguments.nan_is_masked:
            valid = matrices.without_nan(stack, valid)
        if masked:
            matrices.check_finite(str(path), stack, valid, matrices.WITHOUT_NAN)
        if arguments.subtract_mean:
            stack = matrices.without_means(stack, valid)
        made.append(Side(str(path), stack, valid))
    return made[0], made[1]


def compute(
    library: Any,
    arguments: argparse.Namespace,
    problem: Problem,
    facts: Description,
    ready: Prepared,
    inputs: Sequence[NDArray[Any]],
    masks: dict[str, NDArray[Any]],
    choice: Choice,
) -> None:
    """Runs every chunk and writes what was asked for; files appear when all is done."""
    job = ready.job
    found: list[peaks.Peaks] = []
    records = None if problem.fields.result == "surface" else scored.Records(problem, arguments.allow_nonfinite)
    with nullcontext() if arguments.output is None else replaced_file(arguments.output) as output:
        if output is not None and records is None:
            descr = np.lib.format.dtype_to_descr(np.dtype(job.scalar))
            header = {"descr": descr, "fortran_order": False, "shape": facts.out_shape}
            np.lib.format.write_array_header_1_0(output, header)
        results = stream.run_chunks(library, problem, job, inputs[0], inputs[1], ready.chunks, masks=masks)
        with tqdm(total=facts.pairs, unit="pair", disable=True if arguments.quiet else None, leave=False) as bar:
            for chunk, out in results:
                if records is not None:
                    records.add(out, chunk.first)
                else:
                    if arguments.peaks is not None or not arguments.allow_nonfinite:
                        check_finite(out, chunk.first)
                    if arguments.peaks is not None:
                        found.append(peaks.find_peaks(out, (facts.sy0, facts.sx0)))
                    if output is not None:
                        output.write(out.data.cast("B"))
                if chunk.first == 0 and not arguments.quiet:  # later than any refusal
                    text = summary(arguments, problem, facts, job, choice.why)
                    bar.write(text, file=sys.stderr if arguments.peaks == "-" else sys.stdout)
                bar.update(chunk.pairs)
        if output is not None and records is not None:
            np.lib.format.write_array(output, records.array(), allow_pickle=False)
    if arguments.peaks is not None and records is not None:
        records.write_table(arguments.peaks)
    elif arguments.peaks is not None:
        write_peaks(arguments.peaks, problem, peaks.concatenate(found))
    if choice.warning:  # of the values: --quiet does not silence it
        warn(f"{job.variant}: {choice.warning}")


def print_variants(variants: list[dict[str, Any]]) -> None:
    """Ids, precisions, forms and grid points, a variant a line."""
    width = max(len(variant["id"]) for variant in variants)
    for variant in variants:
        points = [point for point in variant["points"] if point]
        some = points[:4] + ["..."] * (len(points) > 4)
        print(
            f"{variant['id']:<{width}}  {variant['backend']}  {','.join(variant['precisions'])}  "
            f"{','.join(variant['forms'])}  {' '.join(some)}".rstrip()
        )
        print(f"{'':<{width}}  {variant['summary']}")
