"""Fix next by hand: from a near miss on a failure to the list and off it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import Engine, select
from tests.dashboard.conftest import ENGINES, copied_database
from tests.dashboard.generated import NOW, fill
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.engine import open_engine, read_connection
from toolfault_collector.schema import prepare
from toolfault_collector.tables import issue, picked_fix, tool_call
from toolfault_dashboard.policy import Role

GENERATED = "project=generated"


@pytest.fixture(scope="module", params=ENGINES)
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """The generated history on each engine, for this module to write to."""
    url = f"sqlite:///{tmp_path_factory.mktemp('picked') / 'toolfault.db'}"
    if request.param == "postgresql":
        url = copied_database(request, "picked")
    engine = open_engine(url)
    prepare(engine, migrate=True)
    fill(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def developer(written: Engine) -> Iterator[Browser]:
    """Somebody who may see what would have been accepted."""
    yield from open_browser(written, role="developer")


def _near_miss(engine: Engine) -> Any:
    """A failure with a remedy, its issue and the remedy."""
    query = (
        select(tool_call.c.event_id, tool_call.c.tool, issue.c.field_pattern, issue.c.near_miss)
        .join(tool_call, tool_call.c.id == issue.c.tool_call_id)
        .where(tool_call.c.project_id == 1)
        .order_by(issue.c.id)
    )
    with read_connection(engine) as conn:
        return next(row for row in conn.execute(query) if row.near_miss)


def _form(browser: Browser, event_id: str) -> dict[str, str]:
    page = browser.page(f"/failures/{event_id}?{GENERATED}")
    form = page.select_one("form[action^='/fix-next']")
    assert form is not None
    return {each["name"]: each["value"] for each in form.select("input")}


def _post(browser: Browser, path: str, form: dict[str, str], status: int = 303) -> BeautifulSoup:
    answer = browser.client.post(f"{path}?{GENERATED}", data=form, follow_redirects=False)
    assert answer.status_code == status, answer.text[:800]
    if status != 303:
        return BeautifulSoup(answer.text, "html.parser")
    return browser.page(answer.headers["location"])


def _stored(engine: Engine) -> list[tuple[str, str, str, str]]:
    pick = picked_fix.c
    with read_connection(engine) as conn:
        rows = conn.execute(select(pick.tool, pick.field, pick.remedy, pick.added_by))
        return [tuple(row) for row in rows]


def test_a_near_miss_goes_to_the_list_and_off_it(developer: Browser):
    """It says who added it, stands once, has a file, and both acts are in the audit log."""
    row = _near_miss(developer.engine)
    form = _form(developer, row.event_id)
    listed = _post(developer, "/fix-next", form)
    _post(developer, "/fix-next", form)

    assert _stored(developer.engine) == [
        (row.tool, row.field_pattern, row.near_miss[0], "developer")
    ]
    card = listed.select_one("section[aria-labelledby=picked-title]")
    assert "developer" in card.get_text()
    assert len(card.select("tbody tr")) == 1
    assert developer.page(card.select_one("tbody td.nowrap a")["href"])
    again = developer.page(f"/failures/{row.event_id}?{GENERATED}")
    assert "added by developer" in again.get_text()
    file = developer.client.get(f"/picked-fixes.csv?{GENERATED}").text
    assert row.near_miss[0] in file

    number = card.select_one("input[name=id]")["value"]
    gone = _post(developer, "/fix-next/remove", {"id": number})
    assert gone.select_one("section[aria-labelledby=picked-title]") is None
    assert _stored(developer.engine) == []
    for admin in open_browser(developer.engine):
        log = admin.page(f"/settings?{GENERATED}").select(
            "[aria-labelledby=audit-heading] tbody tr"
        )
        told = [each.get_text() for each in log if "fix_" in each.get_text()]
        assert [text.count("fix_unpicked") for text in told] == [1, 0]


def test_the_ranking_names_who_added_a_line(developer: Browser):
    """What stands in both lists says so in both."""
    page = developer.page(f"/fix-next?{GENERATED}&window=all")
    first = next(
        each for each in page.select("ol.fixes > li") if len(each.select(".badges > .code")) == 2
    )
    rank = first.select_one(".fix-rank").get_text()
    tool, field = (each.get_text() for each in first.select(".badges > .code"))
    remedy = first.select_one(".badge-accent").get_text()
    with developer.engine.begin() as conn:
        conn.execute(
            picked_fix.insert().values(
                project_id=1, tool=tool, field=field, remedy=remedy, event_id="x",
                added_by="grace", added_at=NOW,
            )
        )  # fmt: skip
    page = developer.page(f"/fix-next?{GENERATED}&window=all")
    assert "added by grace" in page.select("ol.fixes > li")[int(rank) - 1].get_text()
    place = page.select_one("[aria-labelledby=picked-title] tbody td").get_text()
    assert place.startswith(f"number {rank}: ")
    with developer.engine.begin() as conn:
        conn.execute(picked_fix.delete())


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"remedy": "no_such_remedy"}, 422),
        ({"field": "no_such_field"}, 422),
        ({"event": "0199a1f2-0000-7000-8000-000000000001"}, 404),
        ({"event": ""}, 404),
    ],
)
def test_only_what_a_failure_names_is_added(
    developer: Browser, changed: dict[str, str], status: int
):
    """A form that was made up adds nothing."""
    form = _form(developer, _near_miss(developer.engine).event_id)
    _post(developer, "/fix-next", form | changed, status)
    assert _stored(developer.engine) == []


@pytest.mark.parametrize("number", ["", "x", "-1", "999999", "1" * 40])
def test_what_is_not_there_is_not_removed(developer: Browser, number: str):
    """Whatever number is sent, only an entry of this project goes."""
    _post(developer, "/fix-next/remove", {"id": number}, 404)


def test_an_entry_of_another_project_is_out_of_reach(developer: Browser):
    """Neither seen nor removed."""
    with developer.engine.begin() as conn:
        key = conn.execute(
            picked_fix.insert().values(
                project_id=2, tool="t", field="f", remedy="strip", event_id="x",
                added_by="grace", added_at=NOW,
            )
        ).inserted_primary_key  # fmt: skip
    assert key is not None
    _post(developer, "/fix-next/remove", {"id": str(key[0])}, 404)
    assert "grace" not in developer.page(f"/fix-next?{GENERATED}").get_text()
    with developer.engine.begin() as conn:
        conn.execute(picked_fix.delete())


@pytest.mark.parametrize("role", ["viewer", None])
def test_who_may_not_see_near_misses_can_add_none(written: Engine, role: Role | None):
    """No form on the page, and the address is closed."""
    row = _near_miss(written)
    for browser in open_browser(written, role=role):
        for path in ("/fix-next", "/fix-next/remove"):
            answer = browser.client.post(
                f"{path}?{GENERATED}",
                data={"event": row.event_id, "id": "1"},
                follow_redirects=False,
            )
            assert answer.status_code == (403 if role else 401)
        if role:
            page = browser.page(f"/failures/{row.event_id}?{GENERATED}")
            assert page.select_one("form[action^='/fix-next']") is None
    assert _stored(written) == []


def test_another_site_adds_nothing(developer: Browser):
    """Both forms refuse a request from another site."""
    for path in ("/fix-next", "/fix-next/remove"):
        headers = {"sec-fetch-site": "cross-site"}
        answer = developer.client.post(path, data={"id": "1"}, headers=headers)
        assert answer.status_code == 403
