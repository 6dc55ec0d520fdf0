"""Round trips: how far chains go, where they end, and which tools, codes and models cost most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, RowMapping, case, func, select

from toolfault_collector.tables import chain
from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.queries.conditions import chains_of
from toolfault_dashboard.queries.once import once
from toolfault_dashboard.queries.rows import OUTCOMES, ChainGroup, Funnel, RoundTripBin, RoundTrips
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search.outcomes import outcome_at

__all__ = ["CHAIN_GROUPS", "chains_by", "chains_by_argument", "combinations", "round_trips"]

CHAIN_GROUPS: Final = {
    "tool": "tool",
    "code": "first_code",
    "field": "first_field",
    "model": "model",
    "release": "release",
    "agent": "agent",
    "variant": "variant",
}
"""What chains can be grouped by, and the column of it."""


_SUMMED: Final = (
    "round_trips",
    "failures",
    "identical_repeats",
    "time_lost_ms",
    "tokens_lost",
)
_COUNTED: Final = ("first_retry_fix", "serial_discovery", "repeat_confusion")


def round_trips(conn: Connection, scope: Scope) -> RoundTrips:
    """Return the funnel, the distribution and the groups of the chains in the scope."""
    # The chains are read once; their combinations are few, and added up here.
    rows = combinations(conn, scope, ("tool", "code", "model"), trips=True)
    return RoundTrips(
        funnel=_funnel(rows),
        round_trips=sum(int(row["round_trips"]) for row in rows),
        distribution=_distribution(rows),
        by_tool=_groups(rows, "tool"),
        by_code=_groups(rows, "code"),
        by_model=_groups(rows, "model"),
    )


def chains_by(conn: Connection, scope: Scope, by: str) -> tuple[ChainGroup, ...]:
    """Group the chains of the scope by a key of ``CHAIN_GROUPS``, most round trips first."""
    return _groups(combinations(conn, scope, (by,)), by)


def chains_by_argument(conn: Connection, scope: Scope) -> tuple[tuple[str, ChainGroup], ...]:
    """Group the chains of the scope by tool and first field: which argument costs most.

    Returns:
        Pairs of a tool and the group of one of its fields, most round trips first; the field is
        "" where the first failure named none.
    """
    named: defaultdict[tuple[str, str], list[RowMapping]] = defaultdict(list)
    for row in combinations(conn, scope, ("tool", "field")):
        named[row["tool"] or "", row["field"] or ""].append(row)
    groups = [(tool, _group(field, members)) for (tool, field), members in named.items()]
    return tuple(
        sorted(
            groups, key=lambda each: (-each[1].round_trips, -each[1].chains, each[0], each[1].name)
        )
    )


@once
def combinations(
    conn: Connection, scope: Scope, keys: tuple[str, ...], *, trips: bool = False
) -> Sequence[RowMapping]:
    """Count the chains of the scope by outcome, *keys* and, if wanted, round trips (``trips``)."""
    columns = [chain.c[CHAIN_GROUPS[key]].label(key) for key in keys]
    if trips:
        columns.append(chain.c.round_trips.label("trips"))
    inner = (
        select(
            outcome_at(scope.now).label("outcome"),
            *columns,
            *(chain.c[name] for name in (*_SUMMED, *_COUNTED)),
        )
        .where(chains_of(scope))
        .offset(0)  # or SQLite would work the outcome out twice, to group by it and to show it
        .subquery()
    )
    grouped = [inner.c.outcome, *(inner.c[column.name] for column in columns)]
    statement = select(
        *grouped,
        func.count().label("chains"),
        *(func.sum(inner.c[name]).label(name) for name in _SUMMED),
        *(func.count(case((inner.c[name], 1))).label(name) for name in _COUNTED),
    ).group_by(*grouped)
    return conn.execute(statement).mappings().all()


def _groups(rows: Sequence[RowMapping], key: str) -> tuple[ChainGroup, ...]:
    named: defaultdict[str, list[RowMapping]] = defaultdict(list)
    for row in rows:
        named[row[key] or ""].append(row)
    groups = [_group(name, members) for name, members in named.items()]
    return tuple(sorted(groups, key=lambda group: (-group.round_trips, -group.chains, group.name)))


def _group(name: str, rows: Sequence[RowMapping]) -> ChainGroup:
    outcomes = _outcomes(rows)
    chains = outcomes.total()
    tokens = [int(row["tokens_lost"]) for row in rows if row["tokens_lost"] is not None]
    sums = {
        column: sum(int(row[column]) for row in rows)
        for column in ("round_trips", "failures", "identical_repeats", *_COUNTED)
    }
    return ChainGroup(
        name=name,
        chains=chains,
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
        **sums,
        time_lost_ms=sum(float(row["time_lost_ms"]) for row in rows),
        tokens_lost=sum(tokens) if tokens else None,
        recovery_rate=rate(outcomes["recovered"], chains - outcomes["open"]),
    )


def _outcomes(rows: Iterable[RowMapping]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows:
        found[row["outcome"]] += row["chains"]
    return found


def _funnel(rows: Sequence[RowMapping]) -> Funnel:
    outcomes = _outcomes(rows)
    return Funnel(
        chains=outcomes.total(),
        retried=sum(row["chains"] for row in rows if row["trips"] > 0),
        first_retry_fix=sum(row["first_retry_fix"] for row in rows),
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
    )


def _distribution(rows: Sequence[RowMapping]) -> tuple[RoundTripBin, ...]:
    by_trips: defaultdict[int, list[RowMapping]] = defaultdict(list)
    for row in rows:
        by_trips[row["trips"]].append(row)
    if not by_trips:
        return ()
    highest = max(by_trips)
    wanted = range(highest + 1) if highest <= _LONGEST_AXIS else sorted(by_trips)
    return tuple(_bin(trips, _outcomes(by_trips.get(trips, ()))) for trips in wanted)


def _bin(trips: int, outcomes: Counter[str]) -> RoundTripBin:
    return RoundTripBin(
        round_trips=trips,
        chains=outcomes.total(),
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
    )


_LONGEST_AXIS: Final = 100
"""Above this, round trips that no chain took are left out of the distribution."""
