"""Algorithm classes: families, except that a transform is a class wherever its variants lie. And curves with a line a family."""

from collections.abc import Callable

import pandas as pd

from plots import style
from plots.figures import _curves
from xcorr.native.variants import is_transform

NAME = "_name"  # of the line of a point
Ends = Callable[[pd.DataFrame], pd.DataFrame]


def class_label(variant: str, family: str) -> str:
    """`FFT`, `warp-shuffle`, `CPU`, ...: what a reader calls the class."""
    if is_transform(variant):
        return "FFT"
    return "CPU, by definition" if family == "cpu" else family.replace("_", "-")


def order(variant: str, family: str) -> tuple[bool, str]:
    """Sort key: definition-based classes by name, transforms last."""
    return is_transform(variant), class_label(variant, family)


def family_names(points: pd.DataFrame) -> pd.Series:
    """Of each point the name of its line where a family is a line: its folder's, with `FFT` where the family has transforms among
    others."""
    transform = points["variant"].map(is_transform).astype(bool)
    mixed = transform.groupby(points["family"]).transform("nunique") > 1
    names = points["family"].str.replace("_", "-")
    return names.where(~(mixed & transform), names + ", FFT")


def families(points: pd.DataFrame, largest: bool, ends: Ends | None = None) -> list[_curves.Curve]:
    """One curve per family and precision through column `y` of `points`: at each size and count the largest (or smallest) of the
    family. `ends` adds the intervals of what is drawn. A part of the points of a figure has the column NAME already."""
    points = points if NAME in points else points.assign(**{NAME: family_names(points)})
    points = points.sort_values(["y", "variant", "params"], ascending=[not largest, True, True], kind="stable")
    precisions = sorted(points["precision"].unique(), key=lambda p: (p != "fp32", p))
    found = []
    for (outcome, name, precision), own in points.groupby(["outcome", NAME, "precision"], sort=True):
        extreme = own.drop_duplicates(["counts", "size"], keep="first")
        extreme = ends(extreme) if ends else extreme
        transform = bool(own["variant"].map(is_transform).all())
        look = style.family_look(own["family"].iloc[0], transform, precisions.index(precision))
        hollow = outcome == "published"
        text = f"{name if precision == 'fp32' else f'{name}, {precision}'}{', published' if hollow else ''}"
        found.append(_curves.Curve(text, look, extreme, hollow=hollow))
    return found


def class_hue(variant: str, family: str) -> str:
    """Name of the class's hue in style.HUES."""
    if is_transform(variant):
        return style.FAMILY_HUES["fft"]
    return style.FAMILY_HUES.get(family) or style.hue_name(variant, family)
