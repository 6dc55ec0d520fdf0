"""Structured logs: one JSON object a line on standard error, without bodies, keys or values.

On a terminal the same is written for eyes. Control characters are escaped on either, also those
that JSON leaves alone and a terminal obeys, so no logged text can forge a line or hide one.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from contextlib import suppress
from typing import Any, Final, TextIO, cast

import msgspec
import structlog

__all__ = ["configure"]

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
# A logged text longer than this is data that should not be in a log.
MAX_TEXT: Final = 4_000
# Delete and the C1 controls; zero-width, line and paragraph separators, bidirectional controls.
_INVISIBLE: Final = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_CONTROL: Final = re.compile(f"[\0-\x1f]|{_INVISIBLE.pattern}")
# Of a traceback the innermost frames tell most.
MAX_FRAMES: Final = 12
MAX_CAUSES: Final = 3


class _StandardError:
    """Standard error, or nothing: a full disk or a closed pipe must not fail who logs."""

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            if sys.stderr is not None:
                sys.stderr.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            if sys.stderr is not None:
                sys.stderr.flush()


class _Logger(structlog.WriteLogger):
    """Writes the lines of one module, whose name is in each."""

    def __init__(self, name: str = "") -> None:
        super().__init__(cast("TextIO", _StandardError()))
        self.name = name


def configure(level: str) -> None:
    """Send the logs of the server and of its libraries to standard error, from *level* up.

    A line that cannot be written is lost; whoever logs goes on.
    """
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(_places),
        _cut,
    ]
    render = _for_eyes if _is_terminal() else structlog.processors.JSONRenderer(serializer=_dump)
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=_Logger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(cast("TextIO", _StandardError()))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processor=render)
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # Libraries say at "info" what only their authors want to know.
    root.setLevel(max(_LEVELS[level], logging.WARNING))


def _places(exc_info: Any) -> str:
    """Return where an exception and its causes came from, innermost last.

    Never what they say: an exception may quote the request, the row or the address of the database.
    """
    error = exc_info[1]
    lines: list[str] = []
    for _ in range(MAX_CAUSES):
        if error is None:
            break
        frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
        lines += [f"{type(error).__module__}.{type(error).__qualname__}"]
        lines += [f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        error = error.__cause__ or error.__context__
    return "\n".join(lines)


def _cut(_logger: object, _method: str, event: Any) -> Any:
    for key, value in event.items():
        if isinstance(value, str) and len(value) > MAX_TEXT:
            event[key] = value[:MAX_TEXT] + "…"
    return event


def _dump(event: Any, **_options: object) -> str:
    return _INVISIBLE.sub(_escaped, msgspec.json.encode(event, enc_hook=str).decode())


def _is_terminal() -> bool:
    with suppress(ValueError):  # it is closed
        return sys.stderr is not None and sys.stderr.isatty()
    return False


_CONSOLE: Final = structlog.dev.ConsoleRenderer(colors="NO_COLOR" not in os.environ)


def _for_eyes(logger: Any, method: str, event: Any) -> str:
    """Return *event* as a line for a terminal; only an exception has several, which are ours."""
    for key, value in event.items():
        if key != "exception":
            text = value if isinstance(value, str | int | float) else str(value)
            event[key] = _CONTROL.sub(_escaped, text) if isinstance(text, str) else text
    return str(_CONSOLE(logger, method, event))


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
