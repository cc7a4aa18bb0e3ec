"""Run cards: of each set the cards, drivers, clocks and commits of its runs, and what was left out."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from plots import noise
from plots.report import page as facts_of
from plots.site.counts import Counts
from plots.tables.best_by_mode import MODES
from plots.tables.outcomes import MEANING
from plots.tidy import ResultSet, passed

REASONS = 12  # of a card; the CSV file has all


def name(results: ResultSet) -> str:
    """What a reader calls the machine."""
    return dict(facts_of.facts(results.runs)).get("Device", results.key)


def _several(values: Iterable[Any], unit: str = "", shown: int = 4) -> str:
    """The different values in order, of many the first and the last; "not recorded" of none."""
    found = sorted({one for one in values if one not in (None, "", 0)}, key=lambda one: (str(type(one)), one))
    texts = [f"{one:g}" if isinstance(one, float) else str(one) for one in found]
    if len(texts) > shown:
        texts = [f"{len(texts)} values from {texts[0]} to {texts[-1]}"]
    return f"{', '.join(texts)} {unit}".strip() if texts else "not recorded"


def _commits(runs: list[dict[str, str]]) -> str:
    """How many, the first and the last by time, and how many runs are of modified trees."""
    commits = list(dict.fromkeys(one["commit"][:7] for one in reversed(runs) if one["commit"]))
    modified = sum("(modified)" in one["commit"] for one in runs)
    said = (
        commits[0]
        if len(commits) == 1
        else f"{len(commits)}, from {commits[0]} to {commits[-1]}"
        if commits
        else "not recorded"
    )
    return said + (f"; {modified} of {len(runs)} runs are of modified sources" if modified else "")


def card(results: ResultSet, counts: Counts) -> list[tuple[str, str]]:
    """(fact, value) of a set."""
    runs = facts_of.run_lines(results.runs, set(results.runs))
    machines = [facts_of.machine_of(one) for one in results.runs.values()]
    days = sorted({one["utc"][:10] for one in runs if one["utc"]})
    cards = {one.get("uuid_hash") for one in machines} - {None, "", 0}
    found = [("Device", name(results)), ("Machine key", results.key)]
    if cards:
        found.append(("Cards of this kind", str(len(cards))))
    for fact, key, unit in (
        ("Driver", "driver", ""),
        ("CUDA", "cuda", ""),
        ("cuFFT", "cufft_version", ""),
        ("Compiler", "compiler", ""),
        ("Clock when the runs began", "clock_mhz", "MHz"),
        ("Maximal clock", "max_clock_mhz", "MHz"),
        ("Clock of the memory", "memory_clock_mhz", "MHz"),
        ("Throttle reasons", "throttle_reasons", ""),
    ):
        values = [one.get(key) for one in machines]
        if any(value not in (None, "", 0) for value in values):
            found.append((fact, _several(values, unit)))
    when = "not recorded" if not days else days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    found += [
        ("Measured", when),
        ("Runs", str(len(runs))),
        ("Presets", _several(one["preset"] for one in runs)),
        ("Commits of the sources", _commits(runs)),
        ("Rows", f"{counts.rows:,}"),
        ("Points", f"{len(counts.points):,}"),
    ]
    found += [(title(outcome), f"{number:,}") for outcome, number in counts.by_outcome().items()]
    dropped = int(results.points["dropped"].sum()) if len(results.points) else 0
    found.append(
        ("Repetitions left out as outliers", f"{dropped:,} (beyond 1.5 interquartile ranges from the quartiles)")
    )
    return found


def sentences(results: ResultSet) -> list[str]:
    """What a reader has to know of the set beside its card: modes, several cards, ties."""
    points = passed(pd.concat([one for one in (results.points, results.with_fields) if len(one)] or [results.points]))
    modes = [f"{one} ({MODES[one]})" if one in MODES else str(one) for one in sorted(points["mode"].unique())]
    found = [f"Modes of timing: {', '.join(modes)}."] if modes else ["No verified time in this set."]
    cards = {facts_of.machine_of(one).get("uuid_hash") for one in results.runs.values()} - {None, "", 0}
    if len(cards) > 1:
        found.append(
            f"The rows are of {len(cards)} cards of this kind. The variants of a problem were not all measured on the same card."
        )
    return [*found, noise.rule(results.points)]


def title(outcome: str) -> str:
    """`Not supported` of `not_supported`."""
    return outcome.replace("_", " ").capitalize()


def excluded(counts: Counts) -> pd.DataFrame:
    """Why points have no time, those of an outcome together with most points first; see Counts.reasons."""
    found = counts.reasons()
    return found.sort_values("points", ascending=False, kind="stable") if len(found) else found


def meanings(counts: Counts) -> list[tuple[str, str]]:
    return [(title(name), MEANING[name]) for name, number in counts.by_outcome().items() if number and name in MEANING]
