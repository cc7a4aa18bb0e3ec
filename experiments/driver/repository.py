"""What git knows of the code: a run record names the code that was measured, and `publish` checks such a record."""

import subprocess
from pathlib import Path
from typing import Any

from xcorr.paths import ROOT

MEASURED = ("algorithms", "harness")  # folders that decide a measured time; a run record has their tree ids
FOUND = (*MEASURED, "experiments", "xcorr")  # folders where the build and the driver also use untracked files


class Repository:
    """The git repository with the top folder `root`. Without one, or without git, only `known`, false, may be used."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = ROOT if root is None else root
        self.known = self._ask("rev-parse", "--show-prefix") == ""

    def _ask(self, *words: str) -> str | None:
        """The output of git; None where it fails."""
        command = ["git", "-C", str(self.root), *words]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return None

    def has_commit(self, commit: str) -> bool:
        return self._ask("cat-file", "-e", f"{commit}^{{commit}}") is not None

    def trees(self, commit: str) -> dict[str, str | None]:
        """The tree ids of MEASURED in the commit; None for a folder that it lacks."""
        return {name: self._ask("rev-parse", "--verify", "--quiet", f"{commit}:{name}") for name in MEASURED}

    def has_experiment(self, name: str) -> bool:
        """Whether the file of that experiment exists and is tracked."""
        tracked = (self._ask("ls-files", "-z", "--", "experiments") or "").split("\0")
        return any(Path(one).name == f"{name}.toml" and (self.root / one).is_file() for one in tracked)

    def modified(self) -> bool:
        """Whether files differ from the commit, or untracked files exist in FOUND. Files in results/ do not count:
        sweeps and `publish` write them."""
        tracked = self._ask("status", "--porcelain", "-uno", "--", ".", ":(exclude)results")
        untracked = self._ask("ls-files", "--others", "--exclude-standard", "--", *FOUND)
        return tracked != "" or untracked != ""

    def record(self) -> dict[str, Any]:
        """The cells of a run record about the code: commit, whether it was modified, tree ids; None without git."""
        commit = self._ask("rev-parse", "--verify", "--quiet", "HEAD") if self.known else None
        if commit is None:
            return {"git_commit": None, "git_dirty": None, "git_trees": None}
        return {"git_commit": commit, "git_dirty": self.modified(), "git_trees": self.trees(commit)}
