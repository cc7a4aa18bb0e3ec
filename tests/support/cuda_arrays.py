"""Memory, streams and graphs of a GPU through the CUDA runtime alone, for tests on a machine without PyTorch and CuPy."""

import ctypes
import types

import numpy as np

NAMES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12")
TO_DEVICE, TO_HOST = 1, 2
NON_BLOCKING, GLOBAL_CAPTURE = 1, 0


def runtime():
    """The CUDA runtime, or the reason why there is none."""
    for name in NAMES:
        try:
            return Cuda(ctypes.CDLL(name))
        except OSError:
            continue
        except RuntimeError as error:
            return str(error)
    return f"no CUDA runtime ({', '.join(NAMES)})"


class Cuda:
    def __init__(self, library):
        self._library = library
        count = ctypes.c_int()
        self.call("GetDeviceCount", ctypes.byref(count))

    def call(self, name, *arguments):
        function = getattr(self._library, "cuda" + name)
        code = function(*arguments)
        if code:
            self._library.cudaGetErrorString.restype = ctypes.c_char_p
            self._library.cudaGetLastError()
            raise RuntimeError(f"cuda{name}: {self._library.cudaGetErrorString(code).decode()}")

    def array(self, numbers, offset=0):
        """A copy on the device, `offset` bytes after an aligned address."""
        return DeviceArray(self, np.ascontiguousarray(numbers), offset)

    def stream(self):
        handle = ctypes.c_void_p()
        self.call("StreamCreateWithFlags", ctypes.byref(handle), NON_BLOCKING)
        return handle.value

    def destroy(self, stream):
        self.call("StreamDestroy", ctypes.c_void_p(stream))

    def wait(self, stream=None):
        if stream is None:
            self.call("DeviceSynchronize")
        else:
            self.call("StreamSynchronize", ctypes.c_void_p(stream))

    def captured(self, stream, work):
        """A graph of what `work` enqueues in the stream. Any wait and any allocation in it is an error of CUDA."""
        graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("StreamBeginCapture", ctypes.c_void_p(stream), GLOBAL_CAPTURE)
        try:
            work()
        finally:
            self.call("StreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        self.call("GraphInstantiate", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        return ready

    def replay(self, graph, stream):
        self.call("GraphLaunch", graph, ctypes.c_void_p(stream))


class DeviceArray:
    """An array with `__cuda_array_interface__`."""

    def __init__(self, cuda, numbers, offset):
        self._cuda, self.dtype, self.shape = cuda, numbers.dtype, numbers.shape
        self._memory = ctypes.c_void_p()
        self.device = types.SimpleNamespace(id=0)
        cuda.call("Malloc", ctypes.byref(self._memory), ctypes.c_size_t(numbers.nbytes + offset))
        self._pointer = self._memory.value + offset
        self.strides = numbers.strides
        self.write(numbers)

    @property
    def __cuda_array_interface__(self):
        of_type = self.dtype.str
        return {
            "shape": self.shape,
            "typestr": of_type,
            "data": (self._pointer, False),
            "strides": self.strides,
            "version": 3,
            "stream": None,
        }

    def write(self, numbers):
        numbers = np.ascontiguousarray(numbers, self.dtype)
        address = ctypes.c_void_p(self._pointer)
        self._cuda.call(
            "Memcpy", address, ctypes.c_void_p(numbers.ctypes.data), ctypes.c_size_t(numbers.nbytes), TO_DEVICE
        )

    def read(self):
        made = np.empty(self.shape, self.dtype)
        address = ctypes.c_void_p(self._pointer)
        self._cuda.call("Memcpy", ctypes.c_void_p(made.ctypes.data), address, ctypes.c_size_t(made.nbytes), TO_HOST)
        return made

    def __del__(self):
        if self._memory.value:
            self._cuda.call("Free", self._memory)
