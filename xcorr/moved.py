"""Old names of modules: whoever types or imports one is told the new name."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder


class _Moved(MetaPathFinder):
    def __init__(self, names: Mapping[str, str]):
        self._names = names

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: object = None) -> None:
        if fullname in self._names:
            raise ImportError(f"{fullname} is now {self._names[fullname]}; use that name")


def tell(package: str, names: Mapping[str, str]) -> None:
    """From now on an import of `package`.<old> is an ImportError that says the new name."""
    sys.meta_path.insert(0, _Moved({f"{package}.{old}": new for old, new in names.items()}))
