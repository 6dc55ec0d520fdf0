"""Every route is in the policy table, and the table is what happens."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from fastapi.routing import iter_route_contexts
from httpx2 import Response
from sqlalchemy import Engine
from starlette.routing import Mount
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_dashboard.access.policy import POLICY, ROLES, Role, Rule, allows, rule_for


@pytest.fixture(scope="module")
def engine(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A project without a call: who is let in hangs on no figure."""
    path = tmp_path_factory.mktemp("policy") / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    engine = open_engine(f"sqlite:///{path}")
    with write_transaction(engine) as conn:
        ensure_project(conn, "bare")
    yield engine
    engine.dispose()


FORM = {"content-type": "application/x-www-form-urlencoded"}


def _routes(browser: Browser) -> set[tuple[str, str]]:
    # The ingest endpoints are no routes: they take requests before the layers that pages need.
    signals = ("events", "traces", "logs", "metrics")
    found: set[tuple[str, str]] = {("POST", f"/v1/{each}") for each in signals}
    for context in iter_route_contexts(browser.app.routes):
        route = getattr(context, "starlette_route", None) or context
        if isinstance(getattr(context, "original_route", None), Mount) or isinstance(route, Mount):
            found |= {
                ("GET", f"{route.path}/{{path:path}}"),
                ("HEAD", f"{route.path}/{{path:path}}"),
            }
            continue
        found |= {(method, str(route.path)) for method in route.methods or ()}
    return found


def test_every_route_is_in_the_policy_table(browser: Browser):
    """A route nobody decided on fails this test, and so does a rule without a route."""
    decided = {(method, rule.path) for rule in POLICY for method in rule.methods}
    routes = _routes(browser)
    # A page answers HEAD through the table even where the framework lists GET alone.
    gets = {(method, path) for method, path in routes if method != "HEAD"}
    assert {pair for pair in decided if pair[0] != "HEAD"} == gets


def test_a_new_route_is_noticed_and_closed(engine: Engine):
    """A route without a rule fails the comparison above, and nobody reaches it meanwhile."""
    for browser in open_browser(engine):
        browser.app.add_api_route("/secret", lambda: "secret")
        decided = {(method, rule.path) for rule in POLICY for method in rule.methods}

        assert _routes(browser) - decided == {("GET", "/secret")}
        answer = browser.get("/secret")
        assert answer.status_code == 404
        assert '"secret"' not in answer.text


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
IN_USE = ("GET", "POST")


def _is_a_file_more(rule: Rule) -> bool:
    """One more format of a table whose CSV has a rule of its own."""
    return rule.path.endswith((".ndjson", ".parquet"))


@pytest.mark.parametrize(
    ("role", "methods"),
    [
        ("admin", IN_USE),
        pytest.param("admin", METHODS, marks=pytest.mark.long),
        pytest.param(None, METHODS, marks=pytest.mark.long),
    ],
    ids=["admin", "admin, all methods", "nobody, all methods"],
)
def test_methods_that_no_rule_names_do_nothing(
    engine: Engine, role: Role | None, methods: tuple[str, ...]
):
    """Every path under every other method: refused, by whatever is in front of it."""
    taken = {(rule.path, method) for rule in POLICY for method in rule.methods}
    for browser in open_browser(engine, role=role):
        for rule in POLICY:
            for method in methods:
                if (rule.path, method) in taken or (methods == IN_USE and _is_a_file_more(rule)):
                    continue
                path = re.sub(r"\{\w+(:path)?\}", "x", rule.path)
                answer = browser.client.request(method, path, headers=FORM, follow_redirects=False)
                expected = {404, 405} if role else {303, 401, 404, 405}
                assert answer.status_code in expected, f"{method} {path}: {answer.status_code}"


def test_no_rule_hides_behind_another():
    """The first rule that matches a path of the table is the rule of that very path."""
    for rule in POLICY:
        for method in rule.methods:
            path = rule.path.replace("{path:path}", "x")
            path = path.replace("{event_id}", "x").replace("{chain_id}", "x")
            assert rule_for(method, path) == rule


_LOWEST: Final = (None, "viewer")
"""Who is tried in `make test`: they are refused most; a higher role may use what the table says."""


@pytest.mark.parametrize(
    "role",
    [
        pytest.param(role, marks=() if role in _LOWEST else pytest.mark.long)
        for role in (None, *ROLES)
    ],
)
def test_the_table_is_what_happens(engine: Engine, role: Role | None):
    """For each role every route answers as its rule says: let in, sent to sign in, or refused."""
    for browser in open_browser(engine, role=role):
        # Signing out comes last: the session is needed for the rest of the table.
        for rule in sorted(POLICY, key=lambda rule: rule.path == "/sign-out"):
            if role is not None and role in _LOWEST and _is_a_file_more(rule):
                continue
            for method in sorted(rule.methods - {"HEAD"}):
                status = _ask(browser, method, rule).status_code
                if role is None and rule.access not in ("public", "ingest", "api", "key"):
                    expected = {303, 401}
                elif role is not None and not allows(role, rule.access):
                    expected = {403}
                elif rule.access in ("ingest", "key"):
                    expected = {401}  # no key was given: a session is no key
                else:
                    expected = {200, 303, 404, 405, 410, 415, 422}
                assert status in expected, f"{method} {rule.path} as {role}: {status}"


def _ask(browser: Browser, method: str, rule: Rule) -> Response:
    path = rule.path.replace("{path:path}", "app.css")
    path = path.replace("{event_id}", "x").replace("{chain_id}", "x")
    if path == "/live/events":
        method = "POST"  # the stream goes on for a minute; what decides comes before it
    return browser.client.request(method, path, headers=FORM, follow_redirects=False)


def test_a_page_sends_to_sign_in_and_remembers_where_to_go(engine: Engine):
    """Without a session a page answers 303 to the sign-in page with the way back."""
    for browser in open_browser(engine, role=None):
        answer = browser.get("/failures?q=tool:x")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/sign-in?next=%2Ffailures%3Fq%3Dtool%3Ax"


def test_an_unknown_address_tells_a_stranger_nothing(engine: Engine):
    """Without a session an address that exists and one that does not answer alike."""
    for browser in open_browser(engine, role=None):
        statuses = {browser.get(path).status_code for path in ("/failures", "/nothing", "/tool")}
        assert statuses == {303}


@pytest.fixture
def stranger(engine: Engine) -> Iterator[Browser]:
    """Somebody without a session."""
    yield from open_browser(engine, role=None)


def test_programs_get_problems_and_no_pages(stranger: Browser):
    """Machine addresses never answer with HTML or a redirect."""
    for method, path, status in (
        ("GET", "/v1/events", 405),
        ("GET", "/v1/nothing", 404),
        ("POST", "/v1/events", 401),
        ("GET", "/healthz", 200),
    ):
        answer = stranger.client.request(method, path, follow_redirects=False)
        assert answer.status_code == status, path
        assert "html" not in answer.headers["content-type"]
