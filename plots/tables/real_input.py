"""Tables of the report's section on real input: accuracy by data set and variant."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from plots import real, sources, style
from plots.metrics import si_time
from plots.tables.table import MISSING

TITLES = {real.EBSD: "Electron backscatter patterns", real.PHOTO: "Two crops of a photograph"}


def tables(folder: Path) -> list[dict[str, Any]]:
    """Template data of every real-input experiment of the set at `folder`; none where not run."""
    loaded = [(name, real.load(folder, name)) for name in TITLES]
    own = [_table(name, data) for name, data in loaded if isinstance(data, real.RealData)]
    others = [module for module in sources.modules("tables") if hasattr(module, "on_real_input")]
    return [*own, *(one for module in others for one in module.on_real_input(folder))]


def entry(title: str, notes: Sequence[str], shown: pd.DataFrame) -> dict[str, Any]:
    """Template data of a table as a reader sees it, without the columns that nothing fills; the first two are text."""
    filled = [name for name in shown if not shown[name].isin(["", MISSING]).all()]
    return {
        "title": title,
        "notes": notes,
        "table": {"columns": filled, "rows": shown[filled].to_numpy().tolist()},
        "numeric": tuple(one for one in filled[2:] if one != "Result"),
    }


def _table(name: str, data: real.RealData) -> dict[str, Any]:
    datasets = data.datasets()
    notes = [real.credit(one) for one in datasets]
    rows = [_row(one, variant) for one in datasets for variant in one.get("variants", [])]
    paper = data.summary.get("paper") or {}
    if "mean_rel_diff" in paper:
        notes.append(
            "The paper reports for its own patterns a mean relative difference to double precision "
            f"of {paper['mean_rel_diff']:.3g} and a largest of {paper.get('max_rel_diff', 0):.3g}. "
            "Relative differences are dominated by values near zero; the norm-scaled one is not."
        )
    return entry(TITLES[name], notes, pd.DataFrame(rows))


def _row(dataset: dict[str, Any], variant: dict[str, Any]) -> dict[str, str]:
    error = variant.get("error_px") or {}
    double = variant.get("float32_vs_float64") or {}
    seconds = variant.get("seconds")
    return {
        "Data set": str(dataset["dataset"]),
        "Variant": style.label(str(variant["variant"]), str(variant.get("precision", "fp32"))),
        "Result": str(variant.get("result", "")),
        "Pairs": _number(variant.get("pairs")),
        "Time": si_time(float(seconds)) if isinstance(seconds, (int, float)) else MISSING,
        "Median error [px]": _number(error.get("median")),
        "95 % [px]": _number(error.get("p95")),
        "Largest [px]": _number(error.get("max")),
        "Within 0.5 px": _share(error.get("within_half_pixel")),
        "Mean relative difference to float64": _number(double.get("mean_rel_diff")),
        "Largest": _number(double.get("max_rel_diff")),
        "Largest, norm-scaled": _number(double.get("norm_scaled_max")),
    }


def _share(value: Any) -> str:
    return f"{100 * value:.4g} %" if isinstance(value, (int, float)) else MISSING


def _number(value: Any) -> str:
    if not isinstance(value, (int, float)) or value != value:
        return MISSING
    return str(value) if isinstance(value, int) else f"{value:.3g}"
