"""Tables of the report's section on real input: particle image velocimetry, and tracking of a template."""

from pathlib import Path
from typing import Any

import pandas as pd

from plots import real, style
from plots.metrics import si_time
from plots.tables.real_input import entry
from plots.tables.table import MISSING, known, readable

NUMBER, WHOLE = known("{:.2g}"), "{:.0f}".format
COMMANDS = {
    real.VELOCIMETRY: "python3 -m experiments.inputs.velocimetry",
    real.TRACKING: "python3 -m experiments.inputs.tracking",
}
TITLES = {real.VELOCIMETRY: "Particle image velocimetry", real.TRACKING: "Tracking of a template"}


def _bias(y: float, x: float) -> str:
    return MISSING if pd.isna(y) or pd.isna(x) else f"{y:+.3f}, {x:+.3f}"


FIELDS = (
    ("Field", "case", str),
    ("Variant", "variant", style.label),
    ("Window", "window", WHOLE),
    ("Boundary", "boundary", str),
    ("Passes", "passes", WHOLE),
    ("Vectors", "vectors", WHOLE),
    ("RMS error [px]", "rms", NUMBER),
    ("Bias y, x [px]", "bias_y bias_x", _bias),
    ("Outliers", "outliers vectors", lambda part, whole: f"{100 * part / whole:.2g} %"),
    ("Time", "seconds", si_time),
    ("From openpiv [px]", "peer_difference", NUMBER),
    ("Time of openpiv", "peer_seconds", si_time),
)
PATHS = (
    ("Case", "case", str),
    ("Variant", "variant precision", style.label),
    ("Frames", "frames", str),
    ("RMS error [px]", "rms", NUMBER),
    ("Largest [px]", "largest", NUMBER),
    ("Allowed RMS [px]", "tolerance", NUMBER),
    ("Frames per second", "frames_per_second", WHOLE),
)


def on_real_input(folder: Path) -> list[dict[str, Any]]:
    """Template data of both experiments of the set at `folder`; where one was not run, its note says with what it is."""
    makers = {real.VELOCIMETRY: _velocimetry, real.TRACKING: _tracking}
    loaded = {name: real.load(folder, name) for name in makers}
    if all(isinstance(data, str) for data in loaded.values()):
        return []
    return [
        entry(TITLES[name], [f"{data} ({COMMANDS[name]})."], pd.DataFrame())
        if isinstance(data, str)
        else makers[name](data)
        for name, data in loaded.items()
    ]


def _velocimetry(data: real.RealData) -> dict[str, Any]:
    notes = [
        "Fields vortex and shear are made of particles whose displacement is known; windows overlap by half. The error is "
        "that of all vectors, replaced outliers included. The time is of the whole call in Python, transfers included."
    ]
    notes += [real.credit(dataset) for dataset in data.datasets()]
    if data.summary.get("missing"):
        notes.append(f"Left out: {data.summary['missing']}.")
    peers = dict.fromkeys(["peer_difference", "peer_seconds"], float("nan"))
    rows = data.rows.assign(**{name: one for name, one in peers.items() if name not in data.rows})
    return entry(TITLES[real.VELOCIMETRY], notes, readable(rows, FIELDS))


def _tracking(data: real.RealData) -> dict[str, Any]:
    datasets, facts = data.datasets(), data.summary
    rows = pd.DataFrame([{"precision": "fp32", **one} for dataset in datasets for one in dataset.get("variants", [])])
    notes = [real.credit(dataset) for dataset in datasets]
    if facts.get("template"):
        template, search, frame = ("x".join(map(str, facts[name])) for name in ("template", "search", "frame"))
        notes.append(
            f"A template of {template} is sought by zncc in {search} pixels of frames of {frame}, around its last place. The "
            f"photograph moves by fractions of a pixel, with noise of {facts['noise']:g} grey values and a changing brightness; "
            f"in the case rotation it turns by up to {facts['turn']:g} degree too."
        )
    return entry(TITLES[real.TRACKING], notes, readable(rows, PATHS))
