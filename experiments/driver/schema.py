"""Typed experiments (experiments/<source>/*.toml), presets and rates.

The message for a mistake names the file, the key and the allowed values.
"""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from experiments import folders
from experiments.folders import FOLDER
from xcorr.choice import speeds
from xcorr.errors import UserError, nearest
from xcorr.fields import NAMES as FIELDS
from xcorr.fields import PLAIN, Fields
from xcorr.files import load_toml
from xcorr.native.precisions import PRECISIONS
from xcorr.paths import ROOT
from xcorr.problem import FORMS, Problem, parse_counts, parse_size

# mypy does not accept a Literal of a name.
Form = Literal[FORMS]  # type: ignore[valid-type]
Mode = Literal["stream", "latency", "graph", "cold", "paper"]
Precision = Literal[PRECISIONS]  # type: ignore[valid-type]
Input = Literal["uniform", "zero-mean", "integer"]
Size = StrictInt | StrictStr
Number = StrictInt | StrictFloat
Texts = StrictStr | list[StrictStr] | None  # one or several values of a field of a problem or of a window


class Base(BaseModel):
    """A table of a TOML file without unknown keys."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, raw: Any) -> Any:
        for key in raw if isinstance(raw, Mapping) else ():
            if key not in cls.model_fields:
                hint = {"key": key, "nearest": nearest(key, cls.model_fields)}
                raise PydanticCustomError("unknown_key", "{key}: unknown; {nearest}", hint)
        return raw


class WithFields(Base):
    """The fields of problems (xcorr/fields.py). All combinations of several values are measured."""

    boundary: Texts = None
    score: Texts = None
    masks: Texts = None
    result: Texts = None
    same: Texts = None
    views: Texts = None


class Problems(WithFields):
    """A grid of sizes x counts x windows x fields. All but sizes and counts replace those of the experiment."""

    sizes: list[Size]
    counts: list[StrictStr]
    form: Form | None = None
    window: Texts = None
    modes: list[Mode] | None = None


class Restriction(Base):
    """The part of an experiment that a preset measures; a missing key restricts nothing.

    `params`: values of parameters. A point without such a parameter is kept. `best`: the number of fastest points, by
    existing rows, that each variant keeps on each problem, beside the points that `points` names by some of their
    parameters, by variant. In a file `points` may be the path of a JSON file with this table.
    """

    sizes: list[Size] | None = None
    counts: list[StrictStr] | None = None
    params: dict[str, list[Size]] | None = None
    best: StrictInt | None = None
    points: dict[str, list[StrictStr]] = {}


class Experiment(WithFields):
    title: StrictStr
    form: Form
    feeds: list[StrictStr]
    problems: list[Problems]
    variants: list[StrictStr] = ["*"]
    precisions: list[Precision] = ["fp32"]
    modes: list[Mode] = ["stream"]
    window: Texts = "full"
    input: Input = "uniform"
    extended: StrictBool = False  # left out by the preset evaluation, measured by extended
    study: StrictBool = False  # a side experiment: its rows never replace those of other experiments
    energy_s: Number = 0  # seconds over which the energy of each point is measured; 0: it is not measured
    # By variant, some parameters of points: of those that have them the fastest is drawn by a figure of a paper that no
    # figures.toml describes (shown.py).
    drawn: dict[str, list[StrictStr]] = {}
    presets: dict[str, Restriction] = {}


class Limits(Base):
    cpu: Number
    cuda: Number


class Preset(Base):
    repetitions: StrictInt
    min_time_s: Number
    noise: Number | None = None  # repetitions go on until they are as quiet or max_time_s is over
    max_time_s: Number | None = None  # of all repetitions of a point; with noise
    max_predicted_s: Limits
    max_point_s: Limits | None = None
    min_timeout_s: Number = 60
    problems_a_process: StrictInt = 1  # of one variant; a process for a GPU takes almost a second to start
    best: StrictInt | None = None  # for experiments without their own `best` for this preset
    borrow: StrictBool = False  # use the best points of published sets where this machine has no rows
    whole_figures: StrictBool = False  # points that a figure of a paper or a claim needs have no limit
    processes: StrictInt = 1  # that measure each point of a block, for the stage final
    brief: StrictBool = False  # one plan and one verification of a point, for choosing alone
    block_s: Number | None = None  # predicted seconds of a block; the preset has the stages select and final


# In the order of thoroughness. `select` is the first stage of `evaluation`.
PRESETS = ("select", "smoke", "quick", "extended", "paper", "paper-full", "evaluation")
SELECT, EVALUATION, EXTENDED = "select", "evaluation", "extended"
STANDS_IN = {SELECT: "quick", EVALUATION: "quick", EXTENDED: "quick"}  # whose restriction of an experiment is taken
Presets = create_model("Presets", __base__=Base, **dict.fromkeys(PRESETS, (Preset, ...)))  # type: ignore[call-overload]


class Rate(Base):
    """Speed of a variant: work per second of a CPU core or of the device, shortest launch, time of a plan.

    Work is the number of FMAs for definition-based variants and N^2 log N, summed over the transforms, for FFT-based
    ones.
    """

    per_core: Number | None = None
    per_s: Number | None = None
    launch_us: Number
    plan_s: Number = 0


class Verification(Base):
    """Cost of the verification of a point on a backend."""

    fma_per_s: Number
    definition_limit_fma: Number
    fft_per_s: Number
    output_per_s: Number
    field_output_per_s: Number
    process_s: Number
    point_s: Number


class ScoreCost(Base):
    """Cost of a score relative to the sum of products: a factor of its time, and launches."""

    factor: Number
    launch_us: Number


class ReductionRate(Rate):
    """Outputs per second of all surfaces, and of one surface where one block reduces it."""

    per_surface_s: Number | None = None


class OncePlan(Base):
    """Time of a plan that is made once: microseconds, and elements of its transforms per second."""

    us: Number | None = None
    per_s: Number | None = None
    where: dict[str, Number] = {}  # microseconds, by parameters


class Rates(Base):
    """Speeds of xcorr/choice/speeds.toml and costs of rates.toml."""

    classes: dict[str, dict[str, Rate]]
    families: dict[str, dict[str, dict[str, Rate]]] = {}
    reduction: dict[str, ReductionRate] = {}  # of surfaces to records, by backend
    plans_once: dict[str, dict[str, OncePlan]] = {}  # by backend and class; `variants` by id
    scores: dict[str, dict[str, ScoreCost]] = {}  # of sums of products, by backend and class
    variants: dict[str, Rate] = {}
    verification: dict[str, Verification]


ALLOWED = {
    "form": "one of " + ", ".join(FORMS),
    "modes": "a list of stream, latency, graph, cold, paper",
    "precisions": "a list of " + ", ".join(PRECISIONS),
    "input": "uniform, zero-mean or integer",
    "sizes": 'a list of integers or strings such as "36x90" or "8x8:32x64"',
    "counts": 'a list of strings "LEFTS:RIGHTS"',
    "feeds": "a list of names of figures and tables",
    "variants": 'a list of variant ids, families or "*"',
    "problems": "[[problems]] tables with sizes and counts",
    "presets": "[presets.<name>] tables with sizes, counts, params, best or points",
    **dict.fromkeys(("best", "problems_a_process", "processes", "repetitions"), "a positive integer"),
    "points": 'lists of points such as "left_rows=4;overlaps_per_thread=4" by variant',
    "drawn": 'lists of points such as "threads=1" by variant, "" for all of them',
    "energy_s": "a number of seconds",
    **dict.fromkeys(("study", "extended", "borrow", "whole_figures"), "true or false"),
    "params": "a list of values for each parameter, as in { warps_per_block = [4] }",
    "title": "a string",
    "window": '"full", "valid" or "sy:a..b,sx:c..d", or a list of them',
    **dict.fromkeys(FIELDS, 'a value of the field or a list of them, as "zncc" or ["product", "zncc"]'),
}
# Range of each number, and whether it includes the lower end. The upper ends keep sums and deadlines finite.
RANGES: dict[str, tuple[float, float, bool]] = {
    **dict.fromkeys(("min_time_s", "max_time_s"), (0, 86400, False)),
    "noise": (0, 0.999, False),
    "energy_s": (0, 86400, True),
    **dict.fromkeys(
        ("repetitions", "problems_a_process", "processes", "best", "min_timeout_s", "block_s"), (0, 1e6, False)
    ),
    **dict.fromkeys(("max_predicted_s", "max_point_s"), (0, 1e9, False)),
    **dict.fromkeys(
        ("per_core", "per_s", "fma_per_s", "fft_per_s", "output_per_s", "field_output_per_s"), (0, 1e18, False)
    ),
    **dict.fromkeys(("launch_us", "plan_s", "process_s", "point_s", "definition_limit_fma"), (0, 1e18, True)),
}


def _readable(*path: Any) -> str:
    return ".".join(map(str, path)).replace("problems.", "problems.#")


def _message(error: Mapping[str, Any], raw: Any) -> str:
    """Key path, cause and way out of a validation error."""
    if error["type"] == "unknown_key":
        return f"key {_readable(*error['loc'], error['msg'])}"
    path: list[Any] = []
    value = raw
    for part in error["loc"]:  # the rest of a location names branches of a union
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            break
        path.append(part)
    if error["type"] == "missing":
        key = error["loc"][len(path)]
        return f"key {_readable(*path, key)}: missing; give {ALLOWED.get(str(key), 'a value')}"
    known = [ALLOWED[part] for part in error["loc"] if part in ALLOWED]
    return f"key {_readable(*path)}: {value!r} is not allowed; give {(known or ['a number'])[-1]}"


def parse(model: type[Any], raw: Any, path: Path) -> Any:
    """`raw` as a model. UserError for the first mistake; unknown keys come first."""
    try:
        return model(**raw)
    except ValidationError as error:
        errors = error.errors()
        first = next((one for one in errors if one["type"] == "unknown_key"), errors[0])
        raise UserError(f"{path}: {_message(first, raw)}") from None


def _check_ranges(raw: Any, path: Path, place: tuple[str, ...] = ()) -> None:
    """UserError for the first number outside the range of its key. NaN is in no range."""
    for key, value in raw.items():
        here = (*place, key)
        if isinstance(value, Mapping):
            _check_ranges(value, path, here)
        name = next((part for part in reversed(here) if part in RANGES), None)
        if name is None or isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        low, high, closed = RANGES[name]
        if not (low <= value <= high) or (value == low and not closed):
            must = "not be negative" if closed else "be positive"
            shown = value if isinstance(value, float) or abs(value) < 10**20 else "that integer"
            range_of = f"it must {must} and be at most {high:g}"
            raise UserError(f"{path}: key {'.'.join(here)}: {shown} is not allowed; {range_of}")


def restriction(experiment: Experiment, preset: str) -> Restriction:
    """The part of an experiment that a preset measures."""
    return experiment.presets.get(preset) or experiment.presets.get(STANDS_IN.get(preset, ""), Restriction())


def grid(experiment: Experiment, preset: str) -> list[Problem]:
    """The problems of an experiment under a preset, without duplicates, by ascending work."""
    return list(modes_by_problem(experiment, preset))


def modes_by_problem(experiment: Experiment, preset: str) -> dict[Problem, list[str]]:
    """The problems of `grid` with their modes, which are those of all blocks with the problem."""
    limit = restriction(experiment, preset)
    sizes = None if limit.sizes is None else {parse_size(size) for size in limit.sizes}
    counts = None if limit.counts is None else {parse_counts(pair) for pair in limit.counts}
    found: dict[Problem, list[str]] = {}
    for block in experiment.problems:
        windows = _listed(experiment.window if block.window is None else block.window)
        given = _fields(block, experiment)
        for size, pair, window, fields in itertools.product(block.sizes, block.counts, windows, given):
            shapes, numbers = parse_size(size), parse_counts(pair)
            if (sizes is not None and shapes not in sizes) or (counts is not None and numbers not in counts):
                continue
            problem = Problem(block.form or experiment.form, *shapes, *numbers, window, fields)
            modes = experiment.modes if block.modes is None else block.modes
            found[problem] = list(dict.fromkeys([*found.get(problem, []), *modes]))
    return dict(sorted(found.items(), key=lambda item: (item[0].fmas, item[0].id)))


def _fields(block: Problems, experiment: Experiment) -> list[Fields]:
    """All combinations of the values of a block's fields."""
    texts = []
    for name in FIELDS:
        own = getattr(block, name)
        given = getattr(experiment, name) if own is None else own
        texts.append([getattr(PLAIN, name)] if given is None else _listed(given))
    return [Fields(*values) for values in itertools.product(*texts)]


def _listed(given: Texts) -> list[str]:
    return [given] if isinstance(given, str) else given or []


def _resolve_points(raw: dict[str, Any], path: Path) -> None:
    """Replaces `points` that name a JSON file, a path below the root of the project, by its content."""
    presets = raw.get("presets")
    for name, preset in presets.items() if isinstance(presets, dict) else ():
        named = preset.get("points") if isinstance(preset, dict) else None
        if not isinstance(named, str):
            continue
        try:
            preset["points"] = json.loads((ROOT / named).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            way_out = "name a JSON file of points by variant below the root of the project"
            cause = f"{named} cannot be read ({error})"
            raise UserError(f"{path}: key presets.{name}.points: {cause}; {way_out}") from error


def load_experiment(path: Path) -> Experiment:
    """An experiment. UserError for an illegal problem, an unknown preset and other mistakes."""
    raw = load_toml(path)
    _resolve_points(raw, path)
    experiment: Experiment = parse(Experiment, raw, path)
    _check_ranges({key: value for key, value in raw.items() if key != "presets"}, path)
    for name, limit in experiment.presets.items():
        if name not in PRESETS:
            raise UserError(f"{path}: key presets.{name}: unknown; {nearest(name, PRESETS)}")
        if limit.best is not None and limit.best < 1:
            raise UserError(f"{path}: key presets.{name}.best: {limit.best} is not allowed; give {ALLOWED['best']}")
        if limit.points and limit.best is None:
            raise UserError(f"{path}: key presets.{name}.points: without best it would change nothing; add best")
    for key in ("feeds", "problems", "variants", "precisions"):
        if not getattr(experiment, key):
            raise UserError(f"{path}: key {key}: empty; give {ALLOWED[key]}")
    for place, table in (("", experiment), *((f"problems.#{i}.", one) for i, one in enumerate(experiment.problems))):
        for key in ("window", "modes", *FIELDS):
            if getattr(table, key) == []:
                raise UserError(f"{path}: key {place}{key}: empty; give {ALLOWED[key]}")
    try:
        everything = grid(experiment, "")
        shapes = {(one.left, one.right) for one in everything}
        numbers = {(one.lefts, one.rights) for one in everything}
        for name, limit in experiment.presets.items():
            if not grid(experiment, name):
                raise UserError(f"key presets.{name}: keeps no problem; name sizes that exist")
            absent = [("sizes", size) for size in limit.sizes or () if parse_size(size) not in shapes]
            absent += [("counts", pair) for pair in limit.counts or () if parse_counts(pair) not in numbers]
            for key, text in absent:
                raise UserError(f"key presets.{name}.{key}: {text} is in no problem; remove it")
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return experiment


def load_experiments(folder: Path = FOLDER) -> dict[str, Experiment]:
    """The experiments of a folder and of its direct subfolders by name (file stem), sorted."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give a folder of experiment files")
    paths = folders.experiments(folder)
    if not paths:
        raise UserError(f"{folder}: holds no experiment; add a TOML file")
    return {name: load_experiment(path) for name, path in paths.items()}


def feeds(folder: Path = FOLDER) -> dict[str, list[str]]:
    """By name of an experiment, the figures and tables that it feeds."""
    said = {name: load_toml(path).get("feeds") for name, path in folders.experiments(folder).items()}
    return {name: [str(one) for one in names] for name, names in said.items() if isinstance(names, list)}


def studies(folder: Path = FOLDER) -> set[str]:
    """Names of the experiments of a folder with `study = true`."""
    paths = folders.experiments(folder).items()
    return {name for name, path in paths if load_toml(path).get("study") is True}


def _of_folder(folder: Path, name: str) -> Path:
    """The file of `folder`; the shipped one where it has none."""
    return folder / name if (folder / name).exists() else FOLDER / name


def load_presets(folder: Path = FOLDER) -> dict[str, Preset]:
    """The presets of `folder` by name; the shipped ones where it has none."""
    path = _of_folder(folder, "presets.toml")
    raw = load_toml(path)
    presets = parse(Presets, raw, path)
    _check_ranges(raw, path)
    return {name: getattr(presets, name) for name in PRESETS}


def load_rates(folder: Path = FOLDER) -> Rates:
    """The shipped speeds and costs. Tables in rates.toml of `folder` replace the shipped tables."""
    path = _of_folder(folder, "rates.toml")
    raw = {**speeds.shipped(), **load_toml(FOLDER / "rates.toml"), **load_toml(path)}
    rates: Rates = parse(Rates, raw, path)
    _check_ranges(raw, path)
    for backend in ("cpu", "cuda"):
        for algorithm_class in ("definition", "fft"):
            if algorithm_class not in rates.classes.get(backend, {}):
                raise UserError(f"{path}: key classes.{backend}.{algorithm_class}: missing; give a table of rates")
        if backend not in rates.verification:
            raise UserError(f"{path}: key verification.{backend}: missing; give a table of rates")
    return rates
