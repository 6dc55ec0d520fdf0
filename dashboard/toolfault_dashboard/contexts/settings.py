"""Settings, and Rejected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_collector.admin.audit import Act
from toolfault_collector.admin.keys import ApiKey
from toolfault_collector.otlp.soft_rules import SoftRule
from toolfault_dashboard.access.signin import Account
from toolfault_dashboard.alerts.store import ChannelRow
from toolfault_dashboard.queries.counted import CountedLine
from toolfault_dashboard.queries.received import Reached, ReceivedRow
from toolfault_dashboard.queries.rejected import RejectedRow
from toolfault_dashboard.queries.rows import ProjectRow

__all__ = [
    "ProjectLine",
    "ReceivedContext",
    "RejectedContext",
    "SettingLine",
    "SettingsContext",
]


@dataclass(frozen=True, slots=True)
class ProjectLine:
    """A project in the list."""

    row: Doc[ProjectRow, "What is stored."]
    href: Doc[str, "Its settings."]
    current: Doc[bool, "Whether these settings are its."]


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One setting of the project that can be changed here."""

    name: Doc[str, "Name of its field."]
    label: Doc[str, "What it is, in words."]
    value: Doc[str, "What is stored; empty where the server decides."]
    default: Doc[str, "What the server decides, as it would be written here."]
    meaning: Doc[str, "What it does, and what an empty field means."]
    number: Doc[bool, "Whether it is a whole number."]


@dataclass(frozen=True, slots=True)
class SettingsContext:
    """`settings.html`."""

    project: Doc[str, "The project whose keys are shown; empty before there is one."]
    projects: Doc[tuple[ProjectLine, ...], "All projects of this server, by name."]
    keys: Doc[tuple[ApiKey, ...], "Its keys, oldest first, revoked ones included."]
    accounts: Doc[tuple[Account, ...], "All accounts, by name."]
    roles: Doc[tuple[str, ...], "The roles to choose from, lowest first."]
    acts: Doc[tuple[Act, ...], "The newest rows of the audit log, newest first."]
    role_meanings: Doc[
        tuple[tuple[str, str, str], ...], "Each role: its name, what it sees, what it may write."
    ]
    settings: Doc[tuple[SettingLine, ...], "Retention, new kinds and prices of the project."]
    predictions: Doc[str, "How well predictions of Fix next held, as a sentence."]
    soft_rules: Doc[tuple[SoftRule, ...], "Soft rules as they are for the project."]
    server: Doc[
        tuple[tuple[str, str, str], ...], "What the environment decides: name, value, variable."
    ]
    channels: Doc[tuple[ChannelRow, ...], "Where alerts are sent, without what is secret."]
    links: Doc[dict[str, str], "Addresses of the tables as CSV: keys, channels, people, audit."]
    secret: Doc[str, "A key or sign-in link just made, shown this once; else empty."]
    secret_title: Doc[str, "What the secret is, in words."]
    secret_hint: Doc[str, "What becomes of it."]
    done: Doc[str, "What was just done, as a sentence; else empty."]
    problem: Doc[str, "Why something was not done; else empty."]


@dataclass(frozen=True, slots=True)
class RejectedContext:
    """`rejected.html`."""

    rows: Doc[tuple[RejectedRow, ...], "This page of refused events, newest first."]
    by_code: Doc[tuple[tuple[str, int], ...], "How many there are by code, most first."]
    total: Doc[int, "Refused events in all."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    csv: Doc[str, "All of them as CSV."]


@dataclass(frozen=True, slots=True)
class ReceivedContext:
    """`received.html`."""

    rows: Doc[tuple[ReceivedRow, ...], "This page of requests, newest first."]
    total: Doc[int, "Requests that are kept in all."]
    reached: Doc[Reached, "Calls that came over OpenTelemetry, and those without a span."]
    counted: Doc[tuple[CountedLine, ...], "Tools as metrics count them, beside what is stored."]
    counted_csv: Doc[str, "These as CSV."]
    endpoint: Doc[str, "Where an exporter sends to."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    csv: Doc[str, "All of them as CSV."]
