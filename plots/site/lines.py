"""The answers of the chooser: a line per machine, problem, mode, precision and accounting of the plan.

Problems of the best-algorithm table have its lines (plots.tables.best_table). Modes are those of the table by mode, whose rivals were
measured side by side. Every other verified point, with fields or without, is judged by the same code.
"""

import math

import pandas as pd

from plots import floor, noise, tidy
from plots.ceilings import Ceilings, load
from plots.figures import _classes
from plots.tables import best_by_mode, best_table
from plots.tidy import CONDITION, PROBLEM, ResultSet
from xcorr.fields import Fields
from xcorr.native.variants import is_transform

# What is asked, in the order in which the page asks it.
ASKED = "machine form counts size window boundary score result more precision mode plan".split()
ANSWER = (
    *"best params time_us low_us high_us n runs tied_with runner_up runner_up_params runner_up_us contenders missing".split(),
    *"group floor_us roof device command python".split(),
)
COLUMNS = [*ASKED, *ANSWER]
KEPT, ANEW = "kept", "anew"
PLANS = {"compute": KEPT, "compute + plan": ANEW}
INPUT = "uniform"  # other inputs change neither the work nor the answer
POINT = ["variant", "params", *PROBLEM, *CONDITION]
TEXT = ["missing_families", "tied_with", "runner_up", "runner_up_params"]


def table(results: ResultSet) -> pd.DataFrame:
    """Every question that a set answers, with the answer: columns COLUMNS. Times are in microseconds."""
    found = [_plain(results), _modes(results), _others(results), *_with_fields(results)]
    lines = tidy.joined(one for one in found if len(one))
    if lines.empty:
        return pd.DataFrame(columns=COLUMNS)
    lines = lines[lines["input"] == INPUT].assign(machine=results.key)
    lines = lines.fillna(dict.fromkeys(TEXT, ""))
    fields = [Fields.of_text(one) for one in lines["fields"]]
    lines = lines.assign(
        plan=lines["accounting"].map(PLANS),
        boundary=[one.boundary for one in fields],
        score=[one.score for one in fields],
        result=[one.result for one in fields],
        more=[_more(one) for one in fields],
        missing=lines["missing_families"],
        device=["cuda:0" if one == "cuda" else "cpu" for one in lines["backend"]],
        group=[_classes.class_label(*one) for one in zip(lines["best"], lines["family"])],
    )
    asked = _dicts(lines)
    lines = lines.assign(command=[_command(one) for one in asked], python=[_python(one) for one in asked])
    places = {name: place for place, name in enumerate(best_by_mode.MODES)}
    by = ["form", "lefts", "rights", "_side", "size", "window", "fields", "precision", "_mode", "_plan"]
    keys = {"_mode": lines["mode"].map(places), "_plan": lines["plan"] == ANEW, "_side": lines["side"]}
    return tidy.ordered(lines, by, **keys)[COLUMNS].reset_index(drop=True)


def _dicts(lines: pd.DataFrame) -> list[dict[str, object]]:
    return [{str(name): value for name, value in one.items()} for one in lines.to_dict("records")]


def _more(fields: Fields) -> str:
    """The fields that have no question of their own, as in a problem's id."""
    return "/".join(f"{name}={value}" for name, value in fields.given.items() if name in ("masks", "same", "views"))


def _plain(results: ResultSet) -> pd.DataFrame:
    return _answered(best_table.of_set(results), results.feeding("best_table"), results)


def _modes(results: ResultSet) -> pd.DataFrame:
    """The other modes: what the main experiments did not measure."""
    found = best_by_mode.table(results)
    return _answered(found[found["mode"] != "stream"], results.feeding("best_by_mode"), results)


def _others(results: ResultSet) -> pd.DataFrame:
    """Problems without fields that feed neither of those tables, such as time series."""
    points = tidy.passed(results.points)
    if points.empty:
        return points
    cell = [*PROBLEM, *CONDITION]
    told = pd.concat([results.feeding(name)[cell] for name in ("best_table", "best_by_mode")])
    known = set(map(tuple, told.to_numpy().tolist()))
    mask = [tuple(one) not in known for one in points[cell].to_numpy().tolist()]
    return _judged(points[mask], results)


def _with_fields(results: ResultSet) -> list[pd.DataFrame]:
    points = tidy.passed(results.with_fields)
    if points.empty:
        return []
    return [_judged(own, results) for _, own in points.groupby("fields", sort=True)]


def _judged(points: pd.DataFrame, results: ResultSet) -> pd.DataFrame:
    """Cells with a transform and cells without one by themselves: here are problems that transforms do not compute, so that their
    absence leaves nothing undecided. Which families were not asked is not known of them."""
    cell = [*PROBLEM, *CONDITION]
    transform = points["variant"].map(is_transform).astype(bool)
    has = points.assign(_transform=transform).groupby(cell)["_transform"].transform("any") if len(points) else []
    halves = [own for _, own in points.groupby(has)] if len(points) else []
    found = (best_table.best_table(own).assign(missing_families="") for own in halves)
    return tidy.joined(_answered(one, points, results) for one in found)


def _answered(found: pd.DataFrame, points: pd.DataFrame, results: ResultSet) -> pd.DataFrame:
    """The lines of best_table with what its winner's point says: interval, family, floor."""
    if found.empty:
        return found
    own = tidy.passed(points).drop_duplicates(POINT).set_index(POINT)
    keys = pd.MultiIndex.from_frame(found.rename(columns={"best": "variant"})[POINT])
    carried = ["family", "backend", "fields", "side", "fmas", "bytes", "between_us", "between_plan_us", "low", "high"]
    found = found.assign(**{name: own[name].reindex(keys).to_numpy() for name in carried})
    ends = _intervals(found)
    return _with_floor(found.assign(low_us=ends["low"], high_us=ends["high"]), results)


def _intervals(found: pd.DataFrame) -> pd.DataFrame:
    """Ends of the interval of each time (noise.ends_us), columns `low` and `high`; the time itself where it was measured once. Times
    with a plan have the range between runs of the sum, and no percentiles of a block."""
    kept = found["accounting"] == "compute"
    points = found.assign(
        compute_us=found["time_us"],
        between_us=found["between_us"].where(kept, found["between_plan_us"]),
        low=found["low"].where(kept),
        high=found["high"].where(kept),
    )
    ends = noise.ends_us(points)
    return ends.apply(lambda column: column.fillna(found["time_us"]))


def _with_floor(found: pd.DataFrame, results: ResultSet) -> pd.DataFrame:
    """`floor_us` and `roof`, the limit that it is. NaN and "" where the floor does not count the problem: on CPUs, with fields, in
    another precision than fp32, and of calls that plan."""
    ceilings = load(results.folder)
    known = (found["backend"] == "cuda") & (found["fields"] == "") & (found["precision"] == "fp32")
    known &= found["accounting"] == "compute"
    found = found.assign(floor_us=math.nan, roof="")
    if not isinstance(ceilings, Ceilings) or not known.any():
        return found
    found.loc[known, "floor_us"] = floor.floor_us(found[known], ceilings)
    found.loc[known, "roof"] = floor.bound_by(found[known], ceilings).map(floor.ROOFS)
    return found


def _shape(line: dict[str, object], side: str) -> str:
    return f"({line[f'{side}_rows']}, {line[f'{side}_cols']})"


def _stack(line: dict[str, object], side: str) -> str:
    """The shape of the array of a side, as xcorr.correlate takes it."""
    single = line["form"] == "one-to-one" or (line["form"] == "one-to-many" and side == "left")
    matrices = "" if single else f"{line[f'{side}s']}, "
    return f"({matrices}{line[f'{side}_rows']}, {line[f'{side}_cols']})"


def _python(line: dict[str, object]) -> str:
    """The call of xcorr.correlate (docs/call.md) after a comment with the shapes of its arrays."""
    fields = Fields.of_text(str(line["fields"]))
    if fields.views != "dense":
        return _python_of_views(line)
    same = fields.same == "yes"
    shapes = [f"{side} {_stack(line, side)}" for side in ("left", *([] if same else ["right"]))]
    where = "NumPy arrays" if line["device"] == "cpu" else "arrays of PyTorch or CuPy on the GPU"
    call = ["left", "None" if same else "right"]
    # The other forms follow from the shapes.
    call += [f'form="{line["form"]}"'] if same or line["form"] == "n-to-mn" else []
    call += [] if line["window"] == "full" else [f'window="{line["window"]}"']
    call += [f'{name}="{fields.given[name]}"' for name in ("score", "boundary", "result") if name in fields.given]
    call += [f"mask_{side}=mask_{side}" for side in fields.masked_sides]
    call += [] if line["precision"] == "fp32" else [f'precision="{line["precision"]}"']
    call += [f'variant="{line["best"]}{":" if line["params"] else ""}{line["params"]}"']
    return f"# {', '.join(shapes)}: {where}\nout = xcorr.correlate({', '.join(call)})"


def _python_of_views(line: dict[str, object]) -> str:
    """The lines of the library for matrices that lie in a larger array of the host, by their offsets (docs/library.md)."""
    fields = Fields.of_text(str(line["fields"]))
    given = [f'"{line["form"]}"', f"left={_shape(line, 'left')}", f"right={_shape(line, 'right')}"]
    given += [f"lefts={line['lefts']}", f"rights={line['rights']}"]
    given += [] if line["window"] == "full" else [f'window="{line["window"]}"']
    given += [f'{name}="{value}"' for name, value in fields.given.items()]
    call = ["problem", "left"] + ([] if "same" in fields.given else ["right"])
    call += [f'variant="{line["best"]}"']
    call += [f'params="{line["params"]}"'] if line["params"] else []
    call += [] if line["precision"] == "fp32" else [f'precision="{line["precision"]}"']
    call += [f'device="{line["device"]}"', *(f"{side}_mask={side}_mask" for side in fields.masked_sides)]
    imports = "from xcorr.native.library import Library\nfrom xcorr.problem import Problem"
    return f"{imports}\nproblem = Problem({', '.join(given)})\nout = Library().correlate({', '.join(call)})"


def _command(line: dict[str, object]) -> str:
    """Files and options of scripts/xcorr; "" where it has no such problem: arrays that lie in a larger one."""
    fields = Fields.of_text(str(line["fields"]))
    if fields.views != "dense":
        return ""
    same = fields.same == "yes"
    words = ["LEFT.npy", *([] if same else ["RIGHT.npy"]), "--form", str(line["form"])]
    words += [] if line["window"] == "full" else ["--window", str(line["window"])]
    for name in ("boundary", "score", "result"):
        words += [f"--{name}", fields.given[name]] if name in fields.given else []
    words += ["--same"] if same else []
    for side in fields.masked_sides:
        words += [f"--mask-{side}", f"{side.upper()}_MASK.npy"]
    words += ["--variant", str(line["best"])]
    words += ["--params", f'"{line["params"]}"'] if line["params"] else []
    words += [] if line["precision"] == "fp32" else ["--precision", str(line["precision"])]
    words += ["--device", str(line["device"])]
    words += ["--output", "OUT.npy"] if fields.result == "surface" else ["--peaks", "PEAKS.csv"]
    return " ".join(words)
