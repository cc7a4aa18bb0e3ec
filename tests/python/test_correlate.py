"""The user's program xcorr: forms, orders, outputs and every refusal, on a stand-in library."""

from __future__ import annotations

import csv
import io
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy_library import ScipyLibrary, scipy_correlation

from experiments import correlate
from experiments.real import matrices, stream
from harness.library import LibraryError, Request

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def save(tmp_path):
    def write(name, array):
        np.save(tmp_path / name, array)
        return str(tmp_path / name)
    return write


def xcorr(*argv, library=None):
    return correlate.main([*map(str, argv), "--quiet"], library or ScipyLibrary())


def refused(capsys, *argv, library=None) -> str:
    """The one line of stderr of a run that must end with exit code 2."""
    assert correlate.main(list(map(str, argv)), library or ScipyLibrary()) == 2
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), captured.err
    return lines[0]


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("window", ["full", "valid", "sy:-2..3,sx:0..4"])
@pytest.mark.parametrize("form, lefts, rights", [("one-to-one", 1, 1), ("one-to-many", 1, 5),
                                                 ("n-to-mn", 3, 6), ("n-to-m", 3, 4)])
@pytest.mark.parametrize("chunk_pairs", [1, 3, 1000])
def test_output_equals_scipy_whatever_the_chunks(save, rng, tmp_path, monkeypatch, window, form, lefts,
                                                 rights, chunk_pairs):
    left, right = rng.normal(size=(lefts, 7, 5)), rng.normal(size=(rights, 9, 8))
    request = Request(form, (7, 5), (9, 8), lefts, rights, window)
    truth = scipy_correlation(request, left.astype(np.float32), right.astype(np.float32))
    plan = stream.plan_chunks
    monkeypatch.setattr(stream, "plan_chunks", lambda r, size, limit: plan(r, size, size * chunk_pairs))
    assert xcorr(save("l.npy", left), save("r.npy", right), "--form", form, "--window", window,
                 "--output", tmp_path / "out.npy") == 0
    out = np.load(tmp_path / "out.npy")
    assert out.dtype == np.float32 and out.shape == truth.shape
    np.testing.assert_allclose(out, truth, atol=1e-4)


@pytest.mark.parametrize("form, lefts, rights", [("one-to-many", 1, 7), ("n-to-mn", 4, 12), ("n-to-m", 3, 5)])
def test_chunks_cover_every_pair_once(form, lefts, rights):
    request = Request(form, (2, 2), (2, 2), lefts, rights)
    left_of, right_of = stream.pair_indices(request)
    for most in range(1, len(left_of) + 2):
        seen = []
        for chunk in stream.plan_chunks(request, 10, 10 * most + 9):
            assert chunk.first == len(seen) and chunk.pairs <= max(most, 1)
            part = Request(form, (2, 2), (2, 2), chunk.lefts.stop - chunk.lefts.start,
                           chunk.rights.stop - chunk.rights.start)
            l, r = stream.pair_indices(part)
            assert len(l) == chunk.pairs
            seen += list(zip(l + chunk.lefts.start, r + chunk.rights.start))
        assert seen == list(zip(left_of, right_of))


@pytest.mark.parametrize("convert", [
    lambda a: a.astype(">f8"), lambda a: a.astype("<f4"), lambda a: np.asfortranarray(a),
    lambda a: a.astype(">i2"), lambda a: a.astype(np.uint8), lambda a: np.asfortranarray(a.astype(">u4"))])
def test_any_type_order_and_layout(save, rng, tmp_path, convert):
    left, right = rng.integers(0, 9, (6, 5)), rng.integers(0, 9, (4, 6, 5))
    assert xcorr(save("l.npy", convert(left)), save("r.npy", convert(right)), "--output",
                 tmp_path / "out.npy") == 0
    truth = scipy_correlation(Request("one-to-many", (6, 5), (6, 5), 1, 4), left[None], right)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), truth)


def test_right_order_reaches_the_same_pairs(save, rng, tmp_path):
    left = rng.normal(size=(3, 4, 4)).astype(np.float32)
    by_tile = rng.normal(size=(3, 2, 4, 4)).astype(np.float32)      # tiles x patterns
    path = save("l.npy", left)
    results = []
    for number, (array, order) in enumerate([
            (by_tile, ["--right-order", "tile"]), (by_tile, []),
            (by_tile.swapaxes(0, 1), ["--right-order", "pattern"]), (by_tile.swapaxes(0, 1), []),
            (by_tile.reshape(6, 4, 4), ["--right-order", "tile"]),
            (by_tile.swapaxes(0, 1).reshape(6, 4, 4), ["--right-order", "pattern"])]):
        out = tmp_path / f"{number}.npy"
        assert xcorr(path, save(f"r{number}.npy", array), *order, "--output", out) == 0
        results.append(np.load(out))
    truth = scipy_correlation(Request("n-to-mn", (4, 4), (4, 4), 3, 6), left, by_tile.reshape(6, 4, 4))
    for result in results:
        np.testing.assert_allclose(result, truth, atol=1e-4)


def test_square_stack_of_tiles_asks_for_the_order(save, capsys):
    line = refused(capsys, save("l.npy", np.ones((3, 4, 4))), save("r.npy", np.ones((3, 3, 4, 4))))
    assert "--right-order" in line


@pytest.mark.parametrize("lefts, rights, form", [(1, (), "one-to-one"), (1, (5,), "one-to-many"),
                                                 (3, (), "n-to-m"), (3, (4,), "n-to-m"),
                                                 (3, (3, 2), "n-to-mn")])
def test_form_is_inferred_where_only_one_fits(lefts, rights, form):
    assert matrices.infer_form(None, lefts, (*rights, 8, 8), None) == form


def test_ambiguous_form_asks(save, capsys):
    line = refused(capsys, save("l.npy", np.ones((3, 4, 4))), save("r.npy", np.ones((6, 4, 4))))
    assert "6 pairs" in line and "18 pairs" in line and "--form" in line


def test_peaks_on_stdout_with_sign_and_origin(save, rng, capsys):
    scene = rng.normal(size=(40, 40))
    left, right = scene[10:30, 12:30], np.stack([scene[8:28, 15:33], scene[10:30, 12:30]])
    assert correlate.main([save("l.npy", left), save("r.npy", right), "--subtract-mean"], ScipyLibrary()) == 0
    captured = capsys.readouterr()
    assert "shift origin: output index [0][0] is shift sy=-19 sx=-17" in captured.err
    rows = read_csv(captured.out)
    assert [(row["pair"], row["left"], row["right"]) for row in rows] == [("0", "0", "0"), ("1", "0", "1")]
    assert [(int(row["sy"]), int(row["sx"])) for row in rows] == [(2, -3), (0, 0)]
    assert tuple(rows[0]) == correlate.PEAK_COLUMNS
    assert all(abs(float(row["sub_sy"]) - int(row["sy"])) <= 0.5 for row in rows)
    assert float(rows[1]["peak_to_second"]) > 1.5


def test_peaks_file_and_output_together(save, rng, tmp_path, capsys):
    left, right = save("l.npy", rng.normal(size=(2, 6, 6))), save("r.npy", rng.normal(size=(3, 6, 6)))
    assert correlate.main([left, right, "--output", str(tmp_path / "o.npy"), "--peaks",
                           str(tmp_path / "p.csv"), "--form", "n-to-m"], ScipyLibrary()) == 0
    assert "shift origin" in capsys.readouterr().out
    out, rows = np.load(tmp_path / "o.npy"), read_csv((tmp_path / "p.csv").read_text())
    assert [float(row["value"]) for row in rows] == pytest.approx(out.max(axis=(1, 2)), rel=1e-6)
    assert [(row["left"], row["right"]) for row in rows] == [(str(i), str(j)) for i in range(2)
                                                             for j in range(3)]
    assert sorted(os.listdir(tmp_path)) == ["l.npy", "o.npy", "p.csv", "r.npy"]


def test_subtract_mean_takes_each_matrix_its_own(save, rng, tmp_path):
    left, right = rng.normal(5, 1, (6, 6)), rng.normal(100, 1, (2, 6, 6)) * [[[1]], [[7]]]
    assert xcorr(save("l.npy", left), save("r.npy", right), "--subtract-mean", "--output",
                 tmp_path / "o.npy") == 0
    truth = scipy_correlation(Request("one-to-many", (6, 6), (6, 6), 1, 2), (left - left.mean())[None],
                              right - right.mean(axis=(1, 2), keepdims=True))
    np.testing.assert_allclose(np.load(tmp_path / "o.npy"), truth, rtol=1e-4, atol=1e-2)


def test_variant_params_precision_and_device_reach_the_library(save, tmp_path):
    library = ScipyLibrary()
    path = save("l.npy", np.eye(4))
    assert xcorr(path, path, "--variant", "cpu_definition", "--params", "threads=all", "--precision", "fp64",
                 "--device", "cpu", "--output", tmp_path / "o.npy", library=library) == 0
    assert [call[1:] for call in library.calls] == [("cpu_definition", "threads=all", "fp64", "cpu")]
    assert np.load(tmp_path / "o.npy").dtype == np.float64


def test_list(capsys):
    assert correlate.main(["--list"], ScipyLibrary()) == 0
    assert "cpu_fft" in capsys.readouterr().out


def with_value(value, index=(1, 2, 3)):
    array = np.zeros((3, 4, 5))
    array[index] = value
    return array


@pytest.mark.parametrize("array, words", [
    (np.array([["a", "b"]], object), "Python objects"),
    (np.ones((4, 4), complex), "complex"),
    (np.zeros((4, 4), [("a", "f4")]), "save float32"),
    (np.ones((4, 4), "M8[s]"), "save float32"),
    (np.ones((4, 4), np.longdouble), "save float32"),
    (np.ones((0, 4)), "no element"), (np.ones((4, 0)), "no element"), (np.ones((0, 4, 4)), "no element"),
    (np.ones(4), "1 dimensions"), (np.ones((1, 1, 1, 2, 2)), "5 dimensions"), (np.float32(3), "0 dimensions"),
    (with_value(np.nan), "nan at index [1, 2, 3]"), (with_value(np.inf), "inf at index [1, 2, 3]"),
    (np.asfortranarray(with_value(-np.inf, (0, 3, 4))), "-inf at index [0, 3, 4]"),
    (with_value(np.nan).astype(">f4"), "nan at index [1, 2, 3]"),
    (with_value(1e300), "beyond float32")])
def test_wrong_arrays(save, capsys, array, words):
    good, bad = save("good.npy", np.ones((4, 4))), save("bad.npy", array)
    line = refused(capsys, good, bad)
    assert "bad.npy" in line and words in line


@pytest.mark.parametrize("content, words", [
    (b"", "not a .npy"), (b"PK\x03\x04 not", "not a .npy"), (b"\x93NUMPY", "damaged"),
    (b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4',", "damaged"), (b"\x93NUMPY\x09\x00", "version 9.0")])
def test_wrong_files(save, capsys, tmp_path, content, words):
    (tmp_path / "bad.npy").write_bytes(content)
    line = refused(capsys, save("good.npy", np.ones((4, 4))), tmp_path / "bad.npy")
    assert "bad.npy" in line and words in line


def test_truncated_missing_and_folder(save, capsys, tmp_path):
    good = save("good.npy", np.ones((4, 4)))
    data = Path(good).read_bytes()
    for cut in (len(data) - 1, len(data) - 100, 100, 9):
        (tmp_path / "cut.npy").write_bytes(data[:cut])
        line = refused(capsys, good, tmp_path / "cut.npy")
        assert "truncated" in line or "damaged" in line
    assert "No such file" in refused(capsys, good, tmp_path / "none.npy")
    assert "Is a directory" in refused(capsys, good, tmp_path)


def test_counts_forms_and_orders_that_do_not_fit(save, capsys):
    two, three, five = (save(f"{n}.npy", np.ones((n, 4, 4))) for n in (2, 3, 5))
    assert "does not divide by 2" in refused(capsys, two, five, "--form", "n-to-mn")
    assert "one of each" in refused(capsys, two, five, "--form", "one-to-one")
    assert "one left" in refused(capsys, two, five, "--form", "one-to-many")
    assert "only for n-to-mn" in refused(capsys, two, five, "--form", "n-to-m", "--right-order", "tile")
    tiles = save("tiles.npy", np.ones((2, 5, 4, 4)))
    assert "has 5 tiles on axis 1 for 2 left" in refused(capsys, two, tiles, "--right-order", "pattern")
    assert "does not divide" in refused(capsys, three, tiles)
    assert "only RIGHT" in refused(capsys, tiles, two)
    assert "window 'half'" in refused(capsys, two, tiles, "--window", "half")


def test_command_line_mistakes(save, capsys):
    path = save("l.npy", np.ones((4, 4)))
    assert "did you mean cpu_fft?" in refused(capsys, path, path, "--variant", "cpu_ftf")
    assert "fp32" in refused(capsys, path, path, "--precision", "fp99")
    assert "RIGHT.npy" in refused(capsys, path)
    assert "--nothing" in refused(capsys, path, path, "--nothing")
    assert "invalid choice" in refused(capsys, path, path, "--form", "m-to-n")
    assert "positive integer" in refused(capsys, path, path, "--chunk-mib", "0")


def test_outputs_are_never_lost(save, capsys, tmp_path):
    path, other = save("l.npy", np.ones((4, 4))), save("r.npy", np.ones((4, 4)))
    out = tmp_path / "out.npy"
    out.write_text("precious")
    assert "exists; use --force" in refused(capsys, path, other, "--output", out)
    assert out.read_text() == "precious"
    library = ScipyLibrary()
    library.correlate = lambda *a, **k: (_ for _ in ()).throw(LibraryError("broken: on purpose; no way out"))
    assert "on purpose" in refused(capsys, path, other, "--output", out, "--force", "--quiet", library=library)
    assert out.read_text() == "precious"
    assert xcorr(path, other, "--output", out, "--force") == 0
    assert np.load(out).shape == (1, 7, 7)
    assert "named twice" in refused(capsys, path, other, "--output", path, "--force")
    assert "named twice" in refused(capsys, path, other, "--output", tmp_path / "x", "--peaks", tmp_path / "x")
    assert "is a folder" in refused(capsys, path, other, "--output", tmp_path)
    assert "cannot be written" in refused(capsys, path, other, "--peaks", tmp_path / "none" / "p.csv")
    assert "cannot be written" in refused(capsys, path, other, "--output", "/proc/out.npy")
    assert sorted(os.listdir(tmp_path)) == ["l.npy", "out.npy", "r.npy"]


def test_memory_and_disk_are_checked_first(save, capsys, tmp_path, monkeypatch):
    path = save("l.npy", np.ones((8, 64, 64)))
    monkeypatch.setattr(matrices, "available_memory", lambda: 100_000)
    line = refused(capsys, path, path, "--form", "n-to-m")
    assert "needs" in line and "bytes of memory" in line and "100000 are available" in line
    monkeypatch.undo()
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(correlate.shutil, "disk_usage", lambda _: usage)
    line = refused(capsys, path, path, "--form", "n-to-m", "--output", tmp_path / "o.npy")
    assert "bytes of disk, 1000 are free" in line


def test_overflowing_correlation_is_named(save, capsys):
    left, right = save("l.npy", np.full((4, 4), 1e30)), save("r.npy", np.full((2, 4, 4), 1e30))
    with np.errstate(over="ignore"):
        assert "pair 0: the correlation overflows" in refused(capsys, left, right, "--quiet")


def test_door_names_a_missing_library(save, tmp_path):
    """Through the shell, from another folder, with relative paths and a module that must not be found."""
    save("l.npy", np.eye(4))
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    door = ROOT / "scripts" / "xcorr"
    environment = {**os.environ, "XCORR_BUILD": str(tmp_path / "nothing")}
    done = subprocess.run([door, "l.npy", "l.npy"], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "not built; run ./scripts/setup.sh and build" in done.stderr
    helped = subprocess.run([door, "--help"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert helped.returncode == 0 and "examples:" in helped.stdout
