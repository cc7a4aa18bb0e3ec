"""Whether stage select finds the winners of the whole grid: measures every point of some problems of the evaluation, then lets
stage select choose among them.

Of each group of points of which a figure or a table shows the fastest, the time of the chosen point is compared with the shortest
one. Both times are of the whole grid, which other processes measured. A choice is wrong where it is more than 1 % slower and its
samples lie apart from those of the fastest.
"""

import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tabulate import tabulate
from tqdm import tqdm

from experiments.driver import stages
from experiments.driver.bench import Bench, program
from experiments.driver.best import Cell, cell_of
from experiments.driver.evaluation import Evaluation
from experiments.driver.points import Unit, expand
from experiments.driver.predict import Predictor
from experiments.driver.request import of_preset, record_of
from experiments.driver.schema import EVALUATION, SELECT, Preset, load_experiments, load_presets, load_rates
from experiments.driver.shown import Shown, groups_of, shown
from experiments.driver.trial import samples_of
from xcorr.errors import Parser, UserError, command

EPILOG = """example:
  python3 -m experiments.compare.halving --device cuda:0

Exit code: 0 when stage select chose right, 1 when a choice was wrong, 2 for a mistake."""
PROBLEMS = 20
SAMPLES = 3
ALIKE = 1.01
LEAST_POINTS = 20  # of a problem: of fewer nothing much is chosen
PROBLEM_S = 15.0  # predicted for the whole grid of a problem; longer ones would not fit into minutes
Samples = dict[str, list[float]]  # microseconds by parameters
Grid = Mapping[Cell, Samples]


def some(units: Sequence[Unit], predictor: Predictor, count: int) -> list[Unit]:
    """The units of `count` problems that take from the least to the most work, evenly, of those with points enough."""
    fit = [
        own
        for own in stages.problems_of(units)
        if sum(len(unit.params) for unit in own) >= LEAST_POINTS and predictor.series_s(own) <= PROBLEM_S
    ]
    fit.sort(key=lambda own: (own[0].problem.fmas, own[0].problem.id))
    if len(fit) > count:
        fit = [fit[i * (len(fit) - 1) // max(count - 1, 1)] for i in range(count)]
    return [unit for own in fit for unit in own]


def whole_grid(bench: Bench, units: Iterable[Unit], preset: Preset) -> Grid:
    """Samples of every point that passes, a process a problem."""
    found: dict[Cell, Samples] = defaultdict(dict)
    brief = preset.model_copy(update={"repetitions": SAMPLES})
    for own in tqdm(stages.problems_of(units), desc="whole grid", file=sys.stderr):
        points = [(unit, params) for unit in own for params in unit.params]
        for number, times in samples_of(bench, points, brief).items():
            if not isinstance(times, str):
                unit, params = points[number]
                found[cell_of(unit)][params] = times
    return found


@dataclass(frozen=True)
class Choice:
    """Of a group its fastest point and the chosen one, "" for none, and by how much the chosen one is slower."""

    unit: Unit
    fastest: str
    chosen: str
    ratio: float
    wrong: bool


def choices(units: Iterable[Unit], of: Sequence[Shown], grid: Grid, selected: stages.Times) -> list[Choice]:
    """A choice for each group with two points or more."""
    found = []
    for unit in units:
        own = grid.get(cell_of(unit), {})
        middle = {one: statistics.median(times) for one, times in own.items()}
        for group in groups_of(unit, of):
            ranked = sorted((middle[one], one) for one in group if one in middle)
            if len(ranked) < 2:
                continue
            us, best = ranked[0]
            chosen = stages.fastest(group, selected.get(cell_of(unit), {})) or ""
            ratio = middle[chosen] / us if chosen in middle else float("inf")
            apart = chosen not in own or min(own[chosen]) > max(own[best])
            found.append(Choice(unit, best, chosen, ratio, ratio > ALIKE and apart))
    return found


def report(found: Sequence[Choice], grid: Grid, selected: stages.Times) -> str:
    """A line for each problem, one for each wrong choice, and the verdict."""
    lines = []
    for own in stages.problems_of({id(one.unit): one.unit for one in found}.values()):
        cells = {cell_of(unit) for unit in own}
        ratios = [one.ratio for one in found if one.unit.problem == own[0].problem]
        points = sum(len(grid.get(cell, {})) for cell in cells)
        taken = sum(len(times) for cell in cells for times in selected.get(cell, {}).values())
        lines.append([own[0].problem.id, points, taken, len(ratios), max(ratios)])
    table = tabulate(lines, ["problem", "points", "samples of select", "choices", "worst ratio"], floatfmt=".3f")
    wrong = [one for one in found if one.wrong]
    said = [f"{one.unit.name}: {one.chosen or 'nothing'} for {one.fastest}, {one.ratio:.3f}" for one in wrong]
    return "\n".join([table, "", *said, f"choices: {len(found)}, wrong: {len(wrong)}"])


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m experiments.compare.halving", description=__doc__, epilog=EPILOG)
    parser.add_argument("--device", default="cuda:0", help="device to measure on (default: cuda:0)")
    parser.add_argument("--problems", type=int, default=PROBLEMS, metavar="N", help=f"default: {PROBLEMS}")
    options = parser.parse_args(argv)
    if options.problems < 1:
        raise UserError(f"--problems {options.problems}: too few; give 1 or more")
    bench = Bench(program(), options.device)
    facts, presets, of = bench.machine(), load_presets(), shown()
    experiments = of_preset(load_experiments(), EVALUATION, options.device)
    predictors = {
        name: Predictor(load_rates(), facts, options.device, presets[name], name) for name in (SELECT, EVALUATION)
    }
    with tempfile.TemporaryDirectory() as folder:
        evaluation = Evaluation(
            bench,
            Path(folder, "local", str(facts["machine_key"])),
            facts,
            presets,
            EVALUATION,
            experiments,
            expand(experiments, bench.variants(), EVALUATION, options.device),
            of,
            predictors,
            lambda run, name: record_of(run, argv, name, "1/1", facts),
        )
        chosen = some(evaluation.selecting, predictors[SELECT], options.problems)
        if not chosen:
            raise UserError(f"halving: no problem has {LEAST_POINTS} points on {options.device}; build more variants")
        evaluation.selecting = chosen
        grid = whole_grid(bench, chosen, presets[SELECT])
        evaluation.select()
        selected = stages.times_of(evaluation.rows(SELECT))
    found = choices(chosen, of, grid, selected)
    if not found:
        raise UserError(f"halving: no two points of a problem passed on {options.device}")
    print(report(found, grid, selected))
    return int(any(one.wrong for one in found))


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
