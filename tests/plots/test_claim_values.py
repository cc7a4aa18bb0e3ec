"""What rows alone give for a claim: of numbers, of bounds, and where rows are missing."""

import math

import pytest

from plots.tables.claims import values
from plots.tables.claims.values import DIFFERS, HOLDS, UNKNOWN, Found, Value, known, verdict


@pytest.mark.parametrize(
    ("numbers", "test", "said"),
    [
        ([5.0], {"near": 5.3, "tolerance": 0.1}, HOLDS),
        ([4.0], {"near": 5.3, "tolerance": 0.1}, DIFFERS),
        ([1.0, 2.0], {"at_least": 1}, HOLDS),
        ([0.9, 2.0], {"at_least": 1}, DIFFERS),
        ([0.9, 2.0], {"at_least": 1, "judge": "any"}, HOLDS),
        ([0.9, 1.05], {"at_least": 1, "judge": "mean"}, DIFFERS),
        ([0.9, 2.0], {"between": [0, 1]}, DIFFERS),
        ([3.0, 2.0, 2.01], {"decreasing": True}, HOLDS),
        ([3.0, 2.0, 2.1], {"decreasing": True}, DIFFERS),
        ([1.0, 2.0], {"decreasing": False}, HOLDS),
        ([], {"at_least": 1}, UNKNOWN),
    ],
)
def test_verdicts_of_numbers(numbers, test, said):
    values.check(test, "here")
    assert verdict(Found([known(str(i), one) for i, one in enumerate(numbers)]), test) == said


def test_bounds_settle_what_they_can():
    beyond = Found([Value("a", 256, math.inf)])
    assert verdict(beyond, {"near": 384, "tolerance": 0.2}) == UNKNOWN
    assert verdict(beyond, {"near": 64, "tolerance": 0.2}) == DIFFERS
    assert verdict(beyond, {"at_least": 100}) == HOLDS
    assert verdict(Found([Value("a", 0, 16)]), {"between": [16, 256]}) == DIFFERS
    falling = Found([Value("a", 256, math.inf), known("b", 150), Value("c", 0, 16)])
    assert verdict(falling, {"decreasing": True}) == HOLDS


def test_missing_rows_leave_open_what_the_others_do_not_settle():
    def said(number, test):
        return verdict(Found([known("a", number)], ["something"]), test)

    assert said(2.0, {"at_least": 1}) == UNKNOWN and said(0.5, {"at_least": 1}) == DIFFERS
    assert said(2.0, {"at_least": 1, "judge": "any"}) == HOLDS
    assert said(0.5, {"at_least": 1, "judge": "any"}) == UNKNOWN
    assert said(0.5, {"at_least": 1, "judge": "mean"}) == UNKNOWN
