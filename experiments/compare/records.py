"""What xcorr-bench says of one point."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from xcorr.errors import UserError


def passed_record(words: Sequence[str], point: str) -> dict[str, Any]:
    """The record of the command `words`, xcorr-bench with `--records -`. UserError, which names the point, where it did not pass or
    there is none."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        record = json.loads(line).get("record") if line.startswith('{"record"') else None
        if record and record["outcome"] == "passed":
            return dict(record)
        if record:
            raise UserError(f"{point}: {record['outcome']}: {record['reason']}")
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    raise UserError(f"{point}: {last.removeprefix('error: ')}")
