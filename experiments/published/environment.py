"""What an archive says of the programs that it was made with, and of the machines that its sets were measured on."""

import json
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from xcorr.files import load_toml

# Facts of a run record; clocks, temperatures and the like change from run to run.
FACTS = (
    *("machine_key", "device_name", "cores", "multiprocessors", "memory_bytes", "compute_capability", "host"),
    *("driver", "cuda", "cuda_driver", "cufft_version", "compiler", "flags", "google_benchmark", "package_version"),
)
PROGRAMS = ("c++", "nvcc", "meson", "ninja", "git")


def environment(root: Path, sets: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Packages and programs of this machine, and of each set, by its place, the machines and commits of its run records."""
    here = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
    return {
        "archived_with": {**here, "packages": packages(root), "programs": {name: program(name) for name in PROGRAMS}},
        "measured_with": {place: measured(records) for place, records in sets.items()},
    }


def packages(root: Path) -> dict[str, str | None]:
    """Versions of the packages of pyproject.toml; None for one that this interpreter lacks."""
    found: dict[str, str | None] = {}
    project = load_toml(root / "pyproject.toml")["project"]
    for requirement in project["dependencies"] + project["optional-dependencies"]["measure"]:
        name = re.split(r"[^A-Za-z0-9_-]", requirement, maxsplit=1)[0]
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def program(name: str) -> str | None:
    """The line of `name --version` that has a number; None where there is no such program."""
    try:
        said = subprocess.run([name, "--version"], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = [line for line in said.stdout.splitlines() if re.search(r"\d\.\d", line)]
    return lines[0].strip() if lines else None


def measured(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Machines with the number of their runs, commits with whether sources differed from them, first and last day."""
    machines: dict[str, int] = {}
    for record in records:
        said = record.get("before") or record.get("machine") or {}
        text = json.dumps({name: said[name] for name in FACTS if name in said}, sort_keys=True)
        machines[text] = machines.get(text, 0) + 1
    commits = {(str(record.get("git_commit")), str(record.get("git_dirty"))) for record in records}
    days = sorted(record["utc"][:10] for record in records if record.get("utc"))
    return {
        "machines": [{**json.loads(text), "runs": runs} for text, runs in machines.items()],
        "commits": [{"git_commit": commit, "git_dirty": dirty} for commit, dirty in sorted(commits)],
        "days": [days[0], days[-1]] if days else [],
    }
