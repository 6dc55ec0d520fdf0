"""Results of the MCP SDK, read alike in 1.x and 2.x, on both sides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolfault.errors import Issue, ToolError
from toolfault.integrations.mcp.meta import KEY, PARTS, mapping, told
from toolfault.integrations.mcp.tools import member
from toolfault.integrations.seen import Seen

__all__ = ["answered", "is_error", "refused", "with_parts"]

# JSON-RPC codes of a request nobody answered in time: MCP 1.x took HTTP's, 2.x has its own.
_TIMEOUTS = (408, -32001)
_HEADER_MISMATCH = -32020  # the client lists the tools anew and asks again
# Results and errors that are not the end of a call: a person is asked, or a task polled, first.
_NOT_THE_END = ("InputRequiredResult", "CreateTaskResult", "UrlElicitationRequiredError")


def refused(seen: Seen) -> None:
    """Fill in how a request ended that got an error of the protocol, or no answer."""
    error = seen.error
    code = getattr(getattr(error, "error", None), "code", None)
    if code in _TIMEOUTS:
        seen.stage = "timeout"
    elif code == _HEADER_MISMATCH or type(error).__name__ in _NOT_THE_END:
        seen.stage = "control"


def is_error(result: Any) -> bool:
    """Say whether a result is that of a failed call."""
    return bool(member(result, "is_error", "isError"))


def answered(seen: Seen, result: Any) -> None:
    """Fill in what a result tells; what was noted on the way stays."""
    if type(result).__name__ in _NOT_THE_END:
        seen.stage = "control"
    elif is_error(result):
        seen.told = _text(result)
        seen.error = seen.error or _described(seen, result)
        if seen.stage == "ok":
            stage = _stage_of_text(seen.tool, seen.told)
            seen.stage = "exec" if stage == "returned" and seen.error is not None else stage
    else:
        seen.stage, seen.error, seen.result = "ok", None, _value(result)
        text = _text(result)
        if text.startswith("{"):  # it may say that the call failed
            seen.told = text


def _described(seen: Seen, result: Any) -> Any:
    """Return the failure as a server of the same sink describes it, or None."""
    said = told(result)
    code, issues = said.get("code"), said.get("issues") or ()
    if not isinstance(code, str):
        return None

    seen.stage = "unknown" if code == "not_available" else "validation" if issues else "exec"
    if not issues:
        return ToolError(seen.tool, seen.told, code, category=said.get("category"))
    named = [Issue(**{part: each.get(part) for part in PARTS}) for each in issues]
    return ToolError.from_issues(seen.tool, named).with_(kind="validation", phase="validation")


def _stage_of_text(tool: str, text: str) -> str:
    """Return what the text of a server means that says no more: this SDK's and FastMCP's own."""
    ours = (
        rf".{{0,99}}\d validation errors? for (call\[)?{re.escape(tool)}"  # pydantic's first line
    )
    if text.startswith(("Input validation error", "Invalid arguments")) or re.match(ours, text):
        return "validation"
    return "unknown" if text.startswith("Unknown tool") else "returned"


def with_parts(result: Any, text: str | None, described: Mapping[str, Any] | None = None) -> Any:
    """Return ``result`` with another text or with a description of its failure."""
    update: dict[str, Any] = {}
    texts = [] if text is None else [each for each in result.content if hasattr(each, "text")]
    if texts:
        update["content"] = [texts[0].model_copy(update={"text": text})]
    if described:
        update["meta"] = {**mapping(getattr(result, "meta", None)), KEY: dict(described)}
    return result.model_copy(update=update) if update else result


def _text(result: Any) -> str:
    return "\n".join(block.text for block in result.content if hasattr(block, "text"))


def _value(result: Any) -> object:
    """Return what the tool returned, as far as the result tells: a mapping may say it failed."""
    value = member(result, "structured_content", "structuredContent")
    if isinstance(value, Mapping):
        return value["result"] if set(value) == {"result"} else dict(value)
    blocks = list(getattr(result, "content", ()))
    return getattr(blocks[0], "text", None) if len(blocks) == 1 else None
