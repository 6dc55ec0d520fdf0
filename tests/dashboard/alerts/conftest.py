"""A project with rules, a channel to a local receiver, and a service whose clock a test moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import Engine, select
from tests.dashboard.alerts.receiver import Receiver, receiving
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import alert_message
from toolfault_dashboard.alerts.addresses import networks_of
from toolfault_dashboard.alerts.rules import read_rule
from toolfault_dashboard.alerts.service import AlertService
from toolfault_dashboard.alerts.store import make_channel, save_rule

LOCAL = "127.0.0.0/8"
BEGAN = 20_600 * DAY_US + 12 * 60 * MINUTE_US  # noon in UTC


@dataclass
class Office:
    """A server's database as the tests of alerts use it."""

    engine: Engine
    project: int
    receiver: Receiver
    now: int = BEGAN
    settings: Settings = field(default_factory=lambda: Settings(alert_networks=LOCAL))

    def service(self, **options: Any) -> AlertService:
        """Return a server's service; its clock is that of the test."""
        return AlertService(self.engine, self.settings, clock=lambda: self.now, **options)

    def rule(self, **form: str) -> int:
        """Make a rule as its form does."""
        rule = read_rule(form, project_id=self.project, audience="system", now=self.now)
        return save_rule(self.engine, rule, actor="ada")

    def channel(self, name: str = "hook", url: str = "") -> str:
        """Make a webhook to the local receiver and return its secret."""
        return make_channel(
            self.engine,
            self.project,
            name=name,
            kind="webhook",
            url=url or self.receiver.url,
            allowed=networks_of(LOCAL),
            actor="ada",
            now=self.now,
        )

    def store(self, *events: dict[str, Any]) -> None:
        """Store events that arrive now."""
        with write_transaction(self.engine) as conn:
            receipt = store_events(
                conn, self.project, list(events), received_at=self.now, time_policy="import"
            )
        assert receipt.accepted == len(events)

    def calls(self, failed: int, succeeded: int, **members: Any) -> None:
        """Store calls of as many conversations that end within the last second."""
        at = self.now - SECOND_US
        made = [failure, *[failure] * (failed - 1)][:failed] + [success] * succeeded
        self.store(
            *(
                make(session_id=f"c-{at}-{number}", at=at + number, **members)
                for number, make in enumerate(made)
            )
        )

    def later(self, minutes: float) -> None:
        """Move the clock."""
        self.now += int(minutes * MINUTE_US)

    def outbox(self) -> list[Any]:
        """Return every message that was decided, in order."""
        with read_connection(self.engine) as conn:
            return list(conn.execute(select(alert_message).order_by(alert_message.c.id)))


@pytest.fixture(scope="session")
def running_receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def receiver(running_receiver: Receiver) -> Receiver:
    """A receiver of webhooks on this machine to which nothing was sent yet."""
    running_receiver.deliveries.clear()
    running_receiver.status, running_receiver.location = 204, ""
    return running_receiver


@pytest.fixture
def office(engine: Engine, receiver: Receiver) -> Office:
    """One project, once per engine."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
    return Office(engine, project, receiver)


@pytest.fixture
def sqlite_office(sqlite_engine: Engine, receiver: Receiver) -> Office:
    """One project on SQLite, for what no engine does differently."""
    with write_transaction(sqlite_engine) as conn:
        project = ensure_project(conn, "demo")
    return Office(sqlite_engine, project, receiver)
