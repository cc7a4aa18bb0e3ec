"""The packages of plots: no module imports back, what a set commits."""

import ast
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from xcorr.paths import ROOT

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "plots").rglob("*.py")
}


def imported(path: Path) -> set[str]:
    """Modules of plots that a file imports, imports inside functions included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)
    return found & set(MODULES)


def test_imports_have_no_circle():
    graph = {name: imported(path) - {name} for name, path in MODULES.items()}
    assert sum(map(len, graph.values())) > 100
    list(TopologicalSorter(graph).static_order())  # CycleError names the circle


def test_tables_draw_nothing_and_know_no_report():
    for name, path in MODULES.items():
        if name.startswith("plots.tables"):
            later = [one for one in imported(path) if one.startswith(("plots.figures", "plots.report", "plots.render"))]
            assert not later, f"{name} imports {later}"


def test_a_published_set_commits_rows_tables_and_svg_alone():
    done = subprocess.run(["git", "ls-files", "results/published"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    files = [Path(line) for line in done.stdout.splitlines()]
    assert {path.suffix for path in files if path.parent.name == "figures"} <= {".svg"}
    kinds = {path.suffix for path in files if path.parent.name not in ("figures", "tables")}
    kinds -= {path.suffix for path in files if path == Path("results/published/README.md")}
    assert kinds <= {".gz", ".json", ".csv", ".npz"}, kinds
