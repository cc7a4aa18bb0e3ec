"""Where the headers of the algorithms lie, whose names they hold, and what only the vocabulary may say."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import PurePosixPath

import pytest

from xcorr.paths import ROOT

ALGORITHMS = ROOT / "algorithms"
UNIT, HEADER = {".cpp", ".cu"}, {".hpp"}
VOCABULARY = {f"algorithms/device/{name}.hpp" for name in ("cuda", "launch", "memory", "matrix", "texture")}
# Text that CUDA's run-time compiler gets alone, without the project's headers; its variant is not emulated.
ALONE = {"algorithms/fft/cufft/callbacks.hpp", "algorithms/template_matching/run_time/run_time_text.hpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Ordinary CUDA C++ and the host compilers' own names.
WORDS = (
    "global__|device__|host__|forceinline__|launch_bounds__|restrict__|grid_constant__|x86_64__|attribute__|builtin_cpu"
)
FORBIDDEN = {
    "PTX": re.compile(r"\basm\b"),
    "an intrinsic": re.compile(rf"\b__(?!{WORDS})\w+|\batomic[A-Z]\w*|\b(cuda|nvcuda|cooperative_groups)::"),
    "the emulation": re.compile(r"XCORR_EMULATE|\bemulation::|__CUDA_ARCH__"),
}
TYPE = re.compile(r"^(?:struct|class|enum class)\s+(?:alignas\((?:[^()]|\([^()]*\))*\)\s+)?(\w+)[^;{]*\{", re.MULTILINE)
NAMESPACE = re.compile(r"^namespace\s+([\w:]*)\s*\{", re.MULTILINE)


@cache
def code(path: str) -> str:
    """A file of the tree without its comments."""
    return COMMENT.sub("", (ROOT / path).read_text(encoding="utf-8"))


def sources(suffixes: Iterable[str]) -> list[str]:
    found = (path for path in ALGORITHMS.rglob("*") if path.suffix in set(suffixes))
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def family(path: str) -> str:
    return PurePosixPath(path).parts[1]


def included(path: str) -> list[str]:
    return INCLUDE.findall(code(path))


def reached(path: str, seen: set[str] | None = None) -> set[str]:
    """All that a file includes of the algorithms, through other headers too."""
    seen = set() if seen is None else seen
    for name in included(path):
        if name.startswith("algorithms/") and name not in seen:
            seen.add(name)
            reached(name, seen)
    return seen


def said(text: str) -> dict[str, str]:
    """What a text says that only the vocabulary may say: the kind and the first such word."""
    found = {kind: words.search(COMMENT.sub("", text)) for kind, words in FORBIDDEN.items()}
    return {kind: match[0] for kind, match in found.items() if match}


@pytest.mark.parametrize("path", sorted(set(sources(UNIT | HEADER)) - VOCABULARY - ALONE))
def test_only_the_vocabulary_has_intrinsics_and_knows_the_emulation(path: str) -> None:
    assert said(code(path)) == {}, f"{path}: use the names of the vocabulary (algorithms/device/README.md)"


@pytest.mark.parametrize("path", sorted(ALONE))
def test_what_is_compiled_alone_includes_nothing_of_the_project(path: str) -> None:
    assert "an intrinsic" in said(code(path)), f"{path}: keeps the rule; take it off the list of exceptions"
    units = [unit for unit in sources(UNIT) if path in reached(unit)]
    assert units and all(".emulated = false" in code(unit) for unit in units)


@pytest.mark.parametrize(
    "text, kind",
    [
        ("x = __ldcg(p);", "an intrinsic"),
        ("__syncthreads();", "an intrinsic"),
        ("__shared__ float tile[32];", "an intrinsic"),
        ("atomicAdd(p, 1);", "an intrinsic"),
        ("cuda::atomic_ref<int> a(*p);", "an intrinsic"),
        ('asm volatile("bar.sync 0;");', "PTX"),
        ("#ifdef XCORR_EMULATE", "the emulation"),
        ("#if __CUDA_ARCH__ >= 900", "the emulation"),
        ("emulation::poll();", "the emulation"),
    ],
)
def test_what_the_vocabulary_alone_may_say_is_found(text: str, kind: str) -> None:
    assert kind in said(text)


def test_ordinary_cuda_is_not_taken_for_an_intrinsic() -> None:
    kernel = "__global__ void __launch_bounds__(32) k(float* __restrict__ p) { atomic_add(p, 1); }"
    assert said(f"{kernel}  // not atomicAdd, not __ldg") == {}


@pytest.mark.parametrize("path", sources(UNIT | HEADER))
def test_a_family_includes_the_contract_its_own_headers_and_what_all_share(path: str) -> None:
    contract = {"harness/variant.hpp", "harness/compilation.hpp"} | (
        {"harness/problem/problem.hpp"} if path.endswith(".hpp") else set()
    )
    folders = {"device"} if family(path) == "device" else {"device", "blocks", family(path)}
    for name in included(path):
        own = name.startswith("algorithms/") and family(name) in folders
        assert own or name in contract, f"{path} includes {name}, which is not its own"
        assert (ROOT / name).is_file(), f"{path} includes {name}, which does not exist"


@pytest.mark.parametrize("path", sources(HEADER))
def test_a_header_lies_where_it_is_used(path: str) -> None:
    users = {unit for unit in sources(UNIT) if path in reached(unit)}
    assert users, f"{path}: no variant includes it"
    families = {family(unit) for unit in users}
    if family(path) == "device":
        assert path in VOCABULARY, f"{path}: is not the vocabulary; move it to blocks/ or to a family"
    elif family(path) == "blocks":
        assert len(families) > 1, f"{path}: only {families} uses it; move it there"
    elif len(PurePosixPath(path).parts) > 3:
        folder = PurePosixPath(path).parent.name
        if folder in {PurePosixPath(unit).stem for unit in sources(UNIT)}:  # of one variant
            assert {PurePosixPath(unit).stem for unit in users} == {folder}, f"{path}: others than {folder} use it"
        else:  # a part that variants of the family share
            beside = {one for one in sources(HEADER) if PurePosixPath(one).parent == PurePosixPath(path).parent}
            all_users = {unit for unit in sources(UNIT) if beside & reached(unit)}
            assert len(all_users) > 1, f"{path}: only {all_users} uses the folder; name it after that variant"


@pytest.mark.parametrize("path", sources(UNIT))
def test_a_variant_is_a_file_of_its_family_or_of_its_own_folder(path: str) -> None:
    parts = PurePosixPath(path).parts
    assert len(parts) == 3 or (len(parts) == 4 and parts[2] == PurePosixPath(path).stem), path
    assert parts[1] not in ("device", "blocks"), f"{path}: {parts[1]}/ holds no variants"


@pytest.mark.parametrize("path", sorted(set(sources(UNIT | HEADER)) - ALONE))
def test_a_file_opens_the_namespace_of_its_family(path: str) -> None:
    """The emulated build renames these; what lay in xcorr itself would collide with libxcorr."""
    opened = {name for name in NAMESPACE.findall(code(path)) if name.startswith("xcorr")}
    allowed = {"xcorr::device" if family(path) == "blocks" else f"xcorr::{family(path)}"}
    if path == "algorithms/device/launch.hpp":  # brings the names of device/ and blocks/ to all families
        allowed.add("xcorr")
    assert opened and opened <= allowed, f"{path} opens {sorted(opened - allowed) or 'no namespace'}"


def test_every_type_of_a_header_has_a_name_of_its_own() -> None:
    """Across families too, so that a name means one thing. A variant's own folder may use short ones, but none that
    another variant of its family has: both are linked into one library, where one definition would serve both."""
    places: dict[str, list[str]] = {}
    for path in sources(HEADER):
        scope = f"{family(path)}::" if len(PurePosixPath(path).parts) > 3 else ""
        for name in set(TYPE.findall(code(path))):
            places.setdefault(scope + name, []).append(path)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_type_hides_one_of_the_contract() -> None:
    headers = ("harness/variant.hpp", "harness/problem/problem.hpp")
    contract = {name for path in headers for name in TYPE.findall(code(path))}
    assert {"Problem", "Shape", "Plan", "Axis"} <= contract
    for path in sources(UNIT | HEADER):
        assert not contract & set(TYPE.findall(code(path))), f"{path} defines a name of the contract anew"
