"""How much was called, failed, retried and recovered in a scope."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from toolfault_dashboard.analysis import weights
from toolfault_dashboard.analysis.clusters import Moments
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.weights import Amount, Amounts, total, weighted_rate, whole
from toolfault_dashboard.queries.chains.round_trips import amount_of, combinations
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.counting.together import are_asked_together
from toolfault_dashboard.queries.figures import clusters
from toolfault_dashboard.queries.figures.totals import calls_by, pairs, totals
from toolfault_dashboard.queries.rows import Overview, Summary, ToolCount
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import not_restricting_calls

__all__ = [
    "ChainTotals",
    "ToolRates",
    "calls_per_trial",
    "chain_totals",
    "first_try",
    "overview",
    "rates_by_code",
    "rates_by_tool",
    "summary",
]


@dataclass(frozen=True, slots=True)
class ChainTotals:
    """The chains of a scope, added up by outcome."""

    chains: Amounts  # by outcome
    round_trips: Amount
    calls_spent: int
    recovered_failures: float  # failures inside recovered chains


@dataclass(frozen=True, slots=True)
class _Counted:
    """The counts of a scope as rows and as what they stand for."""

    calls: Amounts  # by tool
    failures: Amounts  # by tool
    codes: Amounts  # a failure under each of its codes
    outside_by_tool: Amounts  # failures that are in no chain
    untimed: int  # failures without a time
    conversations: int
    chains: ChainTotals

    @property
    def outside(self) -> Amount:
        """Failures that are in no chain."""
        return self.outside_by_tool.total()


def summary(conn: Connection, scope: Scope) -> Summary:
    """Count everything in the scope; no window, no limit."""
    return _summary(_counted(conn, scope))


@memoised
def _counted(conn: Connection, scope: Scope) -> _Counted:
    found = totals(conn, scope)
    by_tool, by_code, outside = Amounts(), Amounts(), Amounts()
    for (tool, code), pair in found.pairs.items():
        by_tool.add(tool, pair.failures)
        by_code.add(code, pair.failures)
        outside.add(tool, pair.outside)
    for (_, code), failures in found.issues.items():
        by_code.add(code, failures)
    return _Counted(
        *(found.calls, by_tool, by_code, outside),
        untimed=sum(pair.untimed for pair in found.pairs.values()),
        conversations=found.conversations,
        chains=chain_totals(conn, scope),
    )


def _summary(found: _Counted) -> Summary:
    calls, failures, chains = found.calls, found.failures, found.chains
    all_calls, all_failures = calls.total(), failures.total()
    recovered = chains.chains["recovered"]
    outcomes = {name: amount.whole for name, amount in chains.chains.items()}
    # Sums that are equal differ by the order of additions.
    names = sorted(
        calls.keys() | failures.keys(),
        key=lambda name: (-round(failures[name].weight, 6), -round(calls[name].weight, 6), name),
    )
    codes = sorted(found.codes.items(), key=lambda item: (-round(item[1].weight, 6), item[0]))
    return Summary(
        conversations=found.conversations,
        calls=all_calls.whole,
        failures=all_failures.whole,
        failure_rate=all_failures.weight / all_calls.weight if all_calls.rows else None,
        chains=sum(outcomes.values()),
        recovered=outcomes.get("recovered", 0),
        switched=outcomes.get("switched", 0),
        abandoned=outcomes.get("abandoned", 0),
        open=outcomes.get("open", 0),
        round_trips=chains.round_trips.whole,
        calls_spent=chains.calls_spent,
        mean_failures_before_recovery=(
            chains.recovered_failures / recovered.weight if recovered.rows else None
        ),
        tools={
            name: ToolCount(calls=calls[name].whole, failures=failures[name].whole)
            for name in names
        },
        codes={code: amount.whole for code, amount in codes},
    )


def calls_per_trial(conn: Connection, scope: Scope) -> float:
    """Return how many calls of the scope tell as much of its failure rate as one independent one.

    See ``analysis.weights.calls_per_trial``; 1 where there is no call.
    """
    if are_asked_together(conn, scope):
        totals(conn, scope)  # both with one statement
    calls = calls_by(conn, scope, "tool").total()
    failures = total(pair.failures for pair in pairs(conn, scope).values())
    if calls.weight < failures.weight:
        calls = failures
    if calls.weight <= 0:
        return 1.0
    moments = clusters.calls_of_conversations(conn, scope, "all").failures
    return weights.calls_per_trial(failures, calls, moments)


def overview(conn: Connection, scope: Scope) -> Overview:
    """Return the summary with intervals, first-try success and what the reader must know."""
    found = _counted(conn, scope)
    calls, failures, chains = found.calls.total(), found.failures.total(), found.chains
    closed = total(each for name, each in chains.chains.items() if name != "open")
    first = found.outside + chains.chains.total()
    of_calls = clusters.calls_of_conversations(conn, scope, "all")
    recovered, _ = clusters.chains_by_key(conn, scope, "tool")[()]
    return Overview(
        summary=_summary(found),
        failure_rate=weighted_rate(failures, calls, of_calls.failures),
        recovery_rate=weighted_rate(chains.chains["recovered"], closed, recovered),
        first_try=first_try(calls, chains.round_trips, first, of_calls.first_try_failures),
        round_trips_per_failure=(
            chains.round_trips.weight / failures.weight if failures.rows else None
        ),
        untimed_failures=found.untimed,
        not_restricting_calls=not_restricting_calls(scope.query),
        sampled=calls.sampled,
    )


def first_try(
    calls: Amount,
    round_trips: Amount,
    failed: Amount,
    moments: Moments | None = None,
) -> Rate:
    """Return the share of operations that succeeded at the first try.

    An operation is a call that is no retry; it fails at the first try when it opens a chain, or
    fails where no chain can exist.

    Args:
        calls: All calls.
        round_trips: Calls of them that are retries.
        failed: Operations that failed.
        moments: Of those that failed, over the conversations.
    """
    operations = calls - round_trips
    if operations.weight < failed.weight:  # a chain that goes on outside
        operations = failed
    succeeded = moments.complement() if moments is not None else None
    return weighted_rate(operations - failed, operations, succeeded)


@dataclass(frozen=True, slots=True)
class ToolRates:
    """The rates of one tool."""

    failure_rate: Rate
    first_try: Rate


def rates_by_tool(conn: Connection, scope: Scope) -> dict[str, ToolRates]:
    """Return the rates of every tool of `summary`, by name."""
    found = _counted(conn, scope)
    chains, trips = Amounts(), Amounts()
    for row in combinations(conn, scope, ("tool",)):
        chains.add(row["tool"] or "", amount_of(row))
        trips.add(row["tool"] or "", amount_of(row, "trip"))
    of_calls = clusters.calls_of_conversations(conn, scope, "tool")
    return {
        name: ToolRates(
            weighted_rate(found.failures[name], found.calls[name], failed),
            first_try(
                found.calls[name],
                trips[name],
                chains[name] + found.outside_by_tool[name],
                first,
            ),
        )
        for name in sorted(found.calls.keys() | found.failures.keys())
        for failed, first in [of_calls.of_tool(name)]
    }


def rates_by_code(conn: Connection, scope: Scope) -> dict[str, Rate]:
    """Return the failure rate of every code of `summary`, of all calls, by code."""
    found = _counted(conn, scope)
    calls, of_calls = found.calls.total(), clusters.calls_of_conversations(conn, scope, "code")
    return {
        code: weighted_rate(amount, calls, of_calls.of_code(code))
        for code, amount in sorted(found.codes.items())
    }


def chain_totals(conn: Connection, scope: Scope) -> ChainTotals:
    """Add the chains of the scope up by their outcome at ``scope.now``."""
    rows = combinations(conn, scope, ("tool",))
    chains = Amounts()
    for row in rows:
        chains.add(row["outcome"], amount_of(row))
    return ChainTotals(
        chains=chains,
        round_trips=total(amount_of(row, "trip") for row in rows),
        calls_spent=whole(sum(float(row["calls_spent"]) for row in rows)),
        recovered_failures=sum(
            float(row["failures"]) for row in rows if row["outcome"] == "recovered"
        ),
    )
