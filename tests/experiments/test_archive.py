"""An archive holds rows, sources, environment, licence and citation; damage is found; a modified tree, an existing file and an unknown set
are refused. The description of the archive is that of the package rocrate where it is installed, else a stand-in."""

import gzip
import io
import json
import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from calls import call, error_of, one_line
from tree import TREE

from experiments.published import archive, archive_check, crate
from experiments.published.archive_sources import Sources
from xcorr.errors import UserError
from xcorr.paths import ROOT

KEY, OTHER, LOCAL = "some-gpu", "other-gpu", "some-cpu"
ROWS = f"xcorr-bench/results/published/{KEY}/one-to-one.csv.gz"
FILES = ("LICENSE", "CITATION.cff", "pyproject.toml")
RECORD = {
    "run": "20260101T000000-abcdef",
    "experiment": "one-to-one",
    "git_commit": "0123456",
    "git_dirty": False,
    "utc": "2026-01-01T00:00:00Z",
    "before": {"machine_key": KEY, "device_name": "Some GPU", "compiler": "gcc 12", "cuda": "13.0", "clock_mhz": 1980},
}
Edit = Callable[[dict[str, bytes]], None]


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    done = call("git", *who, *words, cwd=folder, GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path) -> Path:
    """A small committed tree with two published sets, and a local one that git ignores."""
    root = tmp_path / "tree"
    for name in (
        "algorithms",
        "docs",
        *(f"results/published/{key}" for key in (KEY, OTHER)),
        f"results/local/{LOCAL}/modes",
    ):
        (root / name).mkdir(parents=True)
    for name in FILES:
        shutil.copy(ROOT / name, root)
    (root / "docs/artifact.md").write_text("# How\n")
    (root / "algorithms/code.cpp").write_text("int code;\n")
    (root / ".gitignore").write_text("results/local*/\n")
    for key in (KEY, OTHER):
        folder = root / "results/published" / key
        (folder / "one-to-one.csv.gz").write_bytes(gzip.compress(f"rows of {key}\n".encode(), mtime=0))
        record = {**RECORD, "before": {**RECORD["before"], "machine_key": key}}
        (folder / "runs.json").write_text(json.dumps([record]))
    local = root / "results/local" / LOCAL
    (local / "modes/a.csv.gz").write_bytes(gzip.compress(b"local rows\n", mtime=0))
    for name in ("modes/.sweeps.lock", "figure.png", "report.html"):
        (local / name).write_text("no result")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Tree")
    return root


@pytest.fixture(autouse=True)
def described(request, monkeypatch) -> None:
    """A description without packages, but for tests that are marked by the argument `rocrate`."""
    if "rocrate" in request.fixturenames:
        return

    def metadata(root: Path, subject: crate.Subject, parts: list[crate.Part]) -> bytes:
        return json.dumps({"@graph": [{"@id": one.name, "sha256": one.sha256} for one in parts]}).encode()

    monkeypatch.setattr(crate, "libraries", lambda root: None)
    monkeypatch.setattr(crate, "metadata", metadata)


@pytest.fixture
def rocrate():
    pytest.importorskip("rocrate", reason="rocrate is not installed (scripts/archive.sh installs it)")
    pytest.importorskip("yaml", reason="pyyaml is not installed (scripts/archive.sh installs it)")
    from rocrate import rocrate as module

    return module


def written(tree: Path, *words: str) -> Path:
    target = tree.parent / "artifact.zip"
    assert archive.run([*words, "--output", str(target)], tree) == 0
    return target


def content(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_all_that_was_put_in_comes_out(tree, capsys):
    target = written(tree)
    files = content(target)
    sets = {
        f"xcorr-bench/results/published/{key}/{name}"
        for key in (KEY, OTHER)
        for name in ("one-to-one.csv.gz", "runs.json")
    }
    others = {
        "sources.tar.gz",
        "LICENSE",
        "CITATION.cff",
        "artifact.md",
        "environment.json",
        crate.SUMS,
        crate.METADATA,
    }
    assert set(files) == sets | others
    for name in sets:
        assert files[name] == (tree / name.removeprefix("xcorr-bench/")).read_bytes()
    assert all(files[name] == (tree / name).read_bytes() for name in ("LICENSE", "CITATION.cff"))
    with tarfile.open(fileobj=io.BytesIO(files["sources.tar.gz"])) as sources:
        names = {one.name for one in sources if one.isfile()}
    tracked = git(tree, "ls-files").splitlines()
    assert names == {f"xcorr-bench/{name}" for name in tracked if not name.startswith("results/published/")}
    assert f"artifact.zip: {len(files)} files, all of them as SHA256SUMS" in capsys.readouterr().out
    assert archive.run(["--check", str(target)]) == 0


def test_sha256sum_checks_the_unpacked_archive(tree):
    with zipfile.ZipFile(written(tree)) as opened:
        opened.extractall(tree.parent / "unpacked")
    done = call("sha256sum", "--strict", "-c", crate.SUMS, cwd=tree.parent / "unpacked")
    assert done.returncode == 0, done.stderr


def test_the_same_commit_gives_the_same_bytes(tree):
    first = written(tree).read_bytes()
    (tree.parent / "artifact.zip").unlink()
    assert written(tree).read_bytes() == first


def test_the_environment_names_machines_commits_and_packages(tree):
    said = json.loads(content(written(tree, KEY))["environment.json"])
    assert set(said["measured_with"]) == {f"results/published/{KEY}"}
    (of_set,) = said["measured_with"].values()
    facts = {"machine_key": KEY, "device_name": "Some GPU", "compiler": "gcc 12", "cuda": "13.0", "runs": 1}
    assert of_set["machines"] == [facts], "a clock differs from run to run"
    assert (
        of_set["commits"] == [{"git_commit": "0123456", "git_dirty": "False"}] and of_set["days"] == ["2026-01-01"] * 2
    )
    made = said["archived_with"]
    assert made["packages"]["numpy"] and made["python"] and made["programs"]["git"].startswith("git version")


def test_named_sets_alone_are_taken_and_a_local_one_where_it_is_named(tree):
    files = content(written(tree, OTHER, "--local", LOCAL))
    folders = {"/".join(name.split("/")[1:4]) for name in files if name.startswith("xcorr-bench/results/")}
    assert folders == {f"results/published/{OTHER}", f"results/local/{LOCAL}"}
    assert [name for name in files if LOCAL in name] == [f"xcorr-bench/results/local/{LOCAL}/modes/a.csv.gz"]


def edit(path: Path, change: Edit) -> None:
    files = content(path)
    change(files)
    with zipfile.ZipFile(path, "w") as opened:
        for name, data in files.items():
            opened.writestr(name, data)


def damaged(files: dict[str, bytes]) -> None:
    files[ROWS] = files[ROWS][:-1] + bytes([files[ROWS][-1] ^ 1])


def without(files: dict[str, bytes]) -> None:
    del files[ROWS]


def with_more(files: dict[str, bytes]) -> None:
    files["more.csv"] = b"1\n"


def described_otherwise(files: dict[str, bytes]) -> None:
    """A file and its checksum are replaced, the description is not."""
    old = {name: archive.part(name, data, "").sha256 for name, data in files.items()}
    damaged(files)
    new = archive.part(ROWS, files[ROWS], "").sha256
    files[crate.SUMS] = files[crate.SUMS].replace(old[ROWS].encode(), new.encode())


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (damaged, f"{ROWS} is damaged"),
        (without, f"{ROWS} is missing"),
        (with_more, "more.csv is extra"),
        (described_otherwise, f"{ROWS} is not as ro-crate-metadata.json says"),
    ],
)
def test_what_is_not_as_it_was_is_found(tree, change, fault):
    target = written(tree)
    edit(target, change)
    with pytest.raises(UserError, match=one_line(f"artifact.zip: {fault}; get the archive again")):
        archive.run(["--check", str(target)])


def test_a_flipped_bit_on_the_disk_is_found(tree):
    target = written(tree)
    data = bytearray(target.read_bytes())
    data[data.index((tree / ROWS.removeprefix("xcorr-bench/")).read_bytes()) + 20] ^= 1
    target.write_bytes(data)
    assert archive_check.faults(target)[1] == [f"{ROWS} is damaged"]


def test_many_faults_are_counted(tree):
    target = written(tree)
    edit(target, lambda files: files.update({f"more-{i}": b"" for i in range(9)}))
    with pytest.raises(UserError, match=r"more-4 is extra and 4 more; get"):
        archive.run(["--check", str(target)])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), "no zip file, or cut off"),
        (lambda path: path.unlink(), "No such file"),
        (lambda path: edit(path, lambda files: files.pop(crate.SUMS)), "has no SHA256SUMS"),
        (
            lambda path: edit(path, lambda files: files.update({crate.SUMS: b"no sums"})),
            "SHA256SUMS is damaged at 'no sums'",
        ),
    ],
)
def test_what_is_no_archive_is_one_line(tree, capsys, change, told):
    target = written(tree)
    change(target)
    capsys.readouterr()
    assert archive.main(["--check", str(target)]) == 2
    assert told in error_of(capsys)


def edited(tree: Path) -> str:
    (tree / "algorithms/code.cpp").write_text("int edited;\n")
    return "algorithms/code.cpp"


def with_a_new_source(tree: Path) -> str:
    (tree / "algorithms/new.cpp").touch()
    return "algorithms/new.cpp"


def with_other_rows(tree: Path) -> str:
    path = f"results/published/{KEY}/one-to-one.csv.gz"
    (tree / path).write_bytes(b"")
    return path


def with_more_rows(tree: Path) -> str:
    path = f"results/published/{KEY}/modes.csv.gz"
    (tree / path).touch()
    return path


def without_git(tree: Path) -> str:
    shutil.rmtree(tree / ".git")
    return "no git repository"


@pytest.mark.parametrize("change", [edited, with_a_new_source, with_other_rows, with_more_rows, without_git])
def test_a_tree_that_is_not_its_commit_is_refused(tree, change):
    named = change(tree)
    with pytest.raises(UserError, match=one_line(named)):
        written(tree)
    assert not (tree.parent / "artifact.zip").exists()


def test_the_names_of_what_changed_are_whole(tree):
    edited(tree), with_a_new_source(tree)
    with pytest.raises(
        UserError, match=r"tree: algorithms/code\.cpp and 1 more not as in the commit; commit the changes, or"
    ):
        Sources(tree).check()


def test_a_file_that_exists_stays_as_it_is(tree):
    target = tree.parent / "artifact.zip"
    target.write_text("mine")
    with pytest.raises(UserError, match=r"artifact\.zip: exists; name another file with --output, or remove it"):
        written(tree)
    assert target.read_text() == "mine"
    subject, parts = archive.gather(Sources(tree), [KEY], [])
    with pytest.raises(UserError, match=r"artifact\.zip: exists"):  # made by another process in the meantime
        archive.write(target, subject, parts, b"{}")
    assert target.read_text() == "mine"


def test_what_cannot_be_written_leaves_nothing(tree):
    with pytest.raises(
        UserError, match="cannot be written: No such file or directory; name another file with --output"
    ):
        archive.run(["--output", str(tree / "none" / "a.zip")], tree)
    subject, parts = archive.gather(Sources(tree), [KEY], [])
    with pytest.raises(AttributeError):
        archive.write(tree / "a.zip", subject, [*parts, None], b"{}")
    assert not (tree / "a.zip").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["some-gpo"], "machine key some-gpo: no published set in git; did you mean some-gpu?"),
        (["--local", "some-cpo"], "machine key some-cpo: no local set; did you mean some-cpu?"),
        (["--check", "a.zip", KEY], "--check takes no other options"),
    ],
)
def test_mistakes_are_named(tree, words, told):
    with pytest.raises(UserError, match=one_line(told)):
        archive.run(words, tree)
    assert not list(tree.glob("*.zip"))


def test_without_the_packages_it_names_the_command_that_installs_them(tree, tmp_path):
    """In a process of its own: the stand-in above has no part in it."""
    for name in ("rocrate", "yaml"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('No module named {name}', name='{name}')\n")
    code = (
        "import sys; from pathlib import Path; from experiments.published import archive; from functools import partial; "
        "from xcorr.errors import command; "
        "sys.exit(command(partial(archive.run, root=Path(sys.argv.pop(1)))))"
    )
    target = tmp_path / "artifact.zip"
    done = call(sys.executable, "-c", code, tree, "--output", target, PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "not installed; use scripts/archive.sh, which installs it, or" in done.stderr
    assert "-m pip install rocrate==" in done.stderr and not target.exists()


def test_the_description_is_an_ro_crate(tree, rocrate):
    target = written(tree, "--local", LOCAL)
    with zipfile.ZipFile(target) as opened:
        opened.extractall(tree.parent / "unpacked")
    read = rocrate.ROCrate(tree.parent / "unpacked")
    commit, top = git(tree, "rev-parse", "HEAD"), read.root_dataset
    assert read.metadata["conformsTo"] == "https://w3id.org/ro/crate/1.1" or "1.1" in str(read.metadata["conformsTo"])
    assert top["license"].id == "https://spdx.org/licenses/MIT" and top["identifier"] == commit
    assert len(top["citation"]) == 5 and "https://doi.org/10.1016/j.jpdc.2025.105054" in {
        one.id for one in top["citation"]
    }
    sources = read.dereference("sources.tar.gz")
    assert sources["version"] == commit and "SoftwareSourceCode" in sources["@type"]
    sums = dict(reversed(line.split("  ")) for line in content(target)[crate.SUMS].decode().splitlines())
    described = {one.id: one["sha256"] for one in read.data_entities if "sha256" in one}
    assert described == {name: digest for name, digest in sums.items() if name != crate.METADATA}
    of_set = read.dereference(f"xcorr-bench/results/published/{KEY}/")
    assert ROWS in {one.id for one in of_set["hasPart"]}


def test_the_same_tree_has_the_same_description(tree, rocrate):
    first = content(written(tree))[crate.METADATA]
    (tree.parent / "artifact.zip").unlink()
    assert content(written(tree))[crate.METADATA] == first


def test_git_has_what_every_archive_holds():
    assert {Path(name) for name in (*FILES, "docs/artifact.md")} <= set(TREE)
