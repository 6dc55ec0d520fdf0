"""What is left to do when the SDK itself fails around a call: the host never notices."""

from __future__ import annotations

from typing import Any

from toolfault.errors import ToolError, ToolResult
from toolfault.tools._call import Call, finished
from toolfault.tools._log import logger

__all__ = ["salvaged_failure", "salvaged_success", "salvaged_tear"]


def salvaged_success(call: Call, value: Any, broken: Exception) -> ToolResult[Any]:
    """Return the value of a tool that did its work, although its result could not be built."""
    _note(call, broken)
    finished(call, value, None)
    return ToolResult("OK", value)


def salvaged_failure(call: Call, exc: Exception, broken: Exception) -> ToolResult[Any]:
    """Return a plain failure where the full one could not be built."""
    _note(call, broken)
    error = ToolError(call.tool, type(exc).__name__, "internal_error")
    finished(call, None, error)
    return ToolResult.failure(error)


def salvaged_tear(call: Call, broken: Exception) -> None:
    """Leave a plain record of a call that was torn off."""
    _note(call, broken)
    finished(call, None, ToolError(call.tool, "cancelled", "cancelled"))


def _note(call: Call, broken: Exception) -> None:
    logger().debug("the SDK failed around tool '%s'", call.tool, exc_info=broken)
