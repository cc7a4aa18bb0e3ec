"""Rules of the tree that a program can check: who includes and imports whom, names, sizes."""

import ast
import graphlib
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest
from tree import ROOT, TREE, text

SOURCE = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".py", ".sh"}
C_FAMILY = SOURCE - {".py", ".sh"}
# Folders with Python in the order in which they may import one another: a folder imports itself and earlier ones.
FOLDERS = ["xcorr", "harness", "experiments", "plots", "scripts", "tests"]
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
    assert len(packages) == 4, "driver, inputs, compare, published"
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
    """A folder of internals is described, by name, by the README of a folder above it."""
    for parent in list(folder.parents)[:-1]:
        readme = ROOT / parent / "README.md"
        if readme.is_file() and f"`{folder.relative_to(parent)}/`" in readme.read_text():
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
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    fed, measured = set(), set()
    claims = tomllib.loads(text(Path("experiments/claims.toml")))["claims"]
    claimed = {name for claim in claims for name in claim.get("experiments", [])}
    for path in TREE:
        if path.parent == Path("experiments") and path.suffix == ".toml":
            data = tomllib.loads(text(path))
            if "problems" in data:
                assert data.get("feeds"), f"{path} feeds nothing"
                fed |= set(data["feeds"])
                assert "claims" not in data["feeds"] or path.stem in claimed, f"{path}: no claim names it"
                measured.add(path.stem)
    # The paper's figures, of which there are dozens, name their experiments instead.
    paper = tomllib.loads(text(Path("plots/figures/paper.toml")))
    for name, figure in paper.items():
        if name != "selections":
            assert set(figure["experiments"]) <= measured, f"{name}: experiments that do not exist"
            fed.add(name)
    # A figure is a table of paper.toml or a module; a table is a module.
    modules = {
        path.stem
        for path in TREE
        if path.parent == Path("plots/figures") and path.suffix == ".py" and path.stem[0] != "_"
    }
    assert not modules & set(paper), f"drawn by data and by code: {sorted(modules & set(paper))}"
    tables = {path.stem for path in TREE if path.parent == Path("plots/tables")}
    outputs = modules | set(paper) - {"selections"} | tables | {"claims"}
    assert fed <= outputs, f"fed, but not drawn: {sorted(fed - outputs)}"
    by_code = {name for name in modules if draws_real_input(name)}
    unfed = modules - by_code - tables - fed  # a figure of a table has the table's rows
    assert not unfed, f"drawn, but not fed: {sorted(unfed)}"


def draws_real_input(figure: str) -> bool:
    """The experiments on real input are code; their figures are named by their modules."""
    modules = [path for path in TREE if path.parent == Path("experiments/inputs")]
    return any(figure in text(path) for path in modules)
