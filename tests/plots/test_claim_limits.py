"""The limit of a claim's test follows from the number of its source: the rule of experiments/README.md, A claim, for every claim."""

import re

import pytest

from plots.tables.claims import verdicts

FACTOR = 1.25  # how far a limit may be from the number
TOLERANCE = 0.25  # largest of `near`
SAME = 0.01  # how far the number of `near` may be from that of the source, which rounds
WIDER = "wider test"  # what the note of an exception says, with the reason
NUMBER = r"(\d+(?:\.\d+)?(?:e-?\d+)?)"
WORDS = r"(?:(?:slightly )?(?:more|larger) than|at least|at most|about|above) "
STATED = re.compile(rf"(?:{WORDS})?{NUMBER}(?: to {NUMBER})?")


def stated(claim):
    """The number of the source, twice, or the ends of its range; None where its text has a word or a ratio of counts. What a claim on
    counters compares is divided by the source's numbers."""
    if claim.compute.get("name") == "counters":
        return 1.0, 1.0
    found = STATED.match(claim.paper)
    if found is None or claim.paper[found.end() :].startswith(":"):
        return None
    return float(found[1]), float(found[2] or found[1])


def too_wide(claim):
    """Whether a limit of the claim's test is further from the number of its source than FACTOR, without a note that says why."""
    numbers, test = stated(claim), claim.test
    if numbers is None or WIDER in claim.note:
        return False
    low, high = numbers
    if "near" in test:
        apart = abs(test["near"] - low) > SAME * low or low != high
        return apart or test["tolerance"] > TOLERANCE
    ends = {"between": (low, high), "at_least": (low,), "at_most": (high,)}
    for name, wanted in ends.items():
        limits = test.get(name, [])
        for limit, number in zip(limits if isinstance(limits, list) else [limits], wanted):
            if not number / FACTOR <= limit <= number * FACTOR:
                return True
    return False


@pytest.mark.parametrize("name", [one.id for one in verdicts.catalogue().claims.values() if one.compute])
def test_the_limit_of_a_claim_is_that_of_its_number(name):
    claim = verdicts.catalogue().claims[name]
    assert not too_wide(claim), f"{name}: {claim.paper} and {claim.test}; see experiments/README.md, A claim"


@pytest.mark.parametrize(
    ("paper", "test", "wide"),
    [
        ("2.76", {"at_least": 1.01}, True),
        ("2.76", {"at_least": 2.3}, False),
        ("2.76", {"between": [1, 5]}, True),
        ("2.76", {"between": [2.3, 5]}, True),
        ("2.76", {"near": 2.76, "tolerance": 0.25}, False),
        ("2.76", {"near": 2.76, "tolerance": 0.3}, True),
        ("2.76", {"near": 2.0, "tolerance": 0.1}, True),
        ("about 10", {"at_most": 13}, True),
        ("more than 30", {"at_least": 3}, True),
        ("more than 1 somewhere", {"at_least": 1.01, "judge": "any"}, False),
        ("128 to 256", {"between": [128, 256]}, False),
        ("3.6 to 6.9; P2 0.64", {"at_least": 1}, True),
        ("2; 2", {"at_least": 1.5}, True),
        ("0", {"between": [0, 0]}, False),
        ("0", {"between": [0, 1]}, True),
        ("2.39e-6", {"between": [2.39e-7, 2.39e-5]}, True),
        ("16:12", {"is": "16:12"}, False),
        ("decreasing", {"decreasing": True}, False),
        ("little", {"at_most": 1.1}, False),
    ],
)
def test_the_rule_finds_what_is_too_wide(paper, test, wide):
    claim = verdicts.Claim("Z1", "s", "s", "machine", paper, compute={"name": "ratio"}, test=test)
    assert too_wide(claim) == wide
    said = verdicts.Claim(
        "Z1", "s", "s", "machine", paper, compute={"name": "ratio"}, test=test, note="wider test, since"
    )
    assert not too_wide(said)


def test_exceptions_are_few_and_give_a_reason():
    found = {one.id: one.note for one in verdicts.catalogue().claims.values() if WIDER in one.note}
    assert set(found) == {"D02", "D03", "D04", "W01"}
    assert all(":" in note.split(WIDER)[1] for note in found.values())
