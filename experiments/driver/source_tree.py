"""Finds in the source code variants that this build does not contain, such as CUDA variants without nvcc."""

import re
from collections.abc import Container

from xcorr.paths import ROOT

ALGORITHMS = ROOT / "algorithms"
SOURCES = (".cpp", ".cu", ".hpp", ".cuh")


def has_variant(name: str) -> bool:
    """Whether the source code has a variant or family of that name."""
    return (ALGORITHMS / name).is_dir() or any(ALGORITHMS.rglob(f"{name}.c*"))


def has_parameter(name: str) -> bool:
    """Whether a source file has that name in quotes, as variants write names of parameters."""
    return any(f'"{name}"' in path.read_text() for path in ALGORITHMS.rglob("*") if path.suffix in SOURCES)


def may_have_value(name: str, value: str, built: Container[str]) -> bool:
    """Whether a variant that is not `built` may take this value: its file has the parameter's name and the value."""
    word = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
    unbuilt = (path for path in ALGORITHMS.rglob("*.c*") if path.stem not in built)
    texts = (path.read_text() for path in unbuilt if path.suffix in SOURCES)
    return any(f'"{name}"' in text and word.search(text) for text in texts)
