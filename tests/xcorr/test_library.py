"""The binding, and every variant of the build against scipy through it."""

import ctypes.util
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy_library import ScipyLibrary, refused, scipy_correlation, window_of

from xcorr.errors import LibraryError, UserError
from xcorr.native import library as binding
from xcorr.native.library import Library, find_variant
from xcorr.paths import ROOT, build_directory
from xcorr.problem import FORMS, Problem

COUNTS = {"one-to-one": (1, 1), "one-to-many": (1, 3), "n-to-mn": (2, 6), "n-to-m": (3, 2)}
SHAPES = [
    ((1, 1), (1, 1)),
    ((1, 7), (1, 5)),
    ((5, 1), (9, 1)),
    ((7, 13), (7, 13)),
    ((33, 31), (33, 31)),
    ((5, 3), (17, 11)),
    ((17, 9), (4, 21)),
]
# What the family time_series takes: templates along one signal, rows are channels.
SERIES = [
    Problem("n-to-m", (1, 7), (1, 90), 3, 1, "valid"),
    Problem("n-to-m", (3, 5), (3, 601), 2, 1, "valid"),
    Problem("n-to-m", (2, 9), (2, 50), 1, 1, "sy:0..0,sx:3..40"),
]


def problems(form):
    """Odd shapes in the windows that they allow."""
    lefts, rights = COUNTS[form]
    for left, right in SHAPES:
        yield Problem(form, left, right, lefts, rights)
        if all(a <= b for a, b in zip(left, right)) or all(a >= b for a, b in zip(left, right)):
            yield Problem(form, left, right, lefts, rights, "valid")
        sy, sx = (f"{-((a - 1) // 2)}..{b // 2}" for a, b in zip(left, right))
        yield Problem(form, left, right, lefts, rights, f"sy:{sy},sx:{sx}")


def inputs(problem, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.uniform(-1, 1, (problem.lefts, *problem.left)).astype(np.float32),
        rng.uniform(-1, 1, (problem.rights, *problem.right)).astype(np.float32),
    )


@pytest.mark.parametrize("form", FORMS)
def test_describe_agrees_with_the_definition(library, form):
    for problem in problems(form):
        facts, (sy, sx) = library.describe(problem), window_of(problem)
        pairs = COUNTS[form][0] * COUNTS[form][1] if form == "n-to-m" else COUNTS[form][1]
        assert facts.out_shape == (pairs, len(sy), len(sx)) and (facts.sy0, facts.sx0) == (sy[0], sx[0])
        overlaps = [
            [max(0, min(a, b - s) - max(0, -s)) for s in shifts]
            for a, b, shifts in zip(problem.left, problem.right, (sy, sx))
        ]
        assert facts.fmas == pairs * sum(overlaps[0]) * sum(overlaps[1])
        assert facts.max_overlap == max(overlaps[0]) * max(overlaps[1])


@pytest.mark.parametrize("form", FORMS)
def test_every_variant_equals_scipy(library, form):
    tried = 0
    for variant in library.variants():
        if form not in variant["forms"] or variant["backend"] != "cpu" or "fp32" not in variant["precisions"]:
            continue
        if "product" not in variant["scores"]:  # of templates: tests/harness/test_templates_vs_peers.py
            continue
        one_array = variant["same_only"]
        for problem in SERIES if variant["family"] == "time_series" else problems(form):
            left, right = inputs(problem)
            if one_array:
                problem = replace(problem, right=problem.left, rights=problem.lefts, window="full", same="yes")
                right = left
            truth = scipy_correlation(problem, left, right)
            scale = np.linalg.norm(left[0]) * np.linalg.norm(right[0]) + 1
            # The processors of this machine and the number of images decide which points of several threads there are.
            for params in variant["points"]:
                if "threads_over" in params and library.supports(problem, variant=variant["id"], params=params):
                    continue
                given = None if one_array else right
                out = library.correlate(problem, left, given, variant=variant["id"], params=params)
                assert out.dtype == np.float32 and out.shape == truth.shape
                np.testing.assert_allclose(out, truth, atol=1e-5 * scale, err_msg=f"{variant['id']} {params} {problem}")
                tried += 1
    assert tried


def test_arguments_are_converted_and_out_is_used(library):
    problem = Problem("n-to-m", (4, 5), (6, 7), 2, 2)
    left, right = inputs(problem)
    truth = scipy_correlation(problem, left, right)
    out = np.empty(truth.shape, np.float32)
    given = np.asfortranarray(left.astype(">f8")), right[:, ::-1][:, ::-1]
    assert library.correlate(problem, *given, variant="cpu_definition", out=out) is out
    np.testing.assert_allclose(out, truth, atol=1e-5)
    for wrong in (out[:, ::2], out.astype(np.float64), np.asfortranarray(out)):
        with pytest.raises(LibraryError, match="out: "):
            library.correlate(problem, left, right, variant="cpu_definition", out=wrong)
    with pytest.raises(LibraryError, match="left: array of shape"):
        library.correlate(problem, left[:1], right, variant="cpu_definition")
    with pytest.raises(LibraryError, match="right: array of shape"):
        library.correlate(problem, left, right.swapaxes(1, 2), variant="cpu_definition")


GOOD = Problem("n-to-mn", (4, 4), (4, 4), 2, 4)


@pytest.fixture
def counted(library, monkeypatch):
    """The library without kept plans, and how often it plans and closes."""
    library.close()
    counts = {"open": 0, "close": 0}

    def counting(name):
        function = library._functions[name]

        def call(*arguments):
            counts[name] += 1
            return function(*arguments)

        return call

    for name in counts:
        monkeypatch.setitem(library._functions, name, counting(name))
    return library, counts


@pytest.mark.parametrize("variant", ["cpu_fft", "cpu_row_streaming"])
def test_the_second_call_does_not_plan(counted, variant):
    library, counts = counted
    for seed in range(3):
        left, right = inputs(GOOD, seed)
        out = library.correlate(GOOD, left, right, variant=variant)
        np.testing.assert_allclose(out, scipy_correlation(GOOD, left, right), atol=1e-5)
    assert counts == {"open": 1, "close": 0}
    library.correlate(GOOD, left, right, variant=variant, params="threads=all")
    library.correlate(replace(GOOD, window="valid"), left, right, variant=variant)
    assert counts == {"open": 3, "close": 0}, "another choice and another problem are planned"
    library.close()
    assert counts["close"] == 3


def test_only_the_newest_plans_are_kept(counted):
    library, counts = counted
    for rights in (*range(1, binding.KEPT_SESSIONS + 2), 2):
        problem = Problem("one-to-many", (3, 3), (3, 3), 1, rights)
        library.correlate(problem, *inputs(problem), variant="cpu_fft")
    assert counts == {"open": binding.KEPT_SESSIONS + 1, "close": 1}
    problem = Problem("one-to-many", (3, 3), (3, 3), 1, 1)
    library.correlate(problem, *inputs(problem), variant="cpu_fft")
    assert counts == {"open": binding.KEPT_SESSIONS + 2, "close": 2}


def test_kept_plans_give_way_where_a_new_one_cannot_be_had(counted, monkeypatch):
    library, counts = counted
    left, right = inputs(GOOD)
    library.correlate(GOOD, left, right, variant="cpu_fft")
    opened, calls = library._functions["open"], []

    def fails_once(*arguments):
        calls.append(arguments)
        return 1 if len(calls) == 1 else opened(*arguments)

    monkeypatch.setitem(library._functions, "open", fails_once)
    library.correlate(GOOD, left, right, variant="cpu_definition")
    assert len(calls) == 2 and counts["close"] == 1


def test_a_session_is_the_users_until_it_is_closed(counted):
    library, counts = counted
    left, right = inputs(GOOD)
    session = library.session(GOOD, variant="cpu_fft")
    for _ in range(2):
        np.testing.assert_allclose(session.correlate(left, right), scipy_correlation(GOOD, left, right), atol=1e-5)
    session.close()
    session.close()
    assert counts == {"open": 1, "close": 1}
    with pytest.raises(LibraryError, match="^session: closed"):
        session.correlate(left, right)


def test_a_call_that_is_repeated_often_gets_a_plan_of_many_calls_once(counted, monkeypatch):
    library, _ = counted
    opened, plannings = library._functions["open"], []

    def noting(asked, *rest):
        plannings.append(json.loads(asked).get("planning", "once"))
        return opened(asked, *rest)

    monkeypatch.setitem(library._functions, "open", noting)
    monkeypatch.setattr(binding, "REPEATS", 3)
    left, right = inputs(GOOD)
    for call in range(12):
        out = library.correlate(GOOD, left, right, variant="cpu_fft")
        np.testing.assert_allclose(out, scipy_correlation(GOOD, left, right), atol=1e-5)
        assert plannings == (["once"] if call < 3 else ["once", "kept"])


def test_a_session_leaves_its_planning_to_later_processes(tmp_path):
    """Seen from its files: what the second process learns would be added to them."""
    code = (
        "from xcorr.native.library import Library; from xcorr.problem import Problem; import sys; "
        "Library().session(Problem('one-to-one', (8, 12), (8, 12)), variant='cpu_fft', precision=sys.argv[1]).close()"
    )

    def kept(precision, **environment):
        known = {name: value for name, value in os.environ.items() if name != "XCORR_CACHE_DIR"}
        command = [sys.executable, "-c", code, precision]
        subprocess.run(command, cwd=ROOT, env={**known, **environment}, check=True)
        return {one: (one.stat().st_ino, one.read_bytes()) for one in tmp_path.rglob("*.wisdom")}

    single = kept("fp32", XDG_CACHE_HOME=str(tmp_path))
    assert [one.parent for one in single] == [tmp_path / "xcorr-bench"]
    assert kept("fp32", XDG_CACHE_HOME=str(tmp_path)) == single
    both = kept("fp64", XDG_CACHE_HOME=str(tmp_path))
    assert len(both) == 2 and single.items() <= both.items()
    for one in both:
        one.unlink()
    assert not kept("fp32", XDG_CACHE_HOME=str(tmp_path), XCORR_CACHE_DIR=os.devnull)


def test_supports_says_why_not_without_planning(counted):
    library, counts = counted
    assert library.supports(GOOD, variant="cpu_fft") == ""
    assert library.supports(GOOD, variant="cpu_fft", precision="tf32").startswith("precision tf32: ")
    with pytest.raises(LibraryError, match="the nearest is .cpu_fft."):
        library.supports(GOOD, variant="cpu_ftf")
    assert counts["open"] == 0


def test_the_library_tells_its_machine(library):
    facts = library.machine("cpu")
    program = [str(build_directory() / "xcorr-bench"), "--machine", "--device", "cpu"]
    told = json.loads(subprocess.run(program, capture_output=True, check=True).stdout)
    assert facts == told | {"clock_mhz": facts["clock_mhz"]}
    with pytest.raises(LibraryError, match="tpu"):
        library.machine("tpu")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"left": (0, 4)}, "out of range"),
        ({"right": (4, -4)}, "out of range"),
        ({"left": (1 << 62, 1 << 62)}, "out of range"),
        ({"lefts": 0}, "out of range"),
        ({"right": (1 << 31, 1 << 31), "rights": 1 << 20}, "overflow"),
        ({"rights": 5}, "divisible"),
        ({"form": "n-to-n"}, "n-to-mn"),
        ({"form": "one-to-one"}, "1:1"),
        ({"window": "half"}, "window"),
        ({"window": "sy:0..9,sx:0..0"}, "window"),
        ({"window": "sy:2..1,sx:0..0"}, "window"),
        ({"left": (9, 1), "window": "valid"}, "contains"),
    ],
)
def test_bad_problems_are_refused_in_one_line(library, change, words):
    """By Python and by the library, which other programs call."""
    names = ("form", "left", "right", "lefts", "rights", "window")
    asked = json.dumps({name: getattr(GOOD, name) for name in names} | change).encode()
    calls = {UserError: lambda: replace(GOOD, **change), LibraryError: lambda: library._json("describe", asked)}
    for error, call in calls.items():
        with pytest.raises(error, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"variant": "cpu_ftf"}, "cpu_fft"),
        ({"variant": "cpu_fft", "params": "threads=0"}, "threads"),
        ({"variant": "cpu_fft", "params": "nonsense=1"}, "nonsense"),
        ({"variant": "cpu_fft", "precision": "fp99"}, "fp99"),
        ({"variant": "cpu_fft", "device": "tpu"}, "tpu"),
        ({"variant": "cpu_fft", "precision": "tf32"}, "'cpu_fft': not supported: precision tf32: "),
    ],
)
def test_bad_choices_are_refused_in_one_line(library, options, words):
    left, right = inputs(GOOD)
    with pytest.raises(LibraryError, match=words) as caught:
        library.correlate(GOOD, left, right, **options)
    assert "\n" not in str(caught.value)


def test_reference_refuses_an_unknown_method(library):
    left, right = inputs(GOOD)
    with pytest.raises(LibraryError, match="method"):
        library.reference(GOOD, left, right, method="guess")


def test_list_is_sorted_and_complete(library):
    variants = library.variants()
    ids = [variant["id"] for variant in variants]
    assert ids == sorted(ids) and {"cpu_definition", "cpu_fft", "cpu_row_streaming"} <= set(ids)
    needed = set(ScipyLibrary().variants()[0])
    for variant in variants:
        assert needed <= set(variant), variant["id"]


def test_xcorr_end_to_end_with_every_form(library, save, capsys, xcorr, tmp_path):
    for form in FORMS:
        problem = Problem(form, (9, 7), (11, 12), *COUNTS[form], "sy:-3..4,sx:-2..5")
        left, right = inputs(problem)
        paths = save("l.npy", left), save("r.npy", right)
        for variant in ("cpu_definition", "cpu_row_streaming", "cpu_fft"):
            words = f"--form {form} --window {problem.window} --variant {variant} --force --output"
            assert "shift sy=-3 sx=-2" in xcorr(library, *paths, words, tmp_path / "o.npy").out
            np.testing.assert_allclose(np.load(tmp_path / "o.npy"), scipy_correlation(problem, left, right), atol=1e-4)
    refused(capsys, *paths, "--form", "n-to-m", "--window", "sy:0..99,sx:0..0", library=library)


def test_missing_and_broken_libraries(tmp_path, monkeypatch):
    monkeypatch.setenv("XCORR_BUILD", str(tmp_path))
    with pytest.raises(LibraryError, match="not built; run ./scripts/setup.sh and build"):
        Library()
    (tmp_path / "libxcorr.so").write_bytes(b"not a library")
    with pytest.raises(LibraryError, match="cannot be loaded"):
        Library()
    with pytest.raises(LibraryError, match="cannot be loaded"):
        Library(ctypes.util.find_library("c") and "/proc/self/exe")


class Bare(Library):
    """A library whose list is what a function writes."""

    def __init__(self, listing):
        self._functions = {"list": listing}


def test_buffers_grow_to_the_size_asked_for():
    text = json.dumps({"variants": [{"id": "x" * 100_000}]}).encode()

    def reply(json_buffer, capacity, error, error_capacity):
        enough = capacity > len(text)
        json_buffer.value = text if enough else str(len(text) + 1).encode()
        return 0 if enough else 2

    assert Bare(reply).variants()[0]["id"] == "x" * 100_000


def test_errors_become_one_line():
    def fail(json_buffer, capacity, error, error_capacity):
        error.value = b"thing: cause;\n way out"
        return 1

    with pytest.raises(LibraryError, match="^thing: cause; way out$"):
        Bare(fail).variants()


def test_nearest_variant_is_named():
    with pytest.raises(LibraryError, match="did you mean cpu_row_streaming?"):
        find_variant(ScipyLibrary().variants(), "cpu_row_stream")
    with pytest.raises(LibraryError, match="valid: cpu_definition"):
        find_variant(ScipyLibrary().variants(), "zzz")
