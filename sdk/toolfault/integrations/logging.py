"""Standard logging: a filter that adds fields, and a handler that reports logged failures.

```python
logging.getLogger().addHandler(ToolFaultHandler())
stream.addFilter(ToolCallFilter())          # then "%(tool)s" works in its format
```
"""

from __future__ import annotations

import logging

from toolfault.integrations._fields import capture_once, fields, tool_error_in

__all__ = ["ToolCallFilter", "ToolFaultHandler"]


class ToolCallFilter(logging.Filter):
    """Adds ``tool``, ``conversation`` and ``code`` to every record; empty where not known."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields that the record does not have; let every record pass."""
        known = {"tool": "", "conversation": "", "code": "", **_known(record)}
        for name, value in known.items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class ToolFaultHandler(logging.Handler):
    """Reports every ``ToolError`` that is logged with ``exc_info`` or as ``extra={"error": ...}``.

    A failure that a recorded call carries is not reported again, and the SDK's own lines are left
    alone. Writes nothing itself.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Report the failure of a record, if it has one."""
        if record.name == "toolfault" or record.name.startswith("toolfault."):
            return
        try:
            error = tool_error_in(_exception(record))
            if error is not None:
                capture_once(error)
        except Exception:  # noqa: BLE001 - a log line never fails because of us
            return


def _known(record: logging.LogRecord) -> dict[str, str]:
    try:
        return fields(tool_error_in(_exception(record)))
    except Exception:  # noqa: BLE001 - as above
        return {}


def _exception(record: logging.LogRecord) -> object:
    if record.exc_info:
        return record.exc_info[1]
    return getattr(record, "error", None) or getattr(record, "tool_error", None)
