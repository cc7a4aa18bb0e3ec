"""The driver: what it refuses, what it predicts anew, and what it leaves as it is."""

import json
from pathlib import Path

import pytest
from calls import error_of
from driving import POINTS

from experiments.driver import store
from xcorr.choice import speeds


def test_points_that_were_not_selected_are_predicted_anew(driver, capsys):
    """A slow prediction drops a point only as long as it is made; nothing is measured twice."""
    driver.presets(limit=1e-7)
    assert driver.run() == 0 and driver.calls() == []
    files = driver.files()
    assert driver.run() == 0 and driver.files() == files, "the same prediction needs no further row"
    assert "nothing to do" in capsys.readouterr().out
    driver.presets()
    driver.run("--dry-run")
    assert capsys.readouterr().out.splitlines()[-1].split()[:4] == ["total", str(POINTS), "0", "0"]
    assert driver.run() == 0
    assert set(driver.outcomes().values()) == {"passed"} and len(driver.rows()) == 2 * POINTS
    calls = len(driver.calls())
    driver.presets(limit=1e-7)
    assert driver.run() == 0 and len(driver.calls()) == calls
    assert set(driver.outcomes().values()) == {"passed"}, "what was measured stays"
    assert driver.run("--force") == 0
    assert set(driver.outcomes().values()) == {"passed"}


def test_what_is_learnt_in_a_run_selects_what_an_earlier_one_left_out(driver):
    """Small points on a busy host predict large ones too slow; the points measured now say otherwise."""
    driver.presets(limit=1e-7)
    assert driver.run("--sizes", "12", "--variants", "cpu_definition") == 0
    assert set(driver.outcomes().values()) == {"not_selected"}
    driver.presets(limit=3e-6)  # below the shipped rate for 12 x 12, far above the fake's time
    rates = speeds.SPEEDS.read_text()
    (driver.folder / "rates.toml").write_text(
        rates.replace("cpu_definition = { per_core = 9e8", "cpu_definition = { per_core = 1e9")
    )
    assert driver.run("--variants", "cpu_definition") == 0
    assert driver.outcomes()[("cpu_definition", "", "12", "2")] == "passed"


def test_a_bad_window_cell_stops_no_sweep(driver, capsys):
    driver.run()
    bad = sorted((driver.local / "many").glob("*.csv.gz"))[0]
    bad.write_bytes(store.encode([{**row, "window": "junk"} for row in store.decode(bad)]))
    assert driver.run() == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warned) == 1 and str(bad) in warned[0] and "window 'junk'" in warned[0]
    assert set(driver.outcomes().values()) == {"passed"} and len(driver.rows()) == 2 * POINTS


def test_a_dry_run_writes_nothing_beside_damaged_files(driver):
    driver.run()
    first = sorted((driver.local / "many").glob("*.csv.gz"))[0]
    first.write_bytes(b"not gzip")
    before = {path: Path(path).read_bytes() for path in driver.files()}
    assert driver.run("--dry-run") == 0
    assert {path: Path(path).read_bytes() for path in driver.files()} == before


def test_a_run_record_without_words_stops_no_sweep(driver):
    driver.run()
    (path,) = (driver.local / "many" / "runs").glob("*.json")
    for argv in (None, 7):
        path.write_text(json.dumps({**json.loads(path.read_text()), "argv": argv}))
        assert driver.run() == 0


@pytest.mark.parametrize(
    "line, says",
    [
        ("energy_s = nan", "energy_s: nan"),
        ("energy_s = -3", "energy_s: -3"),
        ("energy_s = inf", "energy_s: inf"),
        ('window = "sy:-4..0,sx:0..0"', "leaves the full window"),
        ('window = "sy:0..0,sx:0..4"', "leaves the full"),
    ],
)
def test_an_experiment_that_can_only_fail_is_refused_when_it_is_read(driver, capsys, line, says):
    path = driver.folder / "many.toml"
    driver.edit(path.name, "[[problems]]", f"{line}\n[[problems]]")
    assert driver.run() == 2
    said = error_of(capsys)
    assert said.startswith(f"error: {path}: ") and says in said and driver.calls() == []


@pytest.mark.parametrize("repetitions", ["99999999999999999999", "1000000"])
def test_repetitions_without_end_are_no_traceback(driver, capsys, repetitions):
    driver.edit("presets.toml", "repetitions = 2", f"repetitions = {repetitions}")
    driver.edit("presets.toml", "min_time_s = 0.001", "min_time_s = 86400")
    driver.faults({"kind": "no-answer"})
    assert driver.run("--sizes", "4", "--variants", "cpu_definition") == (2 if len(repetitions) > 7 else 1)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "fields, says",
    [
        ({"repetitions": []}, "without a time"),
        ({"repetitions": None}, "without a time"),
        ({"repetitions": [{"repetition": 0, "compute_us": None}]}, "without a time"),
        ({"repetitions": [{"repetition": 0, "compute_us": 0}]}, "without a time"),
        ({"max_error": None}, "without an error"),
        ({"max_error": "NaN"}, "without an error"),
        ({"outcome": None}, "outcome None"),
        ({"outcome": "fine"}, "outcome 'fine'"),
    ],
)
def test_passed_without_a_time_or_an_error_has_failed(driver, monkeypatch, capsys, fields, says):
    monkeypatch.setenv("FAKE_RECORD", json.dumps(fields))
    assert driver.run("--sizes", "4", "--variants", "cpu_definition") == 1
    assert says in capsys.readouterr().out
    assert {(row["outcome"], row["compute_us"]) for row in driver.rows()} == {("failed", "")}


@pytest.mark.parametrize("several", [False, True], ids=["one problem", "several problems"])
def test_a_row_is_of_the_source_that_the_program_lists(driver, monkeypatch, capsys, several):
    """As when a build was replaced between the list and the measurement."""
    monkeypatch.setenv("FAKE_RECORD", json.dumps({"source_hash": "c" * 16}))
    assert driver.run(*([] if several else ["--sizes", "4"])) == 2
    (line,) = [one for one in capsys.readouterr().err.splitlines() if one.startswith("error: ")]
    assert f"xcorr-bench lists source {'a' * 16} and measured {'c' * 16}; build again" in line
    assert driver.rows() == []
