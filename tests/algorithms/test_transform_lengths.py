"""Every length that a transform is compiled for is met, on each axis, by a problem of conformance and of the emulation.

A length that no test meets is code that never ran: the twiddles of whole lengths could be removed unseen.
"""

import re
from pathlib import Path

import pytest

from xcorr.paths import ROOT

LENGTHS = re.compile(r"^using (\w+) = Lengths<([\d, ]+)>;", re.MULTILINE)
# Lengths that are a parameter are points of a grid, all of which the emulation meets (every_compile_time_point). A
# variant of one length always runs it.
OTHERS = re.compile(r"^using Tiles = PointAxis<|^constexpr int kN = \d+;", re.MULTILINE)
UNITS = sorted(
    unit
    for unit in (ROOT / "algorithms" / "fused_fft").rglob("*.cu")
    if not OTHERS.search(unit.read_text(encoding="utf-8"))
)
Shape = tuple[int, int]


def lengths(unit: Path) -> tuple[bool, list[int]]:
    """Whether both axes have the same length, and the lengths."""
    folder = [unit] if unit.parent.name == "fused_fft" else sorted(unit.parent.glob("*.[ch]*"))
    found = [one for path in folder for one in LENGTHS.findall(path.read_text(encoding="utf-8"))]
    assert len(found) == 1, f"{unit.name}: {len(found)} lists of lengths"
    return found[0][0] == "Squares", [int(n) for n in found[0][1].split(",")]


def shape(text: str) -> Shape:
    rows, cols = text.split("x")
    return int(rows), int(cols)


def conformance_shapes() -> list[tuple[Shape, Shape]]:
    """Pairs of conformance on a GPU whose whole window is computed."""
    text = (ROOT / "tests" / "conformance" / "problems.cpp").read_text(encoding="utf-8")
    arrays = re.findall(r"ShapePair k(?:Large)?Shapes\[\] = \{(.*?)\};", text, re.DOTALL)
    assert len(arrays) == 2
    pairs = re.findall(r'\{"(\d+x\d+)", "(\d+x\d+)"\}', "".join(arrays))
    pairs += re.findall(r'add\(counts, \{"(\d+x\d+)", "(\d+x\d+)"\}, "full"\)', text)
    return [(shape(left), shape(right)) for left, right in pairs]


def emulation_shapes() -> list[tuple[Shape, Shape]]:
    """Pairs of the emulation whose whole window is computed."""
    text = (ROOT / "tests" / "emulation" / "conformance.cpp").read_text(encoding="utf-8")
    pairs = re.findall(r'\{"(\d+x\d+)/(\d+x\d+)", \{([^}]*)\}\}', text)
    return [(shape(left), shape(right)) for left, right, windows in pairs if '"full"' in windows]


def unmet(square: bool, compiled: list[int], pairs: list[tuple[Shape, Shape]]) -> list[str]:
    met: set[tuple[str, int]] = set()
    for left, right in pairs:
        needed = [left[axis] + right[axis] - 1 for axis in (0, 1)]
        taken = [min((n for n in compiled if n >= length), default=0) for length in needed]
        if 0 in taken:
            continue
        met |= {("either axis", max(taken))} if square else {("y", taken[0]), ("x", taken[1])}
    axes = ["either axis"] if square else ["y", "x"]
    return [f"{n} on {axis}" for axis in axes for n in compiled if (axis, n) not in met]


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_conformance_on_a_gpu_meets_every_length(unit: Path) -> None:
    assert unmet(*lengths(unit), conformance_shapes()) == []


@pytest.mark.parametrize(
    "unit",
    [unit for unit in UNITS if "emulated = false" not in unit.read_text(encoding="utf-8")],
    ids=lambda path: path.stem,
)
def test_the_emulation_meets_every_length(unit: Path) -> None:
    assert unmet(*lengths(unit), emulation_shapes()) == []


def test_a_length_that_no_problem_needs_is_named() -> None:
    pairs = [pair for pair in emulation_shapes() if pair[0] != (1, 250)]
    assert unmet(False, [256, 384, 512], pairs) == ["512 on x"]
    assert unmet(True, [512, 1024], emulation_shapes()) == ["1024 on either axis"]
