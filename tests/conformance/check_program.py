"""What the program `conformance` prints: broken variants are found by random problems too, and the command
that it prints repeats a failure that was made small.

usage: check_program.py CONFORMANCE CONFORMANCE_BROKEN, both paths; meson test runs it
"""

import csv
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, BROKEN = "", ""
FOLDER = Path(__file__).resolve().parent
# Wrong after 20 calls, which a timed loop makes and conformance does not.
LATER = {"broken_later", "broken_throws_later"}
SOUND = {"broken_nothing", "broken_no_spectrum"}
KILLS = {"broken_kills"}  # the process, so that nothing is shrunk


def broken_variants() -> list[str]:
    text = "".join(path.read_text() for path in sorted((FOLDER.parent / "negative").glob("wrong_*.cpp")))
    return re.findall(r'\badd(?:_transform)?\(\s*"(broken_\w+)"', text)


def run(*words: str) -> tuple[int, str]:
    # These problems are too small for threads.
    done = subprocess.run(
        words, check=False, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    return done.returncode, done.stdout + done.stderr


def parts(count: int, *command: str, record: Path | None = None) -> list[str]:
    """The command that runs a command in parts."""
    recorded = ["--record", str(record)] if record else []
    return [sys.executable, str(FOLDER / "run_parts.py"), "--parts", str(count), *recorded, "--", *command]


def elements(problem: str) -> int:
    """Of all inputs."""
    _, left, right, counts, _ = problem.split("/", 4)
    lefts, rights = map(int, counts.split(":"))
    (a, b), (c, d) = (map(int, shape.split("x")) for shape in (left, right))
    return lefts * a * b + rights * c * d


class Checks(unittest.TestCase):
    def expect(self, code: int, *words: str) -> str:
        """What a program prints that must end with this code."""
        done, text = run(*words)
        self.assertEqual(done, code, text)
        return text


class Numbers(Checks):
    def test_numbers_beyond_64_bits_are_refused(self) -> None:
        for option in ("--seed", "--random", "--properties", "--largest-side", "--bytes", "--work"):
            for number in ("99999999999999999999", "0x10000000000000000"):
                with self.subTest(option):
                    code, text = run(PROGRAM, "--variant", "cpu_definition", f"{option}={number}")
                    self.assertNotEqual(code, 0, text)
                    self.assertIn(f"{option}: {number} is beyond 64 bits", text)


class RandomProblems(Checks):
    def test_every_broken_variant_is_found_and_the_printed_command_repeats_it(self) -> None:
        variants = [name for name in broken_variants() if name not in LATER | SOUND | KILLS]
        self.assertGreater(len(variants), 20)
        for variant in variants:
            with self.subTest(variant):
                text = self.expect(1, BROKEN, "--random", "12", "--seed", "3", "--variant", variant)
                command = re.search(r"repeat: (.*)", text)
                assert command, text
                words = shlex.split(command[1])
                again = self.expect(1, *words)
                self.assertIn(f"FAILED {variant} ", again)
                self.assertIn("0 passed, 1 failed", again)
                problem = words[words.index("--problem") + 1]
                self.assertLessEqual(elements(problem), 12, f"not shrunk: {problem}\n{text}")

    def test_every_law_finds_what_breaks_it(self) -> None:
        for law, variant in (
            ("shift", "broken_sign"),
            ("swap", "broken_pairing"),
            ("linearity", "broken_no_product"),
            ("window", "broken_window"),
        ):
            with self.subTest(law):
                text = self.expect(1, BROKEN, "--properties", "40", "--seed", "3", "--variant", variant)
                commands = [line for line in re.findall(r"repeat: (.*)", text) if line.endswith(f"--property {law}")]
                self.assertTrue(commands, f"{law} does not find {variant}:\n{text}")
                self.expect(1, *shlex.split(commands[0]))

    def test_a_sound_variant_passes(self) -> None:
        for kind in ("--random", "--properties"):
            text = self.expect(0, BROKEN, kind, "60", "--seed", "5", "--variant", "broken_nothing")
            self.assertIn("60 passed, 0 failed", text)

    def test_parts_are_disjoint_and_together_the_whole(self) -> None:
        command = (PROGRAM, "--random", "50", "--seed", "9", "--variant", "cpu_definition")
        with tempfile.TemporaryDirectory() as folder:
            one, three = Path(folder) / "one.json", Path(folder) / "three.json"
            self.expect(0, *command, "--record", str(one))
            self.expect(0, *parts(3, *command, record=three))
            whole, joined = json.loads(one.read_text()), json.loads(three.read_text())
        self.assertEqual(whole["passed"], 50)
        self.assertEqual(whole["seed"], 9)
        for key in ("passed", "forms", "inputs", "windows", "largest", "limits", "machine_key"):
            self.assertEqual(whole[key], joined[key], key)
        self.assertEqual(joined["parts"], 3)
        self.assertEqual(len(whole["forms"]), 4)
        self.assertEqual(whole["limits"]["side"], 160)

    def test_parts_of_a_run_of_all_problems_add_up(self) -> None:
        command = (PROGRAM, "--variant", "template_fft_cpu")
        text = self.expect(0, *command)
        of_parts = self.expect(0, *parts(3, *command))
        last = text.strip().splitlines()[-1]
        self.assertRegex(last, r"^[1-9]\d* passed, 0 failed")
        self.assertIn(last, of_parts.splitlines())

    def test_a_failing_part_fails_all(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "record.json"
            command = (BROKEN, "--random", "4", "--seed", "1", "--variant", "broken_sign")
            text = self.expect(1, *parts(2, *command, record=path))
            self.assertIn("repeat: ", text)
            self.assertGreater(len(json.loads(path.read_text())["failures"]), 0)

    def test_a_variant_that_kills_the_process_is_named(self) -> None:
        code, text = run(BROKEN, "--random", "4", "--seed", "1", "--variant", "broken_kills")
        self.assertLess(code, 0)
        self.assertRegex(text, r"repeat: .* --variant broken_kills .* --problem ")

    def test_a_refused_draw_is_drawn_again_and_counted(self) -> None:
        text = self.expect(
            0, BROKEN, "--random", "20", "--variant", "broken_nothing", "--largest-side", "3", "--bytes", "1000"
        )
        self.assertRegex(text, r"limits: side 3, 1 kB")
        self.assertRegex(text, r"largest: side [123], ")

    def test_mistakes_are_one_line(self) -> None:
        for words, said in (
            (["--problem", "none"], "problem 'none'"),
            (["--shard", "3/2"], "--shard 3/2"),
            (["--random", "5", "--precision", "fp16", "--variant", "cpu_fft"], "nothing to draw"),
            (["--input", "nosuch"], "input 'nosuch'"),
            (["--params", "a=1"], "--params"),
        ):
            text = self.expect(2, PROGRAM, *words)
            self.assertRegex(text, r"^error: [^\n]*\n$")
            self.assertIn(said, text)


class Errors(Checks):
    def test_the_table_has_a_line_for_each_input(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "errors.csv"
            variants = ("--variant", "cpu_definition", "--variant", "cpu_fft")
            self.expect(0, PROGRAM, "--errors", str(path), *variants, "--work", "70000")
            rows = list(csv.DictReader(path.read_text().splitlines()))
        columns = "variant precision input problem params max_relative_error rel_l2_error argmax_agrees"
        self.assertEqual(list(rows[0]), columns.split())
        self.assertEqual({row["variant"] for row in rows}, {"cpu_definition", "cpu_fft"})
        self.assertIn("offset", {row["input"] for row in rows})
        for row in rows:
            limit = 1e-14 if row["precision"] == "fp64" else 1e-5
            if row["input"] != "subnormal":
                self.assertLess(float(row["max_relative_error"]), limit, row)
        single = [row for row in rows if row["precision"] == "fp32" and row["input"] == "uniform"]
        self.assertTrue(all(float(row["rel_l2_error"]) > 0 for row in single), single)


if __name__ == "__main__":
    PROGRAM, BROKEN = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]], verbosity=1)
