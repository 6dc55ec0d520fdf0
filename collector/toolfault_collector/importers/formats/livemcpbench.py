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
from collections.abc import Iterator
from typing import Final

from toolfault_collector.importers.formats import openai
from toolfault_collector.importers.items import Call, Dialect, Json, Outcome
from toolfault_collector.importers.members import text_of

__all__ = ["DIALECT"]

_TIMED_OUT: Final = "Tool call timed out."
_WIRE_TOOL: Final = "execute-tool"
_REPR: Final = "meta=None content=["
# The first text block of the repr; its literal is closed unless the result was cut.
_BLOCK: Final = re.compile(
    r"""TextContent\(type='text', text=('[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")""",
    re.DOTALL,
)
_INNER_FLAG: Final = re.compile(r'\\{0,3}"isError\\{0,3}": ?true')


def _sign(message: Json) -> str:
    content = message.get("content")
    is_repr = message.get("role") == "tool" and isinstance(content, str)
    return f'"{_REPR}..."' if is_repr and str(content).startswith(_REPR) else ""


def _entries(message: Json, index: int) -> Iterator[Call | Outcome]:
    """Yield the calls under their resolved names, and the results by the rule of this format."""
    for entry in openai.entries(message, index):
        if isinstance(entry, Outcome):
            _judge(entry, text_of(message.get("content")))
        elif entry.tool == _WIRE_TOOL:
            _resolve(entry)
        yield entry


def _resolve(call: Call) -> None:
    """Name the tool that the wire tool was asked for, where the arguments do."""
    wire = _json_object(call.arguments)
    server, tool = wire.get("server_name"), wire.get("tool_name")
    if isinstance(server, str) and isinstance(tool, str):
        call.tool, call.arguments = f"{server}/{tool}", wire.get("params")


def _judge(outcome: Outcome, content: str) -> None:
    """Find the text within the content of a result, and whether it is a failure."""
    outcome.text = _block_text(content)
    inner = _json_object(outcome.text)
    if "isError" in inner:
        flagged = inner["isError"] is True
        outcome.text = text_of(inner.get("content")) or outcome.text
    else:
        flagged = content.strip() == _TIMED_OUT or bool(_INNER_FLAG.search(content))
    outcome.failed = flagged or content.rstrip().endswith("isError=True")


def _block_text(content: str) -> str:
    """Give the text of the first block, or the whole content where it is no repr."""
    match = _BLOCK.search(content)
    try:
        return str(ast.literal_eval(match.group(1))) if match else content
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return content


def _json_object(text: object) -> Json:
    """Give the object that *text* is, or an empty one."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


DIALECT: Final = Dialect(
    name="livemcpbench",
    title="LiveMCPBench result files",
    failure='the outer `isError=True`, `"isError": true` in the JSON within, or the text'
    " `Tool call timed out.`",
    members=("task_id", "messages", "tool_call_id"),
    sign=_sign,
    entries=_entries,
)
