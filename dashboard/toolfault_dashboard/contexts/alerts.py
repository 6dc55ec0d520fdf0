"""Alerts: the list, and the form of one rule with its preview."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.alerts.rules import Condition
from toolfault_dashboard.alerts.store import AlertMessage, ChannelRow, RuleRow

__all__ = [
    "AlertContext",
    "AlertLine",
    "AlertMessageLine",
    "AlertsContext",
    "FiringLine",
    "PreviewLines",
]


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One rule in the list."""

    row: Doc[RuleRow, "What is stored."]
    words: Doc[str, "What it watches, in words."]
    figure: Doc[str, "What was measured last, with its interval and n."]
    state: Doc[str, "`firing`, `pending`, `quiet` or `snoozed`."]
    tone: Doc[str, "How its badge is coloured."]
    href: Doc[str, "Where it is changed."]
    scope: Doc[str, "The failures that it is about."]


@dataclass(frozen=True, slots=True)
class AlertMessageLine:
    """One message in the history."""

    row: Doc[AlertMessage, "What is stored."]
    became: Doc[str, "Whether it was sent, in words."]
    href: Doc[str, "The failures that it is about."]


@dataclass(frozen=True, slots=True)
class AlertsContext:
    """`alerts.html`."""

    rules: Doc[tuple[AlertLine, ...], "The rules of the project, by name."]
    history: Doc[tuple[AlertMessageLine, ...], "The newest messages, newest first."]
    channels: Doc[int, "How many channels the project has."]
    failing: Doc[tuple[str, ...], "Names of channels that could not be reached last time."]
    may_settings: Doc[bool, "Whether this person may make channels."]
    done: Doc[str, "What was just done, as a sentence; else empty."]
    links: Doc[dict[str, str], "Addresses: new, rules_csv, history_csv, settings."]


@dataclass(frozen=True, slots=True)
class FiringLine:
    """One time at which the rule would have spoken."""

    began_at: Doc[int, "When, in microseconds."]
    ended: Doc[str, "How long it went on, in words; empty where that has no meaning."]
    title: Doc[str, "What it would have said."]
    figure: Doc[str, "What was measured then; empty where it is a kind of failure."]


@dataclass(frozen=True, slots=True)
class PreviewLines:
    """What the rule would have said in the past days."""

    sentence: Doc[str, "How often it would have fired."]
    now: Doc[str, "What is measured now, or at the end of what was looked at."]
    method: Doc[str, "What was looked at."]
    firings: Doc[tuple[FiringLine, ...], "Each time, newest first."]


@dataclass(frozen=True, slots=True)
class AlertContext:
    """`alert.html`."""

    number: Doc[int, "The rule that is changed; 0 for a new one."]
    title: Doc[str, "Heading of the page."]
    form: Doc[dict[str, str], "The fields as typed: name, condition, q, threshold, ..."]
    condition: Doc[Condition, "What is watched."]
    conditions: Doc[tuple[Condition, ...], "What can be watched."]
    windows: Doc[tuple[tuple[str, str], ...], "How much of the past: value and label."]
    channels: Doc[tuple[ChannelRow, ...], "Where messages can go."]
    usual: Doc[str, "What the figure was in the last 30 days, in words; empty if none."]
    preview: Doc[PreviewLines | None, "When it would have fired; None where the form is wrong."]
    problem: Doc[str, "What is wrong with the form; empty if nothing."]
    may_settings: Doc[bool, "Whether this person may make channels."]
    links: Doc[dict[str, str], "Addresses: alerts, settings."]
