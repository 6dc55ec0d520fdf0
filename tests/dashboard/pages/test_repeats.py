"""When the same call again is worth a warning in the list of chains."""

from __future__ import annotations

from tests.dashboard.pages.conftest import open_browser
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.store import store_events


def test_only_a_repeat_that_nothing_came_before_is_a_warning(sqlite_url: str) -> None:
    """The same edit or patch after a read: none. The same search that fails again at once: one."""
    events = [
        failure("edit", session_id="a", args_fingerprint="same"),
        success("read", session_id="a"),
        success("edit", session_id="a", args_fingerprint="same"),
        failure("search", session_id="b", args_fingerprint="same"),
        failure("search", session_id="b", args_fingerprint="same"),
        failure("patch", session_id="c", args_fingerprint="same"),
        success("read", session_id="c"),
        failure("patch", session_id="c", args_fingerprint="same"),
    ]
    engine = open_engine(sqlite_url)
    with write_transaction(engine) as conn:
        store_events(conn, ensure_project(conn, "p"), events, received_at=now_us())
    for browser in open_browser(engine):
        rows = browser.page("/round-trips?window=all").table("Remarkable").rows
        said = {row["Tool"].text: row["Remarkable"].text for row in rows}
        assert "same arguments × 1" in said["edit"]
        assert "same arguments × 1" in said["patch"]
        assert "same again × 1" in said["search"]
    engine.dispose()
