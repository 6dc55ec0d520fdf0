"""Records as rows: tuples in the order of the columns named beside them.

Most members of a record carry the name of their column, so a row is read from it by these names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import msgspec
from sqlalchemy import Table

from toolfault_collector.chains.fold import Place
from toolfault_collector.protocol.records import (
    CallRecord,
    ChangeRecord,
    CountsRecord,
    EndRecord,
    FailureRecord,
    IssueRecord,
)
from toolfault_collector.storage.database.bulk import columns
from toolfault_collector.storage.tables import (
    call_counts,
    change,
    conversation_end,
    issue,
    tool_call,
)

__all__ = [
    "CALL_COLUMNS",
    "CHANGE_COLUMNS",
    "COUNTS_COLUMNS",
    "END_COLUMNS",
    "ISSUE_COLUMNS",
    "CallRow",
    "Row",
    "call_rows",
    "change_rows",
    "counts_rows",
    "end_rows",
    "issue_rows",
]

Row = tuple[Any, ...]
_NO_PLACE: Final = Place()


@dataclass(slots=True)
class CallRow:
    """One call in one transaction: its record, and what the store finds out about it."""

    record: CallRecord
    id: int
    signature_id: int | None = None
    message_id: int | None = None
    place: Place = _NO_PLACE


def _members(record: type[msgspec.Struct], table: Table) -> tuple[str, ...]:
    """Return the members of *record* that are columns of *table* as they are."""
    return tuple(
        [name for name in record.__struct_fields__ if name in table.c and name not in _AS_JSON]
    )


# Members of a record that are no text yet.
_AS_JSON: Final = ("extra", "flags")
_OF_CALL: Final = _members(CallRecord, tool_call)
_OF_FAILURE: Final = _members(FailureRecord, tool_call)
_OF_ISSUE: Final = _members(IssueRecord, issue)
_OF_COUNTS: Final = _members(CountsRecord, call_counts)
_OF_END: Final = tuple([name for name in _members(EndRecord, conversation_end) if name != "calls"])
_OF_CHANGE: Final = _members(ChangeRecord, change)
CALL_COLUMNS: Final = (
    *columns("id signature_id message_id extra flags"),
    *Place._fields,
    *_OF_CALL,
    *_OF_FAILURE,
)
ISSUE_COLUMNS: Final = (*columns("project_id tool_call_id tool occurred_at"), *_OF_ISSUE)
COUNTS_COLUMNS: Final = (*_OF_COUNTS, "flags")
END_COLUMNS: Final = (*_OF_END, "calls", "flags")
CHANGE_COLUMNS: Final = (*_OF_CHANGE, "flags")

_call: Final = attrgetter(*_OF_CALL)
_failure: Final = attrgetter(*_OF_FAILURE)
_issue: Final = attrgetter(*_OF_ISSUE)
_counts: Final = attrgetter(*_OF_COUNTS)
_end: Final = attrgetter(*_OF_END)
_change: Final = attrgetter(*_OF_CHANGE)
_NO_FAILURE: Final = (None,) * len(_OF_FAILURE)


def call_rows(calls: Iterable[CallRow]) -> list[Row]:
    """Return the rows of ``tool_call``, in the order of `CALL_COLUMNS`."""
    return [
        (
            each.id,
            each.signature_id,
            each.message_id,
            _json(each.record.extra) if each.record.extra else None,
            _json(each.record.flags) if each.record.flags else None,
            *each.place,
            *_call(each.record),
            *(_NO_FAILURE if each.record.failure is None else _failure(each.record.failure)),
        )
        for each in calls
    ]


def issue_rows(calls: Iterable[CallRow]) -> list[Row]:
    """Return the rows of ``issue`` of the failed ones, in the order of `ISSUE_COLUMNS`."""
    return [
        (
            each.record.project_id,
            each.id,
            each.record.tool,
            each.record.occurred_at,
            *_issue(each_issue),
        )
        for each in calls
        if each.record.failure is not None
        for each_issue in each.record.failure.issues
    ]


def counts_rows(records: Iterable[CountsRecord]) -> list[Row]:
    """Return the rows of ``call_counts``, in the order of `COUNTS_COLUMNS`."""
    return [(*_counts(each), _json(each.flags)) for each in records]


def end_rows(records: Iterable[EndRecord]) -> list[Row]:
    """Return the rows of ``conversation_end``, in the order of `END_COLUMNS`."""
    return [
        (*_end(each), msgspec.json.encode(each.calls).decode(), _json(each.flags))
        for each in records
    ]


def change_rows(records: Iterable[ChangeRecord]) -> list[Row]:
    """Return the rows of ``change``, in the order of `CHANGE_COLUMNS`."""
    return [(*_change(each), _json(each.flags)) for each in records]


def _json(value: Any) -> str | None:
    """Return *value* as JSON text, and nothing (none, empty) as SQL null."""
    return msgspec.json.encode(value).decode() if value else None
