"""Run cards of blocks: of each block of a set, or of each run of rows that no block measured, the card, driver, clocks, sources, points
by outcome, and what was excluded."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pandas as pd

from experiments.driver.run_records import run_records
from plots import style
from plots.report.page import machine_of
from plots.site import cards, counts
from plots.tables import outcomes
from plots.tidy import ResultSet

UNKNOWN = "not recorded"
WHY = "Excluded and why"
REASONS = 3  # of a line of the page; the CSV file has all
Record = dict[str, Any]


def table(results: ResultSet, rows: pd.DataFrame, shown: int | None = None) -> pd.DataFrame:
    """A line a block, in the order of measuring. `shown`: how many reasons of exclusions a line has at most."""
    records: dict[str, list[Record]] = defaultdict(list)
    for one in sorted(run_records(results.folder), key=lambda one: str(one.get("utc", ""))):
        records[str(one["run"])].append(one)
    named = rows["block"].where(rows["block"] != "", rows["run"]) if len(rows) else pd.Series(dtype=str)
    found = []
    for name in sorted(named.unique(), key=_order):
        own = rows[named == name]
        experiments = set(own["experiment"])
        said = records.get(str(own["run"].iloc[0]), [])
        said = [one for one in said if one.get("experiment") in experiments] or said
        found.append(
            {"Block or run": name, **_facts(said), "Experiments": ", ".join(sorted(experiments)), **_ended(own, shown)}
        )
    lines = pd.DataFrame(found)
    # An outcome that no block has needs no column.
    return lines.drop(
        columns=[title for title in map(cards.title, counts.SHOWN) if title in lines and not lines[title].any()]
    )


def _order(name: str) -> tuple[str, int]:
    run, _, number = name.partition(".")
    return run, int(number) if number.isdigit() else 0


def _facts(records: Sequence[Record]) -> dict[str, str]:
    """What the records of a run say, first those before and last those after."""
    before = machine_of(records[0]) if records else {}
    after: Record = next((one["after"] for one in reversed(records) if one.get("after")), {})
    card = str(before.get("device_name") or before.get("machine_key") or UNKNOWN)
    if before.get("uuid_hash"):
        card += f", UUID hash {int(before['uuid_hash']):016x}"
    clocks = [f"{one['clock_mhz']:g} MHz" if one.get("clock_mhz") else UNKNOWN for one in (before, after)]
    return {
        "Measured": str(records[0].get("utc") or UNKNOWN).removesuffix("Z").replace("T", " ") if records else UNKNOWN,
        "Card": card,
        "Driver": str(before.get("driver") or "–"),
        "Clock before, after": UNKNOWN if set(clocks) == {UNKNOWN} else ", ".join(clocks),
        "Sources": _sources(records[0]) if records else UNKNOWN,
    }


def _sources(record: Record) -> str:
    commit = str(record.get("git_commit") or machine_of(record).get("git_commit") or "")
    text = commit[:12] or UNKNOWN
    if record.get("git_dirty"):
        text += ", modified"
    trees = record.get("git_trees")
    if isinstance(trees, dict):
        text += "".join(f", {folder} {str(tree)[:7]}" for folder, tree in sorted(trees.items()) if tree)
    return text


def _ended(rows: pd.DataFrame, shown: int | None) -> dict[str, Any]:
    points = outcomes.points_by_outcome(rows, counts.POINT)
    ended = counts.Counts(points, len(rows))
    why = cards.excluded(ended)
    texts = [
        f"{style.label(str(one['variant']))}: {one['points']} {cards.title(str(one['outcome'])).lower()} ({one['reason']})"
        for one in why.to_dict("records")
    ]
    more = len(texts) - len(texts[:shown])
    texts = texts[:shown] + ([f"{more} more in the CSV file"] if more else [])
    numbers = {cards.title(name): number for name, number in ended.by_outcome().items()}
    return {"Points": len(points), **numbers, WHY: "; ".join(texts) or "nothing"}
