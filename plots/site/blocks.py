"""Run cards of blocks: of each block of a set, or of each run of rows that no block measured, the card, driver, clocks, sources, points
by outcome, and what was excluded."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from experiments.driver.run_records import run_records
from plots import style
from plots.report.page import machine_of
from plots.site import cards, counts
from plots.tables import outcomes
from plots.tidy import ResultSet

UNKNOWN = "not recorded"
NAME, WHY = "Block or run", "Excluded and why"
REASONS, LONGEST = 3, 110  # of a line of the page, and letters of a reason; the CSV file has all
Record = dict[str, Any]


class Block(NamedTuple):
    """A block, or a run of rows that no block measured."""

    name: str
    rows: pd.DataFrame
    records: list[Record]
    ended: counts.Counts


def table(blocks: Sequence[Block]) -> pd.DataFrame:
    """A line a block, in the order of measuring, with all that is known."""
    return pd.DataFrame(
        [
            {
                NAME: name,
                "Measured": str(said[0].get("utc") or UNKNOWN) if said else UNKNOWN,
                **_facts(said),
                "Experiments": ", ".join(sorted(set(own["experiment"]))),
                "Points": len(ended.points),
                **{cards.title(outcome): number for outcome, number in ended.by_outcome().items()},
                WHY: "; ".join(_reasons(ended)) or "nothing",
            }
            for name, own, said, ended in blocks
        ]
    )


def shown(blocks: Sequence[Block]) -> pd.DataFrame:
    """A line a block, as short as the page has it: the name of a block begins with the time at which its run began."""
    found = []
    for name, own, said, ended in blocks:
        numbers = {cards.title(outcome).lower(): number for outcome, number in ended.by_outcome().items()}
        passed = numbers.pop("passed")
        counted = ", ".join(f"{number} {outcome}" for outcome, number in numbers.items() if number)
        reasons = [one if len(one) <= LONGEST else f"{one[:LONGEST]} …" for one in _reasons(ended)]
        more = len(reasons) - REASONS
        why = "; ".join(reasons[:REASONS] + ([f"{more} more in the CSV file"] if more > 0 else []))
        line = {NAME: name, **_facts(said), "Experiments": ", ".join(sorted(set(own["experiment"])))}
        found.append(
            {**line, "Points": len(ended.points), "Passed": passed, WHY: f"{counted}. {why}" if counted else "nothing"}
        )
    return pd.DataFrame(found)


def of_set(results: ResultSet, rows: pd.DataFrame) -> list[Block]:
    """The blocks of a set, of which `rows` are all rows, in the order of measuring."""
    found = []
    records: dict[str, list[Record]] = defaultdict(list)
    for one in sorted(run_records(results.folder), key=lambda one: str(one.get("utc", ""))):
        records[str(one["run"])].append(one)
    named = rows["block"].where(rows["block"] != "", rows["run"]) if len(rows) else pd.Series(dtype=str)
    for name in sorted(named.unique(), key=_order):
        own = rows[named == name]
        said = records.get(str(own["run"].iloc[0]), [])
        said = [one for one in said if one.get("experiment") in set(own["experiment"])] or said
        found.append(
            Block(str(name), own, said, counts.Counts(outcomes.points_by_outcome(own, counts.POINT), len(own)))
        )
    return found


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
    clocks = [f"{one['clock_mhz']:g}" if one.get("clock_mhz") else UNKNOWN for one in (before, after)]
    return {
        "Card": card,
        "Driver": str(before.get("driver") or "–"),
        "Clock before, after [MHz]": UNKNOWN if set(clocks) == {UNKNOWN} else ", ".join(clocks),
        "Sources": _sources(records[0]) if records else UNKNOWN,
    }


def _sources(record: Record) -> str:
    commit = str(record.get("git_commit") or machine_of(record).get("git_commit") or "")
    text = commit[:9] or UNKNOWN
    if record.get("git_dirty"):
        text += ", modified"
    trees = record.get("git_trees")
    if isinstance(trees, dict):
        text += "".join(f", {folder} {str(tree)[:7]}" for folder, tree in sorted(trees.items()) if tree)
    return text


def _reasons(ended: counts.Counts) -> list[str]:
    return [
        f"{style.label(str(one['variant']))}: {one['points']} {cards.title(str(one['outcome'])).lower()} ({one['reason']})"
        for one in cards.excluded(ended).to_dict("records")
    ]
