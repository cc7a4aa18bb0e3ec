#!/usr/bin/env python3
"""Names that the headers of a CUDA toolkit declare: functions, values, types and intrinsics.

`fixtures/cuda_12_2_names.txt` is what this prints for CUDA 12.2. The headers come as Python packages:

  pip download --no-deps nvidia-cuda-runtime-cu12==12.2.140 nvidia-cuda-nvcc-cu12==12.2.140 \\
      nvidia-cufft-cu12==11.0.8.103 nvidia-cublas-cu12==12.2.5.6
  for wheel in *.whl; do unzip -qo "$wheel" '*/include/*' -d headers; done
Example: tests/support/cuda_names.py headers/nvidia/*/include > cuda_12_2_names.txt
"""

import argparse
import re
from pathlib import Path

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# The intrinsics are of lower case; internal names of the headers are left out where they say so.
NAME = re.compile(
    r"\b(?:cuda[A-Z]\w*|CUDART_VERSION|cufft[A-Z]\w*|CUFFT_\w+|cublas[A-Z]\w*|CUBLAS_\w+"
    r"|__(?!nv|cuda|builtin|u[A-Z])[a-z]\w*)\b"
)
UNUSED = re.compile(r"_64$|_ptsz$|_spt$|Typedefs?$")


def names(text: str) -> set[str]:
    """Names of a toolkit that a source uses or declares, comments aside."""
    return {name for name in NAME.findall(COMMENT.sub(" ", text)) if not UNUSED.search(name)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="folders of headers")
    found: set[str] = set()
    for folder in parser.parse_args().folders:
        for header in folder.rglob("*.h*"):
            found |= names(header.read_text(errors="replace"))
    print("\n".join(sorted(found)))


if __name__ == "__main__":
    main()
