"""report.html: one self-contained page with tables, figures, machine facts, outcomes and reasons."""

from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup, escape

from plots import catalogue, imported, noise, style
from plots.drawing import Drawing, Omitted, by_reason
from plots.figures._panels import FORM_TITLES
from plots.metrics import MICRO, si_time
from plots.report import opening
from plots.report.inline_svg import inline
from plots.tables import best_table, outcomes, real_input
from plots.tables.best_by_mode import MODES
from plots.tables.table import Pages, chapters
from plots.tidy import USUAL, ResultSet, form_order, passed, select

TEMPLATES = Path(__file__).with_name("templates")
FACTS = {  # fact of --machine -> what a reader calls it
    "device_name": "Device",
    "machine_key": "Machine key",
    "cores": "Cores",
    "memory_bytes": "Memory",
    "clock_mhz": "Clock",
    "peak_fma_per_s": "Peak FMA rate",
    "peak_bytes_per_s": "Peak memory rate",
    "guard": "Roofline guard",
    "driver": "Driver",
    "cuda": "CUDA",
    "cufft_version": "cuFFT",
    "fftw": "FFTW",
    "throttle_reasons": "Throttle reasons",
    "compiler": "Compiler",
    "flags": "Flags",
    "google_benchmark": "Google Benchmark",
    "package_version": "Package version",
}
UNITS = {
    "clock_mhz": (1.0, "MHz"),
    "peak_fma_per_s": (1e9, "GFMA/s"),
    "peak_bytes_per_s": (1e9, "GB/s"),
    "memory_bytes": (2.0**30, "GiB"),
}
RUNS_SHOWN = 30
# Sections of figures in the order of the page. A figure of no other section goes to the chapter of its module, or to its form's.
SECTIONS = {
    "paper": "Figures of the paper",
    **FORM_TITLES,
    "study": "Parameter studies",
    "beyond": "Beyond the paper's figures",
}


def machine_of(run: dict[str, Any]) -> dict[str, Any]:
    """Machine and build facts of a run record."""
    facts = run.get("before") or run.get("machine") or {}
    return facts if isinstance(facts, dict) else {}


def facts(runs: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """(name, value) of the machine, from the newest run record; what is empty is left out."""
    newest = max(runs, default=None)
    found = machine_of(runs[newest]) if newest else {}
    listed = [(text, _fact(name, found.get(name))) for name, text in FACTS.items()]
    host = found.get("host")
    if isinstance(host, dict):
        listed += [(f"Host {k.replace('_', ' ')}", _fact(k, v)) for k, v in sorted(host.items())]
    return [(name, value) for name, value in listed if value]


def _fact(name: str, value: Any) -> str:
    if value in (None, "", [], {}, 0):
        return ""
    if name in UNITS and isinstance(value, (int, float)):
        scale, unit = UNITS[name]
        return f"{value / scale:.4g} {unit}"
    return str(value)


def run_lines(runs: dict[str, dict[str, Any]], used: set[str]) -> list[dict[str, str]]:
    """The run records behind the rows of a set, newest first."""
    lines = []
    for run in sorted(used & set(runs), reverse=True):
        record = runs[run]
        machine = machine_of(record)
        commit = str(record.get("git_commit") or machine.get("git_commit") or "")
        dirty = record.get("git_dirty", machine.get("git_dirty"))
        argv = record.get("argv", "")
        lines.append(
            {
                "run": run,
                "utc": str(record.get("utc", "")),
                "preset": str(record.get("preset", "")),
                "commit": commit[:12] + (" (modified)" if dirty else ""),
                "argv": " ".join(map(str, argv)) if isinstance(argv, list) else str(argv),
            }
        )
    return lines


def method(results: ResultSet) -> list[str]:
    """Sentences on how the times of this set came about."""
    if imported.record(results):
        return imported.method(results)
    points = passed(results.points)
    if points.empty:
        return ["No verified time in this set."]
    modes = ", ".join(f"{m} ({MODES[m]})" if m in MODES else m for m in sorted(points["mode"].unique()))
    presets = ", ".join(f"{name}: {count}" for name, count in points["preset"].value_counts().sort_index().items())
    ratio = (points["sd_us"] / points["compute_us"]).dropna()
    return [
        "Before a point was timed its whole output was compared with a float64 reference. Figures and tables have only "
        "points that passed.",
        "A time is of one computation of the whole problem. It contains whatever a variant must do on every call, but neither "
        f"allocation nor transfers. Modes: {modes}.",
        f"{len(points)} points with a time (preset {presets}); {int(points['n'].sum())} repetitions kept, "
        f"{int(points['dropped'].sum())} removed as "
        "outliers (outside 1.5 interquartile ranges beyond the quartiles, with at least 4 samples)."
        + (f" Mean SD/mean {100 * ratio.mean():.2g} %." if len(ratio) else ""),
        *_cards(results.runs, set(results.rows["run"])),
        noise.rule(results.points),
    ]


def _cards(runs: dict[str, dict[str, Any]], used: set[str]) -> list[str]:
    """How many devices of the kind the rows come from, where more than one does."""
    found = {machine_of(runs[run]).get("uuid_hash") for run in used & set(runs)} - {None, ""}
    if len(found) < 2:
        return []
    return [
        f"The rows are from {len(used)} runs on {len(found)} GPUs of this kind. The variants of a problem were not all "
        "measured on the same GPU."
    ]


OVERVIEW_CELLS = 3  # a size measured for fewer forms and counts is in the table of all cells only


def overview_cells(points: pd.DataFrame, table: pd.DataFrame) -> dict[str, Any]:
    """Winners by form, count and size, each with a tint of its variant's colour."""
    families = dict(zip(points["variant"], points["family"]))
    usual = select(table, **USUAL)
    sizes = list(best_table.overview(usual, OVERVIEW_CELLS).columns[2:])
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for _, row in usual.iterrows():
        look = style.look(row["best"], families.get(row["best"], ""))
        names = best_table.winners(row)
        lines.setdefault((row["form"], row["counts"]), {})[row["size"]] = {
            "names": names,
            "time": si_time(row["time_us"] * MICRO) + best_table.signs(row),
            "params": row["params"],
            "tint": style.shaded(look.colour, 0.82),
            "edge": look.colour,
        }
    shown = {key: cells for key, cells in lines.items() if not cells.keys().isdisjoint(sizes)}
    return {"sizes": sizes, "lines": [(*key, cells) for key, cells in shown.items()]}


def sections(drawings: list[Drawing]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Figures of times by form (in the paper's order), then the paper's own, as template data."""
    by_section: dict[str, list[dict[str, Any]]] = {}
    titles = dict(SECTIONS)
    for one in catalogue.entries().values():
        if one.section:
            titles.setdefault(one.section, one.title)
    titles["beyond"] = titles.pop("beyond")  # the last one
    for drawing in drawings:
        parts = drawing.name.split("_")
        name = drawing.section if drawing.section in titles else parts[1] if len(parts) > 1 else ""
        by_section.setdefault(name, []).append(_figure(drawing))
    places = {name: place for place, name in enumerate(titles)}
    ordered = sorted(by_section.items(), key=lambda item: (places.get(item[0], len(places)), form_order(item[0])))
    return [(titles.get(name, name), figures) for name, figures in ordered]


def prose(text: str) -> Markup:
    """A sentence as HTML: what stands between backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one that is not closed
        return Markup(escape(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def _figure(drawing: Drawing) -> dict[str, Any]:
    return {
        "name": drawing.name,
        "title": drawing.title,
        "caption": drawing.caption,
        "alt": drawing.alt,
        "wide": drawing.figure.get_figwidth() > style.COLUMN_IN + 0.5,
    }


def build(
    results: ResultSet, drawings: list[Drawing], omitted: list[Omitted], svgs: dict[str, str], pages: Pages
) -> str:
    """HTML of the report. `svgs` maps a drawing's name to the text of its SVG file; `pages` is what the tables say."""
    table = best_table.of_set(results)
    # A set without a verified time has no chapters.
    front = chapters(pages) if (results.points["outcome"] == "passed").any() else []
    counts = outcomes.counts(results.rows)
    trouble = {name: int(counts[name].sum()) for name in ("incorrect", "failed") if name in counts.columns}
    facts_found = facts(results.runs)
    used = set(results.rows["run"]) if len(results.rows) else set()
    runs = run_lines(results.runs, used)
    accountings = [
        {
            "name": name,
            "meaning": best_table.ACCOUNTINGS[name][0],
            "overview": overview_cells(results.points, own),
            "table": _grid(best_table.readable(own)),
            "footnotes": best_table.footnotes(own, places=False),
            "places": best_table.footnotes(own),
        }
        for name, own in table.groupby("accounting", sort=False)
    ]
    loader, strict = jinja2.FileSystemLoader(TEMPLATES), jinja2.StrictUndefined
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=strict
    )
    environment.globals["svg"] = lambda name, alt: Markup(inline(svgs[name], f"fig-{name}", alt))
    environment.globals["label"] = style.label
    environment.filters["prose"] = prose
    first = next((one for one in drawings if one.section == "summary"), None)
    real_drawings = [d for d in drawings if d.section == "real"]
    in_chapters = [d for d in drawings if d.section in {one["id"] for one in front}]
    return environment.get_template("report.html.j2").render(
        key=results.key,
        kind=results.kind,
        device=dict(facts_found).get("Device", results.key),
        facts=facts_found,
        opening=opening.lines(results, table, facts_found),
        first=_figure(first) if first else None,
        runs=runs[:RUNS_SHOWN],
        runs_hidden=max(0, len(runs) - RUNS_SHOWN),
        trouble={name: count for name, count in trouble.items() if count},
        method=method(results) + best_table.left_out(table),
        notes=imported.notes(results),
        accountings=accountings,
        front=[{**one, "figures": [_figure(d) for d in in_chapters if d.section == one["id"]]} for one in front],
        sections=sections([d for d in drawings if d.section not in ("real", "summary") and d not in in_chapters]),
        real=[_figure(d) for d in real_drawings],
        real_tables=real_input.tables(results.folder),
        omitted=by_reason(o for o in omitted if o.section != "real"),
        real_omitted=[o for o in omitted if o.section == "real"],
        counts=_grid(counts.assign(variant=counts["variant"].map(str))),
        reasons=_grid(outcomes.reasons(results.rows)),
        meaning=outcomes.MEANING,
    )


def _grid(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame as header and rows of plain values, for the template."""
    return {"columns": [str(c) for c in frame.columns], "rows": frame.to_numpy().tolist()}
