"""One call, reported more than once: by the SDK, by a trace, by the messages of a later trace.

Two reports are of one call if they are of one tool and name the same call id in the same
conversation, or the same span. Which of them stays never hangs on which came first:

* The SDK saw the call from within, so its report stays rather than any of a trace.
* A model is told again, turn by turn, what was called before. So a call that only messages tell of
  (``reached`` is false) gives way to one of another trace that has a span, or that was earlier.

Other reports of two traces, or of two SDKs, are told apart by their ids, and both stay.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection

from toolfault_collector.protocol.records import CallRecord
from toolfault_collector.storage.database.bulk import columns, fetch

__all__ = ["EventKey", "find_twins", "has_traces"]

EventKey = tuple[int, str]
_Name = tuple[Any, ...]

# What only `/v1/events` has: a time that was judged. Traces keep the times of their source.
_OF_SDK: Final = ("client", "server")


class _Report(NamedTuple):
    """What decides between two reports."""

    event_id: str
    time_source: str
    trace_id: str | None
    span_id: str | None
    started_at: int
    extra: Mapping[str, Any]

    @property
    def by_sdk(self) -> bool:
        return self.time_source in _OF_SDK

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
        if self.by_sdk or other.by_sdk:
            return self.by_sdk and not other.by_sdk
        if other.reached or self.trace_id == other.trace_id:
            return False
        order = (self.started_at, self.event_id), (other.started_at, other.event_id)
        return self.reached or order[0] < order[1]


_COLUMNS: Final = columns(" ".join(_Report._fields))
_STORED: Final = f"SELECT {', '.join(_COLUMNS)} FROM tool_call WHERE project_id = ?"
_BY_CALL: Final = f"{_STORED} AND session_id = ? AND tool = ? AND call_id = ?"
_BY_TRACE: Final = f"{_STORED} AND trace_id = ? AND tool = ?"


def has_traces(conn: Connection, project_id: int) -> bool:
    """Say whether anybody has sent OTLP to the project; else no report has a twin."""
    sql = "SELECT 1 FROM otlp_request WHERE project_id = ? LIMIT 1"
    return bool(fetch(conn, sql, (project_id,)))


def find_twins(
    conn: Connection, calls: Iterable[CallRecord]
) -> tuple[set[EventKey], set[EventKey]]:
    """Return which of *calls* are better reported by another, and which stored ones by them.

    Args:
        conn: In a write transaction.
        calls: What is about to be stored, of projects to which anybody has sent traces.

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
    for event_id, source, trace_id, span_id, started_at, extra in fetch(conn, sql, parameters):
        known = msgspec.json.decode(extra) if isinstance(extra, str) else extra
        known = known if isinstance(known, dict) else {}
        yield _Report(event_id, source, trace_id, span_id, started_at, known)
