"""What a result that is no surface brings: time, bytes and energy of the surface, of its reduction to a peak, of a peak that the
variant writes itself, and of the same with boundary circular."""

from __future__ import annotations

from typing import Any

import pandas as pd

from plots import style, tidy
from plots.metrics import si_time
from plots.tables.text import csv, markdown
from xcorr.fields import Fields

NAME = "results"
TITLE = "Results that are not surfaces"
CHAPTER = 70
COMMAND = "./scripts/reproduce.sh --preset quick --experiments results"
NONE = f"No peaks were measured beside surfaces in this set. `{COMMAND}` measures them, on a GPU."
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
MISSING = "–"


def points(results: tidy.ResultSet) -> pd.DataFrame:
    """Verified points of the experiments that feed the table, with `output`, one of OUTPUTS, and `moved_bytes`."""
    fed = {name for name, feeds in results.feeds.items() if NAME in feeds}
    frames = [results.feeding(NAME) if fed else results.points.iloc[:0], results.with_fields]
    frames = [_of(frame, fed) for frame in frames if len(frame)]
    found = (
        pd.concat([one for one in frames if len(one)], ignore_index=True) if any(map(len, frames)) else pd.DataFrame()
    )
    if found.empty:
        return found
    found = found.assign(output=[output_of(*one) for one in zip(found["fields"], found["source_hash"])])
    found = found[found["output"] != ""]
    surface = 4.0 * found["pairs"] * found["outputs"]
    reduced = found["output"].str.startswith(REDUCED)
    return found.assign(moved_bytes=found["bytes"] + 2 * surface * reduced)


def _of(frame: pd.DataFrame, fed: set[str]) -> pd.DataFrame:
    own = [not fed.isdisjoint(names.split(";")) for names in frame["experiments"]]
    return frame[pd.Series(own, frame.index, dtype=bool) & (frame["outcome"] == "passed")]


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
    places = best.assign(
        place=[OUTPUTS.index(one) for one in best["output"]], form_place=[*map(tidy.form_order, best["form"])]
    )
    order = ["mode", "form_place", "left_rows", "lefts", "rights", "window", "place"]
    best = places.sort_values(order, ascending=[False, *[True] * 6], kind="stable")
    surfaces = best[best["output"] == PLAIN].set_index(PLACE)["compute_us"]
    base = surfaces.reindex(pd.MultiIndex.from_frame(best[PLACE])).to_numpy()
    best = best.assign(time_us=best["compute_us"], speedup=base / best["compute_us"])
    return best[COLUMNS].reset_index(drop=True)


def label(line: pd.Series) -> str:
    """A problem as a reader knows it: counts, size, window and mode where they are not the usual ones."""
    size = tidy.size_label(*(int(line[name]) for name in ("left_rows", "left_cols", "right_rows", "right_cols")))
    unusual = [text for text, usual in ((line["window"], "full"), (line["mode"], "stream")) if text != usual]
    return ", ".join([f"{line['lefts']}-to-{line['rights']}, {size}", *unusual])


def byte_text(count: float) -> str:
    """Bytes with a prefix: `629 MB`."""
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def energy_text(microjoule: float) -> str:
    """Energy with a prefix: `1.2 mJ`."""
    if not microjoule > 0:
        return MISSING
    return (
        f"{microjoule * 1e-6:.3g} J"
        if microjoule >= 1e6
        else f"{microjoule * 1e-3:.3g} mJ"
        if microjoule >= 1e3
        else f"{microjoule:.3g} µJ"
    )


def readable(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines as a reader sees them."""
    return pd.DataFrame(
        {
            "Problem": [label(line) for _, line in lines.iterrows()],
            "Output": lines["output"],
            "Variant": [style.label(*one) for one in zip(lines["variant"], lines["precision"])],
            "Time": [si_time(us * 1e-6) for us in lines["time_us"]],
            "Bytes": [byte_text(one) for one in lines["moved_bytes"]],
            "Energy": [energy_text(one) for one in lines["energy_uj"]],
            "Speed-up over the surface": [f"{one:.2f}x" if one > 0 else MISSING for one in lines["speedup"]],
        }
    )


def lacking(lines: pd.DataFrame) -> str:
    """A sentence on outputs that some problems lack, "" where every problem has what its experiment asks of it."""
    gone = []
    for _, own in lines.groupby(PLACE, sort=False):
        seen = set(own["output"])
        wanted = [
            one for one in OUTPUTS if one not in seen and (CIRCULAR not in one or any(CIRCULAR in has for has in seen))
        ]
        if any(one in seen for one in (PLAIN, REDUCED, FUSED)):
            wanted = [one for one in wanted if one.endswith(CIRCULAR) or one in OUTPUTS[:3]]
        else:
            wanted = [one for one in wanted if one.endswith(CIRCULAR)]
        if wanted:
            gone.append(f"{label(own.iloc[0])} ({'; '.join(wanted)})")
    return f"Not measured: {'. '.join(gone)}." if gone else ""


def files(results: tidy.ResultSet) -> dict[str, str]:
    """The files of the table; without rows, one that says so."""
    lines = table(results)
    if lines.empty:
        return {f"{NAME}.md": f"# {TITLE}\n\n{NONE}\n"}
    notes = "\n\n".join(filter(None, (ABOUT, lacking(lines))))
    return {f"{NAME}.md": f"# {TITLE}\n\n{notes}\n\n{markdown(readable(lines))}", f"{NAME}.csv": csv(lines)}


def chapter(results: tidy.ResultSet) -> list[dict[str, Any]]:
    """The chapter of the report (see plots.report.front)."""
    lines = table(results)
    if lines.empty:
        return [{"id": NAME, "title": TITLE, "notes": [NONE], "tables": []}]
    notes = [*filter(None, (ABOUT, lacking(lines)))]
    return [{"id": NAME, "title": TITLE, "notes": notes, "tables": [("Time, bytes and energy", readable(lines), True)]}]
