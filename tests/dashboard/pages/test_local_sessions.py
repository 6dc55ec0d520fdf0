"""The first-run page imports the Claude Code sessions of the machine, after asking."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from sqlalchemy import Engine, event
from tests.collector.importers.sessions import answer, call, write
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.admin.audit import acts
from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard.local_sessions import Importing, sessions_here

BUTTON = "Import 2 sessions of Claude Code"


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions where Claude Code keeps them: one call of each fails."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    for number, name in enumerate(("a", "b")):
        lines = [
            call(1, "Bash"),
            answer(1, "Exit code 1", failed=True),
            call(2, "Bash"),
            answer(2, "fine"),
        ]
        for line in lines:
            line["sessionId"] = f"session-{number}"
        write(tmp_path / "projects" / name / f"session-{number}.jsonl", lines)
    return tmp_path


def _wait_for_the_import() -> None:
    for thread in threading.enumerate():
        if thread.name == "toolfault-import":
            thread.join(30)


def test_sessions_are_imported_when_the_button_is_pressed(
    sessions: Path, empty_browser: Browser
) -> None:
    """Nothing is read before; then the page says what came of it, and the log who did it."""
    assert not empty_browser.page("/").main.figures
    (form,) = empty_browser.page("/start").forms_to("/start/sessions")
    assert form.buttons == (BUTTON,)
    empty_browser.post(form.action, form.fields)
    _wait_for_the_import()
    said = empty_browser.page("/start").text
    assert "Imported 4 calls, of which 2 failed, from 2 sessions." in said
    figures = empty_browser.page("/?window=all").main.figures
    assert figures["Failures"].startswith("2 ")
    with read_connection(empty_browser.engine) as conn:
        act = next(act for act in acts(conn) if act.action == "sessions_imported")
    assert (act.actor, act.project, act.detail) == ("admin", "default", {"files": 2})


def test_what_could_not_be_read_is_told(sessions: Path, empty_browser: Browser) -> None:
    """A damaged session loses only what is damaged; the page says that something is missing."""
    with (sessions / "projects" / "a" / "session-0.jsonl").open("a") as file:
        file.write('{"type": "user", \n')
    empty_browser.post("/start/sessions", {})
    _wait_for_the_import()
    said = empty_browser.page("/start").text
    assert "Imported 4 calls, of which 2 failed, from 2 sessions." in said
    assert "Data is missing because of 1 problem; the server's log says where." in said


def test_only_sessions_are_imported(sessions: Path, empty_browser: Browser) -> None:
    """What else lies in the folder is neither counted on the button nor read into the project."""
    folder = sessions / "projects" / "a"
    (folder / "folder.jsonl").mkdir()
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    asked = {"id": "c", "type": "function", "function": {"name": "private", "arguments": "{}"}}
    chat = [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c", "content": "Error: no"},
    ]
    (folder / "chat.json").write_text(json.dumps(chat))
    (form,) = empty_browser.page("/start").forms_to("/start/sessions")
    assert form.buttons == (BUTTON,)
    empty_browser.post(form.action, form.fields)
    _wait_for_the_import()
    said = empty_browser.page("/start").text
    assert "Imported 4 calls, of which 2 failed, from 2 sessions." in said


def test_one_import_at_a_time(sessions: Path, sqlite_engine: Engine) -> None:
    """A second click changes nothing; an import into another project is refused, not forgotten."""
    go_on = threading.Event()

    @event.listens_for(sqlite_engine, "begin")
    def wait(_conn: object) -> None:
        if threading.current_thread().name == "toolfault-import":
            assert go_on.wait(30)

    found = sessions_here()
    assert found is not None
    importing = Importing(sqlite_engine)
    assert importing.start(found, "first", actor="ana")
    assert importing.start(found, "first", actor="ana")
    assert not importing.start(found, "second", actor="ana")
    go_on.set()
    _wait_for_the_import()
    assert importing.start(found, "second", actor="ana")
    _wait_for_the_import()
    assert importing.said("second").startswith("Imported 4 calls")
    with read_connection(sqlite_engine) as conn:
        assert sum(act.action == "sessions_imported" for act in acts(conn)) == 2


def test_only_an_administrator_is_asked(sessions: Path, own_engine: Engine) -> None:
    """Whoever may not import sees no button and no path of the server."""
    for browser in open_browser(own_engine, role="operator"):
        page = browser.page("/start")
        assert not page.forms_to("/start/sessions")
        assert str(sessions) not in page.text


def test_a_machine_without_sessions_offers_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_browser: Browser
) -> None:
    """Without sessions there is no button, and pressing it from elsewhere is answered with 404."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert not empty_browser.page("/start").forms_to("/start/sessions")
    assert empty_browser.client.post("/start/sessions").status_code == 404
