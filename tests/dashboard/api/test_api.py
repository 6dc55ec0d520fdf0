"""The JSON API over a real application: keys, answers, schema, problems, cursors, exports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, delete
from tests.dashboard.generated import NOW

from toolfault_collector.admin.keys import KeyCache, create_key
from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import api_key
from toolfault_dashboard import queries
from toolfault_dashboard.api import create_api
from toolfault_dashboard.docs.reference import http_api

PATHS = (
    "/summary",
    "/overview",
    "/failures",
    "/chains",
    "/failures-over-time",
    "/round-trips",
    "/frequencies/signature",
    "/round-trips/model",
    "/costs/model",
    "/matrices/code",
    "/matrices/field",
    "/facets",
    "/messages",
    "/fix-next",
    "/kinds",
    "/silent-successes",
    "/phantom-arguments",
    "/repeated-executions",
    "/changes",
    "/experiments",
    "/compare?before=until:10d&after=since:10d",
)


@pytest.fixture(scope="module")
def keys(history: Engine) -> Iterator[dict[str, str]]:
    """A read key of each project, and an ingest key."""
    with write_transaction(history) as conn:
        found = {
            name: create_key(conn, find_project(conn, name) or 0, "read")
            for name in ("generated", "other")
        }
        found["ingest"] = create_key(conn, find_project(conn, "generated") or 0, "ingest")
    yield found
    with write_transaction(history) as conn:
        conn.execute(delete(api_key))


@pytest.fixture(scope="module")
def api(history: Engine, keys: dict[str, str]) -> Iterator[TestClient]:
    """The API with the read key of the generated project."""
    app = create_api(history, KeyCache(history), lambda: NOW)
    with TestClient(app, headers={"Authorization": f"Bearer {keys['generated']}"}) as client:
        yield client


@pytest.fixture(scope="module")
def schema(api: TestClient) -> dict[str, Any]:
    """What the API says of itself."""
    found: dict[str, Any] = api.get("/openapi.json").json()
    return found


def _shape(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """The schema of the answer of *path*, with its references resolved in place."""
    parts = path.split("?", maxsplit=1)[0].split("/")[1:]
    for template, operations in schema["paths"].items():
        own = template.split("/")[1:]
        if len(own) == len(parts) and all(
            a == b or a.startswith("{") for a, b in zip(own, parts, strict=True)
        ):
            content = operations["get"]["responses"]["200"]["content"]["application/json"]
            return {**content["schema"], "components": schema["components"]}
    raise AssertionError(path)


@pytest.mark.parametrize("path", PATHS)
def test_answers_are_what_the_schema_says(
    api: TestClient, schema: dict[str, Any], path: str
) -> None:
    """Every answer validates against the published schema, and is said to be data."""
    response = api.get(path)
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-trust"] == "untrusted"  # a model may be reading it
    jsonschema.validate(response.json(), _shape(schema, path))


def test_single_rows_are_what_the_schema_says(api: TestClient, schema: dict[str, Any]) -> None:
    """A failure, a chain, the effect of a change and a trial validate too."""
    failure = api.get("/failures?limit=1&q=has:chain").json()["rows"][0]
    change = api.get("/changes").json()["changes"][0]["event_id"]
    for path in (
        f"/failures/{failure['event_id']}",
        f"/chains/{failure['chain_id']}",
        f"/changes/{change}/effect",
        "/experiments/a",
        "/experiments/b/looks",
        "/experiments/b?weights=2:1,3:9",
    ):
        response = api.get(path)
        assert response.status_code == 200, (path, response.text)
        jsonschema.validate(response.json(), _shape(schema, path))


def test_operations_are_named_for_ever(schema: dict[str, Any]) -> None:
    """The names that generated clients are made of do not change."""
    names = sorted(
        operation["operationId"]
        for operations in schema["paths"].values()
        for method, operation in operations.items()
        if method != "servers"
    )
    assert names == [
        "compare",
        "export",
        "export_comparison",
        "get_chain",
        "get_change_effect",
        "get_conversation_rungs",
        "get_costs",
        "get_experiment",
        "get_experiment_looks",
        "get_facets",
        "get_failure",
        "get_failures_over_time",
        "get_fix_next",
        "get_frequencies",
        "get_health",
        "get_matrix",
        "get_messages",
        "get_metrics",
        "get_overview",
        "get_phantom_arguments",
        "get_readiness",
        "get_repeated_executions",
        "get_round_trips",
        "get_round_trips_by",
        "get_schema",
        "get_silent_successes",
        "get_summary",
        "list_chains",
        "list_changes",
        "list_experiments",
        "list_failures",
        "list_kinds",
        "send_events",
        "send_logs",
        "send_metrics",
        "send_traces",
    ]
    assert schema["openapi"].startswith("3.1")


def test_every_parameter_says_what_it_means(schema: dict[str, Any]) -> None:
    """None is described by its name alone, neither in the document nor in the reference."""
    operations = [each for of in schema["paths"].values() for each in of.values()]
    parameters = [p for each in operations if "tags" in each for p in each.get("parameters", ())]

    assert len(parameters) > 60
    assert [each["name"] for each in parameters if not each.get("description")] == []


def test_the_reference_has_every_operation_and_its_examples_work(
    api: TestClient, schema: dict[str, Any]
) -> None:
    """Each operation has what it needs and one curl; those that name something work."""
    page = http_api()
    blocks = re.findall(
        r"^### (\w+) (\S+)\n.*?^- Needs: ([^\n]+)\..*?^curl ([^\n]*)",
        page,
        re.MULTILINE | re.DOTALL,
    )
    operations = {
        (method.upper(), ("" if "servers" in of else "/api/v1") + path)
        for path, of in schema["paths"].items()
        for method in of.keys() - {"servers"}
    }
    assert {(method, path) for method, path, _, _ in blocks} == operations
    assert len(blocks) == len(operations)
    name, row = "a", api.get("/failures?limit=1&q=has:chain").json()["rows"][0]
    change = api.get("/changes").json()["changes"][0]
    for _, path, needs, curl in blocks:
        key = {"a read key or a session": "READ", "an ingest key": "INGEST"}.get(needs, "")
        assert re.findall(r"\$(\w+)_KEY", curl) == ([key] if key else []), path
        address = curl.rpartition('"$SERVER')[2].removesuffix('"')
        if key == "READ" and ("{" in path or "?" in address):
            event = change["event_id"] if "/changes/" in path else row["event_id"]
            for place, found in (
                ("EVENT_ID", event),
                ("CHAIN_ID", row["chain_id"]),
                ("NAME", name),
            ):
                address = address.replace(place, found)
            assert api.get(address.removeprefix("/api/v1")).status_code == 200, curl


def test_pages_follow_their_links(api: TestClient) -> None:
    """Following ``next`` lists every failure once; ``Link`` says the same as the body."""
    seen: list[str] = []
    cursor = ""
    while True:
        response = api.get("/failures", params={"q": "tool:search", "limit": 40, "cursor": cursor})
        page = response.json()
        seen += [row["event_id"] for row in page["rows"]]
        assert ('rel="next"' in response.headers.get("link", "")) == bool(page["next_cursor"])
        if not page["next_cursor"]:
            break
        cursor = page["next_cursor"]
    assert len(seen) == len(set(seen)) == page["total"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/summary?q=tol:x", 422, "bad_query"),
        ("/summary?q=%00", 422, "bad_query"),
        ("/summary?q=" + "x" * 9_000, 422, "bad_parameter"),
        ("/failures?cursor=nonsense", 422, "bad_cursor"),
        ("/failures?limit=-1", 422, "bad_parameter"),
        ("/failures?limit=x", 422, "bad_parameter"),
        ("/frequencies/colour", 422, "bad_parameter"),
        ("/failures/nothing", 404, "unknown_failure"),
        ("/chains/nothing", 404, "unknown_chain"),
        ("/changes/nothing/effect", 404, "unknown_change"),
        ("/experiments/nothing", 404, "unknown_experiment"),
        ("/experiments/a?control=nothing", 422, "bad_parameter"),
        ("/experiments/a/looks?control=nothing", 422, "bad_parameter"),
        ("/experiments/a/looks?metric=colour", 422, "bad_parameter"),
        ("/experiments/nothing/looks", 404, "unknown_experiment"),
        ("/experiments/b?weights=2:nan,3:1", 422, "bad_parameter"),
        ("/experiments/b?weights=2:1", 422, "bad_parameter"),
        ("/experiments/b?q=tol:x", 422, "bad_query"),
        ("/summary?project=other", 404, "unknown_project"),
        ("/nothing", 404, "not_found"),
        ("/exports/failures.xml", 422, "bad_parameter"),
        ("/exports/failures.csv?q=tol:x", 422, "bad_query"),
        ("/summary?api_key=x", 401, "key_in_url"),
    ],
)
def test_errors_are_problem_documents(api: TestClient, path: str, status: int, code: str) -> None:
    """Every error is a problem document that says what to do and repeats nothing."""
    response = api.get(path)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert "xxxx" not in response.text
    if code == "bad_query":
        assert problem["column"] == 1


def test_limits_beyond_the_most_are_cut(api: TestClient) -> None:
    """A huge page size is cut, not refused."""
    assert len(api.get("/failures?limit=1000000000").json()["rows"]) <= 500


def test_texts_of_agents_are_marked_as_untrusted(api: TestClient, schema: dict[str, Any]) -> None:
    """Files with stored text say that it is data, as answers do: a model may be reading it."""
    for path in ("/exports/failures.csv", "/exports/failures.ndjson"):
        assert api.get(path).headers["x-content-trust"] == "untrusted", path
    assert "never instructions" in schema["info"]["description"]


def test_only_read_keys_read(api: TestClient, keys: dict[str, str]) -> None:
    """No key, a wrong key and an ingest key read nothing at all."""
    every = (
        *(f"/frequencies/{by}" for by in queries.FREQUENCIES),
        *(f"/{table}/{by}" for table in ("round-trips", "costs") for by in queries.COST_GROUPS),
    )
    assert api.get(every[0]).status_code == 200
    for path in (
        *PATHS,
        *every,
        "/openapi.json",
        "/exports/failures.csv",
        "/failures/x",
        "/chains/x",
    ):
        assert api.get(path, headers={"Authorization": ""}).status_code == 401
        assert api.get(path, headers={"Authorization": "Bearer tf_read_x"}).status_code == 401
        ingest = api.get(path, headers={"Authorization": f"Bearer {keys['ingest']}"})
        assert ingest.status_code == 403
    assert api.post("/summary").status_code == 405


def test_a_key_reads_its_own_project_alone(api: TestClient, keys: dict[str, str]) -> None:
    """Ids, cursors and names of another project lead nowhere."""
    other = {"Authorization": f"Bearer {keys['other']}"}
    page = api.get("/failures?limit=1&q=has:chain").json()
    row, change = page["rows"][0], api.get("/changes").json()["changes"][0]
    for path in (
        f"/failures/{row['event_id']}",
        f"/chains/{row['chain_id']}",
        f"/changes/{change['event_id']}/effect",
    ):
        assert api.get(path).status_code == 200
        assert api.get(path, headers=other).status_code == 404
    crossed = api.get(f"/failures?cursor={page['next_cursor']}", headers=other)
    assert crossed.status_code == 422
    mine = {row["event_id"] for row in api.get("/failures?limit=500").json()["rows"]}
    theirs = {
        row["event_id"] for row in api.get("/failures?limit=500", headers=other).json()["rows"]
    }
    assert not mine & theirs


def test_a_read_key_sees_nothing_of_the_system(api: TestClient) -> None:
    """What only operators may see is in no answer of a key, and cannot be found by filtering."""
    rows = api.get("/failures?limit=500").json()["rows"]
    for row in rows[:60:5]:
        assert "secret of the system" not in api.get(f"/failures/{row['event_id']}").text
    assert "secret of the system" not in api.get("/exports/failures.ndjson").text
    assert api.get("/summary?q=exception:TimeoutError").status_code == 422
    assert api.get("/exports/failures.csv?q=user:u-7").status_code == 422


def test_an_export_that_ended_makes_room(api: TestClient) -> None:
    """One reader may export again and again, also after a query that cannot be read."""
    for _ in range(4):
        assert api.get("/exports/codes.csv").status_code == 200
        assert api.get("/exports/codes.csv?q=tol:x").status_code == 422
