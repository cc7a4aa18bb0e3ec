"""The C API as a foreign program calls it: any pointer may be null, any text may be a request."""

import ctypes
import json
from dataclasses import dataclass
from typing import Any

TEXT, SIZE, POINTER = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
ERROR_BYTES, JSON_BYTES = 4096, 1 << 20
# Parameters of a function before `error` and its capacity.
PARAMETERS: dict[str, tuple[Any, ...]] = {
    "list": (TEXT, SIZE),
    "machine": (TEXT, TEXT, SIZE),
    "describe": (TEXT, TEXT, SIZE),
    "supports": (TEXT, TEXT, SIZE),
    "open": (TEXT, POINTER),
    "compute": (POINTER, POINTER, POINTER, POINTER),
    "compute_with": (POINTER, POINTER),
    "open_device": (TEXT, POINTER),
    "enqueue": (POINTER, POINTER, POINTER),
    "check": (POINTER, POINTER, POINTER),
    "close": (POINTER,),
    "reference": (TEXT, POINTER, POINTER, POINTER),
    "reference_masked": (TEXT, *[POINTER] * 5),
}
GIVE_JSON = ("list", "machine", "describe", "supports")
GOOD: dict[str, Any] = {"form": "n-to-m", "left": [4, 5], "right": [6, 5], "lefts": 2, "rights": 3}
COMPUTED = {**GOOD, "variant": "cpu_definition"}


@dataclass(frozen=True)
class Answer:
    """What a call returned: status, its error, and of a function that gives JSON the text."""

    status: int
    error: str
    json: str = ""


class Api:
    """The functions of one libxcorr."""

    def __init__(self, path: str) -> None:
        self._dll = ctypes.CDLL(path)
        for name, parameters in PARAMETERS.items():
            function = getattr(self._dll, "xcorr_" + name)
            function.restype, function.argtypes = ctypes.c_int, (*parameters, TEXT, SIZE)

    def call(self, name: str, *arguments: Any) -> Answer:
        """Calls with a buffer for the error; those of JSON are given too, unless they are among the arguments."""
        message = ctypes.create_string_buffer(b"\xff" * ERROR_BYTES, ERROR_BYTES)
        message[0] = 0
        buffer = None
        if name in GIVE_JSON and len(arguments) < len(PARAMETERS[name]):
            buffer = ctypes.create_string_buffer(JSON_BYTES)
            arguments = (*arguments, buffer, JSON_BYTES)
        status = getattr(self._dll, "xcorr_" + name)(*arguments, message, ERROR_BYTES)
        return Answer(status, message.value.decode(), "" if buffer is None else buffer.value.decode())

    def without_error(self, name: str, *arguments: Any) -> int:
        """The status of a call that gives no room for an error."""
        return getattr(self._dll, "xcorr_" + name)(*arguments, None, 0)

    def open(self, problem: Any, name: str = "open") -> tuple[Answer, int | None]:
        """The answer and the handle."""
        handle = ctypes.c_void_p(12345)
        answer = self.call(name, text_of(problem), ctypes.byref(handle))
        return answer, handle.value


def text_of(problem: Any) -> bytes:
    return problem if isinstance(problem, bytes) else json.dumps(problem).encode()
