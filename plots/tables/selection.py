"""Which points a series stands for: variants and parameters, as named in a data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from xcorr.errors import UserError, nearest
from xcorr.native.variants import assignments

KEYS = ("variants", "params", "without")
Allowed = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Choice:
    """Points of some variants; `params` allows only the listed values of a parameter, `without`
    forbids values. A parameter that is not named may have any value."""

    variants: tuple[str, ...]
    params: Allowed
    without: Allowed

    def mask(self, points: pd.DataFrame) -> np.ndarray:
        """Which lines of a tidy frame belong to it: booleans, one a line."""
        return np.array(
            [
                variant in self.variants and self._fits(params)
                for variant, params in zip(points["variant"], points["params"])
            ],
            dtype=bool,
        )

    def _fits(self, params: str) -> bool:
        values = assignments(params)
        return all(values.get(name) in allowed for name, allowed in self.params.items()) and not any(
            values.get(name) in forbidden for name, forbidden in self.without.items()
        )

    def describe(self) -> str:
        """What rows must exist for it: variants and wanted parameters, in one line."""
        wanted = [f"{name}={'|'.join(values)}" for name, values in sorted(self.params.items())]
        unwanted = [f"{name}!={'|'.join(values)}" for name, values in sorted(self.without.items())]
        return " ".join(["|".join(self.variants), *wanted, *unwanted])


def parse(raw: Any, where: str) -> Choice:
    """A choice from TOML: a list of variants, or a table of KEYS. UserError naming `where`."""
    table = {"variants": raw} if isinstance(raw, list) else raw
    if not isinstance(table, Mapping) or not table.get("variants"):
        raise UserError(f"{where}: names no variants; give a list of ids")
    for key in table:
        if key not in KEYS:
            raise UserError(f"{where}: key {key}: unknown; {nearest(key, KEYS)}")
    return Choice(tuple(table["variants"]), _allowed(table.get("params")), _allowed(table.get("without")))


def _allowed(raw: Mapping[str, Any] | None) -> Allowed:
    return {
        name: tuple(str(one) for one in (value if isinstance(value, list) else [value]))
        for name, value in (raw or {}).items()
    }
