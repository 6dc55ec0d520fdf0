"""LiveMCPBench result files: OpenAI-style messages whose tools are reached through two wire tools.

``execute-tool{server_name, tool_name, params}`` stands for the tool ``server/tool``; its result is
the Python ``repr`` of an MCP ``CallToolResult``, cut at 10,000 characters. Failure rule: the outer
repr ends ``isError=True``, or the proxied server's own JSON inside the text has
``"isError": true``, or the content is exactly ``Tool call timed out.``.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from toolfault_collector.importers._assembly import Issued, Outcome
from toolfault_collector.importers._shapes import Entry, openai_entries
from toolfault_collector.importers._text import text_of

__all__ = ["NAME", "is_livemcpbench", "livemcpbench_entries"]

NAME: Final = "livemcpbench"
TIMED_OUT: Final = "Tool call timed out."
WIRE_TOOL: Final = "execute-tool"
_REPR: Final = "meta=None content=["
# The first text block of the repr; its literal is closed unless the result was cut.
_BLOCK: Final = re.compile(
    r"""TextContent\(type='text', text=('[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")""",
    re.DOTALL,
)
_INNER_FLAG: Final = re.compile(r'\\{0,3}"isError\\{0,3}": ?true')


def is_livemcpbench(messages: list[object]) -> bool:
    """Tell such a conversation by the repr that its tool messages begin with."""
    return any(
        isinstance(message, dict)
        and message.get("role") == "tool"
        and isinstance(message.get("content"), str)
        and message["content"].startswith(_REPR)
        for message in messages
    )


def livemcpbench_entries(message: Mapping[str, object], index: int) -> Iterator[Entry]:
    """Yield the calls under their resolved names, and the results by the rule of this format."""
    for entry in openai_entries(message, index):
        if isinstance(entry, Issued):
            yield _resolved(entry)
        else:
            yield _outcome(entry, text_of(message.get("content")))


def _resolved(issued: Issued) -> Issued:
    if issued.tool != WIRE_TOOL or not isinstance(issued.arguments, str):
        return issued
    try:
        wire = json.loads(issued.arguments)
    except (ValueError, RecursionError):
        return issued
    if not isinstance(wire, dict):
        return issued
    server, tool = wire.get("server_name"), wire.get("tool_name")
    if not isinstance(server, str) or not isinstance(tool, str):
        return issued
    return replace(issued, tool=f"{server}/{tool}", arguments=wire.get("params"))


def _outcome(entry: Outcome, content: str) -> Outcome:
    if content.strip() == TIMED_OUT:
        return replace(entry, text=content, failed=True)
    text = _block_text(content)
    inner = _inner_result(text)
    flagged = _is_flagged(inner) if inner is not None else bool(_INNER_FLAG.search(content))
    failed = content.rstrip().endswith("isError=True") or flagged
    return replace(entry, text=_inner_text(inner) or text, failed=failed)


def _block_text(content: str) -> str:
    """Give the text of the first block, or the whole content where it is no repr."""
    match = _BLOCK.search(content)
    if match is None:
        return content
    try:
        return str(ast.literal_eval(match.group(1)))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return content


def _inner_result(text: str) -> Mapping[str, object] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "isError" in value else None


def _is_flagged(inner: Mapping[str, object]) -> bool:
    return inner.get("isError") is True


def _inner_text(inner: Mapping[str, object] | None) -> str:
    return text_of(inner.get("content")) if inner is not None else ""
