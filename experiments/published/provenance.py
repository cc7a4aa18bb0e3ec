"""Rows that `publish` refuses although they belong to their set: of unknown code, or with rivals of several runs or blocks."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from experiments.driver.columns import Key, Row
from experiments.driver.repository import Repository
from experiments.driver.schema import SELECT
from experiments.driver.store import key_of, rivals_of
from xcorr.errors import UserError, warn
from xcorr.problem import COLUMNS as PROBLEM
from xcorr.problem import GEOMETRY

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


def newest_blocks(rows: Collection[Row]) -> list[Row]:
    """The rows without those of blocks that a later run measured again."""
    newest: dict[tuple[str, ...], str] = {}
    for row in rows:
        if row["block"]:
            newest[rivals_of(row)[1:]] = max(row["run"], newest.get(rivals_of(row)[1:], ""))
    return [row for row in rows if not row["block"] or row["run"] == newest[rivals_of(row)[1:]]]


def check_blocks(
    folder: Path, rows: Collection[Row], runs: Mapping[str, dict[str, Any]], local: Collection[str]
) -> None:
    """UserError where the rivals of a problem are of several blocks or runs, of which at least one is in `local`, and for a
    block that was interrupted or has another run's name. Where a block measured a problem, rows of no block are not compared."""
    met: dict[tuple[str, ...], set[str]] = defaultdict(set)
    blocks: dict[tuple[str, ...], set[str]] = defaultdict(set)
    preset: dict[str, str] = {}
    for row in rows:
        if row["outcome"] == "passed" and row["preset"] != SELECT:
            met[rivals_of(row)].add(row["run"])
            preset[row["run"]] = row["preset"]
        if row["block"]:
            blocks[rivals_of(row)].add(row["block"])
            if row["block"].rpartition(".")[0] != row["run"]:
                raise UserError(
                    f"{folder}: rows of run {row['run']} are of block {row['block']}, of another run; {AGAIN}"
                )
    for problem, names in blocks.items():
        met[problem] = {name.rpartition(".")[0] for name in names}
    mixed = {problem: of for problem, of in met.items() if len(of) > 1 and of & set(local)}
    if not mixed:
        return
    problem, of = min(mixed.items())
    cards = _cards(runs, of)
    raise UserError(
        f"{folder}: the rivals of {len(mixed)} problems did not meet in one run, such as those of {_text(problem[1:])}: "
        f"runs {', '.join(sorted(of))}{f' on {cards} GPUs' if cards > 1 else ''}; {AGAIN} "
        f"--preset {preset[max(of)]} --experiments {folder.name} --sizes {_text(problem[1:]).split()[1]} --force"
    )


def check_whole(folder: Path, rows: Collection[Row]) -> None:
    """UserError where the rows of all experiments have a problem in several blocks, or points of a block that not all of its
    processes measured."""
    blocks: dict[tuple[str, ...], set[str]] = defaultdict(set)
    processes: dict[str, dict[Key, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        if row["block"]:
            # Modes and inputs of a problem meet too.
            blocks[tuple(row[name] for name in PROBLEM)].add(row["block"])
            if row["outcome"] == "passed" and not row["reason"]:  # with a reason fewer samples are enough
                processes[row["block"]][(row["experiment"], *key_of(row))].add(row["process"])
    for problem, names in blocks.items():
        if len(names) > 1:
            raise UserError(
                f"{folder}: the rivals of {_text(problem)} are of blocks {', '.join(sorted(names))}; {AGAIN} "
                "--preset evaluation, which measures the problem again in one block"
            )
    for block, points in processes.items():
        if len({len(of) for of in points.values()}) > 1:
            raise UserError(
                f"{folder}: block {block} was interrupted; {AGAIN} --preset evaluation, which measures it again"
            )


def _text(problem: tuple[str, ...]) -> str:
    """Form, size and counts of a problem by its first columns."""
    cell = dict(zip(GEOMETRY, problem))
    return f"{cell['form']} {cell['left_rows']}x{cell['left_cols']} {cell['lefts']}:{cell['rights']}"
