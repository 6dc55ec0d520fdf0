"""What a server asks ahead is known to its first reader."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Engine, event
from tests.dashboard.generated import NOW
from tests.engines import HISTORY_ON_POSTGRESQL_IS_LONG

from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.prewarming import warm
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

Opened = Callable[[], Engine]


def _statements(engine: Engine) -> int:
    """The statements of a first look at the messages of two weeks."""
    seen: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        if "message" in statement:
            seen.append(statement)

    with read_connection(engine) as conn:
        project = queries.project_by_name(conn, "generated")
        assert project is not None
        event.listen(engine, "before_cursor_execute", note)
        queries.message_efficacy(conn, Scope(project.id, parse("since:14d"), NOW))
        event.remove(engine, "before_cursor_execute", note)
    return len(seen)


def test_who_comes_first_finds_the_days_counted(opened: Opened) -> None:
    """After a large project was asked ahead, only what is left of its days is counted."""
    cold = _statements(opened())
    warmed = opened()
    assert warm(warmed, NOW, lambda: False) >= 6
    assert cold > 10
    assert _statements(warmed) < cold / 3


@HISTORY_ON_POSTGRESQL_IS_LONG
def test_small_projects_are_not_asked_ahead(history: Engine) -> None:
    """Where nothing would be kept nothing is asked."""
    assert warm(history, NOW, lambda: False) == 0


def test_a_server_that_stops_asks_no_more(opened: Opened) -> None:
    """The next question is not begun once the server is to stop."""
    left = iter([False, True])
    assert warm(opened(), NOW, lambda: next(left)) == 1
