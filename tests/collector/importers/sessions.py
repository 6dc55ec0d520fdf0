"""Builds session files of Claude Code line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def call(number: int, name: str = "Read", **rest: Any) -> dict[str, Any]:
    """Give an assistant line with one tool_use; ``message_id`` names its turn."""
    message = {
        "role": "assistant",
        "model": rest.pop("model", "claude-x"),
        "id": rest.pop("message_id", f"msg_{number}"),
        "content": [
            {
                "type": "tool_use",
                "id": f"toolu_{number}",
                "name": name,
                "input": rest.pop("input", {"path": "a"}),
            }
        ],
    }
    return _line("assistant", number, message, rest)


def answer(number: int, text: Any = "x", *, failed: bool = False, **rest: Any) -> dict[str, Any]:
    """Give a user line with the result of call *number*."""
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": f"toolu_{number}",
        "content": text,
    }
    if failed:
        block["is_error"] = True
    return _line("user", number + 0.5, {"role": "user", "content": [block]}, rest)


def _line(kind: str, second: float, message: Any, rest: dict[str, Any]) -> dict[str, Any]:
    line = {
        "type": kind,
        "uuid": f"{kind}-{second}",
        "sessionId": "11111111-2222-3333-4444-555555555555",
        "timestamp": f"2025-03-01T09:{int(second) // 60:02}:{second % 60:06.3f}Z",
        "version": "2.0.42",
        "message": message,
    }
    return {**line, **rest}


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    """Write the lines to *path*."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
