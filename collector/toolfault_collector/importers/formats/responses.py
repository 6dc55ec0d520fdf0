"""Items of OpenAI's Responses and Conversations APIs, and of Codex sessions, which log them.

An item whose type ends with ``_call`` is a call. Those that the client runs (functions, custom
tools, shells) are answered by an item whose type ends with ``_call_output``; those that OpenAI runs
(MCP, web and file search, code) carry their own result. Failure rule: an ``error`` of the call, or
``status: failed`` of either item, or an output that starts with ``Error``; see ``openai.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from toolfault_collector.importers.formats.openai import ERROR_PREFIX, call_of, message_time
from toolfault_collector.importers.items import Call, Dialect, Json, Outcome
from toolfault_collector.importers.members import name_of, result_text

__all__ = ["DIALECT", "item_of"]

_TOOL_ITEM: Final = re.compile(
    r"(function|custom_tool|mcp|computer|local_shell|shell|apply_patch|web_search|file_search"
    r"|code_interpreter|image_generation|tool_search)_call(_output)?"
)
# The lines of a Codex session, of which one kind holds items.
_CODEX_ITEM: Final = "response_item"
_CODEX_LINES: Final = (_CODEX_ITEM, "session_meta", "turn_context", "event_msg", "compacted")
_OVER: Final = ("completed", "failed", "incomplete")


def item_of(message: Json) -> Json:
    """Give the item in a line of a Codex session, with its time; another item as it is."""
    payload = message.get("payload")
    if message.get("type") == _CODEX_ITEM and isinstance(payload, dict):
        return {**payload, "timestamp": message.get("timestamp")}
    return message


def _sign(message: Json) -> str:
    kind = message.get("type")
    if not isinstance(kind, str) or "role" in message:
        return ""
    codex = kind in _CODEX_LINES and isinstance(message.get("payload"), dict)
    said = kind in ("message", "reasoning") and ("content" in message or "summary" in message)
    return f'"type": "{kind}"' if codex or said or _TOOL_ITEM.fullmatch(kind) else ""


def _entries(message: Json, index: int) -> Iterator[Call | Outcome]:
    item = item_of(message)
    kind = item.get("type")
    found = _TOOL_ITEM.fullmatch(kind) if isinstance(kind, str) else None
    if found is None:
        return
    if found[2]:
        text = result_text(item.get("output"))
        failed = item.get("status") == "failed" or text.startswith(ERROR_PREFIX)
        yield Outcome(name_of(item.get("call_id")), text, failed, at=message_time(item))
        return
    call = call_of(item, item, identity=f"{index}", turn=None)
    server = name_of(item.get("server_label"))
    call.tool = name_of(item.get("name")) or found[1]
    call.tool = f"{server}/{call.tool}" if server else call.tool
    call.arguments = item.get("action", item.get("operation", call.arguments))
    yield call
    error, output, status = item.get("error"), item.get("output"), item.get("status")
    is_over = error is not None or output is not None or status in _OVER
    if is_over and "call_id" not in item:
        text = result_text(output if error is None else error)
        failed = error is not None or status == "failed"
        yield Outcome(call.call_id, text, failed, at=message_time(item))


DIALECT: Final = Dialect(
    name="openai-responses",
    title="OpenAI Responses items",
    failure='an `error`, or `"status": "failed"`, of the item; or an output that starts with'
    " `Error`",
    members=("type", "call_id", "output"),
    sign=_sign,
    entries=_entries,
)
