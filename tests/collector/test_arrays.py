"""What PostgreSQL is given: arrays that arrive as they were, and a look at tables that are new."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from tests.factories import failure

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.database.postgres import array_text
from toolfault_collector.storage.database.statistics import analyze_new
from toolfault_collector.storage.store import store_events

pytestmark = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
# PostgreSQL has no place for NUL in a text; the decoder takes it out.
_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.none() | _TEXT),
    numbers=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
    ratios=st.lists(st.none() | st.floats(allow_nan=False)),
    truths=st.lists(st.none() | st.booleans()),
)
@example(
    texts=["NULL", "", '"', "\\", "a,b", "{}", ' " \\" ', "\n"], numbers=[], ratios=[], truths=[]
)
@example(texts=['","', "x"], numbers=[1], ratios=[1e-300, float("inf")], truths=[True])
def test_arrays_arrive_as_they_were(
    engine: Engine,
    texts: list[str | None],
    numbers: list[int | None],
    ratios: list[float | None],
    truths: list[bool | None],
) -> None:
    """PostgreSQL reads from the text of an array what was written into it."""
    sql = "SELECT %s::text[], %s::bigint[], %s::double precision[], %s::boolean[]"
    sent = (texts, numbers, ratios, truths)
    with write_transaction(engine) as conn:
        got = conn.exec_driver_sql(sql, tuple(array_text(each) for each in sent)).one()

    assert tuple(got) == sent


def test_new_tables_are_analysed_once(engine: Engine) -> None:
    """Tables that have grown since they were made are analysed, and left alone from then on."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        events = [failure(session_id=f"c{number}") for number in range(50)]
        store_events(conn, project_id, events, received_at=now_us())

    first, again = analyze_new(engine), analyze_new(engine)

    assert {"conversation", "tool_call", "issue", "chain"} <= set(first)
    assert again == []
