"""Variants and points of a build, from its catalogue (`xcorr-bench --list=json`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import MappingProxyType
from typing import Any

from xcorr.errors import UserError
from xcorr.fields import Fields


@dataclass(frozen=True)
class Variant:
    """One entry of the catalogue; `points` are canonical parameter strings such as `left_rows=4;threads=all`."""

    id: str
    family: str
    backend: str
    algorithm_class: str
    precisions: tuple[str, ...]
    forms: tuple[str, ...]
    points: tuple[str, ...]
    modes: tuple[str, ...]
    source_hash: str
    results: tuple[str, ...] = ("surface",)  # written by the variant; the harness reduces surfaces to others
    reduction_hash: str = ""
    parent: str = ""
    same_only: bool = False  # needs same=yes
    scores: tuple[str, ...] = ("product",)
    boundaries: tuple[str, ...] = ("zero",)
    masks: bool = False
    views: tuple[str, ...] = ("dense",)

    def declares(self, of: Fields) -> bool:
        """Whether the variant declares what a problem with these fields needs. What it declares it may refuse still; surfaces are
        reduced to every result by the harness."""
        score = of.score.partition(":")[0]
        same = of.same == "yes" or not self.same_only
        masks = of.masks == "none" or self.masks
        return same and masks and score in self.scores and of.boundary in self.boundaries and of.views in self.views

    @property
    def is_of_scores(self) -> bool:
        """Whether the variant computes scores but no products."""
        return "product" not in self.scores

    def is_reduced(self, result: str) -> bool:
        """Whether the harness reduces the variant's surface to a result such as `peaks:5`. It always does for `above` with a
        distance."""
        kind, _, argument = result.partition(":")
        has_distance = kind == "above" and argument.count(":") > 1
        return has_distance or kind not in self.results

    def hash_of(self, result: str) -> str:
        """Hash of the code behind rows of this result: source_hash, with reduction_hash if the harness reduces surfaces."""
        return f"{self.source_hash}+{self.reduction_hash}" if self.is_reduced(result) else self.source_hash

    @classmethod
    def from_list(cls, entry: dict[str, Any]) -> Variant:
        """A variant from an entry of the catalogue. UserError for an entry of another version."""
        try:
            known = {one.name: entry[one.name] for one in fields(cls) if one.default is MISSING or one.name in entry}
            made: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in known.items()}
            return cls(**made)
        except (KeyError, TypeError) as error:
            raise UserError(f"xcorr-bench --list: {error} is missing; build again") from error


def is_transform(variant: str) -> bool:
    """Whether the algorithm class of a variant is that of transforms. Rows name no class and a build may be missing where they are
    read; the id tells the class, and a test holds every id of the registry to it (tests/experiments/test_published_errors.py)."""
    return "fft" in variant


@cache
def assignments(point: str) -> Mapping[str, str]:
    """Values of a point's parameters by name: {"a": "1", "b": "2"} of "a=1;b=2", {} of ""."""
    parts = (pair.partition("=") for pair in point.split(";") if pair)
    return MappingProxyType({name: value for name, _, value in parts})


def default_params(variant: dict[str, Any]) -> str:
    """First point of an entry of the catalogue that uses all threads, else its first point."""
    points: list[str] = variant["points"] or [""]
    return next((point for point in points if assignments(point).get("threads") == "all"), points[0])


def candidates(variants: list[dict[str, Any]], algorithm_class: str, form: str, device: str) -> list[dict[str, Any]]:
    """Entries of this class that run `form` in fp32 on the device's backend."""
    return [
        variant
        for variant in variants
        if variant["algorithm_class"] == algorithm_class
        and variant["backend"] == device.partition(":")[0]
        and "fp32" in variant["precisions"]
        and form in variant["forms"]
    ]
