"""A server that starts knows what was counted of days that are over, and believes nothing else."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event, func, select, update
from tests.dashboard.generated import NOW

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.tables import stored_answer
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse
from toolfault_dashboard.storing import Storing, wrong_answers

Opened = Callable[[], Engine]
_DAYS = 8


def _overview(engine: Engine) -> tuple[Any, int]:
    """The overview of two weeks, and the statements over calls that it took."""
    seen: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        if "FROM tool_call" in statement:
            seen.append(statement)

    with read_connection(engine) as conn:
        project = queries.project_by_name(conn, "generated")
        assert project is not None
        event.listen(engine, "before_cursor_execute", note)
        found = queries.overview(conn, Scope(project.id, parse("since:14d"), NOW))
        event.remove(engine, "before_cursor_execute", note)
    return found, len(seen)


def _stored(engine: Engine) -> int:
    with read_connection(engine) as conn:
        return int(conn.execute(select(func.count()).select_from(stored_answer)).scalar_one())


def test_a_server_that_starts_counts_fewer_days(opened: Opened) -> None:
    """After a start the days that are stored are not counted again, nor stored again."""
    told, cold = _overview(opened())
    assert Storing(opened(), _DAYS).store(NOW, lambda: False) > 50
    again, statements = _overview(opened())
    assert again == told
    assert statements < 0.7 * cold
    assert Storing(opened(), _DAYS).store(NOW, lambda: False) == 0


def test_a_server_that_stops_stores_no_more(opened: Opened) -> None:
    """Nothing is asked once the server is to stop."""
    engine = opened()
    assert Storing(engine, _DAYS).store(NOW, lambda: True) == _stored(engine) == 0


class _Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit",)


def test_an_answer_that_holds_more_than_counts_is_counted_anew(opened: Opened) -> None:
    """Nothing that a stored answer names is run; what cannot be read is counted from the rows."""
    engine = opened()
    Storing(engine, _DAYS).store(NOW, lambda: False)
    told, few = _overview(opened())
    for packed in (zlib.compress(pickle.dumps(_Harmful())), b"broken", zlib.compress(b"broken")):
        with write_transaction(engine) as conn:
            conn.execute(update(stored_answer).values(answer=packed))
        again, many = _overview(opened())
        assert again == told
        assert many > few


def test_answers_of_other_code_are_forgotten(opened: Opened) -> None:
    """What yesterday's code counted is counted anew, and its answers go."""
    engine = opened()
    stored = Storing(engine, _DAYS).store(NOW, lambda: False)
    told, few = _overview(opened())
    with write_transaction(engine) as conn:
        conn.execute(update(stored_answer).values(counted_by="yesterday"))
    again, many = _overview(opened())
    assert again == told
    assert many > few
    assert Storing(opened(), _DAYS).store(NOW, lambda: False) == stored == _stored(engine)


@pytest.mark.parametrize("length", [DAY_US, pytest.param(DAY_US // 4, marks=pytest.mark.long)])
def test_the_doctor_finds_answers_that_are_wrong(opened: Opened, length: int) -> None:
    """A stored answer that is not what its rows say is found, and forgotten with a repair."""
    engine, row = opened(), stored_answer.c
    Storing(engine, days=1).store(NOW, lambda: False)
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
