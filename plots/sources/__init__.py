"""Finds the modules of figures, tables and claims: those of all sources, and those that one source alone needs.

plots/figures/ and plots/tables/ serve every source. What one source alone needs lies in plots/sources/<source>/ under the
same names, and the computations of its claims in its claims.py. Nothing lists them: a file that is added is found.
"""

import importlib
from pathlib import Path
from types import ModuleType

PLOTS = Path(__file__).resolve().parent.parent


def modules(kind: str) -> list[ModuleType]:
    """The modules of `figures` or `tables`, sorted by name. Names that start with an underscore are helpers."""
    paths = [*PLOTS.glob(f"{kind}/**/[!_]*.py"), *PLOTS.glob(f"sources/*/{kind}/[!_]*.py")]
    return [_module(path) for path in sorted(paths, key=lambda path: (path.name, path))]


def claims() -> list[ModuleType]:
    """The modules with computations of a source's claims, in the order of their classes."""
    return sorted(map(_module, PLOTS.glob("sources/*/claims.py")), key=lambda module: module.ORDER)


def _module(path: Path) -> ModuleType:
    return importlib.import_module(".".join(["plots", *path.relative_to(PLOTS).with_suffix("").parts]))
