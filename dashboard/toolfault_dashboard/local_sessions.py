"""Sessions of Claude Code on the server's own machine: found by path, imported when one asks."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from sqlalchemy import Engine

from toolfault_collector.admin.audit import note
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.importers import ImportReport, Progress, import_paths
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_dashboard.formats import plural

__all__ = ["Importing", "LocalSessions", "sessions_here"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LocalSessions:
    """A folder with sessions, and how many files it has."""

    folder: Path
    files: int


def sessions_here(environ: Mapping[str, str] = os.environ) -> LocalSessions | None:
    """Return the sessions of the user that the server runs as; None where there are none.

    Claude Code keeps them in ``~/.claude/projects``, or below ``CLAUDE_CONFIG_DIR``
    (https://docs.claude.com/en/docs/claude-code/settings).
    """
    home = environ.get("CLAUDE_CONFIG_DIR")
    try:
        folder = (Path(home) if home else Path.home() / ".claude") / "projects"
        files = sum(1 for path in folder.rglob("*.jsonl") if path.is_file())
    except (OSError, RuntimeError):  # no home, or a folder that may not be read
        return None
    return LocalSessions(folder, files) if files else None


@dataclass(frozen=True, slots=True)
class _State:
    """Where an import is: running while it has no report and no problem."""

    project: str
    progress: Progress | None = None
    report: ImportReport | None = None
    failed: bool = False

    @property
    def running(self) -> bool:
        return self.report is None and not self.failed


class Importing:
    """The import that a page started; one at a time, in a thread of its own.

    Args:
        engine: A writable engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._state: _State | None = None

    def start(self, sessions: LocalSessions, project: str, *, actor: str) -> bool:
        """Import *sessions* into *project*, which is made if it is new; not while one runs.

        Returns:
            Whether an import into *project* runs now: False while one into another does.

        Raises:
            ValueError: The name cannot be a project's.
        """
        with self._lock:
            if self._state is not None and self._state.running:
                return self._state.project == project
            with write_transaction(self._engine) as conn:
                number = ensure_project(conn, project)
                note(
                    conn,
                    "sessions_imported",
                    actor=actor,
                    project_id=number,
                    files=sessions.files,
                )
            self._state = _State(project)
        # What it has stored stays when the process ends; importing again goes on from there.
        threading.Thread(
            target=self._run, args=(sessions, number), name="toolfault-import", daemon=True
        ).start()
        return True

    def said(self, project: str) -> str:
        """Return how far the import into *project* is, in a sentence; nothing if there is none."""
        state = self._state
        if state is None or state.project != project:
            return ""
        if state.failed:
            return (
                "The import stopped: the server's log says why. What was read until then is"
                " stored; importing again goes on from there."
            )
        if state.report is not None:
            found = state.report
            # Only how many: their texts name paths of the server, and every reader sees this.
            missing = (
                f" Data is missing because of {plural(len(found.errors), 'problem')}; the server's"
                " log says where."
                if found.errors
                else ""
            )
            return (
                f"Imported {plural(found.calls, 'call')}, of which {found.failures:,} failed, from"
                f" {plural(found.files, 'session')}.{missing}"
            )
        at = state.progress
        return f"Importing: file {at.file:,} of {at.files:,}." if at else "The import has begun."

    def _run(self, sessions: LocalSessions, project_id: int) -> None:
        try:
            # Nothing else that lies there: who pressed the button was asked about sessions.
            report = import_paths(
                self._engine,
                project_id,
                [sessions.folder],
                format="claude-code",
                on_progress=self._progress,
            )
        except Exception:  # noqa: BLE001 - a thread has nobody to raise to: the page and the log say it
            _log.exception("import_failed", project_id=project_id)
            self._set(failed=True)
        else:
            for problem in report.errors:
                _log.warning(
                    "not_imported",
                    path=str(problem.path),
                    position=problem.position,
                    reason=problem.message,
                )
            self._set(report=report)

    def _progress(self, progress: Progress) -> None:
        self._set(progress=progress)

    def _set(self, **changed: object) -> None:
        assert self._state is not None, "an import has begun"
        self._state = replace(self._state, **changed)  # type: ignore[arg-type]
