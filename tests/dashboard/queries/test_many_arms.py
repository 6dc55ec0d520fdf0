"""A trial with more arms than anybody tries is not compared arm by arm."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from tests.factories import failure

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.comparisons.experiments import MOST_ARMS
from toolfault_dashboard.search import parse


def test_too_many_arms_are_said_and_can_be_narrowed(empty_sqlite: Engine):
    """The error says how many there are and how to ask; a query that names two compares these."""
    events = [failure(variant=f"trial=arm{number}") for number in range(MOST_ARMS + 1)]
    with write_transaction(empty_sqlite) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, events, received_at=now_us())
    with read_connection(empty_sqlite) as conn:
        with pytest.raises(ValueError, match=f"{MOST_ARMS + 1} arms.*variant:NAME=control"):
            queries.experiment(conn, Scope(project, parse(""), now_us()), "trial")
        two = parse("variant:trial=arm1,trial=arm2")
        found = queries.experiment(conn, Scope(project, two, now_us()), "trial")

    assert found is not None
    assert found.arms == ("arm1", "arm2")
