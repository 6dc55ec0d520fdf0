"""Keys and people: made, shown once, ended; and the page of what was refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, insert
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.reading import Page

from toolfault_collector.admin.keys import authenticate
from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.tables import quota_bucket
from toolfault_dashboard.access import signin

GENERATED = "?project=generated"


@pytest.fixture
def second(own_engine: Engine) -> Iterator[Browser]:
    """A developer on the same server as ``own_browser``."""
    yield from open_browser(own_engine, role="developer")


def _post(browser: Browser, path: str, *, status: int = 200, **form: str) -> Page:
    return browser.post(f"{path}{GENERATED}", form, status=status)


def _secret(page: Page) -> str:
    """What is shown once."""
    return page.snippets[0]


def _send(browser: Browser, key: str) -> int:
    batch = {"schema_version": 1, "events": [{"type": "nonsense"}]}
    headers = {"authorization": f"Bearer {key}"}
    return browser.client.post("/v1/events", json=batch, headers=headers).status_code


def test_a_key_is_shown_once_and_works_until_it_is_revoked(own_browser: Browser):
    """The page after creating shows the key, no later page does; revoking refuses it at once."""
    soup = _post(own_browser, "/settings/keys", kind="ingest", label="bot")
    key = _secret(soup)
    assert _send(own_browser, key) == 200
    again = own_browser.page(f"/settings{GENERATED}")
    assert key not in str(again.tag)
    number = again.forms_to("/settings/keys/revoke")[-1].fields["id"]
    _post(own_browser, "/settings/keys/revoke", id=number)
    with read_connection(own_browser.engine) as conn:
        # Over HTTP a key that was just used is remembered for two seconds.
        assert authenticate(conn, key) is None


@pytest.mark.parametrize("number", ["", "x", "-1", "999999", "1" * 40])
def test_a_key_that_is_not_there_is_404(own_browser: Browser, number: str):
    """Whatever number is sent, only a key of this project is revoked."""
    _post(own_browser, "/settings/keys/revoke", id=number, status=404)


def test_a_key_of_another_project_is_not_revoked(own_browser: Browser):
    """The number of another project's key is not found."""
    answer = own_browser.client.post("/settings/keys?project=other", data={"kind": "ingest"})
    assert answer.status_code == 200
    number = own_browser.page("/settings?project=other").form("/settings/keys/revoke").fields["id"]
    _post(own_browser, "/settings/keys/revoke", id=number, status=404)


@pytest.mark.parametrize("kind", ["", "admin"])
def test_an_unknown_kind_of_key_is_refused(own_browser: Browser, kind: str):
    """A key is of kind ingest or read."""
    assert _post(own_browser, "/settings/keys", kind=kind, status=422).role("alert")


def test_an_invited_person_signs_in_with_the_link(own_browser: Browser):
    """The link that the page shows makes a session of the role that was chosen."""
    soup = _post(own_browser, "/settings/people", name="grace", role="developer")
    token = _secret(soup).split("token=")[1]
    own_browser.client.cookies.clear()
    own_browser.client.post("/sign-in", data={"token": token})
    soup = own_browser.page(f"/{GENERATED}")
    assert "grace, developer" in soup.text
    assert own_browser.get("/settings").status_code == 403


@pytest.mark.parametrize("name", ["", " ", "a" * 129, "a\nb"])
def test_a_name_that_cannot_be_is_refused(own_browser: Browser, name: str):
    """An account needs a printable name of 1 to 128 characters."""
    soup = _post(own_browser, "/settings/people", name=name, role="viewer", status=422)
    assert soup.role("alert")


def test_a_role_is_changed_and_access_taken(own_browser: Browser, second: Browser):
    """Both end the sessions of that person at once; without access no link signs in."""
    assert second.get("/").status_code == 200
    _post(own_browser, "/settings/people/role", name="developer", role="viewer")
    assert second.get("/").status_code == 303
    token = signin.create_link(second.engine, now=NOW, name="developer")
    _post(own_browser, "/settings/people/role", name="developer", role="none")
    second.page(f"/sign-in?token={token}", status=410)


@pytest.mark.parametrize("role", ["viewer", "none"])
def test_the_last_administrator_stays(own_browser: Browser, role: str):
    """Nobody locks everybody out."""
    soup = _post(own_browser, "/settings/people/role", name="admin", role=role, status=422)
    assert "last administrator" in soup.role("alert")
    assert own_browser.get("/settings").status_code == 200


def test_an_unknown_person_is_404(own_browser: Browser):
    """A role of nobody cannot be changed."""
    _post(own_browser, "/settings/people/role", name="nobody", role="viewer", status=404)


def test_what_was_refused_is_shown_with_its_reason(own_browser: Browser):
    """An event that could not be stored appears with code, place and its redacted text."""
    soup = _post(own_browser, "/settings/keys", kind="ingest")
    assert _send(own_browser, _secret(soup)) == 200
    page = own_browser.page(f"/rejected{GENERATED}").main
    said = " ".join(cell.text for cell in page.tables[0].rows[0].values())
    assert "/events/0" in said
    assert "nonsense" in said
    assert "1 event" in page.lead


def test_retention_and_prices_are_changed_for_the_project(own_browser: Browser):
    """The form comes back filled, the other project keeps the server's, and money appears."""
    costs = "/api/v1/costs/model?project=generated"
    assert own_browser.client.get(costs).json()["total"]["money_lost"] is None
    soup = _post(
        own_browser,
        "/settings/project",
        retention_days="36500",
        retention_calls="",
        token_prices="*=2",
    )
    assert "Nothing is older" in soup.role("status")
    fields = soup.form("/settings/project").fields
    assert (fields["retention_days"], fields["retention_calls"]) == ("36500", "")
    total = own_browser.client.get(costs).json()["total"]
    assert total["money_lost"] == pytest.approx(total["tokens_lost"] * 2 / 1e6)
    file = own_browser.get("/round-trips.ndjson?project=generated&by=model&window=all").text
    lost = [json.loads(line)["money_lost"] for line in file.splitlines()]
    assert math.fsum(filter(None, lost)) == pytest.approx(total["money_lost"])
    other = own_browser.page("/settings?project=other").form("/settings/project")
    assert other.fields["retention_days"] == ""
    log = own_browser.page(f"/settings{GENERATED}").section("Audit log")
    assert "settings_changed" in log.tables[0].column("What")


def test_the_page_says_what_retention_will_remove(own_browser: Browser):
    """What is saved by mistake can be taken back: the page says what it will come to."""
    soup = _post(own_browser, "/settings/project", retention_calls="1")
    assert "calls will be removed within five minutes" in soup.role("status")
    soup = _post(own_browser, "/settings/project", retention_calls="")
    assert "Everything is kept" in soup.role("status")


def test_soft_rules_are_switched_with_check_marks(own_browser: Browser):
    """What is not checked is off, the page says since when, and the same again changes nothing."""
    path = f"/settings/soft-rules{GENERATED}"
    rules = dict(own_browser.page(f"/settings{GENERATED}").form("/settings/soft-rules").ticked)
    assert set(rules.values()) == {"on"}
    del rules["json_error"]
    soup = own_browser.post(path, rules, status=200)
    assert "json_error is off. This counts for what arrives from now on" in soup.role("status")
    assert dict(soup.form("/settings/soft-rules").ticked) == rules
    table = soup.section("Soft rules").tables[0]
    since = table.column(table.headings[-1])
    assert [each[:9] for each in since if each != "always on"] == ["off since"]
    assert "Nothing was changed" in own_browser.post(path, rules, status=200).role("status")


def test_settings_that_cannot_be_are_refused(own_browser: Browser):
    """The page says what is wrong and stores nothing."""
    for form in (
        {"retention_days": "x"},
        {"retention_days": "-1"},
        {"retention_days": "99999"},
        {"retention_calls": "1e9"},
        {"token_prices": "claude"},
    ):
        soup = _post(own_browser, "/settings/project", status=422, **form)
        assert soup.role("alert"), form
        assert soup.form("/settings/project").fields["retention_days"] == "", form


def _quota(engine: Engine, limit: int) -> str:
    for browser in open_browser(engine, quota=limit):
        return (
            browser.page(f"/settings{GENERATED}").table("Now").row("Quota of a project")["Now"].text
        )
    raise AssertionError("no browser")


def test_the_quota_in_force_is_shown_with_what_is_used(own_engine: Engine):
    """Without a limit the page says so; with one, how much of it is used at this moment."""
    assert _quota(own_engine, 0) == "no limit"
    assert _quota(own_engine, 600) == "600 events a minute; 0 used, 600 left at this moment"
    with write_transaction(own_engine) as conn:
        project = find_project(conn, "generated")
        bucket = {"project_id": project, "events_left": 100.0, "filled_at": NOW - 6_000_000}
        conn.execute(insert(quota_bucket).values(bucket))
    # 600 a minute are 10 a second: in six seconds 60 have run in.
    assert _quota(own_engine, 600) == "600 events a minute; 440 used, 160 left at this moment"
