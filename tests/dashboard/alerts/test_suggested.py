"""The threshold that a form suggests, by the rule of `docs/alerts.md`."""

from __future__ import annotations

import pytest
from tests.dashboard.alerts.conftest import Office
from tests.factories import failure, success

from toolfault_collector.clock import SECOND_US
from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard.alerts.preview import suggested
from toolfault_dashboard.alerts.rules import CONDITIONS, read_rule


def test_a_wide_interval_suggests_nothing(sqlite_office: Office) -> None:
    """Where one of few conversations failed and the others did not, the default is suggested."""
    office = sqlite_office
    at = office.now - SECOND_US
    for talk, make in enumerate((failure, success, success)):
        office.store(*(make(session_id=f"c{talk}", at=at + number) for number in range(40)))
    rule = read_rule(
        {"condition": "failure_rate"}, project_id=office.project, audience="system", now=office.now
    )
    with read_connection(office.engine) as conn:
        figure, threshold = suggested(conn, rule, office.now)
    assert figure is not None
    assert figure.n >= rule.least
    assert threshold == CONDITIONS["failure_rate"].threshold


@pytest.mark.parametrize(
    ("condition", "failed", "succeeded"),
    [
        ("failure_rate", 20, 180),
        ("failure_rate", 90, 10),  # at most 95%
        ("first_try_success", 20, 180),
        ("first_try_success", 90, 10),  # at least 5%
        ("failure_rate", 5, 30),  # too few: the default
        ("sender_drops", 20, 180),
    ],
)
def test_a_threshold_lies_half_as_far_again_beyond_the_interval(
    sqlite_office: Office, condition: str, failed: int, succeeded: int
) -> None:
    """1.5 times the far end, or what is missing up to 1 of it; the default where n is too small."""
    office = sqlite_office
    office.calls(failed=failed, succeeded=succeeded)
    form = {"condition": condition}
    rule = read_rule(form, project_id=office.project, audience="system", now=office.now)
    with read_connection(office.engine) as conn:
        figure, threshold = suggested(conn, rule, office.now)
    usual = CONDITIONS[condition].threshold
    if figure is None or figure.n < rule.least:
        assert threshold == usual
        return
    assert figure.low is not None
    assert figure.high is not None
    above = min(0.95, 1.5 * figure.high)
    below = max(0.05, 1 - 1.5 * (1 - figure.low))
    assert threshold == round(above if condition == "failure_rate" else below, 2)
