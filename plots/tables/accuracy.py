"""Errors of every variant: over the rows of a set, and on data with an offset, which those rows do not have. A variant
with several ways to add up its sums (parameter `sums`) has a line for each.

The second part is `accuracy_offset.csv` beside the rows: what `conformance --errors` wrote on the machine of the set, a
line per variant, precision, kind of input and problem. A set without that file says that it was not measured.
"""

import math
from pathlib import Path

import pandas as pd

from plots import style
from plots.tables.table import Column, Grid, Page, Table, known
from plots.tidy import PROBLEM, ResultSet, passed
from xcorr.errors import UserError

FILE = "accuracy_offset.csv"
FILE_COLUMNS = "variant precision input problem params max_relative_error rel_l2_error argmax_agrees".split()
NUMBER = known("{:.2g}")
PEAKS = {"true": "agrees", "false": "elsewhere"}
WRITER = "conformance --errors"
OFFSET = "offset"  # 1e4 + noise in [-1, 1)
LINE = ["variant", "precision", "sums"]
COUNTS = ["points", "rows", "rows_peak_elsewhere"]
OFFSET_TEXTS = ["offset_problem", "offset_params", "offset_argmax_agrees"]
OFFSET_ERRORS = ["offset_max_relative_error", "offset_rel_l2_error"]
COLUMNS = [*LINE, *COUNTS, "rel_l2_error", "bound_share", "l2_bound_share", *OFFSET_ERRORS, *OFFSET_TEXTS]
ABOUT = (
    "Relative L2 error: norm of the error divided by the norm of the float64 reference. Share of the bound: error of the "
    "worst output divided by the largest error that still counts as correct. Both are the largest of all verified rows of "
    "the variant, on the inputs of the experiments. Peak elsewhere: rows in which at least one pair has its largest output "
    "at another shift than the reference."
)
ABOUT_OFFSET = (
    "Largest error: error of one output divided by the product of the norms of both matrices. It is the largest of a few "
    "points of the variant's parameters and of all problems of the run."
)
ABSENT = f"This set has no errors on data with an offset. {WRITER} writes them on the machine, into {FILE}."


def load(folder: Path | None) -> pd.DataFrame | None:
    """The lines of FILE in the folder of a set, `argmax_agrees` as bool; None without the file. UserError when it
    is not what WRITER writes."""
    path = None if folder is None else folder / FILE
    if path is None or not path.exists():
        return None
    again = f"write it again with {WRITER}"
    try:
        found = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read ({error}); {again}") from error
    if list(found.columns) != FILE_COLUMNS:
        raise UserError(f"{path}: columns are not {','.join(FILE_COLUMNS)}; {again}")
    for name in ("max_relative_error", "rel_l2_error"):
        numbers = pd.to_numeric(found[name], errors="coerce")
        bad = numbers.isna() & ~found[name].str.lower().isin(["nan", "-nan"])
        if bad.any():
            raise UserError(f"{path}: {name} = {found.loc[bad.idxmax(), name]!r} is no number; {again}")
        found[name] = numbers
    found["argmax_agrees"] = found["argmax_agrees"].str.lower() == "true"
    return found


def table(results: ResultSet) -> pd.DataFrame:
    """One line per variant and precision, see COLUMNS; NaN and empty text where something was not measured."""
    rows = _with_sums(passed(results.rows))
    lines = {}
    for key, own in rows.groupby(LINE, sort=True):
        peaks = own["argmax_agrees"] == "false"
        # Sets that are older than this column have no such bound.
        l2_bound = pd.to_numeric(own["rel_l2_bound"]) if "rel_l2_bound" in own else math.nan
        lines[key] = {
            "points": len(own.drop_duplicates([*PROBLEM, "params", "mode", "input"])),
            "rows": len(own),
            "rows_peak_elsewhere": int(peaks.sum()),
            "rel_l2_error": own["rel_l2_error"].max(),
            "bound_share": (own["max_error"] / own["error_bound"]).max(),
            "l2_bound_share": (own["rel_l2_error"] / l2_bound).max(),
        }
    measured = load(results.folder)
    if measured is not None:
        for key, own in _with_sums(measured[measured["input"] == OFFSET]).groupby(LINE, sort=True):
            errors = own["max_relative_error"]  # NaN is worse than any number
            worst = own.loc[errors.isna().idxmax() if errors.isna().any() else errors.idxmax()]
            lines[key] = lines.get(key, {}) | {
                "offset_max_relative_error": worst["max_relative_error"],
                "offset_rel_l2_error": own["rel_l2_error"].max(skipna=False),
                "offset_problem": worst["problem"],
                "offset_params": worst["params"],
                "offset_argmax_agrees": str(bool(own["argmax_agrees"].all())).lower(),
            }
    named = [dict(zip(LINE, key)) | line for key, line in sorted(lines.items())]
    found = pd.DataFrame(named, columns=COLUMNS)
    found[OFFSET_TEXTS] = found[OFFSET_TEXTS].astype(object).fillna("")
    found[COUNTS] = found[COUNTS].fillna(0).astype(int)
    return found


def _with_sums(lines: pd.DataFrame) -> pd.DataFrame:
    """With a column for the value of the parameter `sums`, empty where a point has none."""
    return lines.assign(sums=lines["params"].str.extract(r"(?:^|;)sums=([^;]*)", expand=False).fillna(""))


def _label(variant: str, precision: str, sums: str) -> str:
    return style.label(variant, precision) + (f", sums {sums}" if sums else "")


def columns(found: pd.DataFrame, has_offset: bool) -> list[Column]:
    """What a reader sees; without the columns of the offset where that was not measured."""
    shown: list[Column] = [
        ("Variant", " ".join(LINE), _label),
        ("Points", "points"),
        ("Rows", "rows"),
        ("Peak elsewhere (rows)", "rows_peak_elsewhere"),
        ("Relative L2 error", "rel_l2_error", NUMBER),
        ("Share of the bound", "bound_share", NUMBER),
    ]
    if found["l2_bound_share"].notna().any():
        shown.append(("Share of the L2 bound", "l2_bound_share", NUMBER))
    offset: list[Column] = [
        ("Offset: largest error", "offset_max_relative_error offset_problem", _measured),
        ("Offset: relative L2 error", "offset_rel_l2_error offset_problem", _measured),
        ("Offset: peak", "offset_argmax_agrees", lambda said: PEAKS.get(said, "not measured")),
        ("Offset: worst at", "offset_problem offset_params", lambda *place: ", ".join(filter(None, place))),
    ]
    return [*shown, *(offset if has_offset else [])]


def by_input(measured: pd.DataFrame) -> pd.DataFrame:
    """The largest error of each variant (lines) on each kind of input (columns), in the order of the file."""
    inputs = list(dict.fromkeys(measured["input"]))
    lines = []
    for line, own in _with_sums(measured).groupby(LINE, sort=True):
        largest = {name: of["max_relative_error"].max(skipna=False) for name, of in own.groupby("input")}
        cells = {name: _measured(largest.get(name, math.nan), name in largest) for name in inputs}
        lines.append({"Variant": _label(*line), **cells})
    return pd.DataFrame(lines, columns=["Variant", *inputs])


def _measured(value: float, there: object) -> str:
    return ("not finite" if math.isnan(value) else f"{value:.2g}") if there else "not measured"


def summary(found: pd.DataFrame) -> str:
    """How many rows disagree about the peak, in a sentence."""
    wrong = int(found["rows_peak_elsewhere"].sum())
    variants = int((found["rows_peak_elsewhere"] > 0).sum())
    if not wrong:
        return f"In all {found['rows'].sum()} verified rows every pair has its largest output at the shift of the reference."
    named = f"{variants} variant{'s' if variants > 1 else ''}"
    return (
        f"In {wrong} of {found['rows'].sum()} verified rows, of {named}, at least one pair has its largest output at another "
        "shift than the reference. Two outputs of the reference are then closer to each other than the rounding error. "
        "Every output is within its error bound."
    )


def page(results: ResultSet) -> Page | None:
    found, measured = table(results), load(results.folder)
    if found.empty:
        return None
    has_offset = measured is not None
    offset = f"Offset: the inputs are 1e4 plus noise in [-1, 1). {ABOUT_OFFSET}" if has_offset else ABSENT
    notes = [summary(found), ABOUT, offset]
    text: list[str | Grid] = [Grid(found, columns(found, has_offset), "Every variant", file="accuracy", digits=4)]
    if measured is not None:
        by = Grid(by_input(measured), title="Largest error by kind of input", open=False)
        text += ["## By kind of input", ABOUT_OFFSET, by]
    return Page([*notes, *text], notes)


TABLE = Table("accuracy", "Accuracy", page, chapter=80)
