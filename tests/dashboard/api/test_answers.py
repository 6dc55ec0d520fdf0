"""The API answers what the queries answer: every operation, under a filter."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from fastapi.openapi.utils import get_openapi
from fastapi.testclient import TestClient
from sqlalchemy import Connection, Engine
from tests.dashboard.api.serving import key_of
from tests.dashboard.generated import NOW
from tests.dashboard.rows import as_json, rows_as_json

from toolfault_collector.admin.keys import KeyCache
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.api import create_api
from toolfault_dashboard.exports import TABLE_NAMES, TableName, named_table
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

Ask = Callable[[Connection, Scope], object]

ANSWERS: dict[str, tuple[str, Ask]] = {
    "get_summary": ("/summary", queries.summary),
    "get_overview": ("/overview", queries.overview),
    "list_failures": ("/failures?limit=20", lambda c, s: queries.failure_list(c, s, limit=20)),
    "list_chains": ("/chains?limit=20", lambda c, s: queries.chain_list(c, s, limit=20)),
    "get_failures_over_time": (
        "/failures-over-time?bucket=day&top=3",
        lambda c, s: queries.failures_over_time(c, s, bucket="day", top=3),
    ),
    "get_round_trips": ("/round-trips", queries.round_trips),
    "get_frequencies": (
        "/frequencies/field?minimum_calls=5&limit=7",
        lambda c, s: queries.frequency(c, s, "field", minimum_calls=5, limit=7),
    ),
    "get_matrix": (
        "/matrices/code?tools=4&columns=3",
        lambda c, s: queries.matrix(c, s, "code", tools=4, columns=3),
    ),
    "get_facets": ("/facets?limit=3", lambda c, s: queries.facets(c, s, limit=3)),
    "get_messages": (
        "/messages?minimum=3",
        lambda c, s: {"groups": queries.message_efficacy(c, s, minimum=3)},
    ),
    "get_conversation_rungs": ("/conversation-rungs", queries.conversation_rungs),
    "get_silent_successes": (
        "/silent-successes",
        lambda c, s: {"rows": queries.silent_successes(c, s)},
    ),
    "get_phantom_arguments": (
        "/phantom-arguments",
        lambda c, s: {"rows": queries.phantom_arguments(c, s)},
    ),
    "get_repeated_executions": (
        "/repeated-executions",
        lambda c, s: {"rows": queries.repeated_executions(c, s)},
    ),
    "list_kinds": (
        "/kinds?order=calls&limit=7",
        lambda c, s: queries.kinds(c, s, order="calls", limit=7),
    ),
    "get_fix_next": ("/fix-next?limit=5", lambda c, s: queries.fix_next(c, s, limit=5)),
    "get_round_trips_by": (
        "/round-trips/model",
        lambda c, s: {"by": "model", "groups": queries.chains_by(c, s, "model")},
    ),
    "get_costs": (
        "/costs/tool",
        lambda c, s: queries.costs(c, s, "tool", queries.prices_of(c, s.project_id)),
    ),
    "list_changes": ("/changes", lambda c, s: {"changes": queries.all_changes(c, s)}),
    "compare": (
        "/compare?before=until:10d&after=since:10d&confidence=0.9",
        lambda c, s: queries.comparison(
            c,
            queries.cohort_scope(s, "until:10d"),
            queries.cohort_scope(s, "since:10d"),
            confidence=0.9,
        ),
    ),
    "list_experiments": (
        "/experiments",
        lambda c, s: {
            "experiments": [
                {"name": name, "arms": arms} for name, arms in queries.experiments(c, s).items()
            ]
        },
    ),
    "get_experiment": (
        "/experiments/b?control=3",
        lambda c, s: queries.experiment(c, s, "b", control="3"),
    ),
    "get_experiment_looks": (
        "/experiments/b/looks?metric=recovery_rate",
        lambda c, s: queries.experiment_looks(c, s, "b", metric="recovery_rate"),
    ),
}
"""Operation -> what is asked, and the function that answers it."""

OF_ONE = {"get_failure", "get_chain", "get_change_effect"}
FILES = {"export", "export_comparison"}


@pytest.fixture(scope="module")
def api(history: Engine) -> Iterator[TestClient]:
    """The API with a read key of the generated project."""
    with key_of(history, "generated") as key:
        app = create_api(history, KeyCache(history), lambda: NOW)
        with TestClient(app, headers={"Authorization": f"Bearer {key}"}) as client:
            yield client


def test_every_operation_is_compared_with_a_query(history: Engine) -> None:
    """The operations that answer readers are those below; a new one must be, too."""
    api = create_api(history, KeyCache(history), lambda: 0)
    paths = get_openapi(title="", version="1", routes=api.routes)["paths"]
    operations = {way["operationId"] for each in paths.values() for way in each.values()}
    assert operations == {*ANSWERS, *OF_ONE, *FILES}


# Lists, rates, parameters of the path and of the query, and what is compared. What the others
# answer about six projects is recorded (tests/golden), and that it fits its schema `test_api.py`.
_COMPARED = (
    "get_overview", "list_failures", "get_round_trips", "get_frequencies", "get_matrix",
    "list_kinds", "get_costs", "compare", "get_experiment",
)  # fmt: skip


@pytest.mark.parametrize(
    "operation",
    [pytest.param(name, marks=() if name in _COMPARED else pytest.mark.long) for name in ANSWERS],
)
def test_the_answer_is_that_of_the_query(
    api: TestClient, conn: Connection, scope: Scope, operation: str
) -> None:
    """Every member of the answer is what the query says, its parameters included."""
    path, ask = ANSWERS[operation]
    text = "-code:timeout since:20d"
    joint = "&" if "?" in path else "?"
    response = api.get(f"{path}{joint}q={quote(text)}")
    assert response.status_code == 200, response.text
    assert response.json() == as_json(ask(conn, scope.narrowed(text)))


def test_one_failure_chain_and_change(api: TestClient, conn: Connection, scope: Scope) -> None:
    """What is asked for by its id is answered whole."""
    row = queries.failure_list(conn, scope.narrowed("has:chain"), limit=1).rows[0]
    change = queries.changes(conn, scope)[0]
    assert row.chain_id is not None
    for path, expected in (
        (f"/failures/{row.event_id}", queries.failure_detail(conn, scope, row.event_id)),
        (f"/chains/{row.chain_id}", queries.chain_detail(conn, scope, row.chain_id)),
        (
            f"/changes/{change.event_id}/effect",
            queries.change_comparison(conn, scope, change),
        ),
    ):
        assert api.get(path).json() == as_json(expected), path
    said = api.get("/changes", params={"detected": False}).json()["changes"]
    assert said == as_json(queries.changes(conn, scope))


# A list that is streamed, computed tables, one that may be empty. Every table of six projects is
# among the recorded answers (tests/golden).
_EXPORTED = ("failures", "codes", "chains", "silent_successes")


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(name, marks=() if name in _EXPORTED else pytest.mark.long)
        for name in TABLE_NAMES
    ],
)
def test_an_export_holds_the_rows_of_its_table(
    api: TestClient, conn: Connection, scope: Scope, table: TableName
) -> None:
    """JSON, NDJSON and CSV of a table are its rows, under the same filter."""
    params = {"q": "-code:timeout since:20d", "raw": "1"}
    expected = rows_as_json(named_table(conn, scope.narrowed(params["q"]), table))
    assert expected or table == "silent_successes"
    assert api.get(f"/exports/{table}.json", params=params).json() == expected
    lines = api.get(f"/exports/{table}.ndjson", params=params).text.splitlines()
    assert [json.loads(line) for line in lines] == expected
    text = api.get(f"/exports/{table}.csv", params=params)
    assert text.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert f"toolfault-{table}.csv" in text.headers["content-disposition"]
    rows = list(csv.reader(io.StringIO(text.text, newline="")))
    assert rows[0] == list(expected[0]) if expected else rows
    assert len(rows) == len(expected) + 1


def test_the_export_of_a_comparison(api: TestClient, conn: Connection, scope: Scope) -> None:
    """The exported comparison has the metrics of the query."""
    cohorts = ("tool:search", "-tool:search")
    found = queries.comparison(conn, *map(scope.narrowed, cohorts)).effect.metrics
    rows = api.get(
        "/exports/comparison.json", params={"before": cohorts[0], "after": cohorts[1]}
    ).json()
    assert [
        (row["metric"], row["before"], row["after"], row["difference"], row["low"], row["high"])
        for row in rows
    ] == [
        (each.metric, each.before, each.after, each.difference, each.low, each.high)
        for each in found
    ]


@pytest.mark.postgres
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.long)])
def test_the_answers_of_postgres(filled_postgres: str, every: int) -> None:
    """On PostgreSQL operations answer what their queries do, and one export its list."""
    engine = open_engine(filled_postgres)
    app = create_api(engine, KeyCache(engine), lambda: NOW)
    with key_of(engine, "generated") as key, TestClient(app) as api:
        api.headers["Authorization"] = f"Bearer {key}"
        with read_connection(engine) as conn:
            project = queries.project_by_name(conn, "generated")
            assert project is not None
            scope = Scope(project.id, parse(""), NOW, "llm")
            for path, ask in [*ANSWERS.values()][::every]:
                assert api.get(path).json() == as_json(ask(conn, scope)), path
            total = queries.count_failures(conn, scope)
        assert len(api.get("/exports/failures.ndjson").text.splitlines()) == total
    engine.dispose()
