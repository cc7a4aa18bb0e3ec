"""Computations on the rows of a set. Each takes Rows and its arguments of claims.toml."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from plots import real
from plots.noise import noise_us
from plots.tables.claims.rows import Cell, Rows, grid, label, of_any, placed, side_of
from plots.tables.claims.values import UNDECIDED, Arguments, Found, Value, known, named
from plots.tables.crossover import crossed
from xcorr.native.variants import assignments

NOTHING = "nothing"


def ratio(rows: Rows, args: Arguments) -> Found:
    """`of` over `to`, cell by cell; trends run over the sizes of a count."""
    of, to = side_of(args["of"], args), side_of(args["to"], args)
    values = []
    for cell in grid(args):
        above, below = rows.value(of, placed(of, cell)), rows.value(to, placed(to, cell))
        if above is not None and below:
            values.append(known(label(cell, args), above / below, cell.counts))
    return Found(values, rows.take_missing())


def times(rows: Rows, args: Arguments) -> Found:
    """The metric of the series of each of `chains`, in order, cell by cell: a trend per chain and cell. Relative to the
    first of the chain, so that cells can be compared."""
    values = []
    for cell in grid(args):
        for number, chain in enumerate(args["chains"]):
            sides = [side_of(name, args) for name in chain]
            numbers = [(side, rows.value(side, placed(side, cell))) for side in sides]
            seen = [(side, value) for side, value in numbers if value is not None]
            group = f"{label(cell, args)}/{number}"
            for side, value in seen:
                text = f"{label(cell, args)} {side['series']}"
                values.append(known(text, value / seen[0][1], group))
    return Found(values, rows.take_missing())


def crossing(rows: Rows, args: Arguments) -> Found:
    """First size (matrix side) from which `to` is not slower than `of`, per count: by log-log interpolation between
    measured sizes; a bound where the sizes do not bracket it. Sizes where either has no row are left out; fewer than
    two common sizes are missing rows."""
    of, to = side_of(args["of"], args), side_of(args["to"], args)
    values, missing, hints = [], [], []
    for counts in dict.fromkeys(cell.counts for cell in grid(args)):
        seen, absent = [], []
        for cell in (cell for cell in grid(args) if cell.counts == counts):
            of_us, to_us = (rows.value(side, placed(side, cell)) for side in (of, to))
            if of_us is None or to_us is None:
                absent += rows.take_missing()
            else:
                seen.append((cell.size, math.log(of_us / to_us)))
        rows.missing = {}
        low, high = crossed(sorted(seen)) if len(seen) > 1 else (math.nan, math.nan)
        if len(seen) > 1:
            values.append(Value(counts, low, high))
            hints += absent if low != high else []
        else:
            missing += absent
    return Found(values, missing, hints)


def fastest(rows: Rows, args: Arguments) -> Found:
    """The fastest of `series` at each cell, ties (plots.noise) joined by ` = `."""
    values = []
    for cell in grid(args):
        points = {name: rows.best({"series": name}, cell) for name in args["series"]}
        timed = {n: p[0].rename({"compute_us": "time_us"}) for n, p in points.items() if p}
        if len(timed) == len(args["series"]):
            first = min(timed.values(), key=lambda point: point["time_us"])
            tied = [n for n, p in timed.items() if p["time_us"] - first["time_us"] <= noise_us(first, p)]
            values.append(Value(label(cell, args), word=" = ".join(tied)))
    return Found(values, rows.take_missing())


def beating(rows: Rows, args: Arguments) -> Found:
    """Which of `series` are faster than `to` at one of the cells at least, joined by `, `; undecided
    while rows are missing, as a part of the list is another list."""
    to = side_of(args["to"], args)
    ahead = []
    for name in args["series"]:
        side = side_of(name, args)
        for cell in grid(args):
            own, other = rows.value(side, placed(side, cell)), rows.value(to, placed(to, cell))
            if own is not None and other is not None and own < other and name not in ahead:
                ahead.append(name)
    text, missing = ", ".join(ahead) or NOTHING, rows.take_missing()
    return Found([Value(text, word=UNDECIDED) if missing else Value("", word=text)], missing)


def paired(rows: Rows, args: Arguments) -> Found:
    """Time with `parameter` at the first over the second of `values`, the other parameters equal:
    mean over the pairs of points of `series` at each cell."""
    name, (first, second) = args["parameter"], map(str, args["values"])
    values = []
    for cell in grid(args):
        here = rows.at(cell)
        choices = rows.choices(args["series"])
        own = here[of_any(choices, here)]
        sides: dict[str, dict[Any, float]] = {first: {}, second: {}}
        for _, point in own.iterrows():
            params = dict(assignments(point["params"]))
            value = params.pop(name, "")
            if value in sides:
                sides[value][point["variant"], tuple(sorted(params.items()))] = point["compute_us"]
        both = sorted(set(sides[first]) & set(sides[second]))
        if both:
            mean = np.mean([sides[first][key] / sides[second][key] for key in both])
            values.append(known(label(cell, args), float(mean), cell.counts))
        else:
            wanted = " or ".join(choice.describe() for choice in choices)
            rows.note(f"{wanted}, {name}={first} and {name}={second}", cell)
    return Found(values, rows.take_missing())


def matching(rows: Rows, args: Arguments) -> Found:
    """Share of the cells and of `values` of the parameter `to` at which the fastest point of `series` has the same value of
    `parameter`, or ties with one that has."""
    name, to = args["parameter"], args["to"]
    equal, count = 0, 0
    choices = rows.choices(args["series"])
    for cell in grid(args):
        here = rows.at(cell)
        own = here[of_any(choices, here)].rename(columns={"compute_us": "time_us"}).sort_values("time_us")
        for value in map(str, args["values"]):
            params = [assignments(text) for text in own["params"]]
            at = own[np.array([one.get(to) == value for one in params], dtype=bool)]
            seen = {assignments(text).get(name) for text in at["params"]}
            if value not in seen or len(seen) < 2:
                wanted = " or ".join(choice.describe() for choice in choices)
                rows.note(f"{wanted}, {to}={value} with several values of {name}", cell)
                continue
            first = at.iloc[0]
            tied = [
                assignments(p["params"])[name]
                for _, p in at.iterrows()
                if p["time_us"] - first["time_us"] <= noise_us(first, p)
            ]
            equal, count = equal + (value in tied), count + 1
    values = [known(f"{equal} of {count}", equal / count)] if count else []
    return Found(values, rows.take_missing())


def growth(rows: Rows, args: Arguments) -> Found:
    """For each of `steps`, two sizes: how many times as long the second takes with `of`, over how many with `to`."""
    of, to = side_of(args["of"], args), side_of(args["to"], args)
    values = []
    for small, large in args["steps"]:
        for cell in grid({**args, "sizes": small}):
            places = [cell, Cell(cell.form, cell.counts, large)]
            times = [rows.value(side, place) for side in (of, to) for place in places]
            known_us = [us for us in times if us is not None]
            if len(known_us) == 4:
                ratios = [known_us[1] / known_us[0], known_us[3] / known_us[2]]
                text = f"{small} to {large}: {ratios[0]:.3g} and {ratios[1]:.3g}, ratio"
                values.append(known(text, ratios[0] / ratios[1]))
    return Found(values, rows.take_missing())


def several(rows: Rows, args: Arguments) -> Found:
    """The values of each of `parts`: a computation by name with its arguments and a `label`."""
    values: list[Value] = []
    missing: list[str] = []
    hints: list[str] = []
    for part in args["parts"]:
        own = {key: one for key, one in part.items() if key not in ("name", "label")}
        found = COMPUTATIONS[part["name"]](rows, own)
        values += [replace(one, label=f"{part['label']} {one.label}") for one in found.values]
        missing, hints = missing + found.missing, hints + found.hints
    return Found(values, missing, hints)


def spread(rows: Rows, args: Arguments) -> Found:
    """Largest over smallest value of a side over all cells."""
    of = side_of(args["of"], args)
    seen = [rows.value(of, placed(of, cell)) for cell in grid(args)]
    found = [value for value in seen if value]
    values = [known("largest/smallest", max(found) / min(found))] if len(found) > 1 else []
    return Found(values, rows.take_missing())


def value(rows: Rows, args: Arguments) -> Found:
    of = side_of(args["of"], args)
    seen = [(cell, rows.value(of, placed(of, cell))) for cell in grid(args)]
    values = [known(label(cell, args), one, cell.counts) for cell, one in seen if one is not None]
    return Found(values, rows.take_missing())


def noise(rows: Rows, args: Arguments) -> Found:
    """Mean over all points with at least `repetitions` samples of SD over mean, in percent."""
    sampled = rows.points["n"] + rows.points["dropped"]
    points = rows.points[sampled >= args["repetitions"]]
    if points.empty:
        return Found([], [f"points with at least {args['repetitions']} repetitions (preset paper)"])
    return Found([known("", 100.0 * float((points["sd_us"] / points["compute_us"]).mean()))])


def interpolated(rows: Rows, args: Arguments) -> Found:
    """A side's time per pair at `cell` over the log-log interpolation between the measured sizes on
    either side of it of the count `between`."""
    of = side_of(args["of"], {"metric": "time_per_pair"})
    at = Cell(**args["cell"])
    own = rows.value(of, at)
    form, counts, sizes = args["between"]["form"], args["between"]["counts"], args["between"]["sizes"]
    ends = [rows.value(of, Cell(form, counts, size)) for size in sizes]
    if own is None or None in ends:
        return Found([], rows.take_missing())
    line = np.interp(math.log(at.size), np.log(sizes), np.log(np.array(ends, dtype=float)))
    return Found([known("", own / math.exp(line))])


def accuracy(rows: Rows, args: Arguments) -> Found:
    """A number of the float32 results against float64 of a real-input experiment, by data set, for the
    variants of `series`."""
    found = real.load(rows.folder, args["experiment"]) if rows.folder else "no folder"
    if isinstance(found, str):
        return Found([], [found])
    allowed = {name for choice in rows.choices(args["series"]) for name in choice.variants}
    values = [
        known(str(dataset["dataset"]), float(variant["float32_vs_float64"][args["key"]]))
        for dataset in found.datasets()
        for variant in dataset.get("variants", [])
        if variant["variant"] in allowed and (variant.get("float32_vs_float64") or {}).get(args["key"])
    ]
    wanted = " or ".join(sorted(allowed))
    return Found(values, [] if values else [f"{wanted} in {args['experiment']}"])


COMPUTATIONS = named(
    *(ratio, times, crossing, fastest, beating, paired, matching, growth, several, spread, value, noise),
    *(interpolated, accuracy),
)
