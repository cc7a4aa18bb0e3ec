"""python3 -m experiments.compare.sets: verdicts on two sets of times, and a planted difference that alone is found."""

import csv
import gzip

import numpy as np
import pytest
import stored
from calls import error_of
from stored import square

from experiments.compare import sets
from experiments.driver import store

NOISE = 0.004
VARIANTS = [f"v{i}" for i in range(10)]


def rows(factors=None, clock=None, processes=4, seed=1, variants=VARIANTS, noise=NOISE):
    """Rows of the variants on two problems, 3 samples in each of the processes, whose own pace differs too. `factors`: of the
    times by variant. `clock`: MHz of all samples."""
    rng = np.random.default_rng(seed)
    found = []
    for variant in variants:
        for side, us in ((16, 5.0), (64, 120.0)):
            for process in range(processes):
                pace = 1 + noise * rng.uniform(-1, 1)
                for i in range(3):
                    time = us * (factors or {}).get(variant, 1) * pace * (1 + noise * rng.uniform(-1, 1))
                    cells = {
                        "run": f"r{process}",
                        "variant": variant,
                        "repetition": i,
                        "compute_us": time,
                        **square(side),
                    }
                    row = stored.row(mode="graph", **cells)
                    found.append({**row, sets.CLOCK: str(clock)} if clock else row)
    return found


def write(path, found):
    """A file of rows with all their columns, those that this version may not know too."""
    with gzip.open(path, "wt", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    return str(path)


def verdicts(before, after, processes=sets.PROCESSES):
    """Of each point, by variant and rows of the left."""
    points = sets.compare(sets.samples_of(before), sets.samples_of(after), processes)
    named = [(dict(zip(sets.POINT, one.place)), one) for one in points]
    return {(place["variant"], place["left_rows"]): one.verdict for place, one in named}


@pytest.mark.parametrize(("factor", "word"), [(1.03, "SLOWER"), (1 / 1.03, "FASTER")])
@pytest.mark.parametrize("clock", [None, 1980])
def test_a_planted_difference_of_3_percent_in_one_variant_is_found_and_nothing_else(factor, word, clock):
    found = verdicts(rows(clock=clock), rows({"v3": factor}, clock=clock, seed=2))
    assert {place: said for place, said in found.items() if said != "SAME"} == {("v3", "16"): word, ("v3", "64"): word}
    assert len(found) == 2 * len(VARIANTS)


def test_a_slower_clock_is_no_slower_kernel():
    found = verdicts(rows(clock=1980), rows({"v3": 1.1}, clock=1800, seed=2))
    assert found["v3", "64"] == "UNDECIDED", "the time differs, the cycles do not"
    assert found["v4", "64"] == "UNDECIDED", "the cycles differ, the time does not"


def test_where_a_sample_lacks_its_clock_time_alone_decides_and_the_table_says_so():
    after = rows({"v3": 1.1}, clock=1800, seed=2)
    after[0][sets.CLOCK] = ""
    (point,) = [
        one
        for one in sets.compare(sets.samples_of(rows(clock=1980)), sets.samples_of(after))
        if one.in_cycles == sets.NO_CLOCK
    ]
    assert dict(zip(sets.POINT, point.place))["variant"] == "v0"
    assert "1 points have no column sm_mhz: time alone decides them." in sets.told([point], (0, 0))


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ([100, 100.5, 101], [101, 101.5, 102], "SAME"),  # apart, and within 2 %
        ([100, 100.5, 101], [103, 103.5, 104], "SLOWER"),
        ([103, 103.5, 104], [100, 100.5, 101], "FASTER"),
        ([98, 100, 102], [101, 103, 105], "UNDECIDED"),  # not apart
        ([101, 103, 105], [98, 100, 102], "UNDECIDED"),
        ([100, 100.1, 100.2], [100.5, 101, 105], "UNDECIDED"),  # apart, medians within 2 %, a range that is wider
        ([90, 100, 110], [90, 100, 110], "UNDECIDED"),  # equal, and too noisy to say so
    ],
)
def test_verdicts(before, after, word):
    assert sets.verdict(np.array(before), np.array(after)) == word


def test_fewer_processes_than_asked_for_decide_nothing():
    before, after = rows(processes=2), rows({"v3": 1.5}, processes=2, seed=2)
    assert set(verdicts(before, after).values()) == {"UNDECIDED"}
    assert verdicts(before, after, processes=2)["v3", "64"] == "SLOWER"
    points = sets.compare(sets.samples_of(before), sets.samples_of(after))
    assert "20 points are UNDECIDED because they lack 3 processes in each set (--processes)." in sets.told(
        points, (0, 0)
    )


def test_the_column_of_the_process_counts_within_a_run():
    several = [{**row, sets.PROCESS: row["run"], "run": "one"} for row in rows()]
    assert {one.processes for one in sets.samples_of(several).values()} == {4}


def test_the_most_thorough_preset_of_a_point_counts():
    quick, smoke = (stored.row(preset=name, compute_us=us) for name, us in (("quick", 2.0), ("smoke", 9.0)))
    (found,) = sets.samples_of([quick, smoke]).values()
    assert list(found.us) == [2.0]


def test_the_command_prints_what_differs_first(tmp_path, capsys):
    before = write(tmp_path / "a.csv.gz", rows(clock=1980))
    after = write(tmp_path / "b.csv.gz", rows({"v3": 1.03, "v5": 0.97}, clock=1980, seed=2, variants=VARIANTS[:-1]))
    assert sets.main([before, after]) == 0
    lines = capsys.readouterr().out.splitlines()
    words = [line.split()[1::2][:2] for line in lines[2:6]]
    assert words == [["SLOWER", "v3"], ["SLOWER", "v3"], ["FASTER", "v5"], ["FASTER", "v5"]]
    assert lines[-1] == "2 SLOWER, 2 FASTER, 0 UNDECIDED, 14 SAME; only in A 2, only in B 0"
    assert sets.main([before, after, "--fail-on-slower"]) == 1
    assert sets.main([before, before, "--fail-on-slower"]) == 0


def test_all_runs_of_a_set_are_samples(tmp_path, capsys):
    """The store keeps the newest run of a point; here each run is a process. Rows of an older source do not count."""
    for machine, factor, seed in (("a", 1.0, 1), ("b", 1.03, 2)):
        folder = tmp_path / "local" / machine
        cells = {"variant": "v3", "mode": "graph", "source_hash": "o" * 16, **square(64)}
        old = [stored.row(compute_us=50.0, repetition=i, **cells) for i in range(6)]
        stored.save(folder, "20250101T000000-000000", old)
        for process in range(4):
            run = f"2026010{process + 1}T000000-aaaaaa"
            own = [row for row in rows({"v3": factor}, seed=seed) if row["run"] == f"r{process}"]
            stored.save(folder, run, own)
    assert sets.main(["a", "b", "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "2 SLOWER, 0 FASTER, 0 UNDECIDED, 18 SAME" in said and "4, 4" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing", "nothing"], "set nothing: neither a file, a folder nor a key"),
        (["{}/empty", "{}/empty"], "no rows; give results/local/KEY"),
        (["{}/text", "{}/text"], "not a file of rows"),
        (["{}/a.csv.gz", "{}/b.csv.gz"], "no point that passed is in both"),
        (["{}/a.csv.gz", "{}/a.csv.gz", "--processes", "0"], "--processes 0: out of range"),
    ],
)
def test_mistakes_are_one_line(words, says, tmp_path, capsys):
    (tmp_path / "text").write_text("text")
    (tmp_path / "empty").mkdir()
    for name, variant in (("a", "v"), ("b", "w")):
        (tmp_path / f"{name}.csv.gz").write_bytes(store.encode([stored.row(variant=variant)]))
    assert sets.main([word.format(tmp_path) for word in words]) == 2
    assert says in error_of(capsys)
