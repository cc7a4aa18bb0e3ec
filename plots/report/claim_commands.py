"""Which command measures what decides a claim: the generated table of docs/artifact.md."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from experiments import __main__ as short
from experiments import folders
from plots import catalogue, sources
from plots.figures import _paper
from plots.tables.text import line_of
from xcorr.errors import UserError
from xcorr.files import load_toml
from xcorr.paths import ROOT

COLUMNS = ["Source", "Claims", "Measured by", "Figures and tables"]
# Of claims that no experiment feeds, by class.
UNMEASURED = {
    "published": "nothing: published data, by `scripts/import_published.py DIR`",
    "static": "nothing: counted from the rows that exist",
}
SHOWN_ALWAYS = "`claims`"  # the table of every claim
OWN_EXPERIMENT = re.compile(r'^EXPERIMENT(?:, TITLE)? = "([\w-]+)"', re.MULTILINE)
NUMBERED = re.compile(r"([A-Z])(\d+)")


def table(folder: Path = folders.FOLDER) -> str:
    """A line for each source and list of experiments that its claims name."""
    lines = []
    for path, raw in folders.parts("claims", folder):
        groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
        for claim in raw.get("claims", []):
            named = tuple(claim.get("experiments", []))
            kind = "" if named else UNMEASURED.get(claim.get("class", ""), "nothing: not comparable")
            groups.setdefault((named, kind), []).append(claim["id"])
        source = path.parent.name
        for (named, kind), ids in groups.items():
            shown = ", ".join(f"`{name}`" for name in drawn(source, named))
            lines.append(
                [
                    f"[{source}](../experiments/{source}/README.md)",
                    ranges(ids),
                    kind or ", ".join(map(command_of, named)),
                    shown or SHOWN_ALWAYS,
                ]
            )
    return "".join(map(line_of, [COLUMNS, ["---"] * len(COLUMNS), *lines]))


def ranges(ids: Iterable[str]) -> str:
    """The ids in their order; at least three that follow one another are a range."""
    runs: list[list[str]] = []
    for one in ids:
        before, now = NUMBERED.fullmatch(runs[-1][-1]) if runs else None, NUMBERED.fullmatch(one)
        if before and now and before[1] == now[1] and int(before[2]) + 1 == int(now[2]):
            runs[-1].append(one)
        else:
            runs.append([one])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


@cache
def programs() -> dict[str, str]:
    """The short name of the command that measures an experiment, by the name of the experiment; those of TOML files are not here."""
    found = {}
    for name, (module, _) in short.commands().items():
        base = ROOT / module.replace(".", "/")
        source = base / "__main__.py" if base.is_dir() else base.with_suffix(".py")
        for own in OWN_EXPERIMENT.findall(source.read_text(encoding="utf-8")):
            found[own] = name
    return found


def command_of(experiment: str) -> str:
    """The experiment, or the command where it is a program. UserError where nothing measures it."""
    if experiment in folders.experiments():
        return f"`{experiment}`"
    if experiment not in programs():
        raise UserError(
            f"experiment {experiment}: nothing measures it; add experiments/<source>/{experiment}.toml or a program"
        )
    return f"`python3 -m experiments {programs()[experiment]}`"


def drawn(source: str, experiments: tuple[str, ...]) -> list[str]:
    """Names of the paper's figures that show rows of the experiments, and of figures and tables that the source alone has."""
    modules = [one.__name__ for kind in ("figures", "tables") for one in sources.modules(kind)]
    own = {name.rpartition(".")[2] for name in modules if name.startswith(f"plots.sources.{source}.")}
    data: list[dict[str, Any]] = [
        load_toml(path) for name, path in folders.experiments().items() if name in experiments
    ]
    found = [
        key for key, spec in _paper.specs().items() if key.startswith("fig") and {*spec.experiments} & {*experiments}
    ]
    found += [name for one in data for name in one["feeds"] if name in own]
    found += [name for name, entry in catalogue.entries().items() if entry.experiment in experiments]
    return list(dict.fromkeys(found))
