"""What the commands of xcorr do alike: one line for a mistake, nothing for a closed pipe, exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from xcorr.errors import LibraryError, UserError

INTERRUPTED = 130


def exit_code(run: Callable[[], int]) -> int:
    """The exit code of `run`: 2 after one line on stderr for a user's mistake, 1 where nobody reads the output any more, 130
    after Ctrl-C."""
    try:
        code = run()
        sys.stdout.flush()  # here, since at the end of Python nobody could catch a closed pipe
        return code
    except (UserError, LibraryError) as error:
        return _refused(str(error))
    except MemoryError:
        return _refused("memory: exhausted; use fewer or smaller matrices, or a smaller window")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; no output was written", file=sys.stderr)
        return INTERRUPTED


def _refused(message: str) -> int:
    print("error: " + " ".join(message.splitlines()), file=sys.stderr)
    return 2
