"""``python -m toolfault_demo``: the fleet, for as long as whoever started it is there.

``TOOLFAULT_DSN`` says where the agents report to, as for any agent: a key has no place on a command
line, which every user of the machine can read. The history is told first; one line of JSON on the
standard output says what it was, or why it could not be told. Then the agents go on, until SIGTERM,
Ctrl-C or the end of the standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import threading
import time

from toolfault_demo.history import DeliveryError, live_through
from toolfault_demo.live import agents_at_work, quiet_tools

__all__ = ["main"]


def main() -> int:
    """Run the fleet and return its exit status: 0 when it was told to stop, 1 when it could not."""
    dsn, seed, days = _arguments()
    quiet_tools()
    try:
        _listen_for_the_end()
        _say(_tell_history(dsn, seed=seed, days=days))
        with agents_at_work(dsn=dsn, seed=seed):
            threading.Event().wait()
    except KeyboardInterrupt:
        # What is left takes little time; being told again would only cut it short with a traceback.
        for ending in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ending, signal.SIG_IGN)
    except DeliveryError as error:
        _say({"error": str(error)})
        return 1
    return 0


def _arguments() -> tuple[str, int, int]:
    parser = argparse.ArgumentParser(prog="python -m toolfault_demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=7, help="Same seed, same agents.")
    parser.add_argument("--days", type=int, default=14, help="Days of history, 1 to 28.")
    given = parser.parse_args()
    dsn = os.environ.get("TOOLFAULT_DSN")
    if not dsn:
        parser.error("set TOOLFAULT_DSN to where the agents report to: http://KEY@HOST:PORT")
    if not 1 <= given.days <= 28:
        parser.error("--days must be 1 to 28: a collector takes client times from 30 days back")
    return dsn, given.seed, given.days


def _listen_for_the_end() -> None:
    """Take signals, and the end of the standard input, for a word to stop.

    The other end of the input is with whoever started the fleet. It is let go of however they end,
    also when they are killed and can say nothing. Who closed it altogether can only send a signal.
    """
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    if sys.stdin is not None:  # else it was closed, and its number is that of another file by now
        threading.Thread(target=_end_with_input, daemon=True).start()


def _end_with_input() -> None:
    # Not by sys.stdin, whose lock a thread that still reads would hold when the interpreter ends.
    while os.read(0, 4096):
        pass
    # A signal interrupts whatever the main thread waits for.
    os.kill(os.getpid(), signal.SIGTERM)


def _tell_history(dsn: str, *, seed: int, days: int) -> dict[str, float]:
    """Send the history and return what it was."""
    started = time.monotonic()
    ledger = asyncio.run(live_through(dsn=dsn, seed=seed, until=time.time(), days=days))
    return {
        "conversations": ledger.conversations,
        "calls": ledger.calls.total(),
        "failures": ledger.failures.total(),
        "seconds": time.monotonic() - started,
    }


def _say(told: dict[str, float] | dict[str, str]) -> None:
    """Print one line of JSON, at once, also into a pipe."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
