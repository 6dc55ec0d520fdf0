"""The one place where an exception ends, and the few words that people who run the host hear.

Nothing the SDK does may raise into its host. What may fail for reasons that are not the SDK's own
(a transport, a filter or a clock of the host) is called
through ``guard``, so that tests and readers find every such place by one name. Only the gate of
captures (``_queue.Gate``) catches by itself, since every failure goes through it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["FAILED", "debug", "guard", "warn"]

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
    try:
        logging = sys.modules.get("logging")
        if logging is not None and _has_handler(logging):
            logging.getLogger("toolfault").warning("%s", text)
        elif sys.stderr is not None:
            sys.stderr.write(f"toolfault: {text}\n")
    except Exception:  # noqa: BLE001, S110 - a closed stream or a broken handler of the host
        pass


def debug(text: str) -> None:
    """Log what only someone who looks for it wants to see."""
    try:
        logging = sys.modules.get("logging")
        if logging is not None:
            logging.getLogger("toolfault").debug(text, exc_info=True)
    except Exception:  # noqa: BLE001, S110 - see above
        pass


def _has_handler(logging: Any) -> bool:
    """Whether any handler but a null one would get our records."""
    logger = logging.getLogger("toolfault")
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False
