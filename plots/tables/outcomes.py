"""How many points of a set ended how, and why: the part of the rows that figures do not show."""

import re
from collections.abc import Sequence

import pandas as pd

from plots.tidy import PLAIN_POINT, PRESET_RANK, form_order, ordered, size_label

# What is told of a point that was tried several times: trouble first, then a verified time.
PRIORITY = ["incorrect", "failed", "passed", "published", "timeout", "out_of_memory", "not_selected", "not_supported"]
RANK = {name: place for place, name in enumerate(PRIORITY)}
MEANING = {
    "passed": "the output was correct, and the time was taken",
    "incorrect": "the output differs from the reference by more than the error bound; no time was taken",
    "failed": "the program crashed or ended with an error",
    "not_supported": "the variant cannot compute this problem",
    "not_selected": "the predicted time is longer than the preset allows; it was not computed",
    "out_of_memory": "the problem does not fit into memory",
    "timeout": "the computation took longer than the limit",
    "published": "imported from elsewhere and not verified here; figures draw it hollow, tables leave it out",
}
EXAMPLES = 4


def points_by_outcome(rows: pd.DataFrame, point: Sequence[str] = PLAIN_POINT) -> pd.DataFrame:
    """One line per point (columns `point`) with its outcome and reason, over all presets."""
    if rows.empty:
        return rows
    outcome, preset = rows["outcome"].map(RANK).fillna(len(RANK)), -rows["preset"].map(PRESET_RANK).fillna(-1)
    by = ["_outcome", "_preset", "repetition"]
    return ordered(rows, by, _outcome=outcome, _preset=preset).drop_duplicates(point)


def counts(rows: pd.DataFrame) -> pd.DataFrame:
    """Points per variant (lines) and outcome (columns, in order of PRIORITY), plus `points`."""
    points = points_by_outcome(rows)
    if points.empty:
        return pd.DataFrame(columns=["variant", "points"])
    table = points.groupby(["variant", "outcome"]).size().unstack(fill_value=0)
    present = [name for name in ["passed", *PRIORITY] if name in table.columns]
    table = table[list(dict.fromkeys(present))]
    table.insert(0, "points", table.sum(axis=1))
    return table.reset_index()


def reasons(rows: pd.DataFrame, point: Sequence[str] = PLAIN_POINT) -> pd.DataFrame:
    """Why points (columns `point`) have no time: variant, outcome, points, reason (of the first, numbers may differ)
    and examples of the problems, trouble first."""
    columns = ["variant", "outcome", "points", "reason", "problems"]
    points = points_by_outcome(rows, point)
    if points.empty:
        return pd.DataFrame(columns=columns)
    points = points[~points["outcome"].isin(["passed", "published"])]
    points = points.assign(
        _kind=[re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "#", text) for text in points["reason"]],
        _form=points["form"].map(form_order),
        _rank=points["outcome"].map(RANK),
    ).sort_values(["_rank", "variant", "_form", "lefts", "rights", "left_rows", "params"])
    found = []
    for (_, variant, outcome, _), own in points.groupby(["_rank", "variant", "outcome", "_kind"], sort=True):
        found.append((variant, outcome, len(own), own["reason"].iloc[0] or "–", _examples(own)))
    return pd.DataFrame(found, columns=columns)


def _examples(points: pd.DataFrame) -> str:
    """`n-to-m 8-to-8 128x128, …` of the first few problems."""
    names = list(dict.fromkeys(_problem(row) for _, row in points.iterrows()))
    more = f" and {len(names) - EXAMPLES} more" if len(names) > EXAMPLES else ""
    return ", ".join(names[:EXAMPLES]) + more


def _problem(row: pd.Series) -> str:
    shape = [int(row[n]) for n in ("left_rows", "left_cols", "right_rows", "right_cols")]
    window = "" if row["window"] == "full" else f" {row['window']}"
    return f"{row['form']} {row['lefts']}-to-{row['rights']} {size_label(*shape)}{window}"
