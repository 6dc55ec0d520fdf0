"""A structlog processor: tool, conversation and code on every line, and logged failures reported.

```python
structlog.configure(processors=[..., toolfault_processor, structlog.processors.JSONRenderer()])
```

structlog itself is not imported: a processor is a function.
"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from typing import Any

from toolfault.integrations._fields import capture_once, fields, tool_error_in

__all__ = ["toolfault_processor"]


def toolfault_processor(
    logger: object, method_name: str, event_dict: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Add ``tool``, ``conversation`` and ``code``, and report a ``ToolError`` that is logged.

    The error is looked for in ``exc_info`` and in ``error``. Keys that the line has already stay
    as they are. A failure that a recorded call carries is not reported again. Never raises.

    Args:
        logger: Not used.
        method_name: Not used.
        event_dict: The line; changed in place, as processors do.
    """
    try:
        error = tool_error_in(_exception(event_dict))
        for name, value in fields(error).items():
            event_dict.setdefault(name, value)
        if error is not None:
            capture_once(error)
    except Exception:  # noqa: BLE001 - a log line never fails because of us
        return event_dict
    return event_dict


def _exception(event_dict: MutableMapping[str, Any]) -> object:
    """Return the exception of a line; ``exc_info`` may be True, an exception or a triple."""
    given = event_dict.get("exc_info")
    if given is True:
        return sys.exc_info()[1]
    if isinstance(given, tuple) and len(given) == 3:
        return given[1]
    return given or event_dict.get("error")
