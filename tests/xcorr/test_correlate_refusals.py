"""What xcorr refuses: one line, exit code 2, nothing lost; on a stand-in library."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy_library import ScipyLibrary, refused

from xcorr.commands import correlate, matrices, memory
from xcorr.errors import LibraryError
from xcorr.paths import ROOT


@pytest.fixture
def ones(save):
    """The path of a good matrix."""
    return save("good.npy", np.ones((4, 4)))


def with_value(value, index=(1, 2, 3)):
    array = np.zeros((3, 4, 5))
    array[index] = value
    return array


@pytest.mark.parametrize(
    "array, words",
    [
        (np.array([["a", "b"]], object), "Python objects"),
        (np.ones((4, 4), complex), "complex"),
        (np.zeros((4, 4), [("a", "f4")]), "save float32"),
        (np.ones((4, 4), "M8[s]"), "save float32"),
        (np.ones((4, 4), np.longdouble), "save float32"),
        (np.ones((0, 4)), "no element"),
        (np.ones((4, 0)), "no element"),
        (np.ones((0, 4, 4)), "no element"),
        (np.ones((1, 1, 1, 2, 2)), "5 dimensions"),
        (np.float32(3), "0 dimensions"),
        (with_value(np.nan), "nan at index [1, 2, 3]"),
        (with_value(np.inf), "inf at index [1, 2, 3]"),
        (np.asfortranarray(with_value(-np.inf, (0, 3, 4))), "-inf at index [0, 3, 4]"),
        (with_value(np.nan).astype(">f4"), "nan at index [1, 2, 3]"),
        (with_value(1e300), "beyond float32"),
    ],
)
def test_wrong_arrays(save, capsys, ones, array, words):
    line = refused(capsys, ones, save("bad.npy", array))
    assert "bad.npy" in line and words in line


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "not a .npy"),
        (b"PK\x03\x04 not", "not a .npy"),
        (b"\x93NUMPY", "damaged"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4',", "damaged"),
        (b"\x93NUMPY\x09\x00", "version 9.0"),
    ],
)
def test_wrong_files(ones, capsys, tmp_path, content, words):
    (tmp_path / "bad.npy").write_bytes(content)
    line = refused(capsys, ones, tmp_path / "bad.npy")
    assert "bad.npy" in line and words in line


def test_truncated_missing_and_folder(ones, capsys, tmp_path):
    data = Path(ones).read_bytes()
    for cut in (len(data) - 1, len(data) - 100, 100, 9):
        (tmp_path / "cut.npy").write_bytes(data[:cut])
        line = refused(capsys, ones, tmp_path / "cut.npy")
        assert "truncated" in line or "damaged" in line
    assert "No such file" in refused(capsys, ones, tmp_path / "none.npy")
    assert "Is a directory" in refused(capsys, ones, tmp_path)


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--variant cpu_ftf", "did you mean cpu_fft?"),
        ("--device cuda:0", "device cuda:0: no variant of this build computes one-to-one"),
        ("--params threads=1", "name a --variant"),
        ("--variant cpu_fft --precision fp99", "cpu_fft has fp32"),
        ("--precision fp99", "fp32"),
        ("--nothing", "--nothing"),
        ("--form m-to-n", "invalid choice"),
        ("--chunk-mib 0", "positive integer"),
    ],
)
def test_command_line_mistakes(ones, capsys, words, told):
    assert told in refused(capsys, ones, ones, *words.split())


def test_a_right_is_asked_for(ones, capsys):
    assert "RIGHT.npy" in refused(capsys, ones)


def test_outputs_are_never_lost(save, capsys, tmp_path, xcorr):
    path, other = save("l.npy", np.ones((4, 4))), save("r.npy", np.ones((4, 4)))
    out = tmp_path / "out.npy"
    out.write_text("precious")
    assert "exists; use --force" in refused(capsys, path, other, "--output", out)
    assert out.read_text() == "precious"
    library = ScipyLibrary()
    library.correlate = lambda *a, **k: (_ for _ in ()).throw(LibraryError("broken: on purpose; no way out"))
    assert "on purpose" in refused(capsys, path, other, "--output", out, "--force", library=library)
    assert out.read_text() == "precious"
    xcorr(ScipyLibrary(), path, other, "--force --output", out)
    assert np.load(out).shape == (1, 7, 7)
    assert "named twice" in refused(capsys, path, other, "--output", path, "--force")
    assert "named twice" in refused(capsys, path, other, "--output", tmp_path / "x", "--peaks", tmp_path / "x")
    assert "not a regular file" in refused(capsys, path, other, "--output", tmp_path)
    assert "cannot be written" in refused(capsys, path, other, "--peaks", tmp_path / "none" / "p.csv")
    assert "cannot be written" in refused(capsys, path, other, "--output", "/proc/out.npy")
    assert sorted(os.listdir(tmp_path)) == ["l.npy", "out.npy", "r.npy"]


def test_memory_and_disk_are_checked_first(save, capsys, tmp_path, monkeypatch):
    path = save("l.npy", np.ones((8, 64, 64)))
    monkeypatch.setattr(memory, "available_memory", lambda: 100_000)
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
        assert "pair 0: the correlation overflows" in refused(capsys, left, right)


def test_command_names_a_missing_library(save, tmp_path):
    """Through the shell, from another folder, with relative paths and a module that must not be found."""
    save("l.npy", np.eye(4))
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    command = ROOT / "scripts" / "xcorr"
    environment = {**os.environ, "XCORR_BUILD": str(tmp_path / "nothing")}
    done = subprocess.run(
        [command, "l.npy", "l.npy"], cwd=tmp_path, env=environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "not built; run ./scripts/setup.sh and build" in done.stderr
    helped = subprocess.run([command, "--help"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert helped.returncode == 0 and "examples:" in helped.stdout


def test_outputs_that_are_not_finite_are_not_written_unless_allowed(save, capsys, tmp_path, xcorr):
    """With --output alone, in a later pair and a later chunk too."""
    right = np.ones((3, 4, 4))
    right[2] = 1e30
    left, right = save("l.npy", np.full((4, 4), 1e30)), save("r.npy", right)
    out = tmp_path / "out.npy"
    words = [left, right, "--variant", "cpu_definition", "--output", out]
    with np.errstate(over="ignore"):
        line = refused(capsys, *words)
        assert "pair 2: the correlation overflows" in line and "--allow-nonfinite" in line
        assert sorted(os.listdir(tmp_path)) == ["l.npy", "r.npy"]
        out.write_text("precious")
        refused(capsys, *words, "--force")
        assert out.read_text() == "precious"
        xcorr(ScipyLibrary(), *words, "--force --allow-nonfinite")
        found = np.isinf(np.load(out)).any(axis=(1, 2))
        assert found.tolist() == [False, False, True]
        line = refused(capsys, *words, "--force", "--allow-nonfinite", "--peaks", tmp_path / "p.csv")
        assert "pair 2: the correlation overflows" in line, "a peak of infinity is none"


def npy(shape, data):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


@pytest.mark.parametrize("shape", ["(-4, 4)", "(4, -4)", "(-4, -4)", "(-1, 4, 4)", "(2, -2, -4)"])
def test_negative_shapes_name_their_file(ones, capsys, tmp_path, shape):
    bad = tmp_path / "bad.npy"
    bad.write_bytes(npy(shape, bytes(128)))
    for words in ((ones, bad), (bad, ones)):
        line = refused(capsys, *words)
        assert f"{bad}: " in line and "is negative" in line


def test_bytes_behind_the_array_are_refused(ones, capsys, tmp_path):
    bad, good = tmp_path / "bad.npy", Path(ones).read_bytes()
    for more in (b"\0", good):
        bad.write_bytes(good + more)
        line = refused(capsys, ones, bad)
        assert f"{bad}: {len(more)} bytes follow the array 4x4 float64" in line


def test_a_pipe_is_refused_and_waits_for_nobody(ones, tmp_path):
    """In a process of its own, since a fault would wait without end."""
    pipe = tmp_path / "pipe.npy"
    os.mkfifo(pipe)
    for words in ((pipe, ones), (ones, pipe)):
        code = "import sys; from scipy_library import ScipyLibrary; from xcorr.commands import correlate; "
        code += "sys.exit(correlate.main(sys.argv[1:], ScipyLibrary()))"
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}"}
        done = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, words)], env=environment, stderr=subprocess.PIPE, text=True
        )
        try:
            # Writers of the pipe find a reader only where the program waits for one.
            while done.poll() is None:
                try:
                    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
                    pytest.fail("the pipe was opened")
                except OSError:
                    time.sleep(0.01)
        finally:
            done.kill()
        assert done.returncode == 2 and f"{pipe}: is not a regular file" in done.communicate()[1]


def test_the_mean_is_subtracted_in_float64():
    """Whatever numpy does with a float32 array and a float64 number."""
    matrix = np.full((1, 3, 3), 16777216, np.float32)
    matrix[0, 0, 0] = 16777218
    expected = (matrix.astype(np.float64) - matrix.astype(np.float64).mean()).astype(np.float32)
    np.testing.assert_array_equal(matrices.without_means(matrix).astype(np.float32), expected)
    for kind in (bool, np.uint8, np.int64, np.uint64, np.float64):
        small = np.array([[[0, 1], [1, 1]]], kind)
        expected = np.array([[[-0.75, 0.25], [0.25, 0.25]]], np.float32)
        np.testing.assert_array_equal(matrices.without_means(small).astype(np.float32), expected)


def test_unknown_memory_is_not_none(tmp_path, monkeypatch):
    """Without /proc, on a kernel that does not tell what is available, and without anything at all."""
    none = tmp_path / "none"
    whole = memory.available_memory(none, none)
    assert whole == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    (tmp_path / "old").write_text("MemTotal: 9 kB\nMemFree: 0 kB\n")
    assert memory.available_memory(tmp_path / "old", none) == whole
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable:   10 kB\n")
    assert memory.available_memory(tmp_path / "meminfo", none) == 10240
    (tmp_path / "memory.max").write_text("8000\n")
    assert memory.available_memory(none, tmp_path) == 8000, "a limit counts without /proc too"
    (tmp_path / "memory.current").write_text("9000\n")
    assert memory.available_memory(tmp_path / "meminfo", tmp_path) == 0
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_memory(tmp_path / "meminfo", tmp_path) == 10240

    def unknown(_):
        raise ValueError("unrecognized configuration name")

    for refuse in (unknown, lambda _: -1):
        monkeypatch.setattr(os, "sysconf", refuse)
        assert memory.available_memory(none, none) is None
        monkeypatch.setattr(memory, "available_memory", lambda: None)
        memory.check_memory("anything", {"all": 1 << 60})
        monkeypatch.undo()


@pytest.mark.parametrize("shape", ["(True, True)", "(4, True)", f"({10**30}, 4)", f"({'9' * 3000}, {'9' * 3000})"])
def test_shapes_of_other_numbers_name_their_file(ones, capsys, tmp_path, shape):
    bad = tmp_path / "bad.npy"
    bad.write_bytes(npy(shape, bytes(128)))
    line = refused(capsys, ones, bad)
    assert "bad.npy: damaged .npy header" in line and len(line) < 1000


@pytest.mark.parametrize("capacity", [99999999999, 2**39, 2**30 + 1, 10**30])
def test_a_capacity_beyond_what_a_list_holds_says_what_it_may_be(ones, capsys, capacity):
    line = refused(capsys, ones, ones, "--score", "zncc", "--result", f"above:0.5:{capacity}")
    assert "capacity out of range; use 1 to 1073741824" in line or "a threshold and a capacity" in line
