#!/usr/bin/env python3
"""Reads the results of the published artifact into result sets; see --help. The work is done by
experiments/published/importing.py.

Example: scripts/import_published.py artifact/presented-results
"""

import os
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHOICE = ROOT / ".xcorr-env"  # written by setup.sh, in the words of a shell

sys.dont_write_bytecode = True
sys.path[0] = str(ROOT)
try:
    from experiments.published.importing import main
except ImportError as error:  # a module is missing, or the system has an older one
    words = shlex.split(CHOICE.read_text()) if CHOICE.exists() else []
    found = [word.partition("=")[2] for word in words if word.startswith("XCORR_PYTHON=")]
    python = (found or [os.environ.get("XCORR_PYTHON", "")])[-1]
    if not python or python == sys.executable:
        print(f"error: Python module {error.name}: missing or too old; run ./scripts/setup.sh", file=sys.stderr)
        sys.exit(2)
    os.execv(python, [python, __file__, *sys.argv[1:]])

sys.exit(main())
