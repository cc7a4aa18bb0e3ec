"""The table of other libraries: the fastest first, ratios to ours, what is absent is named."""

from fixtures import sets

from experiments.compare import artifacts
from plots import tidy
from plots.sources.beyond.tables import other_libraries

COMMON = {"kind": "plain", "problem": "one-to-one/8x8/8x8/1:1/full", "device": "cuda", "version": "1.2", "reason": ""}
COMMON |= {"variant": "", "settings": "s", "outcome": "passed", "max_error": 1e-7}


def results(tmp_path, rows):
    folder = tmp_path / "published" / sets.KEY
    facts = {
        "timed_by": "events of torch",
        "rounds": 5,
        "absent": {"VkFFT": {"reason": "no", "install": "pip install v"}},
    }
    artifacts.store(
        folder, "rivals", {"schema": 1, "machine_key": sets.KEY, **facts, "rows": [COMMON | row for row in rows]}
    )
    frame = sets.frame([sets.row()])
    return tidy.ResultSet(sets.KEY, "published", folder, frame, tidy.tidy(frame))


def test_the_table_has_the_fastest_first_and_what_is_wrong_last(tmp_path):
    rows = [
        {"name": "xcorr-bench", "variant": "some_variant", "compute_us": 4.0},
        {"name": "slow", "compute_us": 6.0, "upload_us": 1.0, "download_us": 2.0},
        {"name": "wrong", "outcome": "incorrect", "reason": "differs", "max_error": 0.5},
        {"name": "fast", "compute_us": 2.0},
        {"name": "none", "outcome": "not_supported", "reason": "no"},
    ]
    page = other_libraries.page(results(tmp_path, rows))
    shown = next(one for one in page.text if not isinstance(one, str)).shown
    assert [name.split()[0] for name in shown["Implementation"]] == ["fast", "some-variant", "slow", "wrong"]
    assert list(shown["Over ours"])[:3] == ["0.5", "1", "1.5"]
    assert shown["Outcome"].iloc[-1] == "incorrect: differs"
    assert "VkFFT (pip install v)" in page.markdown()


def test_a_set_without_the_run_has_no_table(tmp_path):
    frame = sets.frame([sets.row()])
    without = tidy.ResultSet(sets.KEY, "published", tmp_path, frame, tidy.tidy(frame))
    page = other_libraries.TABLE.page(without)
    assert other_libraries.TABLE.files(page) == {} and page.chapter() == ([], [])
