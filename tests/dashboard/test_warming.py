"""What a server asks ahead is known to its first reader."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, event
from tests.dashboard.generated import NOW

from toolfault_collector.engine import read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope, parts
from toolfault_dashboard.search import parse
from toolfault_dashboard.warming import warm


def _statements(engine: Engine, project: int) -> list[str]:
    """The statements of a first look at the messages of two weeks."""
    seen: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        if "message" in statement:
            seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        with read_connection(engine) as conn:
            queries.message_efficacy(conn, Scope(project, parse("since:14d"), NOW))
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return seen


def test_who_comes_first_finds_the_days_counted(
    history: Engine, project: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a large project was asked ahead, only what is left of its days is counted."""
    monkeypatch.setattr(parts, "MANY", 0)
    parts._ANSWERS.pop(history, None)
    cold = _statements(history, project)
    parts._ANSWERS.pop(history, None)
    assert warm(history, NOW, lambda: False) >= 6
    assert len(cold) > 10
    assert len(_statements(history, project)) < len(cold) / 3


def test_small_projects_are_not_asked_ahead(history: Engine) -> None:
    """Where nothing would be kept nothing is asked."""
    assert warm(history, NOW, lambda: False) == 0


def test_a_server_that_stops_asks_no_more(history: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next question is not begun once the server is to stop."""
    monkeypatch.setattr(parts, "MANY", 0)
    left = iter([False, True])
    assert warm(history, NOW, lambda: next(left)) == 1
