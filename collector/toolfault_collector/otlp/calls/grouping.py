"""One call may have up to four spans; here they become one group.

An agent's ``execute_tool``, the MCP client's ``tools/call``, ``MCP send tools/call`` and the
server's ``tools/call`` tell of one call, and so may two instrumentations of one framework. Spans
are put together when

- one lies within the other, without an agent or a model between them, and both name the same tool,
  or the inner one is only a part of a call,
- both carry the same call id, and they overlap in time or come from different instrumentations,
- both name the same tool with the same arguments at the same time, from different instrumentations.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import msgspec

from toolfault_collector.otlp.calls.dialects import DIALECTS, Reading, as_span, decoded, event_name
from toolfault_collector.otlp.calls.spans import JSON, LogRecord, Span
from toolfault_collector.otlp.calls.trace import Trace

__all__ = ["Group", "arguments_of", "call_id_of", "group_spans", "same_tool", "tool_of"]

MAX_SAME: Final = 200  # spans that are compared with each other
_EVENTS: Final = frozenset(row.event for row in DIALECTS if row.event)
_TYPES: Final = frozenset({"tool", "function", "execute_tool", "running tool", "tools/call"})
_NAMESPACE: Final = re.compile(r"__|[./:]")
# Members of the envelopes in which frameworks keep arguments.
_ENVELOPES: Final = (
    frozenset({"input_str", "inputs", "tags", "metadata", "kwargs", "run_id", "name"}),
    frozenset({"args", "kwargs", "sanitize_inputs_outputs"}),
)


@dataclass(slots=True)
class Group:
    """What tells of one call, in the order in which it is believed.

    Args:
        seen: Its spans, the outermost first, then log records that are a call by themselves.
        records: These log records.
    """

    seen: list[Reading] = field(default_factory=list)
    records: list[LogRecord] = field(default_factory=list)

    @property
    def spans(self) -> list[Span]:
        """Its spans without the records."""
        return [each.span for each in self.seen[: len(self.seen) - len(self.records)]]

    @property
    def call_id(self) -> str | None:
        """The id of the call that any of them carries."""
        return next((known for each in self.seen if (known := call_id_of(each))), None)

    @property
    def tool(self) -> str | None:
        """Name of the tool."""
        return next((name for each in self.seen if (name := tool_of(each))), None)

    @property
    def arguments(self) -> JSON:
        """The arguments, None where nothing tells them."""
        for each in self.seen:
            if (value := arguments_of(each)) is not None:
                return value
        return None

    @property
    def start_us(self) -> int:
        """When it began."""
        return min((each.span.start_us for each in self.seen if each.span.start_us), default=0)

    @property
    def end_us(self) -> int:
        """When it ended."""
        return self.seen[0].span.end_us or max(each.span.end_us for each in self.seen)


def tool_of(reading: Reading) -> str | None:
    """Name the tool of a span; None where it names none."""
    name = reading.field("tool")
    return name if isinstance(name, str) and name and name not in _TYPES else None


def call_id_of(reading: Reading) -> str | None:
    """Return the call id of a span, or None."""
    value = reading.field("call_id")
    return str(value) if isinstance(value, str | int) and str(value) else None


def arguments_of(reading: Reading) -> JSON:
    """Return the arguments of a span, out of their JSON and the framework's envelope."""
    value = decoded(reading.field("arguments"))
    for members in _ENVELOPES:
        if isinstance(value, dict) and value and value.keys() <= members:
            value = _opened(value)
    return value


def _opened(envelope: dict[str, JSON]) -> JSON:
    if "inputs" in envelope or "input_str" in envelope:
        inputs = envelope.get("inputs")
        return decoded(inputs if inputs else envelope.get("input_str"))
    named, listed = envelope.get("kwargs"), envelope.get("args")
    if "sanitize_inputs_outputs" not in envelope and not (
        "kwargs" in envelope and "args" in envelope
    ):
        return envelope
    return named or (listed if listed else {})


def same_tool(one: str | None, other: str | None) -> bool:
    """Say whether two names mean one tool; servers' names may stand before one of them."""
    if one is None or other is None:
        return True
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return long.endswith(short) and bool(
        _NAMESPACE.match(long[-len(short) - 1 :]) or long[: -len(short)].endswith(("__", "_", "-"))
    )


def group_spans(trace: Trace) -> list[Group]:
    """Return the groups of a trace, in the order in which they began."""
    tools = [each for each in trace.readings.values() if each.role in ("tool", "part")]
    joined = _Joined(tools)
    for reading in tools:
        _join_above(trace, reading, joined)
    _join_ids(tools, joined)
    _join_twins(tools, joined)
    groups = [
        Group(_outermost_first(trace, members))
        for members in joined.sets()
        if any(each.role == "tool" or tool_of(each) for each in members)
    ]
    _add_records(trace, groups)
    return sorted(groups, key=_order)


def _order(group: Group) -> tuple[int, str, str]:
    return group.start_us, group.seen[0].span.span_id, group.call_id or ""


class _Joined:
    """Disjoint sets of spans (union-find); the result does not depend on the order of joins."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings
        self._of = {each.span.span_id: each.span.span_id for each in readings}

    def root(self, span_id: str) -> str:
        while self._of[span_id] != span_id:
            self._of[span_id] = span_id = self._of[self._of[span_id]]
        return span_id

    def join(self, one: Reading, other: Reading) -> None:
        first, last = sorted((self.root(one.span.span_id), self.root(other.span.span_id)))
        self._of[last] = first

    def joined(self, one: Reading, other: Reading) -> bool:
        return self.root(one.span.span_id) == self.root(other.span.span_id)

    def sets(self) -> list[list[Reading]]:
        found: defaultdict[str, list[Reading]] = defaultdict(list)
        for each in self._readings:
            found[self.root(each.span.span_id)].append(each)
        return list(found.values())


def _join_above(trace: Trace, reading: Reading, joined: _Joined) -> None:
    for span in trace.above(reading.span):
        above = trace.readings[span.span_id]
        if above.role in ("agent", "model"):
            return
        if above.role in ("tool", "part"):
            if reading.role == "part" or same_tool(tool_of(reading), tool_of(above)):
                joined.join(reading, above)
            return


def _overlap(one: Reading, other: Reading) -> bool:
    first, second = one.span, other.span
    return first.start_us <= second.end_us and second.start_us <= first.end_us


def _join_ids(readings: Sequence[Reading], joined: _Joined) -> None:
    by_id: defaultdict[str, list[Reading]] = defaultdict(list)
    for each in readings:
        if (known := call_id_of(each)) is not None:
            by_id[known].append(each)
    for same in by_id.values():
        for one, other in combinations(same[:MAX_SAME], 2):
            apart = one.span.scope == other.span.scope and not _overlap(one, other)
            if not apart and same_tool(tool_of(one), tool_of(other)):
                joined.join(one, other)


def _join_twins(readings: Sequence[Reading], joined: _Joined) -> None:
    """Join spans that two instrumentations made of one call, each with its own twin only."""
    if len({each.span.scope for each in readings}) < 2:
        return
    by_call: defaultdict[tuple[str, bytes], list[Reading]] = defaultdict(list)
    for each in readings:
        tool, arguments = tool_of(each), arguments_of(each)
        if tool is not None and arguments is not None:
            by_call[tool, _written(arguments)].append(each)
    for same in by_call.values():
        taken: set[str] = set()
        for one, other in combinations(same[:MAX_SAME], 2):
            pair = {one.span.span_id, other.span.span_id}
            if taken.isdisjoint(pair) and _are_twins(one, other) and not joined.joined(one, other):
                joined.join(one, other)
                taken |= pair


def _are_twins(one: Reading, other: Reading) -> bool:
    known = (call_id_of(one), call_id_of(other))
    if None not in known and known[0] != known[1]:
        return False
    return one.span.scope != other.span.scope and _overlap(one, other)


def _written(value: JSON) -> bytes:
    try:
        return msgspec.json.encode(value, order="sorted")
    except (TypeError, ValueError, RecursionError):
        return repr(value).encode("utf-8", "backslashreplace")


def _outermost_first(trace: Trace, members: Sequence[Reading]) -> list[Reading]:
    if len(members) == 1:
        return list(members)
    ids = {each.span.span_id for each in members}

    def order(reading: Reading) -> tuple[int, bool, int, int, str]:
        span = reading.span
        depth = sum(above.span_id in ids for above in trace.above(span))
        return depth, reading.role == "part", span.start_us, -span.end_us, span.span_id

    return sorted(members, key=order)


def _add_records(trace: Trace, groups: list[Group]) -> None:
    """Give each record that is a call to the group of its call, or make one of it."""
    by_id: dict[str, Group] = {}
    for each in groups if trace.logs else ():
        if known := each.call_id:
            by_id.setdefault(known, each)
    for log in trace.logs:
        if event_name(log).rpartition(".")[2] not in _EVENTS:
            continue
        record = Reading(as_span(log))
        if tool_of(record) is None:
            continue
        known = call_id_of(record)
        group = by_id.get(known) if known else None
        if group is None:
            group = Group()
            groups.append(group)
            if known:
                by_id[known] = group
        group.seen.append(record)
        group.records.append(log)
