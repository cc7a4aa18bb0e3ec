"""What reproduce.sh asks of the build, the driver and the programs on real input."""

import pytest
from stub_tree import FACTS

LOG = 'echo "$(basename "$0") $*" >>"$TMPDIR/log"'


@pytest.fixture
def asked(tree):
    """Runs the script; the calls that it made, by the module or script."""
    tree.without_first_steps()
    tree.stub("build.sh", LOG, tree.root / "scripts")
    programs = "echo input experiments.inputs.photo"
    tree.stub(
        "python",
        f"""{LOG}; case "$*" in *machine-facts*) echo '{FACTS}' ;; *experiments.folders*) {programs} ;; -c*) echo made-up-machine ;; *driver.run*) exit "$SWEEP_ENDS_WITH" ;; esac""",
    )

    def run(*words, code=0):
        done = tree.call("scripts/reproduce.sh", "--device", "cpu", *words, SWEEP_ENDS_WITH=str(code))
        assert done.returncode == code, done.stderr
        return (tree.root.parent / "log").read_text().splitlines()

    return run


def of(lines, name):
    return [line.split() for line in lines if name in line.split()[:3] and "--machine-facts" not in line]


@pytest.mark.parametrize(
    ("preset", "grid", "inputs"),
    [("evaluation", True, "quick"), ("extended", True, "quick"), ("smoke", False, "smoke")],
)
def test_a_preset_decides_the_build_the_sweep_and_the_real_input(asked, preset, grid, inputs):
    lines = asked("--preset", preset)
    (build,) = of(lines, "build.sh")
    assert ("--grid" in build and "paper" in build) == grid
    (sweep,) = of(lines, "experiments.driver.run")
    assert sweep[sweep.index("--preset") + 1] == preset
    (photo,) = of(lines, "experiments.inputs.photo")
    assert photo[photo.index("--preset") + 1] == inputs and photo.count("--preset") == 1


def test_it_ends_with_this_machine_beside_the_published_ones(asked):
    lines = asked()
    render, compared = (of(lines, name) for name in ("plots.render", "plots.machines"))
    assert len(render) == 1 and len(compared) == 1
    assert compared[0][-4:-2] == ["--local", "made-up-machine"] and compared[0][-2] == "--results"
    assert lines.index(" ".join(compared[0])) > lines.index(" ".join(render[0]))


def test_every_replot_compares_the_machines_again(asked, tree):
    (tree.root.parent / "log").unlink(missing_ok=True)
    done = tree.call("scripts/replot.sh", SWEEP_ENDS_WITH="0")
    assert done.returncode == 0, done.stderr
    lines = (tree.root.parent / "log").read_text().splitlines()
    assert len(of(lines, "plots.render")) == 1 and len(of(lines, "plots.machines")) == 1


def test_an_evaluation_can_be_measured_in_parts(asked):
    lines = asked("--preset", "evaluation", "--for-minutes", "8", code=3)
    (sweep,) = of(lines, "experiments.driver.run")
    assert sweep[sweep.index("--for-minutes") + 1] == "8"
    assert not of(lines, "experiments.inputs.photo") and not of(lines, "plots.render"), "something is left"
