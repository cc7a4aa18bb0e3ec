"""Arrays in the memory of a GPU, of any library: recognised by module name and attributes, so that none of them is imported.

PyTorch and CuPy are read by their attributes, which takes less than a microsecond. Others are read by
`__cuda_array_interface__` or DLPack. JAX is read by DLPack.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from xcorr.errors import UserError
from xcorr.native.device_session import Layout

TORCH, CUPY, NUMBA, JAX, INTERFACE, DLPACK = "torch", "cupy", "numba", "jax", "interface", "dlpack"
_ROOTS = {"torch": TORCH, "cupy": CUPY, "numba": NUMBA, "jax": JAX, "jaxlib": JAX}
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
LEGACY_STREAM = 1  # the default stream, as the protocols write it
_ALIGNMENT = 16


@dataclass(frozen=True)
class Foreign:
    """An array on a GPU. `strides` in elements; `stream`: of the producer, where the protocol tells it."""

    kind: str
    device: int
    type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    pointer: int
    owner: Any  # keeps the memory
    stream: int | None = None

    @property
    def dense_strides(self) -> tuple[int, ...]:
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def plain_strides(self) -> tuple[int, ...]:
        """The strides, where that of an axis of one element, which has no meaning, is as in a dense array."""
        axes = zip(self.shape, self.strides, self.dense_strides)
        return tuple(dense if length == 1 else stride for length, stride, dense in axes)

    @property
    def is_dense(self) -> bool:
        return self.plain_strides == self.dense_strides

    @property
    def aligned(self) -> bool:
        return self.pointer % _ALIGNMENT == 0

    @property
    def layout(self) -> Layout:
        """For an array of two or three axes."""
        of_matrix, of_row, of_element = (0, *self.plain_strides)[-3:]
        kind = "uint8" if self.type == "bool" else self.type
        return Layout(kind, (of_matrix, of_row, of_element), self.aligned)


def kind_of(array: Any) -> str | None:
    """The kind of an array on a GPU; None for one of the host, and for what is no array."""
    root = type(array).__module__.partition(".")[0]
    if root == TORCH and hasattr(array, "data_ptr"):
        return TORCH if array.is_cuda else None
    if root == CUPY and hasattr(array, "data"):
        return CUPY
    if root in ("jax", "jaxlib") and hasattr(array, "__dlpack_device__"):
        return JAX if _on_gpu(array) else None
    if isinstance(array, np.ndarray):
        return None
    if getattr(array, "__cuda_array_interface__", None) is not None:
        return _ROOTS.get(root, INTERFACE)
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__") and _on_gpu(array):
        return DLPACK
    return None


def _on_gpu(array: Any) -> bool:
    kind = int(array.__dlpack_device__()[0])
    if kind in (_CUDA, _CUDA_MANAGED):
        return True
    if kind in (_CPU, _CUDA_HOST):
        return False
    raise UserError(f"array: lies on a device of DLPack's type {kind}; move it to a CUDA device or to the host")


def read(name: str, array: Any, stream: int | None = None) -> Foreign:
    """The facts of an array for which `kind_of` gives a kind. `stream`: where it will be read (DLPack). UserError for one that
    cannot be read."""
    kind = kind_of(array)
    if kind is None:
        raise UserError(f"{name}: {type(array).__name__} is no array on a GPU; move it there, or give all on the host")
    if kind == TORCH:
        if array.is_neg():
            raise UserError(f"{name}: a view that PyTorch negates when it is read; give .resolve_neg() of it")
        shape, strides = tuple(array.shape), tuple(array.stride())
        device, of_type = array.get_device(), str(array.dtype).partition(".")[2]
        return Foreign(kind, device, of_type, shape, strides, array.data_ptr(), array)
    if kind == CUPY:
        strides = _in_elements(name, array.strides, array.dtype.itemsize)
        device = int(array.device.id)
        return Foreign(kind, device, array.dtype.name, tuple(array.shape), strides, array.data.ptr, array)
    if kind in (JAX, DLPACK):
        return _from_dlpack(name, kind, array, stream)
    return _from_interface(name, kind, array)


def quick_facts(kind: str, array: Any) -> tuple[Any, ...] | None:
    """All of an array of PyTorch or CuPy but its address, to compare with those of another; None for others."""
    if kind == TORCH:
        return array.dtype, array.shape, array.stride(), array.get_device(), array.is_neg()
    if kind == CUPY:
        return array.dtype, array.shape, array.strides, array.device.id
    return None


def quick_pointer(kind: str, array: Any) -> int:
    """The address of an array that has `quick_facts`."""
    return int(array.data_ptr() if kind == TORCH else array.data.ptr)


def _in_elements(name: str, strides: Any, size: int) -> tuple[int, ...]:
    if any(stride % size for stride in strides):
        raise UserError(
            f"{name}: strides of {tuple(strides)} bytes are no multiples of its elements; give a dense copy"
        )
    return tuple(stride // size for stride in strides)


def _from_interface(name: str, kind: str, array: Any) -> Foreign:
    facts = array.__cuda_array_interface__
    if facts.get("mask") is not None:
        raise UserError(f"{name}: has a mask of its own; give that as mask_{name}, or fill the masked elements")
    of_type = np.dtype(facts["typestr"])
    shape = tuple(facts["shape"])
    dense = tuple(prod(shape[axis + 1 :]) * of_type.itemsize for axis in range(len(shape)))
    strides = _in_elements(name, facts.get("strides") or dense, of_type.itemsize)
    device = getattr(getattr(array, "device", None), "id", None)
    if device is None and kind == NUMBA:
        cuda: Any = sys.modules["numba.cuda"]
        device = cuda.current_context().device.id
    pointer = int(facts["data"][0] or 0)
    return Foreign(kind, int(device or 0), of_type.name, shape, strides, pointer, array, facts.get("stream"))


class _Tensor(ctypes.Structure):
    """DLTensor of DLPack, with which a DLManagedTensor begins."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("axes", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}


def _from_dlpack(name: str, kind: str, array: Any, stream: int | None) -> Foreign:
    capsule = array.__dlpack__(stream=stream or LEGACY_STREAM)  # the capsule owns the tensor until it is destroyed
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(get(capsule, b"dltensor"))
    if tensor.code not in _CODES or tensor.lanes != 1:
        raise UserError(f"{name}: elements of DLPack's type {tensor.code} are no real numbers; give real numbers")
    of_type = _CODES[tensor.code] + (str(tensor.bits) if tensor.code != 6 else "")
    shape = tuple(tensor.shape[: tensor.axes])
    dense = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    strides = tuple(tensor.strides[: tensor.axes]) if tensor.strides else dense
    pointer = (tensor.data or 0) + tensor.offset
    return Foreign(kind, tensor.device, of_type, shape, strides, pointer, (array, capsule))
