"""Reads the claims of all sources (experiments/<source>/claims.toml), decides each for a set, and writes the table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from experiments import folders
from plots import sources
from plots.tables.claims import counted, evidence, imported_sets, measured
from plots.tables.claims.rows import Rows, asked, parse_series, predicted_too_long
from plots.tables.claims.values import (
    CONTRADICTED,
    DIFFERS,
    HOLDS,
    OTHERWISE,
    SAID,
    UNKNOWN,
    VERDICTS,
    Found,
    check,
    stated,
    verdict,
)
from plots.tables.table import MISSING, Grid, Page, Table
from plots.tables.text import csv
from plots.tidy import ResultSet
from xcorr.errors import UserError, choose, nearest

GENERAL = {  # classes that claims of every source may have
    "machine": "decidable by measuring",
    "static": "decidable by counting instructions or work",
    "published": "about the published data",
}
# They may look at more of a set than Rows, and have words of their own.
OWN = {module.CLASS: module for module in sources.claims()}
CLASSES = {**GENERAL, **{name: module.ABOUT for name, module in OWN.items()}}
IMPORT = "about the published data; import them (scripts/import_published.py)"
REQUIRED = ("id", "section", "statement", "paper")
KEYS = (*REQUIRED, "class", "experiments", "quantity", "compute", "ours", "test", "verdict", "reason", "note")
ON_ROWS = dict(measured.COMPUTATIONS)  # computations on Rows, by name
for _module in OWN.values():
    ON_ROWS.update(getattr(_module, "ON_ROWS", {}))
COMPUTATIONS = {
    "machine": ON_ROWS,
    "static": counted.COMPUTATIONS,
    "published": {**ON_ROWS, **imported_sets.COMPUTATIONS},
    **{name: module.COMPUTATIONS for name, module in OWN.items()},
}
COLUMNS = "id section class claim quantity paper tolerance own program here values ours ours_values verdict reason note".split()


@dataclass(frozen=True)
class Claim:
    """One claim: what is stated, what decides it. `compute` names a computation and its arguments, for the method of
    the paper; without one, `reason` says why nothing is computed. `said` is one of SAID where no row decides. `ours` replaces
    arguments of `compute`: what they then give stands beside the paper's method and decides nothing."""

    id: str
    section: str
    statement: str
    kind: str
    paper: str
    experiments: Sequence[str] = ()
    quantity: str = ""
    compute: Mapping[str, Any] = field(default_factory=dict)
    ours: Mapping[str, Any] = field(default_factory=dict)
    test: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    note: str = ""
    said: str = ""


@dataclass(frozen=True)
class Catalogue:
    """All claims, in order, the series that they name, and what their sources have for them."""

    claims: dict[str, Claim]
    series: dict[str, Any]
    evidence: dict[str, evidence.Evidence]


@lru_cache
def catalogue(folder: Path = folders.FOLDER) -> Catalogue:
    """The checked claims of the sources in a folder, those of general classes first. UserError naming the claim and the key
    that is wrong, or the files that have the same claim or series."""
    claims: dict[str, Claim] = {}
    series: dict[str, Any] = {}
    places: dict[str, str] = {}  # file of each claim and series
    for module in OWN.values():
        series.update(getattr(module, "series", dict)())
    for path, raw in folders.parts("claims", folder):
        file = f"{path.parent.name}/{path.name}"
        own = [_claim(one, f"{file}: claim {one.get('id', '?')}") for one in raw.get("claims", [])]
        named = parse_series(raw.get("series", {}))
        for name in [*(f"claim {one.id}" for one in own), *(f"series {one}" for one in named)]:
            if name in places:
                raise UserError(f"{file}: {name}: stands in {places[name]} too; remove one")
            places[name] = file
        claims.update({one.id: one for one in own})
        series.update(named)
    kinds = [None, *OWN]
    ordered = sorted(claims.values(), key=lambda one: kinds.index(one.kind if one.kind in OWN else None))
    return Catalogue({one.id: one for one in ordered}, series, evidence.load(claims, folder))


def _claim(one: Mapping[str, Any], where: str) -> Claim:
    choose(f"{where}: key", one, KEYS)
    for key in REQUIRED:
        if not one.get(key):
            raise UserError(f"{where}: key {key}: missing; give a text")
    (kind,) = choose(f"{where}: class", [one.get("class", "machine")], CLASSES)
    compute = one.get("compute", {})
    if compute:
        names = COMPUTATIONS[kind]
        if compute.get("name") not in names:
            raise UserError(f"{where}: compute {compute.get('name')}: {nearest(str(compute.get('name')), names)}")
        check(one.get("test", {}), where)
        _check_ours(one, where)
    elif "ours" in one:
        raise UserError(f"{where}: ours without compute, whose arguments it replaces; give compute or remove ours")
    elif not one.get("reason"):
        raise UserError(f"{where}: neither compute nor reason; say how it is decided or why not")
    if one.get("verdict", SAID[0]) not in SAID:
        raise UserError(f"{where}: verdict {one['verdict']}: {nearest(one['verdict'], SAID)}")
    named = {name: value for name, value in one.items() if name not in ("class", "verdict")}
    return Claim(**named, kind=kind, said=one.get("verdict", ""))


def _check_ours(one: Mapping[str, Any], where: str) -> None:
    """UserError where `ours` of a claim replaces nothing."""
    compute, ours = one["compute"], one.get("ours", {})
    choose(f"{where}: ours: key", ours, [name for name in compute if name != "name"])
    if "ours" in one and {**compute, **ours} == compute:
        raise UserError(f"{where}: ours gives what compute has; name the arguments that differ, or remove it")


def found(claim: Claim, rows: Rows, results: ResultSet) -> Found:
    """What the claim's computation finds. UserError naming the claim when its arguments are wrong."""
    arguments = {name: value for name, value in claim.compute.items() if name != "name"}
    try:
        if claim.kind == "static":
            return counted.COMPUTATIONS[claim.compute["name"]](arguments)
        computation = COMPUTATIONS[claim.kind][claim.compute["name"]]
        if claim.kind == "published":
            sets = imported_sets.of(results, rows)
            if names := arguments.get("speedups"):  # of claims, whose arguments the computation takes
                arguments["speedups"] = {name: catalogue().claims[name].compute for name in names}
            over_all = claim.compute["name"] in imported_sets.COMPUTATIONS
            return computation(sets, arguments) if over_all else imported_sets.each(computation, sets, arguments)
        of_rows = computation is ON_ROWS.get(claim.compute["name"])
        return computation(rows if of_rows else results, arguments)
    except KeyError as error:
        raise UserError(f"claim {claim.id}: argument {error}: missing; see its computation") from error
    except UserError as error:
        raise UserError(f"claim {claim.id}: {error}") from error


def decide(claim: Claim, rows: Rows, results: ResultSet, proof: evidence.Evidence = evidence.NOTHING) -> dict[str, str]:
    """One line of the table (COLUMNS) for a claim and a set; `proof`: what the source itself has for the claim."""
    line = {name: getattr(claim, name) for name in ("id", "section", "quantity", "paper", "reason", "note")}
    line |= {
        "class": claim.kind,
        "claim": claim.statement,
        **dict.fromkeys(("here", "values", "ours", "ours_values"), ""),
    }
    line |= {"own": proof.own_text(), "program": proof.program_text(results.key)}
    line |= {"tolerance": stated(proof.widened(claim.test)), "verdict": claim.said or UNKNOWN}
    if not claim.compute:
        return line
    if claim.kind == "published" and not imported_sets.of(results, rows):
        return {**line, "reason": IMPORT}
    seen = found(claim, rows, results)
    line |= {"here": seen.short(), "values": seen.text()}
    if claim.ours:
        ours = found(replace(claim, compute={**claim.compute, **claim.ours}), rows, results)
        line |= {"ours": ours.short(), "ours_values": ours.text()}
    said, reason = (claim.said, claim.reason) if claim.said else _said(claim, seen, results, proof)
    return {**line, "verdict": said, "reason": reason}


def _said(claim: Claim, seen: Found, results: ResultSet, proof: evidence.Evidence) -> tuple[str, str]:
    """The verdict and its reason. What the source itself published decides first, whatever our rows give."""
    said = verdict(seen, proof.widened(claim.test))
    if against := proof.against(claim.test):
        return CONTRADICTED, f"see {', '.join(against)}"
    if said == DIFFERS and claim.kind == "published":  # nothing of it was measured here
        return CONTRADICTED, _reason(said, seen)
    if said == DIFFERS and proof.program_holds(results.key, claim.test):
        return OTHERWISE, "its program on this card bears it out"
    return said, _reason(said, seen)


def _reason(said: str, seen: Found) -> str:
    if said != UNKNOWN:
        return "some of its rows are missing, those that are there settle it" if seen.missing else ""
    if absent := [*seen.missing, *seen.hints]:
        return f"no rows: {'; '.join(absent)}"
    return "the bounds that the measured sizes give leave it open"


def require(ids: Iterable[str], folder: Path = folders.FOLDER) -> list[Claim]:
    """The claims of `ids`, all of them when there are none. UserError for an unknown id."""
    claims = catalogue(folder).claims
    return [claims[one] for one in choose("claim", ids, claims)] or list(claims.values())


def table(results: ResultSet, ids: Iterable[str] = (), folder: Path = folders.FOLDER) -> pd.DataFrame:
    """Every claim (or those of `ids`) decided for a set: columns COLUMNS, all text. `here` is short, `values` has every
    number. UserError for an unknown id."""
    wanted = require(ids, folder)
    too_long = predicted_too_long(results.rows)
    known = catalogue(folder)
    rows = Rows(results.points, known.series, results.folder, too_long, asked(results.rows))
    lines = [decide(claim, rows, results, known.evidence.get(claim.id, evidence.NOTHING)) for claim in wanted]
    return pd.DataFrame(lines, columns=COLUMNS)


def counts(lines: pd.DataFrame) -> pd.DataFrame:
    """Claims per class (lines) and verdict (columns)."""
    numbers = pd.crosstab(lines["class"], lines["verdict"])
    numbers = numbers.reindex(index=list(CLASSES), columns=list(VERDICTS), fill_value=0)
    text = numbers.astype(str).rename_axis(None, axis=1).reset_index()
    return text.rename(columns={"class": "Class"})


def _verdict(said: str, reason: str, note: str) -> str:
    """The verdict with its reason and note; marked unless the claim holds or is open."""
    marked = said if said in (HOLDS, UNKNOWN) else f"**{said}**"
    first = f"{marked}: {reason}" if reason else marked
    return f"{first}. {note[0].upper()}{note[1:]}" if note else first


def _or_dash(text: str) -> str:
    return text or MISSING


ABOUT = (
    "`Paper's text` is what the source says, and `Holds if` how near to it counts as `holds`. `Paper's own rows` is the same quantity on "
    "what its authors published, `Its program here` by their program on this card, `Faithful variant` by ours with the method of the paper, "
    "`Our best` by the best of ours, where we changed the method. A dash: not known, or not measured. The verdict is on the faithful variant, "
    "unless the rows that the text is about fail the test themselves: then it is `contradicted by the source's own data`. Where ours "
    "differs and the authors' program on this card does not, it is `differs by implementation`. Where several GPUs of the paper bear its number "
    "out, `Holds if` has their range too."
)
SHOWN = (
    ("Id", "id"),
    ("Claim", "claim section", "{} ({})".format),
    ("Quantity", "quantity", _or_dash),
    ("Paper's text", "paper"),
    ("Holds if", "tolerance", _or_dash),
    ("Paper's own rows", "own", _or_dash),
    ("Its program here", "program", _or_dash),
    ("Faithful variant", "here", _or_dash),
    ("Our best", "ours", _or_dash),
    ("Verdict", "verdict reason note", _verdict),
)


def page(lines: pd.DataFrame) -> Page:
    """What is said of the claims of a set: counts by class and verdict, then a table per class."""
    numbers = Grid(counts(lines), title="Claims by class and verdict")
    text: list[str | Grid] = [numbers, ABOUT]
    for kind, meaning in CLASSES.items():
        own = lines[lines["class"] == kind]
        grid = Grid(own, SHOWN, f"{kind.capitalize()} ({len(own)}): {meaning}", open=False)
        text += [f"## {kind.capitalize()}: {meaning}", grid] if len(own) else []
    return Page(text, more={"claims.csv": csv(lines)})


TABLE = Table(
    "claims",
    "Claims of the paper on this machine",
    lambda results: page(table(results)),
    chapter=30,
    heading="Claims of the paper",
)
