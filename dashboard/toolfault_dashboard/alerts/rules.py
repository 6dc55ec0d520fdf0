"""What a rule can ask for, and how one is read from a form or a command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_dashboard.access.policy import Audience
from toolfault_dashboard.search import QueryError, parse

__all__ = [
    "CONDITIONS",
    "DIGEST_PERIODS",
    "HOLD_US",
    "PERIOD_US",
    "WINDOWS",
    "Condition",
    "ConditionName",
    "Rule",
    "as_written",
    "read_rule",
]

ConditionName = Literal[
    "failure_rate",
    "first_try_success",
    "recovery_rate",
    "round_trips_per_operation",
    "new_kind",
    "user_failures",
    "no_data",
    "sender_drops",
    "digest",
]

HOUR_US: Final = 60 * MINUTE_US
PERIOD_US: Final = MINUTE_US
"""How often a rule is evaluated, at most."""

HOLD_US: Final = 10 * MINUTE_US
"""How long a condition must hold before it fires, and how long it must be over before it resolves:
one odd minute is no news."""

WINDOWS: Final[Mapping[str, int]] = {
    "1h": HOUR_US,
    "6h": 6 * HOUR_US,
    "24h": DAY_US,
    "7d": 7 * DAY_US,
}
"""How much of the past a rule looks at, by what a form calls it."""

DIGEST_PERIODS: Final[Mapping[str, int]] = {"24h": 1, "7d": 7}
"""Days that a digest is about, by the window of its rule."""

_LONGEST_NAME: Final = 128
_LONGEST_QUERY: Final = 8_192
_QUIET: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that can be watched.

    Attributes:
        name: As stored and as commands call it.
        label: In words, as the form shows it.
        kind: ``above`` and ``below`` compare a figure with a threshold; ``kinds`` speaks once for
            each kind of failure; ``none`` is about data that does not come; ``digest`` reports.
        share: Whether the threshold is a share, 0 to 1, and shown in percent.
        unit: What a figure's n counts, or what is counted.
        threshold: Default threshold.
        least: Default floor on n (of figures), or how many there must be (of counts and kinds).
        window: Default window.
        meaning: What it is for, in a sentence.
    """

    name: ConditionName
    label: str
    kind: Literal["above", "below", "kinds", "none", "digest"]
    share: bool
    unit: str
    threshold: float
    least: int
    window: str
    meaning: str


CONDITIONS: Final[Mapping[str, Condition]] = {
    each.name: each
    for each in (
        Condition(
            "failure_rate", "Failure rate rises above", "above", True, "calls", 0.2, 50, "24h",
            "Fires when the low end of the rate's 95% interval is above the threshold.",
        ),
        Condition(
            "first_try_success", "First-try success falls below", "below", True, "operations",
            0.8, 50, "24h",
            "Fires when the high end of the 95% interval is below the threshold.",
        ),
        Condition(
            "recovery_rate", "Recovery rate falls below", "below", True, "closed chains",
            0.5, 20, "24h",
            "Fires when the high end of the 95% interval is below the threshold.",
        ),
        Condition(
            "round_trips_per_operation", "Round trips per operation rise above", "above", False,
            "operations", 0.5, 50, "24h",
            "Fires when the low end of the 95% interval is above the threshold.",
        ),
        Condition(
            "new_kind", "A kind of failure is new or comes back", "kinds", False, "failures",
            0, 1, "24h",
            "One message for each kind: when it is seen for the first time, and when it comes back "
            "after it was fixed.",
        ),
        Condition(
            "user_failures", "Failures that only a person can fix", "kinds", False, "failures",
            0, 1, "24h",
            "Failures whose audience is user. One message for a kind, and the next one when it has "
            "been gone for the whole window and a new chain begins with it.",
        ),
        Condition(
            "no_data", "No data", "none", False, "calls", 0, 1, "6h",
            "Fires when no call came in the window, and some did in the seven days before it.",
        ),
        Condition(
            "sender_drops", "A sender drops events", "above", False, "events", 0, 1, "24h",
            "Fires when senders say that they lost events.",
        ),
        Condition(
            "digest", "Digest", "digest", False, "", 0, 1, "7d",
            "The report, at 8:00 every day or every Monday, when there is something to tell.",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a project.

    Attributes:
        id: Its number; 0 before it is stored.
        project_id: Whose it is.
        name: What its messages are headed by.
        condition: What is watched.
        query: Scope, as the query language writes it; "" is everything.
        audience: The highest audience that its maker may see; what it measures is capped by it.
        threshold: Of figures: a share or a number.
        least: Floor on n, or how many there must be.
        window_us: How much of the past is looked at, in microseconds.
        channel_id: Where its messages go; None is every channel of the project.
        quiet: Hours in which nothing is sent, ``22:00-07:00``; "" for none.
        zone: The time zone of these hours and of digests.
        snoozed_until: Nothing is sent before this moment, in microseconds; 0 for no snooze.
        created_at: When it was made: nothing older is told.
    """

    id: int
    project_id: int
    name: str
    condition: ConditionName
    query: str
    audience: Audience
    threshold: float
    least: int
    window_us: int
    channel_id: int | None = None
    quiet: str = ""
    zone: str = "UTC"
    snoozed_until: int = 0
    created_at: int = 0

    @property
    def asks(self) -> Condition:
        """What is watched."""
        return CONDITIONS[self.condition]

    @property
    def window(self) -> str:
        """The window as a form calls it."""
        return next((name for name, us in WINDOWS.items() if us == self.window_us), "24h")


def as_written(rule: Rule) -> dict[str, str]:
    """Return *rule* as the fields of the form that would make it."""
    share = rule.asks.share
    return {
        "name": rule.name,
        "condition": rule.condition,
        "q": rule.query,
        "threshold": f"{rule.threshold * (100 if share else 1):g}",
        "least": str(rule.least),
        "last": rule.window,
        "channel": str(rule.channel_id or ""),
        "quiet": rule.quiet,
        "zone": rule.zone,
    }


def read_rule(
    form: Mapping[str, str],
    *,
    project_id: int,
    audience: Audience,
    now: int,
    id: int = 0,  # noqa: A002
) -> Rule:
    """Return the rule that a form describes; what it leaves out takes its default.

    Args:
        form: Fields as `as_written` gives them; shares are in percent.
        project_id: The project.
        audience: The highest audience that the maker may see.
        now: Microseconds since the epoch.
        id: Number of the rule that is edited.

    Raises:
        ValueError: A field cannot be used; the text says what to write instead.
    """
    condition = CONDITIONS.get(form.get("condition") or "failure_rate")
    if condition is None:
        raise ValueError(f"Choose what to watch: {', '.join(get_args(ConditionName))}.")
    query = _query(form.get("q", "").strip(), condition)
    threshold = _threshold(form.get("threshold", "").strip(), condition)
    name = form.get("name", "").strip() or _name(condition, threshold, query)
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise ValueError(f"Give the rule a name of at most {_LONGEST_NAME} characters.")
    window = form.get("last") or condition.window
    if window not in (DIGEST_PERIODS if condition.kind == "digest" else WINDOWS):
        raise ValueError(f"Choose a window: {', '.join(WINDOWS)}; of a digest 24h or 7d.")
    channel = form.get("channel", "").strip()
    if channel and not (channel.isdecimal() and len(channel) <= 18):
        raise ValueError("Choose a channel of this project.")
    return Rule(
        id=id,
        project_id=project_id,
        name=name,
        condition=condition.name,
        query=query,
        audience=audience,
        threshold=threshold,
        least=_least(form.get("least", "").strip(), condition),
        window_us=WINDOWS[window],
        channel_id=int(channel) if channel else None,
        quiet=_quiet(form.get("quiet", "").replace(" ", "")),
        zone=_zone(form.get("zone", "").strip() or "UTC"),
        created_at=now,
    )


def _name(condition: Condition, threshold: float, query: str) -> str:
    words = condition.label
    if condition.kind in ("above", "below") and condition.threshold:
        words += f" {threshold:.0%}" if condition.share else f" {threshold:g}"
    return f"{words} ({query or 'everything'})"[:_LONGEST_NAME]


def _query(text: str, condition: Condition) -> str:
    if len(text) > _LONGEST_QUERY:
        raise ValueError(f"The query has more than {_LONGEST_QUERY} characters.")
    try:
        query = parse(text)
    except QueryError as error:
        raise ValueError(f"The query cannot be read: {error}") from None
    if query.clauses and condition.name == "sender_drops":
        raise ValueError("What senders drop belongs to no tool: leave the query empty.")
    return str(query.without("since", "until"))


def _threshold(text: str, condition: Condition) -> float:
    if not text:
        return condition.threshold
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        raise ValueError("Write the threshold as a number, such as 20.") from None
    if condition.share:
        if not 0 < value < 100:
            raise ValueError("Write the threshold in percent, above 0 and below 100.")
        return value / 100
    if not 0 <= value < 1e9:
        raise ValueError("Write a threshold of 0 or more.")
    return value


def _least(text: str, condition: Condition) -> int:
    if not text:
        return condition.least
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:10]) < 1_000_000_000):
        raise ValueError("Write how many there must be at least as a whole number above 0.")
    return int(text[:10])


def _quiet(text: str) -> str:
    if text and (not _QUIET.fullmatch(text) or text[:5] == text[6:]):
        raise ValueError("Write quiet hours as 22:00-07:00, or leave the field empty.")
    return text


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("Write the time zone as Europe/Berlin or UTC.") from None
    return text
