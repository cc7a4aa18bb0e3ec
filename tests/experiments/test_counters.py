"""Counters of a profiler: what ncu prints is read and checked, stored once, decides claims H02 and H03, and is drawn."""

import json
import subprocess
from pathlib import Path

import pytest
from calls import one_line
from fixtures import sets

from experiments.compare import counters
from experiments.published import publish
from plots import tidy
from plots.tables.claims import verdicts
from plots.tables.claims.values import DIFFERS, HOLDS, UNKNOWN
from xcorr.errors import UserError

POINTS = counters.data()["points"]
NAMES = {name: {key: one["metric"] for key, one in counters.metrics(point).items()} for name, point in POINTS.items()}
# Of the thesis, but for the requests of flattened indexing, which are chosen.
THESIS = {
    "simplified": {"fma_pct": 9.0, "lsu_pct": 97.0, "active_lanes": 30.0, "load_requests": 1000.0},
    "eight-rights": {"fma_pct": 20.0, "lsu_pct": 97.0, "active_lanes": 30.0, "load_requests": 1000.0},
    "four-overlaps": {"fma_pct": 17.0, "lsu_pct": 97.0, "active_lanes": 30.0, "load_requests": 1000.0},
    "rotating": {"fma_pct": 9.0, "lsu_pct": 97.0, "active_lanes": 30.0, "load_requests": 1000.0},
    "four-overlaps-phases": {"fma_pct": 17.0, "lsu_pct": 97.0, "active_lanes": 30.0, "load_requests": 1000.0},
    "division-indexing": {"fma_pct": 5.0, "lsu_pct": 60.0, "active_lanes": 26.85, "load_requests": 1000.0},
    "flat-indexing": {"fma_pct": 5.0, "lsu_pct": 60.0, "active_lanes": 26.85, "load_requests": 1000.0},
    "simple-indexing": {"fma_pct": 5.0, "lsu_pct": 88.0, "active_lanes": 15.31, "load_requests": 1470.0},
}
# Others are chosen too: 1 of everything, of which a reason to wait has a quarter of a cycle.
for name, asked in NAMES.items():
    THESIS[name] = {**{one: 0.25 if one.startswith("stall_") else 1.0 for one in asked}, **THESIS.get(name, {})}
MESSAGES = "==PROF== Connected to process 7\n{json of the program}\n==PROF== Disconnected\n"


def kernel_of(name: str) -> str:
    return f"void xcorr::family::(anonymous namespace)::{POINTS[name]['kernel']}<(int)8>(float const *, int)"


def raw(name: str, values: dict[str, float], kernel: str = "") -> str:
    """As ncu --csv --page raw prints: a line of names, one of units, a line a kernel."""
    head = ["ID", "Process ID", "Kernel Name", "Device", *NAMES[name].values()]
    units = ["", "", "", "", *("%" for _ in NAMES[name])]
    cells = ["0", "7", kernel or kernel_of(name), "0", *(f"{values[one]:,}" for one in NAMES[name])]
    return MESSAGES + "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in (head, units, cells))


def details(name: str, values: dict[str, float]) -> str:
    """As ncu --csv prints without a page: a line a counter."""
    lines = [["ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value"]]
    lines += [
        ["0", kernel_of(name), "Command line profiler metrics", metric, "%", f"{values[one]:,}"]
        for one, metric in NAMES[name].items()
    ]
    return MESSAGES + "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)


@pytest.mark.parametrize("printed", [raw, details])
def test_counters_are_read_as_ncu_prints_them(printed):
    for name, values in THESIS.items():
        assert counters.read(printed(name, values), POINTS[name], name) == values


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no line of CSV"),
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "administrators only; run it as root"),
        ("==ERROR== The application returned an error code (11).", "returned an error code"),
        (raw("simplified", THESIS["simplified"], "void another_kernel()"), "0 launches of warp_shuffle_kernel"),
        (
            raw("simplified", THESIS["simplified"])
            + raw("simplified", THESIS["simplified"]).splitlines()[-1].replace('"0"', '"1"', 1),
            "2 launches",
        ),
        (raw("simplified", {**THESIS["simplified"], "fma_pct": 101.0}), "'101.0', which cannot be"),
        (raw("simplified", THESIS["simplified"]).replace('"97.0"', '"n/a"'), "'n/a', which cannot be"),
        (raw("simplified", THESIS["simplified"]).replace("sm__inst_executed_pipe_lsu", "other"), "no counter sm__inst"),
    ],
)
def test_what_is_no_counter_is_one_line(text, told):
    with pytest.raises(UserError, match=one_line(told)):
        counters.read(text, POINTS["simplified"], "simplified.csv")


def read_folder(tmp_path: Path, values: dict[str, dict[str, float]]) -> int:
    folder = tmp_path / "csv"
    folder.mkdir(exist_ok=True)
    for name, own in values.items():
        (folder / f"{name}.csv").write_text(raw(name, own))
    words = ["--read", str(folder), "--machine-key", sets.KEY, "--results", str(tmp_path / "results")]
    return counters.main(words)


def verdicts_of(tmp_path: Path, kind: str = "local") -> dict[str, str]:
    folder = tmp_path / "results" / kind / sets.KEY
    frame = sets.frame([sets.row()])
    lines = verdicts.table(tidy.ResultSet(sets.KEY, kind, folder, frame, tidy.tidy(frame)), ["H02", "H03"])
    return dict(zip(lines["id"], lines["verdict"]))


def test_they_are_stored_once_published_and_decide_the_claims(tmp_path):
    assert verdicts_of(tmp_path) == {"H02": UNKNOWN, "H03": UNKNOWN}
    assert read_folder(tmp_path, THESIS) == 0
    assert verdicts_of(tmp_path) == {"H02": HOLDS, "H03": HOLDS}
    publish.publish(
        *(tmp_path / "results" / kind / sets.KEY for kind in ("local", "published")),
        [counters.EXPERIMENT],
        None,
        force=False,
        partial=False,
    )
    assert verdicts_of(tmp_path, "published") == {"H02": HOLDS, "H03": HOLDS}
    stored = counters.stored(tmp_path / "results" / "published" / sets.KEY)
    assert (
        stored["points"]["eight-rights"]["variant"] == "multi_matrix_right"
        and stored["metrics"]["stall_wait"] == NAMES["shared-memory"]["stall_wait"]
    )
    assert read_folder(tmp_path, {"eight-rights": {**THESIS["eight-rights"], "fma_pct": 40.0}}) == 0
    assert verdicts_of(tmp_path) == {"H02": DIFFERS, "H03": HOLDS}


def test_counters_of_another_launch_decide_nothing(tmp_path):
    assert read_folder(tmp_path, THESIS) == 0
    path = tmp_path / "results" / "local" / sets.KEY / counters.EXPERIMENT / "artifacts" / f"{counters.EXPERIMENT}.json"
    found = json.loads(path.read_text())
    found["points"]["flat-indexing"]["params"] = "overlaps_per_block=32"
    path.write_text(json.dumps(found))
    assert verdicts_of(tmp_path) == {"H02": HOLDS, "H03": HOLDS}, "ours decides nothing"
    found["points"]["division-indexing"]["params"] = "overlaps_per_block=32"
    path.write_text(json.dumps(found))
    assert verdicts_of(tmp_path) == {"H02": HOLDS, "H03": UNKNOWN}
    path.write_text(json.dumps({**found, "schema": 0}))
    with pytest.raises(UserError, match="take the counters again"):
        verdicts_of(tmp_path)


def test_launches_without_counters_are_named_in_the_order_of_the_claim(tmp_path):
    folder = tmp_path / "results" / "local" / sets.KEY
    path = folder / counters.EXPERIMENT / "artifacts" / f"{counters.EXPERIMENT}.json"
    assert read_folder(tmp_path, THESIS) == 0
    found = json.loads(path.read_text())
    for name in ("rotating", "four-overlaps-phases"):
        del found["points"][name]
    path.write_text(json.dumps(found))
    frame = sets.frame([sets.row()])
    line = verdicts.table(tidy.ResultSet(sets.KEY, "local", folder, frame, tidy.tidy(frame)), ["H02"]).iloc[0]
    assert "counters of rotating, four-overlaps-phases (" in line["reason"]


def test_a_missing_file_is_named(tmp_path, capsys):
    some = {name: values for name, values in THESIS.items() if name != "flat-indexing"}
    assert read_folder(tmp_path, some) == 2
    assert "flat-indexing.csv: not there" in capsys.readouterr().err


def test_ncu_is_run_once_for_every_launch(tmp_path, monkeypatch, capsys):
    asked = []

    def ncu(words, **_):
        if "--list=json" in words:
            listed = [{"id": one["variant"], "source_hash": "f" * 16} for one in POINTS.values()]
            return subprocess.CompletedProcess(words, 0, json.dumps({"variants": listed}), "")
        asked.append(words)
        name = next(name for name, one in POINTS.items() if {f"regex:{one['kernel']}", one["params"]} <= set(words))
        return subprocess.CompletedProcess(words, 9, raw(name, THESIS[name]), "")

    monkeypatch.setattr(counters.subprocess, "run", ncu)
    monkeypatch.setattr(counters, "_tool", lambda: "ncu")
    monkeypatch.setattr(counters, "program", lambda: Path("xcorr-bench"))
    assert counters.main(["--machine-key", sets.KEY, "--results", str(tmp_path / "results")]) == 0
    assert len(asked) == len(POINTS) and all(words[:2] == ["ncu", "--csv"] for words in asked)
    assert verdicts_of(tmp_path) == {"H02": HOLDS, "H03": HOLDS}
    stored = counters.stored(tmp_path / "results" / "local" / sets.KEY)
    assert {one["source_hash"] for one in stored["points"].values()} == {"f" * 16}
    assert counters.main(["--print"]) == 0
    assert capsys.readouterr().out.count("--launch-count 1") == len(POINTS)


def test_the_launches_are_points_of_the_tree():
    for one in POINTS.values():
        (source,) = (Path(counters.__file__).parents[2] / "algorithms").rglob(f"{one['variant']}.cu")
        assert f" {one['kernel']}(" in source.read_text(encoding="utf-8")
        words = counters.bench_words(one, "xcorr-bench")
        assert words[words.index("--params") + 1] == one["params"]
