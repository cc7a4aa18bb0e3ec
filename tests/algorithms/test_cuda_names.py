"""CUDA 12.2 is the oldest toolkit that must compile: no source needs a name that it does not have."""

import re
import subprocess
from pathlib import Path

import pytest
from cuda_names import names

from xcorr.paths import ROOT

OLDEST = set((ROOT / "tests/support/fixtures/cuda_12_2_names.txt").read_text().split())
FOLDERS = ["algorithms", "harness", "tests/harness", "tests/algorithms", "tests/stress"]
SOURCE = {".cu", ".cuh", ".hpp", ".cpp"}
# A branch that newer toolkits alone compile.
NEWER_ONLY = re.compile(r"#\s*if\s+(CUDART|CUFFT)_VERSION\s*>=\s*\d+\s*$")
# Of the compiler, not of a header.
COMPILERS = {"__restrict__", "__restrict", "__attribute__", "__has_include", "__asm__", "__int128"}
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def everywhere(text: str) -> str:
    """The lines that every toolkit compiles."""
    kept, branches = [], []  # of each open #if: whether its present branch is for newer toolkits alone
    for line in text.splitlines():
        directive = line.strip()
        if re.match(r"#\s*if", directive):
            branches.append(bool(NEWER_ONLY.match(directive)))
        elif re.match(r"#\s*(else|elif)", directive):
            branches[-1] = False
        elif re.match(r"#\s*endif", directive):
            branches.pop()
        elif not any(branches) and not directive.startswith("#include"):
            kept.append(STRING.sub('""', line))
    return "\n".join(kept)


def unknown(text: str) -> set[str]:
    return names(everywhere(text)) - OLDEST - COMPILERS


def sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = [Path(line) for line in listed.splitlines() if Path(line).suffix in SOURCE]
    return [path for path in found if (ROOT / path).is_file()]


def test_the_oldest_toolkit_has_every_name():
    found = {path: unknown((ROOT / path).read_text()) for path in sources()}
    assert any(names((ROOT / path).read_text()) for path in found)
    missing = [f"{path}: {', '.join(sorted(new))}" for path, new in found.items() if new]
    assert not missing, "CUDA 12.2 lacks, put behind #if CUDART_VERSION >=: " + "; ".join(missing)


ATTRIBUTE = "cudaDeviceGetAttribute(&shared, cudaDevAttrMpsEnabled, device);"


@pytest.mark.parametrize(
    "text, missing",
    [
        (ATTRIBUTE, {"cudaDevAttrMpsEnabled"}),
        (f"#if CUDART_VERSION >= 12030\n{ATTRIBUTE}\n#else\nreturn true;\n#endif", set()),
        (f"#if CUDART_VERSION >= 12030\nreturn true;\n#else\n{ATTRIBUTE}\n#endif", {"cudaDevAttrMpsEnabled"}),
        (f"#ifdef XCORR_EMULATE\n{ATTRIBUTE}\n#endif", {"cudaDevAttrMpsEnabled"}),
        (f"#if CUDART_VERSION >= 12030\n#ifdef A\n#endif\n{ATTRIBUTE}\n#endif\n__nanosleep(1);", set()),
        (f"// {ATTRIBUTE}\n", set()),
        ("__ldcg(p); __cluster_barrier_arrive_new();", {"__cluster_barrier_arrive_new"}),
    ],
)
def test_a_newer_name_is_found_outside_its_guard(text: str, missing: set[str]):
    assert unknown(text) == missing


def test_the_limit_of_shared_memory_is_set_in_one_place():
    """A plan that set its kernel's limit by itself would lower it under the plans of other threads."""
    setting = "cudaFuncAttributeMaxDynamicSharedMemorySize"
    places = [
        str(path)
        for path in sources()
        if path.parts[0] in ("algorithms", "harness") and setting in (ROOT / path).read_text()
    ]
    assert places == ["algorithms/device/launch.hpp"]
