"""Round trips: how far chains go, where they end, and which tools, codes and models cost most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, Select, Subquery, case, func, select

from toolfault_collector.storage.tables import chain
from toolfault_dashboard.analysis.clusters import Moments
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.weights import Amount, total, weighted_rate, whole
from toolfault_dashboard.queries.chains.spent import calls_spent
from toolfault_dashboard.queries.conditions import chains_of
from toolfault_dashboard.queries.counting.memoise import memoised, remember
from toolfault_dashboard.queries.counting.sampling_weights import (
    chain_weight,
    sampling,
    weighted_chains,
)
from toolfault_dashboard.queries.counting.segments import in_segments, is_asked_at_once
from toolfault_dashboard.queries.counting.together import Question, ask_together
from toolfault_dashboard.queries.figures.clusters import (
    chain_questions,
    chains_by_key,
    remember_chains,
)
from toolfault_dashboard.queries.rows import OUTCOMES, ChainGroup, Funnel, RoundTripBin, RoundTrips
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search.outcomes import outcome_at

__all__ = [
    "CHAIN_GROUPS",
    "amount_of",
    "chains_by",
    "chains_by_argument",
    "combinations",
    "combined_select",
    "read_chains",
    "remember_combinations",
    "round_trips",
]

CHAIN_GROUPS: Final = {
    "tool": "tool",
    "code": "first_code",
    "field": "first_field",
    "model": "model",
    "release": "release",
    "agent": "agent",
    "variant": "variant",
    "environment": "environment",
}
"""What chains can be grouped by, and the column of it."""


Combination = Mapping[str, Any]
"""Chains of one outcome and the same keys: what was counted of them, by name."""

_TRIPS: Final = "trips"
_SHOWN: Final = ("tool", "code", "model", _TRIPS)  # numbers behind texts
_SUMMED: Final = (
    "calls_spent",
    "round_trips",
    "failures",
    "identical_repeats",
    "time_lost_ms",
    "tokens_lost",
)
_COUNTED: Final = ("first_retry_fix", "serial_discovery", "repeat_confusion")


def round_trips(conn: Connection, scope: Scope) -> RoundTrips:
    """Return the funnel, the distribution and the groups of the chains in the scope."""
    by: dict[str, list[Combination]] = {name: [] for name in _SHOWN}
    if is_asked_at_once(conn, scope):
        found = _at_once(conn, scope, _SHOWN, [(key,) for key in _SHOWN if key != _TRIPS])
        segments = [_each_alone(found, _SHOWN)]
    else:
        segments = in_segments(
            conn, scope, _summed, _SHOWN, outcomes=True, together=_sums_together, stored=True
        )
    for segment in segments:
        for name, row in segment:
            by[name].append(row)
    rows = by["trips"]
    retried = [row for row in rows if row["trips"] > 0]
    recovered, fixed = chains_by_key(conn, scope, "tool")[()]
    return RoundTrips(
        funnel=_funnel(rows),
        recovery_rate=_recovery(rows, recovered),
        first_retry_rate=weighted_rate(
            total(amount_of(row, "fix") for row in rows), total(map(amount_of, retried)), fixed
        ),
        round_trips=_sum(rows, "round_trips"),
        calls_spent=_sum(rows, "calls_spent"),
        distribution=_distribution(rows),
        by_tool=_groups(conn, scope, by["tool"], "tool"),
        by_code=_groups(conn, scope, by["code"], "code"),
        by_model=_groups(conn, scope, by["model"], "model"),
    )


def chains_by(conn: Connection, scope: Scope, by: str) -> tuple[ChainGroup, ...]:
    """Group the chains of the scope by a key of ``CHAIN_GROUPS``, most calls spent first."""
    return _groups(conn, scope, combinations(conn, scope, (by,)), by)


def read_chains(conn: Connection, scope: Scope, *keys: str) -> None:
    """Read with one statement what `chains_by` and others ask of each of *keys*, texts all.

    Of a large window nothing is read ahead: most of it may be known.
    """
    if is_asked_at_once(conn, scope):
        found = _each_alone(_at_once(conn, scope, keys, [(key,) for key in keys]), keys)
        for key in keys:
            rows: Sequence[Combination] = [row for of, row in found if of == key]
            remember(conn, combinations, rows, scope, (key,))


def chains_by_argument(conn: Connection, scope: Scope) -> tuple[tuple[str, ChainGroup], ...]:
    """Group the chains of the scope by tool and first field: which argument costs most.

    Returns:
        Pairs of a tool and the group of one of its fields, most calls spent first; the field is
        "" where the first failure named none.
    """
    named: defaultdict[tuple[str, str], list[Combination]] = defaultdict(list)
    for row in combinations(conn, scope, ("tool", "field")):
        named[row["tool"] or "", row["field"] or ""].append(row)
    known = chains_by_key(conn, scope, "tool", "first_field")
    groups = [
        (tool, _group(field, members, known[tool, field][0]))
        for (tool, field), members in named.items()
    ]
    return tuple(sorted(groups, key=lambda each: (*_rank(each[1])[:-1], each[0], each[1].name)))


@memoised
def combinations(conn: Connection, scope: Scope, keys: tuple[str, ...]) -> Sequence[Combination]:
    """Count the chains of the scope by outcome and *keys*.

    A combination may come more than once, from several segments of the window: add up.
    """
    if is_asked_at_once(conn, scope):
        return _at_once(conn, scope, keys, [keys])
    segments = in_segments(
        conn, scope, _combined, keys, outcomes=True, together=_together, stored=True
    )
    return [row for segment in segments for row in segment]


def _at_once(
    conn: Connection, scope: Scope, keys: tuple[str, ...], of_rates: Sequence[tuple[str, ...]]
) -> list[Combination]:
    """Count the same, and by the same statement what intervals need by each of *of_rates*."""
    combined = combined_select(conn, scope, keys)
    texts = sum(1 for key in keys if key != _TRIPS)
    columns = [tuple(CHAIN_GROUPS[key] for key in each) for each in of_rates]
    more = chain_questions(conn, scope, columns)
    rows, *answers = ask_together(conn, [Question(combined, 1 + texts), *more])
    remember_chains(conn, scope, columns, answers)
    return _named(combined, rows)


def _named(combined: Select[Any], rows: Iterable[Sequence[Any]]) -> list[Combination]:
    # Plain texts, not the library's own kind of them, so that they can be stored.
    labels = ["".join(column.name) for column in combined.selected_columns]
    return [dict(zip(labels, row, strict=True)) for row in rows]


def remember_combinations(
    conn: Connection,
    scope: Scope,
    keys: tuple[str, ...],
    combined: Select[Any],
    rows: Iterable[Sequence[Any]],
) -> None:
    """Remember the *rows* of `combined_select` as the answer of `combinations`."""
    found: Sequence[Combination] = _named(combined, rows)
    remember(conn, combinations, found, scope, keys)


def _summed(conn: Connection, scope: Scope, keys: tuple[str, ...]) -> list[tuple[str, Combination]]:
    """Count the chains of the scope by outcome and each of *keys* alone, reading them once."""
    return _each_alone(_combined(conn, scope, keys), keys)


def _each_alone(
    rows: Sequence[Combination], keys: tuple[str, ...]
) -> list[tuple[str, Combination]]:
    """Add the combinations of *keys*, which are few, up by each of them."""
    others = {key: {"outcome", *keys} - {"outcome", key} for key in keys}
    alone = (
        (key, {name: value for name, value in row.items() if name not in others[key]})
        for row in rows
        for key in keys
    )
    return _added(alone)


def _added(rows: Iterable[tuple[str, Combination]]) -> list[tuple[str, Combination]]:
    """Add rows of the same outcome, group and columns up."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for key, row in rows:
        # Of a segment that was kept before anything was sampled the columns are fewer.
        at = (key, row["outcome"], row[key], len(row))
        known = found.get(at)
        if known is None:
            found[at] = dict(row)
            continue
        _add(known, row, ("outcome", key))
    return [(at[0], row) for at, row in found.items()]


def _sums_together(
    segments: Sequence[list[tuple[str, Combination]]], _keys: tuple[str, ...]
) -> list[tuple[str, Combination]]:
    return _added(each for segment in segments for each in segment)


def _together(segments: Sequence[list[Combination]], keys: tuple[str, ...]) -> list[Combination]:
    grouped = ("outcome", *keys)
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for segment in segments:
        for row in segment:
            at = (*(row[name] for name in grouped), len(row))
            known = found.get(at)
            if known is None:
                found[at] = dict(row)
                continue
            _add(known, row, grouped)
    return list(found.values())


def _add(known: dict[str, Any], row: Combination, grouped: Collection[str]) -> None:
    for name, value in row.items():
        if value is not None and name not in grouped:
            known[name] = value if known[name] is None else known[name] + value


def _combined(conn: Connection, scope: Scope, keys: tuple[str, ...]) -> list[Combination]:
    combined = combined_select(conn, scope, keys)
    return _named(combined, conn.execute(combined))


def combined_select(conn: Connection, scope: Scope, keys: tuple[str, ...]) -> Select[Any]:
    """Return the select of `combinations` of a window that is counted at once."""
    columns = [_column(key).label(key) for key in keys]
    sampled = sampling(conn, scope.project_id).failures
    inner = (
        select(
            outcome_at(scope.now).label("outcome"),
            *columns,
            calls_spent().label("calls_spent"),
            *(chain.c[name] for name in (*_SUMMED, *_COUNTED) if name != "calls_spent"),
            *([chain_weight().label("weight")] if sampled else []),
        )
        .select_from(weighted_chains(sampled=sampled))
        .where(chains_of(scope))
        .subquery()
    )
    grouped = [inner.c.outcome, *(inner.c[column.name] for column in columns)]
    numbers = _weighed(inner) if sampled else _plain(inner)
    return select(*grouped, *numbers).group_by(*grouped)


def _column(key: str) -> ColumnElement[Any]:
    return chain.c.round_trips if key == _TRIPS else chain.c[CHAIN_GROUPS[key]]


def _plain(inner: Subquery) -> list[ColumnElement[Any]]:
    return [
        func.count().label("chains"),
        *(func.sum(inner.c[name]).label(name) for name in _SUMMED),
        *(func.count(case((inner.c[name], 1))).label(name) for name in _COUNTED),
    ]


def _weighed(inner: Subquery) -> list[ColumnElement[Any]]:
    """Return the same columns, each chain as what it stands for; then those of `amount_of`."""
    each = inner.c.weight
    return [
        func.sum(each).label("chains"),
        *(func.sum(each * inner.c[name]).label(name) for name in _SUMMED),
        *(func.sum(case((inner.c[name], each), else_=0.0)).label(name) for name in _COUNTED),
        func.count().label("chain_rows"),
        func.sum(each * each).label("chain_squares"),
        func.sum(inner.c.round_trips).label("trip_rows"),
        func.sum(each * each * inner.c.round_trips).label("trip_squares"),
        func.count(case((inner.c.first_retry_fix, 1))).label("fix_rows"),
        func.sum(case((inner.c.first_retry_fix, each * each), else_=0.0)).label("fix_squares"),
    ]


_COLUMN: Final = {"chain": "chains", "trip": "round_trips", "fix": "first_retry_fix"}


def amount_of(row: Combination, kind: Literal["chain", "trip", "fix"] = "chain") -> Amount:
    """Return the chains, the round trips or the first-retry fixes of a row of `combinations`."""
    weight = row[_COLUMN[kind]]
    if "chain_rows" not in row:
        return Amount(int(weight), int(weight), int(weight))
    return Amount(int(row[f"{kind}_rows"]), float(weight), float(row[f"{kind}_squares"]))


def _sum(rows: Iterable[Combination], name: str) -> int:
    """Return the sum of a column in whole numbers; sums of PostgreSQL are decimals."""
    values = [row[name] for row in rows]
    return whole(sum(each if isinstance(each, float) else int(each) for each in values))


def _groups(
    conn: Connection, scope: Scope, rows: Sequence[Combination], key: str
) -> tuple[ChainGroup, ...]:
    named: defaultdict[str, list[Combination]] = defaultdict(list)
    for row in rows:
        named[row[key] or ""].append(row)
    known = chains_by_key(conn, scope, CHAIN_GROUPS[key])
    groups = [_group(name, members, known[name,][0]) for name, members in named.items()]
    return tuple(sorted(groups, key=_rank))


def _rank(group: ChainGroup) -> tuple[int, int, int, str]:
    return (-group.calls_spent, -group.abandoned, -group.chains, group.name)


def _group(name: str, rows: Sequence[Combination], moments: Moments) -> ChainGroup:
    outcomes = _outcomes(rows)
    tokens = [row for row in rows if row["tokens_lost"] is not None]
    columns = ("calls_spent", "round_trips", "failures", "identical_repeats", *_COUNTED)
    return ChainGroup(
        name=name,
        chains=sum(outcomes.values()),
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
        **{column: _sum(rows, column) for column in columns},
        time_lost_ms=sum(float(row["time_lost_ms"]) for row in rows),
        tokens_lost=_sum(tokens, "tokens_lost") if tokens else None,
        recovery_rate=_recovery(rows, moments),
    )


def _recovery(rows: Sequence[Combination], moments: Moments) -> Rate:
    recovered = [row for row in rows if row["outcome"] == "recovered"]
    closed = [row for row in rows if row["outcome"] != "open"]
    return weighted_rate(total(map(amount_of, recovered)), total(map(amount_of, closed)), moments)


def _outcomes(rows: Sequence[Combination]) -> dict[str, int]:
    """Return the chains by outcome, in whole numbers."""
    return {
        outcome: _sum([row for row in rows if row["outcome"] == outcome], "chains")
        for outcome in OUTCOMES
    }


def _funnel(rows: Sequence[Combination]) -> Funnel:
    outcomes = _outcomes(rows)
    return Funnel(
        chains=sum(outcomes.values()),
        retried=_sum([row for row in rows if row["trips"] > 0], "chains"),
        first_retry_fix=_sum(rows, "first_retry_fix"),
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
    )


def _distribution(rows: Sequence[Combination]) -> tuple[RoundTripBin, ...]:
    by_trips: defaultdict[int, list[Combination]] = defaultdict(list)
    for row in rows:
        by_trips[row["trips"]].append(row)
    if not by_trips:
        return ()
    highest = max(by_trips)
    wanted = range(highest + 1) if highest <= _LONGEST_AXIS else sorted(by_trips)
    return tuple(_bin(trips, _outcomes(by_trips.get(trips, ()))) for trips in wanted)


def _bin(trips: int, outcomes: Mapping[str, int]) -> RoundTripBin:
    return RoundTripBin(
        round_trips=trips,
        chains=sum(outcomes.values()),
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
    )


_LONGEST_AXIS: Final = 100
"""Above this, round trips that no chain took are left out of the distribution."""
