"""What looks like a failure although the format marks the call as a success.

Such a call stays a success, so that no count changes; the rule's name is kept as
``detection = soft:<rule>``, by which readers find or exclude it. The first rule that fits wins,
those for texts first. They follow the in-band conventions of MCP (``isError``) and LangChain
(``status``). Formats may know more: ``interrupted`` is a rule of Claude Code's sessions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["soft_rule"]

_Json = Mapping[str, object]

# Beyond this a result is data, and parsing it to find a flag would cost more than it tells.
_JSON_LIMIT: Final = 1 << 20
_HINT: Final = re.compile(r'"(?:is_?error|errors?|status|success|ok)"', re.IGNORECASE)
_TEXT_RULES: Final[Mapping[str, re.Pattern[str]]] = {
    "error_tag": re.compile(r"\s*<tool_use_error>"),
    "exit_code": re.compile(r"\s*(?:command failed with )?exit code:? -?[1-9]", re.IGNORECASE),
    "error_prefix": re.compile(
        r"\s*(?:error\b|exception\b|failed to |traceback \(most recent call last\))", re.IGNORECASE
    ),
}


def _is_error(result: _Json) -> bool:
    return result.get("isError") is True or result.get("is_error") is True


def _status(result: _Json) -> bool:
    status = result.get("status")
    failed = isinstance(status, str) and status.lower() in ("error", "failed", "failure")
    return failed or result.get("success") is False or result.get("ok") is False


def _error_member(result: _Json) -> bool:
    return bool(result.get("error")) or bool(result.get("errors"))


_JSON_RULES: Final[Mapping[str, Callable[[_Json], bool]]] = {
    "json_is_error": _is_error,
    "json_status": _status,
    "json_error": _error_member,
}


def soft_rule(text: str) -> str | None:
    """Name the first rule by which the result *text* of a success looks like a failure."""
    for name, pattern in _TEXT_RULES.items():
        if pattern.match(text):
            return name
    if text.lstrip()[:1] != "{" or len(text) > _JSON_LIMIT or not _HINT.search(text):
        return None
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return None
    holding = (name for name, holds in _JSON_RULES.items() if holds(result))
    return next(holding, None) if isinstance(result, dict) else None
