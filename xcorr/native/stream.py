"""Correlations in chunks of pairs, so that the output needs bounded memory.

A chunk has consecutive pairs: whole lefts with all their rights if these fit, else some rights of one left. It is a problem of
the same form, so every variant of the whole problem computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.native.arrays import Windows
from xcorr.native.library import Description
from xcorr.native.precisions import scalar_type
from xcorr.native.variants import Variant, default_params
from xcorr.problem import Problem, rights_of_a_left

DEFAULT_CHUNK_BYTES = 256 << 20


@dataclass(frozen=True)
class Chunk:
    """Pairs `first` to `first + pairs - 1` of a problem: their lefts and rights."""

    first: int
    pairs: int
    lefts: slice
    rights: slice


@dataclass(frozen=True)
class Job:
    """Variant, parameters, precision and device of a computation. `precision` implies the scalar type."""

    variant: str
    params: str = ""
    precision: str = "fp32"
    device: str = "cpu"

    @classmethod
    def of_variant(cls, variant: dict[str, Any], device: str, precision: str = "fp32", params: str = "") -> Job:
        """A job of an entry of the catalogue, by default with its default parameters."""
        return cls(variant["id"], params or default_params(variant), precision, device)

    @property
    def scalar(self) -> type:
        return scalar_type(self.precision)

    def correlate(
        self,
        library: Any,
        problem: Problem,
        left: NDArray[Any] | Windows,
        right: NDArray[Any] | Windows | None,
        out: NDArray[Any] | None = None,
        **masks: NDArray[Any],
    ) -> NDArray[Any]:
        """`library.correlate` with the settings of this job."""
        found: NDArray[Any] = library.correlate(problem, left, right, out=out, **asdict(self), **masks)
        return found


def plan_chunks(problem: Problem, pair_bytes: int, limit: int) -> list[Chunk]:
    """Chunks in pair order, of outputs of at most `limit` bytes or one pair."""
    each = rights_of_a_left(problem)
    most = max(1, limit // pair_bytes)
    grouped = problem.form == "n-to-mn"
    chunks = []
    step = max(1, most // each)
    for left in range(0, problem.lefts, step):
        lefts = slice(left, min(left + step, problem.lefts))
        for start in range(0, each, most):
            rights = min(most, each - start)  # of each left
            pairs = (lefts.stop - left) * rights
            first = left * each + start
            of_rights = slice(first, first + pairs) if grouped else slice(start, start + rights)
            chunks.append(Chunk(first, pairs, lefts, of_rights))
    return chunks


def calls_of(chunks: list[Chunk]) -> int:
    """Number of calls that share the plan of the largest chunk."""
    pairs = [chunk.pairs for chunk in chunks]
    return pairs.count(max(pairs))


def pair_bytes(facts: Description, job: Job) -> int:
    """Bytes of a surface."""
    return facts.out_rows * facts.out_cols * np.dtype(job.scalar).itemsize


def writes_itself(library: Any, variant: str, problem: Problem) -> bool:
    """Whether the variant writes the records of the problem without a surface."""
    result = problem.fields.result
    return result != "surface" and not Variant.from_list(library.variant(variant)).is_reduced(result)


def chunks_of(problem: Problem, facts: Description, job: Job, limit: int, records: bool) -> tuple[list[Chunk], int]:
    """Chunks of at most `limit` bytes, and output bytes of a pair in memory: of its surface, or with `records` of its records."""
    surface = pair_bytes(facts, job)
    if not records:
        return plan_chunks(problem, surface, limit), surface
    held = -(-facts.result_bytes // facts.pairs)
    return plan_chunks(problem, min(surface, input_bytes(problem, job.scalar) + held), limit), held


def input_bytes(problem: Problem, scalar: type) -> int:
    """Input bytes of one pair of a chunk. Bytes of a shared matrix are divided among its pairs."""
    each, size = rights_of_a_left(problem), np.dtype(scalar).itemsize
    left, right = math.prod(problem.left) / each, math.prod(problem.right)
    shared = problem.lefts if problem.form == "n-to-m" else 1
    return math.ceil(size * (left + right / shared))


def run_chunks(
    library: Any,
    problem: Problem,
    job: Job,
    left: NDArray[Any],
    right: NDArray[Any],
    chunks: list[Chunk],
    compute: Callable[..., NDArray[Any]] | None = None,
    masks: Mapping[str, NDArray[Any]] | None = None,
) -> Iterator[tuple[Chunk, NDArray[Any]]]:
    """Each chunk with its output, pairs x out_rows x out_cols, valid until the next chunk, or with its records. Detections
    number the pairs of the chunk.

    `left`, `right`: stacks of the job's scalar type. `masks`: by "left" and "right". `compute(problem, left, right, out)`
    replaces the job's variant (the float64 reference).
    """
    shape = library.describe(problem).out_shape[1:]
    scalar = np.float64 if compute else job.scalar
    most = max(chunk.pairs for chunk in chunks)
    buffer: NDArray[Any] | None = np.empty((most, *shape), scalar) if problem.fields.result == "surface" else None
    for chunk in chunks:
        lefts, rights = left[chunk.lefts], right[chunk.rights]
        one_array = problem.fields.same == "yes" and chunk.lefts == chunk.rights
        fields = replace(problem.fields, same="yes" if one_array else "no")
        part = replace(problem, lefts=len(lefts), rights=len(rights), fields=fields)
        out = None if buffer is None else buffer[: chunk.pairs]
        if compute:
            out = compute(part, lefts, rights, out=out)
        else:
            own = {f"{side}_mask": mask[getattr(chunk, side + "s")] for side, mask in (masks or {}).items()}
            out = job.correlate(library, part, lefts, None if one_array else rights, out, **own)
        yield chunk, out
