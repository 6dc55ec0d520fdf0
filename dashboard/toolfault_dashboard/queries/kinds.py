"""Kinds of failure: those of one signature as one row, with when they were seen."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from sqlalchemy import Connection, case, func, select

from toolfault_collector.storage.tables import signature, tool_call
from toolfault_dashboard.queries.buckets import Bucket, bucket_of, bucket_start, buckets
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.parts import in_parts
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, Pattern

__all__ = ["KIND_ORDERS", "KindOrder", "KindRow", "Kinds", "fields_in_words", "kinds"]

KindOrder = Literal["failures", "first", "last"]
KIND_ORDERS: Final[tuple[KindOrder, ...]] = get_args(KindOrder)


@dataclass(frozen=True, slots=True)
class KindRow:
    """The failures of the scope that have one signature."""

    fingerprint: str  # "" where a failure has none
    tool: str
    code: str
    fields: str  # arguments and their issue codes, in words; "" where none is named
    query: str  # clauses that select exactly these failures within the scope
    failures: int
    first_at: int | None  # ever seen, not only in the scope; None where the source has no times
    last_at: int | None  # last failure within the scope
    counts: tuple[int, ...]  # failures per bucket of ``Kinds.starts``


@dataclass(frozen=True, slots=True)
class Kinds:
    """Kinds of failure, in the order that was asked for."""

    rows: tuple[KindRow, ...]
    groups: int  # kinds in all; more than ``rows`` when the table was cut
    failures: int
    bucket: Bucket
    starts: tuple[int, ...]  # start of each bucket


# Of a signature's id: failures, first and last of them that has a time.
_Counted = dict[int | None, tuple[int, int | None, int | None]]


def kinds(
    conn: Connection,
    scope: Scope,
    *,
    order: KindOrder = "failures",
    limit: int | None = None,
    drawn: bool = True,
) -> Kinds:
    """Count the failures of the scope by signature. Each is counted once, as it was sent.

    Args:
        conn: Open connection.
        scope: What to count.
        order: Most failures first, or those that were first or last seen last.
        limit: Most rows; None returns all.
        drawn: Whether the rows have counts per bucket.
    """
    counted = _counted(conn, scope)
    known = _signatures(conn, scope, counted)
    ranked = sorted(counted, key=lambda each: _rank(order, counted[each], known.get(each)))
    shown = tuple(ranked if limit is None else ranked[:limit])
    bucket, starts = _axis(scope, counted.values() if drawn else ())
    counts = _counts(conn, scope, shown, bucket, starts)
    return Kinds(
        rows=tuple(_row(counted[each], known.get(each), counts[each]) for each in shown),
        groups=len(counted),
        failures=sum(failures for failures, _, _ in counted.values()),
        bucket=bucket,
        starts=starts,
    )


def _counted(conn: Connection, scope: Scope) -> _Counted:
    found: _Counted = {}
    for part in in_parts(conn, scope, _by_signature):
        for number, (failures, first, last) in part.items():
            known = found.get(number, (0, None, None))
            found[number] = (
                known[0] + failures,
                min((each for each in (known[1], first) if each is not None), default=None),
                max((each for each in (known[2], last) if each is not None), default=None),
            )
    return found


def _by_signature(conn: Connection, scope: Scope) -> _Counted:
    timed = case((tool_call.c.time_source != "none", tool_call.c.occurred_at))
    rows = conn.execute(
        select(tool_call.c.signature_id, func.count(), func.min(timed), func.max(timed))
        .where(failures_of(scope))
        .group_by(tool_call.c.signature_id)
    )
    return {number: (failures, first, last) for number, failures, first, last in rows}


def _signatures(conn: Connection, scope: Scope, counted: _Counted) -> dict[int | None, Any]:
    """Return the signatures of the project, or those that were counted where these are few."""
    table = signature.c
    statement = select(
        table.id, table.fingerprint, table.tool, table.code, table.fields, table.first_at
    ).where(table.project_id == scope.project_id)
    if len(counted) <= 500:
        statement = statement.where(table.id.in_([each for each in counted if each is not None]))
    return {row.id: row for row in conn.execute(statement)}


def _rank(
    order: KindOrder, counted: tuple[int, int | None, int | None], row: Any
) -> tuple[float, int, str]:
    failures, first, last = counted
    name = "" if row is None else row.fingerprint
    if order == "failures":
        return (-failures, -(last or 0), name)
    moment = last if order == "last" else None if first is None or row is None else row.first_at
    return (-(moment or 0), -failures, name)


def _axis(
    scope: Scope, counted: Iterable[tuple[int, int | None, int | None]]
) -> tuple[Bucket, tuple[int, ...]]:
    """Return the buckets of the window; where it is open, from the first failure to the last."""
    spans = [(first, last) for _, first, last in counted if first is not None and last is not None]
    if not spans:
        return "day", ()
    earliest, latest = min(first for first, _ in spans), max(last for _, last in spans)
    since, until = window(scope)
    begin = earliest if since is None else since
    end = until - 1 if until is not None else scope.now if since is not None else latest
    return buckets(begin, max(begin, end), None, first=earliest, last=latest)


def _counts(
    conn: Connection,
    scope: Scope,
    shown: Sequence[int | None],
    bucket: Bucket,
    starts: tuple[int, ...],
) -> dict[int | None, tuple[int, ...]]:
    named = tuple(each for each in shown if each is not None)
    found: defaultdict[tuple[int, int], int] = defaultdict(int)
    if starts and named:
        for part in in_parts(conn, scope, _per_bucket, bucket, named):
            for (number, start), failures in part.items():
                found[number, start] += failures
    return {
        each: tuple(0 if each is None else found.get((each, start), 0) for start in starts)
        for each in shown
    }


def _per_bucket(
    conn: Connection, scope: Scope, bucket: Bucket, named: tuple[int, ...]
) -> dict[tuple[int, int], int]:
    number = bucket_of(tool_call.c.occurred_at, bucket).label("bucket")
    rows = conn.execute(
        select(tool_call.c.signature_id, number, func.count())
        .where(
            failures_of(scope),
            tool_call.c.time_source != "none",
            tool_call.c.signature_id.in_(named),
        )
        .group_by(tool_call.c.signature_id, number)
    )
    return {(each, bucket_start(at, bucket)): failures for each, at, failures in rows}


def _row(counted: tuple[int, int | None, int | None], row: Any, counts: tuple[int, ...]) -> KindRow:
    failures, first, last = counted
    fingerprint = "" if row is None else row.fingerprint
    return KindRow(
        fingerprint=fingerprint,
        tool="" if row is None else row.tool,
        code="" if row is None else row.code,
        fields="" if row is None else fields_in_words(row.fields),
        query=str(Clause("signature", (Pattern((fingerprint,)),))),
        failures=failures,
        first_at=None if first is None or row is None else row.first_at,
        last_at=last,
        counts=counts,
    )


def fields_in_words(fields: str) -> str:
    """Write the arguments of a signature: ``port``, or ``port, items.*.name``."""
    names = dict.fromkeys(str(name) for name, _ in json.loads(fields) if name)
    return ", ".join(names)
