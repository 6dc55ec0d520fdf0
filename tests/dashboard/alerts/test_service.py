"""From what was stored to what arrives: evaluated, decided, sent, each once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import random
import signal

import pytest
from sqlalchemy import event, update
from tests.dashboard.alerts.conftest import LOCAL, Office
from tests.factories import change, failure
from tests.starting import completed

from toolfault_collector.clock import MINUTE_US, SECOND_US
from toolfault_collector.failpoints import ALERT_POINTS
from toolfault_collector.retention.policy import prune
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.drops import count_drops
from toolfault_collector.storage.tables import alert_lease
from toolfault_dashboard.alerts.store import (
    MOST_PER_MINUTE,
    back_off,
    channel_rows,
    rule_rows,
    snooze_rule,
)
from toolfault_dashboard.writes.kind_states import Decision, decide

# A returning kind, whose query differs most, and two servers at once are tried on both in each run.
mostly_sqlite = pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.long])],
    indirect=True,
)


@mostly_sqlite
def test_a_rising_rate_is_told_once_and_its_end_once(office: Office) -> None:
    """Pending, firing after ten minutes, resolved after ten clear ones: two signed messages."""
    secret = office.channel()
    office.rule(condition="failure_rate", threshold="20", last="1h", name="rate")
    service = office.service()
    office.calls(failed=40, succeeded=40)
    for _ in range(4):
        service.run_once()
        office.later(6)
    assert [each.data["rule"] for each in office.receiver.deliveries] == ["rate"]

    office.later(60)
    office.calls(failed=1, succeeded=200)
    for _ in range(4):
        service.run_once()
        office.later(6)

    first, second = office.receiver.deliveries
    assert [each.document["type"] for each in (first, second)] == [
        "alert.firing",
        "alert.resolved",
    ]
    assert "50.0%" in first.data["text"]
    assert "n = 80 calls" in first.data["text"]
    assert "n = 201 calls" in second.data["text"]
    for each in (first, second):
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{each.id}.{each.headers['webhook-timestamp']}.".encode() + each.body
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert each.headers["webhook-signature"] == f"v1,{expected}"


@mostly_sqlite
def test_a_kind_is_told_once_however_often_it_is_retried(office: Office) -> None:
    """One message for a chain of many attempts, and none for the next chain of a kind that fires.

    Gone for the window, it is told again when a new chain begins.
    """
    office.channel()
    office.rule(condition="user_failures", last="1h")
    service = office.service()
    office.later(1)

    def attempts(conversation: str, number: int) -> None:
        at = office.now - SECOND_US
        for_person = {"audience": "user"}
        office.store(
            *(
                failure(session_id=conversation, at=at + each, error=for_person)
                for each in range(number)
            )
        )

    attempts("a", 3)
    service.run_once()
    office.later(2)
    attempts("a", 5)
    attempts("b", 1)
    service.run_once()
    assert len(office.receiver.deliveries) == 1
    assert office.receiver.deliveries[0].data["title"].startswith("A person is needed")

    office.later(100)
    service.run_once()
    attempts("a", 2)  # the same chain goes on
    service.run_once()
    office.later(2)
    service.run_once()
    assert len(office.receiver.deliveries) == 1

    attempts("c", 2)
    service.run_once()
    assert len(office.receiver.deliveries) == 1  # the kind has not been gone since
    office.later(100)
    service.run_once()
    attempts("d", 2)
    office.later(2)
    service.run_once()
    assert len(office.receiver.deliveries) == 2


@mostly_sqlite
def test_a_new_kind_is_told_and_an_old_one_is_not(office: Office) -> None:
    """Seen before the rule was made, a kind is no news; the next one is, with its failures."""
    office.calls(failed=2, succeeded=0, code="wrong_type")
    office.channel()
    office.later(1)
    office.rule(condition="new_kind", q="tool:http*")
    office.later(1)
    office.calls(failed=1, succeeded=0, code="wrong_type")
    office.calls(failed=3, succeeded=0, code="not_found")
    office.calls(failed=3, succeeded=0, code="timeout", tool="search")
    service = office.service()
    for _ in range(3):
        service.run_once()
        office.later(2)

    (told,) = office.receiver.deliveries
    assert told.data["title"] == "New failure: http_request fails with not_found (url) [demo]"
    assert "3 failures" in told.data["text"]
    assert "signature:" in told.data["query"]


def test_a_kind_that_came_back_is_told_again_and_an_ignored_one_is_not(office: Office) -> None:
    """Fixed and seen again: one more message. Set aside: none, new or not."""
    office.channel()
    office.rule(condition="new_kind", last="24h")
    service = office.service()
    office.later(1)
    office.calls(failed=1, succeeded=0)
    service.run_once()
    (first,) = office.receiver.deliveries
    kind = first.data["subject"]

    office.later(2)
    _decide(office, kind, Decision(state="fixed"))
    office.later(2)
    service.run_once()
    assert len(office.receiver.deliveries) == 1
    office.calls(failed=2, succeeded=0)
    office.later(2)
    service.run_once()
    office.later(2)
    service.run_once()
    assert [each.data["title"].split(":")[0] for each in office.receiver.deliveries] == [
        "New failure",
        "Back after its fix",
    ]
    _decide(office, kind, Decision(state="fixed"))
    office.later(2)
    office.calls(failed=2, succeeded=0)
    _decide(office, kind, Decision(state="ignored"))
    office.later(2)
    service.run_once()
    assert len(office.receiver.deliveries) == 2


def test_a_return_is_told_once_whatever_retention_removes(sqlite_office: Office) -> None:
    """Neither what is pruned since the fix nor a month of silence makes it news again.

    That holds for a rule made after the kind came back, which has nothing to tell of it.
    """
    office = sqlite_office
    office.channel()
    office.rule(condition="new_kind", name="before")
    service = office.service()
    office.later(1)
    office.calls(failed=1, succeeded=0)
    service.run_once()
    kind = office.receiver.deliveries[0].data["subject"]
    _decide(office, kind, Decision(state="fixed"))
    office.later(1)
    office.calls(failed=1, succeeded=0)
    office.later(1)
    office.rule(condition="new_kind", name="after")
    other = "not_found"
    for days, code in ((0, ""), (25, ""), (25, ""), (25, ""), (5, other), (35, other), (1, "")):
        office.later(days * 24 * 60)
        office.calls(failed=1, succeeded=0, code=code or "wrong_type")
        service.run_once()
        office.later(2)
        prune(office.engine, days=60, force=True, clock=lambda: office.now)
        service.run_once()

    told = [(each.data["rule"], each.data["title"][:4]) for each in office.receiver.deliveries]
    assert [each for each in told if each[1] == "Back"] == [("before", "Back")]


def _decide(office: Office, kind: str, decision: Decision) -> None:
    decide(office.engine, office.project, [kind], decision, actor="ada", now=office.now)


@mostly_sqlite
def test_silence_and_drops_are_told_though_nothing_arrives(office: Office) -> None:
    """No data fires by waiting; what a sender says it lost fires from its counts."""
    office.channel()
    office.rule(condition="no_data", last="1h", name="silence")
    office.rule(condition="sender_drops", last="1h", least="5", name="drops")
    office.calls(failed=0, succeeded=3)
    with write_transaction(office.engine) as conn:
        count_drops(conn, [(office.project, office.now, {"queue_overflow": 4, "size": 3})])
    service = office.service()
    for _ in range(16):
        service.run_once()
        office.later(6)

    said = [(each.data["rule"], each.document["type"]) for each in office.receiver.deliveries]
    assert said == [("drops", "alert.firing"), ("silence", "alert.firing")]
    assert "7 events" in office.receiver.deliveries[0].data["text"]


def test_a_digest_is_sent_once_when_it_is_due_and_worth_it(sqlite_office: Office) -> None:
    """A day with a new kind is told the next morning, once; a day without news is not."""
    office = sqlite_office
    office.channel()
    office.rule(condition="digest", last="24h", name="daily")
    service = office.service()
    office.calls(failed=4, succeeded=4)
    for _ in range(24):
        service.run_once()
        office.later(120)

    (digest,) = office.receiver.deliveries
    assert digest.document["type"] == "alert.digest"
    assert "## This day" in digest.data["text"]
    assert "wrong\\_type" in digest.data["text"] or "wrong_type" in digest.data["text"]


def test_a_digest_tells_of_a_change_alone(sqlite_office: Office) -> None:
    """A week in which nothing new failed, but something was changed, is worth a report."""
    office = sqlite_office
    office.calls(failed=4, succeeded=40)
    office.later(15 * 24 * 60)
    office.channel()
    office.rule(condition="digest", last="7d", name="weekly")
    service = office.service()
    office.store(change(at=office.now))
    for _ in range(15):
        office.later(24 * 60)
        service.run_once()

    (digest,) = office.receiver.deliveries
    assert digest.data["title"].startswith("Weekly digest")


@pytest.mark.parametrize(("failed", "told"), [(90, 1), (10, 0)])
def test_a_digest_tells_of_a_metric_alone(sqlite_office: Office, failed: int, told: int) -> None:
    """A day with more failures of an old kind is told if they are more than chance brings."""
    office = sqlite_office
    office.calls(failed=1, succeeded=10)
    office.later(30 * 24 * 60)
    office.calls(failed=10, succeeded=90)
    office.channel()
    office.rule(condition="digest", last="24h", name="daily")
    service = office.service()
    service.run_once()
    office.later(24 * 60)
    office.calls(failed=failed, succeeded=100 - failed)
    for _ in range(24):
        office.later(60)
        service.run_once()

    days = [each.data["text"] for each in office.receiver.deliveries]
    assert len(days) == told


def test_quiet_hours_and_snooze_delay_but_lose_nothing(sqlite_office: Office) -> None:
    """What is decided in quiet hours goes out at their end; what a snooze held back, after it."""
    office = sqlite_office
    office.channel()
    office.rule(condition="new_kind", quiet="11:00-14:30", name="quiet")
    snoozed = office.rule(condition="user_failures", last="24h", name="snoozed")
    until = office.now + 60 * MINUTE_US
    snooze_rule(office.engine, office.project, snoozed, until, actor="ada")
    service = office.service()
    office.later(1)
    office.calls(failed=2, succeeded=0, error={"audience": "user"})
    arrived: dict[str, int] = {}
    for _ in range(20):
        service.run_once()
        for each in office.receiver.deliveries:
            arrived.setdefault(each.data["rule"], office.now)
        office.later(10)

    assert len(office.receiver.deliveries) == 2
    assert until <= arrived["snoozed"] <= until + 10 * MINUTE_US
    over = until + 90 * MINUTE_US  # half past two
    assert over <= arrived["quiet"] <= over + 10 * MINUTE_US


@mostly_sqlite
def test_a_failing_channel_backs_off_and_loses_nothing(office: Office) -> None:
    """It is tried again after a minute, two, four; shown with why; the other channel goes on."""
    office.channel("works")
    office.channel("broken", "http://127.0.0.1:1/none")
    office.rule(condition="new_kind")
    service = office.service()
    office.later(1)
    office.calls(failed=1, succeeded=0)
    attempts = 0
    for _ in range(20):
        service.run_once()
        office.later(1)
    with read_connection(office.engine) as conn:
        broken, works = channel_rows(conn, office.project)
    assert len(office.receiver.deliveries) == 1
    assert (works.failures, works.error, works.waiting) == (0, "", 0)
    attempts = broken.failures
    assert attempts == 5  # after 0, 1, 3, 7 and 15 minutes
    assert broken.waiting == 1
    assert broken.error.startswith("It could not be reached")
    assert [back_off(each) // MINUTE_US for each in (1, 2, 3, 7, 99)] == [1, 2, 4, 60, 60]

    office.receiver.status = 500
    office.calls(failed=1, succeeded=0, code="not_found")
    service.run_once()
    office.receiver.status = 204
    office.later(2)
    service.run_once()
    first, *others = office.receiver.by_id().values()
    assert [len(first), *map(len, others)] == [1, 2]  # once more, under the same id


def test_a_channel_is_sent_so_many_messages_a_minute(sqlite_office: Office) -> None:
    """A flood goes out in portions, in order, and all of it."""
    office = sqlite_office
    office.channel()
    for number in range(3):
        office.rule(condition="new_kind", name=f"rule {number}")
    service = office.service()
    office.later(1)
    for number in range(10):
        office.calls(failed=1, succeeded=0, code=f"code_{number}")
    service.run_once()
    service.run_once()
    assert len(office.receiver.deliveries) == MOST_PER_MINUTE
    office.later(2)
    service.run_once()
    assert [each.id for each in office.receiver.deliveries] == [
        row.message_id for row in office.outbox()
    ]


def test_one_of_two_servers_decides_and_sends(office: Office) -> None:
    """While one holds the lease the other does nothing; when it runs out the other goes on."""
    office.channel()
    office.rule(condition="new_kind")
    first, second = office.service(), office.service()
    office.later(1)
    office.calls(failed=1, succeeded=0)
    first.run_once()
    office.later(2)
    office.calls(failed=1, succeeded=0, code="not_found")
    second.run_once()
    assert len(office.outbox()) == 1

    with write_transaction(office.engine) as conn:
        conn.execute(update(alert_lease).values(expires_at=0))  # as if its time were over
    second.run_once()
    first.run_once()
    assert len(office.outbox()) == len(office.receiver.by_id()) == 2
    assert len(office.receiver.deliveries) == 2


def test_nothing_is_written_while_nothing_happens(sqlite_office: Office) -> None:
    """Rules over a project to which nothing came cost reads alone, and no figure is measured."""
    office = sqlite_office
    office.channel()
    office.rule(condition="failure_rate")
    office.rule(condition="no_data", name="silence")
    office.calls(failed=1, succeeded=9)
    service = office.service()
    service.run_once()
    written: list[str] = []

    @event.listens_for(office.engine, "before_cursor_execute")
    def _look(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        written.append(statement)

    for _ in range(3):
        office.later(2)
        service.run_once()
    assert written
    assert [each for each in written if not each.lstrip().startswith(("SELECT", "BEGIN"))] == []
    assert not any("tool_call.success" in each and "model" in each for each in written)


def test_a_rule_that_cannot_be_evaluated_says_why(sqlite_office: Office) -> None:
    """A rule whose maker may not filter like that sends nothing and shows the reason."""
    office = sqlite_office
    number = office.rule(condition="failure_rate", q="exception:ValueError")
    with write_transaction(office.engine) as conn:
        conn.exec_driver_sql(f"UPDATE alert_rule SET audience = 'user' WHERE id = {number}")
    office.calls(failed=9, succeeded=0)
    office.service().run_once()
    with read_connection(office.engine) as conn:
        (row,) = rule_rows(conn, office.project)
    assert row.problem
    assert office.outbox() == []


KILLED = """
import sys
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import open_engine
from toolfault_dashboard.alerts.service import AlertService
engine = open_engine(sys.argv[1])
settings = Settings(alert_networks=sys.argv[3])
AlertService(engine, settings, clock=lambda: int(sys.argv[2]), lease_seconds=0.01).run_once()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "kills"),
    [
        ("sqlite", 1),
        pytest.param("sqlite", 100, marks=[pytest.mark.long, pytest.mark.timeout(1_800)]),
        pytest.param(
            "postgresql",
            100,
            marks=[pytest.mark.long, pytest.mark.postgres, pytest.mark.timeout(1_800)],
        ),
    ],
    indirect=["database_url"],
)
def test_a_kill_loses_no_message_and_doubles_one_under_its_own_id(
    office: Office, kills: int
) -> None:
    """Killed before or after deciding, sending or marking: all arrive, twice at most and alike."""
    generator = random.Random(kills)
    office.channel()
    office.rule(condition="new_kind")
    codes = [f"code_{number}" for number in range(kills)]
    doubled = 0
    for code in codes:
        office.later(2)
        office.calls(failed=1, succeeded=0, code=code)
        point = generator.choice(ALERT_POINTS) if kills > 1 else "alert_sent"
        doubled += point == "alert_sent"
        _die(office, point)
    office.later(200)
    office.service(lease_seconds=0.01).run_once()
    while any(row.sent_at is None for row in office.outbox()):
        office.later(2)
        office.service(lease_seconds=0.01).run_once()

    arrived = office.receiver.by_id()
    titles = [copies[0].data["title"].split()[5] for copies in arrived.values()]
    assert sorted(titles) == sorted(codes)
    assert len(office.receiver.deliveries) - len(arrived) <= doubled
    assert (len(office.receiver.deliveries) > len(arrived)) == (doubled > 0)
    for copies in arrived.values():
        assert len({each.body for each in copies}) == 1


def _die(office: Office, point: str) -> None:
    url = office.engine.url.render_as_string(hide_password=False)
    environ = os.environ | {"TOOLFAULT_FAILPOINT": f"{point}:1"}
    done = completed("-c", KILLED, url, str(office.now), LOCAL, environ=environ)
    assert done.returncode == -signal.SIGKILL, done.stderr
