"""`xcorr.correlate` and `xcorr.plan`: the call in the conventions of the field (docs/call.md)."""

from __future__ import annotations

from typing import Any

from xcorr.call import device, host
from xcorr.call.foreign import kind_of
from xcorr.call.plan import Plan
from xcorr.call.question import SIDES, Options


def correlate(
    left: Any,
    right: Any,
    *,
    form: str | None = None,
    window: str = "full",
    score: str = "product",
    boundary: str = "zero",
    result: str = "surface",
    mask_left: Any = None,
    mask_right: Any = None,
    precision: str | None = None,
    variant: str = "auto",
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Cross-correlations of matrices: `out[sy][sx] = sum over (y, x) of left[y][x] * right[y + sy][x + sx]`.

    That is `scipy.signal.correlate2d(right, left, mode)`, and section 2 of Madera, Smelko and Kruliš,
    https://doi.org/10.1016/j.jpdc.2025.105054. Elements outside a matrix are zero (docs/design.md, Problem).

    Shapes. A side is (rows, cols), or (matrices, rows, cols). `right` None correlates `left` with itself. With `form` None:

        (h, w) and (h, w)            one-to-one    result (sy, sx)
        (h, w) and (n, h, w)         one-to-many   result (n, sy, sx)
        (l, h, w) and (r, h, w)      n-to-m        result (l, r, sy, sx): all pairs
        (l, h, w) and (h, w)         n-to-m        result (l, sy, sx)

    Left and right shapes h x w may differ. Two stacks are ambiguous: `form="n-to-mn"` pairs right p with left p // (r / l), result
    (r, sy, sx), and must be asked for. It pairs stacks of equal length one by one.

    Options. `window`: `full` (every shift at which the matrices overlap), `valid`, or `sy:a..b,sx:c..d` with both ends included;
    output index 0 is the smallest shift. `score`: product, covariance, ncc, zncc or phase. `boundary`: zero or circular. Masks, with
    ncc and zncc, are boolean or 0 and 1 in the shape of their side. Shifts are in pixels. docs/design.md, Fields of a problem, defines all.

    Results. `surface` (default), `peak`, `peaks:k`, `above:t:c` or `sum`. Records have the axes of a surface without (sy, sx). On the
    host they are structured arrays (xcorr.results); on a device they are 32-bit words, and `xcorr.columns` names their columns.
    Ties: of equal outputs the one with the smallest (sy, sx) is the peak. A plateau is fitted at its centre.

    Precision. None: fp32 where float32 holds the types of both sides, else fp64. The result is float32, of fp64 float64. Other
    precisions (`3xtf32`, `tf32`, ...) must be asked for. Host arrays of other types are converted by docs/design.md, Conversion.

    Variant. `auto` takes the fastest by measured times, and on the host also by the numbers, with a RuntimeWarning of what may be
    wrong. `cpu_fft:threads=all` names one with its parameters.

    Arrays. NumPy's on the CPU. Arrays of CuPy, PyTorch, Numba, and others with `__cuda_array_interface__` or `__dlpack__`, on their GPU:
    the result is of the same kind there, and the call returns before it is computed. `stream`: an integer handle, or an object with
    `cuda_stream`, `ptr` or `handle`; by default the current stream of the producer (docs/call.md). JAX's arrays are immutable, so
    calls with them wait for the result. `out` receives the result; it has its shape and type, and shares no memory with an input.

    NaN and infinity: a LibraryError on the host. A device does not look: one NaN spoils every output of an FFT, and the outputs whose
    overlap contains it of other variants. Empty inputs are a UserError, as are shapes and options that contradict each other. More
    detections than the capacity of `above` are a LibraryError on the host; on a device the count is in the record, and `Plan.check` raises.
    """
    options = _options(form, window, score, boundary, result, precision, variant, (mask_left, mask_right))
    arrays = (left, right, mask_left, mask_right)
    if kind_of(left) is not None:
        return device.correlate(options, arrays, out, stream)
    return host.correlate(options, host.HostInputs(*arrays), out, stream)


def plan(
    like_left: Any,
    like_right: Any,
    *,
    form: str | None = None,
    window: str = "full",
    score: str = "product",
    boundary: str = "zero",
    result: str = "surface",
    mask_left: Any = None,
    mask_right: Any = None,
    precision: str | None = None,
    variant: str = "auto",
) -> Plan:
    """A plan of `correlate` for arrays like these: `plan(left, right, out=None, stream=None)` computes with it.

    The arrays tell kind, device, shapes, strides and types; their numbers are not read. `variant="auto"` chooses by sizes alone.
    On a device a call with `out` copies nothing, allocates nothing and waits for nothing, unless a side is converted, which is one
    kernel more. It can be captured in a CUDA graph, which needs the plan to stay open. Errors as in `correlate`.
    """
    options = _options(form, window, score, boundary, result, precision, variant, (mask_left, mask_right))
    arrays = (like_left, like_right, mask_left, mask_right)
    if kind_of(like_left) is not None:
        return device.plan(options, arrays)
    inputs = host.HostInputs(*arrays)
    return host.HostPlan(options, inputs.shapes, inputs.types)


def _options(
    form: str | None,
    window: str,
    score: str,
    boundary: str,
    result: str,
    precision: str | None,
    variant: str,
    masks: tuple[Any, Any],
) -> Options:
    masked = tuple(side for side, mask in zip(SIDES, masks) if mask is not None)
    return Options(form, window, score, boundary, result, precision, variant, masked)
