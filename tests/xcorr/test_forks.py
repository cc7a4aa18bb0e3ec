"""What a process that was forked may do with the library; before, calls with threads waited for ever."""

import os
import subprocess
import sys
import textwrap

import pytest
from built_library import built_library
from hangs import HANG_S
from tree import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
COMMON = """
    import multiprocessing, os, sys, threading
    import numpy as np
    from xcorr.native.library import Library
    from xcorr.problem import Problem
    from xcorr.errors import LibraryError
    problem = Problem("n-to-mn", (40, 40), (40, 40), 8, 64)
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=(n, 40, 40)).astype("f4") for n in (8, 64))
    library = Library()
    def correlate(variant="cpu_fft", params="threads=all"):
        return library.correlate(problem, left, right, variant=variant, params=params)
    truth = library.reference(problem, left, right)
    def right_(out):
        return bool(np.abs(out - truth).max() < 1e-2)
"""


def ran(body):
    """The lines that a program of these lines prints."""
    built_library()
    program = textwrap.dedent(COMMON) + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("variant", ["cpu_fft", "cpu_row_streaming"])
def test_the_processes_of_a_pool_compute_after_their_parent_has(variant):
    assert ran(f"""
        print(right_(correlate("{variant}")))
        def one(_):
            return right_(correlate("{variant}"))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(all(pool.map(one, range(4))))
        print(right_(correlate("{variant}")))
    """) == ["True", "True", "True"]


def test_a_session_of_the_parent_goes_on_in_the_child():
    lines = ran("""
        session = library.session(problem, variant="cpu_fft", params="threads=all")
        print(right_(session.correlate(left, right)), flush=True)
        child = os.fork()
        if child == 0:
            print(right_(session.correlate(left, right)), flush=True)
            session.close()
            os._exit(0)
        os.waitpid(child, 0)
        print(right_(session.correlate(left, right)))
        session.close()
    """)
    assert lines == ["True"] * 3


def test_a_child_that_was_forked_while_another_thread_computed_is_refused():
    lines = ran("""
        # A large call, so that it goes on until the child has ended.
        big = Problem("one-to-one", (700, 700), (700, 700))
        data = np.ones((1, 700, 700), "f4")
        started, done = threading.Event(), threading.Event()
        def long():
            started.set()
            while not done.is_set():
                library.correlate(big, data, data, variant="cpu_row_streaming", params="threads=1")
        other = Library()
        thread = threading.Thread(target=long)
        thread.start()
        started.wait()
        seen = set()
        while True:  # until a fork falls into a call
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    other.describe(problem)
                    os.write(writer, b"worked")
                except LibraryError as error:
                    os.write(writer, str(error).encode())
                os._exit(0)
            os.close(writer)
            with os.fdopen(reader) as answer:
                seen.add(answer.read())
            os.waitpid(child, 0)
            refused = [one for one in seen if one != "worked"]
            if refused:
                break
        done.set()
        thread.join()
        print(refused[0])
        print(right_(correlate()))
    """)
    assert lines[0].startswith("process: was forked while another thread computed; ")
    assert lines[1] == "True", "the parent goes on"
