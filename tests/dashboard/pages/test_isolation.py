"""Two projects: no id, name, cursor or number of one leads anywhere under the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from fastapi.routing import iter_route_contexts
from sqlalchemy import Engine, delete, select
from starlette.routing import Mount
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.admin.keys import create_key, list_keys, revoke_key
from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.tables import api_key, saved_view
from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import POLICY
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse
from toolfault_dashboard.writes.saved_views import save_view

OWN, OTHER = "generated", "other"


@dataclass(frozen=True)
class Ids:
    """What names one thing of one project, by the path parameter or form field that takes it."""

    failure: str
    chain: str
    change: str
    key: int
    view: int
    cursor: str
    chain_cursor: str


@dataclass(frozen=True)
class Keys:
    """Keys of the first project, and a read key of the second."""

    ingest: str
    read: str
    revoked: str
    other_read: str


@pytest.fixture(scope="module")
def keys(engine: Engine) -> Iterator[Keys]:
    """One key of each kind."""
    with write_transaction(engine) as conn:
        own, other = (find_project(conn, name) or 0 for name in (OWN, OTHER))
        made = Keys(
            create_key(conn, own, "ingest"),
            create_key(conn, own, "read"),
            create_key(conn, own, "read"),
            create_key(conn, other, "read"),
        )
        revoke_key(conn, list_keys(conn, own)[-1].id)
    yield made
    with write_transaction(engine) as conn:
        conn.execute(delete(api_key))


@pytest.fixture
def administrator(engine: Engine, keys: Keys) -> Iterator[Browser]:
    """An administrator, who may see both projects, one at a time."""
    for browser in open_browser(engine):
        for name in (OWN, OTHER):
            with read_connection(engine) as conn:
                project = find_project(conn, name) or 0
            save_view(
                engine, project, 1, name="v", page="/failures", query="", shared=False, now=NOW
            )
        yield browser
        with write_transaction(engine) as conn:
            conn.execute(delete(saved_view))


def _ids(engine: Engine, project: str) -> Ids:
    with read_connection(engine) as conn:
        number = find_project(conn, project) or 0
        scope = Scope(number, parse(""), NOW)
        page = queries.failure_list(conn, scope, limit=2)
        chains = queries.chain_list(conn, scope, limit=1)
        view = conn.execute(select(saved_view.c.id).where(saved_view.c.project_id == number))
        return Ids(
            failure=page.rows[0].event_id,
            chain=chains.rows[0].chain_id,
            change=queries.changes(conn, scope)[0].event_id,
            key=list_keys(conn, number)[0].id,
            view=view.scalars().first() or 0,
            cursor=page.next_cursor or "",
            chain_cursor=chains.next_cursor or "",
        )


PAGES = {
    "/failures/{event_id}": "failure",
    "/chains/{chain_id}": "chain",
    "/changes/{event_id}": "change",
    "/api/v1/failures/{event_id}": "failure",
    "/api/v1/chains/{chain_id}": "chain",
    "/api/v1/changes/{event_id}/effect": "change",
}
# Path parameters that name nothing of a project: they choose what of it is shown.
CHOICES = {"path", "by", "table", "format", "name"}


def _paths(browser: Browser) -> set[str]:
    found = set()
    for context in iter_route_contexts(browser.app.routes):
        route = getattr(context, "original_route", None) or context
        if isinstance(route, Mount) and route.path == "/api/v1":
            inner = iter_route_contexts(route.routes)
            found |= {f"/api/v1{each.path}" for each in inner}
        else:
            found.add(str(route.path))
    return found


def test_every_path_with_an_id_is_known_here(administrator: Browser):
    """A new route that takes an id must be swapped below before it is served."""
    takers = {
        path
        for path in _paths(administrator)
        if set(re.findall(r"\{(\w+)(?::path)?\}", path)) - CHOICES
    }

    assert takers == set(PAGES)


@pytest.mark.parametrize("path", PAGES)
def test_an_id_of_another_project_is_not_found(administrator: Browser, path: str, keys: Keys):
    """Each id opens its own project's page and is 404 under the other, for people and keys."""
    own, other = (_ids(administrator.engine, name) for name in (OWN, OTHER))

    def status(ids: Ids, project: str) -> int:
        address = re.sub(r"\{\w+\}", getattr(ids, PAGES[path]), path)
        return administrator.get(f"{address}?project={project}").status_code

    assert [status(own, OWN), status(other, OTHER)] == [200, 200]
    assert [status(own, OTHER), status(other, OWN)] == [404, 404]
    if path.startswith("/api"):
        for ids, key, expected in (
            (own, keys.read, 200),
            (other, keys.read, 404),
            (own, keys.other_read, 404),
            (own, keys.revoked, 401),
            (own, keys.ingest, 403),
        ):
            address = re.sub(r"\{\w+\}", getattr(ids, PAGES[path]), path)
            answer = administrator.get(address, headers={"authorization": f"Bearer {key}"})
            assert answer.status_code == expected, (address, answer.text)


@pytest.mark.parametrize(
    ("path", "cursor"),
    [
        ("/failures", "cursor"),
        ("/round-trips", "chain_cursor"),
        ("/api/v1/failures", "cursor"),
        ("/api/v1/chains", "chain_cursor"),
    ],
)
def test_a_cursor_of_another_project_is_refused(administrator: Browser, path: str, cursor: str):
    """A cursor names a place in one list of one project."""
    other = getattr(_ids(administrator.engine, OTHER), cursor)
    if not other:
        pytest.skip("the other project has one page")

    answer = administrator.get(path, params={"project": OWN, "cursor": other, "window": "all"})

    assert answer.status_code in (400, 404, 422)


@pytest.mark.parametrize("path", ["/settings/keys/revoke", "/views/delete"])
def test_a_number_of_another_project_is_not_found(administrator: Browser, path: str):
    """A form that takes a number changes nothing of the other project, and says 404."""
    other = _ids(administrator.engine, OTHER)
    number = other.key if "keys" in path else other.view

    answer = administrator.client.post(f"{path}?project={OWN}", data={"id": str(number)})

    assert answer.status_code == 404
    assert _ids(administrator.engine, OTHER) == other


def test_a_key_names_its_project(administrator: Browser, keys: Keys):
    """A read key that asks for another project is told that there is none."""
    headers = {"authorization": f"Bearer {keys.read}"}
    paths = [
        path
        for path in sorted(_paths(administrator))
        if path.startswith("/api/v1/") and "{" not in path and "openapi" not in path
    ]
    assert len(paths) > 10
    for path in paths:
        cohorts = {"before": "until:10d", "after": "since:10d"}
        other = administrator.get(path, params={"project": OTHER, **cohorts}, headers=headers)
        assert other.status_code == 404, path
    own = administrator.get("/api/v1/summary", params={"project": OWN}, headers=headers)
    assert own.status_code == 200


def test_every_route_of_the_api_needs_a_key(engine: Engine, keys: Keys):
    """Whatever route is added to the API: nobody, a revoked key, an ingest key read nothing."""
    for browser in open_browser(engine, role=None):
        paths = sorted(path for path in _paths(browser) if path.startswith("/api/v1/"))
        assert len(paths) > 15
        for path in paths:
            address = path.replace("{table}.{format}", "codes.csv").replace("{by}", "code")
            address = re.sub(r"\{\w+\}", "x", address)
            for key, expected in (("", 401), (keys.revoked, 401), (keys.ingest, 403)):
                headers = {"authorization": f"Bearer {key}"} if key else {}
                answer = browser.get(address, headers=headers)
                assert answer.status_code == expected, (address, expected, answer.text)


def test_no_key_opens_a_page(engine: Engine, keys: Keys):
    """Keys are for programs: a page asks everybody without a session to sign in."""
    for browser in open_browser(engine, role=None):
        for rule in POLICY:
            if rule.access in ("public", "ingest", "api", "key") or "GET" not in rule.methods:
                continue
            if rule.path.endswith((".ndjson", ".parquet")):
                continue  # more formats of the table whose CSV is asked for
            path = re.sub(r"\{\w+\}", "x", rule.path)
            for key in (keys.read, keys.ingest):
                answer = browser.get(path, headers={"authorization": f"Bearer {key}"})
                assert answer.status_code in (303, 401), path
