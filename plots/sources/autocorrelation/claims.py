"""Computations on autocorrelations of images. Each takes the set and its arguments of claims.toml.

A side names points of the image of the experiment `autocorrelation`: `variants` (default: any), `params` (values that
parameters must have), `threads` (`1` or `all`, of a CPU), `radius`, `plane` (default: half), `image` (rows x columns,
default 1500x750), `images` (how many, default 1). Of them the fastest counts. What a set of a GPU has no points of is taken from the set of its host's CPU.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from plots import real
from plots.sources.autocorrelation.tables import autocorrelation
from plots.tables import selection
from plots.tables.claims.values import UNDECIDED, Arguments, Found, Value, known, named, quotient
from plots.tables.hosts import host_of
from plots.tables.selection import of_side
from plots.tidy import ResultSet, select
from xcorr.errors import choose

CLASS, ORDER = "image", 20
ABOUT = "about autocorrelations of images, decided by measuring"
METRICS = {"time": "time_us", "total": "total_us", "frames": "frames_per_s", "rate": "tflops"}
COMMAND = "python3 -m experiments.inputs.autocorrelation"


def points(results: ResultSet, side: Mapping[str, Any]) -> pd.DataFrame:
    """The points of a side, the fastest first. UserError for an unknown key."""
    found, host = _own_points(results, side), host_of(results)
    return _own_points(host, side) if found.empty and host else found


def _own_points(results: ResultSet, side: Mapping[str, Any]) -> pd.DataFrame:
    image = {"size": side.get("image", "1500x750"), "lefts": side.get("images", 1), "radius": side["radius"]}
    found = select(autocorrelation.every_point(results), plane=side.get("plane", autocorrelation.HALF), **image)
    found = of_side(found, side, ("radius", "plane", "image", "images"))
    return found.sort_values("time_us", kind="stable") if len(found) else found


def describe(side: Mapping[str, Any]) -> str:
    """What rows a side needs, in words."""
    plane = " of the whole plane" if side.get("plane") == autocorrelation.WHOLE else ""
    count = f"{side['images']} images of " if "images" in side else ""
    return f"{selection.describe(side, 'a variant')} at {count}{side.get('image', '1500x750')}, R = {side['radius']}{plane}"


def _number(results: ResultSet, side: Mapping[str, Any], metric: str) -> float | None:
    choose("metric", [metric], METRICS)
    found = points(results, side)
    return None if found.empty else float(found.iloc[0][METRICS[metric]])


def ratio(results: ResultSet, args: Arguments) -> Found:
    """`metric` (default: time) of `of` over that of `to`."""
    return quotient(lambda side: _number(results, side, args.get("metric", "time")), describe, args)


def ratios(results: ResultSet, args: Arguments) -> Found:
    """ratio of each of `pairs`, which have `label`, `of` and `to`."""
    found = [(one["label"], ratio(results, {**args, **one})) for one in args["pairs"]]
    values = [known(label, seen.values[0].low) for label, seen in found if seen.values]
    return Found(values, [text for _, seen in found for text in seen.missing])


def value(results: ResultSet, args: Arguments) -> Found:
    number = _number(results, args["of"], args["metric"])
    return Found([], [describe(args["of"])]) if number is None else Found([known("", number)])


def saturation(results: ResultSet, args: Arguments) -> Found:
    """`grows, then saturates` if the rate of `of` rises from each of `radii` to the next and the last step is below `step`; else
    `grows` or `falls`. Speed-ups over a program whose time is in proportion to the work rise as the rate does."""
    rates, missing = {}, []
    for radius in args["radii"]:
        side = {**args["of"], "radius": radius}
        number = _number(results, side, "rate")
        if number is None:
            missing.append(describe(side))
        else:
            rates[radius] = number
    if missing:
        return Found([], missing)
    steps = [after / before for before, after in zip(list(rates.values()), list(rates.values())[1:])]
    word = "falls" if min(steps[:-1]) < 1 else "grows, then saturates" if steps[-1] < args["step"] else "grows"
    return Found([Value(", ".join(f"R = {r}: {rate:.3g} TFLOP/s" for r, rate in rates.items()), word=word)])


def _rows(results: ResultSet, case: str) -> pd.DataFrame | Found:
    data = real.load(results.folder, real.AUTOCORRELATION)
    if isinstance(data, str):
        return Found([], [f"{data} ({COMMAND})"])
    rows = data.rows[data.rows["case"] == case]
    return rows if len(rows) else Found([], [f"{real.AUTOCORRELATION}: no rows of case {case} ({COMMAND})"])


def loop_ratio(results: ResultSet, args: Arguments) -> Found:
    """Time of the array-language loop over that of `variant`, both of one call."""
    rows, host = _rows(results, "loop"), host_of(results)
    if host and (isinstance(rows, Found) or args["variant"] not in set(rows["variant"])):
        rows = _rows(host, "loop")
    if isinstance(rows, Found):
        return rows
    seconds = rows.set_index("variant")["seconds"]
    if args["variant"] not in seconds:
        return Found([], [f"{args['variant']} beside the loop ({COMMAND})"])
    loop = seconds[[name for name in seconds.index if " " in name]]  # no id has a space
    return Found([known("", float(loop.iloc[0] / seconds[args["variant"]]))])


def errors_ratio(results: ResultSet, args: Arguments) -> Found:
    """SD of the relative error of the length from the spectrum over that of R_max, at each of `wavelengths`."""
    rows = _rows(results, "truth")
    if isinstance(rows, Found):
        return rows
    rows, values, missing = rows[rows["mean"] == "removed"], [], []
    for wavelength in args["wavelengths"]:
        own = rows[rows["wavelength"] == wavelength]
        spread = {name: (own[name] / own["known"]).std(ddof=1) for name in ("spectral", "r_max")}
        if len(own) < 2 or not spread["r_max"] > 0:
            missing.append(f"images of wavelength {wavelength:g}")
        else:
            values.append(known(f"wavelength {wavelength:g}", float(spread["spectral"] / spread["r_max"])))
    return Found(values, missing)


def spectral_place(results: ResultSet, args: Arguments) -> Found:
    """Mean over the images of the place of the spectral peak, in cycles over the side L, times R_max / L."""
    rows = _rows(results, "truth")
    if isinstance(rows, Found):
        return rows
    rows = rows[rows["mean"] == "removed"]
    side = rows[["rows", "cols"]].min(axis=1)
    return Found([known("", float((rows["index"] * rows["r_max"] / side).mean()))])


def largest_difference(results: ResultSet, args: Arguments) -> Found:
    """The largest difference of R_max between the variants on a frame, in pixels."""
    rows = _rows(results, "growth")
    if isinstance(rows, Found):
        return rows
    if rows["variant"].nunique() < 2:
        return Found([Value("", word=UNDECIDED)], ["several variants on one series"])
    lengths = rows.groupby("seed")["r_max"]
    return Found([known(f"{rows['variant'].nunique()} variants", float((lengths.max() - lengths.min()).max()))])


COMPUTATIONS = named(ratio, ratios, value, saturation, loop_ratio, errors_ratio, spectral_place, largest_difference)
