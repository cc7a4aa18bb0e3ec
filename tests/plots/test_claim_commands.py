"""docs/artifact.md says of every claim which command measures it."""

import re

import pytest
from tree import ROOT

from experiments import folders
from plots import catalogue
from plots.report import claim_commands, pages
from plots.tables import table as tables
from xcorr.errors import UserError


def lines() -> list[list[str]]:
    """Cells of each line of the table below its head."""
    return [line.strip("| \n").split(" | ") for line in claim_commands.table().splitlines()[2:]]


def spelt(text: str) -> list[str]:
    """The ids of a cell, those of its ranges one by one."""
    found = []
    for one in text.split(", "):
        first, _, last = one.partition(" to ")
        if last:
            found += [f"{first[0]}{number:02}" for number in range(int(first[1:]), int(last[1:]) + 1)]
        else:
            found.append(first)
    return found


def test_the_page_is_that_of_the_claims(capsys):
    assert pages.main(["--check", "--page", "docs/artifact.md"]) == 0, (
        "python3 -m plots.report.pages --page docs/artifact.md"
    )


def test_every_claim_stands_once_with_what_it_names():
    measured = {name: line for line in lines() for name in spelt(line[1])}
    assert sorted(measured) == sorted(name for line in lines() for name in spelt(line[1]))
    claims = [(path.parent.name, one) for path, raw in folders.parts("claims") for one in raw["claims"]]
    assert sorted(measured) == sorted(one["id"] for _, one in claims)
    for source, claim in claims:
        line = measured[claim["id"]]
        assert line[0] == f"[{source}](../experiments/{source}/README.md)"
        named = [claim_commands.command_of(name) for name in claim.get("experiments", [])]
        assert line[2] == ", ".join(named) if named else line[2].startswith("nothing: ")


def test_the_commands_exist_and_the_figures_and_tables_too():
    known = {*catalogue.entries(), *(one.name for one in tables.found()), "claims"}
    for line in lines():
        for name in re.findall(r"`python3 -m experiments (\w+)`", line[2]):
            assert name in claim_commands.programs().values()
        assert set(re.findall(r"`(\w+)`", line[3])) <= known


def test_what_nothing_measures_is_an_error():
    with pytest.raises(UserError, match="experiment none-such: nothing measures it; add experiments/"):
        claim_commands.command_of("none-such")


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        (["O01", "O02", "O03", "P01"], "O01 to O03, P01"),
        (["O01", "O02"], "O01, O02"),
        (["O01", "O03", "T-1-to-1"], "O01, O03, T-1-to-1"),
        (["O09", "O10", "O11"], "O09 to O11"),
    ],
)
def test_ids_that_follow_one_another_are_a_range(ids, text):
    assert claim_commands.ranges(ids) == text and spelt(text) == ids


def test_the_page_is_linked_from_where_readers_start():
    assert "(docs/artifact.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(artifact.md)" in (ROOT / "docs/README.md").read_text(encoding="utf-8")
