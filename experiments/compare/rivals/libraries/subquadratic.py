"""subquadratic-ops-torch: a depthwise convolution of one launch by transforms in the kernel (cuFFTDx). It computes as many
shifts as the image has elements, the `same` window."""

import importlib
from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, on_gpu, require, spectra, version_of
from xcorr.problem import Problem, rights_of_a_left

LARGEST = 64  # of an image; transforms are of twice that


def _load() -> Any:
    on_gpu("torch")()
    return importlib.import_module("subquadratic_ops_torch.fused_fft_conv2d")


def _fused(module: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem)
    rows, cols = problem.left
    square = problem.left == problem.right and rows == cols and rows & (rows - 1) == 0
    require(square and 4 <= rows <= LARGEST, f"square images of a power of two, at most {LARGEST}")
    half = range(-(rows // 2), rows // 2)
    require(problem.shifts == (half, half), "computes the same window only, -size/2 to size/2 - 1")
    require(problem.form != "n-to-m", "a filter of its own for each channel: no n-to-m")
    torch = importlib.import_module("torch")
    many = rights_of_a_left(problem)

    def compute(state: Any) -> Any:
        lefts, rights = state
        images = rights.reshape(problem.lefts, many, rows, cols).transpose(0, 1).contiguous()
        # The crop begins at index `rows` of the convolution, a shift of 1; a row and a column of zeros in front of the
        # reversed left, and half its size less, move it to -size/2.
        filters = torch.nn.functional.pad(torch.flip(lefts, (1, 2)), (1 + cols // 2, 0, 1 + rows // 2, 0))
        found = module.fused_fft_conv2d(images, filters, fft_size=2 * rows)
        return spectra.result_of(problem, found.transpose(0, 1).reshape(problem.pairs, rows, cols))

    def download(result: Any) -> Any:
        return tuple(one.cpu().numpy() for one in result) if isinstance(result, tuple) else result.cpu().numpy()

    return Call(lambda: tuple(torch.from_numpy(one).cuda() for one in (left, right)), compute, download)


RIVALS = (
    Rival(
        "subquadratic-ops fused_fft_conv2d",
        "cuda",
        "pip install subquadratic-ops-torch-cu13",
        "spectra of the filters in the call",
        _load,
        version_of,
        _fused,
        follows_stream=True,
    ),
)
