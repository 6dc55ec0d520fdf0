"""Kinds of failure: those of one signature as one row, with when they were seen."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, get_args

from sqlalchemy import ColumnElement, Connection, and_, case, func, select

from toolfault_collector.storage.tables import chain, kind_state, signature, tool_call
from toolfault_dashboard.analysis.weights import whole
from toolfault_dashboard.queries.buckets import Bucket, bucket_of, bucket_start, buckets
from toolfault_dashboard.queries.chains.spent import calls_spent
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.counting.sampling_weights import sampling, weight
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import seen, sees
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, Pattern
from toolfault_dashboard.search.states import kinds_with_state, state_at

__all__ = [
    "KIND_ORDERS",
    "KindOrder",
    "KindRow",
    "Kinds",
    "fields_in_words",
    "ignored_kinds",
    "kinds",
    "states_of",
]

KindOrder = Literal["failures", "calls", "first", "last"]
KIND_ORDERS: Final[tuple[KindOrder, ...]] = get_args(KindOrder)


@dataclass(frozen=True, slots=True)
class KindRow:
    """The failures of the scope that have one signature."""

    fingerprint: str  # "" where a failure has none
    tool: str
    code: str
    fields: str  # arguments, in words; "" where none is named
    exception_type: str | None  # "" where no exception was behind it; None: not for the reader
    state: str  # new, open, acknowledged, fixed, ignored or regressed; "" without a fingerprint
    owner: str
    note: str
    query: str  # clauses that select exactly these failures within the scope
    failures: int
    calls_spent: int  # of the chains that these failures opened
    first_at: int | None  # ever seen, not only in the scope; None where the source has no times
    last_at: int | None  # last failure within the scope
    fixed_at: int | None
    fixed_by: str  # label of the change that fixed it; "" where none was named
    ignore_ends_at: int | None
    ignore_ends_after: int | None  # further failures that end the ignoring
    counts: tuple[int, ...]  # failures per bucket of ``Kinds.starts``


@dataclass(frozen=True, slots=True)
class Kinds:
    """Kinds of failure, in the order that was asked for."""

    rows: tuple[KindRow, ...]
    groups: int  # kinds in all; more than ``rows`` when the table was cut
    failures: int
    bucket: Bucket
    starts: tuple[int, ...]  # start of each bucket


class _Sum(NamedTuple):
    """What was counted of one signature."""

    failures: int = 0
    first: int | None = None  # first and last failure that has a time
    last: int | None = None
    spent: float = 0.0


_MANY: Final = 10_000
"""Kinds that are looked up at once: less than a driver takes as parameters (32,766)."""

_Counted = dict[int | None, _Sum]  # by the signature's id


def kinds(
    conn: Connection,
    scope: Scope,
    *,
    order: KindOrder = "failures",
    limit: int | None = None,
    skip: int = 0,
    drawn: bool = True,
) -> Kinds:
    """Count the failures of the scope by signature. Each is counted once, as it was sent.

    Args:
        conn: Open connection.
        scope: What to count.
        order: Most failures or calls spent first, or those that were first or last seen last.
        limit: Most rows; None returns all.
        skip: Rows of this order to leave out before them.
        drawn: Whether the rows have counts per bucket.
    """
    counted = _counted(conn, scope)
    known = _signatures(conn, scope, counted)
    ranked = sorted(counted, key=lambda each: _rank(order, counted[each], known.get(each)))
    shown = tuple(ranked[skip:] if limit is None else ranked[skip : skip + limit])
    bucket, starts = _axis(scope, counted.values() if drawn else ())
    counts = _counts(conn, scope, shown, bucket, starts)
    return Kinds(
        rows=tuple(_row(scope, counted[each], known.get(each), counts[each]) for each in shown),
        groups=len(counted),
        failures=sum(each.failures for each in counted.values()),
        bucket=bucket,
        starts=starts,
    )


def states_of(conn: Connection, scope: Scope, numbers: Collection[int]) -> dict[int, str]:
    """Return the state of each of some kinds, by the number of its signature."""
    wanted = sorted(numbers)
    found: dict[int, str] = {}
    for start in range(0, len(wanted), _MANY):
        found |= _states(conn, scope, signature.c.id.in_(wanted[start : start + _MANY]))
    return found


def ignored_kinds(conn: Connection, scope: Scope) -> frozenset[int]:
    """Return the numbers of the signatures whose kind is ignored.

    None where the query of *scope* asks for states itself: then it says what is wanted.
    """
    if scope.query.has("state"):
        return frozenset()
    found = _states(conn, scope, kind_state.c.state == "ignored")
    return frozenset(number for number, state in found.items() if state == "ignored")


def _states(conn: Connection, scope: Scope, which: ColumnElement[bool]) -> dict[int, str]:
    rows = conn.execute(
        select(signature.c.id, state_at(scope.now))
        .select_from(kinds_with_state())
        .where(signature.c.project_id == scope.project_id, which)
    )
    return {int(number): str(state) for number, state in rows}


def _counted(conn: Connection, scope: Scope) -> _Counted:
    found: _Counted = {}
    sampled = sampling(conn, scope.project_id).failures
    for segment in in_segments(conn, scope, _by_signature, sampled):
        for number, each in segment.items():
            known = found.get(number, _Sum())
            found[number] = _Sum(
                known.failures + each.failures,
                min((at for at in (known.first, each.first) if at is not None), default=None),
                max((at for at in (known.last, each.last) if at is not None), default=None),
                known.spent + each.spent,
            )
    return found


def _by_signature(conn: Connection, scope: Scope, sampled: bool) -> _Counted:
    timed = case((tool_call.c.time_source != "none", tool_call.c.occurred_at))
    opened = and_(
        tool_call.c.chain_id == tool_call.c.event_id,
        chain.c.project_id == tool_call.c.project_id,
        chain.c.chain_id == tool_call.c.chain_id,
    )
    spent = weight() * calls_spent() if sampled else calls_spent()
    rows = conn.execute(
        select(
            tool_call.c.signature_id,
            func.count(),
            func.min(timed),
            func.max(timed),
            func.coalesce(func.sum(spent), 0),
        )
        .select_from(tool_call.outerjoin(chain, opened))
        .where(failures_of(scope))
        .group_by(tool_call.c.signature_id)
    )
    return {
        number: _Sum(failures, first, last, float(calls))
        for number, failures, first, last, calls in rows
    }


def _signatures(conn: Connection, scope: Scope, counted: _Counted) -> dict[int | None, Any]:
    """Return the signatures of the project, or those that were counted where these are few."""
    table, decided = signature.c, kind_state.c
    statement = (
        select(
            *(table[name] for name in ("id", "fingerprint", "tool", "code", "fields")),
            table.first_at,
            seen(scope, signature, "exception_type"),
            state_at(scope.now).label("state"),
            *(decided[name] for name in ("owner", "note", "fixed_at", "fixed_label")),
            *(decided[name] for name in ("ignored_until", "ignored_count")),
        )
        .select_from(kinds_with_state())
        .where(table.project_id == scope.project_id)
    )
    if len(counted) <= 500:
        statement = statement.where(table.id.in_([each for each in counted if each is not None]))
    return {row.id: row for row in conn.execute(statement)}


def _rank(order: KindOrder, counted: _Sum, row: Any) -> tuple[float, int, str]:
    name = "" if row is None else row.fingerprint
    if order == "failures":
        return (-counted.failures, -(counted.last or 0), name)
    if order == "calls":
        # Sums that are equal differ by the order of additions.
        return (-round(counted.spent, 6), -counted.failures, name)
    moment = counted.last if order == "last" else _first_at(counted, row)
    return (-(moment or 0), -counted.failures, name)


def _first_at(counted: _Sum, row: Any) -> int | None:
    return None if counted.first is None or row is None else row.first_at


def _axis(scope: Scope, counted: Iterable[_Sum]) -> tuple[Bucket, tuple[int, ...]]:
    """Return the buckets of the window; where it is open, from the first failure to the last."""
    spans = [(e.first, e.last) for e in counted if e.first is not None and e.last is not None]
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
        for segment in in_segments(conn, scope, _per_bucket, bucket, named):
            for (number, start), failures in segment.items():
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


def _row(scope: Scope, counted: _Sum, row: Any, counts: tuple[int, ...]) -> KindRow:
    fingerprint = "" if row is None else row.fingerprint
    return KindRow(
        fingerprint=fingerprint,
        tool="" if row is None else row.tool,
        code="" if row is None else row.code,
        fields="" if row is None else fields_in_words(row.fields),
        exception_type=_exception(scope, row),
        state="" if row is None else row.state,
        owner=(row and row.owner) or "",
        note=(row and row.note) or "",
        query=str(Clause("signature", (Pattern((fingerprint,)),))),
        failures=counted.failures,
        calls_spent=whole(counted.spent),
        first_at=_first_at(counted, row),
        last_at=counted.last,
        fixed_at=row and row.fixed_at,
        fixed_by=(row and row.fixed_label) or "",
        ignore_ends_at=row and row.ignored_until,
        ignore_ends_after=row and row.ignored_count,
        counts=counts,
    )


def _exception(scope: Scope, row: Any) -> str | None:
    if not sees(scope, "exception_type"):
        return None
    return (row and row.exception_type) or ""


def fields_in_words(fields: str) -> str:
    """Write the arguments of a signature: ``port``, or ``port, items.*.name``."""
    names = dict.fromkeys(str(name) for name, _ in json.loads(fields) if name)
    return ", ".join(names)
