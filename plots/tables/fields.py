"""Table of problems with fields: the time of each variant beside that of the plain surface of the same matrices."""

from __future__ import annotations

import pandas as pd

from plots import style, tidy
from plots.metrics import si_time
from plots.tables.text import csv, markdown

NAME = "fields"
TITLE = "Fields of a problem"
NONE = (
    "This set has no row of a problem with fields. The experiment `fields` measures them: "
    "`./scripts/reproduce.sh --preset quick --experiments fields`."
)
EXPLAINED = (
    "Each line is a variant with its fastest parameters. The plain surface has the products of the same matrices with the same "
    "window, by the same variant, and no field; its time is given where it was measured."
)
PLACE = [*tidy.PROBLEM, *tidy.CONDITION]
COLUMNS = [*tidy.PROBLEM, "fields", *tidy.CONDITION, "variant", "params", "time_us", "plain_us"]


def table(results: tidy.ResultSet) -> pd.DataFrame:
    """One line per problem with fields and variant, see COLUMNS; `plain_us` is NaN where it was not measured. Times in
    microseconds."""
    points = results.with_fields
    if len(points):  # of one array alone there is a table of its own (autocorrelation)
        points = points[points["fields"] != "same=yes"]
    if points.empty:
        return pd.DataFrame(columns=COLUMNS)
    passed = [frame[frame["outcome"] == "passed"] for frame in (points, results.feeding(NAME))]
    best, plain = (tidy.best_parameters(frame) for frame in passed)
    times = plain.set_index(["variant", *PLACE])["compute_us"]
    keys = pd.MultiIndex.from_frame(best[["variant", *PLACE]])
    found = best.assign(time_us=best["compute_us"], plain_us=times.reindex(keys).to_numpy())
    order = [found["form"].map(tidy.form_order), found["side"], found["fields"], found["time_us"]]
    places = sorted(range(len(found)), key=lambda row: tuple(column.iloc[row] for column in order))
    return found.iloc[places][COLUMNS].reset_index(drop=True)


def readable(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines as a reader sees them."""
    sizes = lines[["left_rows", "left_cols", "right_rows", "right_cols"]].astype(int).to_numpy().tolist()
    known = lines["plain_us"].notna()
    return pd.DataFrame(
        {
            "Form": lines["form"],
            "Matrices": [f"{a}-to-{b}" for a, b in zip(lines["lefts"], lines["rights"])],
            "Size": [tidy.size_label(*one) for one in sizes],
            "Window": lines["window"],
            "Fields": [text.replace("/", ", ") for text in lines["fields"]],
            "Variant": [style.label(*one) for one in zip(lines["variant"], lines["precision"])],
            "Time": [si_time(us * 1e-6) for us in lines["time_us"]],
            "Plain surface": [si_time(us * 1e-6) if there else "–" for us, there in zip(lines["plain_us"], known)],
            "Times the plain": [
                f"{us / plain:.2f}" if there else "–"
                for us, plain, there in zip(lines["time_us"], lines["plain_us"], known)
            ],
        }
    )


def files(results: tidy.ResultSet) -> dict[str, str]:
    """The files of the table; where the set has no such rows, one that says so."""
    lines = table(results)
    if lines.empty:
        return {f"{NAME}.md": f"# {TITLE}\n\n{NONE}\n"}
    text = f"# {TITLE}\n\n{EXPLAINED}\n\n{markdown(readable(lines))}"
    return {f"{NAME}.md": text, f"{NAME}.csv": csv(lines)}
