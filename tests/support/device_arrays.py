"""Arrays as libraries for GPUs have them, in memory of the host: what a call reads of each is here, and nothing else."""

import ctypes
import sys
import types

import numpy as np


class Interface:
    """An array of an unknown library with `__cuda_array_interface__`, on a device."""

    def __init__(self, array, device=0, stream=None, mask=None):
        self.array, self.stream, self.mask = array, stream, mask
        self.device = types.SimpleNamespace(id=device)

    @property
    def __cuda_array_interface__(self):
        facts = dict(self.array.__array_interface__)
        return {**facts, "version": 3, "stream": self.stream, "mask": self.mask}


class Dlpack:
    """The same with `__dlpack__`; `asked`: the streams in which it was to be ready."""

    def __init__(self, array, device=(2, 0)):
        self.array, self.device, self.asked = array, device, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        array = self.array
        code = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}[array.dtype.kind]
        axes = (ctypes.c_int64 * array.ndim)(*array.shape)
        strides = (ctypes.c_int64 * array.ndim)(*(one // array.itemsize for one in array.strides))
        self.kept = types.SimpleNamespace(axes=axes, strides=strides)
        tensor = _Tensor(array.ctypes.data, *self.device, array.ndim, code, 8 * array.itemsize, 1)
        tensor.shape, tensor.strides = ctypes.addressof(axes), ctypes.addressof(strides)
        self.kept.tensor = tensor
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(tensor), b"dltensor", None)


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("axes", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
    ]


class Tensor:
    """A tensor of the module that `fake_torch` makes. `bits`: the numbers; bfloat16 as its 16 bits."""

    def __init__(self, bits, dtype=None, device=0):
        self.bits, self._device, self.used_by, self.negated = bits, device, [], False
        self.dtype = dtype or Dtype(bits.dtype.name)
        self.is_cuda = device is not None

    shape = property(lambda self: self.bits.shape)
    device = property(lambda self: f"cuda:{self._device}")

    def stride(self):
        return tuple(one // self.bits.itemsize for one in self.bits.strides)

    def data_ptr(self):
        return self.bits.ctypes.data

    def get_device(self):
        return self._device

    def is_neg(self):
        return self.negated

    def record_stream(self, stream):
        self.used_by.append(stream.cuda_stream)

    def view(self, dtype):
        return Tensor(self.bits.view(dtype.name), dtype, self._device)

    def reshape(self, *shape):
        return Tensor(self.bits.reshape(*shape), self.dtype, self._device)

    def __getitem__(self, key):
        return Tensor(self.bits[key], self.dtype, self._device)


class Dtype:
    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Dtype) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return f"torch.{self.name}"


class Stream:
    """A stream of PyTorch, which is the current one within `with torch.cuda.stream(it)`."""

    def __init__(self, cuda_stream, device=0):
        self.cuda_stream = cuda_stream


def fake_torch(monkeypatch):
    """Puts a module `torch` in place, whose current stream is `torch.current`; what was allocated: `torch.allocated`."""
    torch = types.ModuleType("torch")
    torch.current, torch.allocated = 0, []

    class InStream:
        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            self.before, torch.current = torch.current, self.stream.cuda_stream

        def __exit__(self, *_):
            torch.current = self.before

    def empty(shape, dtype, device):
        made = Tensor(np.full(shape, 99, dtype.name), dtype, int(device.partition(":")[2]))
        torch.allocated.append((made, torch.current))
        return made

    torch.empty = empty
    torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: torch.current)
    torch.cuda = types.SimpleNamespace(
        stream=InStream, ExternalStream=Stream, default_stream=lambda device: Stream(0), Stream=Stream
    )
    for name in ("float32", "float64", "int32", "int64"):
        setattr(torch, name, Dtype(name))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(Tensor, "__module__", "torch")
    return torch


def fake_cupy(monkeypatch):
    """Puts a module `cupy` in place, with `cupy.asarray` and a current stream `cupy.current`."""
    cupy = types.ModuleType("cupy")
    cupy.current = 0

    class Array:
        def __init__(self, bits):
            self.bits, self.dtype, self.strides, self.shape = bits, bits.dtype, bits.strides, bits.shape
            self.data = types.SimpleNamespace(ptr=bits.ctypes.data)
            self.device = types.SimpleNamespace(id=0)

    class Entered:
        def __init__(self, one):
            self.one = one

        def __enter__(self):
            return self.one

        def __exit__(self, *_):
            pass

    class External(Entered):
        def __enter__(self):
            self.before, cupy.current = cupy.current, self.one

        def __exit__(self, *_):
            cupy.current = self.before

    Array.__module__ = "cupy"
    cupy.asarray = Array
    cupy.streams = []

    def empty(shape, dtype):
        cupy.streams.append(cupy.current)
        return Array(np.empty(shape, dtype))

    cupy.empty = empty
    cupy.cuda = types.SimpleNamespace(
        Device=Entered, ExternalStream=External, get_current_stream=lambda: types.SimpleNamespace(ptr=cupy.current)
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return cupy


def aligned(shape, dtype="f4", offset=0, fill=0):
    """A dense array at a multiple of 64 bytes, and `offset` bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 128, "u1")
    start = -raw.ctypes.data % 64 + offset
    made = raw[start : start + size].view(dtype).reshape(shape)
    made[...] = fill
    return made


def copied(array, offset=0):
    """The same numbers in aligned memory, and its neighbours where `array` is a view with strides."""
    array = np.asarray(array)
    return aligned(array.shape, array.dtype, offset, array)
