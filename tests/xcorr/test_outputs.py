"""What all three commands write, and where they refuse to."""

import os

import numpy as np
import pytest
from scipy_library import ScipyLibrary, refused

FRAME = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
COMMANDS = {"xcorr": ([], "--peaks", 2), "autocorr": (["autocorr"], "--output", 1), "piv": (["piv"], "--output", 2)}
FIGURES = ["autocorr", "piv"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("f.npy", FRAME)
    return tmp_path


def words_of(name, path="f.npy"):
    command, option, count = COMMANDS[name]
    return [*command, *[path] * count], option


@pytest.mark.parametrize("name", COMMANDS)
def test_no_file_that_was_not_asked_for_so_that_it_works_twice(folder, library, xcorr, name):
    words, _ = words_of(name)
    tables = []
    for _ in range(2):
        tables.append(xcorr(library, *words).out)
        assert os.listdir(folder) == ["f.npy"]
    assert tables[0] == tables[1] and tables[0].count("\n") > 1


@pytest.mark.parametrize("name", COMMANDS)
def test_what_must_not_be_written_is_refused_before_any_work(folder, capsys, name):
    words, option = words_of(name)
    (folder / "kept").write_text("precious")
    (folder / "folder").mkdir()
    (folder / "link.npy").symlink_to("f.npy")
    long = "a" * 5000
    for target, told in (
        ("kept", "exists; use --force"),
        ("folder", "is not a regular file"),
        ("f.npy", "named twice"),
        ("folder/../f.npy", "named twice"),
        ("link.npy", "named twice"),
        ("none/table.csv", "cannot be written"),
        (long, "File name too long"),
    ):
        line = refused(capsys, *words, option, target, library=object())
        assert told in line and target in line
    assert (folder / "kept").read_text() == "precious"
    assert sorted(os.listdir(folder)) == ["f.npy", "folder", "kept", "link.npy"]


@pytest.mark.parametrize("name", COMMANDS)
def test_links_in_a_circle_are_one_line(folder, capsys, name):
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    words, option = words_of(name)
    assert "one: " in refused(capsys, *words, option, "one", library=object())
    assert "two: " in refused(capsys, *words_of(name, "two")[0], library=object())


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_an_output_too(folder, capsys, name):
    words, option = words_of(name)
    (folder / "old.svg").write_text("precious")
    assert "named twice" in refused(capsys, *words, option, "a.svg", "--figure", "./a.svg", library=object())
    assert "exists; use --force" in refused(capsys, *words, "--figure", "old.svg", library=object())
    assert ".svg, .png or .pdf" in refused(capsys, *words, "--figure", "a.txt", library=object())
    assert sorted(os.listdir(folder)) == ["f.npy", "old.svg"]


@pytest.mark.parametrize("shape", [(1, 500), (500, 1), (500,), (3, 1, 500)])
def test_images_of_one_row_have_a_way_out(save, capsys, xcorr, shape):
    path = save("row.npy", np.random.default_rng(2).normal(size=shape))
    line = refused(capsys, "autocorr", path)
    assert "have one direction" in line and f"use xcorr {path} --same" in line
    xcorr(SameLibrary(), path, "--same --variant cpu_definition")


class SameLibrary(ScipyLibrary):
    def correlate(self, problem, left, right, **how):
        return super().correlate(problem, left, left if right is None else right, **how)


def test_small_images_have_a_default_radius(save, xcorr):
    path = save("small.npy", np.random.default_rng(3).normal(size=(2, 2)))
    xcorr(SameLibrary(), "autocorr", path, "--variant cpu_definition")


def test_frames_of_one_row_have_no_windows(save, capsys):
    path = save("row.npy", np.ones(500))
    assert "frames of 1x500: windows have 4x4 pixels at least" in refused(capsys, "piv", path, path)
