"""Messages to the people who run the host: few, and never an exception."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["debug", "say"]


def say(text: str) -> None:
    """Tell the operator something that needs doing, through logging or, unconfigured, stderr."""
    try:
        logging = sys.modules.get("logging")
        if logging is not None and _heard(logging):
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


def _heard(logging: Any) -> bool:
    """Whether any handler but a null one would get our records."""
    logger = logging.getLogger("toolfault")
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False
