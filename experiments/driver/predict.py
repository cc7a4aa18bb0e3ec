"""Predicts the time of a point: its launches, its verification and all else.

A prediction scales the time of the nearest smaller problem in rows of the same variant and parameters. On a GPU a point without such
rows takes as long as the median of the variant's other points there, and what no known point of the variant supports takes no time.
Else it uses the shipped rates.
"""

import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.driver.best import CELL, Cell, cell_of
from experiments.driver.points import Unit
from experiments.driver.schema import Preset, Rate, Rates
from experiments.driver.store import Row
from xcorr.choice import speeds
from xcorr.choice.speeds import work_of
from xcorr.fields import PLAIN
from xcorr.native.variants import Variant
from xcorr.problem import Problem, Shape

# Parts of a point besides its repetitions: a launch for each kind of input, one for the batch size, one for the final check, ten
# plans, or three where they take long, and for FFT-based variants five launches with phases, or fewer where they take more than a
# second. A sample of short launches is a quarter longer than the minimum time, and the host takes about half of that to enqueue them.
AIM = 1.25
ENQUEUED = 1.5
EXTRA_LAUNCHES = 5
INPUTS = 3
MANY_PLANS, MANY_PLANS_S, PLANS = 10, 0.5, 3
PHASE_LAUNCHES = 5
# A brief point has one kind of input, one plan and no phases. Its first launch, where it is long, is its first sample.
TIMEOUT_FACTOR = 20
LONGEST_TIMEOUT_S = 1e6  # system calls that wait accept at most some weeks
Shapes = tuple[Shape, Shape, str]  # of left and right, and the window
# A launch that takes longer is one that fills the card: with more matrices of the same shapes it takes as much longer.
FULL_S = 0.01
# A longer launch is an average by itself, of all that its blocks of threads do. So each process of a block of problems takes one sample of it.
SLOW_S = 0.05


def _shapes(problem: Problem) -> Shapes:
    return problem.left, problem.right, problem.window


@dataclass(frozen=True)
class Sample:
    """A measured launch of a point of a variant."""

    form: str
    work: float
    shapes: Shapes
    seconds: float
    plan_s: float


def _nearest(samples: Sequence[Sample], form: str, work: float) -> Sample | None:
    """The largest sample of at most `work`, of the same form if there is one; the smallest where all are larger."""
    smaller = [sample for sample in samples if sample.work <= work]
    if smaller:
        return max(smaller, key=lambda s: (s.form == form, s.work, -s.seconds))
    return min(samples, key=lambda s: (s.work, s.seconds), default=None)


class Predictor:
    """Predictions for a machine and a preset. `learn` refines them with rows."""

    def __init__(self, rates: Rates, machine: dict[str, Any], device: str, preset: Preset, name: str) -> None:
        self._rates = rates
        self._cores = max(1, int(machine.get("cores") or 1))
        self._backend = "cuda" if device.startswith("cuda") else "cpu"
        self._preset, self._preset_name = preset, name
        # by (form, work, shapes): the fastest repetition
        self._samples: dict[tuple[str, ...], dict[tuple[str, float, Shapes], Sample]] = defaultdict(dict)
        # by (form, work, shapes): seconds of all points of a variant, in order
        self._of_variant: dict[tuple[str, ...], dict[tuple[str, float, Shapes], list[float]]] = defaultdict(dict)
        self._typical: dict[tuple[Cell, str], float | None] = {}  # what _of_variant says, by cell and mode
        self._supported: set[Cell] = set()  # cells with a point that passed
        self._refused: set[Cell] = set()  # cells with one that is not supported
        self._classes: dict[str, str] = {}
        # launch_s by variant, which a stage asks for in each of its steps
        self._launches: dict[str, dict[tuple[Any, ...], float]] = defaultdict(dict)

    def learn(self, rows: Iterable[Row], variants: Iterable[Variant] = ()) -> None:
        """Uses the rows of this machine: times of those that passed, and what is not supported."""
        self._classes.update({variant.id: variant.algorithm_class for variant in variants})
        self._typical.clear()
        for row in rows:
            self._launches.pop(row["variant"], None)
            if row["outcome"] == "not_supported":
                self._refused.add(tuple(row[name] for name in CELL))
            algorithm_class = self._classes.get(row["variant"])  # None: this build does not contain the variant
            if row["outcome"] != "passed" or row["compute_us"] == "" or algorithm_class is None:
                continue
            problem = Problem.of_row(row)
            key = (row["variant"], row["params"], row["precision"], row["mode"], problem.fields.text)
            work = work_of(problem, algorithm_class)
            seconds, plan = float(row["compute_us"]) * 1e-6, float(row["plan_us"] or 0) * 1e-6
            new = Sample(row["form"], work, _shapes(problem), seconds, plan)
            place = (new.form, new.work, new.shapes)
            self._supported.add(tuple(row[name] for name in CELL))
            if place not in self._samples[key]:
                bisect.insort(self._of_variant[key[:1] + key[2:]].setdefault(place, []), seconds)
            known = self._samples[key].setdefault(place, new)
            if seconds < known.seconds:
                self._samples[key][new.form, new.work, new.shapes] = new

    def launch_s(self, unit: Unit, params: str) -> float:
        """Predicted seconds of one computation of the whole problem."""
        known = self._launches[unit.variant.id]
        place = (unit.problem, unit.precision, unit.mode, params)
        if place not in known:
            known[place] = self._predicted_s(unit, params)
        return known[place]

    def _predicted_s(self, unit: Unit, params: str) -> float:
        variant = unit.variant
        if variant.backend != self._backend:
            return 0.0  # answered with not_supported
        work = work_of(unit.problem, variant.algorithm_class)
        samples = list(self._of(unit, params).values())
        if self._backend == "cuda" and not samples:
            typical = self._of_others_s(unit)
            if typical is not None:
                return typical
        rate = self._rate(variant)
        if not samples:
            return rate.launch_us * 1e-6 + work / speeds.per_second(dict(rate), params, self._cores)
        return self._scaled_s(samples, unit.problem.form, work, rate.launch_us * 1e-6)

    def _of_others_s(self, unit: Unit) -> float | None:
        """Seconds of a launch by the other points of the variant; 0 where it supports none of them, None where none is known."""
        cell = cell_of(unit)
        if cell in self._refused and cell not in self._supported:
            return 0.0
        if (cell, unit.mode) not in self._typical:
            work = work_of(unit.problem, unit.variant.algorithm_class)
            key = (unit.variant.id, unit.precision, unit.mode, unit.problem.fields.text)
            medians = [
                Sample(form, amount, shapes, seconds[len(seconds) // 2], 0.0)
                for (form, amount, shapes), seconds in self._of_variant.get(key, {}).items()
            ]
            floor = self._rate(unit.variant).launch_us * 1e-6
            self._typical[cell, unit.mode] = (
                self._scaled_s(medians, unit.problem.form, work, floor) if medians else None
            )
        return self._typical[cell, unit.mode]

    @staticmethod
    def _scaled_s(samples: Sequence[Sample], form: str, work: float, floor: float) -> float:
        """Seconds of a launch by known ones of other problems, at least one."""
        near = _nearest(samples, form, work)
        assert near is not None
        ratio = work / near.work
        proportional = min(floor, near.seconds) + max(near.seconds - floor, 0) * ratio
        # Launch latency, barriers and contention do not grow with the work. With a much smaller known problem an affine model
        # separates them; at least a tenth of the time counts as work.
        half = [sample for sample in samples if sample.work <= near.work / 2]
        far = _nearest(half, near.form, near.work / 2)
        if far is None or ratio <= 1:
            return max(proportional, 0.1 * near.seconds * ratio)
        slope = (near.seconds - far.seconds) / (near.work - far.work)
        affine = near.seconds + slope * (work - near.work)
        return max(min(affine, proportional), near.seconds * (0.9 + 0.1 * ratio))

    def _of(self, unit: Unit, params: str) -> dict[tuple[str, float, Shapes], Sample]:
        key = (unit.variant.id, params, unit.precision, unit.mode, unit.problem.fields.text)
        return self._samples.get(key, {})

    def _rate(self, variant: Variant) -> Rate:
        known = {name: getattr(self._rates, name) for name in ("variants", "families", "classes")}
        return speeds.of_variant(known, variant)

    def known_s(self, unit: Unit, params: str) -> float | None:
        """Seconds of the shortest measured launch of the point on this problem; None without one."""
        work = work_of(unit.problem, unit.variant.algorithm_class)
        found = self._of(unit, params).get((unit.problem.form, work, _shapes(unit.problem)))
        return None if found is None else found.seconds

    def carried(self, unit: Unit, points: Sequence[str]) -> dict[str, float]:
        """Seconds of launches of the points on one problem with fewer matrices of the same shapes: the largest one on which all
        launches that are known fill the card. Empty where there is none. Such points have the same order with more matrices."""
        work = work_of(unit.problem, unit.variant.algorithm_class)
        place = (unit.problem.form, _shapes(unit.problem))
        found: dict[float, dict[str, float]] = defaultdict(dict)
        for one in points:
            for sample in self._of(unit, one).values():
                if (sample.form, sample.shapes) == place and sample.work < work:
                    found[sample.work][one] = sample.seconds
        full = [smaller for smaller, of in found.items() if min(of.values()) >= FULL_S and len(of) > 1]
        return found[max(full)] if full else {}

    def knows(self, unit: Unit, params: str) -> bool:
        """Whether a launch of the point is known, on any problem."""
        return bool(self._of(unit, params))

    def is_long(self, unit: Unit, params: str) -> bool:
        """Whether a launch takes longer than the preset's limit. Such a point, where it is needed, is timed once."""
        return self.launch_s(unit, params) > float(getattr(self._preset.max_predicted_s, self._backend))

    def is_slow(self, unit: Unit, params: str) -> bool:
        """Whether each process of a block takes one sample of the point."""
        return self._preset.block_s is not None and self.launch_s(unit, params) > SLOW_S

    def is_brief(self, unit: Unit, params: str) -> bool:
        """Whether every process of a block measures the point with --brief."""
        slow = self.is_slow(unit, params) and unit.variant.algorithm_class != "fft"
        return params in unit.brief or self.is_long(unit, params) or slow

    def why_not(self, unit: Unit, params: str) -> str:
        """The reason of not_selected, or "" for a selected point."""
        if params in unit.needed:
            return ""
        of_point, limits, what = self.launch_s(unit, params), self._preset.max_predicted_s, "per launch"
        if of_point <= getattr(limits, self._backend) and self._preset.max_point_s is not None:
            of_point, limits, what = self.unit_s(unit, [params]), self._preset.max_point_s, "with its verification"
        limit = float(getattr(limits, self._backend))
        if of_point <= limit:
            return ""
        selects = f"preset {self._preset_name} selects up to {limit:g} s on {self._backend}"
        return f"predicted {of_point:.3g} s {what}, {selects}"

    def point_s(self, unit: Unit, params: str, brief: bool | None = None) -> float:
        """Predicted seconds of a point without the references, which its process computes once. `brief`: by default as the preset,
        and for some points of a block."""
        check = self._rates.verification[self._backend]
        if unit.variant.backend != self._backend:
            return float(check.point_s)
        launch = self.launch_s(unit, params)
        problem = unit.problem
        work = work_of(problem, unit.variant.algorithm_class)
        near = _nearest(list(self._of(unit, params).values()), problem.form, work)
        plan = near.plan_s if near else float(self._rate(unit.variant).plan_s)
        phases = 0.0
        if brief is None:
            brief = self._preset.brief or (self._preset.block_s is not None and self.is_brief(unit, params))
        if unit.variant.algorithm_class == "fft" and not brief:
            phases = min(PHASE_LAUNCHES * launch, max(launch, 1.0))
        outputs = problem.out_elements
        sample = max(launch, ENQUEUED * AIM * self._preset.min_time_s)
        samples = 1 if self.is_long(unit, params) or self.is_slow(unit, params) else self._preset.repetitions
        kinds = 1 if brief else INPUTS
        return (
            check.point_s * kinds / INPUTS
            + kinds * outputs / check.output_per_s
            + (plan if brief else min(MANY_PLANS * plan, max(PLANS * plan, MANY_PLANS_S)))
            + (0 if brief else EXTRA_LAUNCHES * launch)
            + phases
            + samples * sample
            + (unit.energy_s if self._backend == "cuda" else 0)  # nothing counts a CPU's
        )

    def unit_s(self, unit: Unit, params: Sequence[str], shared_by: int = 1) -> float:
        """Predicted seconds of these parameters, with their part of a process for `shared_by` units; 0 for none."""
        if not params:
            return 0.0
        check = self._rates.verification[self._backend]
        process = float(check.process_s) / shared_by
        if unit.variant.backend != self._backend:
            return process + check.point_s * len(params)
        references = self._reference_s(unit.problem) * (1 if self._preset.brief else INPUTS)
        return process + references + sum(self.point_s(unit, one) for one in params)

    def series_s(self, units: Iterable[Unit]) -> float:
        """Predicted seconds of a group of units with preset.processes processes. Long and drawn points are in the first one only, and
        in the others all points are brief. A process computes the references once for the points that share them (`Unit.reference`)."""
        processes, points = self._preset.processes, 0.0
        shared: dict[Any, float] = {}
        for unit in units:
            again = [0 if one in unit.drawn or self.is_long(unit, one) else processes - 1 for one in unit.params]
            points += sum(self.point_s(unit, one) for one in unit.params)
            points += sum(number * self.point_s(unit, one, brief=True) for number, one in zip(again, unit.params))
            brief = self._preset.brief or all(self.is_brief(unit, one) for one in unit.params)
            references = self._reference_s(unit.problem) * ((1 if brief else INPUTS) + max(again))
            shared[unit.reference] = max(shared.get(unit.reference, 0.0), references)
        return points + sum(shared.values()) + processes * float(self._rates.verification[self._backend].process_s)

    def _reference_s(self, problem: Problem) -> float:
        check = self._rates.verification[self._backend]
        by_definition = problem.fmas <= check.definition_limit_fma
        seconds = problem.fmas / check.fma_per_s if by_definition else problem.fft_work / check.fft_per_s
        if problem.fields != PLAIN:
            seconds += problem.out_elements / check.field_output_per_s
        return float(seconds)

    def timeout_s(self, unit: Unit, params: str) -> float:
        """Seconds after which a point is ended: a multiple of its prediction with references."""
        timeout_s = TIMEOUT_FACTOR * self.unit_s(unit, [params])
        return min(max(float(self._preset.min_timeout_s), timeout_s), LONGEST_TIMEOUT_S)
