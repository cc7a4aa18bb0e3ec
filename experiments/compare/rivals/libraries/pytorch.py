"""PyTorch: transforms, which are cuFFT or MKL; convolutions, which are cuDNN on a GPU, with TF32 off and on."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, importing, on_gpu, require, spectra, version_of
from xcorr.problem import Problem, rights_of_a_left

# By definition a convolution takes seconds beyond.
MOST_FMAS = {"cpu": 2e9, "cuda": 2e11}


def _call(torch: Any, device: str, left: np.ndarray, right: np.ndarray, compute: Callable[..., Any]) -> Call:
    def download(result: Any) -> Any:
        return tuple(one.cpu().numpy() for one in result) if isinstance(result, tuple) else result.cpu().numpy()

    def upload() -> Any:
        return tuple(torch.from_numpy(one).to(device) for one in (left, right))

    return Call(upload, lambda state: compute(*state), download)


def _transforms(device: str, torch: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem)
    return _call(torch, device, left, right, partial(spectra.correlate, torch, torch.fft, problem))


def _graph(torch: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    """The transforms captured once as a CUDA graph and replayed on the arrays of the capture."""
    inner = _transforms("cuda", torch, problem, left, right)
    state = inner.upload()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # plans are made outside the capture
        inner.compute(state)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = inner.compute(state)

    def upload() -> None:
        for here, there in zip(state, (left, right)):
            here.copy_(torch.from_numpy(there))

    def compute(_: None) -> Any:
        graph.replay()
        return result

    return Call(upload, compute, inner.download)


def _products(torch: Any, problem: Problem, left: Any, right: Any) -> Any:
    """Surfaces of the window by one convolution: a channel a left where each has its rights, else a filter a left."""
    inside = spectra.is_inside(problem)
    padding = (0, 0) if inside else tuple(size - 1 for size in problem.left)
    if problem.form == "n-to-mn":
        images = right.reshape(problem.lefts, rights_of_a_left(problem), *problem.right).transpose(0, 1)
        groups = problem.lefts
    else:
        images, groups = right[:, None], 1
    found = torch.nn.functional.conv2d(images, left[:, None], padding=padding, groups=groups).transpose(0, 1)
    found = found.reshape(problem.pairs, *found.shape[2:])
    return found if inside else found[spectra.crop(problem)]


def _scores(torch: Any, problem: Problem, left: Any, right: Any) -> Any:
    pool, (rows, cols) = torch.nn.functional.avg_pool2d, problem.left

    def mean_of(values: Any) -> Any:
        """Means of windows by rows, then by columns. A single pass takes more time than the convolution."""
        return pool(pool(values, (1, cols), 1), (rows, 1), 1)

    own = left - left.mean((1, 2), keepdim=True)
    frames = right - right.mean((1, 2), keepdim=True)
    squares = (mean_of(frames**2) - mean_of(frames) ** 2).clamp(min=0) * (rows * cols)
    norms = own.square().sum((1, 2)).sqrt()[:, None, None, None]
    over = norms * squares.sqrt()[None]
    found = _products(torch, problem, own, frames)
    return found / over.reshape(found.shape)


def _convolution(device: str, tf32: bool, torch: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem, "zncc")
    require(problem.fmas <= MOST_FMAS[device], f"more than {MOST_FMAS[device]:.0e} products by definition")
    require(not tf32 or problem.fields.score_kind == "product", "scores with 10 bits are not comparable")
    made = _products if problem.fields.score_kind == "product" else _scores

    def compute(*state: Any) -> Any:
        torch.backends.cudnn.allow_tf32 = tf32  # for the whole process, so set for each call
        torch.backends.cudnn.benchmark = True
        return spectra.result_of(problem, made(torch, problem, *state))

    return _call(torch, device, left, right, compute)


def _with_cudnn(torch: Any) -> str:
    return f"{version_of(torch)}, cuDNN {torch.backends.cudnn.version()}"


def _gpu(name: str, settings: str, version: Any, prepare: Any, precision: str = "fp32", follows: bool = True) -> Rival:
    return Rival(name, "cuda", INSTALL, settings, on_gpu("torch"), version, prepare, precision, follows)


INSTALL = "pip install torch"
RIVALS = (
    _gpu("torch rfft2", "cuFFT", version_of, partial(_transforms, "cuda")),
    _gpu("torch rfft2, graph", "cuFFT, replay of a CUDA graph", version_of, _graph),
    _gpu("torch conv2d", "TF32 off, algorithm by trial", _with_cudnn, partial(_convolution, "cuda", False)),
    _gpu("torch conv2d, TF32", "TF32 on, algorithm by trial", _with_cudnn, partial(_convolution, "cuda", True), "tf32"),
    Rival(
        "torch rfft2, CPU", "cpu", INSTALL, "all threads", importing("torch"), version_of, partial(_transforms, "cpu")
    ),
    Rival(
        "torch conv2d, CPU",
        "cpu",
        INSTALL,
        "all threads",
        importing("torch"),
        version_of,
        partial(_convolution, "cpu", False),
    ),
)
