"""Claude Code session files: one JSON object per line, one file is one conversation.

Failure rule: ``is_error: true`` on the ``tool_result``. A turn is one ``message.id``; its parallel
blocks stand on several lines. The result's second copy (``toolUseResult``) is only asked whether
the user interrupted. Sub-agents of newer versions have a file of their own with the session id of
their parent and are conversations of their own; those of older versions stand as ``isSidechain``
lines in the file of the session and belong to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from toolfault_collector.importers.assembly import Assembly
from toolfault_collector.importers.files import Source
from toolfault_collector.importers.formats import anthropic
from toolfault_collector.importers.items import Call, Conversation, Format, Json, Outcome
from toolfault_collector.importers.members import name_of, objects_of, read_time, text_of

__all__ = ["FORMAT"]

NAME: Final = "claude-code"
_OWN_KEYS: Final = ("sessionId", "leafUuid")
_SESSION_KEYS: Final = (*_OWN_KEYS, "session_id")
_STREAMED: Final = ("system", "user", "assistant", "result")
# Lines without a session id that no other log has; a resumed session may begin with many.
_OWN_LINES: Final = ("file-history-snapshot",)
_INTERRUPTED: Final = "[Request interrupted by user"


def _detect(line: object) -> tuple[str, str] | None:
    if not isinstance(line, dict) or not isinstance(line.get("type"), str):
        return None
    if line["type"] in _OWN_LINES:
        return f'"type": "{line["type"]}"', ""
    # Snake case is that of the stream-json form, which other logs have too.
    keys = _SESSION_KEYS if line["type"] in _STREAMED else _OWN_KEYS
    key = next((key for key in keys if isinstance(line.get(key), str)), None)
    return (f'"type" and "{key}"', "") if key else None


def _read(source: Source) -> Iterator[Conversation]:
    """Yield the one conversation of the file."""
    session: _Session | None = None
    for read in source.values():
        line = read.value
        if not isinstance(line, dict):
            source.mismatch(read.position, "not a JSON object; skipped")
            continue
        message = line.get("message")
        if isinstance(message, dict) and line.get("type") in ("user", "assistant"):
            session = session or _Session(line, message)
            session.add(line, message, read.position)
    if session is None:
        source.report("", "a session file without any message; nothing to import", "note")
        return
    if session.calls.orphans:
        message = f"{session.calls.orphans} results without their call: begins mid-way"
        source.report("", message, "note")
    yield session.conversation()


class _Session:
    """What is known of the session while its lines go by."""

    def __init__(self, line: Json, message: Json) -> None:
        self._first = _digest(line.get("uuid"), line.get("timestamp"), message)
        self._agent_id = name_of(line.get("agentId"))
        self._session_id = ""
        self._seen: set[str] = set()
        self._turns: set[str] = set()
        self._first_call = ""
        self._last_at: int | None = None
        self.calls = Assembly(key=self._first, early_results=True)

    def add(self, line: Json, message: Json, position: str) -> None:
        """Take in one line that carries a message."""
        session_id = name_of(line.get("sessionId")) or name_of(line.get("session_id"))
        self._session_id = session_id or self._session_id
        # A line without a time of its own happened after the one before it.
        self._last_at = read_time(line.get("timestamp")) or self._last_at
        line_id = name_of(line.get("uuid")) or position
        turn = name_of(message.get("id")) or name_of(line.get("requestId")) or line_id
        if line["type"] == "assistant" and turn not in self._turns:
            self._turns.add(turn)
            if self._is_own(line):
                self.calls.next_turn()
        elif line["type"] == "user" and text_of(message.get("content")).startswith(_INTERRUPTED):
            self.calls.next_turn()  # what has no result so far never gets one
        for entry in anthropic.entries(message, line_id, line["type"]):
            if isinstance(entry, Outcome):
                self._complete_outcome(entry, line)
                self.calls.answer(entry)
            elif (entry.call_id or entry.identity) not in self._seen:
                self._complete_call(entry, line, message, turn)
                self._seen.add(entry.identity)
                self._first_call = self._first_call or entry.identity
                self.calls.issue(entry)

    def _is_own(self, line: Json) -> bool:
        """Tell the turns of the file's own agent from those of sub-agents, which it waits for."""
        agent_id = name_of(line.get("agentId"))
        return agent_id == self._agent_id and bool(agent_id or not _is_sidechain(line))

    def _complete_call(self, call: Call, line: Json, message: Json, turn: str) -> None:
        call.identity = call.call_id or call.identity
        call.turn = turn
        call.started_at = self._last_at
        call.model = None if call.model == "<synthetic>" else call.model
        call.release = name_of(line.get("version"))
        call.run_id = self._session_id or None
        call.tags = {"sidechain": "true"} if _is_sidechain(line) else {}
        if agent_id := name_of(line.get("agentId")):
            call.tags["agent_id"] = agent_id[:256]

    def _complete_outcome(self, outcome: Outcome, line: Json) -> None:
        outcome.at = self._last_at
        copy = line.get("toolUseResult", line.get("tool_use_result"))
        if isinstance(copy, dict) and copy.get("interrupted") is True:
            outcome.soft = "interrupted"
        # The metadata of the stream-json form tells that the user refused the call.
        for meta in objects_of(line.get("tool_result_meta")):
            if meta.get("id") == outcome.call_id:
                refused = meta.get("non_execution_kind") == "user-rejected"
                outcome.rule = "rejected_by_user" if refused else outcome.rule

    def conversation(self) -> Conversation:
        """Close the session."""
        calls, pending = self.calls.finish(grows=True)
        label = self._session_id or "session"
        return Conversation(
            format=NAME,
            key=_digest(
                NAME, self._session_id, self._agent_id, self._first.hex(), self._first_call
            ),
            label=f"{label}/{self._agent_id}" if self._agent_id else label,
            position="",
            calls=calls,
            agent=NAME,
            provider="anthropic",
            pending=pending,
        )


def _is_sidechain(line: Json) -> bool:
    """Tell the lines of a sub-agent; those of the stream-json form name the call it works for."""
    return line.get("isSidechain") is True or name_of(line.get("parent_tool_use_id")) is not None


def _digest(*parts: object) -> bytes:
    try:
        text = json.dumps(parts, sort_keys=True, default=str)
    except RecursionError:
        text = repr([part for part in parts if isinstance(part, str)])
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).digest()


FORMAT: Final = Format(
    NAME,
    "Claude Code session files",
    '`"is_error": true` on the `tool_result` block',
    ("sessionId", "type", "message"),
    _detect,
    _read,
)
