"""ctypes binding of libxcorr.so: every variant and the float64 reference on NumPy arrays.

    library = Library()
    problem = Problem(form="n-to-mn", left=(96, 96), right=(96, 96), lefts=86, rights=4300)
    out = library.correlate(problem, lefts, rights, variant="cpu_fft")    # pairs x out_rows x
    out_cols

A plan and its memory are kept for the next call with the same problem, variant and device. It is made without timing; on a
CPU, call REPEATS + 1 of a kind makes one as `session` does, so that the last bits of an FFT's outputs may change there. With
fields of a problem (docs/design.md, Fields of a problem):

    problem = Problem("n-to-m", (h, w), (H, W), 3, 8, "valid", score="zncc", result="peak")
    peaks = library.correlate(problem, templates, frames, variant="cpu_fft")    # xcorr.results.PEAK, one a pair

With `views="windows"` a side is an xcorr.native.arrays.Windows(frame, offsets): its matrices are windows of a frame that is not copied.

Inputs are real and, unless `allow_nonfinite`, finite also in the scalar type of the precision: one NaN or infinity
spoils every output of a variant that transforms, and only those whose overlap holds it of the others. Outputs are not
looked at: sums beyond the range of the type are infinite.

A process that is forked may go on with the library on the CPU, unless another thread computed at that moment. CUDA does
not work in a child of a process that has used it. In both cases calls are refused with a LibraryError.

`out[p][sy][sx] = sum L[y][x] * R[y+sy][x+sx]`, terms outside either matrix are zero; index 0 is the
shift (sy0, sx0) that `describe` tells. The C API is that of harness/library/c_api.cpp.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr import results
from xcorr.errors import LibraryError, nearest
from xcorr.native import conversion
from xcorr.native.arrays import check_out, dense, mask_of, windows
from xcorr.native.precisions import scalar_type
from xcorr.paths import ROOT, build_directory
from xcorr.problem import Problem

_ERROR_CAPACITY = 4096
_TOO_SMALL = 2
REPEATS = 100  # calls of one kind by a plan without timing; then it is worth seconds that may make each call shorter
KEPT_SESSIONS = 4  # of them each holds a plan, its workspace and, on a GPU, inputs and output


@dataclass(frozen=True)
class Description:
    """Facts of a problem; `sy0, sx0` is the shift of output index [0][0]."""

    pairs: int
    out_rows: int
    out_cols: int
    sy0: int
    sx0: int
    fmas: int
    bytes: int
    max_overlap: int
    result_bytes: int  # in fp32

    @property
    def out_shape(self) -> tuple[int, int, int]:
        return (self.pairs, self.out_rows, self.out_cols)


def find_variant(variants: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The entry of variant `name`; LibraryError naming the nearest id when there is none."""
    for variant in variants:
        if variant["id"] == name:
            return variant
    hint = nearest(name, (variant["id"] for variant in variants))
    raise LibraryError(f"variant '{name}': unknown; {hint} (--list shows all)")


def _text(name: str, value: Any) -> str:
    """A text that C reads to its end; LibraryError for anything else."""
    if not isinstance(value, str):
        raise LibraryError(f"{name} {value!r}: not a text; give one as in the example of xcorr.native.library")
    if "\0" in value or not value.isprintable():
        raise LibraryError(f"{name} {value!r}: holds a character that cannot be printed; leave it out")
    return value


def _asked(problem: Problem, **settings: str) -> bytes:
    """A problem as the C API takes it, with what to compute it by."""
    sizes = {name: getattr(problem, name) for name in ("form", "left", "right", "lefts", "rights", "window")}
    return json.dumps({**settings, **sizes, **problem.fields.given}).encode()


def _settings(variant: Any, params: Any, precision: Any, device: Any) -> dict[str, str]:
    given = {"variant": variant, "params": params, "precision": precision, "device": device}
    return {name: _text(name, value) for name, value in given.items()}


# Whose locks a thread of the parent may have held when this process was forked.
_LOCKED: weakref.WeakSet[Any] = weakref.WeakSet()


def _renew_locks() -> None:
    for one in _LOCKED:
        one._new_locks()


os.register_at_fork(after_in_child=_renew_locks)


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(ROOT))
    except ValueError:
        return str(path)


class _Arrays(ctypes.Structure):
    """struct xcorr_arrays of harness/library/c_api.cpp."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("left", "right", "out", "left_mask", "right_mask")),
        *((name, ctypes.c_void_p) for name in ("left_offsets", "right_offsets")),
        *((name, ctypes.c_int64) for name in ("left_pitch", "right_pitch", "left_elements", "right_elements")),
    ]


class Session:
    """One problem planned for one variant and device, to be computed any number of times.

    One computation at a time: other threads wait. `close` frees the plan and its memory.
    """

    def __init__(self, library: Library, problem: Problem, fields: Mapping[str, str]):
        self._library = library
        self._problem = problem
        self._scalar = scalar_type(fields["precision"])
        self._new_locks()
        _LOCKED.add(self)
        self._shape = library.describe(problem).out_shape
        self.uses = 0  # by `Library.correlate`
        self._handle: ctypes.c_void_p | None = ctypes.c_void_p()
        library._call("open", _asked(problem, **fields), ctypes.byref(self._handle))

    def _new_locks(self) -> None:
        self._lock = threading.Lock()

    def correlate(
        self,
        left: NDArray[Any],
        right: NDArray[Any] | None = None,
        out: NDArray[Any] | None = None,
        *,
        left_mask: NDArray[Any] | None = None,
        right_mask: NDArray[Any] | None = None,
        allow_nonfinite: bool = False,
    ) -> NDArray[Any]:
        """As `Library.correlate`; nothing is planned and, where `out` is given, nothing allocated."""
        inputs = _Inputs(self._problem, self._scalar, (left, right), (left_mask, right_mask), allow_nonfinite)
        return inputs.into(self._compute, self._shape, out)

    def _compute(self, inputs: _Inputs, out: NDArray[Any]) -> None:
        given = (*inputs.stacks, out, *inputs.masks, *inputs.offsets)
        arrays = _Arrays(*(None if one is None else one.ctypes.data for one in given), *inputs.pitches_and_sizes)
        with self._lock:
            if self._handle is None:
                raise LibraryError("session: closed; open another one")
            self._library._call("compute_with", self._handle, ctypes.byref(arrays))

    def close(self) -> None:
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                self._library._call("close", handle)


class _Inputs:
    """What a computation reads: stacks of the scalar type, `right` None where it is the left one, and masks or None.

    LibraryError for arrays that are not those of the problem.
    """

    def __init__(
        self, problem: Problem, scalar: type, stacks: tuple[Any, Any], masks: tuple[Any, Any], allow_nonfinite: bool
    ) -> None:
        self.fields, self.scalar = problem.fields, scalar
        if self.fields.views == "channels":
            raise LibraryError("views 'channels': the C API takes them; give dense arrays")
        shapes = ((problem.lefts, *problem.left), (problem.rights, *problem.right))
        sides = tuple(zip(("left", "right"), stacks, masks, shapes))
        if self.fields.same == "yes":
            if stacks[1] is not None and stacks[1] is not stacks[0]:
                raise LibraryError("right: with same yes there is one array; give left only")
            sides = sides[:1]
        named = self.fields.masked_sides
        self.masks = [
            mask_of(side, one, shape, side in named) for side, one, shape in zip(("left", "right"), masks, shapes)
        ]
        offset_free = conversion.is_offset_free(self.fields)
        self.offsets: list[NDArray[Any] | None] = [None, None]
        self.stacks: list[NDArray[Any] | None]
        if self.fields.views == "windows":
            made = [windows(name, one, shape, scalar, allow_nonfinite, offset_free) for name, one, _, shape in sides]
            self.stacks = [frame for frame, _ in made]
            self.offsets = [offsets for _, offsets in made] + [None] * (2 - len(made))
        else:
            self.stacks = [
                dense(name, one, shape, scalar, allow_nonfinite, offset_free, valid)
                for (name, one, _, shape), valid in zip(sides, self._valid(len(sides)))
            ]
        self.stacks += [None] * (2 - len(self.stacks))

    def _valid(self, sides: int) -> list[NDArray[Any] | None]:
        """The mask of each array. Of one that both sides share, an element counts where either mask has it."""
        left, right = self.masks
        return [None if left is None or right is None else left | right] if sides == 1 else [left, right]

    @property
    def pitches_and_sizes(self) -> list[int]:
        """Of views: columns of the left and the right frame, and their elements; else 0."""
        frames = self.stacks if self.fields.views == "windows" else [None, None]
        return [0 if one is None else size(one) for size in (lambda f: f.shape[1], np.size) for one in frames]

    def into(
        self, compute: Callable[[_Inputs, NDArray[Any]], None], surface: tuple[int, int, int], out: Any
    ) -> NDArray[Any]:
        """The result of `compute(inputs, out)`, in `out` where it is given."""
        shape, kind = results.shape_of(self.fields, surface), results.type_of(self.fields, self.scalar)
        above = self.fields.result_kind == "above"
        if out is None:
            out = np.empty(shape, kind)
        elif above:
            raise LibraryError("out: of result above nobody knows the length before; leave it out")
        else:
            named = zip(("left", "right", "left_mask", "right_mask"), (*self.stacks, *self.masks))
            check_out(out, shape, kind, {name: array for name, array in named if array is not None})
        compute(self, out)
        return results.detections(out) if above else out


class Library:
    """A loaded libxcorr.so. Calls may be repeated and come from several threads, of which one
    computes at a time; the plans of the newest KEPT_SESSIONS kinds of call are kept."""

    def __init__(self, path: str | Path | None = None):
        """Loads `path`, default libxcorr.so in the build folder. LibraryError says how to get
        it."""
        path = Path(path) if path is not None else build_directory() / "libxcorr.so"
        if not path.exists():
            raise LibraryError(
                f"{_shown(path)}: not built; run ./scripts/setup.sh and build "
                "(env XCORR_BUILD names another build folder)"
            )
        try:
            self._dll = ctypes.CDLL(str(path))
            self._functions = {
                name: getattr(self._dll, "xcorr_" + name)
                for name in (*("list", "machine", "describe", "supports", "open", "compute_with", "close"), "reference")
            }
        except (OSError, AttributeError) as error:
            raise LibraryError(f"{_shown(path)}: cannot be loaded: {error}; build again") from None
        if hasattr(self._dll, "xcorr_reference_masked"):
            self._functions["reference_masked"] = self._dll.xcorr_reference_masked
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._new_locks()
        _LOCKED.add(self)
        text, size, pointer = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
        for name, arguments in {
            "list": (text, size, text, size),
            "machine": (text, text, size, text, size),
            "describe": (text, text, size, text, size),
            "supports": (text, text, size, text, size),
            "open": (text, ctypes.POINTER(pointer), text, size),
            "compute_with": (pointer, ctypes.POINTER(_Arrays), text, size),
            "close": (pointer, text, size),
            "reference": (text, *[pointer] * 3, text, size),
            "reference_masked": (text, *[pointer] * 5, text, size),
        }.items():
            if name in self._functions:
                self._functions[name].restype = ctypes.c_int
                self._functions[name].argtypes = arguments

    def _new_locks(self) -> None:
        self._keeping = threading.Lock()

    def variants(self) -> list[dict[str, Any]]:
        """The `variants` array of `xcorr-bench --list=json`, sorted by id."""
        variants: list[dict[str, Any]] = self._json("list")["variants"]
        return variants

    def variant(self, name: str) -> dict[str, Any]:
        """One entry of `variants`; LibraryError with the nearest id when unknown."""
        return find_variant(self.variants(), name)

    def machine(self, device: str = "cpu") -> dict[str, Any]:
        """Facts of the machine and the build; `machine_key` names the folder of its results."""
        facts: dict[str, Any] = self._json("machine", _text("device", device).encode())
        return facts

    def supports(
        self, problem: Problem, *, variant: str, params: str = "", precision: str = "fp32", device: str = "cpu"
    ) -> str:
        """Why the variant cannot compute this there; "" where it can. Plans nothing."""
        fields = _settings(variant, params, precision, device)
        reason: str = self._json("supports", _asked(problem, **fields))["reason"]
        return reason

    def session(
        self, problem: Problem, *, variant: str, params: str = "", precision: str = "fp32", device: str = "cpu"
    ) -> Session:
        """Plans once; the session computes the problem any number of times until it is closed. The plan may take seconds,
        since ways to compute are timed. What timing finds is kept on disk (xcorr/README.md, Planning), so that the plan of a
        later process is made without."""
        fields = {**_settings(variant, params, precision, device), "planning": "kept"}
        return Session(self, problem, fields)

    def describe(self, problem: Problem) -> Description:
        """Checks the problem and tells output shape, shift origin, work and bytes."""
        facts = self._json("describe", _asked(problem))
        return Description(**{key: int(facts[key]) for key in Description.__dataclass_fields__})

    def correlate(
        self,
        problem: Problem,
        left: NDArray[Any],
        right: NDArray[Any] | None = None,
        *,
        variant: str,
        params: str = "",
        precision: str = "fp32",
        device: str = "cpu",
        left_mask: NDArray[Any] | None = None,
        right_mask: NDArray[Any] | None = None,
        out: NDArray[Any] | None = None,
        allow_nonfinite: bool = False,
    ) -> NDArray[Any]:
        """Runs one variant, with the kept plan of an earlier call of the same kind where there is one.

        `left` (lefts x rows x cols, or rows x cols for one) and `right` are converted to the scalar
        type of `precision`. Returns `out`, pairs x out_rows x out_cols or what xcorr.results says of another
        result, allocated when not given; it shares no memory with an input. The masks that the problem names are
        boolean, or 0 and 1, in the shape of their matrices. With `same` there is no right. `params` empty means
        the first point of the variant's grid. LibraryError when refused, also for complex, masked and, unless
        `allow_nonfinite`, not finite inputs, and where more outputs are above a threshold than there is room for.
        """
        fields = _settings(variant, params, precision, device)
        with self._keeping:  # a session that another call would close is in use until it returns
            session = self._kept(problem, fields)
            masks = {"left_mask": left_mask, "right_mask": right_mask}
            return session.correlate(left, right, out, **masks, allow_nonfinite=allow_nonfinite)

    def _kept(self, problem: Problem, fields: Mapping[str, str]) -> Session:
        """The session of this problem; beyond KEPT_SESSIONS the one that waited longest is closed,
        and all others where a new one cannot be had beside them (memory)."""
        key, uses = _asked(problem, **fields), 0
        if key in self._sessions and self._sessions[key].uses == REPEATS and fields["device"].startswith("cpu"):
            self._sessions.pop(key).close()
            fields = {**fields, "planning": "kept"}
            uses = REPEATS
        if key not in self._sessions:
            try:
                self._sessions[key] = Session(self, problem, fields)
            except LibraryError:
                if not self._sessions:
                    raise
                self._forget(0)
                self._sessions[key] = Session(self, problem, fields)
            self._sessions[key].uses = uses
            self._forget(KEPT_SESSIONS)
        self._sessions.move_to_end(key)
        self._sessions[key].uses += 1
        return self._sessions[key]

    def close(self) -> None:
        """Frees the plans and the memory that calls of `correlate` have left for the next."""
        with self._keeping:
            self._forget(0)

    def _forget(self, count: int) -> None:
        while len(self._sessions) > count:
            self._sessions.popitem(last=False)[1].close()

    def reference(
        self,
        problem: Problem,
        left: NDArray[Any],
        right: NDArray[Any] | None = None,
        *,
        method: str = "fft",
        left_mask: NDArray[Any] | None = None,
        right_mask: NDArray[Any] | None = None,
        out: NDArray[Any] | None = None,
        allow_nonfinite: bool = False,
    ) -> NDArray[Any]:
        """The float64 truth of surfaces by `method` definition or fft, which is for plain ones only; shapes and inputs as
        in `correlate`."""
        if _text("method", method) not in ("definition", "fft"):
            raise LibraryError(f"method '{method}': unknown; use definition or fft")
        if problem.fields.result != "surface":
            raise LibraryError(f"result '{problem.fields.result}': the reference computes surfaces; use result surface")
        if problem.fields.views != "dense":
            raise LibraryError(f"views '{problem.fields.views}': the reference takes dense matrices; leave views out")
        shape = self.describe(problem).out_shape
        inputs = _Inputs(problem, np.float64, (left, right), (left_mask, right_mask), allow_nonfinite)
        asked = _asked(problem, method=method)

        def compute(made: _Inputs, out: NDArray[Any]) -> None:
            (left, right), masks = made.stacks, made.masks
            right = left if right is None else right
            pointers = [None if one is None else one.ctypes.data for one in (left, right, *masks, out)]
            if problem.fields.masks == "none":
                self._call("reference", asked, *pointers[:2], pointers[4])
            else:
                self._call("reference_masked", asked, *pointers)

        return inputs.into(compute, shape, out)

    def _call(self, name: str, *arguments: Any) -> int:
        """Status of a call; LibraryError with the library's message where it failed."""
        message = ctypes.create_string_buffer(_ERROR_CAPACITY)
        status: int = self._functions[name](*arguments, message, _ERROR_CAPACITY)
        if status not in (0, _TOO_SMALL):
            text = " ".join(message.value.decode(errors="replace").split())
            raise LibraryError(text or f"xcorr_{name} failed without a message")
        return status

    def _json(self, name: str, *arguments: bytes) -> Any:
        """The JSON that `name` writes, in a buffer grown to the size it asks for."""
        capacity = 1 << 14
        for _ in range(4):
            buffer = ctypes.create_string_buffer(capacity)
            if self._call(name, *arguments, buffer, capacity) == 0:
                return json.loads(buffer.value.decode())
            capacity = max(int(buffer.value) + 1, 2 * capacity)
        raise LibraryError(f"xcorr_{name}: asks for an ever larger buffer")
