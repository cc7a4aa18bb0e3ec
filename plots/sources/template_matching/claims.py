"""Computations on template matching for claims of the paper of the sliding window. Each takes the set and its arguments of claims.toml.

A side names points of the paper's patients (experiments/template_matching/baselines.toml): `variants` or `backend` with `threads`, `params`
(values that parameters must have). Of them the fastest by `metric` counts: `time`, or `total` with transfers (ABOUT of
plots/sources/template_matching/tables/template_matching.py). What a set of a GPU has no points of is taken from the set of its host's CPU.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from plots.sources.template_matching.tables import template_matching, template_passes
from plots.tables.claims.values import Arguments, Found, Value, known, named
from plots.tables.hosts import host_of
from plots.tables.selection import describe, of_side
from plots.tidy import ResultSet
from xcorr.errors import choose
from xcorr.native.variants import assignments

CLASS, ORDER = "template", 40
ABOUT = "about template matching, decided by measuring"
METRICS = {"time": "time_us", "total": "total_us"}
PHASES = {"frames": template_passes.of_frames, "templates": template_passes.of_templates}  # microseconds of a point
FLOAT_BYTES = 4


def _patients(args: Arguments) -> list[template_matching.Patient]:
    """Those of `patients` (default: all)."""
    names = template_matching.patients()
    return [names[name] for name in choose("patient", args.get("patients", names), names)]


def _column(args: Arguments) -> str:
    (metric,) = choose("metric", [args.get("metric", "time")], METRICS)
    return METRICS[metric]


def _points(every: pd.DataFrame, side: Mapping[str, Any], patient: str, templates: int, column: str) -> pd.DataFrame:
    """The points of a side, the fastest first."""
    found = of_side(template_matching.of_patient(every, patient, templates), side)
    return found.sort_values(column, kind="stable") if len(found) else found


def _describe(side: Mapping[str, Any], patient: str, templates: int) -> str:
    named = describe(side, f"a variant on a {side.get('backend', '').upper()}")
    return f"{named} with {templates} templates of {patient}"


def _ratios(results: ResultSet, args: Arguments) -> tuple[dict[str, float], list[str]]:
    column, templates, host = _column(args), args["templates"], host_of(results)
    sets = [template_matching.every_point(one) for one in (results, host) if one]
    ratios, missing = {}, []
    for patient in _patients(args):
        numbers = []
        for side in (args["of"], args["to"]):
            sides = [_points(every, side, patient.name, templates, column) for every in sets]
            found = next((one for one in sides if len(one)), None)
            if found is None:
                missing.append(_describe(side, patient.name, templates))
            else:
                numbers.append(float(found.iloc[0][column]))
        if len(numbers) == 2:
            ratios[patient.name] = numbers[0] / numbers[1]
    return ratios, missing


def ratio(results: ResultSet, args: Arguments) -> Found:
    """`metric` of `of` over that of `to`, for each of `patients`, with so many `templates`."""
    ratios, missing = _ratios(results, args)
    return Found([known(name, one) for name, one in ratios.items()], missing)


def rank(results: ResultSet, args: Arguments) -> Found:
    """Rank correlation of `ratio` with the area of the template."""
    ratios, missing = _ratios(results, args)
    if missing or len(ratios) < 3:
        return Found([], missing or ["three patients"])
    areas = pd.Series({one.name: one.area for one in _patients(args)})
    return Found([known(f"{len(ratios)} patients", float(pd.Series(ratios).rank().corr(areas.rank())))])


def share(results: ResultSet, args: Arguments) -> Found:
    """Share of the passes over templates (`phase`: templates) or frames in the time of both, of the fastest point of `of`."""
    found, missing = _phases(results, args, args["of"], args["templates"])
    own, other = (PHASES[name] for name in sorted(PHASES, key=lambda name: name != args["phase"]))
    return Found([known(name, own(one) / (own(one) + other(one))) for name, one in found.items()], missing)


def growth(results: ResultSet, args: Arguments) -> Found:
    """Time of a phase with the second number of `templates` over that with the first, at the point that is fastest with the
    second."""
    few, many = args["templates"]
    found, missing = _phases(results, args, args["of"], many)
    time, values = PHASES[args["phase"]], []
    for name, one in found.items():
        same = {**args["of"], "params": assignments(one["params"])}
        first, absent = _phases(results, {**args, "patients": [name]}, same, few)
        missing += absent
        values += [known(name, time(one) / time(base)) for base in first.values()]
    return Found(values, missing)


def _phases(
    results: ResultSet, args: Arguments, side: Mapping[str, Any], templates: int
) -> tuple[dict[str, pd.Series], list[str]]:
    choose("phase", [args["phase"]], PHASES)
    every, found, missing = template_matching.every_point(results), {}, []
    for patient in _patients(args):
        points = _points(every, side, patient.name, templates, METRICS["time"])
        points = points[[template_passes.has_phases(one) for _, one in points.iterrows()]] if len(points) else points
        if points.empty:
            missing.append("phases of " + _describe(side, patient.name, templates))
        else:
            found[patient.name] = points.iloc[0]
    return found, missing


def fitting(results: ResultSet, args: Arguments) -> Found:
    """How many of the patients have template and region of interest, in float32, in so many KiB of shared memory."""
    patients = template_matching.patients().values()
    bytes_of = [FLOAT_BYTES * (one.area + one.frame[0] * one.frame[1]) for one in patients]
    return Found([known(f"{kib} KiB", sum(one <= 1024 * kib for one in bytes_of)) for kib in args["kib"]])


def transforms(results: ResultSet, args: Arguments) -> Found:
    """`efficient` where a verified `to`, a transform, is faster than `of`; else `slow`. A patient without rows of `to` is left out."""
    ratios, missing = _ratios(results, args)
    if not ratios:
        return Found([], missing)
    return Found(
        [Value(f"{name} {one:.3g} times", word="efficient" if one > 1 else "slow") for name, one in ratios.items()]
    )


def fastest(results: ResultSet, args: Arguments) -> Found:
    """The value of the parameter `parameter` at the fastest point of `of`, for each patient; `values` must have been measured."""
    every, values, missing = template_matching.every_point(results), [], []
    for patient in _patients(args):
        found = _points(every, args["of"], patient.name, args["templates"], METRICS["time"])
        seen = [assignments(params).get(args["parameter"], "") for params in found["params"]] if len(found) else []
        absent = [str(one) for one in args["values"] if str(one) not in seen]
        if absent:
            side = {**args["of"], "params": {args["parameter"]: "|".join(absent)}}
            missing.append(_describe(side, patient.name, args["templates"]))
        else:
            values.append(known(patient.name, float(seen[0])))
    return Found(values, missing)


def registers(results: ResultSet, args: Arguments) -> Found:
    """Registers of the generic kernel over those of `of`, for each value of `parameter` and each patient."""
    every, values, missing = template_matching.every_point(results), [], []
    for patient in _patients(args):
        found = _points(every, args["of"], patient.name, args["templates"], METRICS["time"])
        found = found.dropna(subset=["registers"]) if len(found) else found
        if found.empty:
            missing.append("registers of " + _describe(args["of"], patient.name, args["templates"]))
            continue
        seen: dict[str, float] = {}
        for params, one in zip(found["params"], found["registers"]):
            seen.setdefault(assignments(params).get(args["parameter"], ""), float(one))
        values += [
            known(name, template_matching.data()["registers"]["generic"] / one) for name, one in sorted(seen.items())
        ]
    return Found(values, missing)


def paid(results: ResultSet, args: Arguments) -> Found:
    """The time of the fastest point of `of` over that of `to`, which is compiled at run time, of the parameters that both were measured with:
    labels say after how many calls the compilation has paid."""
    every, values, missing = template_matching.every_point(results), [], []
    for patient in _patients(args):
        sides = [_points(every, args[key], patient.name, args["templates"], METRICS["time"]) for key in ("of", "to")]
        generic = template_matching.with_params_of(sides[0], sides[1])
        compiled = template_matching.with_params_of(sides[1], sides[0])
        if generic.empty or compiled.empty:
            which = args["of" if sides[0].empty or len(sides[1]) else "to"]
            missing.append(_describe(which, patient.name, args["templates"]))
            continue
        best = compiled.iloc[0]
        time = float(best[METRICS["time"]])
        saved = float(generic.iloc[0][METRICS["time"]]) - time
        after = f"pays after {float(best['compile_us']) / saved:.2g} calls" if saved > 0 else "never pays"
        values.append(known(f"{patient.name}, {after}", 1 + saved / time))
    return Found(values, missing)


COMPUTATIONS = named(ratio, rank, share, growth, fitting, transforms, fastest, registers, paid)
