"""scripts/test.sh --extended and --exhaustive: every step runs and says how it ended, whatever became of the ones before it."""

import re
import shutil

import pytest
from stub_tree import StubTree, one_error

EXTENDED = ["fuzz", "thread_sanitizer", "clang_tidy", "host_symbols", "wheels"]
STEPS = [
    *EXTENDED,
    "random_problems",
    "random_properties",
    "random_problems_on_gpu",
    "compile_time_points",
    "mutants",
    "architectures",
    "one_definition",
    "peers",
]
USUAL = ["format", "C++ suites", "Python tests"]
LOG = 'echo "$(basename "$0") $*" >>"$TMPDIR/log"'


@pytest.fixture
def logged(tree: StubTree) -> StubTree:
    """Stand-ins that note how they were called."""
    tree.without_first_steps()
    tree.stub("format.sh", LOG, tree.root / "scripts")
    tree.stub("nproc", "echo 3")
    tree.stub("build.sh", f'{LOG}; echo "build folder $XCORR_BUILD" >>"$TMPDIR/log"', tree.root / "scripts")
    tree.stub("conformance", LOG, tree.build / "tests/conformance")
    tree.stub("python", LOG)
    tree.stub("meson", f'case "$*" in *--list*) echo emulation ;; *) {LOG} ;; esac')
    return tree


def calls(tree: StubTree) -> str:
    return (tree.root.parent / "log").read_text()


def ends(text: str) -> dict[str, str]:
    """Step -> how it ended, from the lines at the end."""
    return {one[1].strip(): one[2] for one in re.finditer(r"^(.{24}) +\d+ s  (.*)$", text, re.MULTILINE)}


def test_every_step_runs_after_the_usual_tests(logged):
    done = logged.call("scripts/test.sh", "--exhaustive", "--seed", "7")
    assert done.returncode == 0, done.stderr
    assert ends(done.stdout) == dict.fromkeys([*USUAL, *STEPS], "passed")
    for number, step in enumerate(STEPS, start=1):
        assert f"[exhaustive {number}/{len(STEPS)}] {step}" in done.stdout
        assert re.search(rf"\[{step}\] passed after \d+ s", done.stdout)
    assert calls(logged).splitlines() == [
        "build.sh --tests",
        f"build folder {logged.build}",
        "format.sh --check",
        f"meson test -C {logged.build} --no-rebuild --print-errorlogs",
        "python -m pytest -n 3 --dist loadfile -m not exhaustive",
        "python -m pytest -m exhaustive tests/fuzz",
        f"meson test -C {logged.build} --no-rebuild --print-errorlogs --suite thread_sanitizer",
        "format.sh --tidy",
        "python -m pytest -m exhaustive tests/test_one_definition.py -k host_code",
        "python -m pytest -m exhaustive tests/scripts/test_wheels.py",
        "conformance --device cpu --random 2000 --seed 7",
        "conformance --device cpu --properties 1000 --seed 7",
        "conformance --device cuda --random 100000 --seed 7",
        "build.sh --tests --cuda disabled --grid paper --emulation-points all",
        f"build folder {logged.build}-every-point",
        f"meson test -C {logged.build}-every-point --no-rebuild --print-errorlogs --suite emulation",
        f"python -m tests.mutants.run --where emulation,cpu,ptx --build {logged.build}",
        "build.sh --cuda enabled --gpu-arch 80,86,89,90,120",
        f"build folder {logged.build}-architectures",
        "python -m pytest -m exhaustive tests/test_one_definition.py -k kernels",
        "python -m pytest -rs -m exhaustive tests/harness/test_templates_vs_peers.py tests/xcorr/test_piv_vs_openpiv.py",
    ]


def test_the_second_tier_is_the_usual_tests_and_its_steps(logged):
    done = logged.call("scripts/test.sh", "--extended")
    assert done.returncode == 0, done.stderr
    assert ends(done.stdout) == dict.fromkeys([*USUAL, *EXTENDED], "passed")
    assert "[extended 1/5] fuzz\n" in done.stdout
    assert calls(logged).splitlines()[-5:] == [
        "python -m pytest -m exhaustive tests/fuzz",
        f"meson test -C {logged.build} --no-rebuild --print-errorlogs --suite thread_sanitizer",
        "format.sh --tidy",
        "python -m pytest -m exhaustive tests/test_one_definition.py -k host_code",
        "python -m pytest -m exhaustive tests/scripts/test_wheels.py",
    ]


def test_continuous_integration_runs_the_second_tier(logged):
    done = logged.call(".ci/run")
    assert ends(done.stdout) == dict.fromkeys([*USUAL, *EXTENDED], "passed")


@pytest.mark.parametrize("bad", [*USUAL, *STEPS])
def test_a_failure_hides_no_other_step_and_fails_the_whole(logged, bad):
    broken = {
        "format": ("format.sh", logged.root / "scripts", "--check"),
        "fuzz": ("python", logged.bin, "tests/fuzz"),
        "thread_sanitizer": ("meson", logged.bin, "--suite thread_sanitizer"),
        "clang_tidy": ("format.sh", logged.root / "scripts", "--tidy"),
        "compile_time_points": ("build.sh", logged.root / "scripts", "--emulation-points"),
        "C++ suites": ("meson", logged.bin, "print-errorlogs"),
        "Python tests": ("python", logged.bin, "-m pytest -n"),
        "random_problems": ("conformance", logged.build / "tests/conformance", "--random 2000"),
        "random_properties": ("conformance", logged.build / "tests/conformance", "--properties"),
        "random_problems_on_gpu": ("conformance", logged.build / "tests/conformance", "--device cuda"),
        "mutants": ("python", logged.bin, "mutants"),
        "architectures": ("build.sh", logged.root / "scripts", "--gpu-arch"),
        "one_definition": ("python", logged.bin, "-k kernels"),
        "host_symbols": ("python", logged.bin, "-k host_code"),
        "wheels": ("python", logged.bin, "test_wheels"),
        "peers": ("python", logged.bin, "test_piv_vs_openpiv"),
    }
    name, folder, word = broken[bad]
    body = (folder / name).read_text().partition("\n")[2]
    # Meson's --list must answer all the same.
    logged.stub(name, f'case "$*" in *--list*) ;; *"{word}"*) exit 3 ;; esac\n{body}', folder)
    done = logged.call("scripts/test.sh", "--exhaustive")
    assert done.returncode == 1
    assert one_error(done).startswith("error: tests: ")
    expected = dict.fromkeys([*USUAL, *STEPS], "passed") | {bad: "FAILED, exit code 3"}
    if bad == "C++ suites":  # Meson runs these too
        expected |= dict.fromkeys(["compile_time_points", "thread_sanitizer"], "FAILED, exit code 3")
    assert ends(done.stdout) == expected


def test_what_was_skipped_is_named_in_the_last_lines(logged):
    assert logged.call("scripts/test.sh").stdout.endswith("\nskipped: nothing\n")
    logged.stub("format.sh", "exit 77", logged.root / "scripts")
    (logged.build / "meson-logs").mkdir()
    skips = 'echo " 4/54 xcorr-bench:unit / thread sanitizer over the C API    SKIP   0.02s   exit status 77"'
    gtest = f'echo "[  SKIPPED ] Cuda.clock (0 ms)" >"{logged.build}/meson-logs/testlog-patient.txt"'
    logged.stub("meson", f'case "$*" in *--list*) echo emulation ;; *) {skips}; {gtest} ;; esac')
    logged.stub("python", 'echo "SKIPPED [2] tests/scripts/test_slurm.py:12: no Slurm is installed"')
    done = logged.call("scripts/test.sh")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-4:] == [
        "skipped: format",
        "skipped: unit / thread sanitizer over the C API",
        "skipped: Cuda.clock",
        "skipped: tests/scripts/test_slurm.py:12: no Slurm is installed",
    ]


def test_77_failed_suites_are_not_left_out(logged):
    """Meson's exit code is the number of failures."""
    logged.stub("meson", 'case "$*" in *--list*) echo emulation ;; *) exit 77 ;; esac')
    done = logged.call("scripts/test.sh")
    assert done.returncode == 1 and one_error(done)


def test_a_seed_that_was_not_given_is_new_and_printed(logged):
    seeds = set()
    for _ in range(3):
        done = logged.call("scripts/test.sh", "--exhaustive", "--only", "random_problems")
        (seed,) = re.findall(r"random_problems, seed (\d+)", done.stdout)
        assert calls(logged).splitlines()[-1] == f"conformance --device cpu --random 2000 --seed {seed}"
        seeds.add(seed)
    assert len(seeds) > 1


def test_only_some_steps(logged):
    done = logged.call("scripts/test.sh", "--exhaustive", "--only", "architectures,mutants")
    assert list(ends(done.stdout)) == ["architectures", "mutants"]
    assert "-m pytest" not in calls(logged) and "build.sh --tests" in calls(logged)


def test_what_is_not_there_is_left_out_and_no_failure(logged):
    logged.stub("nvcc", 'echo "compute_90"')
    logged.stub("xcorr-bench", "exit 2", logged.build)
    done = logged.call("scripts/test.sh", "--exhaustive")
    assert done.returncode == 0
    assert ends(done.stdout)["random_problems_on_gpu"] == "left out" and "left out: no GPU" in done.stdout
    assert "sm_120: this nvcc does not know it" in done.stdout and "--gpu-arch 90\n" in calls(logged)
    logged.stub("nvcc", 'echo "compute_75"')
    done = logged.call("scripts/test.sh", "--exhaustive", "--only", "architectures")
    assert done.returncode == 0 and ends(done.stdout) == {"architectures": "left out"}


@pytest.mark.parametrize(
    ("last", "end"),
    [
        ("====== 13 skipped, 4 deselected in 0.52s ======", "left out"),
        ("====== 9 passed, 4 skipped, 4 deselected in 0.52s ======", "passed"),
        ("13 passed in 3.10s", "passed"),
    ],
)
def test_peers_that_are_all_absent_are_left_out_and_named(logged, last, end):
    reason = "SKIPPED [4] tests/xcorr/test_piv_vs_openpiv.py:20: openpiv is not installed"
    logged.stub("python", f'echo "{reason}"; echo "{last}"')
    done = logged.call("scripts/test.sh", "--exhaustive", "--only", "peers")
    assert done.returncode == 0 and ends(done.stdout) == {"peers": end} and reason in done.stdout
    assert (f"left out: no peer can be imported: {last}" in done.stdout) == (end == "left out")
    assert done.stdout.endswith("skipped: peers\n" if end == "left out" else "skipped: nothing\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--exhaustive", "--only", "mutants,other"], "--only other: no step"),
        (["--exhaustive", "--seed", "x"], "--seed x: not a number"),
        (["--seed", "3"], "--only, --seed: choose among the steps of --exhaustive"),
        (["--only"], "--only: a value is missing"),
    ],
)
def test_a_mistake_is_one_line_and_runs_nothing(logged, words, says):
    done = logged.call("scripts/test.sh", *words)
    assert done.returncode == 2 and one_error(done).startswith(f"error: {says}") and not done.stdout
    assert not (logged.root.parent / "log").exists()


def test_the_help_names_every_step(logged):
    said = logged.call("scripts/test.sh", "--help").stdout
    assert [word for word in re.findall(r"^ {20}(\w+) {2,}", said, re.MULTILINE)] == STEPS


def test_without_nvcc_mutants_run_in_the_other_places(logged):
    """An env.sh that looks for nvcc nowhere else; a PATH that has only what the scripts need."""
    logged.edit("scripts/env.sh", "/usr/local/cuda/bin", "/no/such/folder")
    (logged.bin / "nvcc").unlink()
    for name in ("bash", "env", "dirname", "basename", "sed", "sort", "tee", "rm"):
        (logged.bin / name).symlink_to(shutil.which(name))
    done = logged.call("scripts/test.sh", "--exhaustive", "--only", "mutants,architectures", PATH=str(logged.bin))
    assert done.returncode == 0, done.stderr
    assert ends(done.stdout) == {"mutants": "passed", "architectures": "left out"}
    assert "--where emulation,cpu --build" in calls(logged) and "mutants in PTX: left out" in done.stdout
