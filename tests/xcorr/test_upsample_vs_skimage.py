"""Registration to 1 / u pixel against scikit-image, on its photographs: the library, and emulated kernels.

A photograph is cut at two places and averaged over 4 x 4 pixels, so that the cuts differ by quarters of a pixel and by
what lies at their edges.
"""

import os
import subprocess

import numpy as np
import pytest
from hangs import HANG_S

from xcorr import results
from xcorr.fields import Fields
from xcorr.paths import build_directory
from xcorr.problem import Problem

data = pytest.importorskip("skimage.data", reason="scikit-image has the photographs")
registration = pytest.importorskip("skimage.registration")

PHOTOGRAPHS = ["camera", "moon", "brick", "grass", "gravel"]
AVERAGED = 4


def cuts(name: str, side: int, by: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Two cuts of a photograph, float32 without their means; the second one shows it moved by `by` / 4 pixels."""
    photograph = getattr(data, name)().astype(np.float64)

    def cut(y: int, x: int) -> np.ndarray:
        blocks = photograph[y : y + AVERAGED * side, x : x + AVERAGED * side].reshape(side, AVERAGED, side, AVERAGED)
        mean = blocks.mean((1, 3))
        return (mean - mean.mean()).astype(np.float32)

    return cut(20, 24), cut(20 - by[0], 24 - by[1])


def problem(side: int, score: str, factor: int) -> Problem:
    fields = Fields(boundary="circular", score=score, result=f"peak:upsample={factor}")
    return Problem("one-to-one", (side, side), (side, side), **fields.given)


def place(peak: np.void) -> np.ndarray:
    return np.array([peak["sy"] + peak["sub_sy"], peak["sx"] + peak["sub_sx"]])


def theirs(left: np.ndarray, right: np.ndarray, score: str, factor: int) -> np.ndarray:
    """scikit-image's shift has the other sign of ours, and so its arguments stand in the other order."""
    normalization = "phase" if score.startswith("phase") else None
    found = registration.phase_cross_correlation(
        right.astype(np.float64), left.astype(np.float64), upsample_factor=factor, normalization=normalization
    )
    return np.asarray(found[0])


def same_step(found: np.ndarray, expected: np.ndarray, score: str, factor: int) -> bool:
    """Whether two shifts are the same multiple of 1 / factor. With the score phase they may be neighbours: scikit-image
    divides every bin by its modulus, the project none by less than 1e-5 of the largest one."""
    return np.abs(found - expected).max() <= (1.01 if score.startswith("phase") else 0.01) / factor


@pytest.mark.parametrize("score", ["product", "phase:0"])
@pytest.mark.parametrize("factor", [4, 20, 50])
@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_the_library_finds_the_shifts_of_scikit_image(library, name, factor, score):
    for side, by in [(48, (5, -7)), (63, (-10, 3)), (64, (1, 2))]:
        left, right = cuts(name, side, by)
        (peak,) = library.correlate(problem(side, score, factor), left, right, variant="cpu_fft", precision="fp64")
        expected = theirs(left, right, score, factor)
        assert same_step(place(peak), expected, score, factor), f"{side} {by}: {place(peak)}, not {expected}"


def test_emulated_kernels_find_the_shifts_of_scikit_image(tmp_path):
    program = build_directory() / "tests" / "emulation" / "emulation-tests"
    if not program.exists():
        pytest.skip("emulation-tests is not built (scripts/test.sh builds it where Boost.Context is)")
    photographs = [("camera", 48, (5, -7), 20), ("gravel", 64, (-10, 3), 4), ("moon", 32, (1, 2), 50)]
    problems = [(*one, score) for one in photographs for score in ("product", "phase:0")]
    with open(tmp_path / "problems", "w") as file:
        for number, (name, side, by, factor, score) in enumerate(problems):
            left, right = cuts(name, side, by)
            left.tofile(tmp_path / f"{number}.left")
            right.tofile(tmp_path / f"{number}.right")
            file.write(f"{number} {problem(side, score, factor).id}\n")
    done = subprocess.run(
        [program, "--gtest_filter=*peaks_of_files*", "--gtest_also_run_disabled_tests"],
        env={**os.environ, "XCORR_PEAKS_OF_FILES": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for number, (name, side, by, factor, score) in enumerate(problems):
        found = list(tmp_path.glob(f"{number}.peak.*"))
        assert found, f"{name}: no emulated variant computes the problem"
        left, right = cuts(name, side, by)
        expected = theirs(left, right, score, factor)
        for path in found:
            (peak,) = np.fromfile(path, dtype=results.PEAK)
            assert same_step(place(peak), expected, score, factor), f"{path.name} {name}: {place(peak)}, not {expected}"
