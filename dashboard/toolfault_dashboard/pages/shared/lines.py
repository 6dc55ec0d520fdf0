"""Rows of queries turned into the lines of tables: links, shares and drawn intervals added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Annotated as Doc
from typing import Any, Final

from toolfault_dashboard.access.policy import allows
from toolfault_dashboard.analysis.rates import Rate, rate
from toolfault_dashboard.charts import Estimate, Spark, estimate, nice_ceiling
from toolfault_dashboard.formats import duration, position
from toolfault_dashboard.glossary import CODES
from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.pages.shared.table import Column, Table
from toolfault_dashboard.queries import ToolRates
from toolfault_dashboard.queries.rows import (
    ChainGroup,
    ChainRow,
    FailureRow,
    FrequencyTable,
    Summary,
    ToolCount,
    ToolRow,
)
from toolfault_dashboard.search import KEYS, Clause, Pattern, Query, QueryError, parse

__all__ = [
    "BY_CODE",
    "BY_FIELD",
    "FAILURES",
    "alert_about",
    "argument_of",
    "code_lines",
    "cost_rank",
    "exactly",
    "failure_line",
    "frequency_lines",
    "narrowed_by",
    "rate_scale",
    "rows_behind",
    "tool_line",
    "tool_rows",
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

    row: Doc[ToolRow, "What was counted."]
    name: Doc[str, "The tool."]
    href: Doc[str, "The page of the tool."]
    failures_href: Doc[str, "Its failures."]
    abandoned_href: Doc[str, "Its abandoned chains; empty for none."]
    drawn: Doc[Estimate | None, "The interval of the failure rate, drawn."]
    trend: Doc[Spark | None, "Its failures over time; None where they are not asked for."]


_ADDED: Final[dict[str, Callable[[FailureRow], str]]] = {
    "duration": lambda row: "" if row.duration_ms is None else duration(row.duration_ms),
    "attempt": lambda row: position(row.attempt),
}
FAILURES: Final = Table(
    Column("failure", "Failure", "failure", "row.code"),
    Column("message", "Message", "clipped", "row.text", style="cell-text", label="", term=""),
    *(
        Column(name, key.title, "code", value=_ADDED.get(name, attrgetter(name)), usual=False)
        for name, key in KEYS.items()
        if key.is_column
    ),
    Column("chain", "Chain", "chain", style="nowrap", label=""),
    Column("when", "When", "moment", "row.occurred_at", style="nowrap", label=""),
    file="failures", named="failures",
)  # fmt: skip
"""Failures one by one."""
BY_CODE: Final = Table(
    Column("name", "Code", "behind_with_meaning", style="cell-text", term=""),
    Column("failures", "Failures", "count"),
    Column("share", "Share", "percent", usual=True),
    Column("rate", "Rate", "percent", "rate.value", usual=True),
    Column("interval", "95% interval", "interval", "rate", usual=True, drawn="estimate", n="text"),
    Column("first", "First seen", "moment", "first_at", usual=False, style="nowrap"),
    Column("last", "Last seen", "moment", "last_at", usual=True, style="nowrap"),
    file="codes", named="codes",
)  # fmt: skip
"""Codes, or whatever else failures are counted by, with the failures of each."""
BY_FIELD: Final = Table(
    replace(BY_CODE.columns[0], title="Field"), *BY_CODE.columns[1:],
    file="fields", named="fields",
)  # fmt: skip
NONE: Final = "none"
# But for the failures, of which those outside every conversation are in no chain.
_CHAINS_OF_TOOL: Final = {field.name for field in fields(ToolRow)} & (
    {field.name for field in fields(ChainGroup)} - {"failures"}
)


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


def tool_rows(
    tools: Mapping[str, ToolCount], groups: Iterable[ChainGroup], rates: Mapping[str, ToolRates]
) -> list[ToolRow]:
    """Return one row per tool, joining calls and failures with the chains of the tool.

    Args:
        tools: Calls and failures.
        groups: Chains by tool.
        rates: The rates of each tool.
    """
    chains = {group.name: group for group in groups}
    return [
        ToolRow(
            tool=name,
            calls=each.calls,
            failures=each.failures,
            failure_rate=rates[name].failure_rate,
            first_try_success=rates[name].first_try,
            **_of_chains(chains.get(name)),
        )
        for name, each in tools.items()
    ]


def _of_chains(group: ChainGroup | None) -> dict[str, Any]:
    if group is not None:
        return {name: getattr(group, name) for name in _CHAINS_OF_TOOL}
    # Nothing was lost, and whether tokens are reported is not known.
    none = {"time_lost_ms": 0.0, "tokens_lost": None, "recovery_rate": rate(0, 0)}
    return dict.fromkeys(_CHAINS_OF_TOOL, 0) | none


def tool_line(ask: Ask, row: ToolRow, scale: float, trend: Spark | None = None) -> ToolLine:
    """Return *row* with its links and its interval, drawn up to *scale* (`rate_scale`)."""
    found = row.failure_rate
    query = exactly(ask.query, "tool", row.tool)
    given_up = ask.link("/round-trips", exactly(query, "chain", "abandoned")) + "#chains"
    return ToolLine(
        row=row,
        name=row.tool,
        href=ask.link("/tool", name=row.tool),
        failures_href=ask.link("/failures", query) if row.failures else "",
        abandoned_href=given_up if row.abandoned else "",
        drawn=estimate(found.value, found.low, found.high, scale=scale),
        trend=trend,
    )


def cost_rank(row: ToolRow) -> tuple[int, int, int, str]:
    """Return what tools are ranked by: calls spent, then chains given up, then failures."""
    return (-row.calls_spent, -row.abandoned, -row.failures, row.tool)


def alert_about(ask: Ask, query: Query) -> str:
    """Return where an alert about *query* is made; "" where the reader's role may not."""
    if not allows(ask.viewer.role, "developer"):
        return ""
    return ask.link("/alert", query.without("since", "until"), window="")
