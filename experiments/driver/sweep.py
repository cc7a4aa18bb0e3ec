"""Measures the units of a sweep, stores every finished point, and continues after a crash of a process."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from experiments.driver.bench import SEED, Bench, Ended, Record, Starting, is_number, verdict_of
from experiments.driver.columns import COLUMNS, FLOATS, INTEGERS, RECORDED, Key, Row
from experiments.driver.points import Unit, in_processes
from experiments.driver.predict import Predictor
from experiments.driver.schema import Preset
from experiments.driver.store import Chunk, text_of, warn, write_json
from xcorr.errors import UserError

REFRESH_S = 5.0
BAR = "{percentage:3.0f}%|{bar:20}| {elapsed} passed, about {remaining} left{postfix}"
Job = tuple[int, str]  # a point of a group: the index of its unit, and its parameters
Group = Sequence[Unit]


def legible(cells: Mapping[str, Any]) -> dict[str, Any]:
    """`cells` of a record without numeric cells that readers of rows would reject."""
    return {
        name: value
        for name, value in cells.items()
        if (name not in FLOATS or is_number(value))
        and (name not in INTEGERS or (is_number(value) and value == int(value)))
    }


@dataclass
class Progress:
    """Outcomes of the points of this sweep by (experiment, resume key)."""

    outcomes: dict[tuple[str, Key], str] = field(default_factory=dict)
    reasons: dict[tuple[str, Key], str] = field(default_factory=dict)
    measured: int = 0

    def note(self, experiment: str, key: Key, outcome: str, reason: str) -> None:
        """Stores the outcome of a point."""
        self.outcomes[(experiment, key)] = outcome
        self.reasons[(experiment, key)] = reason

    def counts(self) -> Counter[str]:
        """Number of points by outcome."""
        return Counter(self.outcomes.values())

    def bad(self) -> list[tuple[Key, str, str]]:
        """(key, outcome, reason) of the points that make the command fail."""
        return sorted(
            (key, outcome, self.reasons[(experiment, key)])
            for (experiment, key), outcome in self.outcomes.items()
            if outcome in ("incorrect", "failed")
        )


@dataclass
class Sweep:
    """A run of the driver. `unselected`: (experiment, resume key) of points that an earlier run did not select, by
    their rows."""

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
    _chunks: int = 0

    def settled(self, units: Sequence[Unit]) -> bool:
        """Whether no point of `units` was selected before and none is selected now."""
        return not [unit for unit in units if not self._settled(unit)]

    def _settled(self, unit: Unit) -> bool:
        """As settled. The points of a settled unit are noted with the current reason and need no further row."""
        places = [(unit.experiment, unit.key(one, self.preset_name)) for one in unit.params]
        if not self.unselected.issuperset(places):
            return False
        reasons = [self.predictor.why_not(unit, one) for one in unit.params]
        if not all(reasons):
            return False
        for place, reason in zip(places, reasons):
            self.progress.note(*place, "not_selected", reason)
        return True

    def go(self, units: Sequence[Unit], expected: dict[str, int]) -> None:
        """Measures every unit. `expected`: number of points of each whole experiment, for its record."""
        groups = in_processes(units, self.preset.problems_a_process)
        costs = [self._cost(group) for group in groups]
        done, refreshed = 0.0, time.monotonic()
        bar = tqdm(
            total=sum(costs),
            smoothing=0.05,
            mininterval=0.2 if sys.stderr.isatty() else 20,  # a log file wants few lines
            bar_format=BAR,
        )
        self.record["predicted_s"], begin = round(sum(costs), 1), refreshed
        with bar:
            for i, group in enumerate(groups):
                if time.monotonic() - refreshed > REFRESH_S:
                    costs[i:] = [self._cost(later) for later in groups[i:]]
                    bar.total, refreshed = done + sum(costs[i:]), time.monotonic()
                name = group[0].name if len(group) == 1 else f"{group[0].variant.id} ({len(group)} problems)"
                bar.set_postfix_str(name, refresh=sys.stderr.isatty())
                left = [unit for unit in group if not self._settled(unit)]
                for unit in left:
                    if unit.experiment not in self.experiments:
                        self.experiments[unit.experiment] = {"points": expected[unit.experiment]}
                        self.save_record(unit.experiment)
                if left:
                    self._measure(left)
                done += costs[i]
                bar.update(costs[i])
            bar.set_postfix_str("")
        self.record["took_s"] = round(time.monotonic() - begin, 1)

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

    def _measure(self, group: Group) -> None:
        """Writes rows of the points that are not selected, and measures the others in processes."""
        chunks: list[Chunk] = []
        todo: list[Job] = []
        for place, unit in enumerate(group):
            chunks.append(Chunk(self.folder / unit.experiment, self.run, self._chunks))
            self._chunks += 1
            todo += [(place, one) for one in self._select(chunks[-1], unit)]
        crashed: set[Job] = set()
        alone: Job | None = None
        apart = False  # one unit per process, after the program refused a request
        while todo:
            batch = [alone] if alone else [job for job in todo if not apart or job[0] == todo[0][0]]
            before = len(todo)
            flight, ended = self._process(chunks, group, batch, todo)
            alone = None
            if ended.device_lost and len(todo) < before:
                continue  # the point that lost the device is stored as failed; a new process measures the others
            if flight not in todo:
                if ended.reason and not ended.timed_out:
                    warn(
                        f"{group[batch[0][0]].name if batch else group[0].name}: {ended.reason}, after its points were stored"
                    )
                continue
            unit, params = group[flight[0]], flight[1]
            if ended.timed_out:
                limit = self.predictor.timeout_s(unit, params)
                reason = f"no result after {limit:.3g} s, killed"
                self._save(chunks[flight[0]], unit, {params: ("timeout", reason)})
                todo.remove(flight)
            elif ended.user_error and len({place for place, _ in batch}) > 1:
                apart = True
            elif ended.user_error:
                self._save(chunks[flight[0]], unit, {one: ("failed", ended.reason) for _, one in batch})
                todo = [job for job in todo if job not in batch]
            elif flight in crashed:
                reason = (ended.reason or "ended without a result") + ", twice"
                self._save(chunks[flight[0]], unit, {params: ("failed", reason)})
                todo.remove(flight)
            else:
                crashed.add(flight)
                alone = flight

    def _select(self, chunk: Chunk, unit: Unit) -> list[str]:
        """The parameters to measure. The others get rows with the outcome not_selected."""
        reasons = {one: self.predictor.why_not(unit, one) for one in unit.params}
        skipped = {one: ("not_selected", reasons[one]) for one in unit.params if reasons[one]}
        for one in list(skipped):
            place = (unit.experiment, unit.key(one, self.preset_name))
            if place in self.unselected:  # it has such a row
                self.progress.note(*place, *skipped.pop(one))
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

        def timeout_s(job: Job) -> float:
            return self.predictor.timeout_s(group[job[0]], job[1])

        place = asked[0][0]
        if all(job[0] == place for job in asked):
            params = [one for _, one in asked]
            events = self.bench.measure(group[place], params, self.preset, lambda one: timeout_s((place, one)))
        else:
            points = [(group[i], one) for i, one in asked]
            events = self.bench.measure_points(points, self.preset, lambda number: timeout_s(asked[number]))
        for event in events:
            if isinstance(event, Ended):
                ended = event
                continue
            job = (place, self._params_of(event)) if event.number is None else asked[event.number]
            if isinstance(event, Starting):
                started = job
            else:
                self._store_record(chunks[job[0]], group[job[0]], event, job, todo)
        batch[:] = [job for job in batch if job in todo]
        if started in batch:
            return started, ended
        return (batch[0] if batch else None), ended

    @staticmethod
    def _params_of(event: Starting | Record) -> str:
        return event.params if isinstance(event, Starting) else str(event.fields.get("params", ""))

    def _store_record(self, chunk: Chunk, unit: Unit, record: Record, job: Job, todo: list[Job]) -> None:
        fields = record.fields
        params = fields.get("params", "")
        if job not in todo or params != job[1]:
            raise UserError(
                f"{unit.name}: xcorr-bench answered for params {params!r}, which were not asked for; build again"
            )
        listed = unit.variant.hash_of(unit.problem.fields.result)
        if fields.get("source_hash") != listed:
            raise UserError(
                f"{unit.name}: xcorr-bench lists source {listed} and measured {fields.get('source_hash')}; build again"
            )
        outcome, reason = verdict_of(fields)
        found = {name: fields[name] for name in RECORDED if name in fields}
        cells = {**legible(found), "outcome": outcome, "reason": reason}
        repetitions: list[dict[str, Any]] = [{"repetition": 0, "iterations": 0}]
        if outcome == "passed":
            repetitions = [{**legible(one), "repetition": i} for i, one in enumerate(fields["repetitions"])]
        rows = [{**self._common(unit, params), **cells, **one} for one in repetitions]
        self._write(chunk, unit, params, outcome, reason, rows)
        todo.remove(job)

    def _save(self, chunk: Chunk, unit: Unit, outcomes: dict[str, tuple[str, str]]) -> None:
        """Writes rows of points that no process reported."""
        rows: list[Row] = []
        for params, (outcome, reason) in outcomes.items():
            cells = {"outcome": outcome, "reason": reason, "repetition": 0, "iterations": 0}
            rows += self._texts([{**self._common(unit, params), **cells}])
        if rows:
            chunk.add(rows)
        for params, (outcome, reason) in outcomes.items():
            key = unit.key(params, self.preset_name)
            self.progress.note(unit.experiment, key, outcome, reason)
            self.progress.measured += outcome != "not_selected"

    def _write(self, chunk: Chunk, unit: Unit, params: str, outcome: str, reason: str, rows: list[Any]) -> None:
        texts = self._texts(rows)
        chunk.add(texts)
        self.predictor.learn(texts)
        key = unit.key(params, self.preset_name)
        self.progress.note(unit.experiment, key, outcome, reason)
        self.progress.measured += 1

    def _texts(self, rows: list[dict[str, Any]]) -> list[Row]:
        return [{name: text_of(row.get(name)) for name in COLUMNS} for row in rows]

    def _common(self, unit: Unit, params: str) -> dict[str, Any]:
        """The cells that are known without a measurement."""
        problem = unit.problem
        return {
            "run": self.run,
            "experiment": unit.experiment,
            "machine_key": str(self.record["before"]["machine_key"]),
            "family": unit.variant.family,
            "backend": unit.variant.backend,
            **unit.cells(params, self.preset_name),
            "fmas": problem.fmas,
            "bytes": problem.bytes(8 if unit.precision == "fp64" else 4),
            "seed": SEED,
        }
