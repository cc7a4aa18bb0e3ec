"""Which families were not asked in a cell: a winner is the fastest of those that were.

A family belongs to a cell when it has verified times of the cell's form, mode, input and precision somewhere in the
set. It was asked there if one of these holds:

- it has a verified time;
- of each of its variants that belong there a row says why it has none: the program cannot compute it, it does not
  fit into memory, it ran into the time limit, or its launch was predicted to take longer than the cell's fastest;
- it computes the definition, a transform won the cell, and at the next smaller size of the same form and counts a
  transform was already faster than it: its work grows with s^4, a transform's with s^2 log s.
"""

import re
from collections import defaultdict

import pandas as pd

from plots.tidy import CONDITION, PROBLEM
from xcorr.native.variants import is_transform

REASONS = ("not_supported", "out_of_memory", "timeout")
PREDICTED = re.compile(r"predicted ([\d.e+-]+) s per launch")
KIND = ["form", *CONDITION]
CELL = [*PROBLEM, *CONDITION]
SHAPE = ["left_rows", "left_cols", "right_rows", "right_cols"]
LINE = [name for name in CELL if name not in SHAPE]
RULE = (
    "The set has no time of at least one family that computes this form, and nothing rules that family out (a row such as "
    "“not supported”, or a smaller size at which a transform is already faster than that family)"
)
Cell = tuple[object, ...]


def missing(points: pd.DataFrame, rows: pd.DataFrame | None) -> dict[Cell, list[str]]:
    """Families that were not asked, sorted, by cell (values of CELL); cells that lack none are left out. `points`:
    verified lines of a tidy frame with `time_us`, by which they are compared; `rows`: all rows of the set, None
    where only times are known."""
    if points.empty:
        return {}
    points = points.assign(_transform=points["variant"].map(is_transform)).sort_values(
        ["time_us", "variant", "params"], kind="stable"
    )
    kinds = {kind: own.groupby("family")["variant"].agg(set).to_dict() for kind, own in points.groupby(KIND)}
    definitions = set(points["family"]) - set(points.loc[points["_transform"], "family"])
    fastest = points.drop_duplicates(CELL).set_index(CELL)[["time_us", "_transform"]]
    answered = _answered(rows, fastest["time_us"]) if rows is not None else {}
    overtaken = _overtaken(points)
    found = {}
    for place, there in points.groupby(CELL)["family"].agg(set).items():
        at = dict(zip(CELL, place))
        told = answered.get(place, set())
        members = kinds[tuple(at[name] for name in KIND)]
        absent = {family for family, variants in members.items() if family not in there and variants - told}
        if fastest.loc[place, "_transform"]:
            absent -= {family for family in absent & definitions if _settled(overtaken, family, at)}
        if absent:
            found[place] = sorted(absent)
    return found


def _answered(rows: pd.DataFrame, fastest: pd.Series) -> dict[Cell, set[str]]:
    """Variants with a row that says why there is no time, by cell."""
    columns = [*CELL, "variant", "outcome", "reason"]
    named = rows.loc[rows["outcome"].isin([*REASONS, "not_selected"]), columns].drop_duplicates()
    found: dict[Cell, set[str]] = defaultdict(set)
    for *place, variant, outcome, reason in named.itertuples(index=False, name=None):
        key = tuple(place)
        if outcome != "not_selected" or (key in fastest.index and predicted_us(reason) > fastest[key]):
            found[key].add(variant)
    return found


def predicted_us(reason: str) -> float:
    """The predicted time of a launch that a row gives as its reason, in microseconds; 0 where it gives none."""
    match = PREDICTED.search(reason)
    return 1e6 * float(match[1]) if match else 0.0


def _overtaken(points: pd.DataFrame) -> dict[Cell, list[tuple[tuple[int, ...], bool]]]:
    """By family and line (LINE) the shapes at which it and a transform have times, and whether the transform is faster."""
    transforms = points[points["_transform"]].drop_duplicates(CELL).set_index(CELL)["time_us"]
    found: dict[Cell, list[tuple[tuple[int, ...], bool]]] = defaultdict(list)
    fastest = points.drop_duplicates([*CELL, "family"])[[*CELL, "family", "time_us"]]
    for values in fastest.itertuples(index=False, name=None):
        *place, family, us = values
        if tuple(place) in transforms.index:
            at = dict(zip(CELL, place))
            shape = tuple(int(at[name]) for name in SHAPE)
            found[(family, *(at[name] for name in LINE))].append((shape, bool(transforms[tuple(place)] < us)))
    return found


def _settled(overtaken: dict[Cell, list[tuple[tuple[int, ...], bool]]], family: str, at: dict[str, object]) -> bool:
    """Whether a transform was faster than the family at the next smaller size of the cell's line."""
    shape = tuple(int(str(at[name])) for name in SHAPE)
    known = overtaken.get((family, *(at[name] for name in LINE)), [])
    smaller = [one for one in known if one[0] != shape and all(a <= b for a, b in zip(one[0], shape))]
    return bool(smaller) and max(smaller)[1]
