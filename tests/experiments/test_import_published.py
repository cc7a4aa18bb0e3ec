"""The import of the published artifact: values arrive, nothing is guessed, labels that cannot be are found."""

import json
import sys
from pathlib import Path

import pytest
from calls import call, error_of
from fixtures import published

from experiments.driver import store
from experiments.published import guard, importing
from plots import render, tidy
from xcorr.paths import ROOT


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return published.package(tmp_path / "presented-results")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def run(*words: object, results: Path) -> int:
    return importing.main([*map(str, words), "--results", str(results)])


def rows_of(results: Path, folder: str = "volta") -> list[store.Row]:
    return store.read_rows(results / "published" / f"published-{folder}")


def test_values_arrive_in_our_words(package, results, capsys):
    assert run(package, results=results) == 0
    rows = rows_of(results)
    assert {(row["outcome"], row["preset"]) for row in rows} == {("published", "published")}
    assert all("not verified" in row["reason"] for row in rows)
    flops = 0.2 * 15.7e12
    params = "left_mats=4;left_rows=4;overlaps_per_thread=4;right_mats=4;warps_per_block=4"
    wanted = ("multi_matrix_both_grouped_overlap", "64", params)
    found = [row for row in rows if (row["variant"], row["left_rows"], row["params"]) == wanted]
    assert [row["repetition"] for row in found] == ["0", "1", "2"]
    expected = 2e6 * 64**4 * 128**2 / flops
    assert float(found[0]["compute_us"]) == pytest.approx(expected, abs=0.001)
    assert float(found[2]["compute_us"]) == pytest.approx(expected + 0.2, abs=0.001)
    assert found[0]["fmas"] == str(64**4 * 128**2) and found[0]["lefts"] == found[0]["rights"] == "128"
    assert {row["variant"] for row in rows} >= {"overlap_wise_serial_batch", "split_row", "cufft_paper"}
    told = capsys.readouterr().out
    assert "one_to_one_saturated/basic.csv: the kernel of this file was not replicated" in told
    assert not [row for row in rows if row["variant"] == "warp_shuffle"]


def test_an_fft_is_the_sum_of_its_phases_and_its_plan_is_a_median(package, results):
    assert run(package, results=results) == 0
    ffts = [row for row in rows_of(results) if row["variant"] == "cufft_paper" and row["form"] == "one-to-one"]
    assert {(row["forward_us"], row["hadamard_us"], row["inverse_us"]) for row in ffts} == {("5.0", "2.0", "5.0")}
    assert {row["compute_us"] for row in ffts} == {"12.0"} and {row["params"] for row in ffts} == {""}
    saturated = [row for row in rows_of(results) if row["variant"] == "cufft_paper" and row["form"] == "n-to-m"]
    assert {row["plan_us"] for row in saturated} == {"4200.0"}, "the first plan holds the start-up of the library"


def test_copies_of_a_pair_are_an_input_of_their_own(package, results):
    assert run(package, results=results) == 0
    copies = [row for row in rows_of(results) if row["variant"] == "grouped_overlap"]
    found = {(r["form"], r["lefts"], r["rights"], r["input"]) for r in copies}
    assert found == {("n-to-mn", "4000", "4000", "identical")}
    assert {row["fmas"] for row in copies} == {str(4000 * size**4) for size in published.SIZES}


def test_the_set_is_drawn_hollow_said_to_be_unverified_and_in_no_table(package, results):
    assert run(package, results=results) == 0
    assert render.main(["published-volta", "--results", str(results)]) == 0
    folder = results / "published" / "published-volta"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Imported, not verified" in page and "How it was checked" not in page
    assert "V100 SXM2 32 GB" in page
    assert (folder / "figures" / "comparison_n-to-m.svg").exists()
    assert "No verified time in this set" in (folder / "tables" / "best_algorithm.md").read_text()
    loaded = tidy.load(folder, "published-volta", "published")
    assert set(loaded.points["outcome"]) == {"published"} and (loaded.points["compute_us"] > 0).all()


def test_the_same_files_give_the_same_bytes(package, results, tmp_path):
    assert run(package, results=results) == 0
    assert run(package, results=tmp_path / "again" / "results") == 0
    for path in sorted((results / "published").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path)).read_bytes(), path


def test_what_exists_is_replaced_only_with_force(package, results, capsys):
    assert run(package, "--folder", "volta", results=results) == 0
    path = results / "published" / "published-volta" / "n-to-m.csv.gz"
    before = path.read_bytes()
    published.kernel_file(package / "data/volta/n_to_m_saturated/original.csv", {}, {(16, 128, 128): 5e6})
    capsys.readouterr()
    assert run(package, results=results) == 2
    assert "--force" in error_of(capsys) and path.read_bytes() == before
    assert not (results / "published" / "published-ada").exists(), "nothing is written before all is known"
    assert run(package, "--force", results=results) == 0
    assert path.read_bytes() != before


BREAKS = [
    ("unknown algorithm", "n_to_m/multimat-bth.csv", lambda text: text, "did you mean multimat-both?"),
    ("unknown group", "n_to_mm/original.csv", lambda text: text, "did you mean n_to_m"),
    ("unknown column", None, lambda text: text.replace("num_cuda_streams", "num_streams"), "column num_streams"),
    ("missing column", None, lambda text: text.replace("Input matrix rows", "rows"), "column Input matrix rows is"),
    ("cut off in a line", None, lambda text: text[:-12], "damaged"),
    ("line too short", None, lambda text: text.replace(",1x1", "").replace(",128x128,", ","), "damaged (line 2"),
    ("not a number", None, lambda text: text.replace("\n0,", "\n0,x", 1), "damaged (not a positive number)"),
    ("nothing in it", None, lambda text: "", "damaged"),
]


@pytest.mark.parametrize("name, place, broken, says", BREAKS, ids=[one[0] for one in BREAKS])
def test_what_is_not_understood_is_one_line_and_writes_nothing(package, results, capsys, name, place, broken, says):
    path = package / "data/volta/n_to_m_saturated/original.csv"
    text = path.read_text()
    target = package / "data/volta" / place if place else path
    target.parent.mkdir(exist_ok=True)
    target.write_text(broken(text))
    assert broken(text) != text or place, "the case breaks nothing"
    assert run(package, results=results) == 2
    line = error_of(capsys)
    assert says in line and target.parent.name in line
    assert not results.exists()


def test_a_file_that_is_no_text_is_refused(package, results, capsys):
    (package / "data/ada/one_to_one/fft.csv").write_bytes(b"\xff\xfe\x00")
    assert run(package, results=results) == 2
    assert "damaged (not text" in error_of(capsys)


@pytest.mark.parametrize(
    "words, says",
    [
        (["--folder", "voltaa", "X"], "did you mean volta?"),
        ([], "give DIR or --flat FILE"),
        (["--flat", "X"], "--flat needs --folder"),
        (["no-such-folder"], "holds no folder ampere or volta or ada"),
        (["--flat", "no-such.csv", "--folder", "ada"], "No such file"),
        (["--no-such"], "see --help"),
    ],
)
def test_mistakes(results, capsys, words, says):
    assert run(*words, results=results) == 2
    assert says in error_of(capsys)


def flat(path: Path, lines: list[str]) -> Path:
    heading = "gpu,group,form,rows,cols,lefts,rights,algorithm,params,metric,n,mean_us,sd_us"
    path.write_text("\n".join([heading, *lines]) + "\n")
    return path


def test_the_long_format(tmp_path, results):
    metrics = {"fft_forward": 5, "hadamard": 2, "fft_inverse": 6, "plan": 4000, "allocation": 80}
    lines = [
        f"v100,one_to_many,one-to-many,32,32,1,8,fft,hadamard_threads=256,{name},10,{value},0.1"
        for name, value in metrics.items()
    ]
    split = "warps_per_block=4;right_mats=8;rows_per_thread=1;distribution=triangle"
    lines.append(f"v100,one_to_many,one-to-many,32,32,1,8,multi-matrix-right+split-row,{split},kernel,1,7.5,")
    path = flat(tmp_path / "v100.csv", lines)
    assert run("--flat", path, "--folder", "volta", results=results) == 0
    by_variant = {row["variant"]: row for row in rows_of(results)}
    assert len(rows_of(results)) == 2
    assert by_variant["cufft_paper"]["compute_us"] == "13.0" and by_variant["cufft_paper"]["plan_us"] == "4000.0"
    assert by_variant["multi_matrix_right_split_row"]["params"] == (
        "distribution=triangle;right_mats=8;rows_per_thread=1;streams=one_kernel;warps_per_block=4"
    )


@pytest.mark.parametrize(
    "change, says",
    [
        (("kernel", "kernels"), "did you mean kernel?"),
        (("warp-shuffle", "warp-shufle"), "did you mean warp-shuffle?"),
        (("warps_per_block", "warps"), "parameter warps"),
        ((",16,16,1,1,", ",16,16,1,0,"), "damaged"),
    ],
)
def test_the_long_format_guesses_nothing(tmp_path, results, capsys, change, says):
    line = "v100,one_to_one,one-to-one,16,16,1,1,warp-shuffle,warps_per_block=4,kernel,1,7.5,"
    assert change[0] in line
    path = flat(tmp_path / "v100.csv", [line.replace(*change)])
    assert run("--flat", path, "--folder", "volta", results=results) == 2
    assert says in error_of(capsys)


def records(results: Path) -> dict[str, dict]:
    found = [json.loads(path.read_text())[0]["imported"] for path in results.glob("published/*/runs.json")]
    return {one["folder"]: one for one in found}


def test_a_planted_swap_is_found_said_and_not_repaired(tmp_path, results, capsys):
    assert run(published.package(tmp_path / "package", swapped=True), results=results) == 0
    told = capsys.readouterr().out
    assert "published-ampere: inference: the folder labelled A100 PCIe 80 GB behaves like L40 PCIe 48 GB" in told
    assert "published-ada: inference: the folder labelled L40 PCIe 48 GB behaves like A100 PCIe 80 GB" in told
    assert "no label was changed" in told and "published-volta" not in told.split("none verified here")[-1]
    guards = {folder: one["guard"] for folder, one in records(results).items()}
    like = {folder: guard["behaves_like"] for folder, guard in guards.items()}
    assert like == {"ampere": "l40", "ada": "a100", "volta": None}
    labels = {folder: one["gpu"] for folder, one in records(results).items()}
    assert labels == {"ampere": "a100", "ada": "l40", "volta": "v100"}
    assert render.main(["published-ampere", "--results", str(results)]) == 0
    page = (results / "published/published-ampere/report.html").read_text(encoding="utf-8")
    assert "Inference: the folder labelled A100 PCIe 80 GB behaves like L40 PCIe 48 GB" in page


def test_without_a_swap_the_guard_is_silent(package, results, capsys):
    assert run(package, results=results) == 0
    told = capsys.readouterr().out
    assert "inference" not in told and "beyond" not in told
    assert all(one["guard"]["impossible"] == 0 for one in records(results).values())
    assert all(one["guard"]["sentences"] == [] for one in records(results).values())


def test_one_folder_alone_is_not_exchanged(tmp_path, results, capsys):
    root = published.package(tmp_path / "package", swapped=True)
    assert run(root, "--folder", "ampere", results=results) == 0
    told = capsys.readouterr().out
    assert "beyond the peaks" in told and "import the other folders too" in told and "inference" not in told


def test_padding_of_the_warp_shuffle_family():
    """Padded over useful work of the published kernels, computed from their loop bounds."""
    known = {16: 4.0, 24: 3.5556, 32: 2.0, 48: 1.7778, 64: 1.5, 96: 1.3333, 128: 1.25, 192: 1.1667, 256: 1.125}
    for size, factor in known.items():
        assert guard.padding(size) == pytest.approx(factor, abs=1e-4), size


def test_a_labelling_must_be_better_and_the_only_one():
    labels = {"one": "a", "two": "b"}
    assert guard.fit_labels({"one": {"a": 3, "b": 0}, "two": {"a": 0, "b": 1}}, labels) == {"one": "b", "two": "a"}
    assert guard.fit_labels({"one": {"a": 0, "b": 0}, "two": {"a": 0, "b": 0}}, labels) is None
    assert guard.fit_labels({"one": {"a": 0, "b": 2}, "two": {"a": 0, "b": 0}}, labels) is None


def test_the_command_says_how():
    done = call(sys.executable, ROOT / "scripts/import_published.py", "--help", cwd="/")
    assert done.returncode == 0 and "presented-results" in done.stdout and "example" in done.stdout
