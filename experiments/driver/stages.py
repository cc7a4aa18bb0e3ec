"""The two stages of an evaluation, as rules.

Stage `select` finds the fastest point of each group of points (shown.groups_of) of a variant on a problem, shortly. It measures
points with short launches first. From these the long launches are predicted, of which hopeless ones are left out. Stage `final`
measures the points that were found, and all that are close to the fastest of their problem, in one block: a series of processes
on one card.
"""

import dataclasses
import statistics
from collections import defaultdict, namedtuple
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from experiments.driver.best import CELL, Cell, cell_of
from experiments.driver.columns import Key, Row
from experiments.driver.points import Unit
from experiments.driver.predict import Predictor
from experiments.driver.shown import Shown, groups_of, needed
from experiments.driver.sweep import SLOW
from xcorr.problem import Problem

INFINITE = float("inf")
# The rounds of stage select: each adds `samples` to points whose predicted launch takes no longer than `longest_s`, the last one to
# the survivors of all. What a round measures refines the predictions of longer launches.
Round = namedtuple("Round", "longest_s samples")
ROUNDS = (Round(0.002, 1), Round(0.02, 1), Round(0.1, 1), Round(INFINITE, 1), Round(INFINITE, 2))
CARRIED = 1.1  # times the fastest with fewer matrices, of launches that fill the card: beyond it a long launch is not measured
HOPELESS = 4.0  # times the shortest predicted launch of a group: beyond it a long launch is not measured
# Of a group whose launches are all longer than LONG_S, the FIRST points with the shortest predicted launches are measured, then those
# that are predicted within NEAR times the fastest known one, FEW in all.
LONG_S = 0.02
FIRST = 2
NEAR = 1.1
FEW = 8
# A sample of a longer launch is an average: what is not within EQUAL times the fastest has lost. Where launches are longer than LONG_S the first
# sample decides.
STEADY_US = 10_000.0
EQUAL = 1.01
FAR = 1.5  # times the fastest: beyond it a point of a group cannot win, and a contender is none
CLOSE = 1.1  # times the fastest: below it one sample says nothing
SURFACE = "surface"  # a result
MANY_OUTPUTS = 2**28  # of a problem with another result: beyond it each reference takes many seconds
KNOWN = 1.3  # times the fastest: beyond it by rows of this architecture, a point is not measured at all
Groups = Sequence[Sequence[str]]
Samples = Mapping[str, Sequence[float]]  # times of points by parameters, in the order in which they were measured
Times = Mapping[Cell, Samples]


def times_of(rows: Iterable[Row]) -> dict[Cell, dict[str, list[float]]]:
    """Samples of the points that always passed, in their order."""
    found: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    bad = set()
    for row in rows:
        cell = tuple(row[name] for name in CELL)
        if row["outcome"] == "passed":
            found[cell][row["params"]].append(float(row["compute_us"]))
        else:
            bad.add((cell, row["params"]))
    for cell, params in bad:
        found[cell].pop(params, None)
    return found


def one_a_cell(units: Iterable[Unit]) -> list[Unit]:
    """One unit for each cell, with the points of all units of the cell: the first in mode stream on uniform input, else the first."""
    cells: dict[Cell, list[Unit]] = defaultdict(list)
    for unit in units:
        cells[cell_of(unit)].append(unit)
    found = []
    for own in cells.values():
        first = min(own, key=lambda one: (one.mode != "stream", one.input != "uniform"))
        wanted = {params for one in own for params in one.params}
        found.append(dataclasses.replace(first, params=tuple(one for one in first.variant.points if one in wanted)))
    return found


def to_choose_from(units: Iterable[Unit]) -> list[Unit]:
    """The units among whose points stage select chooses. All points of a problem contend where they are FEW and each process computes
    references for many seconds."""
    found = []
    for own in problems_of(units):
        few = sum(len(one.params) for one in own) <= FEW
        found += [] if few and _has_many_outputs(own[0].problem) else own
    return found


def candidates(groups: Groups, known_s: Mapping[str, float | None]) -> set[str]:
    """The points of a unit that stage select measures. The first group is the whole grid; of another group that is one point nothing is to
    be chosen. Where rows of this architecture have a point on this problem at more than KNOWN times the fastest of the group, it is left out."""
    found: set[str] = set()
    for group in [*groups[:1], *(one for one in groups[1:] if len(one) > 1)]:
        times = [time for one in group if (time := known_s.get(one)) is not None]
        limit = KNOWN * min(times, default=0.0)
        found.update(one for one in group if (time := known_s.get(one)) is None or time <= limit)
    return found


def promising(
    groups: Groups,
    predicted_s: Mapping[str, float],
    guessed: Collection[str],
    carried_s: Mapping[str, float],
    known_s: Mapping[str, float | None],
) -> set[str]:
    """The points of a unit that stage select measures, by predictions from what is measured: those with a short launch, and of each
    group those that are no more than HOPELESS times as slow as its fastest (by `carried_s`, launches that fill the card with fewer
    matrices: CARRIED times). Where all of a group are longer than LONG_S, these are FIRST points, and up to FEW that are near the
    fastest of `known_s`, launches on this problem. `guessed`: points of which no launch is known on any problem; they are measured.
    """
    found = {one for one, time in predicted_s.items() if time <= ROUNDS[0].longest_s or one in guessed}
    for group in groups:
        ranked = sorted((predicted_s[one], one) for one in group if one in predicted_s and one not in guessed)
        least = min((carried_s[one] for one in group if one in carried_s), default=0.0)
        hopeful = [
            (time, one)
            for time, one in ranked
            if time <= HOPELESS * ranked[0][0] and carried_s.get(one, least) <= CARRIED * least
        ]
        if ranked and ranked[0][0] > LONG_S:
            near = NEAR * min((time for one in group if (time := known_s.get(one)) is not None), default=0.0)
            hopeful = [*hopeful[:FIRST], *(one for one in hopeful[FIRST:FEW] if one[0] <= near)]
        found.update(one for _, one in hopeful)
    return found


def survivors(groups: Groups, samples: Samples) -> set[str]:
    """The points of a unit that need further samples, after all of them have had those of a round.

    This is the rule of the successive halving. In each group the slower half of the points is dropped, except what is within
    CLOSE times the fastest, and so is every point beyond FAR times the fastest, whichever half it is in. Where the fastest takes
    longer than STEADY_US, only what is within EQUAL times the fastest stays, and nothing where it takes longer than LONG_S. A group
    with one point left is decided. A point goes on while one group keeps it. A point's time is the median of all of its samples.
    """
    found: set[str] = set()
    for group in groups:
        ranked = _ranked(group, samples)
        fastest = ranked[0][0] if ranked else 0.0
        if fastest > 1e6 * LONG_S:
            continue
        half = (len(ranked) + 1) // 2
        limits = (EQUAL, EQUAL) if fastest > STEADY_US else (FAR, CLOSE)
        kept = [one for place, (time, one) in enumerate(ranked) if time <= limits[place >= half] * fastest]
        found.update(kept if len(kept) > 1 else ())
    return found


def fastest(group: Sequence[str], samples: Samples) -> str | None:
    """The point of a group that the halving found; None where none has a time."""
    return next((one for _, one in _ranked(group, samples)), None)


def _ranked(group: Sequence[str], samples: Samples) -> list[tuple[float, str]]:
    """Time and parameters of the points that were not dropped, which are those with the largest number of samples."""
    most = max((len(samples.get(one, ())) for one in group), default=0)
    return sorted((statistics.median(samples[one]), one) for one in group if most and len(samples.get(one, ())) == most)


def with_needed(units: Iterable[Unit], of: Sequence[Shown], predictor: Predictor) -> list[Unit]:
    """The units with the points that are measured whatever the limit of the preset: of each group that a figure of a paper or a
    claim needs, the point with the shortest predicted launch."""
    found = []
    for unit in units:
        names = {min(group, key=lambda one: predictor.launch_s(unit, one)) for group in needed(unit, of)}
        found.append(dataclasses.replace(unit, needed=tuple(one for one in unit.params if one in names)))
    return found


def contenders(
    units: Sequence[Unit],
    of: Sequence[Shown],
    times: Times,
    predictor: Predictor,
    named: Callable[[Unit, str], bool] = lambda unit, params: False,
) -> list[Unit]:
    """The units with the points of stage final.

    Contenders are the fastest point of each family, the fastest of each group that a figure of a paper or a claim needs (`needed`
    of a unit; where none has a time, the one with the shortest predicted launch), what `named` names, and in mode stream all
    within FAR times the fastest of the problem. The fastest points of other groups are measured beside them (`drawn`), and so are slow
    launches beyond FAR times the fastest, whose order one process shows.
    Verified with all inputs (not `brief`) are the fastest point of each variant and what is needed, and FFTs that are drawn, for
    their phases and plans.
    """
    best: dict[tuple[object, ...], float] = {}
    medians = {cell: {one: statistics.median(own) for one, own in samples.items()} for cell, samples in times.items()}
    for unit in units:
        here = medians.get(cell_of(unit), {})
        own = min((here[one] for one in unit.params if one in here), default=INFINITE)
        for cell in ((unit.problem, unit.precision), (unit.problem, unit.precision, unit.variant.family)):
            best[cell] = min(best.get(cell, INFINITE), own)
    found = []
    for unit in units:
        samples, here = times.get(cell_of(unit), {}), medians.get(cell_of(unit), {})
        limit = FAR * best[unit.problem, unit.precision] if unit.mode == "stream" else 0.0
        limit = max(limit, best[unit.problem, unit.precision, unit.variant.family])
        groups = groups_of(unit, of)
        chosen = {one for group in groups if (one := group[0] if len(group) == 1 else fastest(group, samples))}
        rivals = {one for one in unit.params if named(unit, one) or (one in here and here[one] <= limit)}
        wanted = set()
        for group in needed(unit, of):
            wanted.add(fastest(group, samples) or min(group, key=lambda one: predictor.launch_s(unit, one)))
        kept = dataclasses.replace(unit, needed=tuple(one for one in unit.params if one in wanted))
        points = [one for one in unit.params if one in chosen | wanted | rivals and not predictor.why_not(kept, one)]
        if not points:
            continue
        far = {one for one in points if here.get(one, 0.0) > FAR * best[unit.problem, unit.precision]}
        drawn = tuple(
            one for one in points if one not in wanted | rivals or (one in far and predictor.is_slow(unit, one))
        )
        whole = wanted | {fastest(points, samples) or points[0]}
        whole = whole | chosen if unit.variant.algorithm_class == "fft" else whole - set(drawn)
        brief = tuple(one for one in points if one not in whole or _has_many_outputs(unit.problem))
        found.append(dataclasses.replace(kept, params=tuple(points), drawn=drawn, brief=brief))
    return found


def _has_many_outputs(problem: Problem) -> bool:
    """Whether each reference takes many seconds, which no point of the problem needs three times."""
    return problem.fields.result != SURFACE and problem.out_elements > MANY_OUTPUTS


def problems_of(units: Iterable[Unit]) -> list[list[Unit]]:
    """The units by problem: those of all experiments, modes and inputs with it meet in one block."""
    found: dict[object, list[Unit]] = defaultdict(list)
    for unit in units:
        found[unit.problem].append(unit)
    return list(found.values())


def is_complete(
    units: Iterable[Unit], preset: str, processes: int, rows: Mapping[tuple[str, Key], Sequence[Row]]
) -> bool:
    """Whether every point of a problem has been measured in one block, by all of its processes. `rows` of preset `preset` by
    experiment and resume key."""
    blocks = set()
    for unit in units:
        for params in unit.params:
            own = rows.get((unit.experiment, unit.key(params, preset)), ())
            # With another reason one process is enough.
            passed = [row for row in own if row["outcome"] == "passed" and row["reason"] in ("", SLOW)]
            if not own or (passed and len({row["process"] for row in passed}) < processes):
                return False
            blocks |= {row["block"] for row in own}
    return len(blocks) == 1 and "" not in blocks


def packed(
    problems: Sequence[Sequence[Unit]], cost_s: Callable[[Sequence[Unit]], float], block_s: float
) -> list[tuple[Unit, ...]]:
    """Blocks of whole problems, of at most `block_s` predicted seconds each: the longest problems first, each in the first block with
    space for it. A problem that takes longer is a block by itself."""
    blocks: list[tuple[float, list[Unit]]] = []
    for cost, _, units in sorted(((cost_s(units), -i, units) for i, units in enumerate(problems)), reverse=True):
        place = next((i for i, (used, _) in enumerate(blocks) if used + cost <= block_s), len(blocks))
        used, inside = blocks.pop(place) if place < len(blocks) else (0.0, [])
        blocks.insert(place, (used + cost, [*inside, *units]))
    return [tuple(units) for _, units in blocks]
