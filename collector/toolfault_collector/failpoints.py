"""Places at which the process can be made to die, to prove what a crash there costs.

``TOOLFAULT_FAILPOINT=calls:3`` kills it with SIGKILL as it reaches the point ``calls`` for the
third time. Without the variable a point is one comparison.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Final

__all__ = ["ALERT_POINTS", "POINTS", "REMOVAL_POINTS", "SHIPPING_POINTS", "reach"]

# In the order in which a batch passes them; COMMIT lies between "inserted" and "committed".
POINTS: Final = (
    "parsed",
    "prepared",
    "queued",
    "begun",
    "calls",
    "inserted",
    "committed",
    "respond",
)
# Of retention: before and after the commit of each of its transactions.
REMOVAL_POINTS: Final = ("removed", "removal_committed")
# Of alerts: a message is decided, about to be sent, sent, and marked as sent.
ALERT_POINTS: Final = ("alert_decided", "alert_sending", "alert_sent", "alert_marked")
# Of shipping: a table's removed rows are gone, its rows are there, all of the block is.
SHIPPING_POINTS: Final = ("ship_removed", "ship_inserted", "shipped")

_NAME, _, _COUNT = os.environ.get("TOOLFAULT_FAILPOINT", "").partition(":")
_left: Final = threading.Semaphore(int(_COUNT or 1) - 1)


def reach(point: str) -> None:
    """Die here if this is the point, and the time, that was asked for."""
    if point == _NAME and not _left.acquire(blocking=False):
        os.kill(os.getpid(), signal.SIGKILL)
