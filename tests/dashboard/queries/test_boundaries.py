"""Where one outcome, week or chain ends and the next begins: to the microsecond, as documented."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import Engine
from tests.factories import conversation_end, failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import format_time, parse_time
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

SECOND = 1_000_000
MINUTE = 60 * SECOND
NOW = parse_time("2026-11-20T12:00:00Z")


def summary(engine: Engine, events: list[Mapping[str, Any]], *, query: str = "") -> Any:
    """Store *events* and sum up those that *query* finds."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
        receipt = store_events(conn, project, events, received_at=NOW)
        assert receipt.accepted == len(events)
    with read_connection(engine) as conn:
        return queries.summary(conn, Scope(project, parse(query), NOW))


@pytest.mark.parametrize(
    ("idle", "outcome"),
    [(30 * MINUTE - SECOND, "open"), (30 * MINUTE, "abandoned")],
    ids=["almost 30 minutes", "30 minutes"],
)
def test_an_unresolved_chain_is_abandoned_after_30_idle_minutes(
    empty_sqlite: Engine, idle: int, outcome: str
):
    """Until then it is open."""
    found = summary(empty_sqlite, [failure(at=NOW - idle)])

    assert (found.open, found.abandoned) == ((1, 0) if outcome == "open" else (0, 1))


def test_a_conversation_that_goes_on_after_its_end_is_open_again(empty_sqlite: Engine):
    """A failure after a reported end has an open chain; without one the chain is abandoned."""
    ended = [
        failure(session_id="ended", at=NOW - 5 * MINUTE),
        conversation_end("ended", at=NOW - 4 * MINUTE),
    ]
    went_on = [
        success(session_id="went on", at=NOW - 6 * MINUTE),
        conversation_end("went on", at=NOW - 5 * MINUTE),
        failure(session_id="went on", at=NOW - MINUTE),
    ]

    found = summary(empty_sqlite, [*ended, *went_on])

    assert (found.abandoned, found.open) == (1, 1)


def test_open_chains_are_in_no_recovery_rate(empty_sqlite: Engine):
    """Of a recovered, an abandoned and an open chain, one of two closed ones recovered."""
    events = [
        failure(session_id="recovered", at=NOW - 60 * MINUTE),
        success(session_id="recovered", at=NOW - 59 * MINUTE),
        failure(session_id="abandoned", at=NOW - 60 * MINUTE),
        failure(session_id="open", at=NOW - MINUTE),
    ]
    with write_transaction(empty_sqlite) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, events, received_at=NOW)
    with read_connection(empty_sqlite) as conn:
        found = queries.overview(conn, Scope(project, parse(""), NOW))

    assert found.summary.open == 1
    assert (found.recovery_rate.count, found.recovery_rate.n) == (1, 2)


def test_a_moment_belongs_to_what_begins_with_it(empty_sqlite: Engine):
    """A failure at the moment X is found by ``since:X`` and not by ``until:X``."""
    at = NOW - 60 * MINUTE
    event = failure(at=at)
    moment = format_time(at)

    assert summary(empty_sqlite, [event], query=f"since:{moment}").failures == 1
    with read_connection(empty_sqlite) as conn:
        project = 1
        until = Scope(project, parse(f"until:{moment}"), NOW)
        later = Scope(project, parse(f"until:{format_time(at + 1)}"), NOW)
        assert queries.summary(conn, until).failures == 0
        assert queries.summary(conn, later).failures == 1


def test_one_new_field_is_a_discovery(empty_sqlite: Engine):
    """A retry that fails with a known and a new bad field discovers what could have been said."""

    def failing(*fields: str, seq: int) -> dict[str, Any]:
        issues = [{"field": name, "code": "wrong_type", "message": "no"} for name in fields]
        at = NOW - 60 * MINUTE + seq * SECOND
        return failure(field=fields[0], error={"issues": issues}, at=at, seq=seq)

    events = [failing("url", seq=1), failing("url", "port", seq=2), failing("url", seq=3)]
    with write_transaction(empty_sqlite) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, events, received_at=NOW)
    with read_connection(empty_sqlite) as conn:
        found = queries.round_trips(conn, Scope(project, parse(""), NOW))

    assert sum(group.serial_discovery for group in found.by_tool) == 1


def test_a_call_is_repeated_whatever_came_between(empty_sqlite: Engine):
    """Of the calls a, b, a one is identical to an earlier one of its chain."""
    events = [
        failure(args_fingerprint=each, at=NOW - 60 * MINUTE + seq * SECOND, seq=seq)
        for seq, each in enumerate("aba")
    ]
    with write_transaction(empty_sqlite) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, events, received_at=NOW)
    with read_connection(empty_sqlite) as conn:
        found = queries.round_trips(conn, Scope(project, parse(""), NOW))

    assert sum(group.identical_repeats for group in found.by_tool) == 1


def test_calls_after_the_64th_of_a_chain_are_not_numbered(empty_sqlite: Engine):
    """They are call 65 to a query; no figure counts one of them twice, or takes it for the next."""
    issue = {"field": "url", "code": "wrong_type", "message": "no", "near_miss": ["strip"]}
    events = [
        failure(error={"issues": [issue]}, at=NOW - 60 * MINUTE + seq * SECOND, seq=seq, turn="t0")
        for seq in range(2)
    ]
    events += [
        failure(error={"issues": [issue]}, at=NOW - 59 * MINUTE + seq * SECOND, seq=seq)
        for seq in range(68)
    ]
    events.append(success(at=NOW - 50 * MINUTE))
    with write_transaction(empty_sqlite) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, events, received_at=NOW)
    with read_connection(empty_sqlite) as conn:
        scope = Scope(project, parse(""), NOW)
        later = queries.failure_list(conn, Scope(project, parse("attempt:65"), NOW)).rows
        chain = queries.chain_detail(conn, scope, events[0]["event_id"])
        (fix,) = queries.fix_next(conn, scope).rows
        (group,) = queries.message_efficacy(conn, scope)

    assert len(later) == 6
    assert chain is not None
    assert [each.attempt for each in chain.attempts] == list(range(1, 72))
    assert [each.parallel for each in chain.attempts] == [False, True, *[False] * 69]
    # The second failure was issued beside the first: it is no round trip, and no answer to it.
    assert (fix.round_trips, fix.failures) == (69, 70)
    (message,) = group.rows
    assert (message.failures, message.asked, message.answered) == (70, 62, 62)
