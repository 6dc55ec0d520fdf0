"""What looks like a failure although the format marks the call as a success.

Such a call stays a success, so that no count changes; the rule's name is kept as
``detection = soft:<rule>``, by which readers find or exclude it. Rules are tried in order, the
first that fits wins. They follow the in-band conventions of MCP (``isError``) and LangChain
(``status``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["SOFT_RULES", "soft_rule"]

# Beyond this a result is data, and parsing it to find a flag would cost more than it tells.
_JSON_LIMIT: Final = 1 << 20
_FAILED_STATES: Final = frozenset({"error", "failed", "failure"})
_HINT: Final = re.compile(r'"(?:is_?error|errors?|status|success|ok)"', re.IGNORECASE)
_TAG: Final = re.compile(r"\s*<tool_use_error>")
_PREFIX: Final = re.compile(
    r"\s*(?:error\b|exception\b|failed to |traceback \(most recent call last\))", re.IGNORECASE
)
_EXIT_CODE: Final = re.compile(r"\s*(?:command failed with )?exit code:? -?[1-9]", re.IGNORECASE)

_Json = Mapping[str, object]


def _is_error(result: _Json) -> bool:
    return result.get("isError") is True or result.get("is_error") is True


def _status(result: _Json) -> bool:
    status = result.get("status")
    return (
        (isinstance(status, str) and status.lower() in _FAILED_STATES)
        or result.get("success") is False
        or result.get("ok") is False
    )


def _error_field(result: _Json) -> bool:
    return bool(result.get("error")) or bool(result.get("errors"))


_JSON_RULES: Final[tuple[tuple[str, str, Callable[[_Json], bool]], ...]] = (
    ("json_is_error", 'JSON object with `"isError": true` or `"is_error": true`', _is_error),
    (
        "json_status",
        'JSON object with `"status"` error, failed or failure, or `"success"`/`"ok"` false',
        _status,
    ),
    ("json_error", 'JSON object with a non-empty `"error"` or `"errors"`', _error_field),
)
_TEXT_RULES: Final = (
    ("error_tag", "text begins with `<tool_use_error>`", _TAG),
    ("exit_code", "text begins with a non-zero `Exit code`", _EXIT_CODE),
    ("error_prefix", "text begins with `Error`, `Exception`, `Failed to` or `Traceback`", _PREFIX),
)
SOFT_RULES: Final[tuple[tuple[str, str], ...]] = (
    *((name, meaning) for name, meaning, _ in _JSON_RULES),
    *((name, meaning) for name, meaning, _ in _TEXT_RULES),
    ("interrupted", "the session notes that the user interrupted the tool"),
)


def soft_rule(text: str) -> str | None:
    """Name the first rule by which the result *text* of a success looks like a failure."""
    for name, _, pattern in _TEXT_RULES:
        if pattern.match(text):
            return name
    if text.lstrip()[:1] != "{" or len(text) > _JSON_LIMIT or not _HINT.search(text):
        return None
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(result, dict):
        for name, _, holds in _JSON_RULES:
            if holds(result):
                return name
    return None
