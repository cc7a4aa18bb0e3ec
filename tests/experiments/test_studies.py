"""Side experiments where times are looked for."""

import stored

from experiments.driver import store
from experiments.driver.studies import without_studies


def row(experiment: str, **cells: str) -> store.Row:
    return stored.row(experiment=experiment, **cells)


def test_rows_of_side_experiments_stay_only_where_nothing_else_has_a_time():
    rows = [
        row("main"),
        row("side", preset="paper", input="zero-mean"),
        row("side", params="a=1"),
        row("main", outcome="failed", params="a=1"),
    ]
    assert without_studies(rows, {"side"}) == [rows[0], *rows[2:]]
    assert without_studies(rows, ()) == rows


def test_the_files_say_which_experiments_are_meant():
    kept = without_studies([row("one-to-one"), row("modes"), row("gone")])
    assert [one["experiment"] for one in kept] == ["one-to-one", "gone"]
