"""Old names of modules: whoever types or imports one is told the new name."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec


class _Moved(MetaPathFinder):
    """Asked before the finders of Python, so that an old name is told even where a file of that name was left behind."""

    def __init__(self, names: Mapping[str, str]):
        self._names = names

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if any(
            name.startswith(f"{fullname}.") for name in self._names
        ):  # a folder of old modules, which say where they are
            return ModuleSpec(fullname, None, is_package=True)
        if fullname in self._names:
            raise ImportError(f"{fullname}: was renamed; use {self._names[fullname]}")
        return None


def tell(package: str, names: Mapping[str, str]) -> None:
    """From now on an import of `package`.<old name> is an ImportError with the new name. `names`: new by old name."""
    sys.meta_path.insert(0, _Moved({f"{package}.{old}": new for old, new in names.items()}))
