"""Other libraries on problems of ours: what a rival is, and how the rivals are found.

Each module of `libraries/` has `RIVALS`, the ways to use one library; a module that is added is found. A rival is loaded
where it can be, prepared for a problem, verified against float64 and timed (`__main__.py`).
"""

import ctypes
import glob
import importlib
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from experiments.compare import artifacts
from xcorr.problem import Problem

EXPERIMENT = "rivals"
SCHEMA = 1
OURS = "xcorr-bench"  # its name among the implementations of a problem

stored = partial(artifacts.stored, experiment=EXPERIMENT, schema=SCHEMA, way_out="measure again")


class Unsupported(Exception):
    """The rival does not compute this problem; the message is the reason."""


@dataclass(frozen=True)
class Call:
    """A prepared computation. `upload` copies the inputs to the device, which has them afterwards; `compute` takes what it
    returned; `download` makes arrays of the host of what `compute` returned: surfaces (pairs x rows x cols), or for
    result=peak the flat index of the maximum of each surface, and its value."""

    upload: Callable[[], Any]
    compute: Callable[[Any], Any]
    download: Callable[[Any], Any] = lambda result: result


@dataclass(frozen=True)
class Rival:
    """A way to use a library.

    `load` returns the module or the handle, or raises ImportError, OSError or RuntimeError. `prepare` takes it, the problem
    and float32 inputs (lefts x rows x cols, rights x rows x cols), and raises Unsupported. `follows_stream`: compute works
    in the current stream of torch and CuPy, as `cuda-bench` needs; otherwise it works in the default stream.
    """

    name: str
    device: str  # "cpu" or "cuda"
    install: str  # the command that installs the library
    settings: str
    load: Callable[[], Any]
    version: Callable[[Any], str]
    prepare: Callable[[Any, Problem, np.ndarray, np.ndarray], Call]
    precision: str = "fp32"
    follows_stream: bool = False


def found() -> list[Rival]:
    """All rivals, sorted by device and name."""
    package = importlib.import_module(f"{__name__}.libraries")
    modules = [
        importlib.import_module(f"{package.__name__}.{one.name}") for one in pkgutil.iter_modules(package.__path__)
    ]
    return sorted((one for module in modules for one in module.RIVALS), key=lambda one: (one.device, one.name))


def importing(name: str) -> Callable[[], Any]:
    """Loads a module of Python."""
    return lambda: importlib.import_module(name)


def on_gpu(name: str) -> Callable[[], Any]:
    """Loads torch or cupy where it finds a GPU."""

    def load() -> Any:
        module = importlib.import_module(name)
        if not module.cuda.is_available():
            raise RuntimeError(f"{name} finds no GPU")
        return module

    return load


def shared_library(names: Sequence[str], symbol: str) -> ctypes.CDLL:
    """The first of the libraries that has the symbol, wherever the system, CUDA or a package of Python has it. OSError where
    none does."""
    packages = [path for place in sys.path for path in glob.glob(f"{place}/nvidia/*/lib/")]
    folders = ["", f"{sys.prefix}/lib/", "/usr/local/cuda/lib64/", *packages]
    cause = ""
    for name in (folder + name for folder in folders for name in names):
        try:
            library = ctypes.CDLL(name)
            getattr(library, symbol)
            return library
        except (OSError, AttributeError) as error:
            cause = cause or str(error)
    raise OSError(cause)


def version_of(module: Any) -> str:
    """`__version__` of a module or of its package."""
    package = importlib.import_module(module.__name__.partition(".")[0])
    return str(getattr(module, "__version__", getattr(package, "__version__", "")))


def reason_of(error: BaseException) -> str:
    """The first line of an error, or its type."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def require(condition: bool, reason: str) -> None:
    if not condition:
        raise Unsupported(reason)
