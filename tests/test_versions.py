"""The version of the project stands in four files; CITATION.cff cites every source."""

import re

from tree import text

from experiments import folders
from xcorr.files import load_toml
from xcorr.paths import ROOT

# Of each folder of experiments/ that follows publications their titles. `beyond` follows none.
TITLES = {
    "jpdc": ("Efficient GPU-accelerated parallel cross-correlation", "Accelerating cross-correlation with GPUs"),
    "autocorrelation": (
        "Orders-of-magnitude performance increases in GPU-accelerated correlation of images from the International Space Station",
    ),
    "template_matching": ("Adaptable Sliding Window Operations with CUDA",),
    "time_series": (
        "Calculation of Cross-correlation Function Accelerated by Tensor Cores with TensorFloat-32 precision on Ampere GPU",
    ),
    "beyond": (),
}


def test_all_files_have_one_version() -> None:
    patterns = {
        "meson.build": r"version: '([^']+)', license",
        "pyproject.toml": r'^version = "([^"]+)"',
        "CITATION.cff": r"^version: (\S+)",
        "CHANGELOG.md": r"^## (\S+)",
    }
    found = {path: re.search(pattern, text(path), re.MULTILINE) for path, pattern in patterns.items()}
    assert len({match and match[1] for match in found.values()}) == 1, found


def test_all_files_have_one_licence() -> None:
    named = re.search(r"^license: (\S+)$", text("CITATION.cff"), re.MULTILINE)
    assert named and load_toml(ROOT / "pyproject.toml")["project"]["license"] == named[1] == "MIT"
    assert text("LICENSE").startswith("MIT License") and "license: 'MIT'" in text("meson.build")


def test_every_source_is_a_reference_of_the_citation() -> None:
    assert {path.parent.name for path in folders.experiments().values()} == set(TITLES), "a source is not cited yet"
    references = text("CITATION.cff").partition("\nreferences:\n")[2]
    titles = re.findall(r'^  - type: [a-z-]+$(?:\n    thesis-type: .*)?\n    title: "(.+)"$', references, re.MULTILINE)
    assert sorted(titles) == sorted(one for of in TITLES.values() for one in of)
    each = re.split(r"^  - type: ", references, flags=re.MULTILINE)[1:]
    for title, reference in zip(titles, each, strict=True):
        assert "\n    authors:\n      - " in reference, f"{title}: CITATION.cff needs authors"
        assert re.search(r"^    (doi|url|repository-code): ", reference, re.MULTILINE), f"{title}: not to be found"
