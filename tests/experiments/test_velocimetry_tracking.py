"""Velocimetry and tracking: errors of known motion are asserted, and a wrong result fails the run."""

import csv
import gzip
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from built_library import built_library

from experiments.inputs import common, datasets, tracking, velocimetry
from plots import real
from xcorr.commands import piv
from xcorr.commands import velocimetry as product
from xcorr.paths import build_directory


@pytest.fixture(scope="module")
def library():
    return built_library()


@pytest.fixture
def run(run_input, library, tmp_path):
    return lambda module: run_input(module, library, "--offline", "--cache", str(tmp_path))


def rows_of(folder, module):
    return list(csv.DictReader(gzip.open(folder / f"{module.EXPERIMENT}.{module.TABLE}.csv.gz", "rt")))


def test_tracking_follows_the_template_within_its_tolerance(run):
    code, _, err, folder = run(tracking)
    assert code == 0, err
    rows = rows_of(folder, tracking)
    assert len(rows) == 2 * (tracking.FRAMES["smoke"] - 1)
    for case, tolerance in tracking.TOLERANCES.items():
        own = np.array([float(row["error"]) for row in rows if row["case"] == case])
        assert 0 < np.sqrt(np.mean(own**2)) < tolerance
    assert max(abs(float(row["angle"])) for row in rows if row["case"] == "rotation") > 0.5 * tracking.TURN
    (summary,) = real.load(folder.parents[1], tracking.EXPERIMENT).datasets()
    assert [one["case"] for one in summary["variants"]] == list(tracking.TOLERANCES)
    assert all(one["frames_per_second"] > 0 for one in summary["variants"])
    code, out, _, _ = run(tracking)
    assert code == 0 and "computed already" in out


def test_a_template_that_is_lost_fails_the_run(run, monkeypatch):
    monkeypatch.setattr(tracking, "REACH", 0)
    code, _, err, folder = run(tracking)
    assert code == 1 and "shift" in err and not list(folder.glob("*.summary.json"))


def test_the_photograph_moves_as_the_motion_says():
    """A bright spot in the middle of the photograph lies where the motion says, at any angle."""
    photo = np.zeros((512, 512))
    photo[255:258, 255:258] = 200
    for case in tracking.TOLERANCES:
        path = tracking.motion(case, 60)
        for frame in (0, 17, 41):
            image = tracking.render(photo, path, frame, np.random.default_rng(1))
            y, x = np.unravel_index(image.argmax(), image.shape)
            assert abs(y - path.y[frame]) < 2.1 and abs(x - path.x[frame]) < 2.1


def test_velocimetry_finds_the_known_fields_without_the_real_pair(run):
    code, out, err, folder = run(velocimetry)
    assert code == 0, err
    rows = rows_of(folder, velocimetry)
    cases = {row["case"] for row in rows}
    if datasets.PARTICLES.name not in cases:
        assert "no real frames: " in out
    judged = [row for row in rows if row["case"] != datasets.PARTICLES.name]
    assert len(judged) == 2 * len(velocimetry.settings("smoke"))
    for row in judged:
        if row["window"] == "32" and row["passes"] == "2":
            assert float(row["rms"]) < velocimetry.TOLERANCE
        assert abs(float(row["bias_y"])) < 0.1 and abs(float(row["bias_x"])) < 0.1


@pytest.mark.parametrize("boundary", ["circular", "zero"])
@pytest.mark.parametrize("case", [0, 1])
def test_one_pass_finds_the_known_fields_too(library, case, boundary):
    """Frames of the preset quick, seed 1: 0.03 pixels in all four, of covariances alone 0.08."""
    side = velocimetry.ONE_PASS_SIDE
    assert side == velocimetry.SIDES["quick"]
    truth = list(velocimetry.fields(side).values())[case]
    rng = np.random.default_rng([1, 19, case])
    frames = product.particle_pair((side, side), truth, rng, velocimetry.DENSITY)
    choose = piv.chooser(library, "auto", "cpu")
    found = product.displacements(library, *frames, boundary=boundary, passes=1, choose=choose)
    assert 0.01 < velocimetry.against(found, truth)["rms"] < 0.05


def test_an_error_of_a_tenth_of_a_pixel_is_wrong():
    row = {"case": "vortex", "rows": 256, "window": 32, "boundary": "zero", "passes": 2, "rms": 0.11}
    assert "0.11 pixels" in velocimetry.wrong([row])[0]
    assert velocimetry.wrong([{**row, "rms": 0.09}, {**row, "window": 64}, {**row, "passes": 1}]) == []
    assert "1 passes" in velocimetry.wrong([{**row, "passes": 1, "rows": 512}])[0]
    assert velocimetry.wrong([{**row, "rms": float("nan")}])
    real_row = {"case": "particles", "rows": 369, "window": 32, "boundary": "zero", "passes": 1, "peer_difference": 0.2}
    assert "from openpiv" in velocimetry.wrong([real_row])[0]


def test_of_the_peer_too_the_last_of_several_calls_counts(monkeypatch):
    """Its first call may take twice as long; ours is the second of two."""
    calls, clock = [], [0.0]

    def extended_search_area_piv(first, second, **options):
        calls.append(options["correlation_method"])
        clock[0] += 0.2 if len(calls) == 1 else 0.1
        return np.ones((2, 2)), np.zeros((2, 2)), None

    module = SimpleNamespace(pyprocess=SimpleNamespace(extended_search_area_piv=extended_search_area_piv))
    monkeypatch.setitem(sys.modules, "openpiv", module)
    monkeypatch.setattr(velocimetry, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    frames = (np.zeros((64, 64), np.float32),) * 2
    down, right, seconds = velocimetry.peer(frames, velocimetry.Setting(32, "zero", 1))
    assert calls == ["linear"] * velocimetry.ROUNDS
    assert (down == 0).all() and (right == 1).all() and seconds == pytest.approx(0.1)


def test_beside_a_gpu_its_host_computes_the_real_pair_too(monkeypatch):
    """The peer runs on the host, and each of our rows has its time; with a variant that was asked for there is no other row."""
    devices = []

    def measured(context, frames, setting, choose, threshold=0.0):
        devices.append(choose)
        zeros = np.zeros((2, 2))
        return product.Field(zeros[0], zeros[0], zeros, zeros, zeros, zeros, zeros, zeros > 0, zeros > 0), {
            "variant": choose
        }

    monkeypatch.setattr(velocimetry, "measured", measured)
    monkeypatch.setattr(velocimetry, "chooser", lambda context, device: device)
    monkeypatch.setattr(velocimetry, "peer", lambda frames, setting: (np.zeros((2, 2)), np.zeros((2, 2)), 0.5))
    monkeypatch.setattr(datasets, "particle_frames", lambda content: (np.zeros((4, 4), np.uint8),) * 2)
    for requested, device, expected in (
        ([], "cuda:0", ["cuda:0", "cpu"]),
        ([], "cpu", ["cpu"]),
        (["x"], "cuda:0", ["cuda:0"]),
    ):
        context = SimpleNamespace(requested=requested, device=device)
        rows = velocimetry.real(context, b"", device)[0]
        judged = [row for row in rows if "peer_seconds" in row]
        assert [row["variant"] for row in judged] == expected * len(velocimetry.METHODS)
        assert {row["peer_seconds"] for row in judged} == {0.5} and len(rows) == len(judged) + 1


def test_errors_are_those_of_the_field():
    y = x = np.array([10.0, 20.0])
    zeros = np.zeros((2, 2))
    field = product.Field(y, x, zeros + 1, zeros, zeros, zeros, zeros, zeros > 0, zeros > 0)
    errors = velocimetry.against(field, lambda y, x: (0 * y + 0.7, 0 * x + 0.4))
    assert errors == pytest.approx({"rms": 0.5, "bias_y": 0.3, "bias_x": -0.4, "largest": 0.5})


def test_the_bytes_of_two_bmp_files_are_two_frames():
    frames = [np.arange(15, dtype=np.uint8).reshape(3, 5) + 100 * number for number in range(2)]
    content = b""
    for frame in frames:
        header = bytearray(54 + 1024)
        for at, value in ((10, len(header)), (18, 5), (22, 3)):
            header[at : at + 4] = value.to_bytes(4, "little")
        padded = np.zeros((3, 8), np.uint8)
        padded[:, :5] = frame[::-1]
        content += bytes(header) + padded.tobytes()
    for one, other in zip(datasets.particle_frames(content), frames):
        np.testing.assert_array_equal(one, other)


def test_artifacts_are_named_as_the_reader_expects():
    for module in (tracking, velocimetry):
        assert real.TABLES[module.EXPERIMENT] == module.TABLE
        assert common.SCHEMA == 1 and build_directory()
