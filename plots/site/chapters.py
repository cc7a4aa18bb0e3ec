"""What the page of a source shows: its README, its figures of each set, its claims and its tables."""

import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from experiments import folders
from plots import catalogue
from plots.figures import _paper
from plots.site.sizes import pixels
from plots.tidy import ResultSet
from xcorr.errors import UserError

# Figures of all sources, by the page that shows them; the others stand on that of the first source.
GENERAL = {"accuracy": "accuracy", "results": "beyond", "floor": "beyond", "roofline": "beyond", "summary": "beyond"}
FIRST, LAST = "jpdc", "beyond"
CSV_OF = {"crossover": "best_algorithm", "comparison": "best_algorithm", "floor": "beyond", "summary": "beyond"}
FIGURE, FIGURE_OF_CLAIM = re.compile(r"Figure (\d+):"), re.compile(r"Fig\. (\d[\d.]*)")
QUESTIONS = {
    "jpdc": "Which algorithm computes cross-correlations fastest on a GPU: sums by the definition, or transforms?",
    "autocorrelation": "How much faster does a GPU correlate images with themselves than a CPU?",
    "template_matching": "How fast does a GPU find a template in an image by Pearson's correlation, with passes made for its size?",
    "time_series": "How much do tensor cores gain where short templates are correlated with a long signal?",
    "beyond": "What do the papers leave open: other sizes, other modes of timing, energy, peaks in place of surfaces, real images?",
}


@dataclass(frozen=True)
class Picture:
    """A figure of a set, with what plots.render says of it. `file`: path of its SVG below the set's folder; `rows`: (text, path below the set's folder) of its data;
    `width` and `height` in pixels of the page."""

    title: str
    caption: str
    alt: str
    file: str
    rows: list[tuple[str, str]]
    width: int
    height: int


def sources() -> list[str]:
    """The sources in the order of QUESTIONS, new ones after them."""
    found = {path.parent.name for path in folders.FOLDER.glob("*/README.md")}
    own = {path.parent.name for path in folders.experiments().values()}
    return [*(one for one in QUESTIONS if one in own), *sorted(found & own - set(QUESTIONS))]


def question(source: str) -> str:
    return QUESTIONS.get(source, "")


def source_of(figure: str) -> str:
    """The source of a figure of plots.catalogue; "" where it serves every source."""
    for path, raw in folders.parts("figures"):
        if figure in raw and figure in _paper.specs():
            return path.parent.name
    module = str(getattr(catalogue.entries()[figure].draw, "__module__", ""))
    parts = module.split(".")
    return parts[2] if parts[:2] == ["plots", "sources"] else ""


def page_of(figure: str) -> str:
    """The page of a figure of plots.catalogue."""
    return source_of(figure) or GENERAL.get(figure, FIRST)


def entry_of(stem: str) -> str:
    """The figure of plots.catalogue that drew a file; "" where its name does not begin with that of a figure."""
    names = [name for name in catalogue.entries() if stem == name or stem.startswith(f"{name}_")]
    return max(names, key=len, default="")


def words(results: ResultSet) -> dict[str, dict[str, str]]:
    """What plots.render wrote of each figure, by name: title, caption, alt."""
    file = results.folder / "tables" / "figures.csv"
    if not file.is_file():
        raise UserError(f"{file}: is not there; draw the set with scripts/replot.sh {results.key}")
    lines = pd.read_csv(file, dtype=str, keep_default_na=False).to_dict("records")
    return {str(one["name"]): {str(name): str(text) for name, text in one.items()} for one in lines}


def pictures(results: ResultSet, page: str) -> list[Picture]:
    """The figures of a set that stand on a page: those of the source first, numbered ones before others, then those of all sources, in report order. A figure whose file names none stands on that of what no source has."""
    found: list[tuple[tuple[bool, bool, int, str], Picture]] = []
    order = list(catalogue.entries())
    own = [(path, entry_of(path.stem)) for path in sorted((results.folder / "figures").glob("*.svg"))]
    own = [(path, name) for path, name in own if (page_of(name) if name else LAST) == page]
    said = words(results) if own else {}
    for path, name in own:
        told = said.get(path.stem)
        if told is None:
            raise UserError(
                f"{path}: tables/figures.csv says nothing of it; draw the set with scripts/replot.sh {results.key}"
            )
        width, height = pixels(path)
        one = Picture(
            told["title"],
            told["caption"],
            told["alt"],
            f"figures/{path.name}",
            _data(results, name, path.stem),
            width,
            height,
        )
        of_all = bool(name) and not source_of(name)
        place = of_all, not FIGURE.match(one.title), order.index(name) if name else len(order), path.stem
        found.append((place, one))
    return [one for _, one in sorted(found, key=lambda one: one[0])]


def _data(results: ResultSet, figure: str, stem: str) -> list[tuple[str, str]]:
    """The CSV table of a figure's name, if the set has one, else the files of the rows that it shows."""
    for name in filter(None, (stem, figure)):
        table = f"tables/{CSV_OF.get(name, name)}.csv"
        if (results.folder / table).is_file():
            return [("CSV", table)]
    fed = [name for name, feeds in results.feeds.items() if figure in feeds]
    if figure in _paper.specs():
        fed = list(_paper.specs()[figure].experiments)
    real = figure and catalogue.entries()[figure].experiment
    files = [f"{name}.csv.gz" for name in sorted(fed)]
    files += [
        path.name
        for path in sorted(results.folder.glob("*.*.csv.gz"))
        if path.name.split(".")[0] == real or stem in path.name
    ]
    return [(f"rows of {name.split('.')[0]} (CSV)", name) for name in files if (results.folder / name).is_file()]


def claims(folder: Path, source: str) -> pd.DataFrame:
    """The lines of the set's claims table that are of a source."""
    file = folder / "tables" / "claims.csv"
    own = {one["id"] for path, raw in folders.parts("claims") if path.parent.name == source for one in raw["claims"]}
    if not file.is_file() or not own:
        return pd.DataFrame()
    lines = pd.read_csv(file, dtype=str, keep_default_na=False)
    return lines[lines["id"].isin(own)].reset_index(drop=True)


def decided(claims: pd.DataFrame, picture: Picture) -> list[tuple[str, str]]:
    """(id, verdict) of the claims that name the paper's figure that a picture shows."""
    own = FIGURE.match(picture.title)
    if not own or claims.empty:
        return []
    named = claims["section"].str.extract(FIGURE_OF_CLAIM)[0] == own[1]
    return list(zip(claims.loc[named, "id"], claims.loc[named, "verdict"]))
