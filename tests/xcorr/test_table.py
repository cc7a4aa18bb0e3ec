"""What auto believes of a table of times: times that a machine can have measured, and nothing else."""

import json

import pytest
from fixtures import sets
from scipy_library import ScipyLibrary

from experiments.driver import measured
from xcorr.choice import auto, table
from xcorr.errors import UserError
from xcorr.problem import Problem

KEY = ScipyLibrary().machine("cpu")["machine_key"]


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The table of a local set of one problem."""
    monkeypatch.setenv("XCORR_BUILD", str(tmp_path / "build"))
    (tmp_path / "build").mkdir()
    times = {"cpu_row_streaming": 5.0, "cpu_fft": 9.0}
    cells = {"params": "threads=all", **sets.square(32)}
    rows = [sets.row(variant=variant, compute_us=us, **cells) for variant, us in times.items()]
    measured.write(sets.write_set(tmp_path / "results", rows, KEY, "local"))
    return tmp_path / "results" / "local" / KEY / table.NAME


def choose(path):
    library = ScipyLibrary()
    return auto.Auto(library, "cpu", path.parents[2]).choose(Problem("one-to-one", (32, 32), (32, 32)))


def edit(path, change):
    sets_ = json.loads(path.read_text())
    change(sets_[0])
    path.write_text(json.dumps(sets_))


def points(one):
    return one["times"]["fp32"]["one-to-one"]


def test_the_times_of_another_machine_are_not_those_of_this_one(path):
    assert choose(path).variant == "cpu_row_streaming"
    edit(path, lambda one: one.update(machine_key="elsewhere"))
    with pytest.raises(UserError, match=f"times of machine elsewhere, not of {KEY}; run .*--local {KEY}"):
        choose(path)


@pytest.mark.parametrize(
    "time", [float("nan"), float("inf"), -1, 0, 0.0, 1e-300, 1e-4, 1e300, True, False, "5", [5], {"us": 5}], ids=repr
)
def test_an_impossible_time_is_refused_and_never_wins(path, time):
    assert choose(path).variant == "cpu_row_streaming"
    problem = next(iter(points(json.loads(path.read_text())[0])["problems"]))

    def change(one):
        points(one)["problems"][problem][0] = time

    edit(path, change)
    with pytest.raises(UserError, match="not a table of times") as caught:
        choose(path)
    assert problem in str(caught.value) and "\n" not in str(caught.value)
    assert f"auto_table --local {KEY}" in str(caught.value)


def test_a_time_beyond_any_memory_is_impossible():
    """Of 4 GiB in 1 us not even a cache would be enough."""
    problem = auto.Problem("one-to-many", (1024, 1024), (1024, 1024), 1, 1000, "full")
    with pytest.raises(ValueError, match="impossible; the shortest possible time is 2"):
        table.time_us(1.0, problem)
    assert table.time_us(5000, problem) == 5000.0


@pytest.mark.parametrize(
    "change",
    [
        lambda one: points(one)["problems"].update({name: [5.0] for name in list(points(one)["problems"])}),
        lambda one: points(one)["problems"].update({name: "59" for name in list(points(one)["problems"])}),
        lambda one: points(one).update(points=[[1, 2], ["cpu_fft", ""]]),
        lambda one: points(one).update(points=["ab", "cd"][:1] + [["cpu_fft", None]]),
        lambda one: one.update(machine_key=7),
        lambda one: one.update(backend=None),
        lambda one: one.update(cores=0),
        lambda one: one.update(cores=True),
        lambda one: one.update(cores="many"),
        lambda one: one.update(compute_capability=[9]),
        lambda one: one.update(times=[]),
    ],
)
def test_a_damaged_part_is_named_in_one_line(path, change):
    edit(path, change)
    with pytest.raises(UserError, match=f"not a table of times.*auto_table --local {KEY}") as caught:
        choose(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ['"text"', "7", "{}", "null", "[[]]", "[" * 100_000])
def test_what_is_no_list_of_sets_is_refused_in_one_line(path, text):
    path.write_text(text)
    with pytest.raises(UserError, match="not a table of times"):
        choose(path)


def test_the_shipped_table_has_possible_times_only():
    assert table.read(table.SHIPPED)
