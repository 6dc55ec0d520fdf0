"""Readers get from ClickHouse what they get from SQLite, whatever they ask."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import Phase, given, settings
from sqlalchemy import Connection, func, literal, select, union_all
from sqlalchemy.exc import DatabaseError
from tests.dashboard.columnar import QUESTIONS, Both
from tests.dashboard.generated import NOW, PROJECTS
from tests.dashboard.queries_text import queries
from tests.factories import failure, success
from tests.starting import completed

from toolfault_collector.admin.projects import ensure_project, find_project
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.rollups import HOUR_US
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import call_counts, chain, tool_call
from toolfault_dashboard.analysis.rates import wilson_share
from toolfault_dashboard.queries import Scope, matrix, message_efficacy
from toolfault_dashboard.queries.counting.deadline import TooSlow, deadline
from toolfault_dashboard.queries.counting.rollups import usable
from toolfault_dashboard.queries.counting.segments import cut, is_asked_at_once
from toolfault_dashboard.queries.reading import reading
from toolfault_dashboard.search import Query, parse
from toolfault_dashboard.search.where import (
    calls_where,
    chains_where,
    counts_where,
    failures_where,
)

pytest.importorskip("chdb", reason="the engine of ClickHouse (chdb) is not installed")
pytest.importorskip("clickhouse_connect", reason="clickhouse-connect is not installed")
pytestmark = pytest.mark.slow

TEXTS: Final = (
    "code:wrong_type field:port", "-code:wrong_type", "tool:h*", 'tool:"a*b"', "-state:open",
    "state:new,regressed", "state:acknowledged,fixed,ignored", "owner:ana", "-has:owner", "port",
    "first_seen:14d", '"100%"', '"\\\\"', "ÄÖÜ", "since:20d until:3d", "since:2026-11-01",
    "until:2026-11-10", "chain:recovered,none", "-chain:abandoned", "chain:open", "tag.team:blue",
    "-tag.x.y:1", 'tag.team:""', "near_miss:any", "-near_miss:bool*", "variant:b=*", 'variant:""',
    "message:*light*", 'message:""', 'signature:nothing,""', "duration:>500", "attempt:>1",
    "-conversation:conv-7 since:20d", "conversation:conv-7", "time:none", "-has:issue",
    "has:field -field_pattern:it*", "-has:issue,near_miss -field:port", "detection:soft*",
    "side:server", "conversation_rung:explicit,meta", "code:nothing", 'user:u-7 -model:""',
    "exception:TimeoutError", "audience:user", 'field:""', '-field:"",port -issue:wrong_type -no',
)  # fmt: skip
"""One text at least for every way in which a condition is written."""

OF_EVERY_CONDITION: Final = ("count_failures", "failure_list", "kinds failures", "round_trips")
"""Questions whose answers hang on every condition."""

OF_EVERY_FUNCTION: Final = tuple(
    each
    for each in QUESTIONS
    if each.partition(" ")[0] not in ("frequency", "kinds", "chains_by", "costs")
    or each
    in ("frequency tool", "frequency field", "kinds failures", "chains_by code", "costs tool")
)
"""One question or two to each function."""


@pytest.fixture(scope="module")
def both(filled_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """The generated history on both engines."""
    path = tmp_path_factory.mktemp("columnar") / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    found = Both(path)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("project", "text", "asked"),
    [
        ("generated", "", OF_EVERY_FUNCTION),
        *(
            pytest.param(project, text, QUESTIONS, marks=pytest.mark.long)
            for project, text in (
                ("sampled", "code:wrong_type,missing_field since:20d"),
                *((name, "") for name in PROJECTS),
                *(("generated", text) for text in TEXTS),
            )
        ),
    ],
)
def test_every_reading_function_answers_the_same(
    both: Both, project: str, text: str, asked: Collection[str]
) -> None:
    """Each function of ``queries`` gives equal answers: order, numbers and texts."""
    assert both.differing(project, text, only=asked) == []


def test_a_next_call_may_end_before_the_failure_did(sqlite_template: Path, tmp_path: Path) -> None:
    """Where the window begins between both ends it is the next call all the same, also late ones.

    The chain goes on beside it: its round trips are numbered, since its row does not tell them.
    """
    path = tmp_path / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    engine, hour = open_engine(f"sqlite:///{path}"), HOUR_US
    calls = [
        failure(at=NOW - 2 * hour, duration_ms=3 * hour / 1_000, turn="a"),
        success(at=NOW - 3 * hour, duration_ms=hour / 1_000, turn="b"),
        failure(session_id="c", at=NOW - 2 * hour, duration_ms=3 * hour / 1_000, turn="a"),
        failure(session_id="c", at=NOW - 3 * hour, duration_ms=hour / 1_000, turn="a"),
        failure(session_id="c", at=NOW - hour, turn="b", field="port"),
    ]
    with write_transaction(engine) as conn:
        store_events(conn, ensure_project(conn, "beside"), calls, received_at=NOW)
    engine.dispose()
    found = Both(path)
    with reading(found.other) as conn:
        scope = Scope(1, parse("since:150m"), NOW)
        (group,) = message_efficacy(conn, scope)
        assert sum(row.answered for row in group.rows) == 1
    for text in ("", "since:150m", "since:150m until:90m"):
        assert found.differing("beside", text, only=("message_efficacy", "fix_next")) == []
    found.close()


def test_calls_that_stand_for_any_number_have_their_whole_squares(
    sqlite_template: Path, tmp_path: Path
) -> None:
    """An interval is that of the weights, 1 / rate, whoever adds them up: counters or rows."""
    path = tmp_path / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    engine, rates = open_engine(f"sqlite:///{path}"), (1e-6, 2e-6, 3e-5, 9.9e-5, 1e-4, 0.4)
    calls = [
        call(session_id=f"c{number}", at=NOW - (number + 2) * HOUR_US, sample_rate=rate)
        for number, rate in enumerate(5 * rates)
        for call in ([failure] if number % 4 == 0 else [success])
    ]
    with write_transaction(engine) as conn:
        store_events(conn, ensure_project(conn, "rare"), calls, received_at=NOW)
    with read_connection(engine) as conn:
        scope = Scope(1, parse(""), NOW)
        assert usable(conn, scope)
        (cell,) = matrix(conn, scope, "code").cells
    engine.dispose()
    squares = [(1 / call["sample_rate"] ** 2, call["success"]) for call in calls]
    failed = sum(square**0.5 for square, succeeded in squares if not succeeded)
    whole = sum(square**0.5 for square, _ in squares)
    share = failed / whole
    variance = sum(each * (1 - succeeded - share) ** 2 for each, succeeded in squares) / whole**2
    interval = wilson_share(share, share * (1 - share) / variance)
    rate = cell.rate
    assert rate.value == pytest.approx(share, rel=1e-5)
    assert (rate.low, rate.high) == pytest.approx((interval.low, interval.high), rel=1e-5)
    found = Both(path)
    only = ("overview", "rates_by_tool", "rates_by_code", "matrix code", "comparison, effect")
    for text in ("", "since:1d until:5h"):
        assert found.differing("rare", text, only=only) == []
    found.close()


def _matching(conn: Connection, project: int, query: Query) -> list[object]:
    """Return the failures, chains and calls that *query* is true of."""
    scope = (project, query, NOW)
    found = union_all(
        select(literal("failure"), tool_call.c.event_id).where(failures_where(*scope)),
        select(literal("chain"), chain.c.chain_id).where(chains_where(*scope)),
    )
    counts = [
        select(func.count()).select_from(table).where(where(*scope)).scalar_subquery()
        for table, where in ((tool_call, calls_where), (call_counts, counts_where))
    ]
    return [sorted(map(tuple, conn.execute(found))), tuple(conn.execute(select(*counts)).one())]


def test_each_key_finds_the_same_rows(both: Both) -> None:
    """Every text finds the same failures, chains and calls."""
    with read_connection(both.lite) as conn, reading(both.other) as other:
        number = find_project(conn, "generated")
        assert number is not None
        for each in map(parse, TEXTS):
            assert _matching(conn, number, each) == _matching(other, number, each), str(each)


@pytest.mark.parametrize(
    "number", [pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(1_800)])]
)
def test_any_query_finds_and_counts_the_same(both: Both, number: int) -> None:
    """So does any query that can be written, and what hangs on every condition is equal."""

    @given(query=queries)
    @settings(max_examples=number, deadline=None, database=None, phases=[Phase.generate])
    def run(query: Query) -> None:
        assert both.differing("generated", str(query), only=OF_EVERY_CONDITION) == []

    run()


def test_no_window_is_cut(both: Both) -> None:
    """Nothing is counted in parts, so nothing is kept, stored or warmed, however much there is."""
    scope = Scope(1, parse("since:20d"), NOW)
    asked = []
    for engine in (both.lite, both.other):
        with reading(engine) as conn, cut(conn, always=True):
            asked.append(is_asked_at_once(conn, scope))
    assert asked == [False, True]


def test_a_subquery_about_the_row_around_it_is_refused(both: Both) -> None:
    """ClickHouse gives wrong numbers for some of them, so it must say of each that it is one."""
    later = tool_call.alias("later")
    wrong = select(chain.c.id, select(func.count()).select_from(later).where(
        later.c.session_id == chain.c.session_id
    ).correlate(chain).scalar_subquery())  # fmt: skip
    with both.columnar.connect() as conn, pytest.raises(DatabaseError):
        conn.execute(wrong).all()


def test_a_statement_that_takes_too_long_is_stopped(both: Both) -> None:
    """The time of an answer is bounded, and the connection is of use afterwards."""
    with reading(both.other) as conn:
        slow = select(func.count()).where(func.sleepEachRow(0.0005) == 0).select_from(tool_call)
        with pytest.raises(TooSlow), deadline(conn, 0.05):
            conn.execute(slow)
        with deadline(conn):
            assert conn.execute(select(func.count()).select_from(tool_call)).scalar_one() > 0


def test_nothing_of_clickhouse_is_loaded_without_its_address() -> None:
    """A server on SQLite loads neither its driver nor its engine."""
    script = (
        "import sys, toolfault_dashboard.app, toolfault_dashboard.queries;"
        "import toolfault_collector.clickhouse.dialect;"
        "print({'chdb', 'clickhouse_connect'} & set(sys.modules))"
    )
    done = completed("-c", script)
    assert done.stdout.strip() == "set()", done.stderr
