"""The command that measures the speed bars: its problem, its checks, its verdict."""

import dataclasses

import numpy as np
import pytest
from scipy.signal import correlate2d

from experiments.compare import scipy_peer
from xcorr.errors import UserError

ENTRY = {
    "title": "T",
    "problem": "n-to-m/3x4/5x2/2:3/full",
    "variant": "some_variant",
    "params": ["threads=1"],
    "against": "scipy",
    "at_most": 1.25,
}


class FakeLibrary:
    """Correlates by scipy; wrong by `factor`."""

    def __init__(self, factor: float = 1.0):
        self.factor = factor

    def correlate(self, request, left, right, *, variant, params):
        return self.factor * scipy_peer.convolve(left, right)


@pytest.mark.parametrize("counts", [(1, 1), (2, 3)])
def test_scipy_computes_the_same_problem(counts):
    random = np.random.default_rng(5)
    left, right = random.random((counts[0], 3, 4)), random.random((counts[1], 5, 2))
    out = scipy_peer.convolve(left, right)
    expected = [correlate2d(one, other, "full") for other in left for one in right]
    np.testing.assert_allclose(out, expected, atol=1e-12)


def test_a_bar_is_read():
    bar = scipy_peer.parse_bar(ENTRY)
    assert bar.least_speedup == pytest.approx(0.8)
    assert (bar.request.left, bar.request.right) == ((3, 4), (5, 2))
    assert (bar.request.lefts, bar.request.rights) == (2, 3)


def test_the_shipped_bars_are_read():
    bars = [scipy_peer.parse_bar(entry) for entry in scipy_peer.load_toml(scipy_peer.BARS)["bars"]]
    assert [bar.least_speedup for bar in bars] == pytest.approx([12, 1 / 1.3, 1 / 1.3])


@pytest.mark.parametrize(
    "change",
    [{"problem": "n-to-m/3x4"}, {"at_most": "fast"}, {"params": None}, {"problem": "n-to-m/3x4/5x2/2:3/valid"}],
)
def test_a_bar_that_is_not_understood_is_named(change):
    with pytest.raises(UserError, match="speed.toml"):
        scipy_peer.parse_bar(ENTRY | change)


def test_a_wrong_result_is_never_timed():
    with pytest.raises(UserError, match="some_variant threads=1: result is wrong"):
        scipy_peer.contestants(FakeLibrary(1.01), scipy_peer.parse_bar(ENTRY))


@pytest.mark.parametrize(("ours", "code", "word"), [(1.2, 0, "met"), (1.3, 1, "MISSED")])
def test_exit_code_and_verdict(monkeypatch, capsys, tmp_path, ours, code, word):
    bars = tmp_path / "bars.toml"
    lines = [f"{key} = {value!r}" for key, value in ENTRY.items()]
    bars.write_text("[[bars]]\n" + "\n".join(lines).replace("'", '"'))
    real = scipy_peer.contestants

    def timed(library, bar):
        return [
            dataclasses.replace(one, seconds_per_call=lambda _, t=ours if one.ours else 1.0: t)
            for one in real(library, bar)
        ]

    monkeypatch.setattr(scipy_peer, "contestants", timed)
    monkeypatch.setattr(scipy_peer, "Library", FakeLibrary)
    monkeypatch.setattr(scipy_peer, "program", lambda: None)
    assert scipy_peer.main(["--bars", str(bars), "--rounds", "2"]) == code
    assert f"bar 0.80: {word}" in capsys.readouterr().out


def test_misuse_is_one_line(capsys, tmp_path):
    empty = tmp_path / "empty.toml"
    empty.write_text("")
    assert scipy_peer.main(["--bars", str(empty)]) == 2
    assert scipy_peer.main(["--rounds", "0"]) == 2
    assert all(line.startswith("error: ") for line in capsys.readouterr().err.splitlines())
