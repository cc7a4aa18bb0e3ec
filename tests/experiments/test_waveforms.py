"""series-waveforms: errors on made-up seismograms of right, rounding and wrong libraries; what is left out."""

import numpy as np
import pytest
from built_library import built_library
from scipy_library import ScipyLibrary
from test_amplitudes import of_tf32
from test_seismic import content

from experiments.inputs import datasets, seismic, waveforms
from plots import real
from plots.sources.time_series.tables import waveforms as table


class Rounding(ScipyLibrary):
    """Variants of time series: exact in float32, in tf32, and a family that is none. `spoil` changes the outputs of tf32."""

    def __init__(self, spoil=lambda out: out):
        super().__init__()
        self.spoil = spoil

    def variants(self):
        base = {**super().variants()[1], "points": [""]}
        made = (
            ("series_plain", "time_series", "fp32"),
            ("series_tensor", "time_series", "tf32"),
            ("no_series", "cpu", "fp32"),
        )
        return [{**base, "id": name, "family": family, "precisions": [one]} for name, family, one in made]

    def correlate(self, request, left, right, *, variant, params="", precision="fp32", device="cpu", out=None):
        if precision == "tf32":
            left, right = (of_tf32(side).astype(np.float32) for side in (left, right))
        result = super().correlate(request, left, right, variant=variant)
        return self.spoil(result) if precision == "tf32" else result


@pytest.fixture
def run(run_input, monkeypatch):
    monkeypatch.setattr(datasets, "fetch", lambda *_: content())
    monkeypatch.setitem(waveforms.SIGNAL, "smoke", (20_000, 8))

    def call(library, *more):
        code, out, err, folder = run_input(waveforms, library, *more)
        return code, out, err, folder.parents[1]

    return call


def test_errors_are_over_the_norms_and_over_the_largest_output():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 5)), rng.normal(size=40)
    right[20:] *= 100
    truth = waveforms.Truth(left, right)
    exact = np.stack([np.correlate(right, one, "valid") for one in left])
    assert max(truth.errors(exact).values()) < 1e-12
    out = exact.copy()
    out[1, 7] += 0.25  # in the quiet part
    found = truth.errors(out)
    assert found["error"] == pytest.approx(0.25 / np.linalg.norm(left[1]) / np.linalg.norm(right[7:12]))
    assert found["of_largest"] == pytest.approx(0.25 / np.abs(exact).max())
    loudest = max(np.linalg.norm(right[at : at + 5]) for at in range(36))
    assert found["of_loudest"] == pytest.approx(0.25 / np.linalg.norm(left[1]) / loudest)
    for wrong in (np.nan, np.inf):
        out[0, 3] = wrong
        assert all(np.isinf(one) for one in truth.errors(out).values())


def test_the_waveforms_are_one_component_of_the_planted_earthquakes():
    size = seismic.Size(waveforms.TEMPLATES, 20_255, 8)
    (first, left, right), (second, noise, other) = waveforms.inputs_of(content(), size, 5)
    assert (first, second) == (waveforms.WAVEFORMS, waveforms.NOISE) == (table.WAVEFORMS, table.NOISE)
    assert left.shape == noise.shape == (16, 256) and right.shape == other.shape == (20_255,)
    assert {one.dtype for one in (left, right, noise, other)} == {np.dtype(np.float32)}
    case = seismic.make_case(*datasets.seismograms(content()), size, 5, channels=1)
    np.testing.assert_array_equal(right, case.signal[0])
    place = int(case.places[0] + case.offsets[0])
    cut = right[place : place + 256]
    assert np.corrcoef(cut, left[0])[0, 1] > 0.9, "the loudest of them"
    assert np.abs(noise).max() <= 1 and noise.min() < -0.9


def test_every_variant_of_time_series_has_a_row_an_input(run):
    code, out, err, folder = run(Rounding())
    assert code == 0 and err == "" and "LGPLv3" in out
    data = real.load(folder, real.WAVEFORMS)
    assert list(data.rows.columns) == list(waveforms.COLUMNS)
    ran = [(one["input"], one["variant"]) for _, one in data.rows.iterrows()]
    assert ran == [(name, one) for name in ("waveforms", "noise") for one in ("series_plain", "series_tensor")]
    errors = data.rows.set_index(["input", "variant"])["error"]
    assert 1e-5 < errors["waveforms", "series_tensor"] < 3e-4 and errors["waveforms", "series_plain"] < 1e-6
    assert data.summary["shifts"] == 20_000 and data.datasets()[0]["events"] == 8
    assert (data.rows["outputs"] == 16 * 20_000).all()
    assert "computed already" in run(Rounding())[1]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda out: np.roll(out, 1, axis=-1),
        lambda out: 0.9 * out,
        lambda out: np.where(np.arange(out.shape[-1]) == 77, np.float32(np.nan), out),
    ],
)
def test_a_wrong_variant_fails_the_run(run, spoil):
    code, _, err, folder = run(Rounding(spoil))
    assert code == 1 and err.startswith("error: series-waveforms: series_tensor in tf32: waveforms: an output differs")
    assert not (folder / "series-waveforms" / "artifacts" / "series-waveforms.summary.json").exists()


def test_without_data_or_variants_it_is_left_out(run, monkeypatch):
    assert "left out: no variant computes time series in single or lower precision on cpu" in run(ScipyLibrary())[1]
    refusing = Rounding()
    refusing.refuses = dict.fromkeys(("series_plain", "series_tensor"), "too long")
    assert "too long" in run(refusing)[1]

    def unavailable(*_):
        raise datasets.Unavailable("offline was asked for")

    monkeypatch.setattr(datasets, "fetch", unavailable)
    code, out, err, folder = run(Rounding())
    assert code == 0 and err == "" and "left out: obspy==1.5.1 has the seismograms, and offline" in out
    assert isinstance(real.load(folder, real.WAVEFORMS), str)


def test_the_built_library_is_near_float64(run):
    code, out, err, folder = run(built_library(), "--variants", "timeseries_cpu_fft,cpu_row_streaming")
    assert code == 0 and err == "", err
    rows = real.load(folder, real.WAVEFORMS).rows
    assert sorted(set(rows["variant"])) == ["cpu_row_streaming", "timeseries_cpu_fft"] and len(rows) == 4
    assert rows["error"].max() < 1e-5
