"""Cases A21 and A25: the forms a result takes outside."""

from __future__ import annotations

import json
from typing import Any

from tests.sdk.acceptance.expecting import Expect

from toolfault import ToolManager, ToolRegistry, tool


async def test_reserved_keys_win_on_success(expect: Expect) -> None:
    """[A21][K-02][K-04] A tool's own ``success`` and ``error`` move under ``data``."""

    @tool(echo="keyword")
    def search(keyword: str) -> dict[str, Any]:
        return {"results": [1], "success": "yes", "error": "ignored?"}

    result = await ToolManager([search]).call_tool("search", {"keyword": "k"})

    expect("A21", result)
    assert type(result.to_dict()["success"]) is bool


async def test_messages_for_providers(expect: Expect) -> None:
    """[A25][P-08][P-16][W-08][W-13][C11] One payload per provider, one prefix, one call id."""

    @tool
    def calculator(expression: str) -> str:
        return expression

    result = await ToolManager(ToolRegistry([calculator])).call_tool("calculator", {})

    expect("A25", result)
    message = result.to_tool_message("call_1")
    assert set(message) == {"role", "tool_call_id", "content"}
    assert (message["role"], message["tool_call_id"]) == ("tool", "call_1")
    assert result.error is not None
    assert json.loads(str(message["content"])) == result.error.to_llm_payload()
    said = "Error: Missing required parameter: expression"
    assert result.to_anthropic("call_1") == {
        "type": "tool_result",
        "tool_use_id": "call_1",
        "content": said,
        "is_error": True,
    }
    assert result.to_mcp() == {"content": [{"type": "text", "text": said}], "isError": True}
    assert result.to_openai_text() == said
