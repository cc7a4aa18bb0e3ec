"""The table of columns and what the program's record says are the same."""

import re

from experiments.driver.columns import FIELDS, KEY, TABLE
from xcorr.paths import ROOT

NO_COLUMNS = {"repetitions", "result_us"}  # the list of repetitions; a phase of the harness that no row has


def test_the_record_of_a_point_has_what_the_table_says_and_nothing_else():
    source = (ROOT / "harness/measure/record.cpp").read_text(encoding="utf-8")
    body = source[source.index("nlohmann::json Point::record()") :]
    loop, point = body.split("nlohmann::json record = {")
    of_repetition = set(re.findall(r'(?:\{|repetition\[)"(\w+)"[,\]]', loop))
    of_point = set(re.findall(r'\{"(\w+)",', point))
    assert of_repetition - NO_COLUMNS == {one.name for one in TABLE if one.source == "repetition"}
    known = {one.name for one in TABLE if one.source == "driver"}
    assert of_point - NO_COLUMNS - known == {one.name for one in TABLE if one.source == "record"}
    assert known - of_point - {"run", "experiment", "preset", "block", "process"} == set(FIELDS), (
        "record[name] of kFieldNames"
    )


def test_every_column_has_a_known_type_and_the_key_no_gap():
    assert {one.type for one in TABLE} == {"text", "int", "float"} and len({one.name for one in TABLE}) == len(TABLE)
    assert sorted(int(one.key) for one in TABLE if one.key != "-") == list(range(1, len(KEY) + 1))
