"""series-amplitudes: errors over the norms, lost outputs of made-up arithmetic, what is left out; and fragments read back."""

import json
import subprocess

import numpy as np
import pytest
from scipy_library import ScipyLibrary

from experiments.compare import fragments
from experiments.inputs import amplitudes
from plots import real
from xcorr.errors import UserError


def of_tf32(values: np.ndarray) -> np.ndarray:
    fraction, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.rint(np.ldexp(fraction, 11)), exponent - 11)


class Rounding(ScipyLibrary):
    """`series_half` and `series_tensor` round the samples, and refuse CPUs where told."""

    ROUNDS = {"series_half": ("fp16", np.float16), "series_tensor": ("tf32", of_tf32), "series_plain": ("fp32", None)}

    def variants(self):
        base = super().variants()[0]
        return [{**base, "id": name, "precisions": [p], "points": [""]} for name, (p, _) in self.ROUNDS.items()]

    def correlate(self, request, left, right, *, variant, params="", precision="fp32", device="cpu", out=None):
        rounded = self.ROUNDS[variant][1]
        with np.errstate(over="ignore"):
            own = [np.asarray(rounded(side), np.float32) for side in (left, right)]
        result = super().correlate(request, *own, variant="cpu_fft")
        return result


@pytest.fixture
def run(run_input):
    def call(library, *more):
        code, out, err, folder = run_input(amplitudes, library, *more)
        return code, out, err, folder.parents[1]

    return call


def test_errors_are_over_the_norms_of_template_and_stretch():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 5)), rng.normal(size=40)
    out = np.stack([np.correlate(right, one, "valid") for one in left])
    wrong = out.copy()
    wrong[1, 7] += 0.25
    wrong[0, 0], wrong[0, 35] = np.nan, np.inf
    errors = amplitudes.normalised_errors(wrong, left, right)
    assert errors[1, 7] == pytest.approx(0.25 / np.linalg.norm(left[1]) / np.linalg.norm(right[7:12]))
    assert np.isinf(errors[0, [0, 35]]).all()
    errors[1, 7] = errors[0, 0] = errors[0, 35] = 0
    assert errors.max() < 1e-12


def test_half_precision_loses_small_samples_and_tf32_none(run):
    code, out, err, folder = run(Rounding())
    assert code == 0 and err == ""
    rows = real.load(folder, real.AMPLITUDES).rows
    assert set(rows["variant"]) == {"series_half", "series_tensor"} and len(rows) == 22
    lost = rows.groupby("variant")["lost"].sum()
    assert lost["series_tensor"] == 0 < lost["series_half"]
    assert set(rows[rows["lost"] > 0]["amplitude"]) == {1e-6, 1e-5}
    assert (rows["outputs"] == 16 * 4096).all() and rows[rows["variant"] == "series_tensor"]["max_error"].max() < 2e-4
    assert "series_half fp16: lost outputs by amplitude: 1e-06" in out
    assert "series_tensor tf32: lost outputs by amplitude: none" in out
    assert "computed already" in run(Rounding())[1]


def test_without_such_variants_it_is_left_out(run):
    code, out, _, folder = run(ScipyLibrary())
    assert code == 0 and "left out: no variant computes time series in tf32 or fp16 on cpu" in out
    assert isinstance(real.load(folder, real.AMPLITUDES), str)
    refusing = Rounding()
    refusing.refuses = dict.fromkeys(Rounding.ROUNDS, "too long")
    assert "left out" in run(refusing)[1]


DUMP = {"a": [[0] * 4] * 32, "b": [[0] * 4] * 32, "c": [[0] * 8] * 32}


def test_fragments_are_stored_as_the_program_prints_them(tmp_path, monkeypatch, capsys):
    def program(words, **_):
        assert words == ["/dumps"]
        return subprocess.CompletedProcess(words, 0, json.dumps(DUMP), "")

    monkeypatch.setattr(fragments.subprocess, "run", program)
    words = ["--program", "/dumps", "--machine-key", "k", "--results", str(tmp_path)]
    assert fragments.run(words) == 0
    stored = tmp_path / "local" / "k" / "series-fragments" / "artifacts" / "series-fragments.json"
    assert json.loads(stored.read_text()) == DUMP and "a: lane 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 1}', json.dumps({**DUMP, "c": [[0] * 4] * 32}), json.dumps({"a": DUMP["a"]})]
)
def test_other_output_is_refused(text):
    with pytest.raises(UserError, match="32 lanes"):
        fragments.read(text)


def test_a_program_that_fails_is_one_line(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "fragments: no CUDA-capable device is detected\n")
    monkeypatch.setattr(fragments.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(UserError, match="no CUDA-capable device .*; a GPU of compute capability 8.0"):
        fragments.run(["--program", "/dumps", "--machine-key", "k", "--results", str(tmp_path)])


def test_elements_of_c_counted_by_columns():
    assert [fragments.by_columns(one) for one in (0, 1, 16, 255)] == [0, 16, 1, 255]
