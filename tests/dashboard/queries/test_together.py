"""Several questions in one statement have the answers that each has alone."""

from __future__ import annotations

from sqlalchemy import Connection, func, select
from tests.statements import Statements

from toolfault_collector.storage.tables import conversation, tool_call
from toolfault_dashboard.queries.counting.together import Question, ask_together

_TOOL = tool_call.c.tool
_CODE = func.coalesce(tool_call.c.code, "")


def test_questions_of_any_width_are_one_statement(conn: Connection) -> None:
    """Rows come back in the columns of their own select, also where another one has more."""
    numbers = (func.count(), func.min(tool_call.c.occurred_at), func.max(tool_call.c.duration_ms))
    questions = [
        Question(select(func.count()).select_from(conversation), 0),
        Question(select(_TOOL, *numbers).group_by(_TOOL), 1),
        Question(select(_TOOL, _CODE, func.count()).group_by(_TOOL, _CODE), 2),
        Question(select(_TOOL).where(_TOOL == "nobody"), 1),
    ]
    alone = [sorted(map(tuple, conn.execute(each.statement).all())) for each in questions]
    with Statements(conn.engine) as sent:
        together = [sorted(rows) for rows in ask_together(conn, questions)]
    assert len(sent) == 1
    assert together == alone
    assert [len(rows) > 1 for rows in together] == [False, True, True, False]


def test_nothing_asked_is_nothing_sent(conn: Connection) -> None:
    """Without a question no statement is sent."""
    with Statements(conn.engine) as sent:
        assert ask_together(conn, []) == []
    assert sent == []
