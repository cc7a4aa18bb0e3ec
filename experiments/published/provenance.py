"""Rows that `publish` refuses although they belong to their set: of unknown code, or with rivals of several runs."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from experiments.driver.columns import RIVALS, Row
from experiments.driver.repository import Repository
from experiments.driver.store import rivals_of
from xcorr.errors import UserError, warn

AGAIN = "measure again with python3 -m experiments.driver.run"


def repository_of_sets() -> Repository:
    """The repository of the project. A warning says where it is no git repository."""
    repository = Repository()
    if not repository.known:
        unknown = "whether it has the rows' commits and experiments is not checked"
        warn(f"{repository.root}: not a git repository; {unknown}")
    return repository


def check_experiment(folder: Path, name: str, repository: Repository) -> None:
    """UserError where the repository lacks the experiment whose rows are in `folder`."""
    if repository.known and not repository.has_experiment(name):
        way_out = f"add {name}.toml to git or move this folder away"
        raise UserError(f"{folder}: rows of experiment {name}, whose file the repository lacks; {way_out}")


def check_sources(
    folder: Path, runs: Mapping[str, dict[str, Any]], used: Collection[str], repository: Repository
) -> None:
    """UserError where the code of a run of `used`, of this machine, is modified, unknown or not that of its commit."""
    for run in sorted(used):
        fault = _fault(runs[run], repository)
        if fault:
            raise UserError(f"{folder}: rows of run {run} {fault}")


def _fault(record: dict[str, Any], repository: Repository) -> str:
    """What is wrong with the code that a record names, and the way out; "" where nothing is."""
    commit, trees = record.get("git_commit"), record.get("git_trees")
    if not isinstance(commit, str) or not commit:
        return f"are of no commit; {AGAIN} --force in a git clone"
    if record.get("git_dirty") is not False:
        return f"are of modified sources of commit {commit[:12]}; commit the changes, then {AGAIN} --force"
    if not isinstance(trees, dict):
        return f"do not name the trees of their sources; {AGAIN} --force"
    if not repository.known:
        return ""
    if not repository.has_commit(commit):
        return f"are of commit {commit[:12]}, which this repository does not know; fetch it, or {AGAIN} --force"
    if trees != repository.trees(commit):
        return f"name other trees of their sources than commit {commit[:12]} has; {AGAIN} --force"
    return ""


def _cards(runs: Mapping[str, dict[str, Any]], used: Collection[str]) -> int:
    """The number of devices that the records of the runs name."""
    facts = (runs.get(run, {}).get("before") or runs.get(run, {}).get("machine") or {} for run in used)
    return len({one["uuid_hash"] for one in facts if one.get("uuid_hash")})


def check_blocks(
    folder: Path, rows: Collection[Row], runs: Mapping[str, dict[str, Any]], local: Collection[str]
) -> None:
    """UserError where the rivals of a problem are of several runs, of which at least one is in `local`."""
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
