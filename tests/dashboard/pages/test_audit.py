"""The audit log: every administrative act leaves one row, and a refused one leaves none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.admin.audit import ACTIONS, Act, acts, note
from toolfault_collector.admin.keys import list_keys
from toolfault_collector.admin.projects import ensure_project, find_project
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_dashboard.access import signin
from toolfault_dashboard.cli.app import run

PROJECT = "?project=demo"


@pytest.fixture
def office(sqlite_url: str) -> Iterator[Browser]:
    """An administrator on a server with one project."""
    engine = open_engine(sqlite_url)
    with write_transaction(engine) as conn:
        ensure_project(conn, "demo")
    yield from open_browser(engine)
    engine.dispose()


def _log(engine: Engine) -> list[Act]:
    with read_connection(engine) as conn:
        return acts(conn)


def _last_key(engine: Engine) -> int:
    with read_connection(engine) as conn:
        return list_keys(conn, find_project(conn, "demo"))[-1].id


def _post(office: Browser, path: str, **form: str) -> int:
    answer = office.client.post(f"{path}{PROJECT}", data=form, follow_redirects=False)
    return answer.status_code


def test_every_act_on_a_page_leaves_one_row(office: Browser) -> None:
    """Keys, people and sessions: who, what and to whom, and no secret."""
    before = len(_log(office.engine))

    secret = office.client.post(f"/settings/keys{PROJECT}", data={"kind": "ingest"}).text
    _post(office, "/settings/keys/revoke", id=str(_last_key(office.engine)))
    _post(office, "/settings/people", name="grace", role="viewer")
    _post(office, "/settings/people/role", name="grace", role="developer")
    _post(office, "/settings/people/role", name="grace", role="none")
    _post(office, "/start")
    _post(office, "/sign-out")

    log = _log(office.engine)
    assert [act.action for act in log[: len(log) - before]] == [
        "signed_out",
        "key_created",
        "access_ended",
        "role_changed",
        "link_created",
        "key_revoked",
        "key_created",
    ]
    assert {act.actor for act in log[: len(log) - before]} == {"admin"}
    assert log[2].detail == {"account": "grace"}
    assert log[3].detail == {"account": "grace", "role": "developer"}
    assert log[5].project == "demo"
    for act in log:
        assert not any(len(str(value)) > 20 and str(value) in secret for value in act.detail)


def test_signing_in_leaves_a_row(office: Browser) -> None:
    """The link is asked for by the server, and followed by its account."""
    oldest = _log(office.engine)[::-1]

    assert [(act.action, act.actor) for act in oldest] == [
        ("link_created", "server"),
        ("signed_in", "admin"),
    ]


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/settings/keys", {"kind": "admin"}),
        ("/settings/keys/revoke", {"id": "999"}),
        ("/settings/people", {"name": "", "role": "viewer"}),
        ("/settings/people/role", {"name": "nobody", "role": "viewer"}),
        ("/settings/people/role", {"name": "admin", "role": "viewer"}),
    ],
)
def test_what_was_refused_leaves_none(office: Browser, path: str, form: dict[str, str]) -> None:
    """There is no row of an act that did not happen."""
    before = _log(office.engine)

    assert _post(office, path, **form) in (404, 422)

    assert _log(office.engine) == before


def test_the_settings_show_the_log(office: Browser) -> None:
    """An administrator reads it; texts in it stay texts."""
    with write_transaction(office.engine) as conn:
        note(conn, "role_changed", actor="<b>x</b>", at=NOW, account="<i>\u202ey", fixed_at=None)

    page = office.page(f"/settings{PROJECT}")

    rows = page.section("Audit log").tables[0].rows
    assert len(rows) == 3
    assert rows[0]["Who"].text == "<b>x</b>"
    assert "\u202e" not in page.text
    assert "fixed_at none" in page.text  # what is none is said in English


def test_every_command_leaves_a_row(sqlite_url: str, tmp_path: Path, capfd: Any) -> None:
    """The command line acts as the user of the operating system, under the same names."""
    commands = [
        ["keys", "create", "--project", "demo", "--kind", "read"],
        ["keys", "rotate", "1"],
        ["keys", "revoke", "2"],
        ["sign-in-link", "--name", "grace"],
        ["prune", "--days", "30"],
        ["db", "backup", str(tmp_path / "copy.db")],
        ["db", "restore", str(tmp_path / "copy.db")],
    ]
    for command in commands:
        assert run(["--database-url", sqlite_url, *command]) == 0, command

    engine = open_engine(sqlite_url)
    log = _log(engine)[::-1]
    engine.dispose()
    assert [act.action for act in log] == [
        "key_created",
        "key_rotated",
        "key_revoked",
        "link_created",
        "pruned",
        "database_restored",
    ]
    assert all(act.actor.startswith("cli") for act in log)
    capfd.readouterr()
    assert run(["--database-url", sqlite_url, "audit", "--limit", "2"]) == 0
    said = capfd.readouterr().out
    assert "database_restored" in said
    assert "link_created" not in said


def test_an_export_leaves_a_row(office: Browser) -> None:
    """Who took which table, selected by what; from a page and from the API."""
    paths = ("/failures.csv", "/api/v1/exports/failures.csv")
    for path in paths:
        answer = office.client.get(path, params={"project": "demo", "q": "tool:search"})
        assert answer.status_code == 200
    taken = _log(office.engine)[: len(paths)]
    assert {(act.action, act.project, act.detail["file"]) for act in taken} == {
        ("exported", "demo", "failures.csv")
    }
    assert all(act.actor and "tool:search" in act.detail["query"] for act in taken)


def test_an_export_needs_no_room_for_its_row(office: Browser, capsys: Any) -> None:
    """A database that takes no writes is when people want their data out: the log has the note."""
    with write_transaction(office.engine) as conn:
        conn.exec_driver_sql("ALTER TABLE audit_log RENAME TO gone")
    answer = office.client.get("/failures.csv", params={"project": "demo"})
    assert answer.status_code == 200
    assert "export_not_noted" in capsys.readouterr().out


def test_an_unknown_action_is_refused(office: Browser) -> None:
    """The log has the words that readers may filter by, and no others."""
    with write_transaction(office.engine) as conn, pytest.raises(ValueError, match="no action"):
        note(conn, "looked_around", actor="admin")
    assert len(set(ACTIONS)) == len(ACTIONS)


def test_a_changed_act_and_its_row_are_one(office: Browser) -> None:
    """Row and act are in one transaction: neither is there without the other."""
    before = _log(office.engine)
    with write_transaction(office.engine) as conn:
        conn.exec_driver_sql("ALTER TABLE audit_log RENAME TO gone")

    with pytest.raises(Exception, match="audit_log"):
        signin.create_link(office.engine, now=NOW, name="ghost")

    with write_transaction(office.engine) as conn:
        conn.exec_driver_sql("ALTER TABLE gone RENAME TO audit_log")
        names = {account.name for account in signin.accounts(conn)}
    assert "ghost" not in names
    assert _log(office.engine) == before
