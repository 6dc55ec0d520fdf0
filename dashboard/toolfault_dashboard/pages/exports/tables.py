"""The tables of the pages as files: exactly what the page beside it shows.

Lists stream from the database row by row; tables that were computed are written from their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from fastapi import APIRouter

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.differences import change_of_rate
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.pages.chains.round_trips import BY_GROUP, CHAINS, ENDS, LENGTHS, RUNGS
from toolfault_dashboard.pages.comparisons.changes import CHANGES, EFFECT, NEW_KINDS
from toolfault_dashboard.pages.comparisons.compare import COMPARED_CODES, COMPARISON
from toolfault_dashboard.pages.comparisons.days import DAYS
from toolfault_dashboard.pages.comparisons.experiments import ARMS, COSTS, EXPERIMENTS
from toolfault_dashboard.pages.exports.download import serve
from toolfault_dashboard.pages.failures.failure import ISSUES
from toolfault_dashboard.pages.failures.kinds_table import KINDS
from toolfault_dashboard.pages.figures.breakdown import BY_TOOL
from toolfault_dashboard.pages.figures.tools import PHANTOMS, REPEATS, TOOLS
from toolfault_dashboard.pages.fixes.fix_next import FIXES, PICKED
from toolfault_dashboard.pages.fixes.messages import MESSAGES
from toolfault_dashboard.pages.ingest.received import COUNTED, RECEIVED
from toolfault_dashboard.pages.ingest.rejected import REJECTED
from toolfault_dashboard.pages.settings.alerts import HISTORY, RULES
from toolfault_dashboard.pages.settings.settings import API_KEYS, AUDIT, CHANNELS, PEOPLE
from toolfault_dashboard.pages.settings.views import VIEWS
from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.pages.shared.lines import BY_CODE, BY_FIELD, FAILURES
from toolfault_dashboard.pages.shared.table import Table
from toolfault_dashboard.queries.figures.matrices import MatrixCell, matrix

__all__ = ["TABLES", "router"]

_ALL: Final = 10_000  # more codes or tools than a project may have
_COUNTS: Final = (
    "conversations", "calls", "failures", "chains", "recovered", "switched", "abandoned", "open",
    "round_trips", "calls_spent", "mean_failures_before_recovery",
)  # fmt: skip
_RATES: Final = {
    "failure_rate": "failure_rate",
    "recovery_rate": "recovery_rate",
    "first_try_success": "first_try",
}


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A headline figure of the overview, beside that of the period before."""

    figure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    before: float | None = None
    change_low: float | None = None
    change_high: float | None = None


@dataclass(frozen=True, slots=True)
class BucketRow:
    """The failures of one code in one bucket of time, beside the figures of the bucket."""

    from_at: int
    code: str  # empty in a bucket without a failure, whose calls and rate are worth a row
    failures: int
    all_failures: int
    calls: int
    failure_rate: Rate


def _figures(ask: Ask) -> Iterator[FigureRow]:
    found = queries.overview(ask.conn, ask.scope)
    period = queries.period_before(ask.conn, ask.scope)
    then = None if period is None else queries.overview(ask.conn, period.scope)
    for name in _COUNTS:
        was = None if then is None else getattr(then.summary, name)
        yield FigureRow(name, getattr(found.summary, name), before=was)
    for name, attribute in _RATES.items():
        now: Rate = getattr(found, attribute)
        before: Rate | None = None if then is None else getattr(then, attribute)
        ends = None if before is None else change_of_rate(before, now)
        yield FigureRow(
            name, now.value, now.low, now.high, now.n,
            before=None if before is None else before.value,
            change_low=None if ends is None else ends.low,
            change_high=None if ends is None else ends.high,
        )  # fmt: skip


def _buckets(ask: Ask) -> Iterator[BucketRow]:
    found = queries.failures_over_time(ask.conn, ask.scope, top=_ALL, most=None)
    for index, (start, rate) in enumerate(zip(found.starts, found.rates, strict=True)):
        codes = [(each.name, each.counts[index]) for each in found.series if each.counts[index]]
        if found.calls[index] or rate.count:
            for code, failures in codes or [("", 0)]:
                yield BucketRow(start, code, failures, rate.count, found.calls[index], rate)


def _matrix(file: str, by: Literal["code", "field"]) -> Table:
    def rows(ask: Ask) -> tuple[MatrixCell, ...]:
        return matrix(ask.conn, ask.scope, by, tools=_ALL, columns=_ALL).cells

    return Table(file=file, row=MatrixCell, rows=rows)


TABLES: Final = (
    Table(file="overview", row=FigureRow, rows=_figures),
    Table(file="over-time", row=BucketRow, rows=_buckets),
    *(_matrix("matrix", "code"), _matrix("field-matrix", "field")),
    *(FAILURES, ISSUES, KINDS, CHAINS, BY_GROUP, ENDS, LENGTHS, RUNGS, TOOLS, PHANTOMS, REPEATS),
    *(BY_CODE, BY_FIELD, BY_TOOL, MESSAGES, FIXES, PICKED, CHANGES, EFFECT, NEW_KINDS, COMPARISON),
    *(COMPARED_CODES, EXPERIMENTS, ARMS, COSTS, DAYS, VIEWS, RULES, HISTORY, REJECTED, RECEIVED),
    *(COUNTED, API_KEYS, CHANNELS, PEOPLE, AUDIT),
)
"""Every table that can be downloaded."""

router = APIRouter()
for _each in TABLES:
    serve(router, _each)
