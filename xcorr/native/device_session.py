"""Sessions for arrays in the memory of a device: a call takes addresses and a stream, and only enqueues."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xcorr.errors import LibraryError
from xcorr.native import library as binding
from xcorr.native.library import Library
from xcorr.problem import Problem


@dataclass(frozen=True)
class Layout:
    """How the matrices of one side lie in memory. `strides`: elements between neighbouring matrices, rows and columns."""

    type: str
    strides: tuple[int, int, int]
    aligned: bool  # starts at a multiple of 16 bytes

    def keys(self, side: str) -> dict[str, Any]:
        """Keys of the request."""
        aligned = "yes" if self.aligned else "no"
        return {f"{side}_type": self.type, f"{side}_strides": self.strides, f"{side}_aligned": aligned}


class DeviceSession:
    """One problem planned for one variant and device. Memory is freed by `close`, or when nothing refers to the session."""

    def __init__(
        self, library: Library, problem: Problem, fields: Mapping[str, str], left: Layout, right: Layout | None
    ) -> None:
        """`fields`: variant, params, precision and device. NotEnqueued where another variant may take arrays of the device."""
        layouts = {**left.keys("left"), **({} if right is None else right.keys("right"))}
        handle = ctypes.c_void_p()
        library._call("open_device", binding._asked(problem, **fields, **layouts), ctypes.byref(handle))
        self._library, self._handle = library, handle
        self._lock = binding._Locked()
        # Made once, since they take longer than the call; the lock is for them.
        self._arrays = binding._Arrays()
        self._by_reference = ctypes.byref(self._arrays)
        self._message = ctypes.create_string_buffer(binding._ERROR_CAPACITY)
        self._enqueue = library._functions["enqueue"]
        # Not at the end of the process, when CUDA may have ended.
        self._close = weakref.finalize(self, _close, library, handle)
        self._close.atexit = False  # type: ignore[misc]

    def enqueue(
        self, left: int, right: int | None, out: int, masks: tuple[int | None, int | None], stream: int
    ) -> None:
        """Enqueues one call on the stream, by addresses. LibraryError for a closed session and a wrong address."""
        with self._lock._lock:
            self._check_open()
            arrays = self._arrays
            arrays.left, arrays.right, arrays.out = left, right, out
            arrays.left_mask, arrays.right_mask = masks
            status = self._enqueue(self._handle, self._by_reference, stream, self._message, binding._ERROR_CAPACITY)
            if status:
                raise LibraryError(" ".join(self._message.value.decode(errors="replace").split()))

    def check(self, out: int | None, stream: int) -> None:
        """Waits for the stream. LibraryError where the device failed, or `out` has more detections than the capacity."""
        self._check_open()
        self._library._call("check", self._handle, out, stream)

    def close(self) -> None:
        """Waits for all work on the device, and frees the plan and its memory."""
        with self._lock._lock:
            self._close()

    def _check_open(self) -> None:
        if not self._close.alive:
            raise LibraryError("plan: closed; make another one")


def _close(library: Library, handle: ctypes.c_void_p) -> None:
    library._call("close", handle)
