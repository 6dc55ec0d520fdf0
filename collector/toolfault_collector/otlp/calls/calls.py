"""The tool calls that the spans and log records of a trace tell of.

``calls_of`` is a pure function of the set of spans and records: their order, copies of them and the
requests they came in change nothing, and ids are derived from the trace and the call. So whoever
holds all of a trace that there is can make its calls anew at any time.

What a call's own span does not say is looked for around it. The conversation is what the first rung
of a ladder names: ``explicit`` (an id of the conversation or session), ``framework`` (of a thread
or run), ``baggage``, ``meta`` (what an MCP client sends along, or the one MCP session of a trace),
``trace`` (nothing names one; the trace stands for it), ``none``. Each rung is looked for on the
span, on those above it, and then in the whole trace, where it must be the only one. The model turn
is the request that asked for the call, else the last one before it of the same agent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from toolfault_collector.otlp.calls.dialects import (
    Field,
    Reading,
    Role,
    event_name,
    text_at,
    values_at,
)
from toolfault_collector.otlp.calls.failures import (
    NOT_OFFERED,
    SOFT_RULES,
    Verdict,
    best_text,
    content_of,
    control_flow_of_text,
    ended_by_error,
    rule_of_failure,
    soft_failure,
    verdict_of,
)
from toolfault_collector.otlp.calls.grouping import Group, group_spans
from toolfault_collector.otlp.calls.messages import Told, text_of_result, tool_names
from toolfault_collector.otlp.calls.pairing import Ask, Messages, pair, read_all
from toolfault_collector.otlp.calls.spans import JSON, LogRecord, Span
from toolfault_collector.otlp.calls.trace import Trace

__all__ = ["Rung", "SeenCall", "TraceCalls", "Unused", "calls_of", "rule_of"]

Rung: TypeAlias = Literal["explicit", "framework", "baggage", "meta", "trace", "none"]


@dataclass(frozen=True, slots=True)
class SeenCall:
    """One tool call, put together from everything that tells of it.

    Args:
        event_id: UUIDv8 of the call, the same whenever it is made of the same trace.
        tool: Name under which the model called.
        trace_id: Trace of the call; None for a log record outside any trace.
        span_id: Span that tells of it first of all; the model's span where ``reached`` is false.
        span_ids: All spans that tell of this call, sorted.
        dialect: Name of the row of the table of dialects.
        reached: Whether the call has a span or record of its own; false where only the messages
            of a model tell of it.
        call_id: The model's or framework's own id of the call.
        conversation: Id of the conversation, None where nothing names one.
        conversation_rung: What named the conversation.
        turn: Names the model turn that issued it; calls of one turn are parallel.
        arguments: As sent: any JSON value, or a string; None where they were not recorded.
        result: What the model was given, None where that was not recorded.
        failed: Whether it failed.
        detection: ``status``, ``error_type``, ``exception_event``, ``exception_log`` or
            ``soft:<rule>`` for a failure; ``explicit`` for a success. A success with
            ``soft:<rule>`` looks like a failure by a rule that is switched off.
        error_text: What is known of the failure; empty for a success.
        error_type: Value of ``error.type`` or of the dialect's own place for it.
        offered: Of a failure, whether the model was offered a tool of this name; None where the
            spans do not tell what it was offered.
    """

    event_id: str
    tool: str
    trace_id: str | None
    span_id: str | None
    span_ids: tuple[str, ...] = ()
    dialect: str = ""
    reached: bool = True
    call_id: str | None = None
    conversation: str | None = None
    conversation_rung: Rung = "none"
    turn: str | None = None
    run_id: str | None = None
    agent: str | None = None
    model: str | None = None
    provider: str | None = None
    user: str | None = None
    environment: str | None = None
    release: str | None = None
    attempt: int | None = None
    start_us: int = 0
    end_us: int = 0
    arguments: JSON = None
    result: str | None = None
    failed: bool = False
    detection: str = "explicit"
    error_text: str = ""
    error_type: str | None = None
    exception_type: str | None = None
    exception_message: str | None = None
    exception_stack: str | None = None
    offered: bool | None = None


@dataclass(frozen=True, slots=True)
class Unused:
    """A span, or a call asked for in a message, that no call was made of.

    Args:
        span_id: The span; None for a log record.
        name: Its name, or the tool's.
        reason: ``no_tool_span``, ``part_of_call``, ``control_flow``, ``not_answered``,
            ``missing_field``.
        detail: The same for people, one sentence.
        missing: Field that was looked for and not found.
        event_id: Call that it is part of.
    """

    span_id: str | None
    name: str
    reason: str
    detail: str = ""
    missing: str | None = None
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class TraceCalls:
    """What a trace comes to."""

    calls: tuple[SeenCall, ...] = ()
    unused: tuple[Unused, ...] = ()


def calls_of(
    spans: Sequence[Span],
    logs: Sequence[LogRecord],
    *,
    soft_rules: Collection[str] = SOFT_RULES,
) -> TraceCalls:
    """Return the tool calls that *spans* and *logs* tell of, whatever their order.

    Args:
        spans: Spans of one trace, or of several, in any order; copies of a span are one span.
        logs: Log records of the same traces, or of none.
        soft_rules: Names of the soft rules by which a call counts as failed.
    """
    spans_of: defaultdict[str, list[Span]] = defaultdict(list)
    logs_of: defaultdict[str, list[LogRecord]] = defaultdict(list)
    for span in spans:
        spans_of[span.trace_id].append(span)
    for log in logs:
        logs_of[log.trace_id or ""].append(log)
    calls: list[SeenCall] = []
    unused: list[Unused] = []
    for trace_id in sorted(spans_of.keys() | logs_of.keys()):
        reader = _Reader(trace_id, Trace(spans_of[trace_id], logs_of[trace_id]), soft_rules)
        reader.read()
        calls += reader.calls
        unused += reader.unused
    calls.sort(key=lambda call: (call.start_us, call.event_id))
    unused.sort(key=repr)
    return TraceCalls(tuple(calls), tuple(unused))


def rule_of(call: SeenCall) -> str | None:
    """Name the rule by which the failure of a call is classified, where its text does not say.

    For :func:`toolfault_collector.importers.classify.classify`, which takes it as ``rule``.
    """
    return rule_of_failure(
        call.error_text,
        tool=call.tool,
        error_type=call.error_type,
        exception_type=call.exception_type,
        arguments=call.arguments,
        offered=call.offered,
    )


# From the surest sign of a failure to the least sure one.
_SIGNS: Final = ("status", "error_type", "exception_event", "exception_log", "soft")
_RUNGS: Final[tuple[tuple[Field, Rung], ...]] = (
    ("conversation", "explicit"),
    ("thread", "framework"),
    ("baggage", "baggage"),
    ("meta", "meta"),
)
_FLOW: Final = "Control flow, neither failure nor success: {}."
_ROLE_DETAILS: Final = {
    "model": "A request to a model; calls in its messages are read, but it is no call itself.",
    "agent": "The run of an agent or workflow, no tool call.",
    "other": "No dialect knows it as a tool call.",
}


class _Reader:
    """Makes the calls of one trace, or of the records outside any."""

    def __init__(self, trace_id: str, trace: Trace, soft: Collection[str]) -> None:
        self._trace_id = trace_id
        self._trace = trace
        self._soft = soft
        self._ordinals: defaultdict[str, int] = defaultdict(int)
        self.calls: list[SeenCall] = []
        self.unused: list[Unused] = []

    def read(self) -> None:
        """Fill ``calls`` and ``unused``."""
        groups = group_spans(self._trace)
        messages = read_all(self._trace)
        pairs = pair(self._trace, groups, messages)
        for at, group in enumerate(groups):
            self._group(group, pairs.of_group.get(at), messages)
        endings = self._endings(pairs.without_span, messages)
        for ask in pairs.without_span:
            self._without_span(ask, messages, endings.get(ask.key))
        in_groups = {each.span_id for group in groups for each in group.spans}
        for span in self._trace.spans:
            if span.span_id not in in_groups:
                self._no_call(span)
        used = {id(each) for group in groups for each in group.records}
        for log in self._trace.logs:
            if id(log) not in used and not log.span_id:
                detail = "A log record that is neither a tool call nor part of a span."
                self.unused.append(Unused(None, event_name(log), "no_tool_span", detail))

    def _no_call(self, span: Span) -> None:
        role = self._trace.role(span)
        if role in ("tool", "part"):
            detail = "Part of a tool call whose own span is not there."
            self.unused.append(Unused(span.span_id, span.name, "part_of_call", detail))
            return
        missing = "gen_ai.operation.name" if role == "other" else None
        detail = _ROLE_DETAILS[role]
        self.unused.append(Unused(span.span_id, span.name, "no_tool_span", detail, missing))

    def _group(self, group: Group, ask: Ask | None, messages: Messages) -> None:
        tool = group.tool or (ask.call.tool if ask else None)
        if tool is None:
            detail = "A tool call that does not name its tool."
            self._not_used(group, "missing_field", detail, missing="gen_ai.tool.name")
            return
        call_id = group.call_id or (ask.call.call_id if ask else None)
        telling = messages.told.get(call_id) if call_id else None
        told = telling[1] if telling else None
        verdict = self._verdict(group, told, tool)
        if verdict.control_flow is not None:
            self._not_used(group, "control_flow", _FLOW.format(verdict.control_flow))
            return
        reading, arguments = group.seen[0], group.arguments
        model = self._turn(ask, reading.span)
        event_id = self._call(
            tool,
            reading,
            verdict,
            model=model,
            call_id=call_id,
            span_ids=tuple(sorted(each.span_id for each in group.spans)),
            turn=model.span_id if model else None,
            attempt=_attempt(group),
            start_us=group.start_us,
            end_us=group.end_us,
            arguments=arguments if arguments is not None else ask and ask.call.arguments,
            result=(told.text if told else self._result(group)) or None,
        )
        for each in group.spans[1:]:
            detail = "Tells of the same call as another span."
            self.unused.append(
                Unused(each.span_id, each.name, "part_of_call", detail, event_id=event_id)
            )

    def _not_used(
        self, group: Group, reason: str, detail: str, *, missing: str | None = None
    ) -> None:
        self.unused += [
            Unused(each.span.span_id or None, each.span.name, reason, detail, missing)
            for each in group.seen
        ]

    def _without_span(
        self, ask: Ask, messages: Messages, ending: tuple[int, Verdict] | None
    ) -> None:
        call, span = ask.call, ask.span
        told = messages.told.get(call.call_id) if call.call_id else None
        if told is None:
            ending = ending or self._not_offered(ask)
            if ending is None:
                detail = "A model asked for this call; no span and no answer of it is known."
                self.unused.append(Unused(span.span_id, call.tool, "not_answered", detail))
                return
            end, verdict = ending
        else:
            flow = control_flow_of_text(call.tool, told[1].text)
            if flow is not None:
                detail = _FLOW.format(flow)
                self.unused.append(Unused(span.span_id, call.tool, "control_flow", detail))
                return
            end, verdict = told[0].start_us, self._of_told(told[1])
        request = self._turn(ask, span) or span
        start = request.end_us or request.start_us
        self._call(
            call.tool,
            self._trace.readings[span.span_id],
            verdict,
            model=span,
            reached=False,
            call_id=call.call_id,
            turn=request.span_id,
            start_us=start,
            end_us=max(start, end),
            arguments=call.arguments,
            result=(told[1].text or None) if told else None,
        )

    def _call(
        self,
        tool: str,
        reading: Reading,
        verdict: Verdict,
        *,
        model: Span | None,
        call_id: str | None,
        **members: Any,
    ) -> str:
        """Add a call with what stands around its span, and return its id.

        Args:
            tool: Its name.
            reading: The span that tells of it first of all.
            verdict: How it went.
            model: The span of the model that asked for it.
            call_id: The model's id of it.
            members: What else of `SeenCall` is known.
        """
        span = reading.span
        conversation, rung = self._conversation(span)
        event_id = self._event_id(call_id, span, conversation)
        self.calls.append(
            SeenCall(
                event_id=event_id,
                tool=tool,
                trace_id=self._trace_id or None,
                span_id=span.span_id or None,
                dialect=reading.dialect,
                call_id=call_id,
                conversation=conversation,
                conversation_rung=rung,
                run_id=self._around("run_id", span),
                agent=self._agent(reading),
                model=self._of_model("model", model, span),
                provider=self._of_model("provider", model, span),
                user=self._around("user", span),
                environment=_environment(span),
                release=_resource(span, "service.version"),
                failed=verdict.failed,
                detection=verdict.detection,
                error_text=verdict.text,
                error_type=verdict.error_type,
                exception_type=verdict.exception_type,
                exception_message=verdict.exception_message,
                exception_stack=verdict.exception_stack,
                offered=self._offered(model, tool) if verdict.failed else None,
                **members,
            )
        )
        return event_id

    def _not_offered(self, ask: Ask) -> tuple[int, Verdict] | None:
        """Return the failure of a call that nothing answers, if there is no such tool."""
        if NOT_OFFERED not in self._soft or self._offered(ask.span, ask.call.tool) is not False:
            return None
        text = f"The model asked for the tool {ask.call.tool!r}, which it was not offered."
        return ask.span.end_us, Verdict(True, f"soft:{NOT_OFFERED}", text)

    def _offered(self, model: Span | None, tool: str) -> bool | None:
        """Say whether a model was offered a tool of this name; None where nothing tells."""
        for each in self._path(model) if model is not None else ():
            offered = {name for value in values_at("tools", each) for name in tool_names(value)}
            if offered or self._role(each) == "agent":
                return tool in offered if offered else None
        return None

    def _endings(self, asks: Sequence[Ask], messages: Messages) -> dict[str, tuple[int, Verdict]]:
        """Return, by call, when and how a run ended over it.

        The error goes up through the spans around the request, and may also name the tools that
        there are: it tells of the one call whose tool it names first.
        """
        named: dict[str, tuple[int, int, str, int, Verdict]] = {}
        for order, ask in enumerate(asks):
            if ask.call.call_id in messages.told:
                continue
            for each in self._path(ask.span):
                reading, logs = self._trace.readings[each.span_id], self._trace.logs_of(each)
                found = ended_by_error(reading, logs, ask.call.tool)
                if found is not None:
                    place, verdict = found
                    telling = (place, order, ask.key, each.end_us, verdict)
                    known = named.setdefault(verdict.text, telling)
                    named[verdict.text] = min(known, telling, key=lambda one: one[:2])
                    break
        return {key: (end, verdict) for _, _, key, end, verdict in named.values()}

    def _verdict(self, group: Group, told: Told | None, tool: str) -> Verdict:
        """Decide by all spans of a call; of one kind of span the last, which ended the call."""
        last: dict[tuple[str, str, str], Reading] = {}
        for each in group.seen:
            span = each.span
            kind = (span.scope, span.name, span.kind)
            known = last.setdefault(kind, each).span
            if (span.start_us, span.span_id) > (known.start_us, known.span_id):
                last[kind] = each
        verdicts = [
            verdict_of(each, self._trace.logs_of(each.span), self._soft) for each in last.values()
        ]
        for verdict in verdicts:
            if verdict.control_flow is not None:
                return verdict
        if told and (flow := control_flow_of_text(tool, told.text)):
            return Verdict(control_flow=flow)
        failing = sorted(
            (each for each in verdicts if each.failed),
            key=lambda each: _SIGNS.index(each.detection.partition(":")[0]),
        )
        if not failing:
            marked = next((each for each in verdicts if each.detection != "explicit"), None)
            return marked or (self._of_told(told) if told else verdicts[0])
        return _merged(failing)

    def _of_told(self, told: Told) -> Verdict:
        found = soft_failure(told.text, marked=told.failed)
        if found is None:
            return Verdict()
        rule, text = found
        failed = rule in self._soft
        return Verdict(failed, f"soft:{rule}", text if failed else "")

    def _result(self, group: Group) -> str | None:
        for each in group.seen:
            if (value := each.field("result")) is not None:
                return text_of_result(content_of(value))
        return None

    def _event_id(self, call_id: str | None, span: Span, conversation: str | None) -> str:
        """Derive the id: a hash as a UUID of version 8 (RFC 9562, section 5.8)."""
        known = f"id\x1f{call_id}" if call_id else f"span\x1f{span.span_id}"
        if not call_id and not span.span_id:
            known = f"record\x1f{span!r}"
        self._ordinals[known] += 1
        ordinal = self._ordinals[known]
        scope = self._trace_id or f"conversation\x1f{conversation}"
        name = f"{scope}\x1f{known}\x1f{ordinal}".encode("utf-8", "backslashreplace")
        value = int.from_bytes(blake2b(name, digest_size=16, person=b"otlp call").digest(), "big")
        value = value & ~(0xF << 76) | 0x8 << 76
        value = value & ~(0x3 << 62) | 0x2 << 62
        return str(UUID(int=value))

    # What stands around a span

    def _role(self, span: Span) -> Role | None:
        known = self._trace.readings.get(span.span_id)
        return known.role if known else None

    def _path(self, span: Span) -> Iterator[Span]:
        """Yield the span and those above it; of a record the span that it was written in too."""
        yield span
        known = self._trace.by_id.get(span.span_id)
        if known is not None and known is not span:
            yield known
        yield from self._trace.above(known or span)

    def _around(self, name: Field, span: Span) -> str | None:
        values = self._values[name]
        if not values and self._trace.by_id.get(span.span_id) is span:
            return None
        for each in self._path(span):
            own = self._trace.by_id.get(each.span_id) is each
            # A log record stands in the shape of a span, which is none of the trace.
            found = values.get(each.span_id) if own else text_at(name, each)
            if found is not None:
                return found
        return None

    @cached_property
    def _values(self) -> Mapping[Field, Mapping[str, str]]:
        """By field and span, what each span of the trace says of the whole trace."""
        fields: tuple[Field, ...] = (*(each for each, _ in _RUNGS), "mcp_session", "user", "run_id")
        return {
            name: {
                each.span_id: value
                for each in self._trace.spans
                if (value := text_at(name, each)) is not None
            }
            for name in fields
        }

    @cached_property
    def _only(self) -> Mapping[Field, str]:
        """By field, its value where the whole trace has only one."""
        return {
            name: next(iter(found.values()))
            for name, found in self._values.items()
            if len(set(found.values())) == 1
        }

    def _conversation(self, span: Span) -> tuple[str | None, Rung]:
        for name, rung in _RUNGS:
            value = self._around(name, span) or self._only.get(name)
            if value:
                return value, rung
        if session := self._only.get("mcp_session") or (
            None if self._trace.spans else text_at("mcp_session", span)
        ):
            return session, "meta"
        return (self._trace_id, "trace") if self._trace_id else (None, "none")

    def _agent(self, reading: Reading) -> str | None:
        own, span = reading.field("agent"), reading.span
        if isinstance(own, str):
            return own
        for each in self._path(span):
            named = text_at("agent", each) if self._role(each) in ("agent", "other") else None
            if named is not None:
                return named
        service = _resource(span, "service.name")
        return None if service is None or service.startswith("unknown_service") else service

    def _of_model(self, name: Field, model: Span | None, span: Span) -> str | None:
        found = text_at(name, model) if model is not None else None
        return found or next(filter(None, (text_at(name, each) for each in self._path(span))), None)

    def _turn(self, ask: Ask | None, span: Span) -> Span | None:
        """Return the request to a model that issued the call which *span* tells of."""
        if ask is not None:
            among = self._trace.requests.get(ask.span.span_id, [])
        else:
            known = self._trace.by_id.get(span.span_id)
            among = self._requests.get(self._trace.agent_of(known or span), [])
        if ask is not None and len(among) == 1:
            return among[0]
        # It may still run: models stream, and ADK ends its span after those of the tools.
        at = bisect_right(among, span.start_us, key=lambda each: each.start_us)
        return among[at - 1] if at else None

    @cached_property
    def _requests(self) -> Mapping[str, list[Span]]:
        """By agent, its requests to models in the order in which they began."""
        found: defaultdict[str, list[Span]] = defaultdict(list)
        for span_id, within in self._trace.requests.items():
            if within[0].span_id == span_id:
                found[self._trace.agent_of(within[0])].append(within[0])
        return {
            agent: sorted(each, key=lambda one: (one.start_us, one.span_id))
            for agent, each in found.items()
        }


def _resource(span: Span, key: str) -> str | None:
    value = span.resource.get(key)
    return value if isinstance(value, str) and value else None


def _environment(span: Span) -> str | None:
    newer = _resource(span, "deployment.environment.name")
    return newer or _resource(span, "deployment.environment")


def _attempt(group: Group) -> int | None:
    for each in group.seen:
        value = each.field("attempt")
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def _merged(failing: Sequence[Verdict]) -> Verdict:
    """Make one verdict of those of several spans: the surest sign, the most exact text."""
    known: dict[str, Any] = {
        name: next(filter(None, (getattr(each, name) for each in failing)), None)
        for name in ("error_type", "exception_type", "exception_message", "exception_stack")
    }
    return replace(failing[0], text=best_text([each.text for each in failing]), **known)
