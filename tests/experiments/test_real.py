"""The experiments on real input: generator, known shifts, artifacts, resuming, twins,
assertions."""

import gzip
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from calls import only_error
from scipy_library import ScipyLibrary

from experiments.inputs import common, datasets, ebsd, patterns, photo
from experiments.inputs.accuracy import Accuracy
from xcorr.problem import Problem

SMALL = patterns.Layout(3, 4, 32)


@pytest.fixture(autouse=True)
def no_packages(monkeypatch):
    """No test reaches for a package or the network unless it says so."""

    def unavailable(dataset, cache, offline=False):
        raise datasets.Unavailable(f"{dataset.package} is made unavailable")

    monkeypatch.setattr(datasets, "fetch", unavailable)


@pytest.fixture
def run(run_input):
    """Runs an experiment, by default with the stand-in library."""
    return lambda module, *more, library=None: run_input(module, library or ScipyLibrary(), *more)


def read(folder, experiment):
    table = pd.read_csv(folder / f"{experiment}.displacements.csv.gz")
    summary = json.loads((folder / f"{experiment}.summary.json").read_text())
    with np.load(folder / f"{experiment}.previews.npz") as archive:
        return table, summary, dict(archive)


def test_generator_is_deterministic():
    one, two = patterns.Generator(SMALL, 5), patterns.Generator(SMALL, 5)
    shifts = patterns.known_shifts(SMALL, 3, 5)
    np.testing.assert_array_equal(shifts, patterns.known_shifts(SMALL, 3, 5))
    np.testing.assert_array_equal(one.reference(2), two.reference(2))
    np.testing.assert_array_equal(list(one.deformed(2, shifts[2])), list(two.deformed(2, shifts[2])))
    other = patterns.Generator(SMALL, 6)
    assert not np.array_equal(one.reference(2), other.reference(2))


def test_paper_layout():
    layout, count = ebsd.LAYOUTS["paper"]
    assert (layout.tiles, count, layout.tile) == (86, 50, 96)
    assert len(set(layout.corners)) == 86
    shifts = patterns.known_shifts(layout, count, 1)
    assert shifts.shape == (86, 50, 2) and 1 < np.abs(shifts).max() < 96 / 10


def test_the_variants_that_claims_name_are_measured_too():
    def variant(name, backend="cuda"):
        return {"id": name, "backend": backend, "precisions": ["fp32"], "points": ["a=1"]}

    known = [variant("multi_matrix_right_grouped_overlap"), variant("grouped_overlap"), variant("cpu_fft", "cpu")]
    context = SimpleNamespace(variants=known, library=ScipyLibrary(), device="cuda:0")
    request = Problem("n-to-mn", (32, 32), (32, 32), 9, 144)
    found = [job.variant for job in ebsd.jobs_of_claims(context, [request], {"grouped_overlap"})]
    assert found == ["multi_matrix_right_grouped_overlap"], "claims D02 to D04"
    assert not ebsd.jobs_of_claims(context, [request], found), "it is chosen already"
    context.device = "cpu"
    assert not ebsd.jobs_of_claims(context, [request], [])


def test_whole_pixel_shift_moves_the_bands_exactly():
    generator = patterns.Generator(SMALL, 2)
    corner = SMALL.corners[3]
    still, moved = (generator.bands(corner, np.array(shift)) for shift in ((0, 0), (3, -2)))
    np.testing.assert_allclose(moved[3:, :-2], still[:-3, 2:], atol=1e-3)


def test_half_pixel_shifts_add_up():
    generator = patterns.Generator(SMALL, 2)
    corner = (SMALL.corners[3][0], SMALL.corners[3][1] + 1)
    by_half = generator.bands(corner, np.array([0.0, 0.5]))
    np.testing.assert_allclose(by_half, generator.bands((corner[0], corner[1] - 1), np.array([0, -0.5])), atol=1e-3)


def test_band_pass_and_taper():
    rng = np.random.default_rng(0)
    slope = 50 + np.linspace(0, 100, 48)[:, np.newaxis] + np.zeros((2, 3, 48, 48))
    passed = patterns.band_pass(slope + rng.normal(size=slope.shape))
    assert passed.shape == slope.shape and abs(passed.mean(axis=(-2, -1))).max() < 1e-9
    tapered = patterns.taper(passed)
    assert abs(tapered.sum(axis=(-2, -1))).max() < 1e-6 and abs(tapered[..., 0, :]).max() < 0.02


def test_nickel_tiles_know_their_shifts():
    stack = np.random.default_rng(1).integers(20, 240, (9, 60, 60)).astype(np.uint8)
    tiles = ebsd.nickel_tiles(stack, {"substituted": False}, 1)
    assert tiles.left.shape == (9, 32, 32) and tiles.right.shape == (9 * 16, 32, 32)
    assert tiles.request.form == "n-to-mn" and tiles.patterns == 16
    y, x = (int(centre) - 16 for centre in tiles.centres[5])
    sy, sx = ebsd.NICKEL_OFFSETS[3]
    crop = stack[4].astype(float)[y - sy : y - sy + 32, x - sx : x - sx + 32]
    likeness = np.corrcoef(patterns.band_pass(crop).ravel(), tiles.right[5 * 16 + 3].ravel())[0, 1]
    assert likeness > 0.9
    assert np.isnan(tiles.shifts[:, 8:]).all() and not np.isnan(tiles.shifts[:, :8]).any()


def test_ebsd_smoke_then_resumed(run):
    library = ScipyLibrary()
    code, out, err, folder = run(ebsd, library=library)
    assert code == 0 and err == ""
    table, summary, previews = read(folder, "real-ebsd")
    assert table.columns.tolist() == list(ebsd.COLUMNS)
    assert set(table.dataset) == {"synthetic", "nickel"}
    assert table[table.dataset == "nickel"].substituted.eq(1).all() and "synthetic twin" in out
    synthetic = table[(table.dataset == "synthetic") & (table.variant == "cpu_fft")]
    layout, count = ebsd.LAYOUTS["smoke"]
    assert synthetic.pair.tolist() == list(range(layout.tiles * count))
    assert (synthetic.tile == synthetic.pair // count).all()
    assert synthetic.error_px.median() < 0.2
    assert np.hypot(synthetic.known_sy, synthetic.known_sx).median() > 0.5  # shifts worth finding
    assert previews["synthetic_reference"].dtype == np.uint8 and "nickel_tile" in previews
    entry = {item["dataset"]: item for item in summary["datasets"]}
    assert entry["nickel"]["substituted"] and "unavailable" in entry["nickel"]["note"]
    assert not entry["synthetic"]["substituted"] and summary["paper"]["mean_rel_diff"] == 2.39e-6
    (peaks,) = (one for one in entry["synthetic"]["variants"] if one["result"] == "peak")
    assert peaks["pairs"] == len(synthetic) and peaks["same_position"] > 0.99 and "auto: " in out
    assert entry["synthetic"]["main"] == peaks["variant"] and peaks["error_px"]["median"] < 0.2
    drawn = table[table.variant == peaks["variant"]]
    assert set(drawn.result) == {"peak"} and not drawn.duplicated(["dataset", "pair"]).any()
    assert any(
        request.fields.result == "peak" and variant == peaks["variant"] for request, variant, *_ in library.calls
    )
    for variant in entry["synthetic"]["variants"]:
        if variant["result"] == "peak":
            continue
        accuracy = variant["float32_vs_float64"]
        assert 0 < accuracy["norm_scaled_max"] < 1e-6 and accuracy["elements"] > 0

    calls = len(library.calls)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err, folder = run(ebsd, library=library)
    assert code == 0 and "computed already" in out and len(library.calls) == calls
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert "computed already" not in run(ebsd, "--seed", "2")[1]


def test_ebsd_tables_are_reproducible(run):
    *_, folder = run(ebsd, "--variants", "cpu_fft")
    one = gzip.decompress((folder / "real-ebsd.displacements.csv.gz").read_bytes())
    *_, folder = run(ebsd, "--variants", "cpu_fft", "--force")
    assert gzip.decompress((folder / "real-ebsd.displacements.csv.gz").read_bytes()) == one


def test_definition_covers_what_its_prediction_allows(run, monkeypatch):
    monkeypatch.setitem(ebsd.DEFINITION_LIMIT_S, "smoke", 1e-9)
    monkeypatch.setattr(ebsd, "REFERENCE_CHUNK_BYTES", 1 << 20)
    code, _, _, folder = run(ebsd)
    assert code == 0
    _, summary, _ = read(folder, "real-ebsd")
    surfaces = [one for one in summary["datasets"][1]["variants"] if one["result"] == "surface"]
    pairs = {variant["algorithm_class"]: variant["pairs"] for variant in surfaces}
    assert 0 < pairs["definition"] < pairs["fft"] == 72


class Flipped(ScipyLibrary):
    """A library with the sign of the shift turned."""

    def correlate(self, *arguments, out=None, **options):
        result = super().correlate(*arguments, **options)
        if result.ndim < 3:  # records
            return result
        result = result[:, ::-1, ::-1]
        if out is None:
            return result
        out[:] = result
        return out


@pytest.mark.parametrize("module", [ebsd, photo])
def test_a_turned_sign_fails_the_run(run, module):
    code, _, err, folder = run(module, library=Flipped())
    assert code == 1 and err.startswith(f"error: {module.EXPERIMENT}")
    assert not (folder / f"{module.EXPERIMENT}.summary.json").exists()  # so it is computed again


def test_photo_smoke_with_twins(run):
    code, out, err, folder = run(photo)
    assert code == 0 and err == "" and "worst error" in out
    table, summary, previews = read(folder, "real-photo")
    assert table.columns.tolist() == list(photo.COLUMNS)
    assert table.substituted.eq(1).all() and table.passed.eq(1).all()
    assert (table.error_px <= 0.5 * 2**0.5).all()
    assert all(item["substituted"] and "twin" in item["title"] for item in summary["datasets"])
    assert previews["camera_correlation"].shape == (81, 81)
    top = np.unravel_index(previews["camera_correlation"].argmax(), (81, 81))
    case = table[(table.dataset == "camera") & (table.case == photo.PREVIEW_CASE)].iloc[0]
    assert tuple(previews["camera_origin"] + top) == (case.sy, case.sx)
    assert "computed already" in run(photo)[1]


def larger_than(side):
    """A reason for problems with a larger matrix, as the limit of a variant gives it."""
    return lambda request, params: f"longer than {side}" if max(*request.left, *request.right) > side else ""


def test_a_variant_that_computes_some_of_the_crops_is_not_taken(run):
    """Only the first of three shapes was asked for, so that the third one failed on a GPU."""
    library = ScipyLibrary()
    library.refuses = {"cpu_fft": larger_than(256)}
    code, out, err, _ = run(photo, library=library)
    assert code == 0 and not err and "real-photo: left out: no variant of this build computes one-to-one" in out
    library.refuses = {"cpu_fft": lambda request, params: "one thread only" if params == "threads=all" else ""}
    code, out, err, folder = run(photo, library=library)
    assert code == 0 and not err
    assert {call[2] for call in library.calls} == {"threads=1"}, "another point of the variant computes all of them"


@pytest.mark.parametrize("module", [ebsd, photo])
def test_a_variant_that_was_asked_for_says_why_it_does_not_compute_it(run, module):
    library = ScipyLibrary()
    library.refuses = {"cpu_fft": larger_than(20)}
    code, _, err, _ = run(module, "--variants", "cpu_fft", library=library)
    assert code == 2 and "variant 'cpu_fft' in fp32: longer than 20; choose another" in err and err.count("\n") == 1


def test_photo_of_a_package(run, monkeypatch, tmp_path):
    import matplotlib.image

    matplotlib.image.imsave(tmp_path / "p.png", datasets.photo_twin(9), cmap="gray")
    monkeypatch.setattr(datasets, "fetch", lambda *_: (tmp_path / "p.png").read_bytes())
    code, out, _, folder = run(photo)
    table, summary, _ = read(folder, "real-photo")
    assert code == 0 and table.substituted.eq(0).all() and "CC0" in out
    assert summary["datasets"][0]["sha256"] == datasets.CAMERA.sha256


@pytest.mark.parametrize("seed", range(5))
def test_cases_lie_within_the_photo_and_have_all_signs(seed):
    cases = photo.draw_cases((512, 512), 24, seed)
    signs = set()
    for case in cases:
        for at, shape in ((case.left_at, case.left), (case.right_at, case.right)):
            assert all(a >= 0 and a + s <= 512 for a, s in zip(at, shape))
        assert case.left[0] != case.left[1]
        signs.add(tuple(np.sign(case.shift)))
    assert {(1, 1), (1, -1), (-1, 1), (-1, -1)} <= signs


def test_user_mistakes_are_one_line(run, tmp_path):
    for argv, words in (
        (["--variants", "cpu_ftf"], "did you mean cpu_fft?"),
        (["--seed", "-1"], "negative"),
        (["--preset", "huge"], "invalid choice"),
        (["--device", "cuda:0"], "none in this build"),
        (["--machine-facts", str(tmp_path / "none")], "machine_key"),
    ):
        code, _, err, _ = run(photo, *argv)
        assert code == 2 and words in only_error(err), argv


def test_accuracy_as_the_paper_and_scaled():
    reference = np.array([[[1.0, -2.0], [0.0, 4.0]]])
    out = reference + np.array([[[0.1, 0.0], [0.5, 0.4]]])
    accuracy = Accuracy()
    accuracy.add(out, reference, np.array([10.0]))
    summary = accuracy.summary()
    relative = [0.1, 0.0, 0.1]
    assert summary["elements"] == 4
    assert summary["mean_rel_diff"] == pytest.approx(np.mean(relative))
    assert summary["max_rel_diff"] == pytest.approx(0.1)
    assert summary["variance_rel_diff"] == pytest.approx(np.var(relative))
    assert summary["norm_scaled_max"] == pytest.approx(0.05)
    assert summary["norm_scaled_rms"] == pytest.approx(np.sqrt((0.01**2 + 0.05**2 + 0.04**2) / 4))


def test_preview_is_small_and_stretched():
    small, scale = common.preview(np.linspace(0, 1, 600 * 300).reshape(600, 300))
    assert small.shape == (200, 100) and scale == pytest.approx(1 / 3) and small.min() == 0
    assert small.max() == 255
