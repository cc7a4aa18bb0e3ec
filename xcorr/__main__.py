"""python3 -m xcorr: the command `xcorr`."""

import sys

from xcorr.correlate import main

sys.exit(main())
