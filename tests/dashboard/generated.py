"""A generated history with everything that can be stored, for recounts.

It is made of events that a sender could send, stored through the collector, never of rows.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Engine, func, select

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US, format_time, parse_time
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import signature, tool_call
from toolfault_dashboard.writes.kind_states import Decision, decide

__all__ = ["NOW", "events", "fill", "sampled"]

NOW: Final = parse_time("2026-11-20T12:00:00Z")

TOOLS: Final = ("http_request", "search", "book flight", "send_mail", "täglich", "a*b")
MODELS: Final = ("claude-x", "claude-y", "gpt-5", None)
CODES: Final = {
    "wrong_type": "parameter",
    "missing_field": "parameter",
    "not_found": "parameter",
    "timeout": "internal",
    "not_available": "availability",
}
FIELDS: Final = ("port", "url", "items.0.name", "items.12.port", "50%_off", "")
REMEDIES: Final = ("bool_from_string", "int_from_string", "alias")
TEXTS: Final = (
    "Error: port must be an integer, got '80'",
    "Error: 100% of _all_ [a-z]* files failed?",
    'He said "no" \\ and left',
    "Fehler: ÄÖÜ überall",
    "ERROR: Flight HAT030 not available on date 2024-05-13",
    "=cmd|' /C calc'!A0",
)


class _Sender:
    """Makes events in a fixed order from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seq = 0

    def pick(self, values: Any) -> Any:
        return self.random.choice(list(values))

    def event_id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def call(self, **given: Any) -> dict[str, Any]:
        self.seq += 1
        # By number and not drawn, so that all that is drawn stays what it was.
        phantoms = {1: ["pet"], 4: ["pet", "who.*.title"]}.get(self.seq % 9)
        marks = {0: {"idempotent": False, "repeated": True}, 2: {"idempotent": False}}
        return {
            "type": "tool_call",
            "event_id": self.event_id(),
            "seq": self.seq,
            "tool": self.pick(TOOLS),
            "success": True,
            **({"phantom_arguments": phantoms} if phantoms else {}),
            **(marks | {4: {"idempotent": True}}).get(self.seq % 7, {}),
            **given,
        }

    def error(self) -> dict[str, Any]:
        code = self.pick(CODES)
        issues = (
            [self.issue() for _ in range(self.random.randrange(4))] if code != "timeout" else []
        )
        return {
            "code": code,
            "category": CODES[code],
            "audience": self.pick(("user", "llm", "system")),
            "reason": self.pick((None, "paused")),
            "phase": self.pick((None, "validation", "handler")),
            "issues": issues,
            "renderings": {
                "user": "It did not work.",
                "llm": self.pick(TEXTS),
                "system": "secret of the system",
            },
            "exception": self.pick((None, {"type": "TimeoutError", "message": "late"})),
        }

    def issue(self) -> dict[str, Any]:
        return {
            "field": self.pick(FIELDS),
            "code": self.pick(("wrong_type", "missing_field", "out_of_range")),
            "message": "bad",
            "expected": "integer",
            "received": "'80'",
            "near_miss": self.random.sample(REMEDIES, self.random.randrange(3)),
        }

    def conversation(self, number: int, *, ended: bool) -> list[dict[str, Any]]:
        at = NOW - self.random.randrange(30 * DAY_US)
        same = {
            "session_id": f"conv-{number}",
            "agent": self.pick(("travel-bot", "code-bot", None)),
            "model": self.pick(MODELS),
            "release": self.pick(("1.3.0", "1.4.0", None)),
            "environment": self.pick(("prod", "test", None)),
            "variant": self.pick(("control", "treatment", "a=1,b=2", "a=1", "aa=1,b=3", None)),
        }
        found: list[dict[str, Any]] = []
        for index in range(self.random.randrange(1, 12)):
            at += self.random.randrange(1, 90) * SECOND_US
            failed = self.random.random() < 0.4
            call = self.call(
                **same,
                **SEEN[number % len(SEEN)],
                occurred_at=format_time(min(at, NOW)),
                turn=f"t{index // 2}" if number % 5 == 0 else None,
                duration_ms=self.pick((None, 12.5, 500, 730.25)),
                user=self.pick((None, "u-7")),
                tags=self.pick((None, {"team": "blue"}, {"team": "red", "x.y": "1"})),
                args_fingerprint=self.pick(("aa", "bb", None)),
                tokens=self.pick((None, 120)),
            )
            if failed:
                call |= {"success": False, "error": self.error()}
            found.append(call)
        if ended:
            calls: dict[str, int] = {}
            for call in found:
                calls[call["tool"]] = calls.get(call["tool"], 0) + 1
            found.append(
                {
                    "type": "conversation_end",
                    "event_id": self.event_id(),
                    "occurred_at": format_time(min(at + SECOND_US, NOW)),
                    "session_id": same["session_id"],
                    "calls": calls,
                }
            )
        return found

    def outside(self) -> dict[str, Any]:
        return self.call(
            type=self.pick(("tool_call", "tool_error")),
            success=False,
            error=self.error(),
            occurred_at=format_time(NOW - self.random.randrange(20 * DAY_US)),
            model=self.pick(MODELS),
        )

    def counts(self) -> list[dict[str, Any]]:
        minute = (NOW - self.random.randrange(30 * DAY_US)) // MINUTE_US * MINUTE_US
        same = {
            "type": "tool_call_counts",
            "occurred_at": format_time(minute + MINUTE_US),
            "minute": format_time(minute),
            "model": self.pick(MODELS),
            "agent": "travel-bot",
            "release": self.pick(("1.3.0", "1.4.0")),
            "environment": "prod",
            "variant": None,
        }
        conversations = self.random.randrange(3)
        calls = self.random.randrange(1, 40)
        return [
            same
            | {
                "event_id": self.event_id(),
                "tool": self.pick(TOOLS),
                "calls": calls,
                "conversations": conversations,
                "calls_squared": calls * calls,
                "duration_ms": {"sum": 120.0, "max": 30.0, "buckets": [[50, calls]]},
                **({"phantom_arguments": {"pet": calls, "=x": 1}} if calls % 3 == 0 else {}),
                **({"repeated": calls // 5} if calls % 4 == 0 else {}),
            },
            same
            | {
                "event_id": self.event_id(),
                "tool": None,
                "calls": 0,
                "conversations": conversations,
                "calls_squared": calls * calls,
            },
        ]


# How senders saw the calls of a conversation, and what named it; in turns, so that chance stays
# what it was.
SEEN: tuple[dict[str, str], ...] = (
    {},
    {"framework": "langchain", "side": "agent", "conversation_rung": "framework"},
    {"framework": "mcp", "side": "server", "conversation_rung": "meta"},
    {"framework": "mcp", "side": "agent"},
    {"conversation_rung": "trace"},
)


def events(seed: int = 7, conversations: int = 220) -> list[dict[str, Any]]:
    """Return the events of one project, in the order in which a sender would send them."""
    sender = _Sender(seed)
    found: list[dict[str, Any]] = []
    for number in range(conversations):
        found += sender.conversation(number, ended=number % 3 != 0)
    found += [sender.outside() for _ in range(25)]
    for _ in range(40):
        found += sender.counts()
    found += [
        {
            "type": "change",
            "event_id": sender.event_id(),
            "occurred_at": format_time(NOW - 10 * DAY_US),
            "label": "coerce booleans",
            "tool": tool,
            "kind": "manual",
        }
        for tool in ("http_request", None)
    ]
    return found


def _untimed(seed: int) -> list[dict[str, Any]]:
    sender = _Sender(seed)
    found = []
    for number in range(20):
        for event in sender.conversation(1_000 + number, ended=False):
            found.append(
                event
                | {
                    "session_id": f"file-{number}",
                    "occurred_at": format_time(NOW),
                    "time_source": "none",
                    "detection": sender.pick(("explicit", "soft:error_text")),
                }
            )
    return found


def sampled(seed: int, *, rates: Sequence[float] = (1.0, 0.5, 0.1, 0.3)) -> list[dict[str, Any]]:
    """Return the events of senders that send a part of their conversations, at several *rates*."""
    drawn = random.Random(seed)
    known: dict[tuple[Any, bool], float] = {}
    found = events(seed)
    for event in found:
        if event["type"] in {"tool_call", "tool_error"}:
            unit = event.get("session_id", event["event_id"])
            key = (unit, event["success"])
            event["sample_rate"] = known.setdefault(key, drawn.choice(rates))
    return found


PROJECTS: Final = {"generated": 7, "other": 11, "timed": 13, "sampled": 17}
"""The projects of the generated history, and the seed of each."""


def fill(engine: Engine, projects: Mapping[str, int] = PROJECTS) -> None:
    """Store the generated history, and another project that no answer may show."""
    shuffled = random.Random(3)
    for project, seed in projects.items():
        sent = sampled(seed) if project == "sampled" else events(seed)
        shuffled.shuffle(sent)
        with write_transaction(engine) as conn:
            project_id = ensure_project(conn, project)
            for start in range(0, len(sent), 97):
                receipt = store_events(
                    conn,
                    project_id,
                    sent[start : start + 97],
                    received_at=NOW,
                    time_policy="import",
                )
                assert not receipt.rejected, receipt.rejected
            if project in {"timed", "sampled"}:
                continue  # its rollups hold everything
            untimed = _untimed(seed + 1)
            receipt = store_events(conn, project_id, untimed, received_at=NOW, time_policy="import")
            assert not receipt.rejected, receipt.rejected
        _decide(engine, project_id)


def _decide(engine: Engine, project_id: int) -> None:
    """Give three kinds a state of their own: one has an owner, one is fixed, one came back."""
    with read_connection(engine) as conn:
        found = conn.execute(
            select(signature.c.fingerprint, func.max(tool_call.c.occurred_at))
            .join(tool_call, tool_call.c.signature_id == signature.c.id)
            .where(tool_call.c.project_id == project_id, tool_call.c.time_source != "none")
            .group_by(signature.c.fingerprint)
            .order_by(func.count().desc(), signature.c.fingerprint)
        ).all()
    owned, (fixed, last_at), (back, back_at) = found[2][0], found[4], found[1]
    for kind, decision in (
        (owned, Decision(state="acknowledged", owner="ana", note="The makers know.")),
        (fixed, Decision(state="fixed", owner="bob", fixed_at=last_at)),
        (back, Decision(state="fixed", fixed_at=back_at - DAY_US, fixed_label="stricter schema")),
    ):
        decide(engine, project_id, [kind], decision, actor="ana", now=NOW)
