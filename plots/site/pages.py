"""Makes the files of the report: pages of templates, data, style and scripts, as bytes by their path below results/report/."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from plots import style
from plots.figures import _classes
from plots.report.page import prose
from plots.site import blocks, cards, chapters, counts, data, findings, lines
from plots.site import prose as markdown
from plots.tables.table import duration
from plots.tidy import ResultSet
from xcorr.paths import RESULTS, ROOT

TEMPLATES = Path(__file__).with_name("templates")
COPIED = ("style.css", "tables.js", "hover.js", "chooser.js", "ask.js")
WITH_FIGURES = ("source", "accuracy", "machines")  # templates
UP, SETS = "../../", "../published/"  # from a page to the root of the tree, and to the folder of the sets
MACHINES = ROOT / "results" / "machines" / "machines.md"
MAP_CELLS = 3  # a size with fewer cells is in the chooser only
OTHERS = {"machines": "Machines", "accuracy": "Accuracy", "rivals": "Rivals", "method": "Method"}
NAMES = {"jpdc": "JPDC paper", "template_matching": "Template matching", "time_series": "Time series"}
ACCURACY = (
    ("Variant", "variant"),
    ("Precision", "precision"),
    ("Points", "points"),
    ("Rows", "rows"),
    ("Rows with the peak elsewhere", "rows_peak_elsewhere"),
    ("Relative L2 error", "rel_l2_error"),
    ("Share of the bound", "bound_share"),
    ("Relative L2 error, inputs with an offset", "offset_rel_l2_error"),
)
CLAIMS = (
    ("Id", "id"),
    ("Claim", "claim"),
    ("Verdict", "said"),
    ("Section", "section"),
    ("Source says", "paper"),
    ("Holds if", "tolerance"),
    ("Source's own rows", "own"),
    ("Its program here", "program"),
    ("Faithful variant", "here"),
    ("Our best", "ours"),
)
WIDE_CLAIMS = ("Claim", "Verdict", "Source's own rows")


@dataclass(frozen=True)
class Grid:
    """A table of a page: texts, and the numbers by which columns are sorted where they differ from the text. `files`: (text, link) of
    its CSV."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    files: Sequence[tuple[str, str]] = ()
    label: str = ""
    numeric: Sequence[str] = ()
    filter: bool = True
    ids: Sequence[str] = ()  # of the rows
    wide: Sequence[str] = ()  # columns of long texts


@dataclass
class Site:
    """The sets, and what several pages need of them, computed once."""

    sets: Sequence[ResultSet]
    ended: dict[str, counts.Counts] = field(default_factory=dict)
    blocks_of: dict[str, list[blocks.Block]] = field(default_factory=dict)
    answers: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __post_init__(self) -> None:
        self.ended = {one.key: counts.of_set(one) for one in self.sets}
        self.blocks_of = {one.key: blocks.of_set(one, self.ended[one.key].every) for one in self.sets}
        found = [lines.table(one) for one in self.sets]
        kept = [one for one in found if len(one)]
        self.answers = pd.concat(kept, ignore_index=True) if kept else pd.DataFrame(columns=lines.COLUMNS)

    @property
    def main(self) -> ResultSet:
        """The set with most answers: the findings and the map are of it."""
        numbers = self.answers["machine"].value_counts()
        return max(self.sets, key=lambda one: (int(numbers.get(one.key, 0)), one.key))


def build(sets: Sequence[ResultSet]) -> dict[str, bytes]:
    """Every file of the report. The same sets give the same bytes."""
    site = Site(sets)
    names = {one.key: cards.name(one) for one in site.sets}
    files = {name: (TEMPLATES / name).read_text(encoding="utf-8") for name in COPIED}
    files |= {
        "data/answers.js": data.answers(site.answers, names),
        "data/answers.csv": data.table(site.answers.drop(columns=data.MADE)),
    }
    nav = [("index", "Answers"), *((one, title_of(one)) for one in chapters.sources()), *OTHERS.items()]
    measured, excluded = machines(site), {one.key: cards.excluded(site.ended[one.key]) for one in site.sets}
    files |= {"data/machines.csv": data.table(measured)}
    files |= {f"data/exclusions-{key}.csv": data.table(frame) for key, frame in excluded.items()}
    files |= {f"data/blocks-{key}.csv": data.table(blocks.table(found)) for key, found in site.blocks_of.items()}
    rivals = rival_tables()
    files |= {f"data/{name}.csv": data.table(frame) for name, _, frame in rivals}
    pages: dict[str, tuple[str, dict[str, Any]]] = {"index": ("index", index(site, measured))}
    pages |= {one: ("source", source(site, one)) for one in chapters.sources()}
    pages |= {"accuracy": ("accuracy", accuracy(site)), "method": ("method", {"cards": run_cards(site, excluded)})}
    pages["machines"] = ("machines", {"text": markdown.html(MACHINES, UP)})
    pages["rivals"] = ("rivals", {"pages": [rival_page(*one) for one in rivals]})
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["prose"] = prose
    titles = dict(nav)
    for name, (template, values) in pages.items():
        rendered = environment.get_template(f"{template}.html.j2").render(
            name=name, title=titles[name], nav=nav, sets=SETS, up=UP, hover=template in WITH_FIGURES, **values
        )
        files[f"{name}.html"] = rendered + "\n"
        if template in WITH_FIGURES:
            results = RESULTS if template == "machines" else site.main.folder.parents[1]
            files[f"data/points-{name}.js"] = data.points(rendered, results / "report")
    return {name: text.encode("utf-8") for name, text in sorted(files.items())}


def title_of(source: str) -> str:
    return NAMES.get(source, source.replace("_", " ").capitalize())


def index(site: Site, own: pd.DataFrame) -> dict[str, Any]:
    """`own`: the lines of `machines`."""
    main = site.main
    return {
        "device": cards.name(main),
        "key": main.key,
        "findings": findings.findings(main, site.ended[main.key]),
        "machines": Grid(
            list(own.columns),
            own.to_numpy().tolist(),
            [("CSV", "data/machines.csv")],
            "Points of each machine by outcome",
            own.columns[2:-1],
            False,
        ),
        "map": winners(site),
        "wrong": [
            (cards.name(one), findings.named(wrong))
            for one in site.sets
            if (wrong := site.ended[one.key].variants_of("incorrect"))
        ],
    }


def machines(site: Site) -> pd.DataFrame:
    """A line a set: what was measured, and how it ended, over all rows."""
    found = []
    for one in site.sets:
        ended = site.ended[one.key]
        facts = dict(cards.card(one, ended))
        numbers = ended.by_outcome()
        found.append(
            {
                "Machine": facts["Device"],
                "Machine key": one.key,
                "Questions answered": int((site.answers["machine"] == one.key).sum()),
                "Points": len(ended.points),
                **{
                    cards.title(name): numbers[name]
                    for name in ("passed", "incorrect", "failed", "not_selected", "not_supported")
                },
                "Measured": facts["Measured"],
            }
        )
    return pd.DataFrame(found)


def winners(site: Site) -> dict[str, Any]:
    """The map of the set with most answers: the class of the fastest variant by form and counts (lines) and size (columns), for all
    shifts, products, mode stream and kept plans."""
    usual = {"machine": site.main.key, "window": "full", "boundary": "zero", "score": "product", "result": "surface"}
    usual |= {"more": "", "precision": "fp32", "mode": "stream", "plan": lines.KEPT}
    own = site.answers
    for name, value in usual.items():
        own = own[own[name] == value]
    numbers = own["size"].value_counts()
    own = own[own["size"].map(lambda size: ":" not in size and numbers[size] >= MAP_CELLS).astype(bool)]
    sizes = sorted(own["size"].unique(), key=lambda size: [int(one) for one in size.split("x")])
    families = dict(zip(site.main.points["variant"], site.main.points["family"]))
    firsts = own.drop_duplicates("group")
    looks = {group: _tint(best, families[best]) for group, best in zip(firsts["group"], firsts["best"])}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for one in own.to_dict("records"):
        cell = {
            "group": one["group"],
            "best": style.label(str(one["best"])),
            "time": duration(float(one["time_us"])),
            "tie": bool(one["tied_with"]),
        }
        rows.setdefault((str(one["form"]), str(one["counts"])), {})[str(one["size"])] = cell
    return {
        "sizes": sizes,
        "rows": [(*place, cells) for place, cells in rows.items()],
        "looks": dict(sorted(looks.items())),
    }


def _tint(variant: str, family: str) -> str:
    return style.shaded(style.HUES[_classes.class_hue(variant, family)], 0.78)


def source(site: Site, name: str) -> dict[str, Any]:
    """The page of a source; sets that have neither figures nor decided claims of it are left out."""
    found = []
    for one in site.sets:
        claims = chapters.claims(one.folder, name)
        decided = bool(len(claims)) and bool((claims["here"] != "").any())
        pictures = [(picture, chapters.decided(claims, picture)) for picture in chapters.pictures(one, name)]
        if pictures or decided:
            grid = claims_grid(one, claims) if decided else None
            counted = claims["verdict"].value_counts().sort_index().items() if decided else []
            found.append(
                {
                    "key": one.key,
                    "device": cards.name(one),
                    "pictures": pictures,
                    "claims": grid,
                    "verdicts": list(counted),
                }
            )
    found.sort(key=lambda one: one["key"] != site.main.key)
    readme = ROOT / "experiments" / name / "README.md"
    heading = readme.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").partition(": ")[2]
    return {
        "question": chapters.question(name),
        "heading": heading,
        "readme": markdown.html(readme, UP),
        "found": found,
    }


def claims_grid(results: ResultSet, claims: pd.DataFrame) -> Grid:
    said = [f"{verdict}: {why}" if why else verdict for verdict, why in zip(claims["verdict"], claims["reason"])]
    named = claims["section"].str.replace(chapters.FIGURE_OF_CLAIM, r"Figure \1", regex=True)
    lines = claims.assign(said=said, section=named)
    shown = [(title, column) for title, column in CLAIMS if (lines[column] != "").any()]
    rows = [[one[column] or "–" for _, column in shown] for one in lines.to_dict("records")]
    link = f"{SETS}{results.key}/tables/claims.csv"
    label = f"Claims on {cards.name(results)}"
    ids = [f"{results.key}-{one}" for one in claims["id"]]
    return Grid([title for title, _ in shown], rows, [("CSV", link)], label, ids=ids, wide=WIDE_CLAIMS)


def accuracy(site: Site) -> dict[str, Any]:
    found = []
    for one in site.sets:
        file = one.folder / "tables" / "accuracy.csv"
        if not file.is_file():
            continue
        frame = pd.read_csv(file, dtype=str, keep_default_na=False)
        rows = [
            [style.label(line["variant"]) if column == "variant" else line[column] or "–" for _, column in ACCURACY]
            for line in frame.to_dict("records")
        ]
        grid = Grid(
            [head for head, _ in ACCURACY],
            rows,
            [("CSV", f"{SETS}{one.key}/tables/accuracy.csv")],
            f"Errors on {cards.name(one)}",
            [head for head, _ in ACCURACY[2:]],
        )
        found.append(
            {"key": one.key, "device": cards.name(one), "pictures": chapters.pictures(one, "accuracy"), "grid": grid}
        )
    found.sort(key=lambda one: one["key"] != site.main.key)
    return {"found": found}


def rival_tables() -> list[tuple[str, Path, pd.DataFrame]]:
    """Name, file and table of each record of rivals below docs/evidence/."""
    found = []
    for path in sorted((ROOT / "docs" / "evidence").glob("rivals-*.md")):
        for head, *rows in markdown.tables(path.read_text(encoding="utf-8"))[:1]:
            frame = pd.DataFrame([(row + [""] * len(head))[: len(head)] for row in rows], columns=head)
            found.append((path.stem, path, frame))
    return found


def rival_page(name: str, path: Path, frame: pd.DataFrame) -> dict[str, Any]:
    """The text before the table, and the table."""
    text = path.read_text(encoding="utf-8")
    opening = [one.replace("\n", " ") for one in re.split(r"\n\s*\n", text)[1:] if not one.startswith("|")]
    numeric = [head for head in frame.columns[2:-1]]
    grid = Grid(list(frame.columns), frame.to_numpy().tolist(), [("CSV", f"data/{name}.csv")], "Rivals", numeric)
    return {
        "title": text.splitlines()[0].removeprefix("# "),
        "opening": [markdown.inline(one, path, UP) for one in opening],
        "grid": grid,
        "file": path.relative_to(ROOT).as_posix(),
    }


def block_cards(results: ResultSet, ended: counts.Counts, measured: Sequence[blocks.Block]) -> dict[str, Any]:
    """A collapsed table: a line a block, or a run where the rows are of no block."""
    found = blocks.shown(measured)
    head = [str(one) for one in found.columns]
    numeric = [name for name in head if pd.api.types.is_numeric_dtype(found[name])]
    of_blocks = int((ended.every.drop_duplicates("block")["block"] != "").sum())
    runs = len(found) - of_blocks
    said = [
        f"{number} {what}{'s' if number > 1 else ''}"
        for number, what in ((of_blocks, "block"), (runs, "run"))
        if number
    ]
    link = f"data/blocks-{results.key}.csv"
    label = f"Blocks of {cards.name(results)}"
    grid = Grid(head, found.to_numpy().tolist(), [("CSV, all reasons", link)], label, numeric, wide=[blocks.WHY])
    return {"title": f"Run cards: {' and '.join(said)}", "of_runs": bool(runs), "grid": grid}


def run_cards(site: Site, excluded: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    found = []
    for one in site.sets:
        ended = site.ended[one.key]
        reasons = excluded[one.key].head(cards.REASONS)
        head = ["variant", "outcome", "points", "reason", "problems"]
        rows = (
            [[style.label(line[0]), cards.title(line[1]), *line[2:]] for line in reasons[head].to_numpy().tolist()]
            if len(reasons)
            else []
        )
        link = f"data/exclusions-{one.key}.csv"
        found.append(
            {
                "key": one.key,
                "device": cards.name(one),
                "facts": cards.card(one, ended),
                "meanings": cards.meanings(ended),
                "sentences": cards.sentences(one),
                "blocks": block_cards(one, ended, site.blocks_of[one.key]),
                "excluded": Grid(
                    [name.capitalize() for name in head],
                    rows,
                    [("CSV, all reasons", link)],
                    f"Why points of {cards.name(one)} have no time",
                    ["Points"],
                ),
            }
        )
    found.sort(key=lambda one: one["key"] != site.main.key)
    return found
