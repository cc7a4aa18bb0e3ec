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
from xcorr.errors import UserError
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
    timer = timing.one_by_one(lambda call, _: call() is None or 2e-6)
    found = command.measure(library, "cpu", here, [("plain", PROBLEMS[0])], timer, print, 3, 0.1)
    return {row["name"]: row for row in found}


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
    """cuda-bench as it behaves: runs what is registered once, for every value of the axis, and then writes its times.
    `without`: values without a time."""

    __name__ = "fake_bench_of_cuda"

    def __init__(self, monkeypatch, without=()):
        self.blocking, self.lengths, self._without, self._ran = [], [], without, False
        self.states = []
        results = SimpleNamespace(BenchmarkResult=SimpleNamespace(from_json=self._read))
        monkeypatch.setitem(sys.modules, f"{self.__name__}.results", results)
        monkeypatch.setattr(timing, "_streams", lambda address: [])

    def register(self, body):
        if self._ran:
            raise RuntimeError("Can not register more benchmarks after benchmark was run")
        entry = SimpleNamespace(set_name=lambda _: entry, set_min_samples=lambda _: entry, add_int64_axis=self._axis)
        self._body = body
        return entry

    def _axis(self, name, values):
        self._name, self._values = name, values

    def run_all_benchmarks(self, words):
        self._ran = True
        for value in self._values:
            found = {} if value in self._without else {"nv/batch/time/gpu/mean": SimpleNamespace(value=1e-6 * value)}
            kept = SimpleNamespace(point={self._name: str(value)}, summaries=found, skip_reason=None)
            self.states.append(kept)
            launch = SimpleNamespace(get_stream=lambda: SimpleNamespace(addressof=lambda: 1))
            state = SimpleNamespace(
                get_int64=lambda name, value=value: {self._name: value}[name],
                set_disable_blocking_kernel=self.blocking.append,
                set_timeout=lambda _: None,
                set_batch_target_time=self.lengths.append,
                skip=lambda reason, kept=kept: vars(kept).update(skip_reason=reason, summaries={}),
                exec=lambda launched, launch=launch: [launched(launch) for _ in range(2)],
            )
            self._body(state)

    def _read(self, _):
        return SimpleNamespace(subbenches={timing.NAME: SimpleNamespace(states=self.states)})


def a_round(call, follows_stream=True):
    times, errors = [], []
    return timing.Round(call, 0.01, follows_stream, times.append, errors.append), times, errors


def test_all_rounds_that_follow_the_stream_are_one_run_of_cuda_bench_and_others_are_timed_by_events(monkeypatch):
    bench = FakeBench(monkeypatch, without=[2])
    order = []

    def breaks():
        raise ValueError("out of memory")

    made = [
        a_round(lambda: order.append("first")),
        a_round(lambda: order.append("by events"), follows_stream=False),
        a_round(breaks),
        a_round(lambda: order.append("without a time")),
        a_round(lambda: order.append("last")),
    ]
    timing.by_nvbench(bench, lambda call, _: call() is None and 7e-6)(iter([one for one, _, _ in made]), 9)
    assert order == ["first"] * 2 + ["by events"] + ["without a time"] * 2 + ["last"] * 2
    assert [times for _, times, _ in made] == [[0.0], [7e-6], [], [], [3e-6]]
    assert [[str(error) for error in errors] for _, _, errors in made] == [
        [], [], ["out of memory"], ["cuda-bench gave no time (None)"], []
    ]  # fmt: skip
    assert bench.blocking == [True] * 4 and bench.lengths == [0.01] * 4


@pytest.mark.parametrize("error", [UserError("a mistake"), KeyboardInterrupt()])
def test_what_is_raised_between_rounds_ends_the_run_of_cuda_bench(error, monkeypatch):
    def rounds():
        yield a_round(lambda: None)[0]
        raise error

    with pytest.raises(type(error)):
        timing.by_nvbench(FakeBench(monkeypatch), lambda call, _: 1.0)(rounds(), 4)


def test_an_interrupted_call_ends_the_run_of_cuda_bench(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    one, _, errors = a_round(interrupted)
    with pytest.raises(KeyboardInterrupt):
        timing.by_nvbench(FakeBench(monkeypatch), lambda call, _: 1.0)(iter([one]), 1)
    assert not errors


def test_rows_of_all_problems_have_times_of_one_run_of_cuda_bench(library, monkeypatch):
    record = {"family": "f", "upload_us": 1.0, "download_us": 1.0, "repetitions": [{"compute_us": 5.0}]}
    monkeypatch.setattr(command, "record_of", lambda *_: record)
    rival = dataclasses.replace(named("SciPy rfft2"), follows_stream=True)
    problems = [("plain", PROBLEMS[0]), ("plain", PROBLEMS[0])]
    timer = timing.by_nvbench(FakeBench(monkeypatch), lambda *_: 1.0)
    seen = []
    rows = command.measure(
        library, "cpu", [(rival, scipy.fft, "1")], problems, timer, print, 3, 0.1,
        done=lambda blocks: seen.append(len(blocks)),
    )  # fmt: skip
    assert seen == [1, 2]
    found = [(row["rounds"], row["compute_us"]) for row in rows if row["name"] == rival.name]
    assert found == [(3, pytest.approx(1)), (3, pytest.approx(4))], "rounds 0 to 2, then 3 to 5"


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
    assert timing.by_events(module)(lambda: calls.append(1), 50e-6) == pytest.approx(1e-6)
    assert len(calls) == 51
    assert timing.by_events(module)(lambda: calls.append(1), 1.0) == pytest.approx(1e-6)
    assert len(calls) == 52 + timing.QUEUE
