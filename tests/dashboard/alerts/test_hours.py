"""Quiet hours and digests by the clock of a place, also where it is changed."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_dashboard.alerts.hours import DIGEST_HOUR, last_due, not_before
from toolfault_dashboard.alerts.rules import Rule, read_rule

_ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
_TIMES = st.integers(0, 23 * 60 + 59).map(lambda minute: f"{minute // 60:02d}:{minute % 60:02d}")
_NOWS = st.integers(20_000 * DAY_US // MINUTE_US, 20_800 * DAY_US // MINUTE_US)


def _rule(**form: str) -> Rule:
    return read_rule(form, project_id=1, audience="user", now=0)


def _local(at: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at / 1_000_000, UTC).astimezone(ZoneInfo(zone))


@given(_TIMES, _TIMES, _ZONES, _NOWS)
def test_a_message_waits_for_the_end_of_the_quiet_hours_and_no_longer(
    begin: str, end: str, zone: str, minute: int
) -> None:
    """It goes out at once outside them, else at their end, within a day (25 hours once a year)."""
    if begin == end:
        return
    now = minute * MINUTE_US
    rule = _rule(quiet=f"{begin}-{end}", zone=zone)

    due = not_before(rule, now)

    clock = f"{_local(now, zone):%H:%M}"
    quiet = begin <= clock < end if begin < end else clock >= begin or clock < end
    if not quiet:
        assert due == now
    else:
        assert now <= due <= now + DAY_US + 60 * MINUTE_US
        # An hour that the clock skips in spring is over as soon as it would have begun.
        assert f"{_local(due, zone):%H:%M}" >= end or due == now


@given(st.sampled_from([("24h", 1), ("7d", 7)]), _ZONES, _NOWS)
def test_a_digest_is_due_at_eight_and_the_last_time_is_the_last(
    period: tuple[str, int], zone: str, minute: int
) -> None:
    """The moment lies in the past, no further back than its period, at eight, on a Monday."""
    window, days = period
    now = minute * MINUTE_US
    due = last_due(_rule(condition="digest", last=window, zone=zone), now)

    assert now - days * DAY_US - 60 * MINUTE_US < due <= now
    assert _local(due, zone).hour == DIGEST_HOUR
    assert days == 1 or _local(due, zone).weekday() == 0
