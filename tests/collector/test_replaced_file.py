"""The database file is removed or replaced under a running collector."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.factories import failure
from tests.running import RunningCollector, new_key

from toolfault_collector.storage.database.engine import open_engine, sqlite_path


def _paths(collector: RunningCollector) -> list[Path]:
    engine = open_engine(collector.database_url)
    path = sqlite_path(engine)
    engine.dispose()
    return [path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")]


def test_nothing_is_acknowledged_into_a_file_that_is_gone(
    sqlite_server: RunningCollector, sqlite_template: Path
):
    """Without its file the collector refuses with 503 and says why; with a new one it goes on.

    What SQLite makes in place of the file is nobody else's to read, as the file was.
    """
    assert sqlite_server.post(failure()).status_code == 200
    paths = _paths(sqlite_server)
    for path in paths:
        path.unlink(missing_ok=True)

    assert sqlite_server.post(failure()).status_code == 503
    assert sqlite_server.get("/readyz").status_code == 503
    assert "database_replaced" in sqlite_server.output()
    assert [oct(path.stat().st_mode) for path in paths if path.exists()] == ["0o100600"] * 3

    for path in paths:
        path.unlink(missing_ok=True)
    shutil.copyfile(sqlite_template, paths[0])
    key = new_key(sqlite_server.database_url)
    event = failure()
    assert sqlite_server.post(event, key=key).status_code == 200
    assert sqlite_server.get("/readyz").status_code == 200
    engine = open_engine(sqlite_server.database_url)
    with engine.connect() as conn:
        stored = conn.exec_driver_sql("SELECT event_id FROM tool_call").scalars().all()
    engine.dispose()
    assert stored == [event["event_id"]]
