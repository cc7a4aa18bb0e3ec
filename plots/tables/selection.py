"""Which points a series or a side of a claim stands for: variants and parameters, as named in a data file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from plots.tidy import select
from xcorr.errors import UserError, choose
from xcorr.native.variants import assignments

COLUMNS = ("precision", "backend", "threads")  # of a tidy line, that a side names
SIDE = ("variants", "without", "params", *COLUMNS)
KEYS = ("variants", "params", "without")
Allowed = dict[str, tuple[str, ...]]
parameters = lru_cache(maxsize=None)(assignments)


@dataclass(frozen=True)
class Choice:
    """Points of some variants; `params` allows only the listed values of a parameter, `without`
    forbids values. A parameter that is not named may have any value."""

    variants: tuple[str, ...]
    params: Allowed
    without: Allowed

    def mask(self, points: pd.DataFrame) -> np.ndarray:
        """Which lines of a tidy frame belong to it: booleans, one a line."""
        own = points["variant"].isin(self.variants)
        fitting = [text for text in points.loc[own, "params"].unique() if self._fits(parameters(text))]
        return (own & points["params"].isin(fitting)).to_numpy(dtype=bool)

    def _fits(self, values: Mapping[str, str]) -> bool:
        wanted = all(values.get(name) in allowed for name, allowed in self.params.items())
        return wanted and not any(values.get(name) in forbidden for name, forbidden in self.without.items())

    def describe(self) -> str:
        """What rows must exist for it: variants and wanted parameters, in one line."""
        wanted = [f"{name}={'|'.join(values)}" for name, values in sorted(self.params.items())]
        unwanted = [f"{name}!={'|'.join(values)}" for name, values in sorted(self.without.items())]
        return " ".join(["|".join(self.variants), *wanted, *unwanted])


def parse(raw: Any, where: str) -> Choice:
    """A choice from TOML: a list of variants, or a table of KEYS. UserError naming `where`."""
    table: Any = {"variants": raw} if isinstance(raw, list) else raw
    if not isinstance(table, Mapping) or not table.get("variants"):
        raise UserError(f"{where}: names no variants; give a list of ids")
    choose(f"{where}: key", table, KEYS)
    return Choice(tuple(table["variants"]), _allowed(table.get("params")), _allowed(table.get("without")))


def _allowed(raw: Mapping[str, Any] | None) -> Allowed:
    return {
        name: tuple(str(one) for one in (value if isinstance(value, list) else [value]))
        for name, value in (raw or {}).items()
    }


def of_side(points: pd.DataFrame, side: Mapping[str, Any], others: Sequence[str] = ()) -> pd.DataFrame:
    """The points of a side of a claim: `variants` (default: any), `without` (variants that do not count), `params` (values
    that parameters must have) and `precision`, `backend` and `threads`. `others`: keys that the caller looks at. UserError
    for an unknown key."""
    choose("key", side, (*SIDE, *others))
    if points.empty:
        return points
    points = select(points, **{name: side[name] for name in COLUMNS if name in side})
    if "variants" in side:
        points = points[points["variant"].isin(side["variants"])]
    points = points[~points["variant"].isin(side.get("without", []))]
    return with_params(points, side["params"]) if side.get("params") else points  # rows of real input have none


def with_params(points: pd.DataFrame, params: Mapping[str, Any]) -> pd.DataFrame:
    """The points whose parameters have these values; those that are not named may be any. "" is the value of a parameter
    that a point does not have."""
    wanted = {name: str(value) for name, value in params.items()}

    def fits(values: Mapping[str, str]) -> bool:
        return all(values.get(name, "") == value for name, value in wanted.items())

    fitting = [text for text in points["params"].unique() if fits(parameters(text))]
    return points[points["params"].isin(fitting)]


def describe(side: Mapping[str, Any], unnamed: str, more: str = "") -> str:
    """What rows a side needs, in words; `unnamed` stands for its variants where it names none, and `more` before its parameters."""
    params = [f"{name}={value}" for name, value in sorted(side.get("params", {}).items())]
    return " ".join(filter(None, ["|".join(side["variants"]) if "variants" in side else unnamed, more, *params]))
