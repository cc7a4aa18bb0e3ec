"""The project's own header of FFTW's interface says what FFTW's header says."""

import re
import shutil
from pathlib import Path

import pytest
from calls import call

from xcorr.paths import ROOT

OURS = ROOT / "harness" / "fftw"
pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")


def compiled(tmp_path: Path, source: str, *flags: str) -> str:
    """What a program with that source prints."""
    (tmp_path / "one.cpp").write_text(source)
    program = tmp_path / "program"
    done = call("c++", "-std=c++20", *flags, tmp_path / "one.cpp", "-o", program)
    assert done.returncode == 0, done.stderr
    return call(program).stdout


def test_the_constants_are_those_of_fftw(tmp_path):
    if call("c++", "-E", "-include", "fftw3.h", "-x", "c++", "/dev/null").returncode:
        pytest.skip("FFTW's header is not installed")
    names = sorted(set(re.findall(r"#define (FFTW_\w+)", (OURS / "fftw3.h").read_text())))
    assert len(names) >= 10
    lines = "".join(f'  std::cout << "{name} " << static_cast<double>({name}) << "\\n";\n' for name in names)
    source = f"#include <fftw3.h>\n#include <iostream>\nint main() {{\n{lines}}}\n"
    assert compiled(tmp_path, source, "-I", str(OURS), "-I", str(ROOT)) == compiled(tmp_path, source)
