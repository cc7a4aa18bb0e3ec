"""Which points figures and claims show: read from figures.toml, claims.toml and Table 1 of the sources, and from `drawn` of experiments.

What is drawn is the best of each variant on each problem, and beyond that the groups that are found here: the points of a curve of
a figure or of a side of a claim, of which the fastest is shown, and points that a claim pairs, which are all shown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from experiments import folders
from experiments.driver.points import Unit
from xcorr.fields import PLAIN
from xcorr.files import load_toml
from xcorr.native.variants import assignments
from xcorr.problem import Shape, parse_size

NO_FIGURES = ("selections", "drawn_by")  # tables of figures.toml: named selections, and data of modules that draw
PROBLEM = ("form", "counts", "rights", "variant")  # keys of `where`; every other key is a parameter
SIZES = (16, 32, 64, 128, 256)  # of a figure that names none
# Arguments of claims that are names of parameters, the second beside the first: the fastest point of each of their values counts.
BY = ("parameter", "to")
OURS = "ours/"  # what the name of a class of Table 1 begins with if it has our variant in place of the paper's
PAIRED = "paired"  # a computation that compares points one by one
Where = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A curve or a facet: its name, what its points must have; `series`: labels shown (or all)."""

    name: str
    where: Where
    plan: bool = False
    series: tuple[str, ...] = ()


def where_of(table: Mapping[str, Any], selections: Mapping[str, Where]) -> Where:
    """The selections that a table uses, and its own `where` on top."""
    used = table.get("use", [])
    merged: Where = {}
    for name in [used] if isinstance(used, str) else used:
        merged.update(selections[name])
    return {**merged, **table.get("where", {})}


def parts_of(listed: list[Any] | dict[str, Any], selections: Mapping[str, Where]) -> list[Part]:
    """Curves or facets, from a list of tables or from one value for several keys at a time."""
    if isinstance(listed, dict):
        form = listed.get("title", "{}")
        return [Part(form.format(value), dict.fromkeys(listed["each"], value)) for value in listed["values"]]
    return [
        Part(
            table["label"] if "label" in table else table["title"],
            where_of(table, selections),
            table.get("plan", False),
            tuple(table.get("series", ())),
        )
        for table in listed
    ]


@dataclass(frozen=True, eq=False)
class Shown:
    """A group of points of some variants (None: of every variant). None elsewhere, and a parameter that is not named, restricts nothing.
    `lefts`, `shapes`: numbers of left matrices and pairs of shapes of the named experiments. `sizes`: sides of square matrices.
    `by`: parameters; the points of each of their values are a group. `every`: all of its points are shown, not the fastest of a
    problem alone. `of_paper`: a figure of a paper or the verdict on a claim needs it, however long it takes."""

    name: str
    variants: frozenset[str] | None
    params: Mapping[str, frozenset[str]]
    without: Mapping[str, frozenset[str]]
    experiments: frozenset[str] | None = None
    forms: frozenset[str] | None = None
    counts: frozenset[str] | None = None
    rights: frozenset[int] | None = None
    sizes: frozenset[int] | None = None
    lefts: frozenset[int] | None = None
    shapes: frozenset[tuple[Shape, Shape]] | None = None
    by: tuple[str, ...] = ()
    every: bool = False
    of_paper: bool = True

    def of(self, unit: Unit) -> tuple[str, ...]:
        """Those of the unit's points that belong to the group."""
        if (self.variants is not None and unit.variant.id not in self.variants) or not self._has(unit):
            return ()
        return tuple(one for one in unit.params if self._fits(assignments(one)))

    def groups(self, unit: Unit) -> list[tuple[str, ...]]:
        """The same, those of which one is shown together."""
        found: dict[tuple[str | None, ...], list[str]] = {}
        for one in self.of(unit):
            values = assignments(one)
            found.setdefault((one,) if self.every else tuple(values.get(name) for name in self.by), []).append(one)
        return [tuple(group) for group in found.values()]

    def _has(self, unit: Unit) -> bool:
        one = unit.problem
        if self.experiments is not None:
            given = ((self.experiments, unit.experiment), (self.lefts, one.lefts), (self.shapes, (one.left, one.right)))
            return all(own is None or value in own for own, value in given)
        square = one.left == one.right and one.left[0] == one.left[1]
        usual = (one.window, unit.mode, unit.precision, one.fields) == ("full", "stream", "fp32", PLAIN)
        found = ((self.forms, one.form), (self.counts, f"{one.lefts}-to-{one.rights}"), (self.rights, one.rights))
        return (
            usual and square and all(own is None or value in own for own, value in (*found, (self.sizes, one.left[0])))
        )

    def _fits(self, values: Mapping[str, str]) -> bool:
        wanted = all(values.get(name, "") in allowed for name, allowed in self.params.items())
        return wanted and not any(values.get(name) in forbidden for name, forbidden in self.without.items())


@cache
def shown(folder: Path = folders.FOLDER) -> tuple[Shown, ...]:
    """The groups of all sources, without duplicates."""
    found = [*_of_figures(folder), *_of_table1(folder), *_of_claims(folder), *_of_experiments(folder)]
    return tuple({repr(one): one for one in found}.values())


def groups_of(unit: Unit, of: Sequence[Shown]) -> list[tuple[str, ...]]:
    """The groups of a unit's points of which the fastest is shown: the whole grid first, then those of figures and claims. A
    point that is shown whatever its time is a group by itself."""
    own = _of_variant(unit.variant.id, tuple(of))
    return list(dict.fromkeys([unit.params, *(group for one in own for group in one.groups(unit))]))


def needed(unit: Unit, of: Sequence[Shown]) -> list[tuple[str, ...]]:
    """As groups_of, those alone that a figure of a paper or the verdict on a claim needs."""
    own = _of_variant(unit.variant.id, tuple(of))
    return list(dict.fromkeys(group for one in own if one.of_paper for group in one.groups(unit)))


@cache
def _of_variant(variant: str, of: tuple[Shown, ...]) -> list[Shown]:
    """Those that may have points of the variant: a hundred variants meet a thousand groups on a thousand problems."""
    return [one for one in of if one.variants is None or variant in one.variants]


def _texts(value: Any) -> frozenset[str]:
    return frozenset(map(str, value if isinstance(value, list) else [value]))


def _of_figures(folder: Path) -> Iterator[Shown]:
    for _, tables in folders.parts("figures", folder):
        selections = tables.get("selections", {})
        for key, table in tables.items():
            if key in NO_FIGURES:
                continue
            facets = [parts_of(table.get(name, []), selections) or [Part("", {})] for name in ("rows", "columns")]
            for row in facets[0]:
                for column in facets[1]:
                    for curve in parts_of(table["series"], selections):
                        if not column.series or curve.name in column.series:
                            where = {**where_of(table, selections), **row.where, **column.where, **curve.where}
                            yield _of_curve(key, where, table.get("sizes", SIZES))


def _of_curve(key: str, where: Where, sizes: Sequence[int]) -> Shown:
    named = {name: _texts(where[name]) if name in where else None for name in PROBLEM}
    counts = where.get("counts")
    if isinstance(counts, list):  # the first of them that has rows
        named["counts"] = frozenset(counts[:1])
    return Shown(
        key,
        named["variant"],
        {name: _texts(value) for name, value in where.items() if name not in PROBLEM},
        {},
        forms=named["form"],
        counts=named["counts"],
        rights=frozenset([where["rights"]]) if "rights" in where else None,
        sizes=frozenset(sizes),
        of_paper=re.fullmatch(r"fig\d+", key) is not None,
    )


def _tables1(folder: Path) -> Iterator[tuple[Mapping[str, Any], str, str, Any]]:
    """Table 1, form, name of the class, and choice of each class of a Table 1: those of the paper, and with the name `ours/...` those
    with our variants."""
    for _, raw in folders.parts("baselines", folder):
        table = raw.get("table1", {})
        for form, classes in table.get("contenders", {}).items():
            ours = {**classes, **table.get("ours", {}).get(form, {})}
            for prefix, named in (("", classes), (OURS, ours)):
                for word, choice in named.items():
                    yield table, form, f"{prefix}{form}/{table['words'][word]}", choice


def _of_table1(folder: Path) -> Iterator[Shown]:
    for table, form, name, choice in _tables1(folder):
        counts = frozenset(line["counts"] for line in table["lines"] if line["form"] == form)
        cells = {"forms": frozenset([form]), "counts": counts, "sizes": frozenset(table["sizes"])}
        if not name.startswith(OURS):
            yield _of_choice(name, choice, **cells)
        elif choice != table["contenders"][form].get(_letter(table, name)):
            yield _of_choice(name, choice, of_paper=False, **cells)


def _letter(table: Mapping[str, Any], name: str) -> str:
    """The letter of a class of Table 1 by its name."""
    return next(letter for letter, word in table["words"].items() if name.endswith(f"/{word}"))


def _of_choice(name: str, raw: Any, **more: Any) -> Shown:
    """A choice as in claims.toml: a list of variants, or a table with `variants`, `params` and `without`."""
    table: Mapping[str, Any] = {"variants": raw} if isinstance(raw, list) else raw
    params, without = (
        {key: _texts(value) for key, value in (table.get(one) or {}).items()} for one in ("params", "without")
    )
    return Shown(name, frozenset(table["variants"]), params, without, **more)


def _of_claims(folder: Path) -> Iterator[Shown]:
    sizes = {path.parent: _sizes_of_patients(raw) for path, raw in folders.parts("baselines", folder)}
    for path, raw in folders.parts("claims", folder):
        # A class of Table 1 is a series too.
        series = {**raw.get("series", {}), **{name: choice for _, _, name, choice in _tables1(folder)}}
        for claim in raw.get("claims", []):
            if "compute" in claim:
                yield from _of_claim(claim, series, sizes.get(path.parent, {}))


def _of_claim(
    claim: Mapping[str, Any], series: Mapping[str, Any], sizes: Mapping[str, tuple[Shape, Shape]]
) -> Iterator[Shown]:
    """The sides of a claim, and what they are with `ours` in place of arguments. The verdict does not need the latter: only points that
    the method of the paper needs are measured however long they take."""
    own = list(_of_sides(claim, series, claim["compute"], {}, _cells_of_patients(claim["compute"], sizes)))
    yield from own
    if "ours" in claim:
        table = {**claim["compute"], **claim["ours"]}
        for one in _of_sides(claim, series, table, {}, _cells_of_patients(table, sizes)):
            if one not in own:
                yield replace(one, of_paper=False)


def _sizes_of_patients(baselines: Mapping[str, Any]) -> dict[str, tuple[Shape, Shape]]:
    return {one["name"]: parse_size(one["size"]) for one in baselines.get("patients", [])}


def _cells_of_patients(table: Mapping[str, Any], sizes: Mapping[str, tuple[Shape, Shape]]) -> dict[str, Any]:
    """The cells of a claim of a source whose problems are those of patients: it says of which (default: all), and how many templates."""
    if not sizes or "templates" not in table:
        return {}
    templates = table["templates"]
    return {
        "lefts": frozenset(templates if isinstance(templates, list) else [templates]),
        "shapes": frozenset(sizes[name] for name in table.get("patients", sizes)),
    }


def _of_sides(
    claim: Mapping[str, Any], series: Mapping[str, Any], table: Mapping[str, Any], outer: Where, given: Where
) -> Iterator[Shown]:
    """The sides in the arguments of a claim. What a side does not say of its cells, the arguments around it say, or `given`."""
    names = ("name", "form", "counts", "sizes", "size", *BY)
    place = {**outer, **{name: table[name] for name in names if name in table}}
    every = place.get("name") == PAIRED
    by = tuple(place[name] for name in BY if isinstance(place.get(name), str)) if BY[0] in place else ()
    if "variants" in table:
        choice = {
            key: value
            for key, value in table.items()
            if key in ("variants", "params") or (key == "without" and isinstance(value, dict))
        }
        experiments = frozenset(claim["experiments"])
        yield _of_choice(claim["id"], choice, experiments=experiments, by=by, every=every, **given)
    for name, value in table.items():
        if name in ("of", "to", "series", "chains", "parts", "pairs", "cell", "between"):
            for one in _flat(value):
                if isinstance(one, Mapping):
                    yield from _of_sides(claim, series, one, place, given)
                elif one in series:
                    raw = series[one]
                    sizes = place.get("size", place.get("sizes"))
                    cells = {
                        "experiments": None if sizes else frozenset(claim["experiments"]),
                        "forms": _texts(place["form"]) if "form" in place else None,
                        "counts": _texts(place["counts"]) if "counts" in place else None,
                        "sizes": frozenset(sizes if isinstance(sizes, list) else [sizes]) if sizes else None,
                    }
                    for choice in raw["any"] if isinstance(raw, Mapping) and "any" in raw else [raw]:
                        yield _of_choice(claim["id"], choice, by=by, every=every, **cells)


def _of_experiments(folder: Path) -> Iterator[Shown]:
    for name, path in folders.experiments(folder).items():
        for variant, points in load_toml(path).get("drawn", {}).items():
            for point in points:
                params = {key: frozenset([value]) for key, value in assignments(point).items()}
                variants = None if variant == "*" else frozenset([variant])
                yield Shown(name, variants, params, {}, experiments=frozenset([name]))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for one in value:
            yield from _flat(one)
    else:
        yield value
