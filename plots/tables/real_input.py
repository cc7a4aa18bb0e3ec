"""Tables of the report's section on real input: accuracy by data set and variant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plots import real, sources, style
from plots.metrics import si_time

TITLES = {real.EBSD: "Electron backscatter patterns", real.PHOTO: "Two crops of a photograph"}


def tables(folder: Path) -> list[dict[str, Any]]:
    """Template data of every real-input experiment of the set at `folder`; none where not run."""
    loaded = [(name, real.load(folder, name)) for name in TITLES]
    own = [_table(name, data) for name, data in loaded if isinstance(data, real.RealData)]
    others = [module for module in sources.modules("tables") if hasattr(module, "on_real_input")]
    return [*own, *(one for module in others for one in module.on_real_input(folder))]


def _table(name: str, data: real.RealData) -> dict[str, Any]:
    rows, notes = [], []
    for dataset in data.datasets():
        notes.append(_note(dataset))
        rows += [_row(dataset, variant) for variant in dataset.get("variants", [])]
    paper = data.summary.get("paper") or {}
    if "mean_rel_diff" in paper:
        notes.append(
            "The paper reports for its own patterns a mean relative difference to double precision "
            f"of {paper['mean_rel_diff']:.3g} and a largest of {paper.get('max_rel_diff', 0):.3g}. "
            "Relative differences are dominated by values near zero; the norm-scaled one is not."
        )
    columns = list(rows[0]) if rows else []
    filled = [c for c in columns if any(row[c] not in ("", "–") for row in rows)]
    return {
        "title": TITLES[name],
        "notes": notes,
        "table": {"columns": filled, "rows": [[row[c] for c in filled] for row in rows]},
        "numeric": tuple(one for one in filled[2:] if one != "Result"),
    }


def _note(dataset: dict[str, Any]) -> str:
    parts = [f"{dataset['dataset']}: {real.origin(dataset)}."]
    for key, text in (("source", "Source"), ("licence", "Licence"), ("citation", "Cite")):
        if dataset.get(key):
            parts.append(f"{text}: {str(dataset[key]).rstrip('.')}.")
    return " ".join(parts)


def _row(dataset: dict[str, Any], variant: dict[str, Any]) -> dict[str, str]:
    error = variant.get("error_px") or {}
    double = variant.get("float32_vs_float64") or {}
    seconds = variant.get("seconds")
    return {
        "Data set": str(dataset["dataset"]),
        "Variant": style.label(str(variant["variant"]), str(variant.get("precision", "fp32"))),
        "Result": str(variant.get("result", "")),
        "Pairs": _number(variant.get("pairs")),
        "Time": si_time(float(seconds)) if isinstance(seconds, (int, float)) else "–",
        "Median error [px]": _number(error.get("median")),
        "95 % [px]": _number(error.get("p95")),
        "Largest [px]": _number(error.get("max")),
        "Within 0.5 px": _share(error.get("within_half_pixel")),
        "Mean relative difference to float64": _number(double.get("mean_rel_diff")),
        "Largest": _number(double.get("max_rel_diff")),
        "Largest, norm-scaled": _number(double.get("norm_scaled_max")),
    }


def _share(value: Any) -> str:
    return f"{100 * value:.4g} %" if isinstance(value, (int, float)) else "–"


def _number(value: Any) -> str:
    if not isinstance(value, (int, float)) or value != value:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.3g}"
