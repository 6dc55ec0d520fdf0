"""A hook of Claude Code: each finished tool call, from the JSON the hook reads on stdin.

Settings of Claude Code::

    {"hooks": {
      "PostToolUse": [{"hooks": [{"type": "command",
                                  "command": "python -m toolfault hook claude-code"}]}],
      "PostToolUseFailure": [{"hooks": [{"type": "command",
                                         "command": "python -m toolfault hook claude-code"}]}]}}

A failure is only a sentence here, so its code comes from the table below, the first match of
which counts. It holds what Claude Code itself says; texts of other tools are ``unclassified``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolfault.errors import Issue, ToolError
from toolfault.telemetry._client import Client
from toolfault.telemetry._conversations import Conversation
from toolfault.tools import CallRecord

_LONGEST_LINE = 500


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    code: str
    category: str
    audience: str | None = None
    field: str | None = None


def _rule(pattern: str, code: str, category: str, **more: str) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), code, category, **more)


_RULES = (
    _rule(
        r"^the user doesn'?t want to|^the tool use was rejected|request interrupted by user",
        "rejected_by_user",
        "availability",
        audience="user",
    ),
    _rule(
        r"haven'?t granted it|requires approval|permission to use .{1,128} has been denied",
        "permission_denied",
        "availability",
        audience="user",
    ),
    _rule(
        r"hook blocked|blocked by hook|hook returned blocking", "blocked_by_hook", "availability"
    ),
    _rule(r"^no such tool", "not_available", "availability"),
    # Tools of an in-process server of the Agent SDK: jsonschema's first finding, without a field.
    _rule(r"^input validation error: ", "invalid_input", "parameter"),
    _rule(r"file has (?:not been read|been modified)", "precondition_failed", "parameter"),
    _rule(r"^string to replace not found", "not_found", "parameter", field="old_string"),
    _rule(r"matches of the string to replace", "not_unique", "parameter", field="old_string"),
    _rule(r"^no changes to make", "invalid_input", "parameter", field="new_string"),
    _rule(r"^command timed out|\btimed out after\b", "timeout", "internal"),
    _rule(r"^exit code -?\d", "command_failed", "parameter"),
    _rule(r"exceeds? (?:the )?maximum", "field_too_large", "parameter"),
    _rule(
        r"\bdoes not exist\b|\bnot found\b|\bno such file\b|\benoent\b", "not_found", "parameter"
    ),
)
_SENTENCES = (
    (re.compile(r"^The required parameter `([^`\n]{1,128})` is missing"), "missing_field"),
    (re.compile(r"^An unexpected parameter `([^`\n]{1,128})` was provided"), "unknown_field"),
    (
        re.compile(r"^The parameter `([^`\n]{1,128})` type is expected as `(.{1,64}?)`"),
        "wrong_type",
    ),
)


def capture_hook(client: Client, message: Mapping[str, Any]) -> bool:
    """Capture what one hook message tells; False where it tells of no finished call.

    Args:
        client: Where the call goes.
        message: What Claude Code wrote to stdin.
    """
    event, tool = message.get("hook_event_name"), message.get("tool_name")
    if event not in ("PostToolUse", "PostToolUseFailure") or not isinstance(tool, str) or not tool:
        return False
    failed = event == "PostToolUseFailure"
    error = failure_of(tool, message) if failed else None
    if error is not None:
        error.quotes_exception = True  # Claude Code's texts quote the arguments
    arguments = message.get("tool_input")
    duration = message.get("duration_ms")
    record = CallRecord(
        tool,
        tool,
        success=not failed,
        started_at=0.0,
        duration_ms=float(duration) if isinstance(duration, (int, float)) else 0.0,
        call_id=_text(message.get("tool_use_id")),
        arguments=arguments if isinstance(arguments, dict) else None,
        error=error,
    )
    with Conversation(conversation_in(message), agent="claude-code", ends=False):
        client.on_call(record)
    return True


def conversation_in(message: Mapping[str, Any]) -> str | None:
    """Return the conversation: sub-agents share a session but talk on their own."""
    session, agent = _text(message.get("session_id")), _text(message.get("agent_id"))
    return f"{session}/{agent}" if session and agent else session


def failure_of(tool: str, message: Mapping[str, Any]) -> ToolError:
    """Return the failure that a ``PostToolUseFailure`` message tells of."""
    text = _text(message.get("error")) or "the tool failed without a word"
    text = text.replace("<tool_use_error>", "").replace("</tool_use_error>", "").strip()
    text = text.removeprefix("Error: ")
    if message.get("is_interrupt") is True:
        return ToolError(tool, text, "cancelled", llm_message=text)
    issues = _issues(text)
    if issues:
        return ToolError.from_issues(tool, issues).with_(llm_message=text, phase="validation")
    line = text.partition("\n")[0][:_LONGEST_LINE]
    for rule in _RULES:
        if rule.pattern.search(line):
            return ToolError(
                tool,
                text,
                rule.code,
                category=rule.category,
                audience=rule.audience,
                field=rule.field,
                # What the model saw is this very text, whatever its category.
                llm_message=text,
            )
    return ToolError(tool, text, "unclassified", category="internal", llm_message=text)


def _issues(text: str) -> list[Issue]:
    """Take Claude Code's ``InputValidationError`` apart; no issues for any other text."""
    if not text.startswith("InputValidationError"):
        return []
    issues: list[Issue] = []
    for line in text.split("\n")[1:51]:
        for pattern, code in _SENTENCES:
            found = pattern.match(line)
            if found is not None:
                expected = found.group(2) if code == "wrong_type" else None
                issues.append(Issue(found.group(1), code, expected=expected))
    return issues


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
