"""Zero-normalised scores of templates in a frame by other libraries, called as their manuals recommend.

A peer takes templates (n x rows x cols) and a frame (rows x cols), both float32. It prepares a call that computes all
scores of `valid` windows from data on its device. `synchronise` waits for the queue of a GPU library.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Call = Callable[[], Any]


@dataclass(frozen=True)
class Peer:
    """`make(module, templates, frame)` returns the call. `host(module, result)` returns its scores, n x rows x cols."""

    name: str
    module: str
    device: str  # "cpu" or "cuda"
    make: Callable[[Any, np.ndarray, np.ndarray], Call]
    host: Callable[[Any, Any], np.ndarray] = lambda _, result: np.asarray(result)
    synchronise: Callable[[Any], None] = lambda _: None

    def load(self) -> Any:
        """The module. ImportError or RuntimeError with the reason where it cannot be used."""
        module = importlib.import_module(self.module)
        if self.device == "cuda":
            usable = module.cuda.is_available() if hasattr(module.cuda, "is_available") else module.is_available()
            if not usable:
                raise RuntimeError(f"{self.module} finds no GPU")
        return module

    def version(self) -> str:
        return str(getattr(importlib.import_module(self.module.partition(".")[0]), "__version__", ""))


def by_transform(arrays: Any, transforms: Any, templates: Any, frame: Any, sums: Any) -> Any:
    """Scores by real transforms of the frame and of each template, and by integral images of type `sums`.

    `arrays` is numpy or cupy, `transforms` is scipy.fft or cupyx.scipy.fft.
    """
    rows, cols = templates.shape[1:]
    shape = tuple(transforms.next_fast_len(int(extent)) for extent in frame.shape)
    centred = frame - frame.mean(dtype=sums).astype(frame.dtype)
    own = templates - templates.mean(axis=(1, 2), keepdims=True)
    norms = arrays.sqrt((own.astype(sums) ** 2).sum(axis=(1, 2), keepdims=True))
    spectra = transforms.rfft2(centred, shape) * arrays.conj(transforms.rfft2(own, shape))
    out_rows, out_cols = frame.shape[0] - rows + 1, frame.shape[1] - cols + 1
    products = transforms.irfft2(spectra, shape)[:, :out_rows, :out_cols]

    def windows(values: Any) -> Any:
        image = arrays.zeros((values.shape[0] + 1, values.shape[1] + 1), sums)
        image[1:, 1:] = arrays.cumsum(arrays.cumsum(values.astype(sums), axis=0), axis=1)
        return image[rows:, cols:] - image[:-rows, cols:] - image[rows:, :-cols] + image[:-rows, :-cols]

    squares = windows(centred.astype(sums) ** 2) - windows(centred) ** 2 / (rows * cols)
    return (products / (norms * arrays.sqrt(arrays.maximum(squares, 0)))).astype(frame.dtype)


def truth(templates: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """The scores, computed in float64."""
    import scipy.fft

    return by_transform(np, scipy.fft, templates.astype(np.float64), frame.astype(np.float64), np.float64)


def _opencv(cv2: Any, templates: np.ndarray, frame: np.ndarray) -> Call:
    return lambda: [cv2.matchTemplate(frame, one, cv2.TM_CCOEFF_NORMED) for one in templates]


def _scikit_image(feature: Any, templates: np.ndarray, frame: np.ndarray) -> Call:
    return lambda: [feature.match_template(frame, one) for one in templates]


def _scipy(transforms: Any, templates: np.ndarray, frame: np.ndarray) -> Call:
    def call() -> np.ndarray:
        with transforms.set_workers(-1):
            return by_transform(np, transforms, templates, frame, np.float64)

    return call


def _cupy(cupy: Any, templates: np.ndarray, frame: np.ndarray) -> Call:
    import cupyx.scipy.fft

    on_card = cupy.asarray(templates), cupy.asarray(frame)
    return lambda: by_transform(cupy, cupyx.scipy.fft, *on_card, np.float64)


def _torch(device: str) -> Callable[[Any, np.ndarray, np.ndarray], Call]:
    def make(torch: Any, templates: np.ndarray, frame: np.ndarray) -> Call:
        torch.backends.cudnn.allow_tf32 = False  # scores with 10 bits are not comparable
        functional = torch.nn.functional
        weights = torch.from_numpy(templates).to(device)[:, None]
        image = torch.from_numpy(frame).to(device)[None, None]
        rows, cols = templates.shape[1:]
        count = rows * cols

        def mean_of(values: Any) -> Any:
            """Means of windows by rows, then by columns. A single pass takes more time than the convolution."""
            return functional.avg_pool2d(functional.avg_pool2d(values, (1, cols), 1), (rows, 1), 1)

        def call() -> Any:
            own = weights - weights.mean(dim=(2, 3), keepdim=True)
            centred = image - image.mean()
            products = functional.conv2d(centred, own)
            squares = mean_of(centred**2) - mean_of(centred) ** 2
            norms = own.square().sum(dim=(1, 2, 3)).sqrt()[None, :, None, None]
            return (products / (norms * (squares * count).clamp(min=0).sqrt()))[0]

        return call

    return make


PEERS = (
    Peer("OpenCV matchTemplate", "cv2", "cpu", _opencv),
    Peer("scikit-image match_template", "skimage.feature", "cpu", _scikit_image),
    Peer("SciPy transforms", "scipy.fft", "cpu", _scipy),
    Peer("PyTorch conv2d, CPU", "torch", "cpu", _torch("cpu")),
    Peer(
        "PyTorch conv2d, GPU",
        "torch",
        "cuda",
        _torch("cuda"),
        lambda _, result: result.cpu().numpy(),
        lambda torch: torch.cuda.synchronize(),
    ),
    Peer(
        "CuPy transforms",
        "cupy",
        "cuda",
        _cupy,
        lambda cupy, result: cupy.asnumpy(result),
        lambda cupy: cupy.cuda.Device().synchronize(),
    ),
)
