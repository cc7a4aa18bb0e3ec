"""What git knows of the sources: what a run record says of those it measured, and what `publish` asks about such a record."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from xcorr.paths import ROOT

MEASURED = ("algorithms", "harness")  # their tree ids are in the record of a run: they make a number
FOUND = (*MEASURED, "experiments", "xcorr")  # the build and the driver take files there that git does not track


class Sources:
    """The repository whose top folder is `root`. Where git is missing, or `root` is no such folder, `known` is false, and
    no other question may be asked."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = ROOT if root is None else root
        self.known = self._ask("rev-parse", "--show-prefix") == ""

    def _ask(self, *words: str) -> str | None:
        """What git answers; None where it fails."""
        command = ["git", "-C", str(self.root), *words]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return None

    def has_commit(self, commit: str) -> bool:
        """Whether the repository knows the commit."""
        return self._ask("cat-file", "-e", f"{commit}^{{commit}}") is not None

    def trees(self, commit: str) -> dict[str, str | None]:
        """The tree ids of the folders that make a number, as the commit has them; None where it lacks one."""
        return {name: self._ask("rev-parse", "--verify", "--quiet", f"{commit}:{name}") for name in MEASURED}

    def has_experiment(self, name: str) -> bool:
        """Whether the file of that experiment is there and tracked."""
        tracked = (self._ask("ls-files", "-z", "--", "experiments") or "").split("\0")
        return any(Path(one).name == f"{name}.toml" and (self.root / one).is_file() for one in tracked)

    def modified(self) -> bool:
        """Whether files differ from the commit, or untracked ones lie where the build or the driver takes them. Results
        may differ: they are what a sweep and `publish` write."""
        tracked = self._ask("status", "--porcelain", "-uno", "--", ".", ":(exclude)results")
        untracked = self._ask("ls-files", "--others", "--exclude-standard", "--", *FOUND)
        return tracked != "" or untracked != ""

    def record(self) -> dict[str, Any]:
        """What the record of a run says of its sources: commit, whether they were modified, tree ids; None without git."""
        commit = self._ask("rev-parse", "--verify", "--quiet", "HEAD") if self.known else None
        if commit is None:
            return {"git_commit": None, "git_dirty": None, "git_trees": None}
        return {"git_commit": commit, "git_dirty": self.modified(), "git_trees": self.trees(commit)}
