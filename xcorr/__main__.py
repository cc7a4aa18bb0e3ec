"""python3 -m xcorr: the command `xcorr`."""

import sys

from xcorr.commands.correlate import main

sys.exit(main())
