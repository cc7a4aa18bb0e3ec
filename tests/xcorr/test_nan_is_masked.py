"""--nan-is-masked: NaN are left out as a mask leaves elements out; and what says so where they are not."""

import numpy as np
import pytest
from scipy_library import ScipyLibrary, refused

from xcorr.commands.velocimetry import particle_pair

PEAK = "--window valid --score zncc --result peak"
TEMPLATE = PEAK.split()


@pytest.fixture
def frame():
    return np.random.default_rng(6).normal(size=(48, 60)).astype(np.float32)


def place(line):
    return line["sy"], line["sx"]


def with_holes(array, *places):
    made = array.copy()
    for place in places:
        made[place] = np.nan
    return made


def masked(save, name, array):
    """The array without NaN, and its mask."""
    return save(f"{name}.npy", np.nan_to_num(array)), save(f"{name}-mask.npy", ~np.isnan(array))


@pytest.mark.parametrize("holes", ["left", "right", "both"])
@pytest.mark.parametrize("score", ["zncc", "ncc", "zncc:0.5"])
def test_nan_count_as_the_pixels_of_a_mask(lines, save, frame, holes, score):
    template = frame[20:32, 10:24]
    left = with_holes(template, np.s_[0, 0], np.s_[5, 3:6]) if holes != "right" else template
    right = with_holes(frame, np.s_[0:9, 40:], np.s_[25, 15]) if holes != "left" else frame
    words = f"{PEAK} --score {score}"
    found = lines(save("l.npy", left), save("r.npy", right), words, "--nan-is-masked")
    (l, l_mask), (r, r_mask) = masked(save, "left", left), masked(save, "right", right)
    masks = [] if holes == "right" else ["--mask-left", l_mask]
    masks += [] if holes == "left" else ["--mask-right", r_mask]
    assert found == lines(l, r, words, *masks)
    assert place(found[0]) == ("20", "10") and float(found[0]["value"]) == pytest.approx(1, abs=1e-5)


def test_they_join_the_masks_that_are_given(lines, save, capsys, frame):
    right = with_holes(frame, np.s_[30:, 30:])
    right[5:9, 5:9] = 1e6  # which the mask leaves out
    given = np.ones(frame.shape, bool)
    given[5:9, 5:9] = False
    left, mask = save("l.npy", frame[20:32, 10:24]), save("m.npy", given)
    path = save("r.npy", right)
    found = lines(left, path, *TEMPLATE, "--mask-right", mask, "--nan-is-masked")
    r = save("z.npy", np.nan_to_num(right))
    both = save("both.npy", given & ~np.isnan(right))
    assert found == lines(left, r, *TEMPLATE, "--mask-right", both)
    assert "leave NaN out by --nan-is-masked" in refused(capsys, left, path, *TEMPLATE, "--mask-right", mask)


def test_in_a_stack_each_matrix_has_its_own(lines, save, frame):
    stack = np.stack([frame, with_holes(frame, np.s_[:, :8]), with_holes(frame, np.s_[20:32, 10:24])])
    left = save("l.npy", frame[20:32, 10:24])
    found = lines(left, save("r.npy", stack), *TEMPLATE, "--nan-is-masked")
    places = [place(line) for line in found]
    assert places[:2] == [("20", "10")] * 2 and places[2] != ("20", "10"), "of which nothing is left"
    r, mask = masked(save, "z", stack)
    assert found == lines(left, r, *TEMPLATE, "--mask-right", mask)


def test_one_array_against_itself(lines, save, frame):
    path = save("l.npy", with_holes(frame, np.s_[0:9, 40:]))
    (found,) = lines(path, "--same --score zncc --result peak --nan-is-masked")
    assert place(found) == ("0", "0") and float(found["value"]) == pytest.approx(1, abs=1e-5)


def test_files_without_nan_need_no_mask(save, xcorr, frame):
    """A mask takes longer; whole numbers and frames without a NaN are correlated as without the option."""

    class Plain(ScipyLibrary):
        def correlate(self, problem, left, right, **how):
            assert problem.fields.masks == "none"
            return super().correlate(problem, left, right, **how)

    left, right = save("l.npy", np.arange(9).reshape(3, 3)), save("r.npy", frame)
    xcorr(Plain(), left, right, "--score zncc --variant cpu_definition --nan-is-masked")


def test_an_infinity_is_no_nan(save, capsys, frame):
    left, right = save("l.npy", frame[:8, :8]), with_holes(frame, np.s_[0, 0])
    right[3, 4] = np.inf
    line = refused(capsys, left, save("r.npy", right), *TEMPLATE, "--nan-is-masked")
    assert line.endswith("inf at index [0, 3, 4]; replace what is not finite")


@pytest.mark.parametrize("score", ["product", "covariance", "phase:0"])
def test_scores_without_masks_say_which_have_them(save, capsys, frame, score):
    path = save("l.npy", with_holes(frame, np.s_[0, 0]))
    line = refused(capsys, path, path, "--score", score, "--nan-is-masked")
    assert f"--score {score} counts every element; use --score zncc or ncc, or replace NaN" in line


def test_a_nan_names_the_option(save, capsys, frame):
    path = save("l.npy", with_holes(frame, np.s_[1, 2]))
    for words in ([path, path], ["piv", path, path]):
        assert "nan at index [" in (line := refused(capsys, *words)) and "--nan-is-masked" in line
    line = refused(capsys, "autocorr", path)
    assert "use xcorr FRAMES --same --score zncc --nan-is-masked" in line


def test_piv_leaves_them_out(lines, save):
    first, second = particle_pair((96, 96), lambda y, x: (0 * y + 1.5, 0 * x - 2.25), np.random.default_rng(7), 0.05)
    holes = np.ones(first.shape, bool)
    holes[40:56, 30:64] = False
    nan = [np.where(holes, one, np.nan) for one in (first, second)]
    paths = [save("first.npy", nan[0]), save("second.npy", nan[1])]
    words = ["--window 32 --overlap 16"]
    found = lines("piv", *paths, *words, "--nan-is-masked")
    plain = [save("a.npy", np.where(holes, first, 0)), save("b.npy", np.where(holes, second, 0))]
    assert found == lines("piv", *plain, *words, "--mask", save("m.npy", holes))
    values = np.array([(line["dy"], line["dx"]) for line in found if line["outlier"] == "0"], float)
    assert len(values) > 20 and np.abs(np.median(values, axis=0) - [1.5, -2.25]).max() < 0.1
    one = lines("piv", paths[0], save("whole.npy", second), *words, "--nan-is-masked")
    assert len(one) == len(found), "a frame without NaN has no mask"


def test_piv_joins_them_to_the_mask(lines, save):
    first, second = particle_pair((64, 64), lambda y, x: (0 * y + 1, 0 * x), np.random.default_rng(8), 0.05)
    given, holes = np.ones((2, 64, 64), bool)
    given[:10], holes[50:] = False, False
    paths = [save(f"{k}.npy", np.where(holes, one, np.nan)) for k, one in enumerate((first, second))]
    mask, both = save("m.npy", given), save("both.npy", given & holes)
    found = lines("piv", *paths, "--window 16 --mask", mask, "--nan-is-masked")
    plain = [save(f"z{k}.npy", np.where(holes, one, 0)) for k, one in enumerate((first, second))]
    assert found == lines("piv", *plain, "--window 16 --mask", both)
