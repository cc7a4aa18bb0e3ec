"""Measures the units of a sweep, stores every finished point, and continues after a crash of a process."""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from experiments.driver.bench import SEED, Bench, Ended, Record, Starting, is_number, verdict_of
from experiments.driver.columns import COLUMNS, FLOATS, INTEGERS, RECORDED, Key, Row
from experiments.driver.points import Unit, in_processes
from experiments.driver.predict import SLOW_S, Predictor
from experiments.driver.schema import Preset
from experiments.driver.store import Chunk, text_of, warn, write_json
from xcorr.errors import UserError

REFRESH_S = 5.0
BAR = "{percentage:3.0f}%|{bar:20}| {elapsed} passed, about {remaining} left{postfix}"
Job = tuple[int, str]  # a point of a group: the index of its unit, and its parameters
Group = Sequence[Unit]
Verdicts = dict[str, tuple[str, str]]  # outcome and reason of points of a unit by parameters
# Reasons of points that passed and have fewer samples than others.
TIMED_ONCE = "timed once: a launch is predicted to take longer than the preset's limit"
ONE_PROCESS = "timed by one process: others of this problem are more than 1.5 times as fast"
SLOW = f"one sample a process: a launch is predicted to take longer than {SLOW_S:g} s"
OF_PLANS = ("plan_us", "plan_low_us", "plan_high_us", "plans")  # of the first process of a block: one plan is no sample
UNMEASURED = {"repetition": 0, "iterations": 0}  # cells of the only row of a point without times


def legible(cells: Mapping[str, Any]) -> dict[str, Any]:
    """`cells` of a record without numeric cells that readers of rows would reject."""
    numbers = {*FLOATS, *INTEGERS}
    kept = {name: value for name, value in cells.items() if name not in numbers or is_number(value)}
    return {name: value for name, value in kept.items() if name not in INTEGERS or value == int(value)}


@dataclass
class Progress:
    """(outcome, reason) of the points of this sweep by (experiment, resume key)."""

    verdicts: dict[tuple[str, Key], tuple[str, str]] = field(default_factory=dict)
    measured: int = 0

    def counts(self) -> Counter[str]:
        return Counter(outcome for outcome, _ in self.verdicts.values())

    def bad(self) -> list[tuple[Key, str, str]]:
        """(key, outcome, reason) of the points that make the command fail."""
        found = [(key, *verdict) for (_, key), verdict in self.verdicts.items()]
        return sorted(one for one in found if one[1] in ("incorrect", "failed"))


@dataclass
class Sweep:
    """A run of the driver. `unselected`: (experiment, resume key) of points with rows of the outcome not_selected."""

    bench: Bench
    folder: Path
    run: str
    record: dict[str, Any]
    preset_name: str
    preset: Preset
    predictor: Predictor
    progress: Progress = field(default_factory=Progress)
    experiments: dict[str, dict[str, Any]] = field(default_factory=dict)
    unselected: set[tuple[str, Key]] = field(default_factory=set)
    deadline: float | None = (
        None  # time.monotonic() by which the last group should end; one group is measured whatever it says
    )
    _chunks: int = 0
    # Points of the group in work that are timed once, by one process or by each, and those that are measured briefly.
    _long: set[Job] = field(default_factory=set)
    _slow: set[Job] = field(default_factory=set)
    _brief: set[Job] = field(default_factory=set)
    _block: dict[str, Any] = field(default_factory=dict)  # cells of the block and process that measure now
    _repetitions: Counter[tuple[str, Key]] = field(default_factory=Counter)  # stored by this sweep

    def settled(self, units: Sequence[Unit]) -> bool:
        """Whether no point of `units` was selected before and none is selected now."""
        return not [unit for unit in units if not self._settled(unit)]

    def place(self, unit: Unit, params: str) -> tuple[str, Key]:
        """(experiment, resume key) of a point."""
        return unit.experiment, unit.key(params, self.preset_name)

    def _settled(self, unit: Unit) -> bool:
        """As settled. The points of a settled unit are noted with the current reason and need no further row."""
        reasons = {self.place(unit, one): self.predictor.why_not(unit, one) for one in unit.params}
        if not self.unselected.issuperset(reasons) or not all(reasons.values()):
            return False
        self.progress.verdicts |= {place: ("not_selected", reason) for place, reason in reasons.items()}
        return True

    def go(self, units: Sequence[Unit], expected: Mapping[str, int]) -> int:
        """Measures every unit. `expected`: number of points of each whole experiment, for its record. Returns how many
        groups of units were left because of the deadline."""
        return self.go_groups(in_processes(units, self.preset.problems_a_process), expected)

    def go_groups(self, groups: Sequence[Group], expected: Mapping[str, int], *, blocks: bool = False) -> int:
        """As go, each group in a process. With `blocks` a group is a block, named `RUN.NUMBER`: preset.processes processes measure
        it, one after the other, and each measures all of its points, in an order of its own."""
        costs = [self.predictor.series_s(group) if blocks else self._cost(group) for group in groups]
        done, refreshed = 0.0, time.monotonic()
        self.record["predicted_s"], begin = round(sum(costs), 1), refreshed
        interval_s = 0.2 if sys.stderr.isatty() else 20  # a log file wants few lines
        with tqdm(total=sum(costs), smoothing=0.05, mininterval=interval_s, bar_format=BAR) as bar:
            for i, group in enumerate(groups):
                late = self.deadline is not None and time.monotonic() + costs[i] > self.deadline
                if late and self.progress.measured:
                    self.record["took_s"] = round(time.monotonic() - begin, 1)
                    return len(groups) - i
                if not blocks and time.monotonic() - refreshed > REFRESH_S:
                    costs[i:] = [self._cost(later) for later in groups[i:]]
                    bar.total, refreshed = done + sum(costs[i:]), time.monotonic()
                name = group[0].name if len(group) == 1 else f"{group[0].variant.id} ({len(group)} problems)"
                name = f"block {i + 1} of {len(groups)}" if blocks else name
                bar.set_postfix_str(name, refresh=sys.stderr.isatty())
                left = [unit for unit in group if not self._settled(unit)]
                for unit in left:
                    if unit.experiment not in self.experiments:
                        self.experiments[unit.experiment] = {"points": expected[unit.experiment]}
                        self.save_record(unit.experiment)
                if left:
                    self._measure(left, f"{self.run}.{i}" if blocks else "")
                done += costs[i]
                bar.update(costs[i])
            bar.set_postfix_str("")
        self.record["took_s"] = round(time.monotonic() - begin, 1)
        return 0

    def finish(self, after: dict[str, Any]) -> None:
        """Completes the run records."""
        self.record["after"] = after
        self.record["finished_utc"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for experiment in self.experiments:
            self.save_record(experiment)

    def save_record(self, experiment: str) -> None:
        """Writes `runs/<run-id>.json` of an experiment."""
        path = self.folder / experiment / "runs" / f"{self.run}.json"
        write_json(path, {**self.record, "experiment": experiment, **self.experiments[experiment]})

    def _cost(self, group: Group) -> float:
        selected = [[one for one in unit.params if not self.predictor.why_not(unit, one)] for unit in group]
        shared_by = max(1, sum(map(bool, selected)))
        return sum(self.predictor.unit_s(unit, some, shared_by) for unit, some in zip(group, selected)) + 1e-3

    def _measure(self, group: Group, block: str) -> None:
        """Writes rows of the points that are not selected, and measures the others in processes. `block`: its name, or ""."""
        chunks: list[Chunk] = []
        todo: list[Job] = []
        for place, unit in enumerate(group):
            chunks.append(Chunk(self.folder / unit.experiment, self.run, self._chunks))
            self._chunks += 1
            todo += [(place, one) for one in self._select(chunks[-1], unit)]
        predictor = self.predictor
        self._long = {job for job in todo if predictor.is_long(group[job[0]], job[1])}
        self._slow = {job for job in todo if predictor.is_slow(group[job[0]], job[1])}
        self._brief = {job for job in todo if block and predictor.is_brief(group[job[0]], job[1])}
        for process in range(self.preset.processes if block else 1):
            self._block = {"block": block, "process": process} if block else {}
            try:
                self._process_all(chunks, group, self._shuffled(group, todo) if block else list(todo))
            finally:
                for chunk in chunks:
                    chunk.close()
            # One process is enough for a long or a drawn point; one that did not pass has its verdict.
            todo = [
                job for job in todo if self._verdict(group, job) == "passed" and self._fewer(group, job) in ("", SLOW)
            ]
        self._block = {}

    def _shuffled(self, group: Group, jobs: Iterable[Job]) -> list[Job]:
        """The points of a block in the order of a process: shuffled by the seed, the block and the process. The points of a
        problem stay together, and of these the points with the same reference, which the process keeps until the next one."""
        dice = random.Random(f"{SEED}/{self._block}")
        problems: dict[Any, dict[Any, list[Job]]] = {}
        for job in jobs:
            unit = group[job[0]]
            problems.setdefault(unit.problem, {}).setdefault(unit.reference, []).append(job)

        def shuffled(some: Iterable[Any]) -> list[Any]:
            listed = list(some)
            return dice.sample(listed, len(listed))

        by_reference = (rivals for problem in shuffled(problems.values()) for rivals in shuffled(problem.values()))
        return [job for rivals in by_reference for job in shuffled(rivals)]

    def _verdict(self, group: Group, job: Job) -> str:
        return self.progress.verdicts.get(self.place(group[job[0]], job[1]), ("", ""))[0]

    def _fewer(self, group: Group, job: Job) -> str:
        """Why a point has fewer samples than others, or ""."""
        if job in self._long:
            return TIMED_ONCE
        if self._block and job[1] in group[job[0]].drawn:
            return ONE_PROCESS
        return SLOW if job in self._slow else ""

    def _process_all(self, chunks: Sequence[Chunk], group: Group, todo: list[Job]) -> None:
        """Measures points in processes until each has a verdict."""
        crashed: set[Job] = set()
        alone: Job | None = None
        apart = False  # one unit per process, after the program refused a request
        while todo:
            batch = [job for job in todo if not apart or job[0] == todo[0][0]]
            batch = [alone] if alone else batch
            before = len(todo)
            flight, ended = self._process(chunks, group, batch, todo)
            alone = None
            if ended.device_lost and len(todo) < before:
                continue  # the point that lost the device is stored as failed; a new process measures the others
            if flight not in todo:
                if ended.reason and not ended.timed_out:
                    name = group[batch[0][0] if batch else 0].name
                    warn(f"{name}: {ended.reason}, after its points were stored")
                continue
            unit, params = group[flight[0]], flight[1]
            lost: Verdicts = {}
            if ended.timed_out:
                limit = self.predictor.timeout_s(unit, params)
                lost = {params: ("timeout", f"no result after {limit:.3g} s, killed")}
            elif ended.user_error and len({place for place, _ in batch}) > 1:
                apart = True
            elif ended.user_error:
                lost = {one: ("failed", ended.reason) for _, one in batch}
            elif flight in crashed:
                lost = {params: ("failed", (ended.reason or "ended without a result") + ", twice")}
            else:
                crashed.add(flight)
                alone = flight
            self._save(chunks[flight[0]], unit, lost)
            todo = [job for job in todo if job[0] != flight[0] or job[1] not in lost]

    def _how(self, job: Job) -> dict[str, Any]:
        """What of the preset is different for a point. In a block a point is verified with all inputs by the first process alone."""
        update: dict[str, Any] = {"repetitions": 1} if job in self._long | self._slow else {}
        if job in self._brief or self._block.get("process"):
            update["brief"] = True
        return update

    def _select(self, chunk: Chunk, unit: Unit) -> list[str]:
        """The parameters to measure. The others get rows with the outcome not_selected."""
        reasons = {one: self.predictor.why_not(unit, one) for one in unit.params}
        skipped = {one: ("not_selected", reason) for one, reason in reasons.items() if reason}
        for one in list(skipped):
            place = self.place(unit, one)
            if place in self.unselected:  # it has such a row
                self.progress.verdicts[place] = skipped.pop(one)
        self._save(chunk, unit, skipped)
        return [one for one in unit.params if not reasons[one]]

    def _process(
        self, chunks: Sequence[Chunk], group: Group, batch: list[Job], todo: list[Job]
    ) -> tuple[Job | None, Ended]:
        """Runs one process and removes finished points from `todo`.

        Returns how the process ended, and the point in flight at its end: the first unfinished point where none had
        started, None where none was left.
        """
        asked = list(batch)
        started: Job | None = None
        ended = Ended("")
        timeout_s = self.predictor.timeout_s
        place = asked[0][0]
        how = [self._how(job) for job in asked]
        if not any(how) and not self._block and all(job[0] == place for job in asked):
            params = [one for _, one in asked]
            events = self.bench.measure(group[place], params, self.preset, partial(timeout_s, group[place]))
        else:
            points = [(group[i], one) for i, one in asked]
            events = self.bench.measure_points(points, self.preset, lambda number: timeout_s(*points[number]), how)
        for event in events:
            if isinstance(event, Ended):
                ended = event
                continue
            job = (place, event.params) if event.number is None else asked[event.number]
            if isinstance(event, Starting):
                started = job
            else:
                self._store_record(chunks[job[0]], group, event, job, todo)
        batch[:] = [job for job in batch if job in todo]
        return started if started in batch else next(iter(batch), None), ended

    def _store_record(self, chunk: Chunk, group: Group, record: Record, job: Job, todo: list[Job]) -> None:
        unit, fields = group[job[0]], record.fields
        params = fields.get("params", "")
        listed, measured = unit.variant.hash_of(unit.problem.fields.result), fields.get("source_hash")
        asked = job in todo and params == job[1]
        if not asked or measured != listed:
            wrong = f"lists source {listed} and measured {measured}"
            wrong = wrong if asked else f"answered for params {params!r}, which were not asked for"
            raise UserError(f"{unit.name}: xcorr-bench {wrong}; build again")
        outcome, reason = verdict_of(fields)
        found = {name: fields[name] for name in RECORDED if name in fields}
        if self._block.get("process"):
            found = {name: value for name, value in found.items() if name not in OF_PLANS}
        cells = {**legible(found), "outcome": outcome, "reason": reason}
        repetitions: list[dict[str, Any]] = [UNMEASURED]
        if outcome == "passed":
            repetitions = [{**legible(one), "repetition": i} for i, one in enumerate(fields["repetitions"])]
            cells["reason"] = self._fewer(group, job)
        self._save(chunk, unit, {params: (outcome, reason)}, [{**cells, **one} for one in repetitions])
        todo.remove(job)

    def _save(
        self, chunk: Chunk, unit: Unit, verdicts: Verdicts, repetitions: Sequence[dict[str, Any]] = (UNMEASURED,)
    ) -> None:
        """Writes rows of points, one for each of `repetitions`."""
        rows: list[Row] = []
        for params, (outcome, reason) in verdicts.items():
            if outcome != "passed":
                chunk.forget(params)  # what other processes of the block timed does not count
            cells = {**self._common(unit, params), **self._block, "outcome": outcome, "reason": reason}
            first = self._repetitions[self.place(unit, params)]
            texts = [{**cells, **one, "repetition": first + one["repetition"]} for one in repetitions]
            if outcome == "passed":
                self._repetitions[self.place(unit, params)] += len(texts)
            rows += [{name: text_of(row.get(name)) for name in COLUMNS} for row in texts]
        if rows:
            (chunk.note if {row["outcome"] for row in rows} == {"not_supported"} else chunk.add)(rows)
        self.predictor.learn(rows)
        for params, verdict in verdicts.items():
            self.progress.verdicts[self.place(unit, params)] = verdict
            self.progress.measured += verdict[0] != "not_selected" and not self._block.get("process")

    def _common(self, unit: Unit, params: str) -> dict[str, Any]:
        """The cells that are known without a measurement."""
        key = str(self.record["before"]["machine_key"])
        run = {"run": self.run, "experiment": unit.experiment, "machine_key": key, "seed": SEED}
        work = {"fmas": unit.problem.fmas, "bytes": unit.problem.bytes(8 if unit.precision == "fp64" else 4)}
        variant = {"family": unit.variant.family, "backend": unit.variant.backend}
        return {**run, **work, **variant, **unit.cells(params, self.preset_name)}
