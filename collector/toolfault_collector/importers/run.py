"""Imports files into a project: reads them by their format, stores what they hold in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from toolfault_collector.clock import now_us
from toolfault_collector.importers.archives import UnreadableError, open_files
from toolfault_collector.importers.events import conversation_events
from toolfault_collector.importers.files import Problem, Severity, Source, find_files
from toolfault_collector.importers.formats import (
    AUTO,
    detect_format,
    find_format,
    why_unknown,
)
from toolfault_collector.importers.items import EventBatch, Format, Item, Recognition
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.submission import read_events
from toolfault_collector.storage.database.bulk import find_rows
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.database.statistics import analyze_imported
from toolfault_collector.storage.store import store_group
from toolfault_collector.storage.tables import call_counts, tool_call

__all__ = ["ImportReport", "Progress", "import_paths", "parse_file"]

# One transaction: large enough that commits do not count, small enough that other writers of the
# database wait for a fraction of a second only.
BATCH: Final = 500
SOURCE: Final = "import"
# The two forms in which a call of a transcript is stored, and where the other one of each lies.
_FORMS: Final = (
    ("tool_call", "tool_call_counts", call_counts),
    ("tool_call_counts", "tool_call", tool_call),
)


_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is.

    Args:
        file: Number of the file being read, from 1.
        files: Number of files in all.
        bytes_done: Bytes read of all files, those that are done included.
        bytes_total: Size of all files.
        calls: Tool calls found so far.
    """

    file: int
    files: int
    bytes_done: int
    bytes_total: int
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
        recognised: As what each file was read, and why.
    """

    files: int = 0
    conversations: int = 0
    calls: int = 0
    failures: int = 0
    accepted: int = 0
    duplicate: int = 0
    problems: list[Problem] = field(default_factory=list)
    recognised: list[Recognition] = field(default_factory=list)

    @property
    def errors(self) -> list[Problem]:
        """The problems by which data is missing."""
        return [problem for problem in self.problems if problem.severity == "error"]


def parse_file(
    path: Path, *, format_name: str = AUTO, now: int, named: bool = True
) -> Iterator[Item | Problem]:
    """Yield the conversations, events and problems of one file or archive, without a database.

    Args:
        path: The file.
        format_name: Name of a format, or ``auto`` to recognise it.
        now: Time of the import in microseconds since the epoch.
        named: Whether the file was named by the caller; one merely met in a directory may be
            something else.

    Raises:
        ValueError: There is no format of that name.
    """
    format_ = None if format_name == AUTO else find_format(format_name)
    for _, item in _parse(path, named, format_, now):
        if not isinstance(item, Recognition):
            yield item


def _parse(
    path: Path,
    named: bool,
    format_: Format | None,
    now: int,
    on_read: Callable[[int], None] = lambda done: None,
    soft_off: frozenset[str] = frozenset(),
) -> Iterator[tuple[Path, Item | Problem | Recognition]]:
    """Yield what a file or the members of an archive hold, each with what it is called."""
    # A file met in a directory may be something else; one that was begun to be read is not.
    severity: Severity = "error" if named else "note"
    try:
        for file in open_files(path, named=named):
            severity = "error"
            source = Source(
                file, now=now, forced=format_ is not None, soft_off=soft_off, on_read=on_read
            )
            for item in _read(source, format_):
                for problem in source.problems(all_told=False):
                    yield file.path, problem
                yield file.path, item
            for problem in source.problems(all_told=True):
                yield file.path, problem
    except OSError as error:
        reason = error.strerror or type(error).__name__
        yield path, Problem(path, "", f"cannot be read: {reason}", severity)
    except UnreadableError as error:
        yield path, Problem(path, "", str(error))  # an archive for sure, and what it holds is lost


def _read(source: Source, format_: Format | None) -> Iterator[Item | Recognition]:
    """Yield what a file holds; a format of None means to recognise it."""
    unfit: Severity = "error" if source.file.named else "note"
    severity, why = unfit, "as the caller said"
    try:
        if source.layout == "empty":
            source.report("", source.damage or "the file is empty", unfit)
            return
        if format_ is None:
            head = source.head()
            found = detect_format(head)
            if found is None:
                source.report("", why_unknown(source, head), unfit)
                return
            format_, why = found
        severity = "error"
        yield Recognition(source.path, format_.title, why)
        yield from format_.read(source)
    except OSError as error:
        source.report("", f"cannot be read: {error.strerror or type(error).__name__}", severity)
    except ValueError as error:
        source.report("", str(error), severity)
    if source.damage:
        source.report("", source.damage)
    if source.replaced:
        source.report("", "holds bytes that are not of its encoding; they were replaced", "note")


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
        paths: Files, archives, and directories that are read recursively; ``-`` is standard input.
        format: Name of a format, or ``auto``.
        on_progress: Called after every MiB that is read, every batch that is stored and every file
            that is done.

    Raises:
        ValueError: There is no format of that name.
    """
    format_ = None if format == AUTO else find_format(format)
    run = _Run(engine, project_id, on_progress)
    events = run.events(paths, format_)
    for _, of_one_resource in groupby(events, key=lambda event: (event.resource, event.flags)):
        while batch := list(islice(of_one_resource, BATCH)):
            run.store(batch)
    try:
        analyze_imported(engine, run.report.accepted)
    except SQLAlchemyError as error:  # all is stored, and autovacuum will come by
        _log.warning("not_analyzed", error=type(error).__name__)
    return run.report


@dataclass(frozen=True, slots=True)
class _Event:
    """An event to store with its resource and the flags of that, and where it comes from."""

    resource: Mapping[str, str]
    flags: Mapping[str, str]
    path: Path
    position: str
    event: Mapping[str, object]
    ready_made: bool = True


@dataclass(slots=True)
class _Run:
    """The state of one import."""

    engine: Engine
    project_id: int
    on_progress: Callable[[Progress], None] | None
    # One moment for the whole import: it orders nothing and is shown nowhere as a time.
    now: int = field(default_factory=now_us)
    report: ImportReport = field(default_factory=ImportReport)
    sizes: list[int] = field(default_factory=list)
    # By the key of its conversation, what the last copy of it that was met still waits for.
    pending: dict[bytes, Problem] = field(default_factory=dict)
    file: int = 0
    bytes_done: int = 0

    def events(self, paths: Sequence[Path], format_: Format | None) -> Iterator[_Event]:
        """Yield the events of all files; problems go to the report."""
        files, self.report.problems = find_files(paths)
        self.sizes = [_size(path) for path, _ in files]
        off = self._soft_off()
        for path, named in files:
            before = sum(self.sizes[: self.file])
            self.file += 1
            transcripts = set[Path]()
            on_read = partial(self.progress, before)
            for called, item in _parse(path, named, format_, self.now, on_read, off):
                if isinstance(item, Problem):
                    self.report.problems.append(item)
                elif isinstance(item, Recognition):
                    self.report.recognised.append(item)
                else:
                    transcripts.add(called)
                    yield from self._of_item(called, item)
            self.report.files += len(transcripts)
            self.progress()
        self.report.problems += self.pending.values()

    def _soft_off(self) -> frozenset[str]:
        # Spans are taken apart by the rules of the importers, so they are loaded where they are
        # needed.
        from toolfault_collector.otlp.soft_rules import switched_off

        with read_connection(self.engine) as conn:
            return switched_off(conn, self.project_id)

    def _of_item(self, path: Path, item: Item) -> Iterator[_Event]:
        if isinstance(item, EventBatch):
            for position, event in item.events:
                called = event.get("type") in ("tool_call", "tool_error")
                self._count(called, called and event.get("success") is not True)
                yield _Event(item.resource, item.resource_flags, path, position, event)
            return
        self.report.conversations += 1
        self._count(len(item.calls), item.failures)
        for event in conversation_events(item, now=self.now):
            yield _Event({}, {}, path, item.position, event, ready_made=False)
        self.pending.pop(item.key, None)
        if item.pending:
            message = f"{item.pending} calls have no result yet; import the file again later"
            self.pending[item.key] = Problem(path, item.position, message, "note")

    def _count(self, calls: int, failures: int) -> None:
        for counted in (self.report, self.report.recognised[-1]):
            counted.calls += calls
            counted.failures += failures

    def store(self, batch: Sequence[_Event]) -> None:
        """Store events of one resource, in one transaction."""
        context = Context(
            self.project_id,
            self.now,
            time_policy="import",
            resource=batch[0].resource,
            resource_flags=batch[0].flags,
            source=SOURCE,
        )
        with write_transaction(self.engine) as conn:
            new = self._in_one_form(conn, batch)
            submission = read_events([each.event for each in new], context)
            (receipt,) = store_group(conn, [submission]).receipts
        self.report.accepted += receipt.accepted
        self.report.duplicate += receipt.duplicate + len(batch) - len(new)
        for rejection in receipt.rejected:
            refused = new[rejection.index]
            message = f"an event was not stored: {rejection.code} at {rejection.pointer or '/'}"
            self.report.problems.append(Problem(refused.path, refused.position, message))
        self.progress()

    def _in_one_form(self, conn: Connection, batch: Sequence[_Event]) -> list[_Event]:
        """Leave out what is stored in its other form: a call with its result, or as one without.

        The store looks for the id of an event among events of its own type only.
        """
        forms: dict[object, object] = {}
        for each in batch:
            if not each.ready_made:
                forms.setdefault(each.event["event_id"], each.event["type"])
        for form, other, table in _FORMS:
            among = [(self.project_id, str(id_)) for id_, type_ in forms.items() if type_ == form]
            for (known,) in find_rows(conn, table, ("event_id",), key="event_id", among=among):
                forms[known] = other
        return [
            each
            for each in batch
            if each.ready_made or forms[each.event["event_id"]] == each.event["type"]
        ]

    def progress(self, before: int = 0, done: int = 0) -> None:
        """Say how far the import is; a file is read again from its beginning once it is known."""
        self.bytes_done = max(self.bytes_done, before + done)
        if self.on_progress is not None:
            files, total = len(self.sizes), sum(self.sizes)
            self.on_progress(Progress(self.file, files, self.bytes_done, total, self.report.calls))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
