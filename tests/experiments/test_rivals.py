"""Other libraries beside ours: results are judged by float64, a wrong one has no time, what is absent is named."""

import dataclasses
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.fft
from built_library import built_library
from calls import error_of

from experiments.compare import rivals
from experiments.compare.rivals import __main__ as command
from experiments.compare.rivals import timing, truth
from xcorr.problem import Problem

SMALL = [
    "one-to-one/9x7/9x7/1:1/full",
    "one-to-many/6x6/9x8/1:3/full",
    "n-to-m/5x4/12x15/2:3/valid",
    "n-to-mn/8x8/8x8/2:6/sy:-4..3,sx:-4..3",
    "n-to-m/1x8/1x300/2:1/valid",
    "n-to-m/5x4/22x25/3:2/valid/score=zncc",
    "n-to-mn/9x9/9x9/3:3/full/result=peak",
    "n-to-m/5x4/22x25/3:1/valid/score=zncc/result=peak",
]
PROBLEMS = [Problem.of_id(one) for one in SMALL]
FOUND = rivals.found()


def named(name):
    return next(one for one in FOUND if one.name == name)


@pytest.fixture(scope="module")
def library():
    return built_library()


def verdict(rival, module, problem):
    arrays = truth.inputs(problem)
    call = rival.prepare(module, problem, *arrays)
    return truth.judge(
        problem, call.download(call.compute(call.upload())), truth.exact(problem, *arrays), rival.precision
    )


def test_every_library_of_the_experiment_is_found():
    words = "torch,CuPy,cuFFT,PATIENT_JIT,NPP,VkFFT,matchedfilter,subquadratic,OpenCV,scikit-image,cuCIM,SciPy,IPP,MKL,ducc0"
    names = " ".join(one.name for one in FOUND)
    assert [word for word in words.split(",") if word not in names] == []
    assert len({one.name for one in FOUND}) == len(FOUND)
    assert all(one.install.startswith("pip install ") and one.settings for one in FOUND)


@pytest.mark.parametrize("rival", [one for one in FOUND if one.device == "cpu"], ids=lambda one: one.name)
def test_each_library_that_is_here_is_right(rival):
    here, absent = command.usable([rival])
    if absent:
        pytest.skip(f"{rival.name}: {absent[0][1]}")
    judged = 0
    for problem in PROBLEMS:
        try:
            found = verdict(rival, here[0][1], problem)
        except rivals.Unsupported:
            continue
        judged += 1
        assert found.outcome == "passed", (problem.id, found)
    assert judged


@pytest.mark.parametrize("problem", PROBLEMS, ids=SMALL)
def test_the_code_for_cupy_is_right_on_arrays_of_the_host(problem, monkeypatch):
    fake = SimpleNamespace(
        **{name: getattr(np, name) for name in dir(np) if not name.startswith("_")}, asnumpy=np.asarray
    )
    monkeypatch.setitem(sys.modules, "cupyx.scipy.fft", scipy.fft)
    assert verdict(named("CuPy rfft2"), fake, problem).outcome == "passed"


@pytest.mark.parametrize("problem", PROBLEMS[:6], ids=SMALL[:6])
def test_the_truth_is_the_definition_of_the_built_library(library, problem):
    left, right = truth.inputs(problem)
    exact = library.reference(problem, left.astype(float), right.astype(float), method="definition")
    np.testing.assert_allclose(truth.exact(problem, left, right).surfaces, exact, atol=1e-9)


@pytest.mark.parametrize("problem", PROBLEMS, ids=SMALL)
@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_wrong_results_are_incorrect(problem, precision):
    arrays = truth.inputs(problem)
    exact = truth.exact(problem, *arrays)
    flat = exact.surfaces.reshape(problem.pairs, -1)
    if problem.fields.result_kind == "peak":
        right = flat.argmax(1), flat.max(1)
        elsewhere = (right[0] + 1) % flat.shape[1]
        wrong = [(elsewhere, right[1]), (elsewhere, flat[np.arange(len(flat)), elsewhere]), (right[0], 1.1 * right[1])]
    else:
        right = exact.surfaces
        one = right.copy()
        one[-1, -1, -1] += 0.1 * exact.norms[-1] if problem.fields.score_kind == "product" else 0.1
        wrong = [right[:, :, ::-1], right[:, :, :-1], one, np.full_like(right, np.nan)]
    assert truth.judge(problem, right, exact, precision).outcome == "passed"
    assert [truth.judge(problem, result, exact, precision).outcome for result in wrong] == ["incorrect"] * len(wrong)


def test_the_problems_are_20_of_four_kinds():
    found = truth.problems()
    assert len(found) == 20 and {kind for kind, _ in found} == {"plain", "scores", "peaks", "series"}
    assert truth.problems(["series"]) == [one for one in found if one[0] == "series"]


def rows_of(library, monkeypatch, *some):
    """Rows of the small problems with results that are surfaces of one pair, by ours and these rivals."""
    record = {"family": "f", "upload_us": 1.0, "download_us": 1.0, "repetitions": [{"compute_us": 5.0}]}
    monkeypatch.setattr(command, "record_of", lambda *_: record)
    here = [(one, module, "1.0") for one, module in some]
    found = command.measure(
        library, "cpu", here, [("plain", PROBLEMS[0])], lambda call, *_: call() is None or 2e-6, print, 3, 0.1
    )
    return {row["name"]: row for rows in found for row in rows}


def test_ours_a_wrong_library_a_failing_one_and_one_that_does_not_compute_it(library, monkeypatch):
    right = named("SciPy rfft2")

    def flipped(*arguments):
        call = right.prepare(*arguments)
        return dataclasses.replace(call, download=lambda surfaces: surfaces[:, ::-1])

    def fails(*_):
        raise ValueError("out of registers\nand more")

    others = [
        dataclasses.replace(right, name=name, prepare=made) for name, made in (("flipped", flipped), ("fails", fails))
    ]
    modules = [(one, scipy.fft) for one in (right, *others)]
    rows = rows_of(library, monkeypatch, *modules, (named("scikit-image match_template"), None))
    said = {name: (row["outcome"], "compute_us" in row) for name, row in rows.items()}
    assert said == {
        "xcorr-bench": ("passed", True),
        "SciPy rfft2": ("passed", True),
        "flipped": ("incorrect", False),
        "fails": ("failed", False),
        "scikit-image match_template": ("not_supported", False),
    }
    assert rows["fails"]["reason"] == "out of registers"
    assert all((row["family"] == "rival") == (name != "xcorr-bench") for name, row in rows.items())
    lines = command.table(list(rows.values())).splitlines()
    assert "SciPy rfft2 1.0" in lines[2] and "| 0.4 " in lines[2], "the fastest first, its ratio to ours"
    assert "xcorr-bench" in lines[3] and "match_template" not in "".join(lines)
    assert {"incorrect", "failed"} <= {word for line in lines[4:] for word in line.replace(":", " ").split()}


def test_a_library_that_is_absent_is_named_with_its_install(capsys, monkeypatch):
    absent = dataclasses.replace(named("ducc0 r2c"), load=rivals.importing("no_such_library"))
    monkeypatch.setattr(command, "found", lambda: [absent])
    assert command.main(["--list"]) == 0
    said = capsys.readouterr().out
    assert "absent: No module named 'no_such_library'" in said and "pip install ducc0" in said


def test_the_command_stores_rows_and_names_what_is_left_out(library, tmp_path, monkeypatch, capsys):
    absent = dataclasses.replace(named("ducc0 r2c"), load=rivals.importing("no_such_library"))
    monkeypatch.setattr(command, "found", lambda: [named("SciPy rfft2"), absent])
    monkeypatch.setattr(command, "Library", lambda: library)
    monkeypatch.setattr(truth, "problems", lambda kinds: [("plain", PROBLEMS[0])])
    assert command.main(["--results", str(tmp_path), "--rounds", "1", "--seconds", "0.001"]) == 0
    key = library.machine("cpu")["machine_key"]
    stored = rivals.stored(tmp_path / "local" / key)
    assert [row["outcome"] for row in stored["rows"]] == ["passed", "passed"]
    assert stored["absent"]["ducc0 r2c"]["install"] == "pip install ducc0"
    assert "left out: ducc0 r2c: No module named 'no_such_library'; pip install ducc0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--kinds", "peek"], "kind peek: unknown; did you mean peaks?"),
        (["--rounds", "0"], "--rounds, --seconds: out of range"),
        (["--device", "cuda:1"], "device cuda:1: use cpu or cuda:0"),
    ],
)
def test_mistakes_are_one_line(words, says, capsys):
    assert command.main(words) == 2
    assert says in error_of(capsys)


class FakeBench:
    """cuda-bench as its documentation has it: runs what is registered and writes its times."""

    __name__ = "fake_bench_of_cuda"

    def __init__(self):
        self.registered, self.calls = {}, []

    def register(self, body):
        bench = self

        class Entry:
            def set_name(self, name):
                bench.registered[name] = body
                return self

            def set_min_samples(self, _):
                return self

            set_timeout = set_batch_target_time = set_min_samples

        return Entry()

    def run_all_benchmarks(self, words):
        name = words[words.index("--benchmark") + 1]
        launch = SimpleNamespace(get_stream=lambda: SimpleNamespace(addressof=lambda: 1))
        state = SimpleNamespace(set_disable_blocking_kernel=self.calls.append, exec=lambda launched: launched(launch))
        self.registered[name](state)


def test_calls_that_follow_the_stream_are_timed_by_cuda_bench_and_others_by_events(monkeypatch):
    bench = FakeBench()

    def from_json(path):
        found = {"nv/batch/time/gpu/mean": SimpleNamespace(value=3e-6)}
        states = [SimpleNamespace(summaries=found, skip_reason=None)]
        return SimpleNamespace(subbenches={name: SimpleNamespace(states=states) for name in bench.registered})

    results = SimpleNamespace(BenchmarkResult=SimpleNamespace(from_json=from_json))
    monkeypatch.setitem(sys.modules, f"{bench.__name__}.results", results)
    monkeypatch.setattr(timing, "_streams", lambda address: [])
    timer = timing.by_nvbench(bench, lambda *_: 7e-6)
    calls = []
    assert timer(lambda: calls.append(1), 0.01, True) == 3e-6 and calls and bench.calls == [True]
    assert timer(lambda: calls.append(1), 0.01, False) == 7e-6
    assert timer(lambda: calls.append(1), 0.01, True) == 3e-6 and len(bench.registered) == 2


def test_events_count_as_many_calls_as_fill_the_time():
    counts = []

    class Event:
        def __init__(self, **_):
            pass

        def record(self):
            counts.append(len(calls))

        def synchronize(self):
            pass

        def elapsed_time(self, end):
            return 1e-3 * (counts[-1] - counts[-2])  # a microsecond a call, in milliseconds

    calls = []
    module = SimpleNamespace(__name__="torch", cuda=SimpleNamespace(Event=Event))
    assert timing.by_events(module)(lambda: calls.append(1), 50e-6, True) == pytest.approx(1e-6)
    assert len(calls) == 51
    assert timing.by_events(module)(lambda: calls.append(1), 1.0, True) == pytest.approx(1e-6)
    assert len(calls) == 52 + timing.QUEUE
