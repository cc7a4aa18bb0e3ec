"""Time in one mode over time back to back on a stream, same variant, parameters and problem."""

import pandas as pd

from plots import style
from plots.figures import _cells, _classes
from plots.tidy import PROBLEM, best_parameters, form_order, passed, unusual

SAME = ["variant", "params", *PROBLEM, "input", "precision"]
ROW_IN = 0.165
LEFT_IN = 1.95
DEEPEST = 4.0  # a factor from which on the colour deepens no more


def ratios(points: pd.DataFrame, mode: str) -> pd.DataFrame:
    """Lines of mode stream that were measured in `mode` too, with `ratio` (time in `mode` over time
    in stream); of each variant and problem the parameters that are fastest in stream."""
    stream, other = passed(points, mode="stream"), passed(points, mode=mode)[[*SAME, "compute_us"]]
    both = best_parameters(stream.merge(other.rename(columns={"compute_us": "other_us"}), on=SAME))
    return both.assign(ratio=both["other_us"] / both["compute_us"])


def panel(lines: pd.DataFrame, title: str) -> _cells.Panel:
    """Rows variants (by class), columns problems, cells the ratio."""
    area = lines["left_rows"] * lines["left_cols"] * lines["right_rows"] * lines["right_cols"]
    names = [style.label(variant, precision) for variant, precision in zip(lines["variant"], lines["precision"])]
    columns = [
        "\n".join([*unusual(line, "window", "input"), line["form"], line["counts"], line["size"]])
        for _, line in lines.iterrows()
    ]
    shown = lines.assign(
        _row=names,
        _column=columns,
        _form=[form_order(form) for form in lines["form"]],
        _area=area.astype(float),
        _class=[_classes.order(v, f) for v, f in zip(lines["variant"], lines["family"])],
    )
    across = shown.sort_values(["_form", "pairs", "lefts", "_area", "_column"])["_column"].unique()
    down = shown.sort_values(["_class", "_row"])["_row"].unique()
    cells = {
        (row, column): _cells.Cell(f"{ratio:.2f}x", _cells.factor_colour(ratio, DEEPEST))
        for row, column, ratio in zip(names, columns, lines["ratio"])
    }
    return _cells.Panel(title, list(down), list(across), cells)
