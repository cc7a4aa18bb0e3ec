"""Claims about the published data: the imported sets decide them, whatever the set whose page it is measured."""

import pytest
from fixtures import published, sets

from experiments.published import importing
from plots import tidy
from plots.tables.claims import imported_sets, verdicts
from plots.tables.claims.values import CONTRADICTED, HOLDS, UNKNOWN

# By the reports of the import's guard and by the published tables, read by hand.
EXPECTED = {
    "P01": CONTRADICTED,
    "P02": UNKNOWN,
    "P04": CONTRADICTED,
    "P07": HOLDS,
    "X01": CONTRADICTED,
    "X02": CONTRADICTED,
    "X03": HOLDS,
    "X04": UNKNOWN,
    "X05": CONTRADICTED,
    "X06": CONTRADICTED,
    "X07": CONTRADICTED,
    "X08": CONTRADICTED,
    "X09": CONTRADICTED,
    "X10": HOLDS,
    "X11": CONTRADICTED,
    "X12": CONTRADICTED,
    "X13": CONTRADICTED,
    "X14": CONTRADICTED,
}


def measured(folder):
    """A set with a row that no published claim is about."""
    return sets.result_set([sets.row()], folder=folder / "published" / "k")


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """The claims of a set that was measured, whose folder has no imported set beside it: those of the repository decide."""
    table = verdicts.table(measured(tmp_path_factory.mktemp("results")))
    return table[table["class"] == "published"].set_index("id")


def test_every_published_claim_has_its_verdict(lines):
    assert {name: lines.loc[name, "verdict"] for name in EXPECTED} == EXPECTED
    assert set(lines.index) == {*EXPECTED, "P05"} and lines.loc["P05", "verdict"] == CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "label", "value"),
    [
        ("X01", "ampere 256", 22.3),
        ("X02", "ampere 256", 20.2),
        ("X05", "ada", 931 / 864),
        ("X06", "ada", 1504 / 864),
        ("X06", "volta", 673 / 900),
        ("X10", "", 16.4 / 19.5 / (12.6 / 15.7)),
    ],
)
def test_known_numbers(lines, claim, label, value):
    cells = dict(part.rsplit(": ", 1) for part in lines.loc[claim, "values"].split("; "))
    (found,) = [float(text) for name, text in cells.items() if label in name]
    assert found == pytest.approx(value, rel=0.02)


def test_relative_results_of_the_three_gpus_are_compared_problem_by_problem(lines):
    assert "O07 at 16: " in lines.loc["P05", "values"] and "N01 at 256: " in lines.loc["P05", "values"]


def test_sets_beside_the_one_of_the_page_come_first_and_nothing_imported_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(imported_sets, "RESULTS", tmp_path / "nowhere")
    line = verdicts.table(measured(tmp_path), ["X01"]).iloc[0]
    assert line["verdict"] == UNKNOWN and "import them (scripts/import_published.py)" in line["reason"]
    assert importing.main([str(published.package(tmp_path / "package")), "--results", str(tmp_path)]) == 0
    table = verdicts.table(measured(tmp_path), ["X01", "X03", "X06", "X09", "X11"]).set_index("id")
    assert table.loc["X01", "verdict"] == HOLDS, "the made-up package runs at a fifth of the peak"
    assert table.loc["X03", "verdict"] == CONTRADICTED, "nothing of it is above a peak"
    assert table.loc["X06", "verdict"] == UNKNOWN and "10-to-2560" in table.loc["X06", "reason"]
    assert table.loc["X11", "verdict"] == CONTRADICTED


def test_the_page_of_an_imported_set_says_the_same(tmp_path, lines):
    key = "published-volta"
    found = verdicts.table(tidy.load(imported_sets.RESULTS / "published" / key, key, "published"), ["X06", "P05"])
    assert found["verdict"].tolist() == [lines.loc[one, "verdict"] for one in found["id"]]
    assert found["values"].tolist() == [lines.loc[one, "values"] for one in found["id"]]
