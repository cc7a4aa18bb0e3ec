"""A new paper is a new folder: a toy one is added to a copy of the tree, and every reader finds it. Names are unique over sources."""

import csv
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from calls import call
from fixtures import sets

from experiments import folders
from experiments.driver import schema
from plots.figures import _paper
from plots.tables.claims import verdicts
from xcorr.errors import UserError
from xcorr.paths import ROOT

TOY = {  # Python below plots/sources/toy, all else below experiments/toy
    "README.md": "# toy: a paper that nobody wrote\n",
    "toy-sizes.toml": """
title = "Toy sizes"
form = "one-to-one"
feeds = ["toy_table", "claims"]
variants = ["*"]
precisions = ["fp32"]
modes = ["stream"]
window = "full"
[[problems]]
sizes = [16, 32]
counts = ["1:1"]
""",
    "claims.toml": """
[series]
toy = ["some_variant"]
[[claims]]
id = "TOY1"
section = "toy paper, 1"
statement = "A variant is as fast as itself"
class = "machine"
experiments = ["toy-sizes"]
paper = "1"
quantity = "time / time"
compute = { name = "ratio", of = "toy", to = "toy", form = "one-to-one", counts = "1-to-1", sizes = [16, 32] }
test = { near = 1, tolerance = 0.01 }
[[claims]]
id = "TOY2"
section = "toy paper, 2"
statement = "The set has its key"
class = "toy"
experiments = ["toy-sizes"]
paper = "1"
compute = { name = "keys" }
test = { at_least = 1 }
""",
    "figures.toml": """
[toy_times]
title = "toy times"
metric = "time"
experiments = ["toy-sizes"]
sizes = [16, 32]
where = { form = "one-to-one", counts = "1-to-1" }
series = [{ label = "toy", where = { variant = "some_variant" } }]
""",
    "inputs.toml": 'input = ["experiments.toy.waves"]\n',
    "claims.py": """
from plots.tables.claims.values import Found, known

CLASS, ORDER, ABOUT = "toy", 90, "of the toy paper"
COMPUTATIONS = {"keys": lambda results, args: Found([known(results.key, 1)])}
""",
    "tables/toy_table.py": """
from plots.tables.table import Page, Table

def page(results):
    return Page(["Nobody wrote it.", f"{len(results.feeding('toy_table'))} points"])

TABLE = Table("toy_table", "The toy paper", page, chapter=90)
""",
}


def test_a_paper_that_is_added_as_a_folder_is_measured_drawn_and_judged(tmp_path: Path) -> None:
    copy, results, out = tmp_path / "copy", tmp_path / "results", tmp_path / "out"
    for name in ("experiments", "plots", "xcorr"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in TOY.items():
        path = copy / ("plots/sources/toy" if name.endswith(".py") else "experiments/toy") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(module: str, *words: object) -> str:
        done = call(sys.executable, "-m", module, *words, cwd=copy)
        assert done.returncode == 0, done.stderr
        return done.stdout

    known = schema.load_experiments(copy / "experiments")
    assert known["toy-sizes"].title == "Toy sizes" and set(known) == {*schema.load_experiments(), "toy-sizes"}
    (line,) = (one for one in run("plots.figures", "--list").splitlines() if one.startswith("toy_times"))
    assert line.endswith("python3 -m experiments.driver.run --experiments toy-sizes")
    found = set(run("experiments.folders").splitlines())
    assert found == {*map(" ".join, folders.programs()), "input experiments.toy.waves"}
    rows = [
        sets.row(experiment="toy-sizes", repetition=i, compute_us=10.0 + size, **sets.square(size))
        for size in (16, 32)
        for i in range(5)
    ]
    sets.write_set(results, rows)
    run("plots.render", sets.KEY, "--results", results, "--out", out)
    with (out / "tables/claims.csv").open(encoding="utf-8") as file:
        verdict = {line["id"]: line["verdict"] for line in csv.DictReader(file)}
    assert verdict["TOY1"] == verdict["TOY2"] == "holds" and set(verdict) > set(verdicts.catalogue().claims)
    assert (out / "tables/toy_table.md").read_text() == "# The toy paper\n\nNobody wrote it.\n\n2 points\n"
    assert (out / "figures/toy_times.svg").is_file() and "Nobody wrote it." in (out / "report.html").read_text()


def two_sources(folder: Path, name: str, text: str) -> None:
    for source in ("one", "other"):
        (folder / source).mkdir()
        (folder / source / name).write_text(text)


def test_two_experiments_of_one_name_are_an_error_that_names_both(tmp_path: Path) -> None:
    two_sources(tmp_path, "same.toml", TOY["toy-sizes.toml"])
    for read in (schema.load_experiments, schema.studies):
        with pytest.raises(
            UserError, match=r"other/same\.toml: .*one/same\.toml has the same name; rename one of them"
        ):
            read(tmp_path)


def test_two_claims_and_two_series_of_one_name_are_errors_that_name_both(tmp_path: Path) -> None:
    text = TOY["claims.toml"].replace('class = "toy"', 'class = "machine"').replace('"keys"', '"noise"')
    two_sources(tmp_path, "claims.toml", text)
    with pytest.raises(
        UserError, match=r"^other/claims\.toml: claim TOY1: stands in one/claims\.toml too; remove one$"
    ):
        verdicts.catalogue(tmp_path)
    (tmp_path / "one" / "claims.toml").write_text('[series]\ntoy = ["some_variant"]\n')
    verdicts.catalogue.cache_clear()
    with pytest.raises(
        UserError, match=r"^other/claims\.toml: series toy: stands in one/claims\.toml too; remove one$"
    ):
        verdicts.catalogue(tmp_path)


def test_two_figures_of_one_name_are_an_error(tmp_path: Path) -> None:
    two_sources(tmp_path, "figures.toml", TOY["figures.toml"])
    with pytest.raises(
        UserError, match=r"other/figures\.toml: figure toy_times: stands in another source too; rename one"
    ):
        _paper.specs(tmp_path)


def test_the_programs_of_a_source_exist_and_another_key_is_named(tmp_path: Path) -> None:
    assert len(folders.programs()) > 5 and all(find_spec(module) for _, module in folders.programs())
    (tmp_path / "inputs.toml").write_text("inputs = []\n")
    with pytest.raises(UserError, match="inputs.toml: key inputs: unknown; did you mean input"):
        folders.programs(tmp_path)


def test_a_part_of_a_source_is_no_experiment(tmp_path: Path) -> None:
    for name in (*folders.PARTS, *folders.SETTINGS):
        (tmp_path / "one").mkdir(exist_ok=True)
        (tmp_path / "one" / f"{name}.toml").write_text("")
    assert folders.experiments(tmp_path) == {}
