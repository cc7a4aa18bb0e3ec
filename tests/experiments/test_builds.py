"""python3 -m experiments.compare.builds: the same points of two builds, in processes that alternate, as rows for sets."""

import pytest
from calls import error_of

from experiments.compare import builds
from experiments.driver.decoding import decode
from xcorr.native.variants import Variant
from xcorr.problem import Problem


def variant(name: str, modes: tuple[str, ...] = ("stream", "graph")) -> Variant:
    return Variant(name, "f", "cuda", "definition", ("fp32",), (), ("a=1", "a=2", "a=3"), modes, "h")


PROBLEMS = [
    Problem(form, (size, size), (size, size), 1, 1, "full") for form in ("one-to-one", "n-to-m") for size in (8, 16, 32)
]
PLACES = [
    (name, problem, f"a={i}", "tf32" if name == "v" else "fp32")
    for name in "uvw"
    for problem in PROBLEMS
    for i in (1, 2, 3, 4)
]


def chosen(places, count=14):
    return builds.choose(
        places, {name: variant(name, ("stream",) if name == "w" else ("stream", "graph")) for name in "uvw"}, count
    )


def test_points_are_spread_and_always_the_same():
    points = chosen(PLACES)
    assert points == chosen(reversed(PLACES)) and len(points) == 14
    assert {(unit.variant.id, unit.problem.form) for unit, _ in points[:6]} == {
        (name, form) for name in "uvw" for form in ("one-to-one", "n-to-m")
    }
    assert all(params != "a=4" for _, params in chosen(PLACES, 1000)), "a point that a build lacks"
    assert {(unit.variant.id == "v", unit.precision) for unit, _ in points} == {(True, "tf32"), (False, "fp32")}
    assert {(unit.variant.id == "w", unit.mode) for unit, _ in points} == {(True, "stream"), (False, "graph")}


def test_builds_and_points_are_shuffled_by_the_seed():
    def order(seed):
        calls = []

        def measure(build, points, process):
            calls.append((build, process, tuple(id(point) for point in points)))
            return []

        builds.in_turn(points, 6, seed, measure)
        return calls

    points = chosen(PLACES)
    calls = order(1)
    assert calls == order(1) != order(2)
    assert all({calls[i][0], calls[i + 1][0]} == {0, 1} for i in range(0, 12, 2)), "a process of each build in a round"
    assert {calls[i][0] for i in range(0, 12, 2)} == {0, 1}, "neither build is always the first"
    assert len({process for _, process, _ in calls}) == 12
    assert len({some for *_, some in calls}) > 1 and len({frozenset(some) for *_, some in calls}) == 1


@pytest.fixture
def published(driver, monkeypatch):
    """What the fake program has measured as a published set; short points, since all of it counts."""
    driver.commit()
    assert driver.run() == 0 and driver.publish() == 0
    monkeypatch.setattr(builds, "RESULTS", driver.results)
    driver.build(driver.base / "new")
    return [str(driver.base / "build"), str(driver.base / "new"), "--device", "cpu"]


def test_rows_of_both_builds_are_files_that_sets_reads(published, driver, capsys):
    out = driver.base / "times"
    assert builds.main([*published, "--points", "5", "--rounds", "3", "--out", str(out)]) == 0
    # The fake's times depend on the point alone, and the shortest points are the noisiest.
    assert "0 SLOWER, 0 FASTER" in capsys.readouterr().out
    rows = decode(out / "before.csv.gz")
    assert {row["run"] for row in rows} == {"before-0", "before-1", "before-2"}
    assert len(rows) == 5 * 3 * 3 and all(row["compute_us"] and row["source_hash"] for row in rows)
    assert len(decode(out / "after.csv.gz")) == len(rows)


def test_a_wrong_point_ends_the_command(published, driver, capsys):
    driver.faults({"kind": "incorrect", "variant": "cpu_fft"})
    assert builds.main([*published, "--variants", "cpu_fft"]) == 2
    assert "incorrect: element 3 is NaN" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--variants", "cpu_ftt"], "variant cpu_ftt: unknown; did you mean cpu_fft?"),
        (["--rounds", "2"], "--points, --rounds: out of range; use 1 and 3 or more"),
        (["--device", "cuda:0"], "no published cuda point of both builds"),
    ],
)
def test_mistakes_are_one_line(published, more, says, capsys):
    capsys.readouterr()
    assert builds.main([*published, *more]) == 2
    assert says in error_of(capsys)


def test_a_build_that_is_not_there(tmp_path, capsys):
    assert builds.main([str(tmp_path), str(tmp_path)]) == 2
    assert "xcorr-bench: not built; run scripts/build.sh in its tree" in error_of(capsys)
