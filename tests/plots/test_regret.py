"""The table of auto's regret: what is set aside, what it divides by, what it says."""

import math

import pytest
from fixtures import sets

from plots.tables import regret
from plots.tables.table import readable

FEEDS = {"sweep": ["comparison"], "judge": ["regret"]}


def row(variant, side, us, experiment="sweep", **cells):
    return sets.row(variant=variant, compute_us=us, experiment=experiment, **sets.square(side), **cells)


def result_set(*rows):
    return sets.result_set(rows, feeds=FEEDS)


# By the sweep `a` is the faster one at 16 and 64, and so between them; at 32 it is not.
SWEEP = [row("a", 16, 1.0), row("b", 16, 2.0), row("a", 64, 10.0), row("b", 64, 20.0)]


def test_time_of_the_choice_over_the_best_measured_time():
    lines = regret.table(result_set(*SWEEP, row("a", 32, 6.0, "judge"), row("b", 32, 4.0, "judge")))
    [line] = lines.to_dict("records")
    assert (line["variant"], line["best"], line["time_us"], line["best_us"]) == ("a", "b", 6.0, 4.0)
    assert line["regret"] == pytest.approx(1.5) and line["size"] == "32x32" and line["counts"] == "1-to-1"
    assert "1.500 and 1.50 (targets: 1.15 and 1.6)" in regret.summary(lines)


def test_rows_of_the_judged_problem_are_set_aside_whoever_measured_them():
    other = [row("a", 32, 6.0), row("b", 32, 4.0)]  # the sweep knows the answer; it does not tell
    lines = regret.table(result_set(*SWEEP, *other, row("a", 32, 6.0, "judge"), row("b", 32, 4.0, "judge")))
    assert list(lines["variant"]) == ["a"] and "measured 6" not in lines["why"][0]


def test_what_the_program_refused_is_no_choice():
    refused = row("a", 32, None, "judge", outcome="not_supported", reason="no")
    lines = regret.table(result_set(*SWEEP, refused, row("b", 32, 4.0, "judge")))
    assert list(lines["variant"]) == ["b"] and list(lines["regret"]) == [1.0]


def test_a_choice_that_was_not_measured_is_told_not_guessed():
    lines = regret.table(
        result_set(*SWEEP, row("b", 32, 4.0, "judge"), row("a", 48, 6.0, "judge"), row("b", 48, 6.0, "judge"))
    )
    assert math.isnan(lines["regret"][0]) and lines["regret"][1] == 1.0
    assert "1 choices were not measured" in regret.summary(lines)
    assert list(readable(lines, regret.SHOWN)["Regret"]) == ["not measured", "1.00"]


def test_geometric_mean_and_worst_per_form():
    many = dict(form="one-to-many", rights=6)
    near = [row(v, s, us, **many) for v, s, us in (("a", 16, 1.0), ("b", 16, 2.0), ("a", 64, 10.0), ("b", 64, 20.0))]
    judged = [row("a", 32, 6.0, "judge"), row("b", 32, 4.0, "judge")]
    judged += [row(variant, 32, 6.0, "judge", **many) for variant in ("a", "b")]
    said = regret.summary(regret.table(result_set(*SWEEP, *near, *judged)))
    assert f"of 2 problems: {math.sqrt(1.5):.3f} and 1.50" in said
    assert "one-to-one 1.500 and 1.50; one-to-many 1.000 and 1.00" in said


def test_leaving_one_size_out_needs_no_experiment_of_its_own():
    lines = regret.leave_one_size_out(result_set(*SWEEP, row("a", 32, 6.0), row("b", 32, 4.0)))
    assert dict(zip(lines["size"], lines["regret"].round(2))) == {"16x16": 2.0, "32x32": 1.5, "64x64": 2.0}


def test_files():
    texts = sets.files(regret, result_set(*SWEEP, row("a", 32, 6.0, "judge"), row("b", 32, 4.0, "judge")))
    assert set(texts) == {"regret.md", "regret.csv"} and "Geometric mean" in texts["regret.md"]
    assert texts["regret.csv"].splitlines()[0] == ",".join(regret.COLUMNS)


def test_command(tmp_path, capsys):
    folder = sets.write_set(tmp_path, [{**one, "experiment": "one-to-one"} for one in SWEEP], "some-machine")
    assert folder.is_dir() and regret.main(["some-machine", "--results", str(tmp_path), "--leave-one-size-out"]) == 0
    assert "Geometric mean and worst regret of 2 problems: 1.000" in capsys.readouterr().out
    assert regret.main(["some-machine", "--results", str(tmp_path)]) == 1, "nothing was judged"
    assert regret.main(["some-machin", "--results", str(tmp_path)]) == 2
    told = "error: machine key some-machin: no published or local results; did you mean some-machine?\n"
    assert capsys.readouterr().err == told
