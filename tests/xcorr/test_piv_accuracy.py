"""What velocimetry says is true: no bias towards whole pixels, half a pixel, values, outliers, blank windows and masks."""

import numpy as np
import pytest
from gpu_library import DEVICE, GpuLibrary
from scipy_library import refused

from xcorr.commands import piv, velocimetry, windows
from xcorr.commands.velocimetry import Pass, displacements, particle_pair, schedule
from xcorr.errors import UserError

STEPS = np.linspace(0, 1, 11)


@pytest.fixture(scope="module")
def choose(library):
    return piv.chooser(library, "auto", "cpu")


def in_files(save, frames):
    """The paths of two frames, each as a file."""
    return [save(f"{name}.npy", frame) for name, frame in zip(("first", "second"), frames)]


def moved(shape, dy, dx, seed=0, **particles):
    return particle_pair(shape, lambda y, x: (0 * y + dy, 0 * x + dx), np.random.default_rng(seed), 0.05, **particles)


@pytest.fixture(scope="module")
def stepped():
    """Of each step two frames of particles of 1.2 pixels, which are moved by it."""
    return {step: moved((576, 576), 0, step, round(10 * step), width=1.2) for step in STEPS}


@pytest.mark.parametrize("boundary", ["circular", "zero"])
@pytest.mark.parametrize(("window", "overlap"), [(16, 0), (32, 16), (64, 48)])
def test_no_displacement_is_drawn_to_whole_pixels(library, choose, stepped, window, overlap, boundary):
    """At least 1,000 vectors a step. The fit of a covariance is up to 0.21 pixels too small."""
    side = window + 32 * (window - overlap)
    for step, whole in stepped.items():
        frames = [frame[:side, :side] for frame in whole]
        for fit in velocimetry.FITS:
            options = {"window": window, "overlap": overlap, "fit": fit, "passes": 1, "boundary": boundary}
            found = displacements(library, *frames, choose=choose, **options)
            kept = ~found.outlier
            assert kept.sum() >= 1000
            errors = [float(np.mean(one[kept])) for one in (found.dy, found.dx - step)]
            assert max(map(abs, errors)) <= 0.02, (step, fit, errors)


@pytest.mark.parametrize("fit", velocimetry.FITS)
def test_half_a_pixel_is_half_a_pixel(library, choose, fit):
    first = np.zeros((32, 32), np.uint8)
    first[10:20, 10:20] = 200
    second = ((first.astype(int) + np.roll(first, 1, 1)) // 2).astype(np.uint8)
    found = displacements(library, first.astype(np.float32), second.astype(np.float32), fit=fit, choose=choose)
    assert found.dx.item() == pytest.approx(0.5, abs=2e-3) and found.dy.item() == pytest.approx(0, abs=1e-3)
    assert not found.outlier.any()


def test_a_value_is_the_correlation_coefficient(library, choose):
    rng = np.random.default_rng(5)
    first = rng.normal(size=(128, 160)).astype(np.float32)
    second = np.roll(first, (3, -4), (0, 1))
    same = displacements(library, first, 7 * second + 1000, passes=1, choose=choose)
    inner = same.value[1:-1, 1:-1]
    assert inner.min() > 0.9999 and same.value.max() <= 1
    noise = rng.normal(size=first.shape).astype(np.float32)
    noisy = displacements(library, first, second + noise, passes=1, choose=choose)
    # The signal has half of the variance: sqrt(1 / 2).
    assert np.median(noisy.value[1:-1, 1:-1]) == pytest.approx(0.707, abs=0.03)


@pytest.mark.parametrize(("density", "width"), [(0.03, 0.8), (0.05, 1.2)])
def test_wrong_displacements_are_flagged_and_right_ones_are_not(library, choose, density, width):
    """7.5 of the 8 pixels that windows of 16 can find: a third of the vectors of one pass is wrong."""
    wrong = unflagged = right = flagged = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        frames = particle_pair((128, 160), lambda y, x: (0 * y, 0 * x + 7.5), rng, density, width)
        found = displacements(library, *frames, window=16, passes=1, choose=choose)
        assert found.dx.size == 285
        off = np.hypot(found.dy, found.dx - 7.5) > 0.5
        unflagged += int((off & ~found.outlier).sum())
        measured = displacements(library, *frames, window=16, passes=1, threshold=np.inf, least_value=-1, choose=choose)
        was_off = measured.outlier | (np.hypot(measured.dy, measured.dx - 7.5) > 0.5)
        wrong += int(was_off.sum())
        right += int((~was_off).sum())
        flagged += int((~was_off & found.outlier).sum())
        twice = displacements(library, *frames, window=16, choose=choose)
        assert np.hypot(twice.dy, twice.dx - 7.5).max() < 0.5 and twice.outlier.mean() < 0.02
    assert wrong > 200 and right > 600
    assert unflagged <= 0.01 * wrong and flagged <= 0.03 * right


def test_frames_that_have_nothing_in_common_are_outliers(library, choose):
    frames = [moved((160, 160), 0, 0, seed)[0] for seed in (1, 2)]
    for window in (16, 32):
        found = displacements(library, *frames, window=window, choose=choose)
        assert found.outlier.mean() > 0.9


@pytest.mark.parametrize("passes", [1, 2])
def test_a_blank_window_has_no_displacement(library, choose, passes):
    first, second = moved((96, 128), 1.25, -2.5)
    for frame in (first, second):
        frame[:40, :40] = 17
    found = displacements(library, first, second, window=16, overlap=0, passes=passes, choose=choose)
    expected = np.zeros((6, 8), bool)
    expected[:2, :2] = True
    np.testing.assert_array_equal(found.blank, expected)
    for numbers in (found.dy, found.dx, found.value, found.signal_to_noise):
        np.testing.assert_array_equal(np.isnan(numbers), expected)
    assert found.outlier[expected].all()
    assert np.abs(found.dx[3:, 3:] + 2.5).max() < 0.2


def test_a_blank_second_window_has_none_either(library, choose):
    first, second = moved((64, 64), 0, 0)
    found = displacements(library, first, np.full_like(second, 1e4), window=32, choose=choose)
    assert found.blank.all() and np.isnan(found.dy).all()


class GpuWithVectors(GpuLibrary):
    """Windows of one value have a peak, as if the rounding errors of the other window were a texture of theirs."""

    made_up = 0

    def correlate(self, problem, *sides, **how):
        found = super().correlate(problem, *sides, **how)
        (rows, cols), blank = problem.left, np.zeros(len(found), bool)
        for side in sides:
            y, x = np.divmod(np.asarray(side.offsets), side.frame.shape[1])
            blank |= [np.ptp(side.frame[i : i + rows, j : j + cols]) == 0 for i, j in zip(y, x)]
        for name, number in {"value": 0.9, "sy": 1, "sx": -1, "sub_sy": 0.25, "second": 0.1, "flags": 0}.items():
            found[name][blank] = number
        self.made_up += int(blank.sum())
        return found


@pytest.mark.parametrize("masked", [False, True])
def test_a_blank_window_has_no_displacement_by_the_command_on_a_gpu(library, save, table, masked):
    """Whatever the variant makes of it: trust 3, a vector of rounding errors without a flag."""
    gpu = GpuWithVectors(library, {"fused_fft_windows": "cpu_fft"})
    first, second = moved((96, 128), 1.25, -2.5)
    second[:40, :40] = 17
    words = f"--device {DEVICE} --window 16 --overlap 0 --passes 1"
    mask = ["--mask", save("mask.npy", np.ones((96, 128), bool))] if masked else []
    lines = table(gpu, "piv", *in_files(save, (first, second)), words, *mask)
    assert len(lines) == 48 and gpu.made_up > 4 and {variant for _, variant in gpu.calls} == {"fused_fft_windows"}
    for line in lines:
        within = max(float(line["y"]), float(line["x"])) < 32
        assert line["blank"] == str(int(within)), line
        assert [line[name] == "" for name in ("dy", "dx", "value", "signal_to_noise")] == [within] * 4, line


def test_masked_pixels_do_not_count(library, choose):
    """A bright bar that does not move lies over particles that do."""
    first, second = moved((128, 128), 0.5, 3.25, 3)
    barred = [frame.copy() for frame in (first, second)]
    for frame in barred:
        frame[:, 60:66] = 5000 * (1 + np.arange(128) % 7)[:, np.newaxis]
    mask = np.ones((128, 128), bool)
    mask[:, 60:66] = False
    over = (slice(None), slice(2, 5))  # windows with columns 60 to 65
    without = displacements(library, *barred, window=32, choose=choose)
    assert np.median(np.abs(without.dx[over] - 3.25)) > 0.5
    found = displacements(library, *barred, window=32, masks=(mask, mask), choose=choose)
    assert np.abs(found.dx[1:-1, 1:-1] - 3.25).max() < 0.25 and np.abs(found.dy[1:-1, 1:-1] - 0.5).max() < 0.25
    assert found.outlier.mean() < 0.15 and not found.blank.any()
    for frame in barred:
        frame[:, 60:66] = np.nan  # of any value
    again = displacements(library, *barred, window=32, masks=(mask, mask), choose=choose)
    np.testing.assert_allclose(again.dx, found.dx, atol=1e-3)


def test_windows_with_few_valid_pixels_are_blank(library, choose):
    first, second = moved((64, 96), 0, 1)
    mask = np.zeros((64, 96), bool)
    mask[:, :71] = True  # of the window from column 64 on 7 of 16
    find = {"window": 16, "overlap": 0, "masks": (mask, None), "choose": choose, "passes": 1}
    assert displacements(library, first, second, **find).blank.any(axis=0).tolist() == [False] * 4 + [True] * 2
    more = displacements(library, first, second, least_valid=0.3, **find)
    assert more.blank.any(axis=0).tolist() == [False] * 4 + [False, True]
    nothing = displacements(library, first, second, **{**find, "masks": (mask, 0 * mask)})
    assert nothing.blank.all()
    for wrong, message in ((mask[1:], "63x96 pixels; give one of 64x96"), (2 * mask, "other values than 0 and 1")):
        with pytest.raises(UserError, match=message):
            displacements(library, first, second, **{**find, "masks": (None, wrong)})


def test_each_pass_has_settings_of_its_own(library, choose):
    """11 pixels are more than a window of 16 finds; one of 64 finds them, and those of 16 then follow a gradient."""

    def field(y, x):
        return 0 * y, 11 + 0.02 * (x - 128)

    frames = particle_pair((256, 256), field, np.random.default_rng(2), 0.05)
    alone = displacements(library, *frames, window=16, choose=choose)
    settings = {"window": [64, 32, 16], "overlap": [48, 16, 8], "fit": ["parabola", "gaussian"], "passes": 3}
    found = displacements(library, *frames, choose=choose, **settings)
    assert found.dx.shape == alone.dx.shape == (31, 31)
    y, x = np.meshgrid(found.y, found.x, indexing="ij")
    errors = [np.abs(one.dx - field(y, x)[1])[2:-2, 2:-2] for one in (alone, found)]
    assert np.median(errors[0]) > 1 and np.percentile(errors[1], 95) < 0.2


def test_a_schedule_has_a_value_a_pass():
    assert schedule() == [Pass(32, 16, "gaussian")] * 2
    assert schedule([64, 32], passes=3) == [Pass(64, 32), Pass(32, 16), Pass(32, 16)]
    assert schedule(48, [0, 24], ["parabola", "gaussian"]) == [Pass(48, 0, "parabola"), Pass(48, 24)]
    for given, message in (
        ({"passes": 1_000_000_000}, "--passes 1000000000: use 1 to 20"),
        ({"window": [64, 32, 16]}, "--window: 3 values for 2 passes"),
        ({"fit": "cubic"}, "--fit cubic: unknown; use gaussian or parabola"),
        ({"overlap": []}, "--overlap: 0 values"),
    ):
        with pytest.raises(UserError, match=message):
            schedule(**given)


def test_blank_windows_are_those_of_one_value():
    rng = np.random.default_rng(0)
    frame = rng.integers(0, 2, (12, 14)).astype(np.float32)
    y, x = (at.ravel() for at in np.mgrid[:8, :10])
    found = windows.blank((frame, frame), None, [y, x, y, x], 5, 0.5)
    assert found.tolist() == [np.ptp(frame[i : i + 5, j : j + 5]) == 0 for i, j in zip(y, x)]


@pytest.mark.parametrize(
    "digits",
    [
        lambda frame: 1e6 + 1e-4 * frame.astype(np.float64),
        lambda frame: 20_000_000 + (frame / 40).astype(np.int32),
        lambda frame: 2**55 + frame.astype(np.int64),
        lambda frame: (2**63 + frame.astype(np.int64).astype(np.uint64)),
        lambda frame: np.where(np.arange(96) < 20, -(2**31), 1000 + frame.astype(np.int32)).astype(np.int32),
    ],
)
def test_an_offset_of_a_frame_costs_no_digits(library, save, lines, digits):
    """Rounded to float32, all of these but the last were constant. The last has a nodata fill in a fifth of its columns."""
    paths = in_files(save, map(digits, moved((96, 96), 0, 1.5)))
    found = lines("piv", *paths, "--window 32 --overlap 8")
    inner = [line for line in found if float(line["x"]) > 40]
    assert len(inner) == 3
    for line in inner:
        assert line["blank"] == line["outlier"] == "0"
        assert float(line["dx"]) == pytest.approx(1.5, abs=0.25)


def test_the_command_leaves_no_file_and_works_twice(library, save, tmp_path, lines):
    paths = in_files(save, moved((96, 96), 0, 1.5))
    before = sorted(tmp_path.rglob("*"))
    words = ["piv", *paths, "--window 32,16 --overlap 16,8 --fit gaussian"]
    found, again = lines(*words), lines(*words)
    assert sorted(tmp_path.rglob("*")) == before
    assert found == again
    assert len(found) == 11 * 11 and all(0 <= float(line["value"]) <= 1 for line in found)


def test_the_command_takes_masks_over_pixels_of_no_value(library, save, capsys, lines):
    frames, mask = moved((64, 64), 0, 1), np.ones((64, 64), np.uint8)
    mask[:, :20] = 0
    for frame in frames:
        frame[:, :20] = np.nan
    paths = in_files(save, frames)
    found = lines("piv", *paths, "--window 16 --overlap 0 --mask", save("mask.npy", mask))
    assert [line["blank"] for line in found] == ["1", "0", "0", "0"] * 4  # 12 of 16 columns of the second ones count
    assert all((line["dx"] == "") == (line["blank"] == "1") for line in found)
    refused(capsys, "piv", *paths, "--window", "16", library=library)  # without the mask
    line = refused(capsys, "piv", *paths, "--mask", save("small.npy", mask[1:]), library=library)
    assert "its mask has 63x64 pixels; give one of 64x64" in line
