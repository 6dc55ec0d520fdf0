"""Storing events: the one way anything is written, whoever sends it.

A group is one transaction: calls, issues, chains, conversations, counts and the record of what
was refused are committed together, so a rate and the list behind it can never disagree. Records
are not changed by it; what it finds out stands in its own rows (`columns.CallRow`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, TypeVar

from msgspec.structs import replace
from sqlalchemy import Connection, Table

from toolfault_collector import failpoints
from toolfault_collector.chains.fold import Call, Chain
from toolfault_collector.clock import MINUTE_US
from toolfault_collector.protocol.decode import decode_event
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.records import (
    CallRecord,
    ChangeRecord,
    Context,
    CountsRecord,
    EndRecord,
    Raw,
    Record,
    TimePolicy,
)
from toolfault_collector.protocol.repair import Refused
from toolfault_collector.protocol.submission import Submission, read_events
from toolfault_collector.storage.cache_versions import Span, raise_versions
from toolfault_collector.storage.chains.chain_rows import ChainKey
from toolfault_collector.storage.chains.chain_store import continue_chains
from toolfault_collector.storage.chains.conversations import (
    Conversation,
    ConversationKey,
    load_conversations,
    write_conversations,
)
from toolfault_collector.storage.chains.other_calls import (
    WrittenChains,
    recount_other_calls,
    write_other_calls,
)
from toolfault_collector.storage.chains.same_calls import (
    EventKey,
    find_twins,
    may_have_twins,
    take_turns,
)
from toolfault_collector.storage.chains.withdrawal import chains_beside, fold_rest, take_out
from toolfault_collector.storage.client_counts import counted_by_clients
from toolfault_collector.storage.database import columns as rows
from toolfault_collector.storage.database.bulk import allocate_ids, find_rows, insert_rows
from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_collector.storage.database.postgres import insert_new
from toolfault_collector.storage.lookups import Lookups
from toolfault_collector.storage.name_limits import NameLimits, is_chained
from toolfault_collector.storage.rejects import keep_rejects
from toolfault_collector.storage.rollups import add_counts, count_calls, count_folded
from toolfault_collector.storage.tables import (
    call_counts,
    change,
    conversation_end,
    event_key,
    issue,
    tool_call,
)

__all__ = ["Stored", "store_events", "store_group"]

Conversations = dict[ConversationKey, Conversation]
R = TypeVar("R", CallRecord, CountsRecord, EndRecord, ChangeRecord)


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a group.

    Attributes:
        receipts: One for each of its batches, in order.
        renamed: Events with a name that was one too many, by kind of name.
    """

    receipts: list[Receipt]
    renamed: Counter[str] = field(default_factory=Counter)


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
    (receipt,) = store_group(conn, [read_events(events, context)]).receipts
    return receipt


def store_group(
    conn: Connection, submissions: Sequence[Submission], *, limits: NameLimits | None = None
) -> Stored:
    """Store *submissions* in the open write transaction and say what became of each.

    The group is stored as one: few statements, whatever the number of batches in it.

    Args:
        conn: In a write transaction; the caller commits.
        submissions: Batches, of any projects.
        limits: Limits on the number of different names, if there are any.
    """
    new, lite = _NewEvents(submissions), is_sqlite(conn)
    stored = Stored(new.receipts)
    new.leave_out_counted(conn)
    taken = take_out(conn, new.settle_twins(conn).union(*map(_withdrawn, submissions)))
    new.leave_out_stored(conn)
    if not lite:
        new.claim_calls(conn)
    calls, ends = new.of(CallRecord), new.of(EndRecord)
    conversations = load_conversations(conn, [*calls, *ends, *taken.calls])
    if not lite:
        # Another collector may have stored some of them while this one waited for the locks.
        new.leave_out_stored(conn)
        calls, ends = new.of(CallRecord), new.of(EndRecord)
    counts, changes = new.of(CountsRecord), new.of(ChangeRecord)
    if limits is not None:
        calls, counts, ends = limits.apply(conn, calls, counts, ends, stored.renamed)
    fold_rest(conn, taken, conversations, [*calls, *ends])
    calls = [_placed(call, conversations) if call.time_source == "none" else call for call in calls]
    known_until = {key: each.last_at for key, each in conversations.items() if each.stored}
    _take_in(calls, ends, conversations)
    lookups = Lookups()
    written = _store_calls(conn, calls, conversations, lookups)
    if ends or counts or changes:
        insert_rows(conn, conversation_end, rows.END_COLUMNS, rows.end_rows(ends))
        insert_rows(conn, call_counts, rows.COUNTS_COLUMNS, rows.counts_rows(counts))
        insert_rows(conn, change, rows.CHANGE_COLUMNS, rows.change_rows(changes))
    changed = write_conversations(conn, conversations.values())
    write_other_calls(conn, calls, written=written, changed=changed, known_until=known_until)
    if taken.calls:
        recount_other_calls(conn, chains_beside(conn, taken))
    # Last, since the rows of the current hour are wanted by every writer.
    add_counts(conn, count_calls(calls), count_folded(counts), taken.counts)
    lookups.touch(conn)
    for each in submissions:
        if each.rejected:
            keep_rejects(
                conn, each.project_id, received_at=each.received_at, rejected=each.rejected
            )
    raise_versions(conn, [*_changed(calls, counts, conversations.values()), *taken.spans])
    new.count_accepted()
    return stored


def _changed(
    calls: Iterable[CallRecord],
    counts: Iterable[CountsRecord],
    conversations: Iterable[Conversation],
) -> list[Span]:
    """Return the spans of what changes, once for every call, minute and conversation."""
    half = MINUTE_US // 2
    return [
        *[(call.project_id, call.occurred_at, call.occurred_at) for call in calls],
        *[(each.project_id, each.minute + half, each.minute + half) for each in counts],
        *[(each.project_id, each.first_at, each.last_at) for each in conversations],
    ]


def _withdrawn(submission: Submission) -> set[EventKey]:
    return {(submission.project_id, event_id) for event_id in submission.withdrawn}


_STORED_IN: Final[dict[type[Record], Table]] = {
    CallRecord: tool_call,
    CountsRecord: call_counts,
    EndRecord: conversation_end,
    ChangeRecord: change,
}


class _NewEvents:
    """The events of one transaction by kind, each id once: the first to come wins."""

    def __init__(self, submissions: Iterable[Submission]) -> None:
        self.receipts: list[Receipt] = []
        # Each with the receipt of its batch.
        self._events: dict[type[Record], dict[EventKey, tuple[Any, Receipt]]] = {
            kind: {} for kind in _STORED_IN
        }
        for each in submissions:
            receipt = Receipt(rejected=each.rejected, dropped=each.dropped)
            self.receipts.append(receipt)
            for record in each.records:
                key, events = (record.project_id, record.event_id), self._events[type(record)]
                if key not in events:
                    events[key] = (record, receipt)
                    continue
                first, _ = events[key]
                receipt.duplicate += 1
                receipt.conflicts += _differ(first.raw, record.raw)

    def of(self, kind: type[R]) -> list[R]:
        """Return the records of *kind*."""
        return [record for record, _ in self._events[kind].values()]

    def leave_out_counted(self, conn: Connection) -> None:
        """Leave out what a server of tools reports and its client counts in the same project."""
        marked = [
            record
            for events in self._events.values()
            for record, _ in events.values()
            if record.counted_by is not None
        ]
        for each in counted_by_clients(conn, marked):
            _, receipt = self._events[type(each)].pop((each.project_id, each.event_id))
            receipt.duplicate += 1

    def settle_twins(self, conn: Connection) -> set[EventKey]:
        """Leave out calls that are reported better; return stored ones that are so from now on."""
        calls = self._events[CallRecord]
        mine = may_have_twins(conn, [call for call, _ in calls.values()])
        if not mine:
            return set()
        take_turns(conn, mine)
        needless, outdone = find_twins(conn, mine)
        for key in needless:
            _, receipt = calls.pop(key)
            receipt.duplicate += 1
        return outdone

    def leave_out_stored(self, conn: Connection) -> None:
        """Leave only events that no earlier transaction has stored; see too `claim_calls`."""
        for kind, events in self._events.items():
            if events and (kind is not CallRecord or is_sqlite(conn)):
                self._leave_out(conn, kind)

    def claim_calls(self, conn: Connection) -> None:
        """Write the keys of the calls, and leave only calls whose key was not there (PostgreSQL).

        Who writes a key first has the event: another collector waits here for its commit. In the
        order of the keys, and before any other lock, so that nobody waits in a circle.
        """
        calls, claimed = self._events[CallRecord], 0
        # Twice, since retention may remove a call and its key between the two statements.
        for _ in range(2):
            if claimed == len(calls):
                break
            claimed += insert_new(conn, event_key, ("project_id", "event_id"), sorted(calls))
            if claimed < len(calls):
                # The calls of keys that were written here are not there yet.
                self._leave_out(conn, CallRecord)

    def count_accepted(self) -> None:
        for events in self._events.values():
            for _, receipt in events.values():
                receipt.accepted += 1

    def _leave_out(self, conn: Connection, kind: type[Record]) -> None:
        """Take the events of *kind* that are stored out, and count them as duplicates."""
        events, table = self._events[kind], _STORED_IN[kind]
        at = "minute" if kind is CountsRecord else "occurred_at"
        names = ("project_id", "event_id", at)
        for project_id, event_id, stored_at in find_rows(
            conn, table, names, key="event_id", among=events
        ):
            record, receipt = events.pop((project_id, event_id))
            receipt.duplicate += 1
            # A time that is not the sender's differs with every resend.
            if record.time_source not in ("server", "none"):
                receipt.conflicts += getattr(record, at) != stored_at


def _differ(first: Raw, second: Raw) -> bool:
    """Return whether two events of one id, both of which could be stored, say different things.

    Both are read as any sender's: what only importers may say is compared as an unknown member.
    """
    if first == second:
        return False
    try:
        one, other = (
            decode_event(each, imported=False, max_bytes=sys.maxsize) for each in (first, second)
        )
    except Refused:  # as any sender's it could not be stored; nobody says that twice alike
        return True
    return one != other


def _placed(call: CallRecord, conversations: Conversations) -> CallRecord:
    """Give a call without a time of its own the time its conversation was first imported."""
    if call.session_id is None:
        return call
    at = conversations[call.project_id, call.session_id].first_at
    return replace(call, occurred_at=at, started_at=at)


def _take_in(
    calls: Iterable[CallRecord], ends: Iterable[EndRecord], conversations: Conversations
) -> None:
    """Let *conversations* know of all that is new: what a chain comes to depends on it."""
    for call in calls:
        if call.session_id is not None:
            conversations[call.project_id, call.session_id].add_call(call)
    for end in ends:
        conversations[end.project_id, end.session_id].add_end(end)


def _store_calls(
    conn: Connection, calls: Sequence[CallRecord], conversations: Conversations, lookups: Lookups
) -> WrittenChains:
    if not calls:
        return {}
    ids = allocate_ids(conn, tool_call, len(calls))
    new = [rows.CallRow(*each) for each in zip(calls, ids, strict=True)]
    lookups.resolve(conn, new)
    written = _store_chains(conn, new, conversations)
    insert_rows(conn, tool_call, rows.CALL_COLUMNS, rows.call_rows(new))
    failpoints.reach("calls")
    insert_rows(conn, issue, rows.ISSUE_COLUMNS, rows.issue_rows(new))
    return written


def _store_chains(
    conn: Connection, calls: Sequence[rows.CallRow], conversations: Conversations
) -> WrittenChains:
    """Fold *calls* into the chains of their conversations, and set the place of each."""
    written: dict[tuple[int, str], tuple[ChainKey, Chain]] = {}
    batches: dict[ChainKey, list[Call]] = {}
    stored: set[ChainKey] = set()
    for row in calls:
        call = row.record
        if call.session_id is None or not is_chained(call):
            continue
        key = (call.project_id, call.session_id, call.tool)
        batches.setdefault(key, []).append(_as_folded(row))
        if conversations[call.project_id, call.session_id].stored:
            stored.add(key)
    for batch in batches.values():
        batch.sort(key=attrgetter("key"))

    def settle(key: ChainKey, chain: Chain) -> None:
        project_id, session_id, tool = key
        conversations[project_id, session_id].settle(tool, chain)
        written[project_id, chain.chain_id] = (key, chain)

    places = continue_chains(conn, batches, stored=stored, settle=settle)
    for row in calls:
        row.place = places.get((row.record.project_id, row.record.event_id), row.place)
    return written


def _as_folded(row: rows.CallRow) -> Call:
    call, failure = row.record, row.record.failure
    return Call(
        call.event_id,
        call.started_at,
        call.occurred_at,
        call.seq,
        call.turn,
        call.success,
        call.time_source,
        "" if failure is None else failure.code,
        None if failure is None else failure.category,
        () if failure is None else failure.fields,
        row.message_id,
        call.args_fingerprint,
        call.tokens,
        (call.agent, call.model, call.environment, call.release, call.variant),
    )
