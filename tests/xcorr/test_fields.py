"""Fields of a problem: texts, ids, circular windows, work and bytes, and what is refused, as tests/harness/test_fields.cpp has
them for C++. What is refused is read from that file, so that both refuse the same in the same words."""

import re
from pathlib import Path

import pytest

from xcorr.errors import UserError
from xcorr.fields import CENTRING, NAMES, NORMALISED, PLAIN, SCORES, Fields, decimal
from xcorr.problem import COLUMNS, GEOMETRY, Problem

CPP = (Path(__file__).parents[1] / "harness" / "test_fields.cpp").read_text(encoding="utf-8")
GEOMETRIC = "n-to-m/4x6/4x6/2:3/full"
SAME = "n-to-mn/4x6/4x6/3:3/full/same=yes"
READ_BACK = [
    "/boundary=circular",
    "/boundary=circular/score=phase:0.25",
    "/score=zncc:0.3/masks=both",
    "/score=ncc:0.5/masks=left/result=peak",
    "/result=peak:gaussian",
    "/result=peak:upsample=20",
    "/result=peaks:5",
    "/result=above:0.8:1000",
    "/result=above:8mad:1000",
    "/result=above:0.8:1000:16",
    "/result=above:8mad:1073741824:32767",
    "/result=above:-100000:7",
    "/result=sum/views=windows",
    "/score=covariance/views=channels",
]
# What test_fields.cpp refuses of GEOMETRIC: pairs of fields and of words of the refusal.
REFUSED = re.findall(r'\{"(/[^"]*)", "([^"]*)"\}', CPP)
REFUSED_IDS = [
    ("one-to-one/4x6/4x7/1:1/full/boundary=circular", "differ"),
    ("one-to-one/4x6/4x7/1:1/full/same=yes", "one shape"),
    ("one-to-one/4x4/4x4/1:1/valid/boundary=circular/score=phase:0", "no valid window"),
    ("one-to-one/4x4/4x4/1:1/valid/result=peak:upsample=4", "use window full"),
    ("one-to-one/5x8/5x8/1:1/sy:-2..2,sx:-4..4/boundary=circular", "stay within"),
    (GEOMETRIC + "/result=peak:", "use peak:parabola"),
    (GEOMETRIC + "/result=above:1e400:5", "a number was expected"),
    (GEOMETRIC + "/result=above:1e-400:5", "a number was expected"),
    (GEOMETRIC + "/result=above: 1:5", "a number was expected"),
    (GEOMETRIC + "/result=above:1:" + "9" * 60, "a number was expected"),
    (GEOMETRIC + "/result=above:1:1099511627776", "capacity out of range"),
    (GEOMETRIC + "/result=above:1:549755813888", "capacity out of range; use 1 to 1073741824, and a larger threshold"),
    (GEOMETRIC + "/result=above:1:1073741825:4", "capacity out of range"),
    (GEOMETRIC + "/result=above:1:5:0", "distance out of range; use 1 to 32767 pixels"),
    (GEOMETRIC + "/result=above:1:5:32768", "distance out of range"),
    (GEOMETRIC + "/result=above:1:5:-2", "distance out of range"),
    (GEOMETRIC + "/result=above:1:5:", "a number was expected"),
    (GEOMETRIC + "/result=above:1:5:2.5", "a number was expected"),
    (GEOMETRIC + "/result=above:1:5:2:3", "a number was expected"),
    (GEOMETRIC + "/result=above:1::2", "a capacity is missing"),
    (GEOMETRIC + "/result=peaks:1025", "out of range"),
    ("n-to-m/4x6/4x6/2:3", "not understood"),
]


def refusal(name: str) -> str:
    with pytest.raises(UserError) as caught:
        Problem.of_id(name)
    return str(caught.value)


def test_defaults_leave_the_id_and_the_cells_as_they_were() -> None:
    plain = Problem.of_id(GEOMETRIC)
    assert plain.id == GEOMETRIC and plain.fields == PLAIN and plain.is_plain
    assert Problem.of_id(GEOMETRIC + "/score=product/same=no/result=surface") == plain
    assert plain.cells == ("n-to-m", 4, 6, 4, 6, 2, 3, "full", *[""] * len(NAMES)) and len(plain.cells) == len(COLUMNS)
    row = dict(zip(GEOMETRY, plain.cells))
    assert Problem.of_row(row) == plain and Problem.of_cells(*row.values()) == plain


@pytest.mark.parametrize("name", [*(GEOMETRIC + fields for fields in READ_BACK), SAME])
def test_ids_and_rows_read_back(name: str) -> None:
    problem = Problem.of_id(name)
    assert problem.id == name and problem.is_plain == (name == SAME)
    assert Problem.of_row(dict(zip(COLUMNS, map(str, problem.cells)))) == problem
    assert problem.surface.id == re.sub("/result=[^/]*", "", name)


@pytest.mark.parametrize(
    "given, kept",
    [
        ("/score=zncc", "/score=zncc:0.3"),
        ("/score=zncc:0.50", "/score=zncc:0.5"),
        ("/score=zncc:1e-7", "/score=zncc:0.0000001"),
        ("/result=peak:parabola", "/result=peak"),
        ("/result=above:1e5:7", "/result=above:100000:7"),
        ("/result=above:-0:7", "/result=above:0:7"),
        ("/result=above:2:7:1", "/result=above:2:7"),
        ("/result=above:2:7:08", "/result=above:2:7:8"),
        ("/result=above:1.25e-3mad:007", "/result=above:0.00125mad:7"),
        ("/score=phase:0/boundary=circular", "/boundary=circular/score=phase:0"),
    ],
)
def test_one_text_for_each_value(given: str, kept: str) -> None:
    assert Problem.of_id(GEOMETRIC + given).id == GEOMETRIC + kept


@pytest.mark.parametrize(
    "value, text",
    [
        (1e23, "99999999999999991611392"),
        (123456789012345664.0, "123456789012345664"),
        (1e-7, "0.0000001"),
        (-1.5e-9, "-0.0000000015"),
        (1e16, "10000000000000000"),
        (3e15, "3000000000000000"),
        (0.1, "0.1"),
        (-2.0, "-2"),
    ],
)
def test_decimals_are_those_of_cpp(value: float, text: str) -> None:
    assert decimal(value) == text and float(text) == value


def test_the_parts_of_a_text() -> None:
    normalised = Fields(score="zncc:0.5", masks="both", result="peaks:5")
    assert (normalised.score_kind, normalised.min_overlap, normalised.peaks) == ("zncc", 0.5, 5)
    assert normalised.masked_sides == ("left", "right") and normalised.result_kind == "peaks"
    assert Fields(boundary="circular", score="phase:0.25").exponent == 0.25
    assert [Fields(result=f"above:8mad:1000{rest}").distance for rest in ("", ":1", ":9")] == [1, 1, 9]
    assert Fields(result="above:8mad:1000:9").capacity == 1000
    assert Fields(result="above:8mad:1000").capacity == 1000 and Fields(result="peak:gaussian").peaks == 1
    assert PLAIN.given == {} and Fields(masks="left").masked_sides == ("left",) and PLAIN.masked_sides == ()
    assert Fields.of({"score": "ncc", "same": ""}).given == {"score": "ncc:0.3"}


def test_the_refusals_of_cpp_were_found() -> None:
    assert len(REFUSED) >= 24


@pytest.mark.parametrize("name, says", [*((GEOMETRIC + fields, says) for fields, says in REFUSED), *REFUSED_IDS])
def test_nonsense_is_refused_in_one_line(name: str, says: str) -> None:
    said = refusal(name)
    assert says in said and "\n" not in said


def test_scores_centre_and_divide_as_in_cpp() -> None:
    header = (Path(__file__).parents[2] / "harness" / "problem" / "fields.hpp").read_text(encoding="utf-8")
    decided: dict[str, set[str]] = {}
    for cases, value in re.findall(r"((?:\s+case ScoreKind::\w+:)+)\s+return ([\w:]+);", header):
        for score in re.findall(r"ScoreKind::(\w+)", cases):
            decided.setdefault(score, set()).add(value)
    assert list(CENTRING) == list(SCORES)
    assert decided == {
        score: {f"Centring::{CENTRING[score]}", "true" if score in NORMALISED else "false"} for score in SCORES
    }


def test_a_circular_window_is_one_turn_around_zero() -> None:
    odd = Problem.of_id("one-to-one/5x8/5x8/1:1/full/boundary=circular")
    assert odd.shifts == (range(-2, 3), range(-4, 4)) and odd.fmas == 40 * 40
    assert Problem.of_id("one-to-one/5x8/5x8/1:1/sy:-2..0,sx:-4..3/boundary=circular").fmas == 40 * 24
    assert Problem.of_id("one-to-one/5x8/5x8/1:1/valid/boundary=circular").output == (1, 1)


def test_bytes_count_what_is_asked_for() -> None:
    inputs, outputs = (2 + 3) * 24, 6 * 7 * 11

    def moved(fields: str) -> int:
        return Problem.of_id(GEOMETRIC + fields).bytes(4)

    assert moved("") == 4 * (inputs + outputs)
    assert moved("/result=peak") == 4 * inputs + 6 * 32
    assert moved("/result=peaks:3") == 4 * inputs + 6 * 3 * 32
    assert moved("/result=sum") == 4 * inputs + 6 * 8
    assert moved("/result=above:1:10") == 4 * inputs + 16 + 10 * 16
    assert moved("/score=zncc/masks=left") == 4 * (inputs + outputs) + 2 * 24
    assert moved("/score=zncc/masks=both") == 4 * (inputs + outputs) + 5 * 24
    assert Problem.of_id(SAME).bytes(4) == 4 * (3 * 24 + 3 * 77)
    assert Problem.of_id("one-to-one/4x6/4x6/1:1/sy:0..3,sx:-5..5/same=yes").fmas == (4 + 3 + 2 + 1) * 36
