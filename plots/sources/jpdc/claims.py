"""Computations for claims of the first paper and the thesis: on Table 1, and on more of a set than Rows, for claims that were
found later. Each takes Rows or the set, and its arguments of claims.toml."""

import math

import pandas as pd

from experiments.compare import counters as profiler
from plots import tidy
from plots.sources.jpdc.tables import table1
from plots.tables import hosts
from plots.tables.claims import measured
from plots.tables.claims.rows import Rows
from plots.tables.claims.values import UNDECIDED, Arguments, Found, Value, known, named
from plots.tables.crossover import crossed
from plots.tables.selection import Choice
from plots.tidy import ResultSet
from xcorr.errors import choose

CLASS, ORDER = "later", 30
ABOUT = "of the first paper and the thesis, found later, decided by measuring"
WHAT = ("variant", "params", "problem")  # of a launch whose counters are stored


def cpu_crossing(results: ResultSet, args: Arguments) -> Found:
    """The matrix side from which the fastest variant on a GPU, with upload and download, is faster than the fastest on the
    CPU of its host, by log-log interpolation between `sizes`; a bound where they do not bracket it."""
    here = _fastest(results.points, args, transfers=True)
    cpu = hosts.host_of(results)
    there = {} if cpu is None else _fastest(cpu.points, args, transfers=False)
    both = sorted(here.keys() & there.keys())
    if len(both) < 2:
        sides = {"times of a GPU with transfers": here, "times of the CPU of its host": there}
        missing = [what for what, known_times in sides.items() if not known_times] or ["two sizes that both have"]
        return Found([], [f"{what} ({args['form']} {args['counts']})" for what in missing])
    low, high = crossed([(size, math.log(there[size] / here[size])) for size in both])
    return Found([Value("", low, high)])


def _fastest(points: pd.DataFrame, args: Arguments, *, transfers: bool) -> dict[int, float]:
    """Shortest time by matrix side, of the variants on a GPU with transfers or of those on a CPU."""
    kind = {"backend": "cuda" if transfers else "cpu", "form": args["form"], "counts": args["counts"]}
    own = tidy.passed(points, **kind, **tidy.USUAL)
    own = own[own["left_rows"].isin(args["sizes"]) & (own["size"] == [f"{n}x{n}" for n in own["left_rows"]])]
    time = own["compute_us"] + own["upload_us"] + own["download_us"] if transfers else own["compute_us"]
    return {int(size): float(us) for size, us in time.dropna().groupby(own["left_rows"]).min().items()}


def counters(results: ResultSet, args: Arguments) -> Found:
    """Of each of `parts` the stored counter over what the paper says of it (`paper`): `counter` of the launch `of`, or the
    ratio of it to that of the launch `to`. `label` says what it is."""
    names = profiler.data()
    for part in args["parts"]:
        for key, table in (("of", "points"), ("to", "points"), ("counter", "metrics")):
            choose(key, [part[key]] if key in part else [], names[table])
    data = profiler.stored(results.folder)
    if data is None:
        return Found([], ["profiler counters of this machine (python3 -m experiments.compare.counters)"])
    launches = dict.fromkeys(part[side] for part in args["parts"] for side in ("of", "to") if side in part)
    taken = {name: data["points"].get(name, {}) for name in launches}
    absent = [name for name in launches if any(taken[name].get(key) != names["points"][name][key] for key in WHAT)]
    if absent:
        return Found([], [f"profiler counters of {', '.join(absent)} (python3 -m experiments.compare.counters)"])
    values = []
    for part in args["parts"]:
        number, base = (
            data["points"][part[side]]["counters"][part["counter"]] if side in part else 1.0 for side in ("of", "to")
        )
        measured = number / base
        values.append(
            known(f"{part['label']} {measured:.3g}, of the paper's {part['paper']:g}", measured / part["paper"])
        )
    return Found(values)


def series() -> dict[str, tuple[Choice, ...]]:
    """The classes of Table 1 as series: `<form>/<word>`, and `ours/<form>/<word>` with our variants in place of the paper's."""
    layout = table1.layout()
    return {
        f"{prefix}{form}/{layout.words[letter]}": (choice,)
        for prefix, contenders in (("", layout.contenders), ("ours/", layout.ours))
        for form, classes in contenders.items()
        for letter, choice in classes.items()
    }


def winners(rows: Rows, args: Arguments) -> Found:
    """Whether the winners of a line of Table 1 can be read in the printed order: `same` or not. `classes`: `paper` (default), or
    `ours` for the classes with our variants."""
    data = table1.layout()
    (classes,) = choose("classes", [args.get("classes", "paper")], table1.CLASSES)
    if classes not in rows.kept:
        outcome, asked = ("published", None) if rows.imported else ("passed", rows.asked)
        rows.kept[classes] = table1.cells(rows.points, outcome, asked, classes)
    table = rows.kept[classes]
    place = {"accounting": "paper", "form": args["form"], "counts": args["counts"]}
    line = table[(table[[*place]] == pd.Series(place)).all(axis=1)]
    said = table1.compare(line, data.printed[args["form"], args["counts"]])
    if line.empty:
        return Found([], [f"the classes of Table 1 at {args['form']} {args['counts']}"])
    decided = set(line.loc[line["unasked"] == "", "side"])
    unmeasured = [str(size) for size in data.sizes if size not in decided]
    order = " ".join(f"{row['side']}:{'='.join(table1.winners(row))}" for _, row in line.iterrows())
    if said == "same where measured":
        at = f"{args['form']} {args['counts']} at {' '.join(unmeasured)}"
        return Found([Value(order, word=UNDECIDED)], hints=[f"the classes of Table 1 ({at})"])
    return Found([Value(order, word=said)])


COMPUTATIONS = {**measured.COMPUTATIONS, **named(cpu_crossing, counters)}
ON_ROWS = {"winners": winners}
