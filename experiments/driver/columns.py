"""The columns of a row, in one table for the driver, the readers of rows and the test of the program's record."""

from typing import NamedTuple

from xcorr.fields import NAMES as FIELDS
from xcorr.problem import GEOMETRY

# In the order of a file of rows. `unit`: times and energy are of one call for the whole problem. `key`: place in the resume key.
# `source`: where the value comes from: the driver before a measurement, the program's record of a point, or each of its repetitions.
# `since`: older sets lack a `later` column. It then reads as empty, and an empty field of a problem means its default.
_TABLE = """
name             type   unit  key  source      since
run              text   -     -    driver      -
experiment       text   -     -    driver      -
machine_key      text   -     -    driver      -
input            text   -     19   driver      -
variant          text   -     1    driver      -
family           text   -     -    driver      -
backend          text   -     -    driver      -
precision        text   -     3    driver      -
form             text   -     4    driver      -
left_rows        int    -     5    driver      -
left_cols        int    -     6    driver      -
right_rows       int    -     7    driver      -
right_cols       int    -     8    driver      -
lefts            int    -     9    driver      -
rights           int    -     10   driver      -
window           text   -     11   driver      -
params           text   -     2    driver      -
mode             text   -     18   driver      -
preset           text   -     20   driver      -
repetition       int    -     -    repetition  -
iterations       int    -     -    repetition  -
outcome          text   -     -    record      -
reason           text   -     -    record      -
compute_us       float  us    -    repetition  -
forward_us       float  us    -    repetition  -
hadamard_us      float  us    -    repetition  -
inverse_us       float  us    -    repetition  -
plan_us          float  us    -    record      -
allocate_us      float  us    -    record      -
upload_us        float  us    -    record      -
download_us      float  us    -    record      -
energy_uj        float  uJ    -    record      -
max_error        float  -     -    record      -
error_bound      float  -     -    record      -
exact_error      float  -     -    record      -
exact_bound      float  -     -    record      -
rel_l2_error     float  -     -    record      -
argmax_agrees    text   -     -    record      -
fmas             int    -     -    driver      -
bytes            int    B     -    driver      -
seed             int    -     -    driver      -
source_hash      text   -     21   driver      -
clear_us         float  us    -    repetition  later
launch_us        float  us    -    record      later
overlap_checked  text   -     -    record      later
rel_l2_bound     float  -     -    record      later
boundary         text   -     12   driver      later
score            text   -     13   driver      later
masks            text   -     14   driver      later
result           text   -     15   driver      later
same             text   -     16   driver      later
views            text   -     17   driver      later
build_us         float  us    -    repetition  later
normalised_error float  -     -    record      later
compile_us       float  us    -    record      later
load_us          float  us    -    record      later
registers        float  -     -    record      later
sm_mhz           float  MHz   -    repetition  later
slow_clock       text   -     -    repetition  later
host_paced       text   -     -    record      later
stopped          text   -     -    record      later
plan_low_us      float  us    -    record      later
plan_high_us     float  us    -    record      later
plans            float  -     -    record      later
block            text   -     -    driver      later
process          int    -     -    driver      later
"""


class Column(NamedTuple):
    """A line of the table; `-` is no value."""

    name: str
    type: str
    unit: str
    key: str
    source: str
    since: str


TABLE = [Column(*line.split()) for line in _TABLE.strip().splitlines()[1:]]
COLUMNS = [one.name for one in TABLE]
ADDED = [one.name for one in TABLE if one.since == "later"]
KEY = [one.name for one in sorted((one for one in TABLE if one.key != "-"), key=lambda one: int(one.key))]
RECORDED = [one.name for one in TABLE if one.source == "record"]
INTEGERS = [one.name for one in TABLE if one.type == "int"]
FLOATS = [one.name for one in TABLE if one.type == "float"]
# Rows that are equal in these columns are of rivals: variants and points for one problem.
RIVALS = (*GEOMETRY, *FIELDS, "mode", "input")
NEEDED = {*GEOMETRY, "repetition"}  # integers without which a row is no row
OUTCOMES = ("passed incorrect not_supported not_selected out_of_memory timeout failed published").split()

Row = dict[str, str]
Key = tuple[str, ...]
