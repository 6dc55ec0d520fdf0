"""Storing events: the one way anything is written, whoever sends it.

A group is one transaction: calls, issues, chains, conversations, counts and the record of what
was refused are committed together, so a rate and the list behind it can never disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Table

from toolfault_collector import failpoints, rows
from toolfault_collector.arrays import insert_new
from toolfault_collector.bulk import allocate_ids, find_rows, insert_rows
from toolfault_collector.cardinality import NameLimits
from toolfault_collector.catalog import Catalog
from toolfault_collector.chain_rows import ChainKey
from toolfault_collector.chain_store import continue_chains
from toolfault_collector.chains import Call, Chain, Place
from toolfault_collector.clock import MINUTE_US
from toolfault_collector.conversations import (
    Conversation,
    ConversationKey,
    load_conversations,
    write_conversations,
)
from toolfault_collector.day_versions import Span, raise_versions
from toolfault_collector.decode import Rejection, decode_events
from toolfault_collector.engine import is_sqlite
from toolfault_collector.prepared import (
    Context,
    Prepared,
    PreparedCall,
    PreparedChange,
    PreparedCounts,
    PreparedEnd,
    TimePolicy,
)
from toolfault_collector.rejects import keep_rejects
from toolfault_collector.rollups import add_counts, count_calls, count_folded
from toolfault_collector.submission import Submission, prepare_batch
from toolfault_collector.tables import (
    call_counts,
    change,
    conversation_end,
    event_key,
    issue,
    tool_call,
)

__all__ = [
    "Receipt",
    "Rejection",
    "Submission",
    "prepare_batch",
    "store_events",
    "store_group",
]

EventKey = tuple[int, str]


@dataclass(slots=True)
class Receipt:
    """What became of a batch: accepted + duplicate + len(rejected) = events sent.

    Attributes:
        conflicts: Duplicates that differ from what was stored first under their id.
        dropped: What the sender says it lost, by reason.
    """

    accepted: int = 0
    duplicate: int = 0
    rejected: list[Rejection] = field(default_factory=list)
    conflicts: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def add(self, other: Receipt) -> None:
        """Add what became of another part of the same batch."""
        self.accepted += other.accepted
        self.duplicate += other.duplicate
        self.conflicts += other.conflicts
        self.rejected = sorted([*self.rejected, *other.rejected], key=lambda each: each.index)


def store_events(
    conn: Connection,
    project_id: int,
    events: Sequence[Mapping[str, Any] | bytes],
    *,
    received_at: int,
    time_policy: TimePolicy = "client",
    resource: Mapping[str, str] | None = None,
    source: str = "sdk",
) -> Receipt:
    """Store *events* of protocol v1 and say what became of each; repeating it changes nothing.

    Args:
        conn: In a write transaction; the caller commits.
        project_id: The project they belong to.
        events: Events as JSON objects.
        received_at: Now, in microseconds since the epoch.
        time_policy: ``client`` believes times within bounds; ``import`` believes all of them and
            allows ``time_source`` (``import``, or ``none``: order is ``seq``) and ``detection``.
        resource: agent, model, environment, release ... of events that name none.
        source: Who recorded a change: sdk, cli, dashboard or api.
    """
    context = Context(project_id, received_at, time_policy, resource or {}, source)
    batch = decode_events(list(events), imported=time_policy == "import")
    return store_group(conn, [prepare_batch(batch, context)], catalog=Catalog())[0]


def store_group(
    conn: Connection,
    submissions: Sequence[Submission],
    *,
    catalog: Catalog,
    limits: NameLimits | None = None,
) -> list[Receipt]:
    """Store *submissions* in the open write transaction and return a receipt for each, in order.

    The group is stored as one: few statements, whatever the number of batches in it.

    Args:
        conn: In a write transaction; the caller commits.
        submissions: Batches, of any projects.
        catalog: Ids of shared rows that are remembered between groups.
        limits: Limits on the number of different names, if there are any.
    """
    group = _Group()
    for submission in submissions:
        group.receipts.append(Receipt(rejected=submission.rejected, dropped=submission.dropped))
        for event in submission.events:
            group.sort_in(event, len(group.receipts) - 1)
    group.drop_stored(conn)
    if not is_sqlite(conn):
        group.claim_calls(conn)
    conversations = load_conversations(conn, [*group.of_calls(), *group.of_ends()])
    if not is_sqlite(conn):
        # Another collector may have stored some of them while this one waited for the locks.
        group.drop_stored(conn)
    if limits is not None:
        limits.apply(conn, group.of_calls(), group.of_counts())
    _take_in(group, conversations)
    _store_calls(conn, list(group.of_calls()), conversations, catalog=catalog)
    _store_others(conn, group)
    write_conversations(conn, conversations.values())
    # Last, since the rows of the current hour are wanted by every writer.
    add_counts(conn, count_calls(group.of_calls()))
    add_counts(conn, count_folded(group.of_counts()))
    catalog.touch(conn)
    for submission in submissions:
        keep_rejects(
            conn,
            submission.project_id,
            received_at=submission.received_at,
            rejected=submission.rejected,
        )
    raise_versions(conn, _changed(group, conversations.values()))
    return group.finish()


def _changed(group: _Group, conversations: Iterable[Conversation]) -> Iterable[Span]:
    """Yield the spans of what *group* changes, once for every call, minute and conversation."""
    for call in group.of_calls():
        yield (call.project_id, call.occurred_at, call.occurred_at)
    for counts in group.of_counts():
        middle = counts.minute + MINUTE_US // 2
        yield (counts.project_id, middle, middle)
    for each in conversations:
        yield (each.project_id, each.first_at, each.last_at)


_STORED_IN: Final[dict[type[Prepared], Table]] = {
    PreparedCall: tool_call,
    PreparedCounts: call_counts,
    PreparedEnd: conversation_end,
    PreparedChange: change,
}


class _Group:
    """The events of one transaction by kind, each id once: the first to come wins."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []
        self._events: dict[type[Prepared], dict[EventKey, tuple[Any, int]]] = {
            kind: {} for kind in _STORED_IN
        }

    def sort_in(self, event: Prepared, submission: int) -> None:
        known = self._events[type(event)]
        key = (event.project_id, event.event_id)
        if key in known:
            first = known[key][0]
            self._count_duplicate(submission, conflict=first.event != event.event)
        else:
            known[key] = (event, submission)

    def drop_stored(self, conn: Connection) -> None:
        """Leave only events that no earlier transaction has stored; see too `claim_calls`."""
        for kind, events in self._events.items():
            if kind is not PreparedCall or is_sqlite(conn):
                self._drop(kind, dict(_already_stored(conn, _STORED_IN[kind], events)))

    def claim_calls(self, conn: Connection) -> None:
        """Write the keys of the calls, and leave only calls whose key was not there (PostgreSQL).

        Who writes a key first has the event: another collector waits here for its commit. In the
        order of the keys, and before any other lock, so that nobody waits in a circle.
        """
        calls, claimed = self._events[PreparedCall], 0
        # Twice, since retention may remove a call and its key between the two statements.
        for _ in range(2):
            if claimed == len(calls):
                break
            keys = sorted(calls)
            claimed += insert_new(conn, event_key, ("project_id", "event_id"), keys)
            if claimed < len(calls):
                # The calls of keys that were written here are not there yet.
                self._drop(PreparedCall, dict(_already_stored(conn, tool_call, keys)))

    def _drop(self, kind: type[Prepared], stored: Mapping[EventKey, int | None]) -> None:
        """Leave out the events that are *stored*, and the time each has there."""
        for key, at in stored.items():
            event, submission = self._events[kind].pop(key)
            conflict = _time_of(event) not in (None, at)
            self._count_duplicate(submission, conflict=conflict)

    def of_calls(self) -> Iterable[PreparedCall]:
        return (event for event, _ in self._events[PreparedCall].values())

    def of_ends(self) -> Iterable[PreparedEnd]:
        return (event for event, _ in self._events[PreparedEnd].values())

    def of_counts(self) -> Iterable[PreparedCounts]:
        return (event for event, _ in self._events[PreparedCounts].values())

    def of_changes(self) -> Iterable[PreparedChange]:
        return (event for event, _ in self._events[PreparedChange].values())

    def finish(self) -> list[Receipt]:
        for events in self._events.values():
            for _, submission in events.values():
                self.receipts[submission].accepted += 1
        return self.receipts

    def _count_duplicate(self, submission: int, *, conflict: bool) -> None:
        self.receipts[submission].duplicate += 1
        self.receipts[submission].conflicts += conflict


def _time_of(event: Prepared) -> int | None:
    """Return the time by which a resend is compared with what was stored."""
    if event.time_source in ("server", "none"):
        return None  # not the sender's time: every resend has another
    return event.minute if isinstance(event, PreparedCounts) else event.occurred_at


def _already_stored(
    conn: Connection, table: Table, events: Iterable[EventKey]
) -> list[tuple[EventKey, int | None]]:
    by_project: dict[int, list[str]] = {}
    for project_id, event_id in events:
        by_project.setdefault(project_id, []).append(event_id)
    at = "minute" if table is call_counts else "occurred_at"
    return [
        ((project_id, row[0]), row[1])
        for project_id, ids in by_project.items()
        for row in find_rows(
            conn, table, ("event_id", at), project_id=project_id, key="event_id", among=ids
        )
    ]


def _take_in(group: _Group, conversations: dict[ConversationKey, Conversation]) -> None:
    """Let *conversations* know of everything in *group*: what a chain comes to depends on it."""
    calls = [
        (call, conversations[call.project_id, call.session_id])
        for call in group.of_calls()
        if call.session_id is not None
    ]
    for call, conversation in calls:
        if call.time_source == "none":  # it gets the time its conversation was first imported
            call.occurred_at = call.started_at = conversation.first_at
    for call, conversation in calls:
        conversation.add_call(call)
    for end in group.of_ends():
        conversations[end.project_id, end.session_id].add_end(end)


def _store_calls(
    conn: Connection,
    calls: list[PreparedCall],
    conversations: dict[ConversationKey, Conversation],
    *,
    catalog: Catalog,
) -> None:
    if not calls:
        return
    for call, call_id in zip(calls, allocate_ids(conn, tool_call, len(calls)), strict=True):
        call.id = call_id
    catalog.resolve(conn, [call for call in calls if not call.success])
    _store_chains(conn, calls, conversations)
    insert_rows(conn, tool_call, rows.CALL_COLUMNS, [rows.call_row(call) for call in calls])
    failpoints.reach("calls")
    issues = [row for call in calls for row in rows.issue_rows(call)]
    insert_rows(conn, issue, rows.ISSUE_COLUMNS, issues)


def _store_chains(
    conn: Connection,
    calls: list[PreparedCall],
    conversations: dict[ConversationKey, Conversation],
) -> None:
    batches: dict[ChainKey, list[Call]] = {}
    stored: set[ChainKey] = set()
    for call in calls:
        if call.session_id is None:
            continue
        key = (call.project_id, call.session_id, call.event.tool)
        batches.setdefault(key, []).append(_as_folded(call))
        if conversations[key[:2]].stored:
            stored.add(key)
    for batch in batches.values():
        batch.sort(key=lambda call: call.key)

    def settle(key: ChainKey, chain: Chain) -> None:
        conversations[key[:2]].settle(key[2], chain)

    places = continue_chains(conn, batches, stored=stored, settle=settle)
    for call in calls:
        # A group that was rolled back may have found its calls another place.
        place = places.get((call.project_id, call.event_id), Place())
        call.chain_id, call.attempt, call.chain_marks, call.lost_us = place


def _as_folded(call: PreparedCall) -> Call:
    event, default = call.event, call.resource.get
    return Call(
        call.event_id,
        call.started_at,
        call.occurred_at,
        event.seq,
        event.turn,
        call.success,
        call.time_source,
        call.code or "",
        call.category,
        call.fields,
        call.message_id,
        event.args_fingerprint,
        event.tokens,
        (
            event.agent or default("agent"),
            event.model or default("model"),
            event.environment or default("environment"),
            event.release or default("release"),
            event.variant or default("variant"),
        ),
    )


def _store_others(conn: Connection, group: _Group) -> None:
    ends = [rows.end_row(end) for end in group.of_ends()]
    insert_rows(conn, conversation_end, rows.END_COLUMNS, ends)
    counts = list(group.of_counts())
    insert_rows(conn, call_counts, rows.COUNTS_COLUMNS, [rows.counts_row(each) for each in counts])
    insert_rows(
        conn, change, rows.CHANGE_COLUMNS, [rows.change_row(each) for each in group.of_changes()]
    )
