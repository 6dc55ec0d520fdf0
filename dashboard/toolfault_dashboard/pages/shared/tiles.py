"""The headline figures of a page, each beside that of the period before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated as Doc
from typing import Final

from toolfault_collector.clock import DAY_US
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.differences import change_of_rate
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.charts import Estimate, estimate
from toolfault_dashboard.formats import count, percent, percent_interval, plural, points
from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.queries.rows import Overview, Summary
from toolfault_dashboard.queries.scope import Scope

__all__ = [
    "Before",
    "before",
    "count_tile",
    "overview_tiles",
    "rate_tile",
    "recovery_tile",
    "spent_tile",
    "tile",
]


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure at the top of a page."""

    label: Doc[str, "What is counted."]
    value: Doc[str, "The figure, formatted."]
    unit: Doc[str, "Its unit; empty if the figure says all."]
    sub: Doc[str, "n, interval, or what else makes the figure honest."]
    href: Doc[str, "The rows behind it; empty if there is no list of them."]
    estimate: Doc[Estimate | None, "The interval of a rate, drawn; None for a count."]
    before: Doc[str, "The figure of the period before, and the change; empty without one."] = ""


_HOUR_US: Final = DAY_US // 24


@dataclass(frozen=True, slots=True)
class Before:
    """The period before that of a page."""

    scope: Scope
    words: str  # "14 days before"

    def beside(self, shown: Tile, value: str) -> Tile:
        """Return *shown* with the figure that it had before."""
        return replace(shown, before=f"{self.words}: {value}")

    def beside_count(self, shown: Tile, value: int) -> Tile:
        """Return *shown*, of a count, with what it was before. A count of everything is exact."""
        return self.beside(shown, count(value))

    def beside_rate(self, shown: Tile, after: Rate, rate: Rate) -> Tile:
        """Return *shown*, of the rate *after*, with what it was before: *rate*."""
        if rate.value is None or after.value is None:
            return self.beside(shown, "not enough data")
        ends = change_of_rate(rate, after)
        assert ends is not None, "both rates have a value"
        if ends.low <= 0.0 <= ends.high:
            change = "no detectable change"
        else:
            change = (
                f"{points(after.value - rate.value)},"
                f" 95%: {points(ends.low)} to {points(ends.high)}"
            )
        return self.beside(shown, f"{percent(rate.value)}; {change}")


def before(ask: Ask) -> Before | None:
    """Return the period before that of *ask*; None where it has none, or data of a part only."""
    period = queries.period_before(ask.conn, ask.scope)
    return None if period is None else Before(period.scope, f"{_length(period.length)} before")


def _length(microseconds: int) -> str:
    for unit, name in ((DAY_US, "day"), (_HOUR_US, "hour")):
        if microseconds % unit == 0:
            return plural(microseconds // unit, name)
    return "same time"


def overview_tiles(ask: Ask, found: Overview) -> tuple[Tile, ...]:
    """Return the tiles of all calls that *ask* is about, of which *found* was counted."""
    counted = found.summary
    failing = sum(1 for each in counted.tools.values() if each.failures)
    tiles = (
        count_tile(
            "Calls",
            counted.calls,
            sub=f"in {plural(counted.conversations, 'conversation')}",
            href=ask.link("/tools"),
        ),
        count_tile(
            "Failures",
            counted.failures,
            sub=plural(len(counted.codes), "code")
            + (f", {plural(failing, 'tool')}" if len(counted.tools) > 1 else ""),
            href=ask.link("/failures"),
        ),
        rate_tile("Failure rate", found.failure_rate, of="call"),
        spent_tile(counted, href=ask.link("/round-trips")),
        recovery_tile(found.recovery_rate, counted.open, href=ask.link("/round-trips")),
        rate_tile("First-try success", found.first_try, of="operation"),
    )
    earlier = before(ask)
    if earlier is None:
        return tiles
    then = queries.overview(ask.conn, earlier.scope)
    calls, failures, failure_rate, spent, recovered, first_try = tiles
    return (
        earlier.beside_count(calls, then.summary.calls),
        earlier.beside_count(failures, then.summary.failures),
        earlier.beside_rate(failure_rate, found.failure_rate, then.failure_rate),
        earlier.beside_count(spent, then.summary.calls_spent),
        earlier.beside_rate(recovered, found.recovery_rate, then.recovery_rate),
        earlier.beside_rate(first_try, found.first_try, then.first_try),
    )


def count_tile(label: str, value: int, *, sub: str = "", href: str = "") -> Tile:
    """Return a tile of a plain count."""
    return tile(label, count(value), sub=sub, href=href)


def tile(label: str, value: str, *, sub: str = "", href: str = "") -> Tile:
    """Return a tile of a figure without an interval."""
    return Tile(label=label, value=value, unit="", sub=sub, href=href, estimate=None)


def spent_tile(found: Summary, *, href: str = "") -> Tile:
    """Return the tile of the calls that failures cost; what was given up is never free."""
    others = found.calls_spent - found.round_trips
    of_others = f" and {plural(others, 'call')} of other tools" if others else ""
    return count_tile(
        "Calls spent",
        found.calls_spent,
        sub=f"{plural(found.round_trips, 'round trip')}{of_others}; "
        f"{count(found.abandoned)} abandoned",
        href=href,
    )


def recovery_tile(found: Rate, still_open: int, *, href: str = "") -> Tile:
    """Return the tile of the recovery rate, with the chains that it does not know about yet.

    A recovered chain is closed at once, an abandoned one after half an hour of silence: of the
    newest chains those that are closed have mostly recovered.
    """
    recovered = rate_tile("Recovery rate", found, of="closed chain", href=href)
    more = f", {plural(still_open, 'chain')} open" if still_open else ""
    return replace(recovered, sub=recovered.sub + more)


def rate_tile(label: str, found: Rate, *, of: str, ofs: str | None = None, href: str = "") -> Tile:
    """Return a tile of a rate with its n and interval, or "not enough data"."""
    if found.value is None:
        return Tile(label, "–", "", f"no {ofs or f'{of}s'} yet: not enough data", "", None)
    return Tile(
        label=label,
        value=percent(found.value),
        unit="",
        sub=f"95%: {percent_interval(found)}, n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
        f"{plural(found.n, of, ofs)}",
        href=href,
        estimate=estimate(found.value, found.low, found.high, scale=1.0),
    )
