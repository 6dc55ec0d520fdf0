"""The history of a shop: conversations whose tools fail, as a sender would report them.

Everything is drawn from one seed. Failures come in chains, most of which recover; successes outside
of chains are folded into counters of a minute, as the SDK does it.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from toolfault_collector.clock import MINUTE_US, SECOND_US, format_time

__all__ = ["TOOLS", "conversations"]

TOOLS: Final = tuple(f"tool_{number:02d}" for number in range(40))
_WEIGHTS: Final = tuple(1 / (rank + 2) for rank in range(len(TOOLS)))
_CODES: Final = {
    "wrong_type": ("parameter", 30),
    "missing_field": ("parameter", 22),
    "invalid_choice": ("parameter", 12),
    "invalid_format": ("parameter", 9),
    "unknown_field": ("parameter", 6),
    "not_found": ("parameter", 6),
    "timeout": ("internal", 6),
    "upstream_error": ("internal", 3),
    "rate_limited": ("internal", 2),
    "not_available": ("availability", 2),
    "permission_denied": ("availability", 1),
    "internal_error": ("internal", 1),
}
_AUDIENCES: Final = {"parameter": "llm", "internal": "system", "availability": "llm"}
_MODELS: Final = ("claude-x", "claude-y", "gpt-5", "gemini-3", "qwen-4")
_AGENTS: Final = ("travel-bot", "code-bot", "office-bot")
_ENVIRONMENTS: Final = ("prod", "prod", "prod", "staging")
_TYPES: Final = ("integer", "boolean", "array", "date", "string")
_REMEDIES: Final = ("int_from_string", "bool_from_string", "wrap_in_list", "strip", "alias")
_FIELDS: Final = 12  # arguments of a tool
_FOLDED: Final = 18  # successes of a conversation that are only counted


class _Sender:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.events = 0

    def event_id(self) -> str:
        # The first four digits are the copy's (see `fill`); ids stay in the order of time.
        self.events += 1
        rest = self.random.getrandbits(76)
        return str(uuid.UUID(int=self.events << 80 | 7 << 76 | rest | 2 << 62))

    def pick(self, values: Any) -> Any:
        return values[int(self.random.random() * len(values))]

    def tool(self) -> str:
        return self.random.choices(TOOLS, _WEIGHTS)[0]

    def code(self) -> str:
        return self.random.choices(list(_CODES), [weight for _, weight in _CODES.values()])[0]

    def conversation(self, number: int, begin: int) -> list[dict[str, Any]]:
        """One conversation with at least one failure; it begins at *begin* (microseconds)."""
        same = {
            "session_id": f"0000-conv-{number:08x}",
            "agent": self.pick(_AGENTS),
            "model": self.pick(_MODELS),
            "release": self.pick(("1.4.0", "1.4.1")),
            "environment": self.pick(_ENVIRONMENTS),
            "variant": self.pick((None, None, "wording=control", "wording=treatment")),
        }
        found: list[dict[str, Any]] = []
        calls: Counter[str] = Counter()
        at, seq = begin, 0
        for _ in range(1 + int(self.random.random() * 3)):
            for tool, failed in self._chain():
                at += int((0.5 + self.random.random() * 20) * SECOND_US)
                seq += 1
                calls[tool] += 1
                found.append(self._call(same, tool, at, seq=seq, failed=failed))
        for _ in range(_FOLDED):
            calls[self.tool()] += 1
        if self.random.random() < 0.95:
            end = format_time(at + SECOND_US)
            found.append(self._event("conversation_end", end, session_id=same["session_id"])
                         | {"calls": dict(calls)})  # fmt: skip
        minute = begin // MINUTE_US * MINUTE_US
        reported = Counter(each["tool"] for each in found if "tool" in each)
        found += self._counters(same, minute, calls, reported)
        return found

    def _event(self, kind: str, at: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "event_id": self.event_id(), "occurred_at": at, **more}

    def _chain(self) -> Iterator[tuple[str, bool]]:
        """Yield the calls of one chain: tool, and whether it failed."""
        tool = self.tool()
        yield tool, True
        while self.random.random() < 0.35:
            yield tool, True
        ended = self.random.random()
        if ended < 0.7:
            yield tool, False
        elif ended < 0.85:
            yield self.tool(), False

    def _call(
        self, same: dict[str, Any], tool: str, at: int, *, seq: int, failed: bool
    ) -> dict[str, Any]:
        call = self._event("tool_call", format_time(at), **same) | {
            "seq": seq,
            "turn": f"t{seq}",
            "call_id": f"call_{self.random.getrandbits(48):012x}",
            "tool": tool,
            "success": not failed,
            "duration_ms": round(self.random.expovariate(1 / 300), 1),
            "args_fingerprint": f"{self.random.getrandbits(64):016x}",
            "tokens": 80 + int(self.random.random() * 400),
        }
        return call | {"error": self._error(tool)} if failed else call

    def _error(self, tool: str) -> dict[str, Any]:
        code = self.code()
        category = _CODES[code][0]
        issues: list[dict[str, Any]] = []
        if category == "parameter" and code != "not_found":
            issues = [self._issue(code) for _ in range(1 + (self.random.random() < 0.25))]
        text = f"{tool}: {code.replace('_', ' ')}"
        if issues:
            first = issues[0]
            text = (
                f"Invalid arguments: {first['field']} must be {first['expected']}, got"
                f" {first['received']}. Call {tool} again with it corrected."
            )
        error: dict[str, Any] = {
            "code": code,
            "category": category,
            "audience": _AUDIENCES[category],
            "phase": "validation" if issues else "handler",
            "retryable": True,
            "issues": issues,
            "issues_total": len(issues),
            "renderings": {
                "user": f"{tool} could not be used.",
                "llm": text,
                "system": f"tool={tool} code={code} request={self.random.getrandbits(32):08x}",
            },
        }
        if issues:
            error["field"] = issues[0]["field"]
        if category == "internal":
            error["exception"] = {"type": "TimeoutError", "message": "no answer in 30 s"}
        return error

    def _issue(self, code: str) -> dict[str, Any]:
        number = int(self.random.random() ** 2 * _FIELDS)
        field = f"items.{int(self.random.random() * 5)}.name" if number == 3 else f"field_{number}"
        return {
            "field": field,
            "code": code,
            "type": f"{code}_type",
            "message": "Input should be valid",
            "expected": self.pick(_TYPES),
            "received": f"'{self.random.getrandbits(16)}'",
            "received_type": "str",
            "near_miss": [self.pick(_REMEDIES)] if self.random.random() < 0.4 else [],
        }

    def _counters(
        self, same: dict[str, Any], minute: int, calls: Counter[str], reported: Counter[str]
    ) -> Iterator[dict[str, Any]]:
        folded = calls - reported
        shared = {name: same[name] for name in ("agent", "model", "release", "environment")}
        shared |= {"variant": same["variant"], "minute": format_time(minute)}
        at = format_time(minute + MINUTE_US)
        # Most minutes hold several conversations; one row for two tools stands for that.
        tools = sorted(folded)[:: max(1, len(folded) // 3)]
        for tool in tools:
            number = max(1, folded.total() // len(tools))
            yield self._event("tool_call_counts", at, tool=tool, calls=number, **shared) | {
                "conversations": 1,
                "calls_squared": number * number,
                "duration_ms": {"sum": 90.0 * number, "max": 400.0, "buckets": [[500, number]]},
            }
        total = calls.total()
        yield self._event("tool_call_counts", at, tool=None, calls=0, **shared) | {
            "conversations": 1,
            "calls_squared": total * total,
        }


def conversations(failures: int, *, begin: int, end: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the events of a history with about *failures* failures, oldest conversation first.

    Args:
        failures: Failures wanted; the last conversation may add a few.
        begin: Microseconds since the epoch at which the first conversation may begin.
        end: When the last one may begin.
        seed: Same seed, same history.
    """
    sender = _Sender(seed)
    # Some three failures to a conversation.
    expected = failures / 3.08
    sent = number = 0
    while sent < failures:
        at = begin + int(min(number / expected, 1.0) * (end - begin))
        events = sender.conversation(number, at)
        sent += sum(each.get("success") is False for each in events)
        number += 1
        yield from events
