"""Algorithm classes: families, except that a transform is a class wherever its variants lie."""

import pandas as pd

from plots import style
from plots.figures import _curves
from xcorr.native.variants import is_transform


def class_label(variant: str, family: str) -> str:
    """`FFT`, `warp-shuffle`, `CPU`, ...: what a reader calls the class."""
    if is_transform(variant):
        return "FFT"
    return "CPU, by definition" if family == "cpu" else family.replace("_", "-")


def order(variant: str, family: str) -> tuple[bool, str]:
    """Sort key: definition-based classes by name, transforms last."""
    return is_transform(variant), class_label(variant, family)


def curves(points: pd.DataFrame, largest: bool) -> list[_curves.Curve]:
    """One curve per class and precision through column `y` of `points`: at each size and count the
    largest (or smallest) of the class. Sorted by `order`."""
    points = points.assign(
        _class=[class_label(v, f) for v, f in zip(points["variant"], points["family"])],
        _last=points["variant"].map(is_transform),
    ).sort_values(["y", "variant", "params"], ascending=[not largest, True, True], kind="stable")
    precisions = sorted(points["precision"].unique(), key=lambda p: (p != "fp32", p))
    found = []
    for (_, name, precision), own in points.groupby(["_last", "_class", "precision"], sort=True):
        extreme = own.drop_duplicates(["counts", "size"], keep="first")
        one = own.sort_values("variant").iloc[0]
        look = _look(one["variant"], one["family"], precisions.index(precision))
        text = name if precision == "fp32" else f"{name}, {precision}"
        found.append(_curves.Curve(text, look, extreme))
    return found


def class_hue(variant: str, family: str) -> str:
    """Name of the class's hue in style.HUES."""
    if is_transform(variant):
        return style.FAMILY_HUES["fft"]
    return style.FAMILY_HUES.get(family) or style.hue_name(variant, family)


def _look(variant: str, family: str, turn: int) -> style.Look:
    """Colour of the class; marker and dash by its hue's place, turned on for other precisions."""
    hue = class_hue(variant, family)
    return style.at_place(style.HUES[hue], list(style.HUES).index(hue) + turn)
