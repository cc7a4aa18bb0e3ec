"""The columns of a row, which of them make its key, and what a cell may hold."""

from __future__ import annotations

from xcorr.fields import NAMES as FIELDS
from xcorr.problem import GEOMETRY

COLUMNS = (
    "run experiment machine_key input variant family backend precision form left_rows left_cols "
    "right_rows right_cols lefts rights window params mode preset repetition iterations outcome "
    "reason compute_us forward_us hadamard_us inverse_us plan_us allocate_us upload_us download_us "
    "energy_uj max_error error_bound exact_error exact_bound rel_l2_error argmax_agrees fmas bytes "
    "seed source_hash clear_us launch_us overlap_checked rel_l2_bound "
    "boundary score masks result same views build_us normalised_error compile_us load_us registers"
).split()
# Absent from sets that are older than they are: read as empty. An empty field of a problem has its default.
ADDED = (
    *("clear_us", "launch_us", "overlap_checked", "rel_l2_bound", "build_us", *FIELDS, "normalised_error"),
    *("compile_us", "load_us", "registers"),
)
KEY = (
    "variant params precision form left_rows left_cols right_rows right_cols lefts rights window "
    "boundary score masks result same views mode input preset source_hash"
).split()
# Rows that are equal in these are of rivals: variants and points that compute one problem in one way.
RIVALS = (*GEOMETRY, *FIELDS, "mode", "input")
INTEGERS = ("left_rows left_cols right_rows right_cols lefts rights repetition iterations fmas bytes seed").split()
FLOATS = (
    "compute_us forward_us hadamard_us inverse_us plan_us allocate_us upload_us download_us "
    "energy_uj max_error error_bound exact_error exact_bound rel_l2_error clear_us launch_us "
    "rel_l2_bound build_us normalised_error compile_us load_us registers"
).split()
NEEDED = {*GEOMETRY, "repetition"}  # integers without which a row is no row
OUTCOMES = ("passed incorrect not_supported not_selected out_of_memory timeout failed published").split()

Row = dict[str, str]
Key = tuple[str, ...]
