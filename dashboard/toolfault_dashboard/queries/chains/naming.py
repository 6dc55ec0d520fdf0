"""What named the conversations of failures, and which failures cannot be chained, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, select

from toolfault_collector.protocol.ladder import EXPLICIT, NONE
from toolfault_collector.storage.chains.rungs import rung
from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.scope import Scope

__all__ = ["ConversationRungs", "RungRow", "conversation_rungs"]

_MEANINGS: Final = {
    EXPLICIT: "the agent's own id of it",
    "framework": "the framework's thread or run",
    "baggage": "OpenTelemetry baggage",
    "meta": "ids that the protocol carries",
    "trace": "the trace, which may be less than a conversation",
    "handle": "a handle that the client sends back",
    NONE: "nothing",
}
_UNNAMED: Final = "nothing named the conversation"
_ONE_OF_MANY: Final = "the project has too many different tools"

_Group = tuple[str, str, str, bool]


@dataclass(frozen=True, slots=True)
class RungRow:
    """The failures whose conversation one rung of the ladder named, to one framework."""

    rung: str  # explicit | framework | baggage | meta | trace | handle | none, or a sender's own
    meaning: str  # of the rung, in words; empty for a sender's own
    framework: str  # whose integration saw the call; empty where none did
    side: str  # agent | server; empty where the sender does not say
    chained: bool
    because: str  # why they cannot be chained; empty where they are
    failures: int


@dataclass(frozen=True, slots=True)
class ConversationRungs:
    """What named the conversations of the failures of a scope; ``chained`` of them are in chains.

    Failures are counted as they are stored: a sampled one is one.
    """

    rows: tuple[RungRow, ...]  # most failures first
    failures: int
    chained: int

    @property
    def unchained(self) -> tuple[tuple[str, int], ...]:
        """Why failures cannot be chained, and how many of them, most first."""
        found: Counter[str] = Counter()
        for row in self.rows:
            if not row.chained:
                found[row.because] += row.failures
        return tuple(found.most_common())


def conversation_rungs(conn: Connection, scope: Scope) -> ConversationRungs:
    """Count the failures of *scope* by what named their conversation and by framework."""
    groups = _together(in_segments(conn, scope, _of_rows, together=_together, stored=True))
    rows = [_row(*group, failures) for group, failures in groups]
    rows.sort(key=lambda row: (-row.failures, row.rung, row.framework, row.side, row.because))
    return ConversationRungs(
        rows=tuple(rows),
        failures=sum(row.failures for row in rows),
        chained=sum(row.failures for row in rows if row.chained),
    )


def _row(name: str, framework: str, side: str, chained: bool, failures: int) -> RungRow:
    because = "" if chained else _UNNAMED if name == NONE else _ONE_OF_MANY
    return RungRow(name, _MEANINGS.get(name, ""), framework, side, chained, because, failures)


def _of_rows(conn: Connection, scope: Scope) -> list[tuple[_Group, int]]:
    call = tool_call.c
    told: list[ColumnElement[Any]] = [
        rung(tool_call).label("rung"),
        func.coalesce(call.framework, "").label("framework"),
        func.coalesce(call.side, "").label("side"),
        call.chain_id.is_not(None).label("chained"),
    ]
    found = select(*told, func.count().label("failures")).where(failures_of(scope)).group_by(*told)
    return [
        ((row.rung, row.framework, row.side, bool(row.chained)), row.failures)
        for row in conn.execute(found)
    ]


def _together(segments: Sequence[list[tuple[_Group, int]]]) -> list[tuple[_Group, int]]:
    found: Counter[_Group] = Counter()
    for segment in segments:
        for group, failures in segment:
            found[group] += failures
    return list(found.items())
