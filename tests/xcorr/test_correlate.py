"""The user's program xcorr: forms, orders and outputs, on a stand-in library."""

import csv
import os

import numpy as np
import pytest
from scipy_library import ScipyLibrary, refused, scipy_correlation

from xcorr.choice import auto
from xcorr.commands import matrices
from xcorr.commands.outputs import PEAK_COLUMNS
from xcorr.native import stream
from xcorr.problem import Problem, pair_indices


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def output(xcorr, tmp_path):
    """Runs the command on the stand-in library; the array that it writes."""

    def run(*words):
        xcorr(ScipyLibrary(), *words, "--quiet", "--force", "--output", tmp_path / "out.npy")
        return np.load(tmp_path / "out.npy")

    return run


@pytest.mark.parametrize("window", ["full", "valid", "sy:-2..3,sx:0..4"])
@pytest.mark.parametrize(
    "form, lefts, rights", [("one-to-one", 1, 1), ("one-to-many", 1, 5), ("n-to-mn", 3, 6), ("n-to-m", 3, 4)]
)
@pytest.mark.parametrize("chunk_pairs", [1, 3, 1000])
def test_output_equals_scipy_whatever_the_chunks(
    save, rng, output, monkeypatch, window, form, lefts, rights, chunk_pairs
):
    left, right = rng.normal(size=(lefts, 7, 5)), rng.normal(size=(rights, 9, 8))
    problem = Problem(form, (7, 5), (9, 8), lefts, rights, window)
    truth = scipy_correlation(problem, left.astype(np.float32), right.astype(np.float32))
    plan = stream.plan_chunks
    monkeypatch.setattr(stream, "plan_chunks", lambda r, size, limit: plan(r, size, size * chunk_pairs))
    out = output(save("l.npy", left), save("r.npy", right), f"--form {form} --window {window}")
    assert out.dtype == np.float32 and out.shape == truth.shape
    np.testing.assert_allclose(out, truth, atol=1e-4)


@pytest.mark.parametrize("form, lefts, rights", [("one-to-many", 1, 7), ("n-to-mn", 4, 12), ("n-to-m", 3, 5)])
def test_chunks_cover_every_pair_once(form, lefts, rights):
    problem = Problem(form, (2, 2), (2, 2), lefts, rights)
    left_of, right_of = pair_indices(problem)
    for most in range(1, len(left_of) + 2):
        seen = []
        for chunk in stream.plan_chunks(problem, 10, 10 * most + 9):
            assert chunk.first == len(seen) and chunk.pairs <= max(most, 1)
            counts = (side.stop - side.start for side in (chunk.lefts, chunk.rights))
            l, r = pair_indices(Problem(form, (2, 2), (2, 2), *counts))
            assert len(l) == chunk.pairs
            seen += list(zip(l + chunk.lefts.start, r + chunk.rights.start))
        assert seen == list(zip(left_of, right_of))


@pytest.mark.parametrize(
    "kind, order", [(">f8", "C"), ("<f4", "C"), ("i8", "F"), (">i2", "C"), ("u1", "C"), (">u4", "F")]
)
def test_any_type_order_and_layout(save, rng, output, kind, order):
    left, right = rng.integers(0, 9, (6, 5)), rng.integers(0, 9, (4, 6, 5))
    out = output(*(save(f"{name}.npy", one.astype(kind, order)) for name, one in (("l", left), ("r", right))))
    truth = scipy_correlation(Problem("one-to-many", (6, 5), (6, 5), 1, 4), left[None], right)
    np.testing.assert_array_equal(out, truth)


def test_right_order_reaches_the_same_pairs(save, rng, output):
    left = rng.normal(size=(3, 4, 4)).astype(np.float32)
    by_tile = rng.normal(size=(3, 2, 4, 4)).astype(np.float32)  # tiles x patterns
    by_pattern, path = by_tile.swapaxes(0, 1), save("l.npy", left)
    truth = scipy_correlation(Problem("n-to-mn", (4, 4), (4, 4), 3, 6), left, by_tile.reshape(6, 4, 4))
    for array, order in (
        (by_tile, "--right-order tile"),
        (by_tile, ""),
        (by_pattern, "--right-order pattern"),
        (by_pattern, ""),
        (by_tile.reshape(6, 4, 4), "--right-order tile"),
        (by_pattern.reshape(6, 4, 4), "--right-order pattern"),
    ):
        np.testing.assert_allclose(output(path, save("r.npy", array), order), truth, atol=1e-4)


def test_square_stack_of_tiles_asks_for_the_order(save, capsys):
    line = refused(capsys, save("l.npy", np.ones((3, 4, 4))), save("r.npy", np.ones((3, 3, 4, 4))))
    assert "--right-order" in line


@pytest.mark.parametrize(
    "lefts, rights, form",
    [(1, (), "one-to-one"), (1, (5,), "one-to-many"), (3, (), "n-to-m"), (3, (4,), "n-to-m"), (3, (3, 2), "n-to-mn")],
)
def test_form_is_inferred_where_only_one_fits(lefts, rights, form):
    assert matrices.infer_form(None, lefts, (*rights, 8, 8), None) == form


def test_ambiguous_form_asks(save, capsys):
    line = refused(capsys, save("l.npy", np.ones((3, 4, 4))), save("r.npy", np.ones((6, 4, 4))))
    assert "6 pairs" in line and "18 pairs" in line and "--form" in line


def test_peaks_on_stdout_with_sign_and_origin(save, rng, xcorr):
    scene = rng.normal(size=(40, 40))
    left, right = scene[10:30, 12:30], np.stack([scene[8:28, 15:33], scene[10:30, 12:30]])
    out, err = xcorr(ScipyLibrary(), save("l.npy", left), save("r.npy", right), "--subtract-mean")
    assert "shift origin: output index [0][0] is shift sy=-19 sx=-17" in err
    rows = list(csv.DictReader(out.splitlines()))
    assert [(row["pair"], row["left"], row["right"]) for row in rows] == [("0", "0", "0"), ("1", "0", "1")]
    assert [(int(row["sy"]), int(row["sx"])) for row in rows] == [(2, -3), (0, 0)]
    assert tuple(rows[0]) == PEAK_COLUMNS
    assert all(abs(float(row["sub_sy"]) - int(row["sy"])) <= 0.5 for row in rows)
    assert float(rows[1]["peak_to_second"]) > 1.5


def test_peaks_file_and_output_together(save, rng, tmp_path, xcorr):
    paths = [save("l.npy", rng.normal(size=(2, 6, 6))), save("r.npy", rng.normal(size=(3, 6, 6)))]
    files = f"--output {tmp_path / 'o.npy'} --peaks {tmp_path / 'p.csv'}"
    assert "shift origin" in xcorr(ScipyLibrary(), *paths, files, "--form n-to-m").out
    out, rows = np.load(tmp_path / "o.npy"), list(csv.DictReader((tmp_path / "p.csv").open()))
    assert [float(row["value"]) for row in rows] == pytest.approx(out.max(axis=(1, 2)), rel=1e-6)
    assert [(row["left"], row["right"]) for row in rows] == [(str(i), str(j)) for i in range(2) for j in range(3)]
    assert sorted(os.listdir(tmp_path)) == ["l.npy", "o.npy", "p.csv", "r.npy"]


def test_subtract_mean_takes_each_matrix_its_own(save, rng, output):
    left, right = rng.normal(5, 1, (6, 6)), rng.normal(100, 1, (2, 6, 6)) * [[[1]], [[7]]]
    out = output(save("l.npy", left), save("r.npy", right), "--subtract-mean")
    plain = (left - left.mean())[None], right - right.mean(axis=(1, 2), keepdims=True)
    truth = scipy_correlation(Problem("one-to-many", (6, 6), (6, 6), 1, 2), *plain)
    np.testing.assert_allclose(out, truth, rtol=1e-4, atol=1e-2)


def test_variant_params_precision_and_device_reach_the_library(save, tmp_path, xcorr):
    library = ScipyLibrary()
    path = save("l.npy", np.eye(4))
    words = "--variant cpu_definition --params threads=all --precision fp64 --device cpu --quiet --output"
    xcorr(library, path, path, words, tmp_path / "o.npy")
    assert [call[1:] for call in library.calls] == [("cpu_definition", "threads=all", "fp64", "cpu")]
    assert np.load(tmp_path / "o.npy").dtype == np.float64


def test_the_default_is_auto_and_says_why(save, rng, xcorr):
    left, right = save("l.npy", rng.normal(size=(5, 5))), save("r.npy", rng.normal(size=(3, 64, 64)))
    for words in ("", "--variant auto"):
        library = ScipyLibrary()
        err = xcorr(library, left, right, words).err
        (problem, variant, params, precision, _), *_ = library.calls
        said = [line for line in err.splitlines() if line.startswith("auto: ")]
        assert len(said) == 1 and said[0].startswith(f"auto: {variant} {params}: ") and precision == "fp32"
        expected = auto.Auto(library, calls=1).choose(problem)
        assert (variant, params) == (expected.variant, expected.params)


def test_auto_is_asked_about_the_chunks_that_run(save, rng, monkeypatch, tmp_path, xcorr):
    asked = []
    choose = auto.Auto.choose
    monkeypatch.setattr(
        auto.Auto, "choose", lambda self, problem, precision: asked.append(problem) or choose(self, problem, precision)
    )
    plan = stream.plan_chunks
    monkeypatch.setattr(stream, "plan_chunks", lambda r, size, limit: plan(r, size, size * 3))
    left, right = save("l.npy", rng.normal(size=(5, 5))), save("r.npy", rng.normal(size=(7, 9, 9)))
    library = ScipyLibrary()
    xcorr(library, left, right, "--quiet --peaks", tmp_path / "p.csv")
    assert [problem.rights for problem in asked] == [3] and [call[0].rights for call in library.calls] == [3, 3, 1]


def test_list(xcorr):
    assert "cpu_fft" in xcorr(ScipyLibrary(), "--list").out
