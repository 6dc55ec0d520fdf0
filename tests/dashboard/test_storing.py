"""A server that starts knows what was counted of days that are over, and believes nothing else."""

from __future__ import annotations

import pickle
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, delete, event, func, insert, select, update
from tests.dashboard.conftest import grow, opening
from tests.dashboard.generated import NOW
from tests.factories import failure

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import quarter_version, stored_answer
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.comparisons.detected import detected_changes
from toolfault_dashboard.queries.counting.segments import (
    cut,
    keep_at_most,
)
from toolfault_dashboard.search import Pattern, parse
from toolfault_dashboard.storing import Storing, wrong_answers

Opened = Callable[[], Engine]
_DAYS = 2
_SHOWN = "since:2026-11-18"  # these two days, and the morning of today


def _asked(
    engine: Engine,
    query: str = _SHOWN,
    ask: Callable[[Connection, Scope], object] = queries.overview,
) -> tuple[Any, int]:
    """What *ask* finds, and the statements over calls that it took."""
    seen: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        if "FROM tool_call" in statement:
            seen.append(statement)

    with read_connection(engine) as conn:
        project = queries.project_by_name(conn, "generated")
        assert project is not None
        event.listen(engine, "before_cursor_execute", note)
        found = ask(conn, Scope(project.id, parse(query), NOW))
        event.remove(engine, "before_cursor_execute", note)
    return found, len(seen)


def _stored(engine: Engine) -> int:
    with read_connection(engine) as conn:
        return int(conn.execute(select(func.count()).select_from(stored_answer)).scalar_one())


@pytest.fixture(scope="module")
def _stored_once(filled_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    engine = open_engine(f"sqlite:///{path}")
    grow(engine, "generated")
    assert Storing(engine, _DAYS, tools=1).store(NOW, lambda: False) > 30
    engine.dispose()
    return path


@pytest.fixture
def restarted(_stored_once: Path, tmp_path: Path) -> Iterator[Opened]:
    """A function that opens a history of which answers are stored, as a server that starts does."""
    path = tmp_path / "stored.db"
    shutil.copyfile(_stored_once, path)
    with opening(path) as open_again:
        yield open_again


def test_a_server_that_starts_counts_fewer_days(opened: Opened, restarted: Opened) -> None:
    """After a start the days that are stored are not counted again, nor stored again."""
    told, cold = _asked(opened())
    again, statements = _asked(restarted())
    assert again == told
    assert statements < 0.7 * cold
    assert Storing(restarted(), _DAYS, tools=1).store(NOW, lambda: False) == 0


def _facets(conn: Connection, scope: Scope) -> object:
    return queries.facets(conn, scope), queries.values_of(conn, scope, "release", limit=9)


@pytest.mark.parametrize("ask", [_facets, queries.conversation_rungs])
def test_lists_and_rungs_count_fewer_days_as_well(
    opened: Opened, restarted: Opened, ask: Callable[[Connection, Scope], object]
) -> None:
    """After a start values beside a list, and rungs of conversations, are known of stored days."""
    told, cold = _asked(opened(), ask=ask)
    again, statements = _asked(restarted(), ask=ask)
    assert again == told
    assert statements < 0.7 * cold


def test_pages_of_tools_count_fewer_days_as_well(opened: Opened, restarted: Opened) -> None:
    """After a start stored days of a tool are not counted again, and no other tool gets them."""
    tools = [f"tool:{Pattern((tool,))}" for tool in _asked(opened(), "since:14d")[0].summary.tools]
    told = {tool: _asked(opened(), f"since:14d {tool}") for tool in tools[:2]}
    for tool, (found, cold) in told.items():
        again, statements = _asked(restarted(), f"{tool} since:14d")
        assert again == found
        assert (statements < cold) == (tool == tools[0])
    assert len({found.summary.failures for found, _ in told.values()}) > 1
    others = f"-{tools[0]} since:14d"
    assert _asked(restarted(), others) == _asked(opened(), others)


def test_a_server_that_stops_stores_no_more(opened: Opened) -> None:
    """Nothing is asked once the server is to stop."""
    engine = opened()
    assert Storing(engine, _DAYS, tools=2).store(NOW, lambda: True) == _stored(engine) == 0


class _Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit",)


def test_an_answer_that_holds_more_than_counts_is_counted_anew(restarted: Opened) -> None:
    """Nothing that a stored answer names is run; what cannot be read is counted from the rows."""
    engine = restarted()
    told, few = _asked(restarted())
    for packed in (zlib.compress(pickle.dumps(_Harmful())), b"broken", zlib.compress(b"broken")):
        with write_transaction(engine) as conn:
            conn.execute(update(stored_answer).values(answer=packed))
        again, many = _asked(restarted())
        assert again == told
        assert many > few


def test_answers_of_other_code_are_forgotten(restarted: Opened) -> None:
    """What yesterday's code counted is counted anew, and its answers go."""
    engine = restarted()
    stored = _stored(engine)
    told, few = _asked(restarted())
    with write_transaction(engine) as conn:
        conn.execute(update(stored_answer).values(counted_by="yesterday"))
    again, many = _asked(restarted())
    assert again == told
    assert many > few
    assert (
        Storing(restarted(), _DAYS, tools=1).store(NOW, lambda: False) == stored == _stored(engine)
    )


def _late(engine: Engine, days: int) -> int:
    """Store a call of so many days ago, and return the project."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "generated")
        event = failure(session_id=None, at=NOW - days * DAY_US)
        receipt = store_events(conn, project, [event], received_at=NOW, time_policy="import")
    assert receipt.accepted == 1, receipt.rejected
    return project


def test_without_memory_nothing_is_stored_and_the_round_ends(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes too long for one try, and leaves nothing to go on from, is not asked for ever."""
    engine = opened()
    keep_at_most(engine, 0)
    monkeypatch.setattr("time.monotonic", count(step=2.0).__next__)  # every segment takes too long
    tries = count()
    assert (
        Storing(engine, 2, tools=1).store(NOW, lambda: next(tries) >= 100) == _stored(engine) == 0
    )
    assert 0 < next(tries) < 100


def test_answers_that_are_true_no_more_or_old_go(restarted: Opened) -> None:
    """Also of a project of which nothing has to be asked any more."""
    engine = restarted()
    assert Storing(restarted(), 1, tools=1).store(NOW, lambda: False) == 0
    with read_connection(engine) as conn:
        oldest = conn.execute(select(func.min(stored_answer.c.starts_at))).scalar_one()
    assert oldest >= NOW // DAY_US * DAY_US - DAY_US
    with write_transaction(engine) as conn:  # as if it were a small one
        conn.execute(update(quarter_version).values(version=1))
    assert Storing(restarted(), 1, tools=1).store(NOW, lambda: False) == 0
    with read_connection(engine) as conn:
        left = conn.execute(select(stored_answer.c.version)).scalars().all()
    assert not any(left)  # of quarters in which nothing was


@pytest.mark.long  # a wrong answer of another question is found in the short run
def test_the_doctor_looks_at_what_changes_are_found_by(opened: Opened) -> None:
    """The first moments of models and releases are stored, too."""
    Storing(opened()).store(NOW, lambda: False)
    found = _changes(opened())
    for question in _questions(opened()):
        engine = opened()
        with write_transaction(engine) as conn:
            own = stored_answer.c.question == question
            before = conn.execute(select(stored_answer).where(own)).all()
            nothing = zlib.compress(pickle.dumps([]))
            conn.execute(update(stored_answer).where(own).values(answer=nothing))
        if _changes(opened()) != found:
            break
        with write_transaction(engine) as conn:
            conn.execute(delete(stored_answer).where(own))
            conn.execute(insert(stored_answer), [each._asdict() for each in before])
    else:
        pytest.fail("no stored answer changes what Changes finds")
    assert wrong_answers(opened(), NOW, repair=False) == 1


def _changes(engine: Engine) -> Any:
    with read_connection(engine) as conn, cut(conn, always=True):
        project = queries.project_by_name(conn, "generated")
        assert project is not None
        return detected_changes(conn, Scope(project.id, parse(""), NOW))


def _questions(engine: Engine) -> Sequence[str]:
    with read_connection(engine) as conn:
        return conn.execute(select(stored_answer.c.question).distinct()).scalars().all()


@pytest.mark.parametrize("length", [DAY_US, pytest.param(DAY_US // 4, marks=pytest.mark.long)])
def test_the_doctor_finds_answers_that_are_wrong(restarted: Opened, length: int) -> None:
    """A stored answer that is not what its rows say is found, and forgotten with a repair."""
    engine, row = restarted(), stored_answer.c
    assert wrong_answers(engine, NOW, repair=False) == 0
    whole = row.ends_at - row.starts_at == length
    with write_transaction(engine) as conn:
        stored = conn.execute(select(stored_answer).where(whole)).all()
        largest = {each.question: each.answer for each in sorted(stored, key=_size)}
        for question, answer in largest.items():  # as if all were like one of them
            wrong = update(stored_answer).where(whole, row.question == question)
            conn.execute(wrong.values(answer=answer))
    assert wrong_answers(engine, NOW, repair=True) > 0
    assert _stored(engine) == 0


def _size(row: Any) -> int:
    return len(row.answer)
