"""Local log lines: what a developer reads, in the texts of contract.md 1.1 (L-11 to L-14).

``logging`` is imported when the first line is due, not with the SDK: it costs more than all else.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging

__all__ = ["flow", "logger"]

_logger: logging.Logger | None = None


def logger() -> logging.Logger:
    """Return the SDK's logger; unless the host listens it says nothing, also not on stderr."""
    global _logger  # noqa: PLW0603 - made once, on first use
    if _logger is None:
        import logging

        made = logging.getLogger("toolfault")
        if not any(isinstance(handler, logging.NullHandler) for handler in made.handlers):
            made.addHandler(logging.NullHandler())
        _logger = made
    return _logger


def flow(text: str, *args: Any) -> None:
    """Log a step of the execution at debug level.

    A host that never imported ``logging`` cannot be listening, and pays nothing.
    """
    if _logger is None and "logging" not in sys.modules:
        return
    log = logger()
    if log.isEnabledFor(10):
        try:
            log.debug(text, *args)
        except Exception:  # noqa: BLE001 - a filter of the host that raises
            return
