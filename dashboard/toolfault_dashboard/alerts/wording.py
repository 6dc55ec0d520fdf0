"""What messages say: one sentence as title, the figure with n and interval, and where to look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlencode

from toolfault_dashboard.alerts.evaluation import Figure, Notice, Sighting
from toolfault_dashboard.alerts.rules import Rule
from toolfault_dashboard.formats import count, decimal, percent, plural

__all__ = ["Text", "figure_in_words", "link_to", "notice_text", "rule_in_words"]

_LISTED: Final = 20  # kinds that one message names
_LONGEST: Final = 300  # characters of a title: names of tools come from senders


@dataclass(frozen=True, slots=True)
class Text:
    """A message before it has an address."""

    event: Literal["firing", "resolved", "digest", "test"]
    subject: str
    title: str
    body: str
    query: str  # the failures that it is about


def rule_in_words(rule: Rule) -> str:
    """Return what *rule* watches: "Failure rate rises above 20 % (n at least 50) in 24h"."""
    asks = rule.asks
    if asks.kind == "digest":
        return "Every day" if rule.window == "24h" else "Every Monday"
    words = asks.label
    if asks.kind in ("above", "below") and rule.condition != "sender_drops":
        words += f" {_value(rule, rule.threshold)}, n at least {count(rule.least)}"
    elif rule.least > 1:
        words += f", at least {count(rule.least)}"
    return f"{words}, in the last {rule.window}"


def figure_in_words(rule: Rule, figure: Figure | None) -> str:
    """Return a figure with its interval and n; why there is none where that is so."""
    if figure is None:
        return "–"
    if rule.asks.kind == "none" or rule.condition == "sender_drops":
        return plural(int(figure.value or 0), rule.asks.unit.removesuffix("s"))
    if figure.value is None:
        return f"not enough data, n = {count(figure.n)}"
    words = _value(rule, figure.value)
    if figure.low is not None:
        words += f" (95% interval {_value(rule, figure.low)} to {_value(rule, figure.high)})"
    return f"{words}, n = {count(figure.n)} {rule.asks.unit}"


def notice_text(rule: Rule, notice: Notice, project: str) -> Text:
    """Return what is said of *notice*, to be read without the page."""
    if notice.sightings:
        return _of_kinds(rule, notice, project)
    over = notice.event == "resolved"
    head = "Resolved" if over else "Alert"
    return Text(
        notice.event,
        notice.subject,
        f"{head}: {rule.name} [{project}]"[:_LONGEST],
        "\n".join(
            (
                f"Rule: {rule_in_words(rule)}",
                f"Scope: {rule.query or 'everything'}",
                f"{'It is now' if over else 'Now'}: {figure_in_words(rule, notice.figure)}",
            )
        ),
        _failures_of(rule),
    )


def _of_kinds(rule: Rule, notice: Notice, project: str) -> Text:
    first, *others = notice.sightings
    title = f"{plural(len(notice.sightings), 'kind')} of failure" if others else first.title
    body = [f"Rule: {rule.name} ({rule_in_words(rule)})", f"Scope: {rule.query or 'everything'}"]
    body += [f"- {_line(rule, each)}" for each in notice.sightings[:_LISTED]]
    if len(notice.sightings) > _LISTED:
        body.append(f"- and {count(len(notice.sightings) - _LISTED)} more")
    query = _failures_of(rule) if others else " ".join(filter(None, (rule.query, first.query)))
    return Text(
        "firing",
        notice.subject,
        f"{_head(rule, first)}: {title} [{project}]"[:_LONGEST],
        "\n".join(body),
        query,
    )


def _head(rule: Rule, first: Sighting) -> str:
    if rule.condition == "user_failures":
        return "A person is needed"
    return "Back after its fix" if first.fixed_at is not None else "New failure"


def _line(rule: Rule, sighting: Sighting) -> str:
    failures = plural(sighting.failures, "failure")
    return f"{sighting.title}: {failures} in the last {rule.window}"


def _failures_of(rule: Rule) -> str:
    return " ".join(filter(None, (rule.query, f"since:{rule.window}")))


def link_to(public_url: str, project: str, query: str) -> str:
    """Return the address of the failures that a message is about; "" where none is known."""
    if not public_url:
        return ""
    return f"{public_url.rstrip('/')}/failures?{urlencode({'q': query, 'project': project})}"


def _value(rule: Rule, value: float | None) -> str:
    return percent(value) if rule.asks.share else decimal(value)
