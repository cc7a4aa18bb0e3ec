"""Velocimetry: the fields of displacements; tracking: the path of a template and its errors."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import real, style
from plots.drawing import Drawing, Omitted, Result
from plots.sources.beyond.tables.image_motion import COMMANDS
from plots.tidy import ResultSet

ORDER = 55
TITLE = "Motion in images: velocimetry and tracking"
NAMES = {"vortex": "vortex, known", "shear": "shear, known", "particles": "real frames"}
MOST_ARROWS = 20
RED, BLUE, GREY = "#d55e00", "#0072b2", "#777777"


def draw(results: ResultSet) -> list[Result]:
    """A figure of each experiment; Omitted with what measures it where it was not run."""
    made: list[Result] = []
    figures = (("velocimetry", real.VELOCIMETRY, _velocimetry), ("tracking", real.TRACKING, _tracking))
    for name, experiment, drawn in figures:
        data = real.load(results.folder, experiment)
        made.append(Omitted(name, f"{data} ({COMMANDS[experiment]})", "real") if isinstance(data, str) else drawn(data))
    return made


def _velocimetry(data: real.RealData) -> Result:
    shown = [name for name in NAMES if f"{name}_vectors" in data.previews]
    if not shown:
        return Omitted("velocimetry", f"{real.VELOCIMETRY}: no preview of any field", "real")
    figure = Figure(figsize=(style.PAGE_IN, 2.5))
    axes = figure.subplots(1, len(shown), squeeze=False)[0]
    figure.subplots_adjust(left=0.07, right=0.98, top=0.9, bottom=0.17, wspace=0.3)
    for one, name in zip(axes, shown):
        _field(one, data, name)
    axes[0].set_ylabel("y [pixels]")
    own = data.rows[(data.rows["window"] == 32) & (data.rows["passes"] == 2) & data.rows["rms"].notna()]
    errors = ", ".join(f"{row['case']} ({row['boundary']}) {row['rms']:.2g}" for _, row in own.iterrows())
    return Drawing(
        name="velocimetry",
        title="Displacements of particles between two frames",
        caption=(
            "Windows of 32 x 32 that overlap by half, in two passes; arrows are as long as fits, red ones are outliers that "
            f"were replaced by the median of their neighbours. Errors where the field is known, in pixels: {errors}."
        ),
        alt="Arrows of a vortex, of a shear and, where there is one, of a real pair of frames.",
        figure=figure,
        section="real",
    )


def _field(axes: Axes, data: real.RealData, name: str) -> None:
    y, x, dy, dx, outlier = data.previews[f"{name}_vectors"].astype(float)
    frame = data.previews.get(f"{name}_frame")
    if frame is not None:
        scale = float(np.ravel(data.previews.get(f"{name}_scale", np.ones(1)))[0])
        extent = (0, frame.shape[1] / scale, frame.shape[0] / scale, 0)
        axes.imshow(frame, cmap="Greys", vmax=512, extent=extent, interpolation="nearest")
    step = -(-max(y.shape) // MOST_ARROWS)
    part = (slice(step // 2, None, step),) * 2
    y, x, dy, dx, outlier = (one[part] for one in (y, x, dy, dx, outlier))
    longest = float(np.nanmax(np.hypot(dy, dx), initial=0)) or 1.0
    spacing = float(np.diff(x[0]).min()) if x.shape[1] > 1 else 16.0
    colours = np.where(outlier > 0, RED, BLUE).ravel()
    shown = {"angles": "xy", "scale_units": "xy", "scale": longest / (1.2 * spacing), "width": 0.005}
    axes.quiver(x, y, dx, dy, color=colours, **shown)
    axes.set_aspect("equal")
    axes.set_ylim(max(axes.get_ylim()), min(axes.get_ylim()))
    axes.grid(False)
    axes.set(title=NAMES[name], xlabel="x [pixels]")


def _tracking(data: real.RealData) -> Result:
    cases = [case for case in data.rows["case"].unique() if f"{case}_frame" in data.previews]
    if not cases:
        return Omitted("tracking", f"{real.TRACKING}: no preview of any case", "real")
    size = data.summary.get("template", [64, 64])
    figure = Figure(figsize=(style.PAGE_IN, 2.3))
    image, axes = figure.subplots(1, 2, width_ratios=(1, 1.5))
    figure.subplots_adjust(left=0.02, right=0.98, top=0.95, bottom=0.2, wspace=0.2)
    case = cases[-1]
    image.imshow(data.previews[f"{case}_frame"], cmap="gray", vmin=0, vmax=255)
    image.set_axis_off()
    y, x, angle = data.previews[f"{case}_place"]
    corners = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1], [-1, -1]]) * np.array(size) / 2
    cos, sin = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    image.plot(x - sin * corners[:, 0] + cos * corners[:, 1], y + cos * corners[:, 0] + sin * corners[:, 1], color=RED)
    for name, colour in zip(cases, (BLUE, RED, GREY)):
        own = data.rows[data.rows["case"] == name]
        own = own[own["variant"] == own["variant"].iloc[0]]
        if name == case:
            image.plot(own["x"], own["y"], color="#56b4e9", linewidth=0.8)
        axes.plot(own["frame"], own["error"], color=colour, linewidth=1, label=name)
    axes.set(xlabel="Frame", ylabel="Error [pixels]")
    axes.set_ylim(bottom=0)
    axes.legend()
    dataset = data.datasets()[0] if data.datasets() else {}
    return Drawing(
        name="tracking",
        title="A template that is followed through a sequence",
        caption=(
            f"Left: a frame of the case {case} with the template where it is known to be, and the path that was found. Right: "
            f"distance between the place found and the known one. {real.origin(dataset) if dataset else ''}."
        ),
        alt="A frame with the outline of the template and its path, and the errors of the place by frame.",
        figure=figure,
        section="real",
    )
