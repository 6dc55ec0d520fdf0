"""A second, naive count of transcripts: the rules of ``data/README.md`` written down literally.

It shares no code with the product and takes no care of memory, broken files or odd shapes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Attempt:
    """One call as a transcript tells it."""

    tool: str
    failed: bool | None  # None: the transcript holds no result
    turn: Any


@dataclass
class Count:
    """What is counted of a conversation."""

    calls: int = 0
    failed: int = 0
    no_result: int = 0
    chains: int = 0
    recovered: int = 0
    round_trips: int = 0
    tools: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, other: Count) -> None:
        """Add another count to this one."""
        for name in ("calls", "failed", "no_result", "chains", "recovered", "round_trips"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for tool, (calls, failed) in other.tools.items():
            before = self.tools.get(tool, (0, 0))
            self.tools[tool] = (before[0] + calls, before[1] + failed)


def count(attempts: list[Attempt], *, strict: bool = True) -> Count:
    """Count one conversation; *strict* is ``chains_strict_after_seeing_error``."""
    by_tool: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_tool[attempt.tool].append(attempt)
    result = Count(
        calls=len(attempts),
        failed=sum(attempt.failed is True for attempt in attempts),
        no_result=sum(attempt.failed is None for attempt in attempts),
        tools={
            tool: (len(of_tool), sum(attempt.failed is True for attempt in of_tool))
            for tool, of_tool in by_tool.items()
        },
    )
    for of_tool in by_tool.values():
        failed_turns: list[Any] | None = None  # turns of the run's failures; None outside a run
        for attempt in of_tool:
            if attempt.failed is None:
                continue
            if failed_turns is None:
                if attempt.failed:
                    result.chains += 1
                    failed_turns = [attempt.turn]
                continue
            unseen = strict and attempt.turn in failed_turns
            if attempt.failed:
                result.round_trips += not unseen
                failed_turns.append(attempt.turn)
            elif not unseen:
                result.round_trips += 1
                result.recovered += 1
                failed_turns = None
    return result


def decided(attempts: list[Attempt]) -> list[Attempt]:
    """Leave out what the last turn of a conversation that may go on still waits for."""
    return [each for each in attempts if each.failed is not None or each.turn != attempts[-1].turn]


def openai_attempts(messages: list[Any]) -> list[Attempt]:
    """Read OpenAI chat messages; a result answers the nearest call of its id before it."""
    attempts: list[Attempt] = []
    ids: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            for call in message.get("tool_calls") or []:
                attempts.append(Attempt(call["function"]["name"], None, index))
                ids.append(call["id"])
        elif message["role"] == "tool":
            open_places = [
                place
                for place, attempt in enumerate(attempts)
                if ids[place] == message["tool_call_id"] and attempt.failed is None
            ]
            if open_places:
                turn = attempts[open_places[-1]].turn
                place = next(p for p in open_places if attempts[p].turn == turn)
                attempts[place].failed = (message["content"] or "").startswith("Error")
    return attempts


def openai_conversations(path: Path) -> list[list[Attempt]]:
    """Read a file of the shape of ``tau_bench_airline`` and ``agentrx_tau_retail``."""
    return [openai_attempts(run["traj"]) for run in json.loads(path.read_text(encoding="utf-8"))]


def livemcpbench_conversations(path: Path) -> list[list[Attempt]]:
    """Read a file of the shape of ``livemcpbench``."""
    found = []
    for run in json.loads(path.read_text(encoding="utf-8")):
        attempts: dict[str, Attempt] = {}
        for index, message in enumerate(run["messages"]):
            for call in message.get("tool_calls") or []:
                name = call["function"]["name"]
                if name == "execute-tool":
                    wire = json.loads(call["function"]["arguments"])
                    name = f"{wire['server_name']}/{wire['tool_name']}"
                attempts[call["id"]] = Attempt(name, None, index)
            if message["role"] == "tool":
                content = message["content"]
                attempts[message["tool_call_id"]].failed = (
                    content.endswith("isError=True")
                    or '"isError": true' in content
                    or content == "Tool call timed out."
                )
        found.append(list(attempts.values()))
    return found


def claude_code_attempts(path: Path) -> list[Attempt]:
    """Read one session file: one file is one conversation."""
    calls: dict[str, Attempt] = {}
    results: dict[str, bool] = {}
    times: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        message: Any = record.get("message") if isinstance(record, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else []:
            if record["type"] == "assistant" and block.get("type") == "tool_use":
                if block["id"] not in calls:
                    calls[block["id"]] = Attempt(block["name"], None, message["id"])
                    times[block["id"]] = record["timestamp"]
            elif record["type"] == "user" and block.get("type") == "tool_result":
                results.setdefault(block["tool_use_id"], block.get("is_error") is True)
    for call_id, failed in results.items():
        if call_id in calls:
            calls[call_id].failed = failed
    return [calls[call_id] for call_id in sorted(calls, key=lambda call_id: times[call_id])]
