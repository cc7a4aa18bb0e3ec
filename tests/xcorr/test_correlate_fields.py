"""The command xcorr with fields, on the built library and a photograph: template matching, registration, lists of peaks."""

import numpy as np
import pytest
from scipy_library import refused

from xcorr import results
from xcorr.native import stream

ZNCC = "--window valid --score zncc"
TEMPLATE, AT = (24, 30), (140, 200)


@pytest.fixture(scope="module")
def photo():
    """A part of scikit-image's photograph "camera", as float64."""
    data = pytest.importorskip("skimage.data")
    return data.camera()[64:320, 64:384].astype(np.float64)


def template_of(photo):
    return photo[AT[0] : AT[0] + TEMPLATE[0], AT[1] : AT[1] + TEMPLATE[1]]


def shift_of(line):
    return int(line["sy"]), int(line["sx"])


@pytest.mark.parametrize("variant", ["cpu_definition", "cpu_fft", "auto"])
def test_the_template_is_found_by_zncc_and_the_brightest_place_by_the_product(lines, save, photo, variant):
    template = save("t.npy", 2.5 * template_of(photo) - 40)
    files = template, save("f.npy", photo), f"--window valid --variant {variant}"
    (found,) = lines(*files, "--score zncc --result peak")
    assert shift_of(found) == AT and float(found["value"]) > 0.999 > 0.95 > float(found["second"])
    (bright,) = lines(*files, "--result", "peak")
    assert max(abs(np.subtract(shift_of(bright), AT))) > 10


def test_a_mask_keeps_what_covers_the_object_out_of_the_score(lines, save, photo):
    covered = template_of(photo).copy()
    covered[:, 20:] = 255 * np.random.default_rng(1).random((TEMPLATE[0], 10))
    mask = np.ones(TEMPLATE, bool)
    mask[:, 20:] = False
    files = save("t.npy", covered), save("f.npy", photo), ZNCC, "--result peak"
    (without,), (masked,) = lines(*files), lines(*files, "--mask-left", save("m.npy", mask))
    assert shift_of(masked) == AT and float(masked["value"]) > 0.999 > float(without["value"])


@pytest.mark.parametrize("shift", [(13, -21), (-40, 7), (0, 0)])
@pytest.mark.parametrize("variant", ["cpu_definition", "cpu_fft"])
def test_phase_correlation_finds_a_known_shift(lines, save, photo, shift, variant):
    side = 64 if variant == "cpu_definition" else 192
    still = photo[:side, :side] + np.random.default_rng(2).normal(size=(side, side))
    moved = np.roll(still, shift, (0, 1))
    wrapped = tuple((one + side // 2) % side - side // 2 for one in shift)
    words = f"--boundary circular --score phase --variant {variant} --result peak"
    (found,) = lines(save("l.npy", still), save("r.npy", moved), words)
    assert shift_of(found) == wrapped and float(found["value"]) > 2 * float(found["second"])


def test_registration_agrees_with_skimage(lines, save, photo):
    registration = pytest.importorskip("skimage.registration")
    side = 128
    still = photo[20 : 20 + side, 30 : 30 + side]
    spectrum = np.fft.fft2(still)
    fy, fx = np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None, :]
    moved = np.fft.ifft2(spectrum * np.exp(-2j * np.pi * (4.35 * fy - 2.7 * fx))).real
    words = "--boundary circular --result peak:upsample=20 --score covariance"
    (found,) = lines(save("l.npy", still), save("r.npy", moved), words)
    # Of skimage the shift takes the moved image back to the reference.
    theirs = registration.phase_cross_correlation(still, moved, upsample_factor=20, normalization=None)[0]
    own = np.array([float(found["sub_sy"]), float(found["sub_sx"])])
    np.testing.assert_allclose(own, -np.asarray(theirs), atol=0.051)
    np.testing.assert_allclose(own, [4.35, -2.7], atol=0.051)


def test_lists_of_peaks_name_every_copy(lines, save):
    rng = np.random.default_rng(3)
    template, frame = rng.normal(size=(9, 11)), rng.normal(size=(2, 60, 70)) * 0.2
    places = {(0, 5, 8), (0, 40, 50), (1, 20, 30)}
    for pair, y, x in places:
        frame[pair, y : y + 9, x : x + 11] += template
    files = save("t.npy", template), save("f.npy", frame), ZNCC
    above = lines(*files, "--result", "above:0.8:10")
    assert {(int(one["pair"]), *shift_of(one)) for one in above} == places
    assert all(float(one["value"]) >= 0.8 for one in above)
    ranked = lines(*files, "--result", "peaks:2")
    assert [one["rank"] for one in ranked] == ["0", "1", "0", "1"]
    assert places <= {(int(one["pair"]), *shift_of(one)) for one in ranked}
    for one in ranked:
        if float(one["value"]) > 0.8:
            assert all(abs(float(one["sub_" + axis]) - int(one[axis])) < 0.2 for axis in ("sy", "sx"))
    deviating = lines(*files, "--result", "above:12mad:10")
    assert {(int(one["pair"]), *shift_of(one)) for one in deviating} <= places


def blurred(shape, places):
    """Objects whose scores fall off slowly: each has several outputs above the threshold."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    return sum(np.exp(-((y - row) ** 2 + (x - col) ** 2) / 18) for row, col in places)


def test_a_least_distance_gives_a_line_an_object(lines, save):
    places = [(12, 15), (30, 50), (55, 20.5)]
    template = blurred((15, 15), [(7, 7)])
    frame = blurred((70, 70), places) + 0.01 * np.random.default_rng(8).normal(size=(70, 70))
    files = save("t.npy", template), save("f.npy", frame), ZNCC
    assert len(lines(*files, "--result", "above:0.9:100")) > 10
    for variant in ("auto", "cpu_definition", "template_fft_cpu", "template_pearson_cpu"):
        found = lines(*files, "--result", "above:0.9:100:8", "--variant", variant)
        assert len(found) == 3
        for (row, col), one in zip(places, found):
            assert abs(int(one["sy"]) + 7 - row) <= 1 and abs(int(one["sx"]) + 7 - col) <= 1
    ranked = lines(*files, "--result", "peaks:3")
    assert sorted(round(2 * (float(one["sub_sx"]) + 7)) / 2 for one in ranked) == [15, 20.5, 50]


@pytest.mark.parametrize("fit", ["peak", "peak:gaussian", "peak:upsample=20", "peaks:1", None])
@pytest.mark.parametrize("variant", ["cpu_definition", "cpu_fft"])
def test_half_a_pixel_is_half_a_pixel(lines, save, fit, variant):
    first = np.zeros((32, 32), np.uint8)
    first[10:20, 10:20] = 200
    second = ((first.astype(int) + np.roll(first, 1, 1)) // 2).astype(np.uint8)
    words = () if fit is None else ("--result", fit)
    (found,) = lines(save("l.npy", first), save("r.npy", second), "--variant", variant, *words)
    assert float(found["sub_sx"]) == pytest.approx(0.5, abs=1e-4)
    assert float(found["sub_sy"]) == pytest.approx(0, abs=1e-4)


def test_chunks_change_no_record(lines, save, monkeypatch, tmp_path):
    rng = np.random.default_rng(4)
    left, right = save("l.npy", rng.normal(size=(2, 6, 5))), save("r.npy", rng.normal(size=(3, 9, 8)))
    # By sums of products: FFTW measures its plans, and so may choose one for the whole and another for a chunk.
    words = left, right, "--form n-to-m --window valid --variant cpu_row_streaming"
    whole = {text: lines(*words, "--result", text) for text in ("peak", "peaks:2", "above:3:200", "sum")}
    plan = stream.plan_chunks
    monkeypatch.setattr(stream, "plan_chunks", lambda problem, size, limit: plan(problem, size, 2 * size))
    for text, found in whole.items():
        assert lines(*words, "--result", text) == found and found, text
    assert lines(*words, "--quiet --result peak --output", tmp_path / "o.npy") == []
    assert np.load(tmp_path / "o.npy").dtype == results.PEAK and np.load(tmp_path / "o.npy").shape == (6,)


def test_one_array_twice(lines, save):
    stack = np.random.default_rng(5).normal(size=(3, 8, 9))
    own = lines(save("s.npy", stack), "--same")
    assert [(one["left"], one["right"], *shift_of(one)) for one in own] == [(str(k), str(k), 0, 0) for k in range(3)]


@pytest.mark.parametrize(
    "words, says",
    [
        ("--score best", "use product, covariance, ncc, zncc or phase"),
        ("--score phase", "needs boundary circular"),
        ("--min-overlap 0.5", "is of --score ncc or zncc"),
        ("--score zncc --min-overlap 2", "out of range"),
        ("--result above:3", "a capacity is missing"),
        ("--result above:-1e9:3", "the capacity is 3"),
        ("--result above:-1e9:3", "above:t:c:d"),
        ("--result above:0.5:99999999999", "use 1 to 1073741824"),
        (f"--result above:0.5:{2**39}", "use 1 to 1073741824"),
        ("--result above:0.5:9:0", "distance out of range; use 1 to 32767 pixels"),
        ("--same", "--same takes LEFT alone"),
        ("--score zncc --mask-left bad.npy", "other values than 0 and 1"),
        ("--score zncc --mask-right small.npy", "give a mask of 6x6"),
        ("--mask-right mask.npy", "only ncc and zncc use masks"),
    ],
)
def test_refusals_are_one_line(library, capsys, save, words, says):
    square = np.random.default_rng(6).normal(size=(6, 6))
    named = {"bad.npy": np.full((6, 6), 2), "small.npy": np.ones((3, 3)), "mask.npy": np.ones((6, 6))}
    paths = {name: save(name, array) for name, array in named.items()}
    given = (paths.get(one, one) for one in words.split())
    assert says in refused(capsys, save("l.npy", square), save("r.npy", square), *given, library=library)
