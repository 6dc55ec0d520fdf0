"""The first-run page imports the Claude Code sessions of the machine, after asking."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import Engine
from tests.collector.importers.sessions import answer, call, write
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.admin.audit import acts
from toolfault_collector.storage.database.engine import read_connection

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
    assert "Imported 4 calls, 2 of them failures, from 2 sessions." in said
    figures = empty_browser.page("/?window=all").main.figures
    assert figures["Failures"].startswith("2 ")
    with read_connection(empty_browser.engine) as conn:
        act = next(act for act in acts(conn) if act.action == "sessions_imported")
    assert (act.actor, act.project, act.detail) == ("admin", "default", {"files": 2})


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
