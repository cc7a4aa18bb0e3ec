"""What `publish` refuses of rows that belong to their set: those whose sources nobody can look up, and problems whose rivals
did not meet in one run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from experiments.driver.columns import RIVALS, Row
from experiments.driver.sources import Sources
from experiments.driver.store import rivals_of
from xcorr.errors import UserError, warn

AGAIN = "measure again with python3 -m experiments.driver.run"


def sources_of_sets() -> Sources:
    """The repository that rows are published in; a line says where there is none to ask."""
    sources = Sources()
    if not sources.known:
        warn(f"{sources.root}: not a git repository; whether it has the rows' commits and experiments is not checked")
    return sources


def check_experiment(folder: Path, name: str, sources: Sources) -> None:
    """UserError where the repository lacks the experiment of the rows in `folder`."""
    if sources.known and not sources.has_experiment(name):
        raise UserError(
            f"{folder}: rows of experiment {name}, whose file the repository lacks; add {name}.toml to git "
            "or move this folder away"
        )


def check_sources(folder: Path, runs: Mapping[str, dict[str, Any]], used: Collection[str], sources: Sources) -> None:
    """UserError where the sources of a run of `used`, measured here, are modified, unknown or not the commit's."""
    for run in sorted(used):
        fault = _fault(runs[run], sources)
        if fault:
            raise UserError(f"{folder}: rows of run {run} {fault}")


def _fault(record: dict[str, Any], sources: Sources) -> str:
    """What is wrong with the sources that a record names, and the way out; "" where nothing is."""
    commit, trees = record.get("git_commit"), record.get("git_trees")
    if not isinstance(commit, str) or not commit:
        return f"are of no commit; {AGAIN} --force in a git clone"
    if record.get("git_dirty") is not False:
        return f"are of modified sources of commit {commit[:12]}; commit the changes, then {AGAIN} --force"
    if not isinstance(trees, dict):
        return f"do not name the trees of their sources; {AGAIN} --force"
    if not sources.known:
        return ""
    if not sources.has_commit(commit):
        return f"are of commit {commit[:12]}, which this repository does not know; fetch it, or {AGAIN} --force"
    if trees != sources.trees(commit):
        return f"name other trees of their sources than commit {commit[:12]} has; {AGAIN} --force"
    return ""


def _cards(runs: Mapping[str, dict[str, Any]], used: Collection[str]) -> int:
    """How many devices the records of runs name."""
    facts = (runs.get(run, {}).get("before") or runs.get(run, {}).get("machine") or {} for run in used)
    return len({one["uuid_hash"] for one in facts if one.get("uuid_hash")})


def check_blocks(
    folder: Path, rows: Collection[Row], runs: Mapping[str, dict[str, Any]], local: Collection[str]
) -> None:
    """UserError where the rivals of a problem, some of them from a run of `local`, are of several runs.

    Old published sets have such problems; they may stay beside rows of other problems.
    """
    met: dict[tuple[str, ...], set[str]] = defaultdict(set)
    preset: dict[str, str] = {}
    for row in rows:
        if row["outcome"] == "passed":
            met[rivals_of(row)].add(row["run"])
            preset[row["run"]] = row["preset"]
    mixed = {problem: of for problem, of in met.items() if len(of) > 1 and of & set(local)}
    if not mixed:
        return
    problem, of = min(mixed.items())
    cell = dict(zip(RIVALS, problem[1:]))
    size = f"{cell['left_rows']}x{cell['left_cols']}"
    cards = _cards(runs, of)
    raise UserError(
        f"{folder}: the rivals of {len(mixed)} problems did not meet in one run, such as those of {cell['form']} {size} "
        f"{cell['lefts']}:{cell['rights']}: runs {', '.join(sorted(of))}{f' on {cards} GPUs' if cards > 1 else ''}; {AGAIN} "
        f"--preset {preset[max(of)]} --experiments {folder.name} --sizes {size} --force"
    )
