"""xcorr: cross-correlates a user's matrices with any variant of this tree.

out[p][sy][sx] = sum L[y][x] * R[y+sy][x+sx], zero outside either matrix: what lies at (y, x) in the
left and at (y+sy, x+sx) in the right raises the value at (sy, sx). `scripts/xcorr` is the command.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from xcorr.choice import fft_range
from xcorr.choice.auto import FEASIBLE_US, Auto, Choice
from xcorr.choice.by_data import FLAT, Cost, Side, fp64_of
from xcorr.commands import autocorr, formats, matrices, peaks, piv, scored
from xcorr.commands.formats import Header
from xcorr.commands.memory import check_memory
from xcorr.commands.outputs import check_finite, check_targets, find_peaks, write_peaks
from xcorr.errors import NOTHING_WRITTEN, Parser, UserError, command
from xcorr.files import replaced_file
from xcorr.native import conversion, stream
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
    add(
        "--form", choices=FORMS, help="how matrices are paired (default: inferred where the counts allow one form only)"
    )
    add(
        "--right-order",
        choices=("tile", "pattern"),
        help="what the first axis of a 4D RIGHT counts; in a 3D RIGHT: what runs slower",
    )
    add("--window", default="full", help="full (default), valid or sy:a..b,sx:c..d, inclusive")
    add(
        "--variant",
        default=AUTO,
        metavar="ID",
        help="from --list, or auto (default): the fastest by what was measured on this machine, else the nearest; "
        "no FFT where the range of the numbers would cost it the small outputs",
    )
    add("--params", default="", help="key=value;..., a point of its grid (default: all threads)")
    add("--precision", help="fp32, fp64, ... (default: the variant's first; fp32 for auto)")
    add("--device", default="cpu", help="cpu (default) or cuda:N")
    scored.add_options(add)
    add("--stack", action="store_true", help=matrices.STACK_HELP)
    add("--subtract-mean", action="store_true", help="subtract each matrix's own mean first")
    add("--output", type=Path, metavar="OUT.npy", help="every value: pairs x out_rows x out_cols; or the records")
    add("--peaks", metavar="PEAKS.csv", help="the peak of each pair, or the records of --result; - is stdout (default)")
    add(
        "--allow-nonfinite",
        action="store_true",
        help="write --output even where sums overflow to inf or NaN (default: refused, nothing is written)",
    )
    add("--force", action="store_true", help="replace existing output files")
    add(
        "--chunk-mib",
        type=_positive,
        default=256,
        metavar="N",
        help="surfaces kept in memory at a time (default 256); of a variant that "
        "writes the records of --result itself: its matrices and records",
    )
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
    ready = prepare(library, arguments, problem, facts)
    check_space(arguments, headers, problem, facts, ready)
    masks = scored.read_masks(arguments, problem)
    sides = read_sides(arguments, headers, problem, masks)
    masks = {name: side.valid for name, side in zip(("left", "right"), sides) if side.valid is not None}
    ready, inputs, cost = convert(library, arguments, problem, facts, ready, sides)
    if ready.job.precision == "fp64":  # surfaces may take twice as much now
        check_space(arguments, headers, problem, facts, ready)
    job, remarks = settle(library, problem, facts, ready.job, inputs, ready.choose, cost)
    compute(library, arguments, problem, facts, job, inputs, masks, ready.chunks, remarks)
    return 0


@dataclass(frozen=True)
class Prepared:
    """A run before the data are read. Of auto the job has no variant, and `choose` gives the choice for the largest chunk once
    the risk of the data is known (fft_range.risk). `held`: bytes of each pair of a chunk that are in memory for its output."""

    job: stream.Job
    chunks: list[stream.Chunk]
    held: int
    choose: Callable[[str], Choice] | None = None


@dataclass(frozen=True)
class Remarks:
    """Why auto chose the variant, and what the user must know of its values; empty where there is nothing to say."""

    why: str = ""
    warning: str = ""


def convert(
    library: Any,
    arguments: argparse.Namespace,
    problem: Problem,
    facts: Description,
    ready: Prepared,
    sides: tuple[Side, Side],
) -> tuple[Prepared, tuple[NDArray[Any], NDArray[Any]], Cost]:
    """Both stacks in the scalar type, and what that cost. auto takes fp64 where float32 costs a score that does not change
    with an offset too much, unless the user has named a precision or nothing feasible has fp64."""
    made = (sides[0].converted(problem, ready.job.scalar), sides[1].converted(problem, ready.job.scalar))
    cost = Cost.of(problem, facts, sides, made)
    if cost.loss and ready.choose and arguments.precision is None and conversion.is_offset_free(problem.fields):
        wider = argparse.Namespace(**{**vars(arguments), "precision": "fp64"})
        prepared: list[Prepared] = []

        def fastest() -> Choice:
            prepared.append(prepare(library, wider, problem, facts))
            assert prepared[0].choose is not None
            return prepared[0].choose("")

        if fp64_of(fastest, FEASIBLE_US) is not None:
            ready = prepared[0]
            made = (sides[0].converted(problem, np.float64), sides[1].converted(problem, np.float64))
    for side, one in zip(sides, made):
        matrices.check_range(side.name, one.stack)
    return ready, (made[0].stack, made[1].stack), cost


def settle(
    library: Any,
    problem: Problem,
    facts: Description,
    job: stream.Job,
    inputs: tuple[NDArray[Any], NDArray[Any]],
    choose: Callable[[str], Choice] | None,
    cost: Cost,
) -> tuple[stream.Job, Remarks]:
    """The job, now that the data are known: auto takes no FFT where their range would cost it the small outputs."""
    name = choose("").variant if choose else job.variant
    risk, notes = "", []
    if library.variant(name)["algorithm_class"].startswith("fft"):
        risk = fft_range.risk(problem, facts.max_overlap, *inputs, job.precision, job.device)
    if cost.loss and job.precision != "fp64":
        notes.append(cost.warning(problem))
    notes += [FLAT] * cost.loss.flat
    if choose is None:
        if risk:
            notes.append(risk + "; --variant auto takes one by definition where that is feasible")
        return job, Remarks(warning="; ".join(notes))
    choice = choose(risk)
    notes += [choice.warning] * bool(choice.warning)
    why = f"{choice.why}; fp64: {cost.text}" if cost.loss and job.precision == "fp64" else choice.why
    return replace(job, variant=choice.variant, params=choice.params), Remarks(why, "; ".join(notes))


def prepare(library: Any, arguments: argparse.Namespace, problem: Problem, facts: Description) -> Prepared:
    """The variant asked for with its default precision and parameters, and the chunks; or what auto needs.

    Where the variant writes the records of the result itself, no surface is made, and chunks are as large as their matrices
    and records allow. auto is asked for such chunks first.
    """
    limit = arguments.chunk_mib << 20
    if arguments.variant != AUTO:
        job = named_job(library.variant(arguments.variant), arguments)
        return Prepared(
            job, *stream.chunks_of(problem, facts, job, limit, stream.writes_itself(library, job.variant, problem))
        )
    if arguments.params:
        raise UserError("--params: are of one variant, auto chooses them; name a --variant")
    job = stream.Job(AUTO, "", arguments.precision or "fp32", arguments.device)
    known = sorted({one for variant in library.variants() for one in variant["precisions"]})
    if job.precision not in known:
        raise UserError(f"precision '{job.precision}': this build has {', '.join(known)}; choose one")
    for records in (True, False) if problem.fields.result_kind != "surface" else (False,):
        chunks, held = stream.chunks_of(problem, facts, job, limit, records)
        chooser = Auto(library, arguments.device, calls=stream.calls_of(chunks))
        part = part_of(problem, max(chunks, key=lambda chunk: chunk.pairs))
        fastest = chooser.choose(part, job.precision)  # refuses before anything is read
        if not records or stream.writes_itself(library, fastest.variant, problem):
            break

    def choose(risk: str) -> Choice:
        return chooser.choose(part, job.precision, risk) if risk else fastest

    return Prepared(job, chunks, held, choose)


def part_of(problem: Problem, chunk: stream.Chunk) -> Problem:
    """The problem of a chunk."""
    lefts, rights = (part.stop - part.start for part in (chunk.lefts, chunk.rights))
    return replace(problem, lefts=lefts, rights=rights)


def named_job(variant: dict[str, Any], arguments: argparse.Namespace) -> stream.Job:
    """A variant's job; its default precision and parameters where none are asked for."""
    precision = arguments.precision or variant["precisions"][0]
    if precision not in variant["precisions"]:
        raise UserError(
            f"precision '{precision}': {variant['id']} has {', '.join(variant['precisions'])}; "
            "choose one of them or another --variant"
        )
    return stream.Job.of_variant(variant, arguments.device, precision, arguments.params)


def make_problem(arguments: argparse.Namespace, left: Header, right: Header, nan: tuple[bool, bool]) -> Problem:
    if len(left.shape) == 4:
        raise UserError(f"{arguments.left}: 4 dimensions; only RIGHT may be tiles x patterns x rows x cols")
    lefts = left.shape[0] if len(left.shape) == 3 else 1
    asked = arguments.form or ("n-to-mn" if arguments.same and lefts > 1 else None)
    form = matrices.infer_form(asked, lefts, right.shape, arguments.right_order)
    rights = int(np.prod(right.shape[:-2], dtype=object))
    fields = scored.fields_of(arguments, nan)
    left_shape, right_shape = ((shape[-2], shape[-1]) for shape in (left.shape, right.shape))
    return Problem(form, left_shape, right_shape, lefts, rights, arguments.window, fields)


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
    job = ready.job
    elements = sum(int(np.prod(header.shape, dtype=object)) for header in headers)
    as_read = sum(int(np.prod(header.shape, dtype=object)) * header.dtype.itemsize for header in headers)
    chunk = max(chunk.pairs for chunk in ready.chunks) * ready.held
    check_memory(
        "correlation",
        {
            "input files": max(as_read, 8 * elements * arguments.subtract_mean),
            "inputs": elements * np.dtype(job.scalar).itemsize,
            "output at a time": chunk,
        },
    )
    if arguments.output is not None:
        needed = (
            facts.pairs * stream.pair_bytes(facts, job) if problem.fields.result == "surface" else facts.result_bytes
        )
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
    job: stream.Job,
    inputs: tuple[NDArray[Any], NDArray[Any]],
    masks: dict[str, NDArray[Any]],
    chunks: list[stream.Chunk],
    remarks: Remarks,
) -> None:
    """Runs every chunk and writes what was asked for; files appear when all is done."""
    found: list[peaks.Peaks] = []
    origin = (facts.sy0, facts.sx0)
    records = None if problem.fields.result == "surface" else scored.Records(problem, arguments.allow_nonfinite)
    with nullcontext() if arguments.output is None else replaced_file(arguments.output) as output:
        if output is not None and records is None:
            header = {
                "descr": np.lib.format.dtype_to_descr(np.dtype(job.scalar)),
                "fortran_order": False,
                "shape": facts.out_shape,
            }
            np.lib.format.write_array_header_1_0(output, header)
        results = stream.run_chunks(library, problem, job, *inputs, chunks, masks=masks)
        with tqdm(total=facts.pairs, unit="pair", disable=True if arguments.quiet else None, leave=False) as bar:
            for chunk, out in results:
                if records is not None:
                    records.add(out, chunk.first)
                elif arguments.peaks is not None:
                    found.append(find_peaks(out, origin, chunk.first))
                if output is not None and records is None:
                    if not arguments.allow_nonfinite:
                        check_finite(out, chunk.first)
                    output.write(out.data.cast("B"))
                if chunk.first == 0 and not arguments.quiet:  # later than any refusal
                    text = summary(arguments, problem, facts, job, remarks.why)
                    bar.write(text, file=sys.stderr if arguments.peaks == "-" else sys.stdout)
                bar.update(chunk.pairs)
        if output is not None and records is not None:
            np.lib.format.write_array(output, records.array(), allow_pickle=False)
    if arguments.peaks is not None and records is not None:
        records.write_table(arguments.peaks)
    elif arguments.peaks is not None:
        write_peaks(arguments.peaks, problem, peaks.concatenate(found))
    if remarks.warning:  # of the values: --quiet does not silence it
        print(f"warning: {job.variant}: {remarks.warning}", file=sys.stderr)


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
