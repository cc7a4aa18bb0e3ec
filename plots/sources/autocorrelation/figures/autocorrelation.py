"""Autocorrelation of images: the curves of experiments/autocorrelation/figures.toml, C2D and C1D of an image, and a series that grows."""

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments import folders
from plots import real, style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _panels
from plots.sources.autocorrelation.tables import autocorrelation
from plots.tables import hosts
from plots.tables.table import contender
from plots.tidy import ResultSet, select

ORDER = 95
TITLE = autocorrelation.TABLE.title
SECTION = autocorrelation.TABLE.name
MISSING = f"not measured in this set ({autocorrelation.TABLE.command})"
NO_HOST = f"{MISSING}, or neither was its host's CPU (plots/machines.toml names its set)"
LENGTHS_MISSING = "{} (python3 -m experiments.inputs.autocorrelation)"
DASHES = {"1": "--", "all": "-", "": "-"}
OF_COMPUTATION = ("time_us", "tflops")  # metrics of the computation alone
CHAIN = "chain"  # the previews' names begin with it
HOLLOW = " Hollow: the factors that the paper prints, of its programs on its machines, not checked here."
BLUE, RED, GREY = "#0072b2", "#d55e00", "#777777"


@lru_cache(maxsize=1)
def data() -> dict[str, Any]:
    return dict(folders.part("autocorrelation", "figures")["drawn_by"]["autocorrelation"])


def draw(results: ResultSet) -> list[Result]:
    """The curves, then what real.AUTOCORRELATION made; Omitted with what measures it where there is nothing."""
    made = []
    for key, spec in data()["curves"].items():
        time = "time_us" if spec["metric"] in OF_COMPUTATION else "total_us"
        points, beside = autocorrelation.points(results, time), ""
        if spec.get("host"):
            points, beside = with_host(points, results, time)
        made.append(_curves(points, key, spec, beside))
    lengths = real.load(results.folder, real.AUTOCORRELATION)
    if isinstance(lengths, str):
        reason = LENGTHS_MISSING.format(lengths)
        return [
            *made,
            *(Omitted(f"{SECTION}_{name}", reason, SECTION) for name in ("chain", "c1d", "growth", "lengths")),
        ]
    return [*made, _chain(lengths), _c1d(lengths), _growth(lengths), _lengths(lengths)]


def with_host(points: pd.DataFrame, results: ResultSet, time: str = "time_us") -> tuple[pd.DataFrame, str]:
    """The points of a GPU, and of its host's CPU those of variants that the set lacks, with a sentence of the caption about them. None
    where either has none."""
    host = hosts.host_of(results)
    there = autocorrelation.points(host, time) if host and not points.empty else pd.DataFrame()
    if host is None or there.empty:
        return points.iloc[:0], ""
    own = there[~there["variant"].isin(set(points["variant"]))]
    return pd.concat([points, own], ignore_index=True), f" Variants of a CPU: set {host.key}, the host of this GPU."


@lru_cache(maxsize=1)
def baselines() -> dict[str, Any]:
    return folders.part("autocorrelation", "baselines")


def published(baseline: str) -> dict[str, tuple[str, float]]:
    """Of each variant that does what a program of the paper does: a label, and the program's speed-up over that of the variant
    `baseline`."""
    programs = {one["program"]: one for one in baselines()["published"]}

    def speed(name: str) -> float:
        one = programs[name]
        return float(one["factor"]) * (speed(one["over"]) if "over" in one else 1.0)

    base = next(name for name, one in programs.items() if one.get("variant") == baseline)
    return {
        one["variant"]: (f"paper: {one['machine']}, {name}", speed(name) / speed(base))
        for name, one in programs.items()
        if "variant" in one and name != base
    }


def with_speedup(points: pd.DataFrame) -> pd.DataFrame:
    """The points that have a baseline at their R, with `speedup`, its total time over theirs, the ends of its interval (_bars.ENDS), and `baseline`,
    its variant."""
    for name in data()["baselines"]:
        base = points[points["variant"] == name].drop_duplicates("radius").set_index("radius")
        if len(base):
            ratios = _bars.over(base.reindex(points["radius"]).set_axis(points.index), points, "total_us")
            return points.assign(**ratios, speedup=ratios["y"], baseline=name).dropna(subset=["speedup"])
    return points.iloc[:0].assign(speedup=[], baseline=[])


def _curves(points: pd.DataFrame, key: str, spec: dict[str, Any], beside: str = "") -> Result:
    name = f"{SECTION}_{key}"
    if not points.empty:
        points = select(points, **data()["image"])
        points = with_speedup(points) if spec["metric"] == "speedup" else _with_ends(points, spec)
    if points.empty or points["radius"].nunique() < 2:
        return Omitted(name, NO_HOST if spec.get("host") else MISSING, SECTION)
    points = points.sort_values("radius")
    curves = []
    for (variant, family, threads), own in points.groupby(["variant", "family", "threads"], sort=True):
        look = {**style.look(variant, family).line(), "linestyle": DASHES[threads]}
        curves.append((contender(variant, threads), own.set_index("radius"), look))
    paper = _papers(points) if spec["metric"] == "speedup" else []
    curves += paper
    ticks = _apart(sorted({*map(int, points["radius"].unique()), *(int(own.index[0]) for _, own, _ in paper)}))
    labels = ", ".join(label for label, _, _ in curves)
    return Drawing(
        name=name,
        title=f"{TITLE}: {spec['title']}",
        caption=f"{spec['caption']} Each variant has its fastest parameters at each point; dashed: one thread of a CPU."
        + beside
        + _bars.said(points, ratio=spec["metric"] == "speedup")
        + HOLLOW * bool(paper),
        alt=f"Line chart: {spec['label'].lower()} against the largest shift; curves: {labels}.",
        figure=_panels.curve_chart(curves, ticks, "Largest shift R [pixels]", spec["label"], spec["unit"]),
        section=SECTION,
    )


def _with_ends(points: pd.DataFrame, spec: dict[str, Any]) -> pd.DataFrame:
    """The points with the metric of a figure as `y`, and the ends of its interval."""
    beside = (points["total_us"] - points["compute_us"]) if spec["metric"] == "total_us" else 0.0

    def value(own: pd.DataFrame) -> pd.Series:
        if spec["metric"] == "tflops":
            return spec["scale"] * 2e-6 * own["fmas"] / own["compute_us"]
        return spec["scale"] * (own["compute_us"] + beside)

    return _bars.spread(points, value)


def _papers(points: pd.DataFrame) -> list[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """A hollow point for each program of the paper whose variant is among the points, over the same baseline."""
    families = dict(zip(points["variant"], points["family"]))
    return [
        (label, pd.DataFrame({"y": [speedup]}, [baselines()["radius"]]), style.look(variant, families[variant]).point())
        for variant, (label, speedup) in published(points["baseline"].iloc[0]).items()
        if variant in families
    ]


def _apart(values: list[int]) -> dict[int, str]:
    """Ticks on a log axis; one that is too near to the label before has none."""
    labels, last = {}, 0.0
    for value in values:
        labels[value] = str(value) if value >= 1.4 * last else ""
        last = value if labels[value] else last
    return labels


def _chain(lengths: real.RealData) -> Result:
    """After Fig. 3: a camera's frame after each step, and what R_max is there."""
    name, rows = f"{SECTION}_chain", lengths.rows[lengths.rows["case"] == "chain"]
    steps = list(rows["mean"].unique())
    if not steps or not {f"{CHAIN} {one}" for one in steps} <= lengths.previews.keys():
        return Omitted(name, f"{real.AUTOCORRELATION}: has no frames of a camera; compute it again", SECTION)
    last = lengths.previews[f"{CHAIN} {steps[-1]}"].shape
    height = 0.35 + style.PAGE_IN / len(steps) * 0.93 * last[0] / last[1]
    figure = Figure(figsize=(style.PAGE_IN, height))
    figure.subplots_adjust(left=0.01, right=0.99, top=1 - 0.3 / height, bottom=0.02, wspace=0.08)
    for axes, step in zip(figure.subplots(1, len(steps)), steps):
        _panels.picture(axes, lengths.previews[f"{CHAIN} {step}"], step)
    errors = 100 * (rows["r_max"] / rows["known"] - 1).groupby(rows["mean"]).mean()
    return Drawing(
        name=name,
        title=f"{TITLE}: from a camera's frame to an image",
        caption=(
            "After Fig. 3 of the ISS paper, for a made scene under uneven light, with dust, noise and drift: grey; the series aligned; a blurred inverted copy "
            "in mode Overlay, half opaque; dust replaced by the image beside it; contrast and crop. Error of R_max, mean of the frames: "
            f"{', '.join(f'{step} {errors[step]:+.2f} %' for step in steps)}."
        ),
        alt=f"A frame of a camera after each of {len(steps)} steps: {', '.join(steps)}.",
        figure=figure,
        section=SECTION,
    )


def _c1d(lengths: real.RealData) -> Result:
    """After Fig. 5: C2D with the mean removed, and C1D raw and with the mean removed."""
    name, arrays = f"{SECTION}_c1d", lengths.previews
    if not {"plane", "radii", "removed", "raw", "lengths"} <= arrays.keys():
        return Omitted(name, f"{real.AUTOCORRELATION}: has no preview of C1D", SECTION)
    figure = Figure(figsize=(style.PAGE_IN, 2.5))
    image, axes = figure.subplots(1, 2, width_ratios=(1, 1.6))
    figure.subplots_adjust(left=0.08, right=0.98, top=0.91, bottom=0.18, wspace=0.3)
    plane, radii = arrays["plane"], arrays["radii"]
    reach = float(radii[-1])
    limit = float(np.abs(plane[np.isfinite(plane)]).max()) / 3
    extent = (-reach, reach, reach, -reach)
    image.imshow(plane, cmap="RdGy_r", vmin=-limit, vmax=limit, extent=extent, interpolation="nearest")
    image.grid(False)
    image.set(xlabel="X0 [pixels]", ylabel="Y0 [pixels]")
    for kind, text, colour, length in zip(
        ("removed", "raw"), ("mean removed", "raw (Eq. 1)"), (BLUE, RED), arrays["lengths"]
    ):
        c1d = arrays[kind]
        axes.plot(radii, c1d, color=colour, label=text)
        if np.isfinite(length):
            axes.plot(length, np.interp(length, radii, c1d), "o", color=colour)
    axes.axhline(0, color=GREY, linewidth=0.5)
    axes.set(xlabel="R [pixels]", ylabel="C1D(R)")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=2, borderaxespad=0.2)  # the curves cross the panel
    found = [f"{one:.1f} pixels" if np.isfinite(one) else "none" for one in arrays["lengths"]]
    return Drawing(
        name=name,
        title=f"{TITLE}: C2D and C1D of an image",
        caption=(
            "After Fig. 5 of the ISS paper, for an image whose spectrum is a ring. Left: C2D with the mean removed. Right: its average over directions; "
            f"a dot marks R_max, the first maximum after the first trough: {found[0]} with the mean removed, {found[1]} raw, as Eq. 1 is printed. The paper's "
            "curve falls to -0.2, which raw 8-bit values cannot, so that its mean must have been removed."
        ),
        alt="The autocorrelation of an image as a picture, and its average over directions raw and with the mean removed.",
        figure=figure,
        section=SECTION,
    )


def _growth(lengths: real.RealData) -> Result:
    """After Fig. 10: R_max of a growing series, by several variants."""
    name = f"{SECTION}_growth"
    rows = lengths.rows[(lengths.rows["case"] == "growth") & (lengths.rows["mean"] == "removed")]
    if rows.empty:
        return Omitted(name, f"{real.AUTOCORRELATION}: has no growing series", SECTION)
    figure = Figure(figsize=(style.COLUMN_IN, 2.5))
    axes = figure.subplots()
    figure.subplots_adjust(left=0.16, right=0.97, top=0.96, bottom=0.18)
    known = rows.drop_duplicates("seed").sort_values("seed")
    axes.plot(known["seed"], known["known"], color=GREY, label="made")
    for variant, own in rows.groupby("variant", sort=True):
        look, text = style.look(variant, ""), style.label(variant)
        axes.plot(own["seed"], own["r_max"], look.marker, color=look.colour, fillstyle="none", label=text)
    axes.set(xlabel="Frame", ylabel="R_max [pixels]")
    axes.legend()
    return Drawing(
        name=name,
        title=f"{TITLE}: a pattern that grows",
        caption=(
            "After Fig. 10 of the ISS paper: R_max of images whose pattern grows linearly, by several variants, beside the length that the images were made "
            "with. That the paper's sample grows linearly is of its sample; these images grow as they were made."
        ),
        alt="R_max of each frame of a series by several variants, on the line of the lengths that the frames were made with.",
        figure=figure,
        section=SECTION,
    )


def _lengths(lengths: real.RealData) -> Result:
    """Errors of R_max in real space and from the spectrum, by wavelength."""
    name = f"{SECTION}_lengths"
    rows = lengths.rows[(lengths.rows["case"] == "truth") & (lengths.rows["mean"] == "removed")]
    if rows.empty:
        return Omitted(name, f"{real.AUTOCORRELATION}: has no images of known length", SECTION)
    figure = Figure(figsize=(style.COLUMN_IN, 2.5))
    axes = figure.subplots()
    figure.subplots_adjust(left=0.18, right=0.97, top=0.96, bottom=0.18)
    for column, text, colour, mark in (("r_max", "C1D", BLUE, "o"), ("spectral", "spectrum", RED, "x")):
        errors = 100 * (rows[column] / rows["known"] - 1)
        axes.plot(rows["wavelength"], errors, mark, color=colour, fillstyle="none", label=text)
    axes.axhline(0, color=GREY, linewidth=0.5)
    axes.set(xlabel="Wavelength [pixels]", ylabel="Error of R_max [%]")
    axes.legend()
    return Drawing(
        name=name,
        title=f"{TITLE}: errors of R_max",
        caption=(
            "Relative errors of R_max of images whose spectrum is a ring, each made with another seed: from the maximum of C1D, and from the peak of the "
            "spectrum averaged over directions, to a fraction of a bin by a parabola. Truth: 1.117 wavelengths."
        ),
        alt="Errors of R_max against the wavelength, from real space and from the spectrum.",
        figure=figure,
        section=SECTION,
    )
