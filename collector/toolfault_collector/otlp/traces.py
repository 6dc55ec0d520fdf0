"""Traces in the database: what is kept of them, and the calls they come to so far.

The spans of a trace come in several requests and in any order, and what a span means may hang on
one that comes later: the conversation stands on the root, which ends last. So spans are kept for a
while. Whenever something of a trace arrives, its calls are made anew from all that is kept, by a
pure function. Those that are stored as they are now stay, others are taken out and stored anew, in
the same transaction. Hence the tables never depend on the order of arrival, a call is there as soon
as its span is acknowledged, and a process that is killed has nothing left to do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from toolfault_collector.otlp.calls.calls import TraceCalls, calls_of
from toolfault_collector.otlp.calls.failures import SOFT_RULES
from toolfault_collector.otlp.calls.spans import LogRecord, Span
from toolfault_collector.otlp.events import call_event, digest_of, encoded
from toolfault_collector.otlp.metric_calls import add_points
from toolfault_collector.otlp.request_log import keep_request
from toolfault_collector.otlp.soft_rules import switched_off
from toolfault_collector.otlp.submission import TraceBatch, TraceSubmission, unpack
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.submission import Submission, read_events
from toolfault_collector.storage.database.bulk import (
    columns,
    fetch,
    find_rows,
    insert_rows,
    run,
    select_in,
    upsert_rows,
)
from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_collector.storage.database.postgres import insert_new
from toolfault_collector.storage.old_traces import remove_old_traces
from toolfault_collector.storage.tables import trace, trace_batch

__all__ = ["KEPT_BYTES", "KEPT_READS", "KEPT_SPANS", "resolve"]

# Of one trace, since all of it is read again whenever more of it comes: spans, their bytes, and how
# many have been read so far, again and again. What comes after that is a trace of its own, so a
# sender of single spans costs some 40 ms for each at most, and one of batches is not cut at all.
KEPT_SPANS: Final = 5_000
KEPT_BYTES: Final = 16 * 1_024 * 1_024
KEPT_READS: Final = 200_000
# Batches between two looks at what is old: a look costs as much as storing a few spans.
PRUNE_EVERY: Final = 50

TraceKey = tuple[int, str]
_KEY: Final = columns("project_id trace_id")
_COLUMNS: Final = (*_KEY, *columns("received_at spans size reads calls"))
_BATCH_COLUMNS: Final = columns("project_id trace_id spans body")
_BODIES: Final = (
    "SELECT trace_id, body FROM trace_batch WHERE project_id = ? AND trace_id IN ? ORDER BY id"
)


@dataclass(slots=True)
class _Trace:
    """One trace as it is stored, and what is new of it."""

    spans: int = 0
    size: int = 0
    reads: int = 0
    calls: dict[str, str] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)
    new: list[TraceBatch] = field(default_factory=list)
    given_up: bool = False

    def add(self, batch: TraceBatch) -> None:
        """Take in a batch, unless it was sent before."""
        if batch.body in self.bodies or any(batch.body == each.body for each in self.new):
            return
        self.new.append(batch)
        self.spans += batch.size
        self.size += batch.weight

    def bound(self) -> None:
        """Forget what is kept if all of it is more than one trace may be."""
        if self.bodies and (
            self.spans > KEPT_SPANS or self.size > KEPT_BYTES or self.reads > KEPT_READS
        ):
            self.given_up, self.bodies, self.calls, self.reads = True, [], {}, 0
            self.spans = sum(each.size for each in self.new)
            self.size = sum(each.weight for each in self.new)

    def resolve(self, off: frozenset[str]) -> TraceCalls:
        """Return the calls of all that is known, whatever the order in which it came.

        Args:
            off: Names of the soft rules that do not count.
        """
        self.reads += self.spans
        spans: list[Span] = []
        logs: list[LogRecord] = []
        kept = [unpack(body) for body in self.bodies]
        for some_spans, some_logs in [*kept, *((each.spans, each.logs) for each in self.new)]:
            spans += some_spans
            logs += some_logs
        return calls_of(spans, logs, soft_rules=SOFT_RULES.keys() - off)


def resolve(conn: Connection, submissions: Sequence[Submission]) -> list[Submission]:
    """Return *submissions*, those of OTLP with the calls that their traces come to now.

    What they bring of these traces is stored, and what is shown of them.

    Args:
        conn: In a write transaction; the caller stores what is returned in it, and commits.
        submissions: Batches of any kind.
    """
    mine = [each for each in submissions if isinstance(each, TraceSubmission)]
    if not mine:
        return list(submissions)
    traces = _load(conn, {(each.project_id, one.trace_id) for each in mine for one in each.traces})
    last: dict[TraceKey, TraceSubmission] = {}
    for each in mine:
        for batch in each.traces:
            key = (each.project_id, batch.trace_id)
            traces[key].add(batch)
            last[key] = each
    off = {each: switched_off(conn, each) for each in sorted({one.project_id for one in mine})}
    found: dict[int, _Found] = {id(each): _Found(each, off[each.project_id]) for each in mine}
    for key, each in last.items():
        traces[key].bound()
        found[id(each)].add(traces[key])
    received = {key: each.received_at for key, each in last.items()}
    _store(conn, traces, received)
    resolved: list[Submission] = []
    for given in submissions:
        if isinstance(given, TraceSubmission):
            result = found[id(given)]
            if given.points:
                add_points(conn, given.project_id, given.points)
            keep_request(conn, given, result.made, changed=len(result.events) + len(given.records))
            resolved.append(result.submission())
        else:
            resolved.append(given)
    return resolved


@dataclass(slots=True)
class _Found:
    """What the traces of one request come to."""

    request: TraceSubmission
    off: frozenset[str]  # soft rules that do not count
    events: list[bytes] = field(default_factory=list)
    withdrawn: set[str] = field(default_factory=set)
    made: list[TraceCalls] = field(default_factory=list)

    def __post_init__(self) -> None:
        alone = self.request.alone
        if alone is None:
            return
        if any(each.detection.removeprefix("soft:") in self.off for each in alone.calls):
            alone = self._alone_anew()
        self.made.append(alone)

    def _alone_anew(self) -> TraceCalls:
        """Make the calls of the log records outside any trace again, by the rules that count."""
        request, rules = self.request, SOFT_RULES.keys() - self.off
        made = calls_of([], request.alone_logs, soft_rules=rules)
        stored = {each.event_id for each in request.records}
        events = [call_event(each) for each in made.calls if each.event_id in stored]
        self.request = replace(request, records=self._read(events).records)
        return made

    def add(self, known: _Trace) -> None:
        made = known.resolve(self.off)
        events = {call.event_id: encoded(call_event(call)) for call in made.calls}
        now = {event_id: digest_of(event) for event_id, event in events.items()}
        self.withdrawn |= {each for each, was in known.calls.items() if now.get(each) != was}
        self.events += [events[each] for each in sorted(now) if known.calls.get(each) != now[each]]
        self.made.append(made)
        known.calls = now

    def submission(self) -> TraceSubmission:
        """Return the request with these calls."""
        request, read = self.request, self._read(self.events)
        return replace(
            request,
            records=[*request.records, *read.records],
            rejected=[*request.rejected, *read.rejected],
            withdrawn=frozenset(self.withdrawn),
        )

    def _read(self, events: Sequence[bytes | Mapping[str, Any]]) -> Submission:
        request = self.request
        context = Context(request.project_id, request.received_at, time_policy="import")
        return read_events(events, context)


def _load(conn: Connection, keys: set[TraceKey]) -> dict[TraceKey, _Trace]:
    """Return the traces of *keys* with what is kept of them, locked until the transaction ends."""
    in_order = sorted(keys)
    traces = {key: _Trace() for key in in_order}
    if not in_order:
        return traces
    if not is_sqlite(conn):
        # Two collectors that are sent spans of one trace take turns here.
        insert_new(conn, trace, _COLUMNS, [(*key, 0, 0, 0, 0, None) for key in in_order])
    stored: defaultdict[int, list[str]] = defaultdict(list)
    rows = find_rows(conn, trace, _COLUMNS, key="trace_id", among=in_order, lock=True)
    for project_id, trace_id, _, spans, size, reads, calls in rows:
        known = traces[project_id, trace_id]
        known.spans, known.size, known.reads = spans, size, reads
        known.calls = msgspec.json.decode(calls) if isinstance(calls, str) else calls or {}
        if spans:
            stored[project_id].append(trace_id)
    for project_id, trace_ids in stored.items():
        for trace_id, body in select_in(conn, _BODIES, fixed=(project_id,), among=trace_ids):
            traces[project_id, trace_id].bodies.append(bytes(body))
    return traces


def _store(conn: Connection, traces: dict[TraceKey, _Trace], received: dict[TraceKey, int]) -> None:
    gone = [key for key, each in sorted(traces.items()) if each.given_up]
    run(conn, "DELETE FROM trace_batch WHERE project_id = ? AND trace_id = ?", gone)
    rows, batches = [], []
    for key, each in sorted(traces.items()):
        calls = msgspec.json.encode(each.calls).decode() if each.calls else None
        rows.append((*key, received[key], each.spans, each.size, each.reads, calls))
        batches += [(*key, one.size, one.body) for one in each.new]
    upsert_rows(conn, trace, _COLUMNS, key=_KEY, rows=rows)
    insert_rows(conn, trace_batch, _BATCH_COLUMNS, batches)
    written = Counter(key[0] for key in traces)
    for project_id in written:
        if _is_due(conn, len(batches)):
            now = max(at for key, at in received.items() if key[0] == project_id)
            remove_old_traces(conn, project_id, now=now)


def _is_due(conn: Connection, written: int) -> bool:
    """Say whether so many more batches are a reason to look for old ones; knows nothing itself."""
    newest = fetch(conn, "SELECT max(id) FROM trace_batch")[0][0] or 0
    return bool(newest % PRUNE_EVERY < written)
