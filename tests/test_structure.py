"""Rules of the tree that a program can check: who includes and imports whom, names, sizes."""

import ast
import functools
import graphlib
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest
from tree import ROOT, TREE, text

from experiments import folders
from plots import catalogue, sources
from plots.figures import _paper
from xcorr.files import load_toml

SOURCE = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".py", ".sh"}
C_FAMILY = SOURCE - {".py", ".sh"}
# Folders with Python in the order in which they may import one another: a folder imports itself and earlier ones.
FOLDERS = ["xcorr", "harness", "experiments", "plots", "scripts", "tests"]
PROGRAMS = {"compare", "driver", "inputs", "published"}  # of experiments/; its other folders are sources
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def variants() -> list[Path]:
    """Paths of the variants, as the build finds them."""
    sys.path.insert(0, str(ROOT / "scripts" / "build"))
    try:
        from stamp_sources import variant_files
    finally:
        sys.path.pop(0)
    return variant_files(ROOT)


def test_the_harness_includes_nothing_of_the_algorithms():
    generated = ("build_facts.hpp", "reduction_hash.hpp")
    for path in TREE:
        if path.parts[0] == "harness" and path.suffix in C_FAMILY:
            for included in INCLUDE.findall(text(path)):
                assert included.startswith("harness/") or included in generated, f"{path} includes {included}"


def modules() -> dict[str, Path]:
    """Python modules of the top folders but the tests by name; a package's is that of its __init__.py."""
    paths = [path for path in TREE if path.suffix == ".py" and path.parts[0] in FOLDERS[:-1]]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports(tree: ast.AST, package: str, known: set[str]) -> set[str]:
    """Names of `known` modules that a module of this package imports, and names of others as they are written. Imports
    inside functions and below TYPE_CHECKING count."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            whole = {f"{base}.{alias.name}" for alias in node.names}
            found |= {name if name in known else base for name in whole}
    return found


@functools.cache
def import_graph() -> dict[str, set[str]]:
    known = modules()
    graph = {}
    for name, path in known.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        graph[name] = imports(ast.parse(text(path), filename=str(path)), package, set(known))
    return graph


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The nodes of a circle, the first one again at its end; none where there is no circle."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_folder_imports_a_later_one():
    for name, imported in import_graph().items():
        own = FOLDERS.index(name.split(".")[0])
        later = {one for one in imported if one.split(".")[0] in FOLDERS[own + 1 :]}
        assert not later, f"{name} imports {sorted(later)}"


def test_no_folder_of_xcorr_imports_a_later_one():
    """Modules beside the folders come first; `auto` and `__main__` are commands."""
    order = ["", "native", "choice", "call", "commands"]

    def place(name: str) -> int:
        return order.index(name.split(".")[1] if name.count(".") > 1 else "")

    for name, imported in import_graph().items():
        if name.startswith("xcorr.") and name not in ("xcorr.auto", "xcorr.__main__"):
            later = {one for one in imported if one.startswith("xcorr.") and place(one) > place(name)}
            assert not later, f"{name} imports {sorted(later)}"


def test_no_modules_import_one_another():
    graph = import_graph()
    assert "xcorr.problem" in graph["experiments.driver.points"], "imports are found"
    found = circle(graph)
    assert not found, " imports ".join(found)


def test_no_packages_of_experiments_import_one_another():
    packages: dict[str, set[str]] = {}
    for name, imported in import_graph().items():
        own = name.split(".")[:2]
        if own[0] == "experiments" and len(name.split(".")) > 2:
            others = {".".join(one.split(".")[:2]) for one in imported if one.startswith("experiments.")}
            packages.setdefault(".".join(own), set()).update(others - {".".join(own)})
    assert {name.split(".")[1] for name in packages} == PROGRAMS
    found = circle(packages)
    assert not found, " imports ".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "from p.b import x",
        "import p.b",
        "from p import b",
        "from . import b",
        "from .b import x",
        "def f():\n    from p.b import x",
        "if TYPE_CHECKING:\n    import p.b",
    ],
)
def test_a_circle_is_found_wherever_the_import_stands(source):
    known = {"p.a", "p.b"}
    graph = {"p.a": imports(ast.parse(source), "p", known), "p.b": imports(ast.parse("from p import a"), "p", known)}
    assert sorted(circle(graph)) in (["p.a", "p.a", "p.b"], ["p.a", "p.b", "p.b"])
    assert not circle({"p.a": graph["p.a"], "p.b": set()})


def test_no_code_outside_the_algorithms_names_a_variant():
    """Data (experiments' TOML, generated README text), tests and the map of labels do."""
    names = "|".join(re.escape(path.stem) for path in variants())
    word = re.compile(rf"(?<!\w)({names})(?!\w)")
    for path in TREE:
        if path.suffix not in SOURCE or path.parts[0] in ("algorithms", "tests"):
            continue
        if path == Path("plots/style.py"):
            continue
        for number, line in enumerate(code_lines(path), start=1):
            # The example of a command's help; a library's header that has a variant's name.
            if "--variant" in line or line.startswith("#include <"):
                continue
            assert not word.search(line), f"{path}:{number} names a variant: {line.strip()}"


def code_lines(path: Path) -> list[str]:
    """Lines without comments and docstrings: examples may name a variant, logic may not."""
    source = text(path)
    if path.suffix == ".py":
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                for number in range(node.lineno - 1, node.end_lineno):
                    lines[number] = ""
        return [re.sub(r"#.*", "", line) for line in lines]
    marker = r"#.*" if path.suffix == ".sh" else r"//.*"
    return [re.sub(marker, "", line) for line in source.splitlines()]


def test_no_source_file_is_longer_than_500_lines():
    """At 400 lines one asks whether a file has two subjects (docs/design.md, Layout); it is no limit to cut at."""
    for path in TREE:
        if path.suffix in SOURCE or path.name == "meson.build" or path.parts[0] == "scripts":
            lines = len(text(path).splitlines())
            assert lines <= 500, f"{path} has {lines} lines"


@pytest.mark.parametrize("top", ["harness", "xcorr"])
def test_a_folder_has_one_subject(top):
    """At most 15 files, the table of contents apart: more have two subjects."""
    files = Counter(path.parent for path in TREE if path.parts[0] == top and path.suffix in SOURCE)
    assert {folder: count for folder, count in files.items() if count > 15} == {}


@pytest.mark.parametrize("path", variants(), ids=lambda path: path.stem)
def test_a_variant_opens_with_prose_and_has_a_plain_name(path):
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", path.stem)
    assert text(path).startswith("// "), f"{path} does not open with a comment on what it is"
    assert text(path).count("XCORR_VARIANT(") == 1


def test_every_folder_says_what_it_holds():
    folders = {path.parent for path in TREE if path.suffix in SOURCE | {".toml"}}
    for folder in sorted(folders - {Path(".")}):
        described = (ROOT / folder / "README.md").is_file() or folder_is_part(folder)
        assert described, f"{folder} has no README.md"


def folder_is_part(folder: Path) -> bool:
    """A folder of internals is described, by name, by the README of a folder above it; that of a source as `<source>`."""
    for parent in list(folder.parents)[:-1]:
        readme = ROOT / parent / "README.md"
        name = re.sub(r"^sources/\w+", "sources/<source>", str(folder.relative_to(parent)))
        if readme.is_file() and f"`{name}/`" in readme.read_text():
            return True
    return False


def prose_lines(path: Path) -> list[tuple[int, str]]:
    """Lines by number; of Python those of comments and texts only, since a name may be any word."""
    if path.suffix != ".py":
        return list(enumerate(text(path).splitlines(), start=1))
    tokens = tokenize.generate_tokens(io.StringIO(text(path)).readline)
    return [
        (token.start[0] + i, line)
        for token in tokens
        if token.type in (tokenize.COMMENT, tokenize.STRING)
        for i, line in enumerate(token.string.splitlines())
    ]


METAPHORS = re.compile(r"\b(rooms?(?! for\b)|doors?|houses?|witness(es)?|dealt)\b", re.IGNORECASE)
ABSENT_PAGES = re.compile(r"\b(DESIGN section|PERFORMANCE section|EXPERIMENTS section)")
PLAIN = sorted(
    {path.parts[0] for path in TREE if path.suffix in SOURCE | {".md", ".toml", ".j2"} and path.parts[0] != "tests"}
)


@pytest.mark.parametrize("top", PLAIN)
def test_text_has_no_metaphor_and_cites_no_page_that_is_absent(top):
    """Names of tests may; what users read and the code may not. The notebook quotes what was."""
    for path in TREE:
        if (
            path.parts[0] != top
            or path.parts[:2] == ("docs", "notebook")
            or path.suffix not in SOURCE | {".md", ".toml", ".j2"}
        ):
            continue
        for number, line in prose_lines(path):
            for rule in (METAPHORS, ABSENT_PAGES):
                assert not rule.search(line), f"{path}:{number}: {line.strip()[:100]}"


def test_nothing_names_this_machine_or_a_registry():
    # Spelt apart, so that this file does not find itself.
    paths = re.compile("/(" + "|".join(["work", "root", "home"]) + r")/[A-Za-z.]")
    hosts = re.compile(r"\b(pypi|files\.pythonhosted|deb\.debian|archive\.ubuntu|anaconda)\.[a-z]+\b")
    allowed = re.compile(r"https?://(pypi\.org/project|www\.)")
    for path in TREE:
        if path.suffix in {".gz", ".png", ".pdf", ".npy"}:
            continue
        for number, line in enumerate(text(path).splitlines(), start=1):
            assert not paths.search(line), f"{path}:{number} holds a machine path: {line.strip()[:80]}"
            if path.name != Path(__file__).name:
                named = hosts.search(line) and not allowed.search(line)
                assert not named, f"{path}:{number} names a registry: {line.strip()[:80]}"


def test_every_experiment_feeds_a_figure_or_a_table_and_the_reverse():
    claims = [one for _, raw in folders.parts("claims") for one in raw["claims"]]
    claimed = {name for claim in claims for name in claim.get("experiments", [])}
    data = {name: load_toml(path) for name, path in folders.experiments().items()}
    for name, one in data.items():
        assert one.get("feeds"), f"{name} feeds nothing"
        assert "claims" not in one["feeds"] or name in claimed, f"{name}: no claim names it"
    fed = {name for one in data.values() for name in one["feeds"]}
    # The figures of figures.toml, of which there are dozens, name their experiments instead.
    for name, figure in _paper.specs().items():
        assert set(figure.experiments) <= set(data), f"{name}: experiments that do not exist"
        fed.add(name)
    named = [[one.__name__.rpartition(".")[2] for one in sources.modules(kind)] for kind in ("figures", "tables")]
    figures, tables = map(set, named)
    assert [len(figures), len(tables)] == [*map(len, named)], "two modules of one name"
    assert not figures & set(_paper.specs()), "drawn by data and by code"
    outputs = figures | set(_paper.specs()) | tables | {"claims"}
    assert fed <= outputs, f"fed, but not drawn: {sorted(fed - outputs)}"
    by_code = {name for name in figures if draws_real_input(name) or catalogue.entries()[name].command}
    unfed = figures - by_code - tables - fed  # a figure of a table has the table's rows
    assert not unfed, f"drawn, but not fed: {sorted(unfed)}"


def test_a_source_has_its_files_in_its_folders_and_needs_no_other_source():
    own = {path.parent.name for path in folders.experiments().values()}
    assert own == {path.parts[1] for path in TREE if path.match("experiments/*/README.md")} - PROGRAMS
    assert own >= {path.parts[2] for path in TREE if path.match("plots/sources/*/*") and path.suffix == ".py"}
    for name, imported in import_graph().items():
        if name.startswith("plots.sources."):
            others = {one for one in imported if one.startswith("plots.sources.")}
            assert all(one.split(".")[2] == name.split(".")[2] for one in others), f"{name} imports another source"
        elif name != "plots.sources":
            assert not any(one.startswith("plots.sources.") for one in imported), f"{name} serves every source"


def draws_real_input(figure: str) -> bool:
    """The experiments on real input are code; their figures are named by their modules."""
    modules = [path for path in TREE if path.parent == Path("experiments/inputs")]
    return any(figure in text(path) for path in modules)
