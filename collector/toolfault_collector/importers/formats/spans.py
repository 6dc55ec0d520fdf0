"""Files of spans: OTLP as JSON, dumps of SDKs, exports of Phoenix and Jaeger, flat lists.

What a span means and what marks a failure, ``toolfault_collector.otlp`` says for files as for what
is received. Spans of a trace stand anywhere in a file, and traces of a conversation too, so both
are sorted on disk: memory is that of the largest trace and conversation. A conversation is what the
spans name, else the trace. Calls have the ids that they would have if the trace had been sent.
"""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from toolfault_collector.importers.assembly import Assembly
from toolfault_collector.importers.files import Source
from toolfault_collector.importers.items import Call, Conversation, Format, Outcome

if TYPE_CHECKING:
    from toolfault_collector.otlp.calls.calls import SeenCall
    from toolfault_collector.otlp.calls.spans import LogRecord, Span

__all__ = ["FORMAT"]

NAME: Final = "spans"
_TOO_DEEP: Final = "a span holds values that are nested too deeply; it was left out"
_WAITING: Final = 100  # things that are written at once
# Members of the event that a call of a trace has under the same name.
_SAME: Final = ("event_id", "trace_id", "span_id", "agent", "provider", "environment", "detection")
_IDS: Final = (
    *("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "span_id", "spanId"),
    *("context.span_id", "context", "batches", "spans", "spanID"),
)


def _detect(value: object) -> tuple[str, str] | None:
    from toolfault_collector.otlp.encoding.dumps import is_dump

    if not is_dump(value):
        return None
    inner, pointer = (value[0], "/0") if isinstance(value, list) and value else (value, "")
    names = inner if isinstance(inner, dict) else ()
    return f'"{next((name for name in _IDS if name in names), "spans")}"', pointer


def _read(source: Source) -> Iterator[Conversation]:
    """Yield the conversations that the spans of a file tell of."""
    # OTLP takes failures apart by the rules of the importers, so it is loaded when it is needed.
    from toolfault_collector.otlp.calls.calls import calls_of
    from toolfault_collector.otlp.calls.failures import SOFT_RULES
    from toolfault_collector.otlp.calls.spans import Span
    from toolfault_collector.otlp.encoding.dumps import read_dump

    rules = SOFT_RULES.keys() - source.soft_off
    with closing(_Sorted()) as by_trace, closing(_Sorted()) as by_conversation:
        for read in source.values():
            nothing = True
            for each in read_dump(read.value, partial(source.report, read.position)):
                nothing = False
                if _is_too_deep(each):
                    source.report(read.position, _TOO_DEEP)
                else:
                    by_trace.add(each.trace_id or "", "", each)
            if nothing:
                source.mismatch(read.position, "holds no spans; skipped")
        for _, items in by_trace.groups():
            spans = [each for each in items if isinstance(each, Span)]
            logs = [each for each in items if not isinstance(each, Span)]
            for call in calls_of(spans, logs, soft_rules=rules).calls:
                name = call.conversation or call.trace_id or ""
                by_conversation.add(name, f"{call.start_us:020}{call.event_id}", call)
        for name, calls in by_conversation.groups():
            yield _conversation(name, calls)


def _is_too_deep(item: Span | LogRecord) -> bool:
    from toolfault_collector.otlp.calls.spans import Span, is_too_deep

    own = [event.attributes for event in item.events] if isinstance(item, Span) else [item.body]
    return is_too_deep(item.attributes, item.resource, *own)


class _Sorted:
    """Things by the name of their group, sorted on disk in a file that has no name.

    SQLite keeps it in memory while it is small (2 MB), and removes it with the connection.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("")
        self._file.execute("CREATE TABLE item (of BLOB, at TEXT, thing BLOB)")
        self._waiting: list[tuple[bytes, str, bytes]] = []

    def add(self, group: str, at: str, thing: object) -> None:
        """Add a thing to a group, at its place in it; those of one place stay in their order."""
        name = group.encode("utf-8", "surrogatepass")
        self._waiting.append((name, at, pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)))
        if len(self._waiting) >= _WAITING:
            self._write()

    def groups(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield each group with its things, in the order of their first things."""
        self._write()
        self._file.execute("CREATE INDEX sorted ON item (of, at)")
        names = self._file.execute("SELECT of FROM item GROUP BY of ORDER BY min(at), min(rowid)")
        for (name,) in names:
            things = self._file.execute(
                "SELECT thing FROM item WHERE of = ? ORDER BY at, rowid", (name,)
            )
            # What this process has just written to a file that nobody else can open.
            found = [pickle.loads(thing) for (thing,) in things]  # noqa: S301
            yield name.decode("utf-8", "surrogatepass"), found

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def _write(self) -> None:
        self._file.executemany("INSERT INTO item VALUES (?, ?, ?)", self._waiting)
        self._waiting.clear()


def _conversation(name: str, calls: Sequence[SeenCall]) -> Conversation:
    from toolfault_collector.otlp.calls.calls import rule_of

    key = blake2b(f"{NAME}\x1f{name}".encode("utf-8", "backslashreplace"), digest_size=16).digest()
    assembly = Assembly(key=key)
    for seen in calls:
        call = Call(
            identity=seen.event_id,
            tool=seen.tool,
            arguments=seen.arguments,
            call_id=seen.call_id,
            turn=seen.turn,
            started_at=seen.start_us or None,
            model=seen.model,
            release=seen.release,
            run_id=seen.run_id,
            members={each: getattr(seen, each) for each in _SAME} | {"session_id": name},
        )
        assembly.issue(call)
        text = seen.error_text if seen.failed else seen.result or ""
        # The type of an error may say more than its text.
        rule = rule_of(seen) if seen.failed else None
        outcome = Outcome(seen.call_id, text, seen.failed, at=seen.end_us or None, rule=rule)
        assembly.answer(outcome)
    found, _ = assembly.finish(grows=False)
    return Conversation(NAME, key, name, "", found)


FORMAT: Final = Format(
    NAME,
    "OpenTelemetry spans (OTLP JSON, SDK dumps, Phoenix exports, Jaeger JSON)",
    "an error status, `error.type` or an exception, whichever the span has",
    ("trace_id", "span_id", "attributes"),
    _detect,
    _read,
)
