"""Synthetic transcripts: parallel turns with mixed outcomes, copies, missing results."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

TOOLS = ("read", "write", "search")
START = datetime(2025, 3, 1, 9, tzinfo=UTC)

outcomes = st.sampled_from(("ok", "ok", "ok", "failed", "failed", "missing"))
calls = st.tuples(st.sampled_from(TOOLS), outcomes)
turns = st.lists(calls, min_size=1, max_size=4)
conversations = st.lists(turns, max_size=12)


@st.composite
def openai_messages(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw chat messages; ids repeat between turns, as they do in real files."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "policy"}]
    for turn in draw(conversations):
        ids = draw(
            st.lists(
                st.sampled_from([f"call_{n}" for n in range(8)]),
                min_size=len(turn),
                max_size=len(turn),
                unique=True,
            )
        )
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": call_id,
                        "type": "function",
                        "function": {"name": tool, "arguments": json.dumps({"n": call_id})},
                    }
                    for call_id, (tool, _) in zip(ids, turn, strict=True)
                ],
            }
        )
        answers = [
            {
                "role": "tool",
                "tool_call_id": call_id,
                "name": tool,
                "content": draw(_failure_text if outcome == "failed" else _success_text),
            }
            for call_id, (tool, outcome) in zip(ids, turn, strict=True)
            if outcome != "missing"
        ]
        messages.extend(draw(st.permutations(answers)))
        if draw(st.booleans()):
            messages.append({"role": "user", "content": "go on"})
    return messages


_failure_text = st.sampled_from(("Error: user not found", "Error", "Error: Errors", "Errorneous"))
_success_text = st.sampled_from(("", "12.5", "error: lower case", " Error", '{"error": "soft"}'))


@st.composite
def claude_code_lines(draw: st.DrawFn) -> list[str]:
    """Draw the lines of a session file: one block per line, copies, lines that are no messages."""
    lines: list[dict[str, Any] | str] = []
    at = START
    number = 0
    for index, turn in enumerate(draw(conversations)):
        issued, answers = [], []
        for tool, outcome in turn:
            number += 1
            at += timedelta(milliseconds=draw(st.integers(0, 50)))
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {"n": 1}}
            issued.append(_line("assistant", at, [block], message={"id": f"msg_{index}"}))
            if outcome != "missing":
                result: dict[str, Any] = {
                    "type": "tool_result",
                    "tool_use_id": f"toolu_{number}",
                    "content": "x",
                }
                if outcome == "failed":
                    result["is_error"] = True
                elif draw(st.booleans()):
                    result["is_error"] = False
                answers.append(result)
        for result in draw(st.permutations(answers)):
            at += timedelta(milliseconds=draw(st.integers(1, 500)))
            place = draw(st.integers(0, 3))
            answer = _line("user", at, [result], toolUseResult="Error: x")
            # Tools start while the message still streams, so results stand between its blocks.
            issued.insert(len(issued) - min(place, len(issued) - 1), answer)
        lines.extend(issued)
        if draw(st.booleans()):
            lines.append(draw(st.sampled_from(_NOISE)))
        if draw(st.booleans()) and lines:
            lines.append(lines[draw(st.integers(0, len(lines) - 1))])  # a copy
    return [line if isinstance(line, str) else json.dumps(line) for line in lines]


_NOISE: tuple[Any, ...] = (
    {"type": "summary", "summary": "s", "leafUuid": "u"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    {"type": "system", "subtype": "info", "content": "c", "sessionId": "session-1"},
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "session-1"},
    {"type": "user", "sessionId": "session-1", "message": {"role": "user", "content": "hello"}},
    "",
)


def _line(
    kind: str, at: datetime, blocks: list[Any], *, message: Any = None, **rest: Any
) -> dict[str, Any]:
    return {
        "type": kind,
        "sessionId": "session-1",
        "uuid": f"{kind}-{at.timestamp()}",
        "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "message": {"role": kind, "content": blocks, **(message or {})},
        **rest,
    }


def write_runs(path: Path, runs: list[list[dict[str, Any]]]) -> Path:
    """Write chats as a τ-bench result file."""
    wrapped = [
        {"task_id": number // 4, "trial": number % 4, "reward": 0.0, "traj": messages}
        for number, messages in enumerate(runs)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(wrapped), encoding="utf-8")
    return path


def write_lines(path: Path, lines: list[str]) -> Path:
    """Write the lines of a session file."""
    path.write_text("\n".join(lines), encoding="utf-8")
    return path
