"""image-autocorrelation: the loop, the spectrum, a small run on a stand-in library, and what makes a run fail."""

import numpy as np
import pandas as pd
import pytest
import scipy.signal
from scipy_library import ScipyLibrary

from experiments.inputs import autocorrelation as experiment
from xcorr.commands.autocorrelation import ring_image


class OneArray(ScipyLibrary):
    """Knows problems of one array, which have no right."""

    def correlate(self, request, left, right, **how):
        assert right is None and request.fields.same == "yes"
        return super().correlate(request, left, left, **how)


def test_the_loop_is_the_definition():
    image = np.random.default_rng(1).normal(size=(6, 9)).astype(np.float32)
    full = scipy.signal.correlate2d(image, image, "full")
    np.testing.assert_allclose(experiment.loop(image, 3), full[5:9, 5:12], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cycles", [6.0, 9.3])
def test_the_spectral_peak_lies_at_the_cycles_over_the_smaller_side(cycles):
    image = ring_image((240, 160), 160 / cycles, np.random.default_rng(2))
    assert experiment.spectral_index(image) == pytest.approx(cycles, abs=0.5)


@pytest.fixture
def run(run_input):
    return lambda: run_input(experiment, OneArray())


def test_a_run_has_rows_of_every_case_and_is_kept(run):
    code, _, _, folder = run()
    assert code == 0
    rows = pd.read_csv(folder / f"{experiment.EXPERIMENT}.lengths.csv.gz")
    assert list(rows.columns) == experiment.COLUMNS
    size = experiment.SIZES["smoke"]
    assert (rows["case"] == "truth").sum() == 2 * size.seeds * len(size.wavelengths)
    removed = rows[(rows["case"] == "truth") & (rows["mean"] == "removed")]
    np.testing.assert_allclose(removed["r_max"], removed["known"], rtol=experiment.TOLERANCE)
    assert (rows["case"] == "growth").sum() == size.frames
    assert set(rows[rows["case"] == "loop"]["variant"]) > {experiment.LOOP}
    with np.load(folder / f"{experiment.EXPERIMENT}.previews.npz") as arrays:
        steps = [name.removeprefix("chain ") for name in arrays.files if name.startswith("chain ")]
        assert {"plane", "radii", "removed", "raw", "lengths"} == set(arrays.files) - {f"chain {one}" for one in steps}
    chain = rows[rows["case"] == "chain"]
    assert list(chain["mean"].unique()) == steps and steps[-1] == "contrast"
    last = chain[chain["mean"] == "contrast"]
    assert len(last) == experiment.SHOTS
    np.testing.assert_allclose(last["r_max"], last["known"], rtol=experiment.TOLERANCE_OF_CHAIN)
    code, out, _, _ = run()
    assert code == 0 and "computed already" in out


def test_wrong_lengths_fail_the_run(run, monkeypatch):
    monkeypatch.setattr(experiment, "TOLERANCE", 1e-9)
    code, _, err, folder = run()
    assert code == 1 and "wrong; truth, wavelength 20" in err
    assert not (folder / f"{experiment.EXPERIMENT}.summary.json").exists()


def test_variants_that_differ_are_wrong():
    frame = {"case": "growth", "seed": 1, "r_max": 20.0}
    assert experiment.wrong([frame, {**frame, "r_max": 20.009}]) == []
    assert "frame 1" in experiment.wrong([frame, {**frame, "r_max": 20.02}])[0]
    assert "nan" in experiment.wrong([frame, {**frame, "r_max": float("nan")}])[0]


def test_a_chain_that_loses_a_drift_or_the_length_is_wrong():
    row = {"case": "chain", "mean": "contrast", "wavelength": 20.0, "seed": 2, "known": 22.3, "r_max": 22.4}
    assert experiment.wrong([row]) == []
    assert "chain, wavelength 20, seed 2" in experiment.wrong([{**row, "r_max": 24.0}])[0]
    assert experiment.wrong([{**row, "known": float("nan")}]) and experiment.wrong([{**row, "r_max": float("nan")}])
    assert experiment.wrong([{**row, "mean": "grey", "r_max": 24.0}]) == [], "only the last step is judged"
