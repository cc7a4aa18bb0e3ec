"""C1D and R_max: images of known length, tables of known shape, and the command on a stand-in library."""

import csv

import numpy as np
import pytest
import scipy.signal
from scipy_library import ScipyLibrary, refused

from xcorr.commands import autocorrelation
from xcorr.commands.autocorrelation import J0_MAXIMUM

TOLERANCE = 0.01  # of R_max; 20 seeds stay within 0.75 % at 400 x 300 pixels


class OneArray(ScipyLibrary):
    """Knows problems of one array, which have no right."""

    def correlate(self, problem, left, right, **how):
        assert right is None and problem.fields.same == "yes"
        return super().correlate(problem, left, left, **how)


def half_plane(image: np.ndarray, radius: int) -> np.ndarray:
    """Outputs of the window sy:0..R,sx:-R..R, in float64."""
    full = scipy.signal.correlate(image, image, "full", "fft")
    y, x = (extent - 1 for extent in image.shape)
    return full[y : y + radius + 1, x - radius : x + radius + 1]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("wavelength", [20.0, 40.0])
def test_a_ring_spectrum_has_its_maximum_at_1_117_wavelengths(wavelength, seed):
    image = autocorrelation.ring_image((400, 300), wavelength, np.random.default_rng([seed, 5]))
    true = wavelength * J0_MAXIMUM / (2 * np.pi)
    assert true / wavelength == pytest.approx(1.117, abs=1e-3)
    removed = autocorrelation.without_mean(image[np.newaxis])[0].astype(np.float64)
    (found,) = autocorrelation.of_planes(half_plane(removed, int(1.7 * wavelength))[np.newaxis])
    assert found["r_max"] == pytest.approx(true, rel=TOLERANCE)
    assert found["c1d"][0] == 1 and found["c1d"].min() < -0.2
    # Raw, the slope of the overlap moves the maximum towards 0, or hides it.
    (raw,) = autocorrelation.of_planes(half_plane(image.astype(np.float64), int(1.7 * wavelength))[np.newaxis])
    assert raw["c1d"].min() > 0.5 and not raw["r_max"] > true * (1 - TOLERANCE)


def test_the_bessel_function_has_its_maximum_where_the_table_says():
    radii = np.arange(200.0)
    wave_number = J0_MAXIMUM / 88
    angles = np.linspace(0, np.pi, 2001)
    c1d = np.cos(wave_number * radii[:, np.newaxis] * np.sin(angles)).mean(axis=1)
    assert autocorrelation.r_max(radii, c1d) == pytest.approx(88, rel=1e-3)


@pytest.mark.parametrize(
    "c1d", [np.exp(-np.arange(50.0)), np.linspace(1, 0.2, 9), np.full(9, np.nan), np.cos(np.arange(30) / 6)]
)
def test_no_maximum_that_is_fallen_from_again_is_none(c1d):
    assert np.isnan(autocorrelation.r_max(np.arange(c1d.size, dtype=float), c1d))


def test_ripples_below_the_prominence_are_no_maxima():
    radii = np.arange(80.0)
    c1d = np.cos(2 * np.pi * radii / 40) + 0.004 * np.cos(2 * np.pi * radii / 5)
    assert autocorrelation.r_max(radii, c1d) == pytest.approx(40, abs=1)
    assert autocorrelation.r_max(radii, c1d, prominence=0.001) == pytest.approx(40, abs=1)


def test_the_plane_is_symmetric_and_a_constant_image_has_none():
    rng = np.random.default_rng(3)
    image = rng.normal(size=(9, 12))
    plane = autocorrelation.normalised(half_plane(image, 4))
    full = scipy.signal.correlate(image, image, "full")[4:13, 7:16]
    np.testing.assert_allclose(plane, full / full[4, 4], atol=1e-12)
    np.testing.assert_allclose(plane, plane[::-1, ::-1], atol=1e-12)
    flat = autocorrelation.without_mean(np.full((1, 5, 6), 7, np.uint8))
    assert np.isnan(autocorrelation.normalised(half_plane(flat[0], 2))).all()


def test_a_ring_is_averaged_over_its_shifts():
    plane = np.arange(25.0).reshape(5, 5)
    radii, c1d = autocorrelation.azimuthal_average(plane)
    np.testing.assert_allclose(c1d, 12)  # antisymmetric about the middle
    np.testing.assert_allclose(radii, [0, (4 + 4 * np.sqrt(2)) / 8, (4 * 2 + 8 * np.sqrt(5)) / 12])


def test_the_command_prints_a_line_a_frame_and_radius_and_draws(save, tmp_path, table):
    frames = [
        autocorrelation.ring_image((90, 120), wavelength, np.random.default_rng(one))
        for one, wavelength in enumerate((12.0, 16.0))
    ]
    figure = tmp_path / "c1d.png"
    found = table(OneArray(), "autocorr", save("frames.npy", np.stack(frames)), "--figure", figure)
    assert [(line["frame"], round(float(line["r"]))) for line in found] == [
        (str(f), r) for f in range(2) for r in range(31)
    ]
    assert found[0]["c1d"] == found[0]["c1d_raw"] == "1"
    lengths = [float(found[at]["r_max"]) for at in (0, 31)]
    assert lengths == pytest.approx([1.117 * 12, 1.117 * 16], rel=0.03)
    assert figure.read_bytes()[:4] == b"\x89PNG"


def test_the_command_takes_one_image_and_writes_files(save, tmp_path, xcorr):
    path = save("frame.npy", np.random.default_rng(1).normal(size=(20, 30)))
    table = tmp_path / "c1d.csv"
    library = OneArray()
    xcorr(library, "autocorr", path, "--radius 5 --variant cpu_definition --output", table)
    assert len(list(csv.DictReader(table.open()))) == 6
    assert sorted(one.name for one in tmp_path.iterdir()) == ["c1d.csv", "frame.npy"], "no file that was not asked for"
    problem, variant, *_ = library.calls[0]
    assert (problem.form, problem.window, variant) == ("one-to-one", "sy:0..5,sx:-5..5", "cpu_definition")


def test_the_command_works_twice(save, tmp_path, xcorr):
    path = save("frame.npy", np.random.default_rng(1).normal(size=(20, 30)))
    for _ in range(2):
        xcorr(OneArray(), "autocorr", path, "--radius 5")
    assert [one.name for one in tmp_path.iterdir()] == ["frame.npy"]


@pytest.mark.parametrize(
    "options, told",
    [
        ("--radius 20", "shifts of 1 to 19"),
        ("--prominence 0", "--prominence"),
        ("--figure c1d.txt", ".svg"),
        ("--output frame.npy", "named twice"),
        ("--variant cpu_dft", "cpu_fft"),
    ],
)
def test_a_mistake_is_one_line(save, tmp_path, monkeypatch, capsys, options, told):
    monkeypatch.chdir(tmp_path)
    path = save("frame.npy", np.ones((20, 30)))
    assert told in refused(capsys, "autocorr", path, *options.split(), library=OneArray())
