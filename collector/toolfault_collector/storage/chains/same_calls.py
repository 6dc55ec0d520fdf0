"""One call, reported more than once: by the SDK (on both sides of a protocol), or by traces.

Two reports are of one call if they are of one tool and name the same call id in the same
conversation, or the same span. Which of them stays never hangs on which came first:

* The SDK saw the call from within, so its report stays rather than any of a trace.
* A client and a server of tools (MCP) may both have the SDK. The agent's side stays, which knows
  what the model read; the sides are never added up.
* A model is told again, turn by turn, what was called before. So a call that only messages tell of
  (``reached`` is false) gives way to one of another trace that has a span, or that was earlier.

Other reports of two traces, or of two SDKs, are told apart by their ids, and both stay. What a
server reports of a client that says where it reports was left out before (`client_counts`).
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
from sqlalchemy import Connection

from toolfault_collector.protocol.records import CallRecord
from toolfault_collector.storage.database.bulk import columns, fetch
from toolfault_collector.storage.database.engine import is_sqlite

__all__ = ["EventKey", "find_twins", "may_have_twins", "take_turns"]

EventKey = tuple[int, str]
_Name = tuple[Any, ...]

# What only `/v1/events` has: a time that was judged. Traces keep the times of their source.
_OF_SDK: Final = ("client", "server")
# The side of a server of tools; the other is the agent's, or not told.
_SERVER: Final = "server"


class _Report(NamedTuple):
    """What decides between two reports."""

    event_id: str
    time_source: str
    trace_id: str | None
    span_id: str | None
    started_at: int
    side: str | None
    extra: Mapping[str, Any]

    @property
    def by_sdk(self) -> bool:
        return self.time_source in _OF_SDK

    @property
    def of_server(self) -> bool:
        return self.side == _SERVER

    @property
    def reached(self) -> bool:
        return self.extra.get("reached") is not False

    @property
    def spans(self) -> set[str]:
        """All spans that tell of the call; several of one trace may."""
        others = self.extra.get("span_ids")
        found = [self.span_id, *(others if isinstance(others, list) else ())]
        return {each for each in found if isinstance(each, str) and each}

    def outdoes(self, other: _Report) -> bool:
        """Say whether this report of a call stays instead of *other*."""
        if self.by_sdk and other.by_sdk:
            return other.of_server and not self.of_server
        if self.by_sdk or other.by_sdk:
            return self.by_sdk
        if other.reached or self.trace_id == other.trace_id:
            return False
        order = (self.started_at, self.event_id), (other.started_at, other.event_id)
        return self.reached or order[0] < order[1]


_COLUMNS: Final = columns(" ".join(_Report._fields))
_STORED: Final = f"SELECT {', '.join(_COLUMNS)} FROM tool_call WHERE project_id = ?"
_BY_CALL: Final = f"{_STORED} AND session_id = ? AND tool = ? AND call_id = ?"
_BY_TRACE: Final = f"{_STORED} AND trace_id = ? AND tool = ?"


# The words of the condition of `ix_tool_call_server`, so that its few entries answer. SQLite takes
# another index by itself, and looks at every call of the project.
_HAS_OTHERS: Final = (
    "SELECT EXISTS (SELECT 1 FROM otlp_request WHERE project_id = ?)"
    f" OR EXISTS (SELECT 1 FROM tool_call{{}} WHERE project_id = ? AND side = '{_SERVER}')"
)
_BY_INDEX: Final = " INDEXED BY ix_tool_call_server"


def may_have_twins(conn: Connection, calls: Sequence[CallRecord]) -> list[CallRecord]:
    """Return those of *calls* whose project has, or gets now, traces or reports of a server.

    In any other project no report has a twin.
    """
    sql = _HAS_OTHERS.format(_BY_INDEX if is_sqlite(conn) else "")
    served = {call.project_id for call in calls if call.side == _SERVER}
    projects = served.union(
        each
        for each in {call.project_id for call in calls} - served
        if fetch(conn, sql, (each, each))[0][0]
    )
    return [call for call in calls if call.project_id in projects]


# Of the locks of PostgreSQL that a number names: those below, and how many there are. A group may
# write more conversations than the server has room for locks, so several share one.
_TURNS: Final = 0x7F17
_TURNS_HAD: Final = 256


def take_turns(conn: Connection, calls: Iterable[CallRecord]) -> None:
    """Wait for whoever stores calls of the same conversations now, until they have committed.

    A client and a server report one call at about the same moment; two writers that look for twins
    at once would find none. In the order of the locks, and before any row is locked, so that nobody
    waits in a circle. SQLite has one writer.
    """
    if is_sqlite(conn):
        return
    named = {f"{call.project_id} {call.session_id}" for call in calls if call.session_id}
    turns = sorted({crc32(each.encode()) % _TURNS_HAD for each in named})
    for turn in turns:
        conn.exec_driver_sql("SELECT pg_advisory_xact_lock(%s, %s)", (_TURNS, turn))


def find_twins(
    conn: Connection, calls: Iterable[CallRecord]
) -> tuple[set[EventKey], set[EventKey]]:
    """Return which of *calls* are better reported by another, and which stored ones by them.

    Args:
        conn: In a write transaction.
        calls: What is about to be stored, of projects that `may_have_twins`.

    Returns:
        The keys of calls that are not to be stored, and of stored calls that have to go.
    """
    needless: set[EventKey] = set()
    outdone: set[EventKey] = set()
    together: defaultdict[_Name, list[_Report]] = defaultdict(list)
    reports = [(call, _report(call)) for call in calls]
    for call, report in reports:
        for name in _names(call, report):
            together[name].append(report)
    for call, mine in reports:
        key = (call.project_id, call.event_id)
        for other in _stored(conn, call, mine):
            if other.outdoes(mine):
                needless.add(key)
            elif mine.outdoes(other):
                outdone.add((call.project_id, other.event_id))
        beside = (other for name in _names(call, mine) for other in together[name])
        if any(other.outdoes(mine) for other in beside):
            needless.add(key)
    return needless, outdone


def _report(call: CallRecord) -> _Report:
    return _Report(*(getattr(call, name) for name in _COLUMNS))


def _names(call: CallRecord, report: _Report) -> Iterator[_Name]:
    """Yield what a call is known by."""
    if call.session_id and call.call_id:
        yield "call", call.project_id, call.session_id, call.tool, call.call_id
    if call.trace_id:
        for span_id in report.spans:
            yield "span", call.project_id, call.trace_id, call.tool, span_id


def _stored(conn: Connection, call: CallRecord, mine: _Report) -> Iterator[_Report]:
    """Yield the stored reports of the same call."""
    if call.session_id and call.call_id:
        given = (call.project_id, call.session_id, call.tool, call.call_id)
        yield from _read(conn, _BY_CALL, given)
    if call.trace_id and mine.spans:
        for other in _read(conn, _BY_TRACE, (call.project_id, call.trace_id, call.tool)):
            if mine.spans & other.spans:
                yield other


def _read(conn: Connection, sql: str, parameters: tuple[Any, ...]) -> Iterator[_Report]:
    for event_id, source, trace_id, span_id, started_at, side, extra in fetch(
        conn, sql, parameters
    ):
        known = msgspec.json.decode(extra) if isinstance(extra, str) else extra
        known = known if isinstance(known, dict) else {}
        yield _Report(event_id, source, trace_id, span_id, started_at, side, known)
