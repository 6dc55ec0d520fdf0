"""Failures broken down: a property of calls alone, and tool by that property."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args

from sqlalchemy import Connection, func, literal, select, union_all

from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.weights import Amount, Amounts, weighted_rate
from toolfault_dashboard.queries.chains.round_trips import chains_by
from toolfault_dashboard.queries.conditions import calls_of, counts_of, failures_of
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.counting.sampling_weights import added, amount, counted, sampling
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.rows import ChainGroup
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import arms_of

__all__ = [
    "BREAKDOWNS",
    "MINIMUM_CALLS",
    "Breakdown",
    "BreakdownCell",
    "BreakdownGroup",
    "BreakdownKey",
    "Told",
    "breakdown",
    "rated_pairs",
    "together",
]

_What = TypeVar("_What")
Told = Sequence[tuple[str, str, _What, Amount]]
"""Tool, model, what calls of both told, and how many told it."""

BreakdownKey = Literal["model", "agent", "release", "environment", "variant"]
BREAKDOWNS: Final[tuple[BreakdownKey, ...]] = get_args(BreakdownKey)
"""What every call may carry, so that each value has calls of its own to divide by."""

MINIMUM_CALLS: Final = 10
"""Calls below which a cell is not compared with its neighbours."""


@dataclass(frozen=True, slots=True)
class BreakdownGroup:
    """The calls that carry one value."""

    name: str  # "" where calls carry none
    calls: int
    failures: int
    rate: Rate
    chains: ChainGroup | None  # None without a chain


@dataclass(frozen=True, slots=True)
class BreakdownCell:
    """The calls of one tool that carry one value."""

    tool: str
    name: str
    calls: int
    failures: int
    rate: Rate
    worst: bool  # of the tool's values with enough calls, that with the highest lower bound;
    # none where there are not two of them, or all have the same rate


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Failures by one key, and by tool and that key; most failures first."""

    by: BreakdownKey
    groups: tuple[BreakdownGroup, ...]
    tools: tuple[str, ...]
    cells: tuple[BreakdownCell, ...]


# Tool, value, calls and failures.
_Counted = list[tuple[str, str, Amount, Amount]]


def breakdown(conn: Connection, scope: Scope, by: BreakdownKey) -> Breakdown:
    """Count calls and failures of the scope by *by*, and by tool and *by*.

    A conversation that takes part in several experiments counts under each of its arms.
    """
    calls, failures = _by_pair(conn, scope, by)
    per_name, failed_of_name, failed_of_tool = Amounts(), Amounts(), Amounts()
    for (tool, name), called in calls.items():
        per_name.add(name, called)
        failed_of_name.add(name, failures[tool, name])
        failed_of_tool.add(tool, failures[tool, name])
    names = sorted(per_name, key=lambda name: (-failed_of_name[name].weight, name))
    chains = {group.name: group for group in _chains(conn, scope, by)}
    tools = tuple(sorted(failed_of_tool, key=lambda tool: (-failed_of_tool[tool].weight, tool)))
    return Breakdown(
        by=by,
        groups=tuple(
            BreakdownGroup(
                name=name,
                calls=per_name[name].whole,
                failures=failed_of_name[name].whole,
                rate=weighted_rate(failed_of_name[name], per_name[name]),
                chains=chains.get(name),
            )
            for name in names
        ),
        tools=tools,
        cells=tuple(cell for tool in tools for cell in _cells(tool, names, calls, failures)),
    )


def rated_pairs(
    conn: Connection,
    scope: Scope,
    count: Callable[[Connection, Scope], Told[_What]],
    *,
    many: int | None = None,
) -> Iterator[tuple[str, str, _What, int, Rate]]:
    """Yield tool, model and what was counted; its calls, and their rate of all calls of the pair.

    Args:
        conn: Open connection.
        scope: Which calls.
        count: Counts a segment of them; a function of a module.
        many: See `in_segments`.
    """
    found = together(in_segments(conn, scope, count, together=together, many=many, stored=True))
    calls = _by_pair(conn, scope, "model")[0] if found else {}
    for tool, model, what, had in found:
        yield tool, model, what, had.whole, weighted_rate(had, calls.get((tool, model), Amount()))


def together(segments: Sequence[Told[_What]]) -> Told[_What]:
    """Add counts up."""
    found: dict[tuple[str, str, _What], Amount] = {}
    for segment in segments:
        for tool, model, what, had in segment:
            key = (tool, model, what)
            found[key] = found.get(key, Amount()) + had
    return [(*key, had) for key, had in found.items()]


@memoised
def _by_pair(
    conn: Connection, scope: Scope, by: BreakdownKey
) -> tuple[dict[tuple[str, str], Amount], dict[tuple[str, str], Amount]]:
    """Return calls and failures by tool and value."""
    calls: dict[tuple[str, str], Amount] = {}
    failures: dict[tuple[str, str], Amount] = {}
    segments = in_segments(conn, scope, _counted, by, together=_together, stored=by == "model")
    for segment in segments:
        for tool, whole, called, failed in segment:
            for name in arms_of(whole) if by == "variant" else (whole,):
                pair = (tool, name)
                calls[pair] = calls.get(pair, Amount()) + called
                failures[pair] = failures.get(pair, Amount()) + failed
    return calls, failures


def _chains(conn: Connection, scope: Scope, by: BreakdownKey) -> Sequence[ChainGroup]:
    # Chains of several arms at once cannot be told apart here without counting them twice.
    return () if by == "variant" else chains_by(conn, scope, by)


def _cells(
    tool: str,
    names: Sequence[str],
    calls: dict[tuple[str, str], Amount],
    failures: dict[tuple[str, str], Amount],
) -> list[BreakdownCell]:
    rates = {
        name: weighted_rate(failures[tool, name], calls[tool, name])
        for name in names
        if calls.get((tool, name), Amount()).rows
    }
    compared = {name: rate.low or 0.0 for name, rate in rates.items() if rate.n >= MINIMUM_CALLS}
    alike = len({rates[name].value for name in compared}) < 2
    worst = None if alike else max(compared, key=lambda name: compared[name])
    return [
        BreakdownCell(
            tool=tool,
            name=name,
            calls=calls[tool, name].whole,
            failures=failures[tool, name].whole,
            rate=rate,
            worst=name == worst and compared[name] > 0.0,
        )
        for name, rate in rates.items()
    ]


def _counted(conn: Connection, scope: Scope, by: str) -> _Counted:
    sampled = sampling(conn, scope.project_id)
    own = (tool_call.c.tool, func.coalesce(tool_call.c[by], "").label("name"))
    folded = (call_counts.c.tool, func.coalesce(call_counts.c[by], "").label("name"))
    called: Any = literal("call").label("kind")
    failed: Any = literal("failure").label("kind")
    rows = conn.execute(
        union_all(
            select(called, *own, *counted(sampled=sampled.calls))
            .where(calls_of(scope))
            .group_by(*own),
            select(called, *folded, *added(call_counts.c.calls, sampled=sampled.calls))
            .where(counts_of(scope), call_counts.c.tool.is_not(None))
            .group_by(*folded),
            select(failed, *own, *counted(sampled=sampled.calls))
            .where(failures_of(scope))
            .group_by(*own),
        )
    )
    found: dict[tuple[str, str], tuple[Amount, Amount]] = {}
    for kind, tool, name, *numbers in rows:
        calls, failures = found.get((tool, name), (Amount(), Amount()))
        each = amount(numbers)
        found[tool, name] = (calls + each, failures) if kind == "call" else (calls, failures + each)
    return [(*pair, *both) for pair, both in found.items()]


def _together(segments: Sequence[_Counted], _by: str) -> _Counted:
    found: dict[tuple[str, str], tuple[Amount, Amount]] = {}
    for segment in segments:
        for tool, name, called, failed in segment:
            calls, failures = found.get((tool, name), (Amount(), Amount()))
            found[tool, name] = (calls + called, failures + failed)
    return [(*pair, *both) for pair, both in found.items()]
