"""Claude Code session files: one JSON object per line, one file is one conversation.

Failure rule: ``is_error: true`` on the ``tool_result``. A turn is one ``message.id``; its parallel
blocks stand on several lines. The result's second copy (``toolUseResult``) is only asked whether
the user interrupted. Sub-agents of newer versions have a file of their own with the session id of
their parent and are conversations of their own; those of older versions stand as ``isSidechain``
lines in the file of the session and belong to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Final, TypeGuard

from toolfault_collector.clock import MINUTE_US
from toolfault_collector.importers._assembly import Assembly, Issued, Outcome
from toolfault_collector.importers._reading import Broken, Piece
from toolfault_collector.importers._source import Source
from toolfault_collector.importers._text import text_of
from toolfault_collector.importers._times import read_time
from toolfault_collector.importers._transcript import Conversation, Item

__all__ = ["NAME", "is_claude_code_line", "read_claude_code"]

NAME: Final = "claude-code"
# A session whose last line is younger may still be writing the results of its last calls.
LIVE_FOR: Final = 30 * MINUTE_US
_SESSION_KEYS: Final = ("sessionId", "session_id", "leafUuid")
_REJECTED: Final = "user-rejected"
_UNKNOWN_TOOL: Final = "unknown"

_Line = Mapping[str, object]


def is_claude_code_line(value: object) -> bool:
    """Tell a line of a session file from lines of other formats."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and any(isinstance(value.get(key), str) for key in _SESSION_KEYS)
    )


def read_claude_code(source: Source) -> Iterator[Item]:
    """Yield the problems of the file and its one conversation."""
    session: _Session | None = None
    for read in source.values():
        if isinstance(read, Broken):
            yield source.problem(read)
            continue
        line = read.value
        if not isinstance(line, dict):
            yield source.mismatch(read.position, "not a JSON object; skipped")
            continue
        message = line.get("message")
        if isinstance(message, dict) and line.get("type") in ("user", "assistant"):
            session = session or _Session(line, message)
            session.add(read, line, message)
    if session is None:
        yield source.note("", "a session file without any message; nothing to import")
        return
    if session.calls.orphans:
        yield source.note("", f"{session.calls.orphans} results without their call: begins mid-way")
    yield session.conversation(source.now)


class _Session:
    """What is known of the session while its lines go by."""

    def __init__(self, line: _Line, message: _Line) -> None:
        self._first = _digest(line.get("uuid"), line.get("timestamp"), message)
        self._agent_id = _string(line.get("agentId"))
        self._session_id = ""
        self._first_call = ""
        self._seen: set[str] = set()
        self._last_at: int | None = None
        self._timed = True
        self.calls = Assembly(key=self._first, early_results=True)

    def add(self, read: Piece, line: _Line, message: _Line) -> None:
        """Take in one line that carries a message."""
        session_id = _string(line.get("sessionId")) or _string(line.get("session_id"))
        self._session_id = session_id or self._session_id
        # A line without a time of its own happened after the one before it.
        at = read_time(line.get("timestamp")) or self._last_at
        self._last_at = at
        blocks = message.get("content")
        for place, block in enumerate(blocks if isinstance(blocks, list) else ()):
            if not isinstance(block, dict):
                continue
            if line["type"] == "assistant" and block.get("type") == "tool_use":
                identity = _string(block.get("id")) or f"{_line_id(read, line)}.{place}"
                if identity not in self._seen:
                    self._seen.add(identity)
                    self._first_call = self._first_call or identity
                    self._timed = self._timed and at is not None
                    self.calls.issue(self._issued(read, line, block, identity=identity))
            elif line["type"] == "user" and block.get("type") == "tool_result":
                self.calls.answer(_outcome(line, block, at))

    def _issued(self, read: Piece, line: _Line, block: _Line, *, identity: str) -> Issued:
        message = line["message"]
        assert isinstance(message, dict)
        model = _string(message.get("model"))
        tags = {"sidechain": "true"} if line.get("isSidechain") is True else {}
        if agent_id := _string(line.get("agentId")):
            tags["agent_id"] = agent_id[:256]
        return Issued(
            identity=identity,
            tool=_string(block.get("name")) or _UNKNOWN_TOOL,
            arguments=block.get("input"),
            call_id=_string(block.get("id")),
            turn=_string(message.get("id"))
            or _string(line.get("requestId"))
            or _line_id(read, line),
            at=self._last_at,
            model=None if model == "<synthetic>" else model,
            release=_string(line.get("version")),
            run_id=self._session_id or None,
            tags=tags,
        )

    def conversation(self, now: int) -> Conversation:
        """Close the session."""
        calls = self.calls.finish(timed=self._timed)
        live = self._timed and self._last_at is not None and self._last_at > now - LIVE_FOR
        kept = tuple(c for c in calls if not (live and c.status == "missing"))
        label = self._session_id or "session"
        return Conversation(
            format=NAME,
            key=_digest(
                NAME, self._session_id, self._agent_id, self._first.hex(), self._first_call
            ),
            label=f"{label}/{self._agent_id}" if self._agent_id else label,
            position="",
            calls=kept,
            timed=self._timed and self._last_at is not None,
            agent=NAME,
            provider="anthropic",
            pending=len(calls) - len(kept),
        )


def _outcome(line: _Line, block: _Line, at: int | None) -> Outcome:
    call_id = _string(block.get("tool_use_id"))
    copy = line.get("toolUseResult", line.get("tool_use_result"))
    interrupted = isinstance(copy, dict) and copy.get("interrupted") is True
    return Outcome(
        call_id=call_id,
        text=text_of(block.get("content")),
        failed=block.get("is_error") is True,
        at=at,
        soft="interrupted" if interrupted else None,
        rule="rejected_by_user" if _was_rejected(line, call_id) else None,
    )


def _was_rejected(line: _Line, call_id: str | None) -> bool:
    """Tell whether the line's metadata (stream-json form) says that the user refused the call."""
    metas = line.get("tool_result_meta")
    return isinstance(metas, list) and any(
        isinstance(meta, dict)
        and meta.get("id") == call_id
        and meta.get("non_execution_kind") == _REJECTED
        for meta in metas
    )


def _line_id(read: Piece, line: _Line) -> str:
    return _string(line.get("uuid")) or read.position


def _is_string(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value)


def _string(value: object) -> str | None:
    return value if _is_string(value) else None


def _digest(*parts: object) -> bytes:
    try:
        text = json.dumps(parts, sort_keys=True, default=str)
    except RecursionError:
        text = repr([part for part in parts if isinstance(part, str)])
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).digest()
