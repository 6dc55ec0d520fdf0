"""The one place where an exception ends, and the few words that people who run the host hear.

Nothing the SDK does may raise into its host. What may fail for reasons that are not the SDK's own
(a transport, a filter or a clock of the host) is called
through ``guard``, so that tests and readers find every such place by one name. Only the gate of
captures (``_queue.Gate``) catches by itself, since every failure goes through it.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable
from typing import Any

from toolfault.tools._call import has_handler, say

FAILED = object()
"""What ``guard`` returns where the call raised, unless it is told otherwise."""


def guard(what: str, call: Callable[..., Any], *arguments: Any, otherwise: Any = FAILED) -> Any:
    """Call ``call(*arguments)``; log an exception at debug level and return ``otherwise``.

    Ctrl-C, and whatever else is no ``Exception``, reaches the host.

    Args:
        what: What failed, for the log.
        call: What may fail.
        arguments: Its arguments.
        otherwise: What is returned in the place of its answer.
    """
    try:
        return call(*arguments)
    except Exception:  # noqa: BLE001 - the promise to the host
        debug(what)
        return otherwise


def warn(text: str) -> None:
    """Tell the operator something that needs doing, through logging or, unconfigured, stderr."""
    if has_handler():
        say(logging.WARNING, "%s", text)
    elif sys.stderr is not None:
        with contextlib.suppress(Exception):  # a closed stream
            sys.stderr.write(f"toolfault: {text}\n")


def debug(text: str) -> None:
    """Log what only someone who looks for it wants to see."""
    say(logging.DEBUG, text, exc_info=True)
