"""The presets with two stages: selects the fastest points of each variant, then measures all contenders of a problem in one block."""

import dataclasses
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tabulate import tabulate

from experiments.driver import stages, store
from experiments.driver.bench import Bench
from experiments.driver.best import CELL, Cell, cell_of, named
from experiments.driver.columns import Key, Row
from experiments.driver.points import Unit
from experiments.driver.predict import Predictor
from experiments.driver.schema import SELECT, Experiment, Preset, restriction
from experiments.driver.shown import Shown, groups_of
from experiments.driver.sweep import Progress, Sweep
from xcorr.errors import warn

GROUP_S = 240.0  # predicted seconds of a process of stage select, which takes a second or two to start
Place = tuple[str, Key]


@dataclass
class Evaluation:
    """An evaluation on a machine. `units`: every point that may be measured. `near`: rows of earlier runs on machines of this
    architecture, which serve for predictions. `record`: makes the record of a run from its id and preset. `deadline`: as that
    of a sweep. `since`: the first run whose rows count; "" for all."""

    bench: Bench
    folder: Path
    facts: Mapping[str, Any]
    presets: Mapping[str, Preset]
    name: str
    experiments: Mapping[str, Experiment]
    units: Sequence[Unit]
    shown: Sequence[Shown]
    predictors: Mapping[str, Predictor]  # by preset, SELECT and `name`
    record: Any
    deadline: float | None = None
    since: str = ""
    _said: Any = field(default_factory=lambda: cache(warn))
    _grouped: dict[Unit, stages.Groups] = field(default_factory=dict)  # groups_of the units, which each round asks for

    def __post_init__(self) -> None:
        self.units = [unit for unit in self.units if unit.variant.declares(unit.problem.fields)]
        self.selecting = stages.to_choose_from(stages.one_a_cell(self.units))
        self._selected = {cell_of(unit) for unit in self.selecting}

    def rows(self, preset: str, set_aside: bool = True) -> list[Row]:
        """The rows of a preset that count."""
        rows = store.read_rows(self.folder, self._said, set_aside=set_aside)
        here = {unit.variant.id: unit.variant for unit in self.units}

        def counts(row: Row) -> bool:
            variant = here.get(row["variant"])
            if variant is None or row["preset"] != preset or row["run"] < self.since:
                return False
            return row["source_hash"] == variant.hash_of(row["result"] or stages.SURFACE)

        return [row for row in rows if counts(row)]

    def to_select(self, rows: Sequence[Row], number: int, guess: bool = False) -> list[Unit]:
        """The units with the points that lack samples of a round of stage select: of those that are promising and short enough, in
        the last round of the survivors. With `guess` a point without a time has its predicted one."""
        times = stages.times_of(rows)
        bad = {(tuple(row[name] for name in CELL), row["params"]) for row in rows if row["outcome"] != "passed"}
        predictor, found = self.predictors[SELECT], []
        for unit in self.selecting:
            if unit not in self._grouped:
                self._grouped[unit] = groups_of(unit, self.shown)
            groups, cell = self._grouped[unit], cell_of(unit)
            known = {one: predictor.known_s(unit, one) for one in unit.params}
            left = {one for one in stages.candidates(groups, known) if (cell, one) not in bad}
            predicted = {one: predictor.launch_s(unit, one) for one in left}
            # Earlier rounds will have told of what is a guess now.
            guessed = set() if guess else {one for one in predicted if not predictor.knows(unit, one)}
            wanted = stages.promising(groups, predicted, guessed, predictor.carried(unit, unit.params), known)
            wanted = {one for one in wanted if predicted[one] <= stages.ROUNDS[number].longest_s}
            samples, needed = times.get(cell, {}), 1
            if number == len(stages.ROUNDS) - 1:
                timed = {one: samples.get(one) or [1e6 * predicted[one]] for one in wanted} if guess else samples
                wanted &= stages.survivors([[one for one in group if one in wanted] for group in groups], timed)
                needed = 2
            lacking = {one for one in wanted if not predictor.why_not(unit, one) and len(samples.get(one, ())) < needed}
            if lacking:
                found.append(dataclasses.replace(unit, params=tuple(one for one in unit.params if one in lacking)))
        return found

    def contenders(self, rows: Sequence[Row], guess: bool = False) -> list[Unit]:
        """The units of stage final. With `guess` a point without a time has its predicted one."""
        times: dict[Cell, dict[str, list[float]]] = stages.times_of(rows)
        predictor = self.predictors[self.name]
        if guess:
            for unit in self.selecting:
                own = times.setdefault(cell_of(unit), {})
                lacking = [one for one in unit.params if one not in own]
                lacking = [one for one in lacking if not self.predictors[SELECT].why_not(unit, one)]
                # Guesses from no rows are all alike, and only one of such points is the fastest.
                alike = [one for one in lacking if not predictor.knows(unit, one)][1:]
                for one in set(lacking) - set(alike):
                    own[one] = [1e6 * predictor.launch_s(unit, one)]
        return stages.contenders(self.units, self.shown, times, predictor, self._contends)

    def _contends(self, unit: Unit, params: str) -> bool:
        """Whether a point contends whatever its time: the experiment names it, or stage select leaves its problem out."""
        fixed = restriction(self.experiments[unit.experiment], self.name).points.get(unit.variant.id, [])
        return cell_of(unit) not in self._selected or named(params, fixed)

    def blocks(self, chosen: Sequence[Unit], rows: Sequence[Row]) -> list[tuple[Unit, ...]]:
        """The blocks of the problems that are not complete."""
        places: dict[Place, list[Row]] = defaultdict(list)
        for row in rows:
            places[row["experiment"], store.key_of(row)].append(row)
        preset = self.presets[self.name]
        left = [
            units
            for units in stages.problems_of(chosen)
            if not stages.is_complete(units, self.name, preset.processes, places)
        ]
        return stages.packed(left, self.predictors[self.name].series_s, float(preset.block_s or 0))

    def _groups(self, units: Sequence[Unit]) -> list[tuple[Unit, ...]]:
        """The groups of stage select: whole problems, since a process computes references once."""
        return stages.packed(stages.problems_of(units), self.predictors[SELECT].series_s, GROUP_S)

    def estimate(self) -> str:
        """What is left to measure, and how long it will take, for each stage."""
        rows = self.rows(SELECT, set_aside=False)
        last = len(stages.ROUNDS) - 1
        rounds = [self.to_select(rows, number, guess=True) for number in (last - 1, last)]
        final = self.blocks(self.contenders(rows, guess=True), self.rows(self.name, set_aside=False))
        predictors, limit = self.predictors, self.presets[self.name].block_s
        seconds = [sum(predictors[SELECT].series_s(group) for units in rounds for group in self._groups(units))]
        seconds.append(sum(map(predictors[self.name].series_s, final)))
        chosen = [one for block in final for one in block]
        points = [sum(len(unit.params) for unit in units) for units in (rounds[0], chosen)]
        lines: list[list[Any]] = [
            ["select", points[0], "", seconds[0] / 60],
            ["final", points[1], len(final), seconds[1] / 60],
        ]
        table = tabulate(
            [*lines, ["total", "", "", sum(seconds) / 60]], ["stage", "points", "blocks", "minutes"], floatfmt=".0f"
        )
        long = [block for block in final if limit is not None and predictors[self.name].series_s(block) > limit]
        more = f"\n{len(long)} blocks hold one problem that takes longer than a block should" if long else ""
        return f"to measure: about {sum(seconds):.0f} s, checks included\n\n{table}{more}"

    def select(self) -> tuple[Progress, int]:
        """Measures what is left of stage select. What was measured, and how many processes the deadline left."""
        progress, rows = Progress(), self.rows(SELECT)
        # The second time for what the first one has taught: the same command then finds nothing to measure.
        for number, (_, samples) in 2 * list(enumerate(stages.ROUNDS)):
            units = self.to_select(rows, number)
            if units:
                sweep = self._sweep(SELECT, {"repetitions": samples}, progress)
                left = sweep.go_groups(self._groups(units), _points(self.selecting))
                sweep.finish(self.bench.machine())
                if left:
                    return progress, left
                rows = self.rows(SELECT)
        return progress, 0

    def run(self) -> tuple[Progress, int]:
        """As select, with stage final after it; left may be blocks."""
        progress, left = self.select()
        if left:
            return progress, left
        selected = self.rows(SELECT)
        self.predictors[self.name].learn(selected)  # which launches are long decides how they are measured
        chosen = self.contenders(selected)
        blocks = self.blocks(chosen, self.rows(self.name))
        if blocks:
            sweep = self._sweep(self.name, {}, progress)
            left = sweep.go_groups(blocks, _points(chosen), blocks=True)
            sweep.finish(self.bench.machine())
        return progress, left

    def _sweep(self, name: str, update: dict[str, Any], progress: Progress) -> Sweep:
        run = store.new_run_id(store.run_ids(self.folder))
        preset = self.presets[name].model_copy(update=update)
        sweep = Sweep(
            self.bench, self.folder, run, self.record(run, name), name, preset, self.predictors[name], progress
        )
        sweep.deadline = self.deadline
        return sweep


def _points(units: Sequence[Unit]) -> Counter[str]:
    """The number of points of each experiment."""
    counts: Counter[str] = Counter()
    for unit in units:
        counts[unit.experiment] += len(unit.params)
    return counts


def deadline_of(minutes: float | None) -> float | None:
    """time.monotonic() in `minutes`; None for None."""
    return None if minutes is None else time.monotonic() + 60 * minutes
