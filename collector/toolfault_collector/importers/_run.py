"""Imports files into a project: finds them, parses them, stores what they hold in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import Engine

from toolfault_collector.clock import now_us
from toolfault_collector.engine import write_transaction
from toolfault_collector.importers._events import conversation_events
from toolfault_collector.importers._parse import find_files, parse_source, unreadable
from toolfault_collector.importers._source import Source
from toolfault_collector.importers._transcript import Conversation, EventBatch, Item, Problem
from toolfault_collector.importers.formats import AUTO, Reader, find_format
from toolfault_collector.store import store_events

__all__ = ["ImportReport", "Progress", "import_paths"]

# One transaction: large enough that commits do not count, small enough that other writers of the
# database wait for a fraction of a second only.
BATCH: Final = 500
SOURCE: Final = "import"
# Problems of one file that are kept one by one; a file read as a wrong format has one per line.
MAX_PROBLEMS: Final = 100


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is.

    Args:
        path: The file being read.
        file: Its number, from 1.
        files: Number of files in all.
        bytes_done: Bytes read of all files, those that are done included.
        bytes_total: Size of all files.
    """

    path: Path
    file: int
    files: int
    bytes_done: int
    bytes_total: int
    conversations: int
    calls: int


@dataclass(slots=True)
class ImportReport:
    """What an import found and what became of it.

    Args:
        files: Files that were transcripts.
        conversations: Conversations in them.
        calls: Tool calls in them.
        failures: Failed calls among these.
        accepted: Events that are new in the project.
        duplicate: Events that were there already.
        problems: What could not be imported, and notes on what was passed over.
    """

    files: int = 0
    conversations: int = 0
    calls: int = 0
    failures: int = 0
    accepted: int = 0
    duplicate: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def errors(self) -> list[Problem]:
        """The problems by which data is missing."""
        return [problem for problem in self.problems if problem.severity == "error"]


def import_paths(
    engine: Engine,
    project_id: int,
    paths: Sequence[Path],
    *,
    format: str = AUTO,  # noqa: A002 - the option's name
    on_progress: Callable[[Progress], None] | None = None,
) -> ImportReport:
    """Import transcripts; what is stored already is counted, not stored twice.

    Args:
        engine: Database with the current schema.
        project_id: Project that the calls belong to.
        paths: Files, and directories that are read recursively.
        format: Name of a format, or ``auto``.
        on_progress: Called after every batch that is stored and every file that is done.

    Raises:
        ValueError: There is no format of that name.
    """
    reader = None if format == AUTO else find_format(format).read
    run = _Run(engine, project_id, on_progress)
    files: list[tuple[Path, bool]] = []
    for item in find_files(paths):
        if isinstance(item, Problem):
            run.report.problems.append(item)
        else:
            files.append(item)
    run.begin([path for path, _ in files])
    for path, named in files:
        run.file(path, reader, named=named)
    run.flush()
    return run.report


@dataclass(slots=True)
class _Pending:
    """An event that waits for its batch, and where it came from."""

    event: Mapping[str, object]
    path: Path
    position: str


class _Run:
    """The state of one import."""

    def __init__(
        self, engine: Engine, project_id: int, on_progress: Callable[[Progress], None] | None
    ) -> None:
        self._engine = engine
        self._project_id = project_id
        self._on_progress = on_progress
        # One moment for the whole import: it orders nothing and is shown nowhere as a time.
        self._now = now_us()
        self._pending: list[_Pending] = []
        self._resource: Mapping[str, str] = {}
        self._sizes: list[int] = []
        self._file = 0
        self._said = 0
        self._held = False
        self._source: Source | None = None
        self.report = ImportReport()

    def begin(self, paths: Sequence[Path]) -> None:
        """Learn how much there is to do."""
        self._sizes = [_size(path) for path in paths]

    def file(self, path: Path, reader: Reader | None, *, named: bool) -> None:
        """Import one file."""
        self._file += 1
        try:
            self._source = Source(path, self._now, doubtful=reader is not None and not named)
        except (OSError, ValueError) as error:
            self.report.problems.append(unreadable(path, error, named=named))
            return
        unsaid = 0
        self._said, self._held = 0, False
        for item in parse_source(self._source, reader, named=named):
            if isinstance(item, Problem) and self._said >= MAX_PROBLEMS:
                unsaid += 1
            else:
                self._take(path, item)
        if unsaid:
            message = f"{unsaid} more problems like these"
            self.report.problems.append(
                Problem(path, "", message, self.report.problems[-1].severity)
            )
        self.report.files += self._held
        self._progress(path)

    def _take(self, path: Path, item: Item) -> None:
        if isinstance(item, Problem):
            self._said += 1
            self.report.problems.append(item)
            return
        self._held = True
        if isinstance(item, Conversation):
            self._take_conversation(path, item)
        else:
            self._take_events(path, item)

    def _take_conversation(self, path: Path, conversation: Conversation) -> None:
        self._use_resource({}, path)
        self.report.conversations += 1
        self.report.calls += len(conversation.calls)
        self.report.failures += conversation.failures
        for event in conversation_events(conversation, now=self._now):
            self._add(_Pending(event, path, conversation.position))
        if conversation.pending:
            message = (
                f"{conversation.pending} calls have no result yet; import the file again later"
            )
            self.report.problems.append(Problem(path, conversation.position, message, "note"))

    def _take_events(self, path: Path, batch: EventBatch) -> None:
        self._use_resource(batch.resource, path)
        for event, position in zip(batch.events, batch.positions, strict=True):
            called = event.get("type") in ("tool_call", "tool_error")
            self.report.calls += called
            self.report.failures += called and event.get("success") is not True
            self._add(_Pending(event, path, position))

    def _use_resource(self, resource: Mapping[str, str], path: Path) -> None:
        if resource != self._resource:
            self.flush()
            self._resource = resource

    def _add(self, pending: _Pending) -> None:
        self._pending.append(pending)
        if len(self._pending) >= BATCH:
            self.flush()
            self._progress(pending.path)

    def flush(self) -> None:
        """Store what waits, in one transaction."""
        if not self._pending:
            return
        batch, self._pending = self._pending, []
        with write_transaction(self._engine) as conn:
            receipt = store_events(
                conn,
                self._project_id,
                [pending.event for pending in batch],
                received_at=self._now,
                time_policy="import",
                resource=self._resource,
                source=SOURCE,
            )
        self.report.accepted += receipt.accepted
        self.report.duplicate += receipt.duplicate
        for rejection in receipt.rejected:
            pending = batch[rejection.index]
            message = f"an event was not stored: {rejection.code} at {rejection.pointer or '/'}"
            self.report.problems.append(Problem(pending.path, pending.position, message))

    def _progress(self, path: Path) -> None:
        if self._on_progress is None:
            return
        read = self._source.text.bytes_read if self._source is not None else 0
        self._on_progress(
            Progress(
                path=path,
                file=self._file,
                files=len(self._sizes),
                bytes_done=sum(self._sizes[: self._file - 1]) + read,
                bytes_total=sum(self._sizes),
                conversations=self.report.conversations,
                calls=self.report.calls,
            )
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
