"""Computations that count instructions or work: no rows, the same answer on every machine."""

from collections.abc import Mapping

from experiments.compare.instruction_mix import claimed
from plots.tables.claims.values import Arguments, Found, Value, known, named
from xcorr.problem import Problem

WARP = 32


def instruction_mix(args: Arguments) -> Found:
    """FMAs to shuffles of a step, `fma:shuffle`, for each of `steps`: a left and b right matrices, s
    overlaps, l left rows (paper sections 4.1 to 4.3)."""
    return Found([Value(_named(step), word="{}:{}".format(*claimed(step))) for step in args["steps"]])


def shuffles_beyond(args: Arguments) -> Found:
    """Shuffles of a step less those of a formula: `lefts` of each left row or matrix, `others`."""
    values = []
    for step in args["steps"]:
        a, b, s, l = (step.get(name, 1) for name in "absl")  # noqa: E741
        stated = args["lefts"] * a * l + b * (s + l - 1)
        values.append(known(_named(step), claimed(step)[1] - stated))
    return Found(values)


def mix_as_formula(args: Arguments) -> Found:
    """`same` or `other`: FMAs and shuffles of each of `steps` against pairs of numbers of `stated`."""
    values = []
    for step, stated in zip(args["steps"], args["stated"]):
        values.append(Value(_named(step), word="same" if claimed(step) == tuple(stated) else "other"))
    return Found(values)


def neutral_share(args: Arguments) -> Found:
    """Share of the lane operations of warp-shuffle that add nothing, in percent, at each of `sizes`."""
    return Found([known(str(size), 100.0 * (1.0 - size * size / lane_operations(size))) for size in args["sizes"]])


def lane_operations(width: int) -> int:
    """Lane operations of warp-shuffle for a pair of rows of `width` elements (useful: width^2). A warp takes 32
    neighbouring shifts and walks the columns that any of its lanes needs, in steps of 32 (paper section 4.1.1, listing
    1): executed / useful is 1 + 32 / width for multiples of 32."""
    total = 0
    for first in range(1 - width, width, WARP):
        start, stop = max(0, -first - (WARP - 1)), min(width, width - first)
        total += WARP * (-(-(stop - start) // WARP) * WARP)
    return total


def useful_fmas(args: Arguments) -> Found:
    """FMAs of the definition, summed shift by shift, over the project's count of them and over
    (h w)^2, for each of `shapes`."""
    values = []
    for height, width in args["shapes"]:
        counted = sum(
            (height - abs(dy)) * (width - abs(dx)) for dy in range(1 - height, height) for dx in range(1 - width, width)
        )
        text = f"{height}x{width}"
        values += [known(text, counted / _fmas(height, width)), known(text, counted / (height * width) ** 2)]
    return Found(values)


def products_formula(args: Arguments) -> Found:
    """(h (h+1) - 1) (w (w+1) - 1), the thesis' count of products, over the products of the definition."""
    return Found([known(f"{h}x{w}", (h * (h + 1) - 1) * (w * (w + 1) - 1) / _fmas(h, w)) for h, w in args["shapes"]])


def _fmas(height: int, width: int) -> int:
    return Problem("one-to-one", (height, width), (height, width), 1, 1, "full").fmas


def _named(step: Mapping[str, int]) -> str:
    return " ".join(f"{name}={count}" for name, count in step.items()) or "plain"


COMPUTATIONS = named(instruction_mix, shuffles_beyond, mix_as_formula, neutral_share, useful_fmas, products_formula)
