"""Lock-out: an address that keeps trying sign-in links that do not work is made to wait.

A link holds 256 random bits, so guessing one is hopeless; this keeps it from being a nuisance too,
and is kept in the process, where it costs nothing. Behind a proxy everybody may share one address:
so a link that works is let in even then, and nobody can lock out anybody else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

__all__ = ["Lockout"]

TRIES: Final = 10
WINDOW_US: Final = 15 * 60 * 1_000_000
# Addresses remembered; the one that has been quiet longest is forgotten first.
MOST: Final = 10_000


class Lockout:
    """Counts links that did not work, by address.

    Args:
        clock: Returns microseconds since the epoch.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failed: OrderedDict[str, deque[int]] = OrderedDict()

    def fail(self, address: str) -> int:
        """Note a link that did not work; return the seconds to wait, 0 below the limit."""
        now = self._clock()
        with self._lock:
            times = self._failed.setdefault(address, deque(maxlen=TRIES))
            self._failed.move_to_end(address)
            if len(self._failed) > MOST:
                self._failed.popitem(last=False)
            locked = len(times) == TRIES and now - times[0] < WINDOW_US
            if not locked:
                times.append(now)
                return 0
            return max(1, (times[0] + WINDOW_US - now) // 1_000_000)

    def succeed(self, address: str) -> None:
        """Forget what did not work before."""
        with self._lock:
            self._failed.pop(address, None)
