"""The page of a project without data offers what lies on the machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.collector.importers.sessions import answer, call, write
from tests.e2e.browsing import rows_of
from tests.e2e.conftest import EACH_WAY, administrator, opened_window
from tests.live_server import live_server

pytestmark = pytest.mark.browser


@pytest.mark.long
@EACH_WAY
def test_sessions_of_this_machine_are_imported_by_a_click(
    database_url: str, tmp_path: Path, chromium: Browser, script: bool
):
    """They are counted and named before; the click reads them, and the failures are there."""
    lines = [call(1, "Bash"), answer(1, "Exit code 1", failed=True), call(2, "Bash"), answer(2)]
    write(tmp_path / "claude" / "projects" / "a" / "session.jsonl", lines)
    folder = str(tmp_path / "claude")
    with live_server(tmp_path, database_url=database_url, CLAUDE_CONFIG_DIR=folder) as server:
        visit = opened_window(chromium, server, java_script_enabled=script)
        visit.context.add_cookies(administrator(server))  # type: ignore[arg-type]
        page = visit.page
        page.goto(f"{server.address}/start")
        expect(page.get_by_text("Nothing is read before you press the button.")).to_be_visible()
        page.get_by_role("button", name="Import 1 session of Claude Code").click()
        status = page.get_by_role("status").filter(has_text=re.compile("import", re.I))
        while "Imported" not in status.inner_text():
            page.get_by_role("link", name="Look again").click()
        expect(status).to_contain_text("Imported 2 calls, of which 1 failed, from 1 session.")
        page.goto(f"{server.address}/failures?window=all")
        expect(rows_of(page, "Failures, newest first")).to_have_count(1)
        assert visit.complaints == []
        visit.context.close()
