"""No test depends on how fast the machine is: limits, pauses and clocks stand where a reason allows them."""

import ast
import re
from pathlib import Path

import pytest
from hangs import HANG_S
from tree import TREE, text

# (file, function or "" for the module) -> why the machine's speed cannot fail it. C++ has no functions here.
ALLOWED = {
    ("tests/support/hangs.py", "wait_for"): "polls; the limit is the one of the tests",
    ("tests/experiments/test_run.py", "test_twenty_kills_lose_and_double_nothing"): "the moment of a kill; any will do",
    ("tests/scripts/test_slurm.py", "bench"): "polls for a file that the test makes",
    (
        "tests/xcorr/test_correlate_refusals.py",
        "test_a_pipe_is_refused_and_waits_for_nobody",
    ): "polls until the program ends, without a limit",
    (
        "tests/harness/test_cli.py",
        "test_a_known_time_arrives_in_the_record",
    ): "a part is never longer than the whole, read from the same clock",
    ("tests/negative/spin.cpp", ""): "takes at least 300 us, for the tests of the clock",
    ("tests/conformance/random_run.cpp", ""): "tells how far it is",
    ("tests/mutants/run.py", "end"): "after a kill; a process that a GPU still holds is left to it",
    ("tests/mutants/run.py", "one"): "tells how long a mutant took",
    ("tests/mutants/run.py", "timed"): "ten times what the control took on the same machine is a hang",
    ("tests/mutants/run.py", "run"): "tells how long all of them took",
    ("tests/stress/load.cu", ""): "polls a stream, without a limit",
    ("tests/stress/stress.cpp", ""): "tells whether all threads stand still, for the person who started it",
}
LIMITS = re.compile(r"timeout|timeout_s|timeout_ms|time_limit|deadline")
CLOCKS = {
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "time",
    "time_ns",
    "alarm",
    "setitimer",
}
CXX = re.compile(
    r"\bsleep_(for|until)|\busleep\(|\bnanosleep\(|\bwait_(for|until)\(|(steady|system|high_resolution)_clock"
    r"|\bclock\(\)|\bclock_gettime\(|\balarm\("
)
SHELL_SLEEP = re.compile(r"(^|[;&|\s])(sleep|timeout) ([-\d{$.]|$)")
TESTS = [path for path in TREE if path.parts[0] == "tests"]


class Finder(ast.NodeVisitor):
    """(outermost function, line, what) of all that limits, pauses or reads a clock."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int, str]] = []
        self._function = ""

    def _note(self, node: ast.AST, what: str) -> None:
        self.found.append((self._function, node.lineno, what))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for argument, default in zip(node.args.args[::-1], node.args.defaults[::-1]):
            if LIMITS.fullmatch(argument.arg) and limits(default):
                self._note(default, f"{argument.arg} = {ast.unparse(default)}")
        outer, self._function = self._function, self._function or node.name
        self.generic_visit(node)
        self._function = outer

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        of = (
            node.func.value.id if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) else ""
        )
        for keyword in node.keywords:
            if keyword.arg and LIMITS.fullmatch(keyword.arg) and limits(keyword.value):
                self._note(node, f"{keyword.arg}={ast.unparse(keyword.value)}")
        if name in ("wait", "join", "communicate", "result") and node.args and number(node.args[0]):
            self._note(node, ast.unparse(node))
        if name == "sleep" or (name in CLOCKS and of in ("time", "signal", "")):
            self._note(node, f"{of}.{name}()".lstrip("."))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and SHELL_SLEEP.search(node.value):
            self._note(node, f"{node.value.strip()[:40]!r}")


def number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def limits(value: ast.AST) -> bool:
    """Any number but the one of hangs.py; what an argument or a function gives was judged where it was written."""
    return any(number(node) for node in ast.walk(value))


def found_in(name: str, source: str) -> list[tuple[str, int, str]]:
    if name.endswith(".py"):
        finder = Finder()
        finder.visit(ast.parse(source))
        return finder.found
    return [
        ("", number, line.strip())
        for number, line in enumerate(source.splitlines(), start=1)
        if CXX.search(re.sub("//.*", "", line))
    ]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.py", "run(['x'], timeout=300)"),
        ("a.py", "run(['x'], timeout=2 * 60)"),
        ("a.py", "time.sleep(0.1)"),
        ("a.py", "began = time.monotonic()"),
        ("a.py", "perf_counter()"),
        ("a.py", "child.wait(5)"),
        ("a.py", "child.communicate(b'', 5, timeout=9)"),
        ("a.py", "@settings(deadline=200)\ndef f(): pass"),
        ("a.py", "def f(timeout_s=5): pass"),
        ("a.py", "text = 'sleep 3; exec x'"),
        ("a.py", "f'sleep {n}'"),
        ("a.py", "signal.alarm(3)"),
        ("a.cpp", "std::this_thread::sleep_for(1ms);"),
        ("a.cpp", "if (future.wait_for(2s) == ready) {"),
        ("a.hpp", "auto t = std::chrono::steady_clock::now();"),
    ],
)
def test_a_limit_a_pause_and_a_clock_are_found(name, source):
    assert found_in(name, source)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.py", "run(['x'], timeout=HANG_S)"),
        ("a.py", "run(['x'])"),
        ("a.py", "@settings(deadline=None)\ndef f(): pass"),
        ("a.py", "row(outcome='timeout', time=3)"),
        ("a.py", "child.wait()"),
        ("a.py", "point.time(3)"),
        ("a.py", "wait('the node sleeps')"),
        ("a.cpp", "// a sleep_for would do"),
        ("a.cpp", "point.time(batch);"),
    ],
)
def test_what_does_not_wait_is_not_found(name, source):
    assert not found_in(name, source)


def test_no_test_has_a_limit_of_its_own():
    used = set()
    for path in TESTS:
        if path.name == Path(__file__).name or path.suffix not in (".py", ".cpp", ".hpp", ".cu", ".cuh"):
            continue
        for function, line, what in found_in(path.name, text(path)):
            place = (str(path), function)
            assert place in ALLOWED, f"{path}:{line}: {what}: a loaded machine breaks it; see tests/README.md"
            used.add(place)
    there = {
        (name, function)
        for name, function in ALLOWED
        if Path(name) in TREE and (not function or f"def {function}(" in text(Path(name)))
    }
    unused = there - used
    assert not unused, f"allowed, but not there: {sorted(unused)}"


def test_the_limits_are_out_of_reach():
    (multiplier,) = re.findall(
        r"add_test_setup\(.*timeout_multiplier: (\d+), is_default: true[,)]", text(Path("meson.build"))
    )
    assert int(multiplier) >= 50 and HANG_S >= 3600
    stated = [
        int(one) for path in TESTS if path.name == "meson.build" for one in re.findall(r"timeout: (\d+)", text(path))
    ]
    assert stated and min(stated) * int(multiplier) >= 3600


def test_hypothesis_measures_no_time():
    from hypothesis import HealthCheck, settings

    assert settings().deadline is None and HealthCheck.too_slow in settings().suppress_health_check
