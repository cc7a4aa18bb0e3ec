"""Computations on the set of a machine for claims of the first paper and the thesis that were found later. Each takes the set
and its arguments of claims.toml."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.compare import counters as profiler
from plots import tidy
from plots.tables.best_table import USUAL
from plots.tables.claims.measured import crossed
from plots.tables.claims.values import Found, Value, known
from plots.tidy import ResultSet
from xcorr.errors import UserError, nearest
from xcorr.paths import RESULTS

Arguments = Mapping[str, Any]
WHAT = ("variant", "params", "problem")  # of a launch whose counters are stored


def cpu_crossing(results: ResultSet, args: Arguments) -> Found:
    """The matrix side from which the fastest variant on a GPU, with upload and download, is faster than the fastest on the
    CPU of the published set `cpu`, by log-log interpolation between `sizes`; a bound where they do not bracket it."""
    here = _fastest(results.points, args, transfers=True)
    folder = next(
        (path for path in (results.folder.parent, RESULTS / "published") if (path / args["cpu"]).is_dir()), None
    )
    there = {} if folder is None else _fastest(_points_of(folder / args["cpu"]), args, transfers=False)
    both = sorted(here.keys() & there.keys())
    place = f"{args['form']} {args['counts']}"
    missing = [
        f"{what} ({place})"
        for what, known_times in (("times of a GPU with transfers", here), (f"times of {args['cpu']}", there))
        if not known_times
    ]
    if len(both) < 2:
        return Found([], missing or [f"two sizes that both have ({place})"])
    low, high = crossed([(size, math.log(there[size] / here[size])) for size in both])
    return Found([Value("", low, high)])


@lru_cache(maxsize=2)
def _points_of(folder: Path) -> pd.DataFrame:
    return tidy.load(folder, folder.name, "published").points


def _fastest(points: pd.DataFrame, args: Arguments, *, transfers: bool) -> dict[int, float]:
    """Shortest time by matrix side, of the variants on a GPU with transfers or of those on a CPU."""
    own = points[(points["outcome"] == "passed") & (points["backend"] == ("cuda" if transfers else "cpu"))]
    for name, value in USUAL.items():
        own = own[own[name] == value]
    own = own[(own["form"] == args["form"]) & (own["counts"] == args["counts"])]
    own = own[own["left_rows"].isin(args["sizes"]) & (own["size"] == [f"{n}x{n}" for n in own["left_rows"]])]
    time = own["compute_us"] + own["upload_us"] + own["download_us"] if transfers else own["compute_us"]
    return {int(size): float(us) for size, us in time.dropna().groupby(own["left_rows"]).min().items()}


def counters(results: ResultSet, args: Arguments) -> Found:
    """Of each of `parts` the stored counter over what the paper says of it (`paper`): `counter` of the launch `of`, or the
    ratio of it to that of the launch `to`. `label` says what it is."""
    names = profiler.data()
    for part in args["parts"]:
        for key, table in (("of", "points"), ("to", "points"), ("counter", "metrics")):
            if key in part and part[key] not in names[table]:
                raise UserError(f"{key} {part[key]}: unknown; {nearest(part[key], names[table])}")
    data = profiler.stored(results.folder)
    if data is None:
        return Found([], ["profiler counters of this machine (python3 -m experiments.compare.counters)"])
    for name in {part[side] for part in args["parts"] for side in ("of", "to") if side in part}:
        taken = data["points"].get(name, {})
        if {key: taken.get(key) for key in WHAT} != {key: names["points"][name][key] for key in WHAT}:
            return Found([], [f"profiler counters of {name} (python3 -m experiments.compare.counters)"])
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


COMPUTATIONS = {one.__name__: one for one in (cpu_crossing, counters)}
