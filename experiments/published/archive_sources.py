"""The sources of an archive: what git says of the tree, and the tree as git archives it."""

import gzip
import subprocess
from datetime import datetime, timezone

from experiments.driver.repository import FOUND, Repository
from xcorr.errors import UserError

TOP = "xcorr-bench"  # folder of the sources and of the sets in an archive
SETS = "results/published"
CLEAN = ("status", "--porcelain", "--untracked-files=no")


class Sources(Repository):
    """The tree at its commit. What it says is right only after `check`."""

    def check(self) -> None:
        """UserError unless this is a git repository whose files are those of its commit. An untracked file counts where the build,
        the driver or the archive would take it."""
        if not self.known or self.commit() == "":
            raise UserError(f"{self.root}: no git repository with a commit; make the archive in a clone")
        changed = (self._ask(*CLEAN) or "").splitlines()
        others = self._ask("ls-files", "--others", "--exclude-standard", "--", *FOUND, SETS) or ""
        names = [*(line[2:].strip() for line in changed), *others.splitlines()]
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise UserError(
                f"{self.root}: {names[0]}{more} not as in the commit; commit the changes, or make the archive in another clone"
            )

    def commit(self) -> str:
        return self._ask("rev-parse", "--verify", "--quiet", "HEAD") or ""

    def date(self) -> datetime:
        """When the commit was made, in UTC."""
        said = self._ask("-c", "log.showSignature=false", "log", "-1", "--format=%ct")
        return datetime.fromtimestamp(int(said or 0), timezone.utc)

    def files_of_set(self, key: str) -> list[str]:
        """Paths from the root of the files that git tracks of a published set."""
        listed = self._ask("ls-files", "-z", "--", f"{SETS}/{key}") or ""
        return [name for name in listed.split("\0") if name]

    def packed(self) -> bytes:
        """All files of the commit but the published sets, as a .tar.gz; a commit gives the same bytes each time."""
        what = ["HEAD", "--", ".", f":(exclude){SETS}"]
        command = ["git", "-C", str(self.root), "archive", "--format=tar", f"--prefix={TOP}/", *what]
        try:
            made = subprocess.run(command, capture_output=True, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise UserError(f"{self.root}: git archive failed ({error}); look at git fsck") from error
        return gzip.compress(made.stdout, mtime=0)
