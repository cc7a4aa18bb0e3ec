"""Tables of the report's section on real input: particle image velocimetry, and tracking of a template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from plots import real, style
from plots.metrics import si_time

COMMANDS = {
    real.VELOCIMETRY: "python3 -m experiments.inputs.velocimetry",
    real.TRACKING: "python3 -m experiments.inputs.tracking",
}


def on_real_input(folder: Path) -> list[dict[str, Any]]:
    """Template data of both experiments of the set at `folder`; where one was not run, its note says with what it is."""
    makers = {real.VELOCIMETRY: _velocimetry, real.TRACKING: _tracking}
    loaded = {name: real.load(folder, name) for name in makers}
    if all(isinstance(data, str) for data in loaded.values()):
        return []
    made = []
    for name, data in loaded.items():
        if isinstance(data, str):
            made.append(_entry(name, [], [f"{data} ({COMMANDS[name]})."]))
        else:
            made.append(makers[name](data))
    return made


def _entry(name: str, rows: list[dict[str, str]], notes: list[str]) -> dict[str, Any]:
    titles = {real.VELOCIMETRY: "Particle image velocimetry", real.TRACKING: "Tracking of a template"}
    columns = [column for column in (rows[0] if rows else {}) if any(row[column] != "–" for row in rows)]
    return {
        "title": titles[name],
        "notes": notes,
        "table": {"columns": columns, "rows": [[row[column] for column in columns] for row in rows]},
        "numeric": tuple(columns[2:]),
    }


def _velocimetry(data: real.RealData) -> dict[str, Any]:
    rows = [
        {
            "Field": str(row["case"]),
            "Variant": style.label(str(row["variant"])),
            "Window": f"{row['window']:.0f}",
            "Boundary": str(row["boundary"]),
            "Passes": f"{row['passes']:.0f}",
            "Vectors": f"{row['vectors']:.0f}",
            "RMS error [px]": _number(row["rms"]),
            "Bias y, x [px]": _pair(row["bias_y"], row["bias_x"]),
            "Outliers": _percent(row["outliers"], row["vectors"]),
            "Time": si_time(float(row["seconds"])),
            "From openpiv [px]": _number(row.get("peer_difference")),
            "Time of openpiv": si_time(float(row["peer_seconds"]))
            if row.get("peer_seconds") == row["peer_seconds"]
            else "–",
        }
        for _, row in data.rows.iterrows()
    ]
    notes = [
        "Fields vortex and shear are made of particles whose displacement is known; windows overlap by half. The error is "
        "that of all vectors, replaced outliers included. The time is of the whole call in Python, transfers included."
    ]
    notes += [_credit(dataset) for dataset in data.datasets()]
    if data.summary.get("missing"):
        notes.append(f"Left out: {data.summary['missing']}.")
    return _entry(real.VELOCIMETRY, rows, notes)


def _tracking(data: real.RealData) -> dict[str, Any]:
    rows, notes = [], []
    for dataset in data.datasets():
        notes.append(_credit(dataset))
        rows += [
            {
                "Case": str(one["case"]),
                "Variant": style.label(str(one["variant"]), str(one.get("precision", "fp32"))),
                "Frames": str(one["frames"]),
                "RMS error [px]": _number(one["rms"]),
                "Largest [px]": _number(one["largest"]),
                "Allowed RMS [px]": _number(one["tolerance"]),
                "Frames per second": f"{one['frames_per_second']:.0f}",
            }
            for one in dataset.get("variants", [])
        ]
    facts = data.summary
    if facts.get("template"):
        template, search, frame = ("x".join(map(str, facts[name])) for name in ("template", "search", "frame"))
        notes.append(
            f"A template of {template} is sought by zncc in {search} pixels of frames of {frame}, around its last place. The "
            f"photograph moves by fractions of a pixel, with noise of {facts['noise']:g} grey values and a changing brightness; "
            f"in the case rotation it turns by up to {facts['turn']:g} degree too."
        )
    return _entry(real.TRACKING, rows, notes)


def _credit(dataset: dict[str, Any]) -> str:
    parts = [f"{dataset['dataset']}: {real.origin(dataset)}."]
    for key, text in (("source", "Source"), ("licence", "Licence"), ("citation", "Cite")):
        if dataset.get(key):
            parts.append(f"{text}: {str(dataset[key]).rstrip('.')}.")
    return " ".join(parts)


def _number(value: Any) -> str:
    return "–" if value is None or pd.isna(value) else f"{float(value):.2g}"


def _pair(one: Any, other: Any) -> str:
    return "–" if pd.isna(one) or pd.isna(other) else f"{one:+.3f}, {other:+.3f}"


def _percent(part: Any, whole: Any) -> str:
    return f"{100 * float(part) / float(whole):.2g} %"
