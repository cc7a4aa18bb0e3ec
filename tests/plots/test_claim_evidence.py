"""What a source itself has for its claims decides before our rows do, and verdicts have six words, everywhere."""

import csv
import re
import subprocess

import pytest
from fixtures import sets

from plots import tidy
from plots.tables.claims import evidence, values, verdicts
from plots.tables.claims.evidence import Evidence, Part
from plots.tables.claims.values import CONTRADICTED, DIFFERS, HOLDS, OTHERWISE, UNKNOWN, VERDICTS, Found, known
from xcorr.errors import UserError
from xcorr.paths import RESULTS, ROOT

WORDS = {
    *("holds", "differs here", "contradicted by the source's own data", "differs by implementation"),
    *("not comparable", "not measured"),
}
OLD = r"not measurable here|SERIES_WORDS"
# Of the review of 9139eab: what fails on the authors' own published rows.
FAILING = set("O04 O05 O16 O17 O19 O20 M02 M04 M09 M10 M11 N07 C03 C04".split())


def own(*numbers, decides=True):
    """Published rows of as many GPUs, of which the text is about the first."""
    names = ("first", "second", "third")
    return tuple(
        Part(name, Found([known("16", number)]), decides and name == "first") for name, number in zip(names, numbers)
    )


def program(number, key="card"):
    return Part("program", Found([known("16", number)]), machine_key=key)


# --- the rule ---


def test_rows_that_the_text_is_about_contradict_it():
    test = {"near": 11.8, "tolerance": 0.15}
    assert Evidence(own(47.1, 49.0)).against(test) == ["first"]
    assert not Evidence(own(11.0, 49.0)).against(test), "the second GPU does not decide"
    assert not Evidence(own(47.1, decides=False)).against(test)
    assert not Evidence(own(47.1)).against({}), "a claim without a test"


def test_the_range_of_the_sources_gpus_counts_where_they_bear_its_number_out():
    test = {"near": 6, "tolerance": 0.15}
    assert Evidence(own(6.0, 6.09, 8.34)).widened(test) == {"between": pytest.approx([5.1, 8.34])}
    assert Evidence(own(6.0, 6.09, 8.34)).widened({**test, "judge": "any"})["judge"] == "any"
    assert Evidence(own(6.0, 6.09, 9.1)).widened(test) == test, "beyond a factor of 1.5"
    assert Evidence(own(1.74, 1.18, 1.12)).widened({"near": 1.75, "tolerance": 0.15})["near"] == 1.75
    assert Evidence(own(6.9)).widened(test) == test, "of one GPU there is no range"
    several = Evidence(tuple(Part(one.name, Found(one.found.values * 2), one.decides) for one in own(6.0, 8.34)))
    assert several.widened(test) == test, "a claim on several numbers"
    assert Evidence(own(8.0, 6.0)).widened(test) == test, "the rows that decide contradict the number"
    assert Evidence(own(6.0, 8.0)).widened({"at_least": 6}) == {"at_least": 6}


def test_limits_are_stated_in_words():
    assert values.stated({"near": 5.3, "tolerance": 0.15}) == "4.5 to 6.09"
    assert values.stated({"between": [5.1, 8.34], "judge": "mean"}) == "5.1 to 8.34, in the mean"
    assert values.stated({"at_least": 1.01, "judge": "any"}) == "at least 1.01, somewhere"
    assert values.stated({"at_most": 2}) == "at most 2" and values.stated({}) == ""
    assert values.stated({"is": "W S"}) == "W S" and values.stated({"decreasing": True}).startswith("falls")


DATA = """
[[claims]]
id = "Z1"
section = "s"
statement = "s"
paper = "2"
compute = { name = "ratio", of = "a", to = "b", form = "one-to-one", counts = "1-to-1", sizes = [16] }
test = { near = 2, tolerance = 0.1 }

[series]
a = ["alpha"]
b = ["beta"]
"""
OWN = """
[rows.mine]
name = "GPU"
origin = "o"
decides = true
[rows.theirs]
name = "card"
origin = "o"
machine_key = "KEY"
[claims.Z1]
mine = 2.1
theirs = { "16" = 2.0 }
"""


def decided(folder, ratio, data=OWN, claims=DATA):
    """The line of claim Z1 for a set whose ratio is this; None: it has no rows."""
    folder.mkdir(exist_ok=True)
    (folder / "claims.toml").write_text(claims)
    (folder / "evidence.toml").write_text(data.replace("KEY", sets.KEY))
    rows = [sets.row(variant=name, compute_us=us) for name, us in (("alpha", ratio), ("beta", 1.0)) if ratio]
    frame = sets.frame(rows or [sets.row()])
    verdicts.catalogue.cache_clear()
    results = tidy.ResultSet(sets.KEY, "local", ROOT, frame, tidy.tidy(frame))
    return verdicts.table(results, ["Z1"], folder).iloc[0]


@pytest.mark.parametrize(
    "ratio, mine, theirs, said",
    [
        (2.0, 2.1, 2.0, HOLDS),
        (2.0, 2.1, 9.0, HOLDS),
        (3.0, 2.1, 9.0, DIFFERS),
        (3.0, 2.1, 2.0, OTHERWISE),
        (None, 2.1, 2.0, UNKNOWN),
        (2.0, 3.0, 2.0, CONTRADICTED),
        (3.0, 3.0, 2.0, CONTRADICTED),
        (None, 3.0, 2.0, CONTRADICTED),
    ],
)
def test_the_source_decides_first_and_its_program_only_what_ours_does_not(tmp_path, ratio, mine, theirs, said):
    text = OWN.replace("mine = 2.1", f"mine = {mine}").replace("= 2.0 }", f"= {theirs} }}")
    line = decided(tmp_path / "data", ratio, text)
    assert line["verdict"] == said
    assert (line["own"], line["program"]) == (f"GPU: {mine:.3g}", f"16: {theirs:.3g}")
    assert line["tolerance"] == "1.8 to 2.2" and line["here"] == (f"16: {ratio:.3g}" if ratio else "")


def test_a_program_on_another_machine_is_not_shown_and_decides_nothing(tmp_path):
    line = decided(tmp_path / "data", 3.0, OWN.replace("KEY", "another"))
    assert (line["verdict"], line["program"]) == (DIFFERS, "")


def test_what_no_number_decides_is_said_beside_the_numbers(tmp_path):
    said = 'paper = "2"\nverdict = "not comparable"\nreason = "other data"\n'
    line = decided(tmp_path / "data", 2.0, claims=DATA.replace('paper = "2"\n', said))
    assert (line["verdict"], line["reason"], line["here"]) == ("not comparable", "other data", "16: 2")


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("[claims.Z1]", "[claims.Z2]", "claim Z2: unknown"),
        ("[claims.Z1]", "[claim.Z1]", "did you mean claims?"),
        ("decides = true", "decide = true", "did you mean decides?"),
        ('origin = "o"\ndecides', "decides", "origin is missing"),
        ("mine = 2.1", "nine = 2.1", "did you mean mine?"),
        ("mine = 2.1", "mine = true", "is no number"),
        ("mine = 2.1", "mine = [1, nan]", "is no number"),
    ],
)
def test_mistakes_in_the_data_are_one_line(tmp_path, old, new, told):
    assert old in OWN
    with pytest.raises(UserError) as error:
        decided(tmp_path / "data", 2.0, OWN.replace(old, new))
    assert told in str(error.value) and "\n" not in str(error.value) and "evidence.toml" in str(error.value)


def test_bounds_words_and_trends_are_read():
    found = evidence._part({"name": "n"}, {"a": ">256", "b": "<16", "c": "W S", "d": [2, 1]}, "here").found.values
    assert [one.text for one in found] == [">256", "<16", "W S", "2", "1"]
    assert [one.group for one in found] == ["", "", "", "d", "d"]


# --- the data of the sources ---


def test_what_the_review_found_failing_on_the_authors_own_rows_is_contradicted_with_the_numbers():
    known_claims = verdicts.catalogue()
    against = {one for one, proof in known_claims.evidence.items() if proof.against(known_claims.claims[one].test)}
    assert against >= FAILING
    for one in against:
        claim = known_claims.claims[one]
        assert re.search(r"\d", claim.note), f"{one}: a note says the numbers"
        assert not claim.said


def test_every_machine_that_evidence_names_is_one_of_ours():
    keys = {part.machine_key for proof in verdicts.catalogue().evidence.values() for part in proof.parts}
    assert keys - {""} <= {path.name for path in (RESULTS / "published").iterdir()}


# --- one vocabulary ---


def test_there_are_six_words():
    assert set(VERDICTS) == WORDS and len(VERDICTS) == 6
    assert {one.said for one in verdicts.catalogue().claims.values()} <= {"", *values.SAID} <= {"", *WORDS}


def test_tables_of_published_sets_have_no_other_word():
    for path in sorted((RESULTS / "published").glob("*/tables/claims.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            said = {line["verdict"] for line in csv.DictReader(file)}
        assert said <= WORDS, path


def test_no_text_has_a_word_of_an_earlier_vocabulary():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = [ROOT / name for name in names.split("\0") if name.endswith((".py", ".toml", ".md", ".j2", ".csv"))]
    texts = [path for path in texts if path.name != "test_claim_evidence.py" and path.exists()]
    # Diaries and records of reviews quote what was.
    texts = [path for path in texts if not {"notebook", "evidence"} & set(path.parts)]
    found = [str(path) for path in texts if re.search(OLD, path.read_text(encoding="utf-8"))]
    assert not found
