"""Options for fields, masks and tables of records of the command `xcorr`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr import results
from xcorr.commands import matrices
from xcorr.commands.formats import Header
from xcorr.commands.outputs import write_columns
from xcorr.errors import UserError
from xcorr.fields import NORMALISED, Fields
from xcorr.problem import Problem, format_shape, pair_indices

PLACE = ("sy", "sx", "value")


def add_options(add: Any) -> None:
    """Adds the options for fields. `add`: add_argument of the parser."""
    add("--score", default="product", help="product (default), covariance, ncc, zncc or phase:p")
    add("--boundary", default="zero", help="zero (default) or circular: indices of R modulo its shape")
    text = (
        "surface (default): every value; peak[:gaussian|:upsample=20], peaks:k, above:t:c[:d] (at most c values of at "
    )
    text += (
        "least t; 8mad: 8 deviations above the median; none closer than d pixels to a larger one) or sum: records, to "
    )
    text += "--peaks as CSV and to --output as .npy"
    add("--result", default="surface", help=text)
    add("--mask-left", type=Path, metavar="FILE.npy", help="0 or 1 a pixel of LEFT, with ncc and zncc; 2D: for all")
    add("--mask-right", type=Path, metavar="FILE.npy", help="the same of RIGHT")
    text = "elements that are NaN do not count, as those of a mask; ncc, zncc"
    add("--nan-is-masked", action="store_true", help=text)
    text = "of ncc and zncc: the least overlap as a share of the largest one in the window; below it the score is 0 "
    add("--min-overlap", metavar="M", help=text + "(default: 0.3)")
    add("--same", action="store_true", help="LEFT against itself; leave RIGHT out")


def sides_with_nan(arguments: argparse.Namespace, headers: Sequence[Header]) -> tuple[bool, bool]:
    """Whether left and right have NaN to mask, since a mask takes longer. UserError for a score without masks."""
    if not arguments.nan_is_masked:
        return False, False
    if arguments.score.partition(":")[0] not in NORMALISED:
        raise UserError(
            f"--nan-is-masked: --score {arguments.score} counts every element; use --score zncc or ncc, or replace NaN"
        )

    def has_nan(path: Path, header: Header) -> bool:
        may_have = header.dtype.kind == "f"
        return may_have and bool(np.isnan(matrices.read_matrices(path, header, allow_nonfinite=True)).any())

    left = has_nan(arguments.left, headers[0])
    return left, left if arguments.same else has_nan(arguments.right, headers[1])


def fields_of(arguments: argparse.Namespace, nan: tuple[bool, bool] = (False, False)) -> Fields:
    """Fields of the options. UserError for illegal or contradictory values. `nan`: result of `sides_with_nan`."""
    score = arguments.score
    if arguments.min_overlap is not None:
        if score not in NORMALISED:
            raise UserError(
                f"--min-overlap {arguments.min_overlap}: is of --score ncc or zncc without a number; leave it out"
            )
        score = f"{score}:{arguments.min_overlap}"
    given = (arguments.mask_left is not None or nan[0], arguments.mask_right is not None or nan[1])
    masks = {(True, True): "both", (True, False): "left", (False, True): "right"}.get(given, "none")
    same = "yes" if arguments.same else "no"
    return Fields(arguments.boundary, score, masks, arguments.result, same)


def read_masks(arguments: argparse.Namespace, problem: Problem) -> dict[str, NDArray[Any]]:
    """Stacks of masks from files, by side, in the order of the matrices. A single mask applies to every matrix."""
    found = {}
    shapes = {"left": (problem.lefts, *problem.left), "right": (problem.rights, *problem.right)}
    for side in problem.fields.masked_sides:
        path = getattr(arguments, f"mask_{side}")
        if path is None:  # only NaN are masked
            continue
        mask = matrices.read_matrices(path, matrices.read_header(path, arguments.stack))
        if side == "right" and mask.ndim > 2:
            mask = matrices.order_rights(str(path), mask, problem.lefts, problem.form, arguments.right_order)
        if mask.ndim > 3 or mask.shape[-2:] != shapes[side][1:] or (mask.ndim == 3 and len(mask) != shapes[side][0]):
            needed = format_shape(shapes[side][1:])
            raise UserError(f"{path}: shape {format_shape(mask.shape)}; give a mask of {needed} or one a matrix")
        if not np.isin(mask, (0, 1)).all():
            raise UserError(f"{path}: has other values than 0 and 1; save a mask of booleans, as of mask > 0")
        found[side] = np.broadcast_to(mask.astype(np.uint8), shapes[side])
    return found


def _of_peaks(found: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Columns of peaks: the shift in pixels, the value, and the shift to a fraction of a pixel."""
    whole = {name: found[name] for name in PLACE}
    return whole | {f"sub_{axis}": found[axis] + found[f"sub_{axis}"].astype(np.float64) for axis in ("sy", "sx")}


class Records:
    """Collects the records of the chunks of a run."""

    def __init__(self, problem: Problem, allow_nonfinite: bool) -> None:
        self._problem, self._allow = problem, allow_nonfinite
        self._parts: list[NDArray[Any]] = []
        self._count = 0

    def add(self, found: NDArray[Any], first: int) -> None:
        """Adds records of the pairs from `first` on. UserError for outputs that are not finite and for more detections than the
        capacity."""
        fields = self._problem.fields
        if fields.result_kind == "above":
            found["pair"] += first
            self._count += len(found)
            if self._count > fields.capacity:
                raise UserError(
                    f"result '{fields.result}': {self._count} outputs or more are at least the threshold, the capacity is "
                    f"{fields.capacity}; use a larger capacity or threshold, or a least distance (above:t:c:d)"
                )
        elif not self._allow:
            spoiled = ~np.isfinite(found) if fields.result == "sum" else found["flags"] & results.NOT_FINITE != 0
            if spoiled.any():
                pair = first + int(np.argwhere(spoiled)[0][0])
                raise UserError(f"pair {pair}: the correlation overflows; scale the matrices, or say --allow-nonfinite")
        self._parts.append(found)

    def array(self) -> NDArray[Any]:
        """All records."""
        return np.concatenate(self._parts)

    def write_table(self, where: str) -> None:
        """Writes a CSV of the records to a file or, for '-', to stdout. Missing peaks have no line."""
        kind, found = self._problem.fields.result_kind, self.array()
        left, right = pair_indices(self._problem)
        pair: NDArray[Any] = np.arange(len(found))
        if kind == "above":
            pair, columns = found["pair"], {name: found[name] for name in PLACE}
        elif kind == "sum":
            columns = {"sum": found}
        elif kind == "peaks":
            pair, rank = (index.ravel() for index in np.indices(found.shape))
            exists = ~np.isnan(found["value"].ravel())
            pair, columns = pair[exists], {"rank": rank[exists], **_of_peaks(found.ravel()[exists])}
        else:
            bits = {"border": results.AT_BORDER, "plateau": results.ON_PLATEAU}
            flags = {name: (found["flags"] & bit != 0).astype(int) for name, bit in bits.items()}
            columns = {**_of_peaks(found), "second": found["second"], **flags}
        names = ("pair", "left", "right", *columns)
        write_columns(where, names, [pair, left[pair], right[pair], *columns.values()])
