"""Rows that a busy host slowed down are known, named and measured again on request."""

import stored

from experiments.driver import store
from experiments.driver.launches import quiet_us, slowed


def row(**cells: str) -> store.Row:
    return stored.row(**{"experiment": "many", "compute_us": 4, "launch_us": 3, **cells})


def test_only_times_of_few_launches_and_plans_are_slowed_by_a_busy_host():
    quiet = row(variant="quiet")
    fast, slow = row(variant="fast", launch_us="4.6"), row(variant="slow", launch_us="4.6", compute_us="400")
    planned = row(variant="planned", launch_us="4.6", compute_us="400", plan_us="800")
    failed = row(variant="failed", launch_us="4.6", outcome="failed", compute_us="")
    unknown = row(variant="unknown", launch_us="")
    gated = [row(variant="gated", launch_us=us, host_paced="no") for us in ("1.0", "4.6")]
    rows = [quiet, fast, slow, planned, failed, unknown, *gated]
    assert quiet_us(rows) == 3
    found = {dict(zip(store.KEY, key))["variant"] for _, key in slowed(rows, quiet_us(rows))}
    assert found == {"fast", "planned"}


def test_rows_without_launches_say_nothing():
    rows = [row(launch_us=""), row(launch_us="", compute_us="0.1")]
    assert quiet_us(rows) == 0 and not slowed(rows, quiet_us(rows))


def test_a_sweep_says_so_and_slowed_measures_them_again(driver, capsys):
    driver.run("--sizes", "4")
    quiet = len(driver.rows())
    driver.faults({"kind": "busy", "left": "8x8"})
    driver.run("--sizes", "4,8")
    assert "a busy host slowed 6 points down" in capsys.readouterr().err
    driver.faults()
    driver.run("--sizes", "4,8")
    assert "nothing to do" in capsys.readouterr().out
    driver.run("--sizes", "4,8", "--slowed")
    captured = capsys.readouterr()
    assert "6 passed" not in captured.err and "slowed" not in captured.err
    assert {one["launch_us"] for one in driver.rows()} == {"3"} and len(driver.rows()) > quiet


def test_measuring_again_beside_a_busier_host_replaces_nothing(driver):
    driver.faults({"kind": "busy", "left": "8x8"})
    driver.run("--sizes", "4,8")
    first = driver.rows()
    driver.faults({"kind": "busier", "left": "8x8"})
    driver.run("--sizes", "4,8", "--slowed")
    assert driver.rows() == first
    driver.run("--sizes", "4,8", "--force")
    assert {one["run"] for one in driver.rows()}.isdisjoint({one["run"] for one in first})


def test_a_point_that_was_only_measured_again_keeps_its_rows():
    only = row(variant="only", run="2", launch_us="")
    assert store.newest([only], again={"2"}) == [only]


def test_a_slowed_point_is_measured_again_with_its_rivals(driver):
    """They meet in one run, so that their problem can be published."""
    driver.faults({"kind": "busy", "variant": "cpu_fft", "left": "8x8"})
    driver.run("--sizes", "4,8")
    first = {one["run"] for one in driver.rows()}
    driver.faults()
    driver.run("--sizes", "4,8", "--slowed")
    again = [one for one in driver.rows() if one["run"] not in first]
    assert {(one["variant"], one["left_rows"]) for one in again} == {("cpu_definition", "8"), ("cpu_fft", "8")}
    assert len({store.key_of(one) for one in again}) == 6
    assert driver.publish("--partial") == 0


def test_of_a_problem_the_rivals_of_one_run_stay(driver):
    driver.faults({"kind": "busy", "variant": "cpu_fft", "left": "8x8"})
    driver.run("--sizes", "8")
    first = driver.rows()
    driver.faults({"kind": "busier", "variant": "cpu_definition", "left": "8x8"})
    driver.run("--sizes", "8", "--slowed")
    assert driver.rows() == first, "the fast launches of cpu_fft are of a run that a busier host slowed down"


def test_what_is_not_supported_has_no_launch_and_a_failure_replaces_nothing():
    unsupported = {"variant": "other", "launch_us": "", "outcome": "not_supported"}
    before = [row(run="1", launch_us="4.6"), row(run="1", **unsupported)]
    after = [row(run="2"), row(run="2", **unsupported)]
    assert {one["run"] for one in store.newest([*before, *after], again={"2"})} == {"2"}
    failed = [{**after[0], "launch_us": "", "outcome": "failed"}, after[1]]
    assert {one["run"] for one in store.newest([*before, *failed], again={"2"})} == {"1"}
