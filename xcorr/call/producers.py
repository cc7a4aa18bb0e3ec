"""What a call needs of the library that made an array on a GPU: its current stream, new arrays, and memory that stays until a stream
has used it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from xcorr.call.foreign import CUPY, JAX, LEGACY_STREAM, NUMBA, TORCH, Foreign
from xcorr.errors import UserError


def handle_of(stream: Any) -> int:
    """The cudaStream_t of an integer, or of a stream of PyTorch (`cuda_stream`), CuPy (`ptr`) or Numba (`handle`)."""
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            stream = getattr(stream, name)
            break
    stream = getattr(
        stream, "value", stream
    )  # Numba's handle is a ctypes pointer, whose value None is the default stream
    if stream is None:
        return 0
    if not isinstance(stream, (int, np.integer)) or isinstance(stream, bool) or stream < 0:
        raise UserError(f"stream: {stream!r} is none; give a handle, or an object with cuda_stream, ptr or handle")
    return int(stream)


def current_stream(kind: str, device: int) -> int:
    """The stream in which the producer would enqueue now."""
    if kind == TORCH:
        torch: Any = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # a tenth of the time of current_stream
        return int(raw(device) if raw else torch.cuda.current_stream(device).cuda_stream)
    if kind == CUPY:
        cupy: Any = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            return int(cupy.cuda.get_current_stream().ptr)
    return LEGACY_STREAM


def default_stream(kind: str, device: int, arrays: Iterable[Foreign]) -> int:
    """The stream of a call that names none: the producer's current one, or the one that its arrays name."""
    named = {one.stream for one in arrays if one.stream}
    if len(named) > 1:
        raise UserError(f"stream: the arrays are of streams {sorted(named)}; order these, and name the one of the call")
    if named and kind not in (TORCH, CUPY):
        return int(named.pop())
    return current_stream(kind, device)


def allocate(like: Foreign, shape: tuple[int, ...], of_type: np.dtype[Any], stream: int, named: bool) -> Any:
    """A new array of the kind of `like` on its device. `named`: the caller has named the stream, in whose order the memory is."""
    if like.kind == TORCH:
        torch: Any = sys.modules["torch"]
        made = {"dtype": getattr(torch, of_type.name), "device": like.owner.device}
        if not named:
            return torch.empty(shape, **made)
        with torch.cuda.stream(_torch_stream(torch, stream, like.device)):
            return torch.empty(shape, **made)
    if like.kind == CUPY:
        cupy: Any = sys.modules["cupy"]
        with cupy.cuda.Device(like.device):
            if not named:
                return cupy.empty(shape, of_type)
            with cupy.cuda.ExternalStream(stream):
                return cupy.empty(shape, of_type)
    if like.kind == NUMBA:
        cuda: Any = sys.modules["numba.cuda"]
        return cuda.device_array(shape, of_type)
    if like.kind == JAX:
        jax: Any = sys.modules["jax"]
        # A buffer that nobody else has seen yet, so that it may be written once. Zeros: JAX has no memory without values.
        with jax.default_device(_jax_device(like.owner[0])):
            return jax.numpy.zeros(shape, of_type).block_until_ready()
    kind = type(like.owner[0] if isinstance(like.owner, tuple) else like.owner).__name__
    raise UserError(f"out: nobody knows how to make a {kind}; give an array for the result")


def _jax_device(array: Any) -> Any:
    return next(iter(array.devices()))


def _torch_stream(torch: Any, stream: int, device: int) -> Any:
    return torch.cuda.ExternalStream(stream, device=device) if stream > 2 else torch.cuda.default_stream(device)


def keep_for(stream: int, kind: str, device: int, arrays: Iterable[Any]) -> None:
    """Tells PyTorch's allocator that a stream other than the current one uses the tensors. Others have no such call."""
    if kind != TORCH:
        return
    torch: Any = sys.modules["torch"]
    user = _torch_stream(torch, stream, device)
    for one in arrays:
        if type(one).__module__.partition(".")[0] == TORCH:
            one.record_stream(user)
