#!/usr/bin/env python3
"""The door of experiments/import_published.py, which reads the published artifact's results; see --help.

Example: scripts/import_published.py artifact/presented-results
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[0] = str(Path(__file__).resolve().parent.parent)
try:
    from experiments.import_published import main
except ModuleNotFoundError as error:
    print(f"error: Python module {error.name}: missing; run ./scripts/setup.sh", file=sys.stderr)
    sys.exit(2)

sys.exit(main())
