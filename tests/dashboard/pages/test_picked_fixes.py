"""Fix next by hand: from a near miss on a failure to the list and off it again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.pages.places import scope_of
from tests.dashboard.reading import Page
from tests.factories import event_id, failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, SECOND_US, format_time
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import issue, picked_fix, tool_call
from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import Role
from toolfault_dashboard.analysis.fixes.patches import patches

GENERATED = "project=generated"


@pytest.fixture(scope="module")
def written(filled_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The generated history, for this module to write to."""
    path = tmp_path_factory.mktemp("picked") / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    engine = open_engine(f"sqlite:///{path}")
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
        .order_by(issue.c.tool_call_id, issue.c.position)
    )
    with read_connection(engine) as conn:
        rows = conn.execute(query)
        return next(row for row in rows if row.near_miss and row.near_miss[0] != "alias")


def _form(browser: Browser, event_id: str) -> dict[str, str]:
    page = browser.page(f"/failures/{event_id}?{GENERATED}")
    return dict(page.form("/fix-next").fields)


def _post(browser: Browser, path: str, form: dict[str, str], status: int = 303) -> Page:
    return browser.post(f"{path}?{GENERATED}", form, status=status)


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
    card = listed.section("Added by hand")
    (line,) = card.tables[0].rows
    assert line["Added by"].text == "developer"
    assert "95%" in line["Predicted"].text or line["Predicted"].text == "not enough data"
    assert line["Saved since the change"].text == "not changed yet"
    assert developer.page(line["Seen on"].href)
    again = developer.page(f"/failures/{row.event_id}?{GENERATED}")
    assert "added by developer" in again.text
    file = developer.client.get(f"/picked-fixes.csv?{GENERATED}").text
    assert row.near_miss[0] in file

    number = card.form("/fix-next/remove").fields["id"]
    gone = _post(developer, "/fix-next/remove", {"id": number})
    assert not gone.has("Added by hand")
    assert _stored(developer.engine) == []
    for admin in open_browser(developer.engine):
        (log,) = admin.page(f"/settings?{GENERATED}").section("Audit log").tables
        told = [text for text in log.column("What") if "fix_" in text]
        assert told[:2] == ["fix_unpicked", "fix_picked"]


def _misnamed(session: str, at: int, *missing: str) -> list[dict[str, Any]]:
    """A call that names its argument otherwise, and its retry."""
    issues = [{"field": name, "code": "missing_field"} for name in missing]
    unknown = {"field": "path_name", "field_pattern": "*", "code": "unknown_field"}
    error = {"code": "invalid_input", "category": "parameter", "audience": "llm"}
    return [
        failure(
            "read", session_id=session, at=at, duration_ms=0.0,
            error={**error, "issues": [*issues, {**unknown, "near_miss": ["alias"]}]},
        ),
        success("read", session_id=session, at=at + SECOND_US, duration_ms=0.0),
    ]  # fmt: skip


def test_another_name_is_picked_for_the_argument_that_it_means(developer: Browser):
    """What is picked is the fix of the ranking: it is predicted, and followed after a change.

    Where two arguments may be meant, the near miss is shown and nothing can be picked.
    """

    def store(*events: dict[str, Any]) -> None:
        with write_transaction(developer.engine) as conn:
            project = ensure_project(conn, "misnamed")
            store_events(conn, project, events, received_at=NOW, time_policy="import")

    began = NOW - 20 * DAY_US
    talks = [_misnamed(f"c{each}", began + each * DAY_US // 2, "path") for each in range(30)]
    (either, _) = unclear = _misnamed("either", began, "path", "path_to")
    store(*unclear, *(event for talk in talks for event in talk))
    form = developer.page(f"/failures/{talks[0][0]['event_id']}?project=misnamed")
    assert not developer.page(f"/failures/{either['event_id']}?project=misnamed").forms_to(
        "/fix-next"
    )
    fields = dict(form.form("/fix-next").fields)
    assert (fields["field"], fields["remedy"]) == ("path", "alias")
    listed = developer.post("/fix-next?project=misnamed", fields)
    (line,) = listed.section("Added by hand").tables[0].rows
    assert line["In the ranking"].text.startswith("number 1: ")
    assert "n = 30 failures" in line["Predicted"].text

    changed = {"type": "change", "label": "alias", "tool": "read", "event_id": event_id()}
    with developer.engine.begin() as conn:
        conn.execute(picked_fix.update().values(added_at=began + 15 * DAY_US))
    store({**changed, "occurred_at": format_time(began + 15 * DAY_US + 1)})
    later = began + 16 * DAY_US
    store(*(success("read", session_id=f"l{each}", at=later + each) for each in range(30)))
    (line,) = developer.page("/fix-next?project=misnamed").section("Added by hand").tables[0].rows
    assert line["Saved since the change"].text.startswith("held: ")
    with developer.engine.begin() as conn:
        conn.execute(picked_fix.delete())


def test_the_ranking_names_who_added_a_line(developer: Browser):
    """What stands in both lists says so in both."""
    with read_connection(developer.engine) as conn:
        rows = queries.fix_next(conn, scope_of(developer.engine)).rows
    ranked = [row for row in rows if row.mended_by is None]
    rank, row = next((rank, row) for rank, row in enumerate(ranked) if row.field)
    tool, field, remedy = row.tool, row.field, row.remedy
    with developer.engine.begin() as conn:
        conn.execute(
            picked_fix.insert().values(
                project_id=1, tool=tool, field=field, remedy=remedy, event_id="x",
                added_by="grace", added_at=NOW,
            )
        )  # fmt: skip
    page = developer.page(f"/fix-next?{GENERATED}&window=all")
    card = page.section(row.title)
    assert "added by grace" in card.text
    place = page.section("Added by hand").tables[0].rows[0]["In the ranking"].text
    assert place.startswith(f"number {rank + 1}: ")
    with developer.engine.begin() as conn:
        conn.execute(picked_fix.delete())


def test_settings_say_how_well_predictions_held(developer: Browser):
    """Nothing is known of a list without a change; one that was right is one of one."""
    for admin in open_browser(developer.engine):
        title = "Predictions of Fix next"
        said = admin.page(f"/settings?{GENERATED}").section(title).text
        assert "there is no prediction to check" in said
        with read_connection(developer.engine) as conn:
            scope = scope_of(developer.engine)
            row = next(
                each
                for each in queries.fix_next(conn, scope).rows
                if each.field and (each.saved_since or 0.0) > 0
            )
        with developer.engine.begin() as conn:
            conn.execute(
                picked_fix.insert().values(
                    project_id=1, tool=row.tool, field=row.field, remedy=row.remedy, event_id="x",
                    added_by="grace", added_at=0, predicted_per_week=1.0, predicted_low=0.0,
                    predicted_high=9.0, predicted_n=9, predicted_operations=50.0,
                    predicted_weeks=2.0, predicted_squares=1e6,
                )
            )  # fmt: skip
        assert "1 of 1 prediction held: 100%" in admin.page(f"/settings?{GENERATED}").text
        (line,) = admin.page(f"/fix-next?{GENERATED}").section("Added by hand").tables[0].rows
        assert line["Predicted"].text.startswith("1.0 calls a week (95%: ")
        assert line["Saved since the change"].text.startswith("held: ")
    with developer.engine.begin() as conn:
        conn.execute(picked_fix.delete())


def test_a_fix_shows_its_patches(developer: Browser):
    """Each way to carry out a fix stands under How, to be copied."""
    with read_connection(developer.engine) as conn:
        rows = queries.fix_next(conn, scope_of(developer.engine)).rows
    row = next(each for each in rows if each.mended_by is None and len(patches(each.key)) > 1)
    card = developer.page(f"/fix-next?{GENERATED}&window=all").section(row.title)
    for patch in patches(row.key):
        assert patch.kind in card.text
        assert patch.text.splitlines()[0] in card.text


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
    assert "grace" not in developer.page(f"/fix-next?{GENERATED}").text
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
            assert not page.forms_to("/fix-next")
    assert _stored(written) == []


def test_another_site_adds_nothing(developer: Browser):
    """Both forms refuse a request from another site."""
    for path in ("/fix-next", "/fix-next/remove"):
        headers = {"sec-fetch-site": "cross-site"}
        answer = developer.client.post(path, data={"id": "1"}, headers=headers)
        assert answer.status_code == 403
