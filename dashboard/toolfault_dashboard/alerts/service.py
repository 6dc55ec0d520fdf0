"""What the server does about alerts now and then: evaluate the rules, send what was decided.

Decided and sent are two steps with a table between them (an outbox): the states of a rule and the
messages that follow from them are written in one transaction, and each message is marked once it
was taken. A server that is killed between the two sends the message again, under the same id; none
is lost. Which of several servers does this is settled by a lease, in each of these transactions.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

import structlog
import uuid_utils
from sqlalchemy import Connection, Engine

from toolfault_collector import failpoints
from toolfault_collector.admin.audit import note
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_dashboard.alerts.addresses import networks_of
from toolfault_dashboard.alerts.channels import Outgoing, send
from toolfault_dashboard.alerts.digest import digest
from toolfault_dashboard.alerts.evaluation import Measured, State, advance
from toolfault_dashboard.alerts.figures import measure
from toolfault_dashboard.alerts.hours import last_due, not_before
from toolfault_dashboard.alerts.lease import LEASE_SECONDS, Lease, LeaseLost
from toolfault_dashboard.alerts.rules import PERIOD_US, Rule
from toolfault_dashboard.alerts.store import (
    Due,
    RuleRow,
    channel_of,
    channel_rows,
    due_messages,
    end_waiting,
    mark_failed,
    mark_sent,
    note_channel,
    note_evaluation,
    prune_messages,
    put_messages,
    rule_rows,
    states_of,
    write_states,
)
from toolfault_dashboard.alerts.wording import Text, link_to, notice_text
from toolfault_dashboard.queries import projects
from toolfault_dashboard.queries.counting.deadline import TooSlow, deadline
from toolfault_dashboard.queries.figures.alerting import arrivals
from toolfault_dashboard.queries.reading import reading
from toolfault_dashboard.search import QueryError

__all__ = [
    "DIGEST_SECONDS",
    "INTERVAL_SECONDS",
    "RULE_SECONDS",
    "AlertService",
    "outgoing",
    "send_test",
]

INTERVAL_SECONDS: Final = 15.0
"""How often the outbox is looked at; rules are evaluated once in `PERIOD_US`."""

RULE_SECONDS: Final = 5.0
"""How long the figures of one rule may take; a rule that takes longer says so on its page."""

DIGEST_SECONDS: Final = 60.0
"""How long a report may take: it is made once a day or week."""

_AFTER_TROUBLE: Final = 10  # periods until a rule that was too slow is asked again
# What becomes true by waiting: it is asked for though nothing arrived.
_BY_WAITING: Final = frozenset({"no_data", "sender_drops", "digest"})

_log = structlog.get_logger(__name__)


class AlertService:
    """Evaluates rules and sends messages, for as long as this server holds the lease.

    Args:
        engine: The database.
        settings: Which private networks channels may reach, and where the dashboard is reached.
        clock: Returns microseconds since the epoch.
        lease_seconds: How long the lease holds.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        clock: Callable[[], int],
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._allowed = networks_of(settings.alert_networks)
        self._public_url = settings.public_url
        self._lease = Lease(engine, lease_seconds)
        self._looked: dict[int, int] = {}  # when each rule was last evaluated
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="toolfault-alerts", daemon=True)

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """End after the message under way; at most *timeout* seconds. Another server may go on."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL_SECONDS):
            self.run_once()
        try:
            self._lease.give_up()
        except Exception as error:  # noqa: BLE001 - it runs out by itself
            _log.warning("alert_lease_kept", error=type(error).__name__)

    def run_once(self) -> None:
        """Evaluate every rule that is due, and send every message that is."""
        try:
            with read_connection(self._engine) as conn:
                rules = rule_rows(conn)
                waiting = bool(due_messages(conn, self._clock()))
                known = arrivals(conn) if rules else {}
            if not (rules or waiting) or not self._lease.hold():
                return
            for row in rules:
                if self._stopping.is_set():
                    return
                if self._is_due(row, known.get(row.rule.project_id, "")):
                    self._evaluate(row, known.get(row.rule.project_id, ""))
            self._send()
        except LeaseLost:
            _log.info("alert_lease_lost")
        except Exception as error:  # noqa: BLE001 - must not end the thread; it is tried again
            _log.error("alerts_failed", error=type(error).__name__)

    def _is_due(self, row: RuleRow, seen: str) -> bool:
        rule, now = row.rule, self._clock()
        wait = PERIOD_US * (_AFTER_TROUBLE if row.problem else 1)
        if now - max(row.evaluated_at, self._looked.get(rule.id, 0)) < wait:
            return False
        if rule.condition == "digest":
            return bool(row.problem) or last_due(rule, now) > row.evaluated_at
        by_waiting = rule.condition in _BY_WAITING
        # What a snooze held back is told when it is over, though nothing more arrives.
        held_back = rule.snoozed_until > row.evaluated_at
        return seen != row.seen or by_waiting or held_back or bool(row.firing or row.pending)

    def _evaluate(self, row: RuleRow, seen: str) -> None:
        now, rule = self._clock(), row.rule
        self._looked[rule.id] = now
        measured, text, problem = Measured(), None, ""
        due = last_due(rule, now) if rule.condition == "digest" else 0
        before: dict[str, State] = {}
        try:
            seconds = DIGEST_SECONDS if due else RULE_SECONDS
            with reading(self._engine) as conn, deadline(conn, seconds):
                before = states_of(conn, rule.id)
                if not due:
                    measured = measure(conn, rule, now)
                elif _is_new(rule, before, due) and now >= rule.snoozed_until:
                    text = digest(conn, rule, row.project, due)
        except (QueryError, TooSlow) as error:
            problem = str(error)
        figure = measured.figure
        known = (row.seen, row.figure, row.problem) == (seen, figure, problem)
        known = known and not row.evaluated_at < rule.snoozed_until <= now
        if known and not due and advance(rule, before, measured, now)[0] == before:
            return  # nothing to write
        with write_transaction(self._engine) as conn:
            self._lease.renew(conn)
            if note_evaluation(conn, rule, now=now, seen=seen, figure=figure, problem=problem):
                if not problem:
                    self._decide(conn, row, measured, now=now, due=due, text=text)
                prune_messages(conn, now)
        failpoints.reach("alert_decided")

    def _decide(
        self,
        conn: Connection,
        row: RuleRow,
        measured: Measured,
        *,
        now: int,
        due: int,
        text: Text | None,
    ) -> None:
        """Store what the rule thinks now and what it has to say, in the transaction of *conn*."""
        rule, before = row.rule, states_of(conn, row.rule.id)
        if due:
            after, texts = _after_digest(rule, due, before, text)
        else:
            after, notices = advance(rule, before, measured, now)
            texts = [notice_text(rule, each, row.project) for each in notices]
        write_states(conn, rule, before, after, now)
        put_messages(conn, rule, texts, now=now, not_before=not_before(rule, now))

    def _send(self) -> None:
        with read_connection(self._engine) as conn:
            due = due_messages(conn, self._clock())
        failed: defaultdict[int, bool] = defaultdict(bool)
        for each in due:
            if self._stopping.is_set():
                return
            if not failed[each.channel.id] and self._lease.hold():
                failed[each.channel.id] = not self._send_one(each)

    def _send_one(self, due: Due) -> bool:
        failpoints.reach("alert_sending")
        problem = send(
            due.channel, outgoing(due, self._public_url), self._allowed, now=self._clock()
        )
        failpoints.reach("alert_sent")
        with write_transaction(self._engine) as conn:
            # Marked even where the lease was lost meanwhile: it was sent.
            if problem is None:
                mark_sent(conn, due, self._clock())
            else:
                mark_failed(conn, due, self._clock(), problem)
        failpoints.reach("alert_marked")
        if problem is not None:
            _log.warning("alert_not_sent", channel=due.channel.name, reason=problem)
        return problem is None


def outgoing(due: Due, public_url: str) -> Outgoing:
    """Return *due* as it is sent; *public_url* is where people reach the dashboard, or ""."""
    return Outgoing(
        message_id=due.message_id,
        event=due.event,
        project=due.project,
        rule=due.rule,
        subject=due.subject,
        title=due.title,
        body=due.body,
        query=due.query,
        link=link_to(public_url, due.project, due.query),
        at=due.decided_at,
    )


def _is_new(rule: Rule, states: Mapping[str, State], due: int) -> bool:
    """Say whether the digest that is due was neither made nor due before the rule was."""
    return due > max(states.get("", State()).told_until, rule.created_at)


def _after_digest(
    rule: Rule, due: int, before: dict[str, State], text: Text | None
) -> tuple[dict[str, State], list[Text]]:
    """Return the states after a digest; one that was snoozed is not made up for."""
    if not _is_new(rule, before, due):
        return before, []
    return {"": State(since=due, told_until=due)}, [text] if text is not None else []


def send_test(
    engine: Engine, settings: Settings, project_id: int, number: int, *, actor: str, now: int
) -> str | None:
    """Send a test message to a channel now; return None when it was taken, else why not.

    A channel that takes it is tried again at once with what waits.

    Raises:
        LookupError: There is no such channel in the project.
    """
    with read_connection(engine) as conn:
        channel = channel_of(conn, project_id, number)
        row = next(each for each in channel_rows(conn, project_id) if each.id == number)
        name = next(each.name for each in projects(conn) if each.id == project_id)
    message = Outgoing(
        message_id=str(uuid_utils.uuid7()),
        event="test",
        project=name,
        rule="",
        subject="",
        title=f"Test of the channel {channel.name} [{name}]",
        body="toolfault can reach this channel. Nothing has happened.",
        query="",
        link="",
        at=now,
    )
    problem = send(channel, message, networks_of(settings.alert_networks), now=now)
    failures = 0 if problem is None else row.failures + 1
    with write_transaction(engine) as conn:
        note_channel(conn, number, now=now, problem=problem, failures=failures)
        if problem is None:
            end_waiting(conn, number, now)
        note(
            conn,
            "channel_tested",
            actor=actor,
            project_id=project_id,
            channel=channel.name,
            sent=problem is None,
        )
    return problem
