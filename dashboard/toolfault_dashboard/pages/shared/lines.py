"""Rows of queries turned into the lines of tables: links, shares and drawn intervals added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import Final

from toolfault_dashboard.access.policy import allows
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.charts import Estimate, estimate, nice_ceiling
from toolfault_dashboard.glossary import CODES
from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.queries import ToolRates
from toolfault_dashboard.queries.rows import (
    ChainGroup,
    ChainRow,
    FailureRow,
    FrequencyTable,
    Summary,
    ToolCount,
)
from toolfault_dashboard.search import Clause, Pattern, Query, QueryError, parse

__all__ = [
    "alert_about",
    "argument_of",
    "chain_line",
    "code_lines",
    "cost_rank",
    "exactly",
    "failure_line",
    "frequency_lines",
    "narrowed_by",
    "rate_scale",
    "rows_behind",
    "tool_lines",
]


@dataclass(frozen=True, slots=True)
class FailureLine:
    """A failure in a list."""

    row: Doc[FailureRow, "What is stored."]
    href: Doc[str, "The failure, with the list kept for previous and next."]
    chain: Doc[str, "Its chain; empty outside a conversation."]


@dataclass(frozen=True, slots=True)
class ChainLine:
    """A chain in a list."""

    row: Doc[ChainRow, "What is stored."]
    href: Doc[str, "The chain."]
    cells: Doc[tuple[str, ...], "What the added columns hold."]


@dataclass(frozen=True, slots=True)
class FrequencyLine:
    """How often one code, field, model or message fails."""

    name: Doc[str, "The value; words for none."]
    tool: Doc[str, "The tool, where the same name of two tools is not the same thing; else empty."]
    failures: Doc[int, "Failures that carry it."]
    share: Doc[float, "Share of the failures of the view, 0 to 1."]
    rate: Doc[Rate, "Failures of the calls that the table names."]
    estimate: Doc[Estimate | None, "The interval of the rate, drawn."]
    first_at: Doc[int | None, "First seen in the view."]
    last_at: Doc[int | None, "Last seen in the view."]
    href: Doc[str, "The failures behind it; empty if no query can name them."]
    meaning: Doc[str, "What it means; empty where the name says it."]


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One tool with its rates."""

    name: Doc[str, "The tool."]
    href: Doc[str, "The page of the tool."]
    failures_href: Doc[str, "Its failures."]
    calls: Doc[int, "Its calls, folded successes included."]
    failures: Doc[int, "Its failures."]
    rate: Doc[Rate, "Failures of its calls."]
    rate_drawn: Doc[Estimate | None, "The interval of the failure rate, drawn."]
    first_try: Doc[Rate, "Operations that needed no chain."]
    chains: Doc[int, "Its chains."]
    calls_spent: Doc[int, "The calls that its chains cost."]
    round_trips: Doc[int, "Its round trips."]
    recovery: Doc[Rate | None, "Recovered of its closed chains; None without chains."]
    recovery_drawn: Doc[Estimate | None, "The interval of the recovery rate, drawn."]
    first_retry_fix: Doc[int, "Chains that the first retry fixed."]
    outcomes: Doc[tuple[int, int, int, int], "Recovered, switched, abandoned, open."]
    chains_by_outcome: Doc[tuple[str, str, str, str], "The chains of each outcome; empty for none."]
    tokens_lost: Doc[int | None, "Tokens of failed calls in chains; None where none reports them."]
    money_lost: Doc[float | None, "What these cost; None without a price."]
    time_lost_ms: Doc[float, "Time between first failure and last call, summed."]
    identical_repeats: Doc[int, "Retries with the same arguments."]


NONE: Final = "none"


def exactly(query: Query, key: str, value: str) -> Query:
    """Return *query* with *key* restricted to exactly *value*; an empty value means none."""
    return Query((*query.without(key).clauses, Clause(key, (Pattern((value,)),))))


def failure_line(ask: Ask, row: FailureRow) -> FailureLine:
    """Return *row* with its links; the list's query goes along for previous and next."""
    return FailureLine(
        row=row,
        href=ask.link(f"/failures/{row.event_id}"),
        chain=ask.link(f"/chains/{row.chain_id}") if row.chain_id else "",
    )


def chain_line(ask: Ask, row: ChainRow, cells: tuple[str, ...] = ()) -> ChainLine:
    """Return *row* with its link and what the added columns hold."""
    return ChainLine(row=row, href=ask.link(f"/chains/{row.chain_id}"), cells=cells)


def rate_scale(rates: Iterable[Rate]) -> float:
    """Return the share at which tracks of these rates end, so that rows can be compared."""
    highest = max((each.high for each in rates if each.high is not None), default=1.0)
    return min(1.0, nice_ceiling(highest * 100) / 100)


def narrowed_by(query: Query, text: str) -> Query:
    """Return *query* with the clauses of *text* in place of its own on the same keys."""
    wanted = parse(text)
    return query.without(*(clause.key for clause in wanted.clauses)).and_(wanted)


def argument_of(tool: str, name: str) -> str:
    """Name an argument of a tool as pages do: ``send_email.to``."""
    return f"{tool}.{name}" if name else f"{tool} (no argument)"


def rows_behind(ask: Ask, text: str, page: str = "/failures") -> str:
    """Return the address of the failures that *text* selects, or nothing; or of another *page*.

    A stored name may hold a control character, which the query language does not take.
    """
    try:
        return ask.link(page, narrowed_by(ask.query, text))
    except QueryError:
        return ""


def frequency_lines(
    ask: Ask, table: FrequencyTable, meanings: Mapping[str, str] | None = None
) -> tuple[FrequencyLine, ...]:
    """Return the lines of a frequency table, each with the failures behind it one click away."""
    scale = rate_scale(row.rate for row in table.rows)
    known = meanings or {}
    return tuple(
        FrequencyLine(
            name=argument_of(row.tool, row.name) if row.tool else row.name or NONE,
            tool=row.tool or "",
            failures=row.failures,
            share=row.failures / table.failures if table.failures else 0.0,
            rate=row.rate,
            estimate=estimate(row.rate.value, row.rate.low, row.rate.high, scale=scale),
            first_at=row.first_at,
            last_at=row.last_at,
            href=rows_behind(ask, row.query),
            meaning=known.get(row.name, ""),
        )
        for row in table.rows
    )


def code_lines(ask: Ask, counted: Summary, rates: Mapping[str, Rate]) -> tuple[FrequencyLine, ...]:
    """Return the codes of a summary, most failures first, as shares of its failures."""
    failures = counted.failures
    return tuple(
        FrequencyLine(
            name=code or NONE,
            tool="",
            failures=number,
            share=number / failures if failures else 0.0,
            rate=rates[code],
            estimate=None,
            first_at=None,
            last_at=None,
            href=ask.link("/failures", exactly(ask.query, "code", code)),
            meaning=CODES.get(code, ""),
        )
        for code, number in counted.codes.items()
    )


def tool_lines(
    ask: Ask,
    tools: Mapping[str, ToolCount],
    groups: Iterable[ChainGroup],
    rates: Mapping[str, ToolRates],
) -> tuple[ToolLine, ...]:
    """Return one line per tool, joining calls and failures with the chains of the tool.

    Args:
        ask: The question.
        tools: Calls and failures.
        groups: Chains by tool.
        rates: The rates of each tool.
    """
    chains = {group.name: group for group in groups}
    scale = rate_scale(rates[name].failure_rate for name in tools)
    return tuple(
        _tool_line(ask, name, each, rates[name], group=chains.get(name), scale=scale)
        for name, each in tools.items()
    )


def _tool_line(
    ask: Ask,
    name: str,
    counts: ToolCount,
    rates: ToolRates,
    *,
    group: ChainGroup | None,
    scale: float,
) -> ToolLine:
    recovery = group.recovery_rate if group else None
    failing = rates.failure_rate
    query = exactly(ask.query, "tool", name)
    given_up = ask.link("/round-trips", exactly(query, "chain", "abandoned")) + "#chains"
    abandoned = given_up if group and group.abandoned else ""
    return ToolLine(
        name=name,
        href=ask.link("/tool", name=name),
        failures_href=ask.link("/failures", query),
        calls=counts.calls,
        failures=counts.failures,
        rate=failing,
        rate_drawn=estimate(failing.value, failing.low, failing.high, scale=scale),
        first_try=rates.first_try,
        chains=group.chains if group else 0,
        calls_spent=group.calls_spent if group else 0,
        round_trips=group.round_trips if group else 0,
        recovery=recovery,
        recovery_drawn=estimate(recovery.value, recovery.low, recovery.high, scale=1.0)
        if recovery
        else None,
        first_retry_fix=group.first_retry_fix if group else 0,
        outcomes=(group.recovered, group.switched, group.abandoned, group.open)
        if group
        else (0, 0, 0, 0),
        chains_by_outcome=("", "", abandoned, ""),
        tokens_lost=group.tokens_lost if group else None,
        money_lost=None,
        time_lost_ms=group.time_lost_ms if group else 0.0,
        identical_repeats=group.identical_repeats if group else 0,
    )


def cost_rank(line: ToolLine) -> tuple[int, int, int, str]:
    """Return what tools are ranked by: calls spent, then chains given up, then failures."""
    return (-line.calls_spent, -line.outcomes[2], -line.failures, line.name)


def alert_about(ask: Ask, query: Query) -> str:
    """Return where an alert about *query* is made; "" where the reader's role may not."""
    if not allows(ask.viewer.role, "developer"):
        return ""
    return ask.link("/alert", query.without("since", "until"), window="")
