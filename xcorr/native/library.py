"""ctypes binding of libxcorr.so: every variant and the float64 reference on NumPy arrays.

    library = Library()
    problem = Problem(form="n-to-mn", left=(96, 96), right=(96, 96), lefts=86, rights=4300)
    out = library.correlate(problem, lefts, rights, variant="cpu_fft")    # pairs x out_rows x out_cols

`out[p][sy][sx] = sum L[y][x] * R[y+sy][x+sx]`; elements outside either matrix are zero. Output index 0 is the shift (sy0, sx0)
of `describe`. Fields of a problem (docs/design.md, Fields of a problem) change the result to the types of xcorr.results. With
`views="windows"` a side is an xcorr.native.arrays.Windows.

Inputs are real and, unless `allow_nonfinite`, finite in the scalar type: one NaN or infinity spoils every output of an FFT, and
the outputs whose overlap contains it of other variants. Outputs are not checked: sums beyond the range of the type are infinite.

The plan of a call is kept for the next call with the same problem, variant and device. It is made without timing. On a CPU,
call REPEATS + 1 of a kind plans as `session` does, which may change the last bits of an FFT's outputs.

A forked process may use the library on the CPU, unless another thread computed during the fork. CUDA does not work in a child
of a process that has used CUDA. Such calls raise a LibraryError. harness/library/xcorr.h describes the C API.
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
from xcorr.errors import LibraryError, NotEnqueued, nearest
from xcorr.native.arrays import check_out, dense, mask_of, windows
from xcorr.native.precisions import scalar_type
from xcorr.paths import INSTALLED, ROOT, build_directory
from xcorr.problem import Problem

_ERROR_CAPACITY = 4096
_TOO_SMALL, _NOT_ENQUEUED = 2, 3  # statuses (harness/library/c_api.cpp)
REPEATS = 100  # calls of one kind before FFTW times its ways to compute, which takes seconds and may shorten each call
KEPT_SESSIONS = 4  # each holds a plan, its workspace and, on a GPU, inputs and output


@dataclass(frozen=True)
class Description:
    """Sizes of a problem; (sy0, sx0) is the shift of output index [0][0]."""

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
    """The entry of variant `name`. LibraryError with the nearest id if unknown."""
    for variant in variants:
        if variant["id"] == name:
            return variant
    hint = nearest(name, (variant["id"] for variant in variants))
    raise LibraryError(f"variant '{name}': unknown; {hint} (--list shows all)")


def _text(name: str, value: Any) -> str:
    """`value` if it is printable text. LibraryError for anything else."""
    if not isinstance(value, str):
        raise LibraryError(f"{name} {value!r}: not a text; give one as in the example of xcorr.native.library")
    if "\0" in value or not value.isprintable():
        raise LibraryError(f"{name} {value!r}: holds a character that cannot be printed; leave it out")
    return value


def _asked(problem: Problem, **settings: str) -> bytes:
    """JSON of a problem and settings for the C API."""
    sizes = {name: getattr(problem, name) for name in ("form", "left", "right", "lefts", "rights", "window")}
    return json.dumps({**settings, **sizes, **problem.fields.given}).encode()


def _settings(variant: Any, params: Any, precision: Any, device: Any) -> dict[str, str]:
    given = {"variant": variant, "params": params, "precision": precision, "device": device}
    return {name: _text(name, value) for name, value in given.items()}


# Objects whose locks another thread may hold during a fork.
_LOCKED: weakref.WeakSet[Any] = weakref.WeakSet()
os.register_at_fork(after_in_child=lambda: [one._new_lock() for one in _LOCKED])


class _Locked:
    """An object with a lock, which a forked process replaces."""

    def __init__(self) -> None:
        self._new_lock()
        _LOCKED.add(self)

    def _new_lock(self) -> None:
        self._lock = threading.Lock()


class _Arrays(ctypes.Structure):
    """struct xcorr_arrays of harness/library/xcorr.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("left", "right", "out", "left_mask", "right_mask")),
        *((name, ctypes.c_void_p) for name in ("left_offsets", "right_offsets")),
        *((name, ctypes.c_int64) for name in ("left_pitch", "right_pitch", "left_elements", "right_elements")),
    ]


class Session(_Locked):
    """One problem planned for one variant and device. Computations of several threads run one after the other."""

    def __init__(self, library: Library, problem: Problem, fields: Mapping[str, str]):
        super().__init__()
        self._library, self._problem, self._scalar = library, problem, scalar_type(fields["precision"])
        self._shape = library.describe(problem).out_shape
        self.uses = 0  # calls of `Library.correlate`
        self._handle: ctypes.c_void_p | None = ctypes.c_void_p()
        library._call("open", _asked(problem, **fields), ctypes.byref(self._handle))

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
        """`Library.correlate` without planning and, if `out` is given, without allocation."""
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
        """Frees the plan and its memory."""
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                self._library._call("close", handle)


class _Inputs:
    """Inputs of a computation: stacks of the scalar type (right is None with same=yes), offsets and masks, or None.

    LibraryError for arrays that do not fit the problem.
    """

    def __init__(
        self, problem: Problem, scalar: type, stacks: tuple[Any, Any], masks: tuple[Any, Any], allow_nonfinite: bool
    ) -> None:
        self.fields, self.scalar = problem.fields, scalar
        if self.fields.views == "channels":
            raise LibraryError("views 'channels': the C API takes them; give dense arrays")
        sides = [("left", (problem.lefts, *problem.left)), ("right", (problem.rights, *problem.right))]
        if self.fields.same == "yes" and stacks[1] is not None and stacks[1] is not stacks[0]:
            raise LibraryError("right: with same yes there is one array; give left only")
        named = self.fields.masked_sides
        self.masks = [mask_of(side, one, shape, side in named) for (side, shape), one in zip(sides, masks)]
        valid = list(self.masks)
        if self.fields.same == "yes":  # an array that both sides share has the union of their masks
            sides, (left, right) = sides[:1], self.masks
            valid[0] = None if left is None or right is None else left | right
        how = scalar, allow_nonfinite, self.fields.centring != "none"
        self.stacks: list[NDArray[Any] | None] = [None, None]
        self.offsets: list[NDArray[Any] | None] = [None, None]
        for place, (side, shape) in enumerate(sides):
            if self.fields.views == "windows":
                self.stacks[place], self.offsets[place] = windows(side, stacks[place], shape, *how)
            else:
                self.stacks[place] = dense(side, stacks[place], shape, *how, valid[place])

    @property
    def pitches_and_sizes(self) -> list[int]:
        """Columns of the left and right frame, then their elements; 0 without views."""
        frames = self.stacks if self.fields.views == "windows" else [None, None]
        return [0 if one is None else size(one) for size in (lambda f: f.shape[1], np.size) for one in frames]

    def into(
        self, compute: Callable[[_Inputs, NDArray[Any]], None], surface: tuple[int, int, int], out: Any
    ) -> NDArray[Any]:
        """Result of `compute(inputs, out)`, in `out` if given."""
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


class Library(_Locked):
    """A loaded libxcorr.so. Several threads may call it; one computes at a time. The plans of the last KEPT_SESSIONS kinds of call
    are kept."""

    def __init__(self, path: str | Path | None = None):
        """Loads `path`, default libxcorr.so in the build folder. LibraryError if that fails."""
        path = Path(path) if path is not None else build_directory() / "libxcorr.so"
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        if not path.exists():
            way_out = "install the package again" if INSTALLED else "run ./scripts/setup.sh and build"
            raise LibraryError(f"{shown}: not built; {way_out} (env XCORR_BUILD names another build folder)")
        text, size, pointer = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
        self._functions: dict[str, Any] = {}
        try:
            library = ctypes.CDLL(str(path))
            for name, arguments in {
                "list": (text, size),
                "machine": (text, text, size),
                "describe": (text, text, size),
                "supports": (text, text, size),
                "open": (text, ctypes.POINTER(pointer)),
                "compute_with": (pointer, ctypes.POINTER(_Arrays)),
                "open_device": (text, ctypes.POINTER(pointer)),
                "enqueue": (pointer, ctypes.POINTER(_Arrays), pointer),
                "check": (pointer, pointer, pointer),
                "close": (pointer,),
                "reference_masked": (text, *[pointer] * 5),
            }.items():
                self._functions[name] = getattr(library, "xcorr_" + name)
                self._functions[name].argtypes = (*arguments, text, size)  # a buffer for the message of an error
        except (OSError, AttributeError) as error:
            way_out = "install the package again" if INSTALLED else "build again"
            if INSTALLED and "libcu" in str(error):
                way_out = "pip install 'xcorr-bench[cuda13]', which brings NVIDIA's libraries (cuda12 for CUDA 12)"
            raise LibraryError(f"{shown}: cannot be loaded: {error}; {way_out}") from None
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        super().__init__()

    def variants(self) -> list[dict[str, Any]]:
        """The `variants` array of `xcorr-bench --list=json`, sorted by id."""
        variants: list[dict[str, Any]] = self._json("list")["variants"]
        return variants

    def variant(self, name: str) -> dict[str, Any]:
        """One entry of `variants`. LibraryError with the nearest id if unknown."""
        return find_variant(self.variants(), name)

    def machine(self, device: str = "cpu") -> dict[str, Any]:
        """Properties of the machine and the build; `machine_key` names the folder of its results."""
        facts: dict[str, Any] = self._json("machine", _text("device", device).encode())
        return facts

    def supports(
        self, problem: Problem, *, variant: str, params: str = "", precision: str = "fp32", device: str = "cpu"
    ) -> str:
        """Reason why the variant cannot compute the problem on the device, else "". Plans nothing."""
        fields = _settings(variant, params, precision, device)
        return str(self._json("supports", _asked(problem, **fields))["reason"])

    def session(
        self, problem: Problem, *, variant: str, params: str = "", precision: str = "fp32", device: str = "cpu"
    ) -> Session:
        """A session that plans once. FFTW times its ways to compute, which may take seconds, and keeps the findings on disk for
        later processes (docs/library.md, Planning)."""
        fields = {**_settings(variant, params, precision, device), "planning": "kept"}
        return Session(self, problem, fields)

    def describe(self, problem: Problem) -> Description:
        """Output shape, shift origin, work and bytes of a problem. LibraryError for an illegal problem."""
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
        """Runs one variant, with the plan of an earlier call of the same kind if one is kept.

        `left` (lefts x rows x cols, or rows x cols for one) and `right` are converted to the scalar type of `precision`; `same`
        has no right. Masks are boolean, or 0 and 1, in the shape of their matrices. `out` shares no memory with an input.
        Empty `params`: the first point of the variant's grid. Returns `out`, by default allocated: pairs x out_rows x out_cols,
        or another result as in xcorr.results. LibraryError for what the variant cannot compute, for complex, masked and,
        unless `allow_nonfinite`, not finite inputs, and for more detections than the capacity.
        """
        fields = _settings(variant, params, precision, device)
        with self._lock:  # no other call may close the session while it computes
            session = self._kept(problem, fields)
            masks = {"left_mask": left_mask, "right_mask": right_mask}
            return session.correlate(left, right, out, **masks, allow_nonfinite=allow_nonfinite)

    def _kept(self, problem: Problem, fields: Mapping[str, str]) -> Session:
        """The session of this problem. Beyond KEPT_SESSIONS the least recently used session is closed; all are closed if a new
        session fails beside them, which may be for lack of memory."""
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
        """Frees the plans and memory that `correlate` keeps."""
        with self._lock:
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
        """Surfaces in float64, the reference of tests, by `method` definition, or fft for plain problems. Shapes and inputs as in
        `correlate`."""
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
            left, right = made.stacks
            arrays = (left, left if right is None else right, *made.masks, out)
            self._call("reference_masked", asked, *(None if one is None else one.ctypes.data for one in arrays))

        return inputs.into(compute, shape, out)

    def _call(self, name: str, *arguments: Any) -> int:
        """Status of a call. LibraryError with the library's message if it failed."""
        message = ctypes.create_string_buffer(_ERROR_CAPACITY)
        status: int = self._functions[name](*arguments, message, _ERROR_CAPACITY)
        if status not in (0, _TOO_SMALL):
            text = " ".join(message.value.decode(errors="replace").split())
            kind = NotEnqueued if status == _NOT_ENQUEUED else LibraryError
            raise kind(text or f"xcorr_{name} failed without a message")
        return status

    def _json(self, name: str, *arguments: bytes) -> Any:
        """Parsed JSON that `name` writes to a buffer, which grows to the requested size."""
        capacity = 1 << 14
        for _ in range(4):
            buffer = ctypes.create_string_buffer(capacity)
            if self._call(name, *arguments, buffer, capacity) == 0:
                return json.loads(buffer.value.decode())
            capacity = max(int(buffer.value) + 1, 2 * capacity)
        raise LibraryError(f"xcorr_{name}: asks for an ever larger buffer")
