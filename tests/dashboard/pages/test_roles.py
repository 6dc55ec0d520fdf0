"""What a role may not see is nowhere: not on pages, in exports, in counts or in errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.pages.test_hostile import paths_of
from tests.factories import event_id

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import MINUTE_US, SECOND_US, format_time
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard.access.policy import POLICY, ROLES, Role, sees

# Every table as a file; what asks for a parameter is asked with one.
PARAMETERS = {
    "/comparison.csv": "?before=since:7d&after=until:7d",
    "/comparison-codes.csv": "?before=since:7d&after=until:7d",
    "/effect.csv": "?change={change}",
    "/new-since.csv": "?change={change}",
}
EXPORTS = (
    *(
        rule.path + PARAMETERS.get(rule.path, "")
        for rule in POLICY
        if rule.path.endswith(".csv") and rule.access != "admin"
    ),
    "/failures.ndjson",
    "/report.html",
)
FILTERED = (
    "/failures.csv",
    "/kinds.csv",
    "/chains.csv",
    "/codes.csv",
    "/fields.csv",
    "/tools.csv",
    "/overview.csv",
    "/round-trips.csv",
)
# One unmistakable text per field, by the lowest audience that may read it.
CANARIES = {
    "user": {"text_user": "canaryuserone"},
    "llm": {
        "text_llm": "canaryllmone",
        "received": "canaryllmtwo",
        "snippet": "canaryllmthree",
        "retry_hint": "canaryllmfour",
        "retry_context": "canaryllmfive",
    },
    "system": {
        "text_system": "canarysystemone",
        "exception_message": "canarysystemtwo",
        "traceback": "canarysystemthree",
        "exception_type": "canarysystemfour",
        "user": "canarysystemfive",
        "tag": "canarysystemsix",
        "exception_module": "canarysystemseven",
    },
}
RANK = ("user", "llm", "system")


def _events() -> list[dict[str, Any]]:
    llm, system = CANARIES["llm"], CANARIES["system"]
    calls = []
    for number in range(3):
        failed = number < 2
        call: dict[str, Any] = {
            "type": "tool_call",
            "event_id": event_id(),
            "session_id": "conv",
            "tool": "search",
            "occurred_at": format_time(NOW - MINUTE_US + number * SECOND_US),
            "seq": number,
            "success": not failed,
            "user": system["user"],
            "tags": {"team": system["tag"]},
        }
        if failed:
            call["error"] = {
                "code": "wrong_type",
                "category": "parameter",
                "audience": "llm",
                "field": "limit",
                "received": llm["received"],
                "snippet": llm["snippet"],
                "retry_hint": llm["retry_hint"],
                "retry_context": {"x": llm["retry_context"]},
                "renderings": {
                    "user": CANARIES["user"]["text_user"],
                    "llm": llm["text_llm"],
                    "system": system["text_system"],
                },
                "exception": {
                    "type": system["exception_type"],
                    "module": system["exception_module"],
                    "message": system["exception_message"],
                    "traceback": system["traceback"],
                },
            }
        calls.append(call)
    change = {
        "type": "change",
        "event_id": event_id(),
        "label": "improved",
        "occurred_at": format_time(NOW - MINUTE_US),
    }
    return [*calls, change]


@pytest.fixture(scope="module")
def guarded(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A project whose every field holds a canary."""
    path = tmp_path_factory.mktemp("roles") / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    engine = open_engine(f"sqlite:///{path}")
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "guarded")
        receipt = store_events(conn, project, _events(), received_at=NOW, time_policy="import")
    assert receipt.accepted == 4, receipt.rejected
    yield engine
    engine.dispose()


def _surfaces(browser: Browser, *, hides: bool) -> dict[str, str]:
    """What a role is shown anywhere; of one from whom nothing is hidden, where all of it stands."""
    change = next(path for path in paths_of(browser.engine) if path.startswith("/changes/"))
    exports = [path.replace("{change}", change.rsplit("/", 1)[1]) for path in EXPORTS]
    paths = [*paths_of(browser.engine), *exports, "/help", "/failures?q=tol:x"]
    if not hides:
        paths = [path for path in paths if path.startswith("/failures")]
    found = {}
    for path in paths:
        joint = "&" if "?" in path else "?"
        answer = browser.client.get(f"{path}{joint}window=all")
        found[path] = answer.text + str(answer.headers)
    return found


@pytest.mark.parametrize("role", ROLES)
def test_no_surface_shows_a_role_more_than_its_audience(guarded: Engine, role: Role):
    """Every page and export of a role is free of the canaries above it, and shows those below."""
    highest = RANK.index(sees(role))
    for browser in open_browser(guarded, role=role):
        surfaces = _surfaces(browser, hides=highest < len(RANK) - 1)
    everything = "".join(surfaces.values())
    for rank, audience in enumerate(RANK):
        for name, canary in CANARIES[audience].items():
            where = [path for path, text in surfaces.items() if canary in text]
            if rank > highest:
                assert not where, f"{name} of {audience} is shown to {role} on {where}"
            else:
                assert canary in everything, f"{name} of {audience} is not shown to {role}"


EVERYWHERE = ("message:*", "user:{user}")


@pytest.mark.parametrize(
    ("role", "query"),
    [
        ("viewer", '"{text_llm}"'),
        ("viewer", "message:*"),
        ("viewer", "exception:*"),
        ("viewer", "user:*"),
        ("viewer", "tag.team:*"),
        ("developer", "exception:{exception_type}"),
        ("developer", "user:{user}"),
        ("developer", "tag.team:{tag}"),
    ],
)
def test_a_hidden_field_cannot_be_asked_for(guarded: Engine, role: Role, query: str):
    """Filtering on what a role may not see is refused on every page, so no count can betray it."""
    texts = {name: text for group in CANARIES.values() for name, text in group.items()}
    hit, miss = query.format(**texts), query.format(**dict.fromkeys(texts, "nothing"))
    for browser in open_browser(guarded, role=role):
        # One reader of queries serves all addresses: each is tried with one query of a role.
        every = ("/", "/failures", "/round-trips", "/codes", "/tools", *FILTERED)
        for path in every if query in EVERYWHERE else ("/failures", "/failures.csv"):
            answers = [browser.get(path, params={"q": text}) for text in (hit, miss)]
            assert [answer.status_code for answer in answers] == [400, 400], path


def test_roles_below_developer_record_no_change(guarded: Engine):
    """A viewer sees no form, and posting one is refused."""
    form = {"label": "x"}
    for browser in open_browser(guarded, role="viewer"):
        assert not browser.page("/changes").forms_to("/changes")
        assert browser.client.post("/changes", data=form).status_code == 403


def test_only_an_administrator_makes_a_key(guarded: Engine):
    """Below the administrator the first-run page explains instead of offering a button."""
    for role in ("viewer", "developer", "operator"):
        for browser in open_browser(guarded, role=role):
            assert not browser.page("/start").forms_to("/start")
            form = {"content-type": "application/x-www-form-urlencoded"}
            assert browser.client.post("/start", headers=form).status_code == 403
