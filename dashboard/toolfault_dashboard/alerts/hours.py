"""Quiet hours and the moments of a digest, in the time zone of a rule."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from toolfault_dashboard.alerts.rules import DIGEST_PERIODS, Rule

__all__ = ["DIGEST_HOUR", "last_due", "not_before"]

DIGEST_HOUR: Final = 8
"""The hour at which a digest is made, in the zone of its rule; a week's on Monday."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def not_before(rule: Rule, now: int) -> int:
    """Return when a message decided at *now* may go out: now, or the end of the quiet hours.

    Args:
        rule: Whose hours and zone count.
        now: Microseconds since the epoch.
    """
    if not rule.quiet:
        return now
    begin, end = (time.fromisoformat(each) for each in rule.quiet.split("-"))
    local = _local(now, rule.zone)
    clock = local.time()
    quiet = begin <= clock < end if begin < end else clock >= begin or clock < end
    if not quiet:
        return now
    over = datetime.combine(local.date(), end, tzinfo=local.tzinfo)
    if over <= local:
        over = datetime.combine(local.date() + timedelta(days=1), end, tzinfo=local.tzinfo)
    # Where the clocks were changed in between the hour may lie a little earlier than now.
    return max(now, _us(over))


def last_due(rule: Rule, now: int) -> int:
    """Return the last moment at or before *now* at which the digest of *rule* was due."""
    local = _local(now, rule.zone)
    days = DIGEST_PERIODS[rule.window]
    day = local.date()
    if days == 7:
        day -= timedelta(days=day.weekday())
    due = datetime.combine(day, time(DIGEST_HOUR), tzinfo=local.tzinfo)
    if _us(due) > now:
        due = datetime.combine(day - timedelta(days=days), time(DIGEST_HOUR), tzinfo=local.tzinfo)
    return _us(due)


def _local(now: int, zone: str) -> datetime:
    return (_EPOCH + timedelta(microseconds=now)).astimezone(ZoneInfo(zone))


def _us(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // _MICROSECOND
