"""Particle image velocimetry: fields of known displacement, the normalised median test, and the command."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from scipy_library import refused

from xcorr.commands import piv, velocimetry
from xcorr.commands.velocimetry import displacements, grid, median_residual, particle_pair, replace_outliers
from xcorr.errors import LibraryError, UserError
from xcorr.native.arrays import Windows
from xcorr.problem import Problem

SHAPE = (256, 256)
VIEWS = Problem("n-to-mn", (16, 16), (16, 16), 3, 3, score="covariance", views="windows")


def vortex(y, x):
    """A Gaussian vortex in the middle; 2.5 pixels at most."""
    dy, dx = y - SHAPE[0] / 2, x - SHAPE[1] / 2
    turn = 2.5 / 80 * np.exp(0.5 - (dy**2 + dx**2) / (2 * 80**2))
    return turn * dx, -turn * dy


def shear(y, x):
    return np.full_like(y, -0.6), 0.02 * (y - SHAPE[0] / 2) + 3.4


FIELDS = {"vortex": vortex, "shear": shear}


@pytest.fixture(scope="module")
def pairs():
    return {name: particle_pair(SHAPE, field, np.random.default_rng(4), 0.05) for name, field in FIELDS.items()}


def errors(found, field):
    y, x = np.meshgrid(found.y, found.x, indexing="ij")
    dy, dx = field(y, x)
    return found.dy - dy, found.dx - dx


def rms(found, field):
    dy, dx = errors(found, field)
    return float(np.sqrt(np.mean(dy**2 + dx**2)))


@pytest.mark.parametrize("boundary", ["circular", "zero"])
@pytest.mark.parametrize("name", FIELDS)
def test_a_known_field_is_found_within_a_tenth_of_a_pixel(library, pairs, name, boundary):
    choose = piv.chooser(library, "auto", "cpu")
    found = displacements(library, *pairs[name], window=32, boundary=boundary, choose=choose)
    assert rms(found, FIELDS[name]) < 0.1
    for mean in (float(one.mean()) for one in errors(found, FIELDS[name])):
        assert abs(mean) < 0.05
    assert found.outlier.mean() < 0.1 and np.nanmedian(found.signal_to_noise) > 2


@pytest.mark.parametrize(("window", "limit"), [(16, 0.2), (64, 0.3)])
def test_other_windows_find_it_too(library, pairs, window, limit):
    found = displacements(library, *pairs["vortex"], window=window, choose=piv.chooser(library, "cpu_fft", "cpu"))
    assert found.dy.shape == ((SHAPE[0] - window) // (window // 2) + 1,) * 2
    assert rms(found, vortex) < limit


def test_a_second_pass_finds_what_leaves_the_window(library):
    first, second = particle_pair(SHAPE, lambda y, x: (0 * y, 0 * x + 11.3), np.random.default_rng(2))
    choose = piv.chooser(library, "auto", "cpu")
    once, twice = (displacements(library, first, second, passes=passes, choose=choose) for passes in (1, 2))
    for found in (once, twice):
        assert np.abs(found.dx[1:-1, 1:-2] - 11.3).max() < 0.15
    assert np.median(twice.signal_to_noise) > 1.3 * np.median(once.signal_to_noise)
    assert twice.outlier.mean() <= once.outlier.mean()


def test_the_direction_is_down_and_right(library):
    rng = np.random.default_rng(1)
    first = rng.random((64, 64), np.float32)
    second = np.roll(first, (3, -2), (0, 1))
    found = displacements(library, first, second, choose=piv.chooser(library, "auto", "cpu"))
    assert np.round(found.dy[1, 1]) == 3 and np.round(found.dx[1, 1]) == -2


def test_windows_of_a_frame_are_what_copies_are(library):
    rng = np.random.default_rng(3)
    frames = [rng.random((30, 41), np.float32) for _ in range(2)]
    corners = [(0, 0), (14, 25), (7, 3)]
    offsets = np.array([y * 41 + x for y, x in corners])
    copies = [np.stack([frame[y : y + 16, x : x + 16] for y, x in corners]) for frame in frames]
    expected = library.reference(replace(VIEWS, views="dense"), *copies)
    for variant in ("template_fft_cpu", "cpu_fft"):
        out = library.correlate(VIEWS, *(Windows(frame, offsets) for frame in frames), variant=variant)
        np.testing.assert_allclose(out, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0, 26, 5], "window 1 at offset 26 leaves the 41 columns"),
        ([0, -1, 5], "window 1 at offset -1 leaves"),
        ([0, 15 * 41, 5], "leaves the array of 1230 elements"),
        ([0, 1], "give 3 integers"),
        ([0.0, 1, 2], "give 3 integers"),
    ],
)
def test_windows_outside_the_frame_are_refused(library, offsets, message):
    frame = np.ones((30, 41), np.float32)
    with pytest.raises(LibraryError, match=message):
        library.correlate(VIEWS, *[Windows(frame, np.array(offsets))] * 2, variant="cpu_fft")


def test_arrays_without_offsets_are_refused(library):
    problem = Problem("one-to-one", (4, 4), (4, 4), score="covariance", views="windows")
    one = np.ones((1, 4, 4), np.float32)
    with pytest.raises(LibraryError, match="give xcorr.native.arrays.Windows"):
        library.correlate(problem, one, one, variant="cpu_fft")
    with pytest.raises(LibraryError, match="the reference takes dense matrices"):
        library.reference(problem, one, one)


def test_the_normalised_median_test_finds_the_one_that_differs():
    y, x = np.mgrid[0:9, 0:9]
    dy, dx = 0.1 * x, 0.05 * y + 2
    assert median_residual(dy, dx).max() < velocimetry.THRESHOLD
    wrong = dx.copy()
    wrong[4, 5] += 3
    made_y, made_x, residual, outlier = replace_outliers(dy, wrong, np.zeros((9, 9), bool))
    assert np.argwhere(outlier).tolist() == [[4, 5]] and residual[4, 5] > 10
    assert made_x[4, 5] == pytest.approx(dx[4, 5], abs=0.06) and made_y[4, 5] == pytest.approx(dy[4, 5], abs=0.11)
    np.testing.assert_array_equal(made_x[~outlier], dx[~outlier])


def test_the_residual_is_that_of_westerweel_and_scarano():
    dx = np.array([[1.0, 1.2, 0.9], [1.1, 5.0, 1.0], [0.8, 1.3, 1.0]])
    # Of the eight neighbours: median 1.0, and of their distances 0.1; the other component is 0 throughout.
    assert median_residual(np.zeros((3, 3)), dx)[1, 1] == pytest.approx(4.0 / (0.1 + velocimetry.NOISE))


def test_a_group_of_lost_ones_is_filled_from_its_rim():
    lost = np.zeros((7, 7), bool)
    lost[1:6, 1:6] = True
    made, _, _, outlier = replace_outliers(np.full((7, 7), 2.0), np.zeros((7, 7)), lost)
    assert (made == 2).all() and (outlier == lost).all()
    nothing, *_ = replace_outliers(np.ones((3, 3)), np.ones((3, 3)), np.ones((3, 3), bool))
    assert np.isnan(nothing).all()


def test_flat_frames_have_no_displacement_and_say_so(library):
    flat = np.full((40, 40), 7, np.float32)
    found = displacements(library, flat, flat, window=16, choose=piv.chooser(library, "auto", "cpu"))
    assert found.outlier.all() and found.blank.all()
    for numbers in (found.dy, found.dx, found.value, found.signal_to_noise):
        assert np.isnan(numbers).all()


def test_the_grid_covers_the_frame_with_whole_windows():
    rows, cols = grid((100, 64), 32, 16)
    assert rows.tolist() == [0, 16, 32, 48, 64] and cols.tolist() == [0, 16, 32]
    with pytest.raises(UserError, match="--window 65: frames of 100x64 have windows of 4 to 64"):
        grid((100, 64), 65, 0)
    with pytest.raises(UserError, match="--overlap 32: use 0 to 31"):
        grid((100, 64), 32, 32)


def test_the_command_prints_a_line_a_window_and_draws(library, pairs, save, tmp_path, capsys, xcorr):
    paths = [save(f"{name}.npy", frame) for name, frame in zip(("first", "second"), pairs["vortex"])]
    table, figure = tmp_path / "vectors.csv", tmp_path / "vectors.png"
    argv = ["piv", *paths, "--output", str(table), "--figure", str(figure)]
    xcorr(library, *argv)
    lines = list(csv.DictReader(table.open()))
    assert len(lines) == 15 * 15 and tuple(lines[0]) == piv.COLUMNS
    assert (lines[0]["y"], lines[1]["x"]) == ("15.5", "31.5")
    middle = lines[7 * 15 + 3]  # left of the middle, where the vortex goes up
    assert float(middle["dy"]) == pytest.approx(vortex(np.array(127.5), np.array(63.5))[0], abs=0.2)
    assert figure.read_bytes()[:4] == b"\x89PNG"
    assert "exists; use --force" in refused(capsys, *argv, library=library)


def test_a_failure_to_draw_loses_no_table(library, save, tmp_path, monkeypatch, xcorr):
    def fails(*_):
        raise RuntimeError("no font")

    monkeypatch.setattr(piv, "draw", fails)
    path, table = save("frame.npy", np.random.default_rng(1).random((40, 50))), tmp_path / "vectors.csv"
    files = f"--output {table} --figure {tmp_path / 'vectors.svg'}"
    with pytest.raises(RuntimeError, match="no font"):
        xcorr(library, "piv", path, path, "--window 16", files)
    lines = list(csv.DictReader(table.open()))
    assert len(lines) == 4 * 5 and all(abs(float(line["dy"])) < 1e-3 for line in lines)


@pytest.mark.parametrize("grid_shape", [(1, 1), (1, 124), (124, 1), (2, 300), (48, 49), (97, 130)])
def test_some_arrows_are_drawn_of_every_grid(grid_shape, tmp_path, monkeypatch):
    drawn = []
    quiver = Axes.quiver

    def counted(self, x, y, *others, **options):
        drawn.append((np.unique(x), np.unique(y), options["scale"]))
        return quiver(self, x, y, *others, **options)

    monkeypatch.setattr(Axes, "quiver", counted)
    y, x = (15.5 + 16 * np.arange(extent) for extent in grid_shape)
    ones = np.ones(grid_shape)
    field = velocimetry.Field(y, x, 3 * ones, 4 * ones, ones, ones, 0 * ones, ones < 0, ones < 0)
    frame = np.zeros([16 * (extent + 1) for extent in grid_shape], np.float32)
    piv.draw(tmp_path / "field.png", frame, field)
    (across, down, scale), (no_outliers, *_) = drawn
    assert no_outliers.size == 0
    for extent, places in zip(grid_shape, (down, across)):
        assert min(extent, piv.MOST_ARROWS // 2) <= places.size <= piv.MOST_ARROWS
    distances = [np.diff(places).min() for places in (down, across) if places.size > 1]
    assert 5 / scale <= min(distances, default=np.inf)  # no arrow reaches the next one


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--window 300", "--window 300: frames of 40x50 have windows of 4 to 40"),
        ("--window 16 --overlap 16", "--overlap 16: use 0 to 15"),
        ("--window 16 --passes 0", "--passes 0: use 1 to 20"),
        ("--window 16 --passes 1000000000", "--passes 1000000000: use 1 to 20"),
        ("--window 16,8,4", "--window: 3 values for 2 passes; give one a pass, or raise --passes"),
        ("--window 16,x", "argument --window: invalid"),
        ("--window 16 --fit gaussian,cubic", "--fit cubic: unknown; use gaussian or parabola"),
        ("--figure arrows.txt", "--figure arrows.txt: end it with .svg, .png or .pdf"),
        ("--window 16 --threshold 0", "--threshold 0: give a number above 0"),
        ("--window 16 --least-value 50", "--least-value 50: is a correlation coefficient; use -1 to 1"),
        ("--window 16 --least-valid nan", "--least-valid nan: is a share of pixels; use 0 to 1"),
        ("--window 16 --variant nothing", "variant 'nothing': unknown"),
        ("--window 16 --variant cpu_row_streming", "cpu_row_streaming"),
    ],
)
def test_mistakes_are_one_line(library, save, capsys, options, message):
    path = save("frame.npy", np.random.default_rng(1).random((40, 50)))
    assert message in refused(capsys, "piv", path, path, *options.split(), library=library)


def test_frames_of_two_shapes_are_refused(save, capsys):
    paths = [save("one.npy", np.ones((40, 50))), save("other.npy", np.ones((40, 51)))]
    line = refused(capsys, "piv", *paths, library=object())
    assert "40x50 and 40x51 pixels; give two frames of one shape" in line
    line = refused(capsys, "piv", save("stack.npy", np.ones((2, 4, 5))), paths[0], library=object())
    assert "3 dimensions; give one frame" in line
