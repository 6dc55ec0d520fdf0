"""A collector whose machine has a clock that can be set: seconds off, read from a file.

Only what the operating system says is changed; the collector is the one that everybody runs.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from toolfault_collector.__main__ import main

_off = Path(os.environ["CLOCK_IS_OFF_BY"])
_real_ns = time.time_ns


def _time_ns() -> int:
    return _real_ns() + int(_off.read_text()) * 1_000_000_000


time.time_ns = _time_ns
time.time = lambda: _time_ns() / 1e9

if __name__ == "__main__":
    sys.exit(main())
