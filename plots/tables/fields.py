"""Table of problems with fields: the time of each variant beside that of the plain surface of the same matrices."""

import pandas as pd

from plots import tidy
from plots.tables.table import FIELDS, FORM, MATRICES, SIZE, TIME, VARIANT, WINDOW, Grid, Page, Table, duration, known

ABOUT = (
    "Each line is a variant with its fastest parameters. The plain surface has the products of the same matrices with the same "
    "window, by the same variant, and no field; its time is given where it was measured."
)
PLACE = [*tidy.PROBLEM, *tidy.CONDITION]
COLUMNS = [*tidy.PROBLEM, "fields", *tidy.CONDITION, "variant", "params", "time_us", "plain_us"]
SHOWN = (
    *(FORM, MATRICES, SIZE, WINDOW, FIELDS, VARIANT, TIME),
    ("Plain surface", "plain_us", duration),
    ("Times the plain", "time_us plain_us", lambda us, plain: known("{:.2f}")(us / plain)),
)


def table(results: tidy.ResultSet) -> pd.DataFrame:
    """One line per problem with fields and variant, see COLUMNS; `plain_us` is NaN where it was not measured. Times in
    microseconds."""
    points = results.with_fields
    if len(points):  # of one array alone there is a table of its own (autocorrelation)
        points = points[points["fields"] != "same=yes"]
    if points.empty:
        return pd.DataFrame(columns=COLUMNS)
    best, plain = (tidy.best_parameters(tidy.passed(frame)) for frame in (points, results.feeding(TABLE.name)))
    times = plain.set_index(["variant", *PLACE])["compute_us"]
    keys = pd.MultiIndex.from_frame(best[["variant", *PLACE]])
    found = best.assign(time_us=best["compute_us"], plain_us=times.reindex(keys).to_numpy())
    return tidy.ordered(found, ["form", "side", "fields", "time_us"])[COLUMNS].reset_index(drop=True)


def page(results: tidy.ResultSet) -> Page | None:
    lines = table(results)
    if lines.empty:
        return None
    return Page([ABOUT, Grid(lines, SHOWN, file="fields")])


TABLE = Table(
    "fields",
    "Fields of a problem",
    page,
    "./scripts/reproduce.sh --preset quick --experiments fields",
    "This set has no row of a problem with fields. The experiment `fields` measures them: `{command}`.",
)
