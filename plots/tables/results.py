"""What a result that is no surface brings: time, bytes and energy of the surface, of its reduction to a peak, of a peak that the
variant writes itself, and of the same with boundary circular."""

from functools import partial

import pandas as pd

from plots import tidy
from plots.tables.table import MISSING, TIME, VARIANT, Grid, Page, Table, known
from xcorr.fields import Fields

ABOUT = (
    "Each line has the fastest variant and parameters that make this output. A reduced surface is written by the variant and read "
    "by a kernel of the harness; a fused peak is written by the variant itself, 32 bytes a pair. Bytes are what must cross memory at "
    "least: the inputs once, the output once, a reduced surface twice more. Energy is what the device counts over many calls, for one call "
    "of the whole problem."
)
PLAIN, REDUCED, FUSED = "surface", "surface + reduction", "fused peak"
CIRCULAR = ", circular"
OUTPUTS = (PLAIN, REDUCED, FUSED, PLAIN + CIRCULAR, REDUCED + CIRCULAR, FUSED + CIRCULAR)
PLACE = [*tidy.PROBLEM, "mode", "input", "precision"]
COLUMNS = [*PLACE, "output", "variant", "params", "time_us", "moved_bytes", "energy_uj", "speedup"]
NAMED = [*tidy.PROBLEM[1:], "mode"]


def points(results: tidy.ResultSet) -> pd.DataFrame:
    """Verified points of the experiments that feed the table, with `output`, one of OUTPUTS, and `moved_bytes`."""
    frames = [one for one in (results.feeding(TABLE.name), results.with_fields) if len(one)]
    found = tidy.joined(tidy.passed(results.fed(one, TABLE.name)) for one in frames)
    if found.empty:
        return found
    found = found.assign(output=[output_of(*one) for one in zip(found["fields"], found["source_hash"])])
    found = found[found["output"] != ""]
    surface = 4.0 * found["pairs"] * found["outputs"]
    reduced = found["output"].str.startswith(REDUCED)
    return found.assign(moved_bytes=found["bytes"] + 2 * surface * reduced)


def output_of(fields: str, source_hash: str) -> str:
    """One of OUTPUTS by the fields of a point; the hash of a point whose surface the harness reduces has two parts."""
    own = Fields.of_text(fields)
    if (own.score, own.masks, own.same, own.views) != ("product", "none", "no", "dense"):
        return ""
    made = {"surface": PLAIN, "peak": REDUCED if "+" in source_hash else FUSED}.get(own.result, "")
    return made and made + (CIRCULAR if own.boundary == "circular" else "")


def table(results: tidy.ResultSet) -> pd.DataFrame:
    """A line per problem and output, in the order of OUTPUTS: columns COLUMNS. `speedup`: the time of the problem's plain
    surface over that of the line, NaN where it was not measured; `energy_uj` likewise."""
    found = points(results)
    if found.empty:
        return pd.DataFrame(columns=COLUMNS)
    best = found.sort_values(["compute_us", "variant"], kind="stable").drop_duplicates([*PLACE, "output"])
    order = ["form", "left_rows", "lefts", "rights", "window", "_place"]
    best = tidy.ordered(best, order, _place=best["output"].map(OUTPUTS.index))
    best = best.sort_values("mode", ascending=False, kind="stable")
    surfaces = best[best["output"] == PLAIN].set_index(PLACE)["compute_us"]
    base = surfaces.reindex(pd.MultiIndex.from_frame(best[PLACE])).to_numpy()
    best = best.assign(time_us=best["compute_us"], speedup=base / best["compute_us"])
    return best[COLUMNS].reset_index(drop=True)


def label(left_rows: int, left_cols: int, right_rows: int, right_cols: int, *others: object) -> str:
    """A problem as a reader knows it: counts, size, window and mode where they are not the usual ones; by its columns NAMED."""
    lefts, rights, *unusual = others
    size = tidy.size_label(left_rows, left_cols, right_rows, right_cols)
    return ", ".join([f"{lefts}-to-{rights}, {size}", *(str(one) for one in unusual if one not in ("full", "stream"))])


def prefixed(value: float, units: dict[str, float]) -> str:
    """A number in the largest of the units (of which the smallest is 1) that it reaches: `629 MB`."""
    if not value > 0:
        return MISSING
    scale, unit = max((scale, unit) for unit, scale in units.items() if scale <= max(value, 1))
    return f"{value / scale:.3g} {unit}"


byte_text = partial(prefixed, units={"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9})
energy_text = partial(prefixed, units={"µJ": 1, "mJ": 1e3, "J": 1e6})


def lacking(lines: pd.DataFrame) -> str:
    """A sentence on outputs that some problems lack, "" where every problem has what its experiment asks of it."""
    gone = []
    for _, own in lines.groupby(PLACE, sort=False):
        seen = set(own["output"])
        boundaries = {CIRCULAR in one for one in seen}
        wanted = [one for one in OUTPUTS if one not in seen and (CIRCULAR in one) in boundaries]
        if wanted:
            gone.append(f"{label(*own.iloc[0][NAMED])} ({'; '.join(wanted)})")
    return f"Not measured: {'. '.join(gone)}." if gone else ""


SHOWN = (
    ("Problem", " ".join(NAMED), label),
    ("Output", "output"),
    *(VARIANT, TIME),
    ("Bytes", "moved_bytes", byte_text),
    ("Energy", "energy_uj", energy_text),
    ("Speed-up over the surface", "speedup", known("{:.2f}x")),
)


def page(results: tidy.ResultSet) -> Page | None:
    lines = table(results)
    if lines.empty:
        return None
    return Page([ABOUT, lacking(lines), Grid(lines, SHOWN, "Time, bytes and energy", file="results")])


TABLE = Table(
    "results",
    "Results that are not surfaces",
    page,
    "./scripts/reproduce.sh --preset quick --experiments results",
    "No peaks were measured beside surfaces in this set. `{command}` measures them, on a GPU.",
    chapter=70,
)
