"""Calls in the messages of models, paired with their answers and with the spans of the calls.

Many frameworks make no span for a call that they reject before it runs: an unknown tool, arguments
that do not fit. Only the messages tell of it: the model asked, and the next request answers. They
also tell the id of a call whose span has none, and which model turn issued it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from toolfault_collector.otlp.calls.dialects import decoded, event_name, values_at
from toolfault_collector.otlp.calls.grouping import Group, same_tool
from toolfault_collector.otlp.calls.messages import Asked, Told, may_tell, read_messages
from toolfault_collector.otlp.calls.spans import JSON, LogRecord, Span
from toolfault_collector.otlp.calls.trace import Trace

__all__ = ["Ask", "Messages", "Pairs", "pair", "read_all"]

MAX_CANDIDATES: Final = 64
_DETAILS: Final = "gen_ai.client.inference.operation.details"
_SLACK_US: Final = 1_000  # clocks of one machine differ by less within a process


@dataclass(frozen=True, slots=True)
class Ask:
    """A call that a model asked for in this trace, and where.

    Args:
        span: The model's span whose answer holds it, or which was told of it first.
        index: Its place among the calls of that span.
    """

    span: Span
    index: int
    call: Asked

    @property
    def key(self) -> str:
        """What it is known by in its trace."""
        return self.call.call_id or f"{self.span.span_id}:{self.index}"


@dataclass(frozen=True, slots=True)
class Messages:
    """All that the messages of a trace tell."""

    asks: Sequence[Ask]
    told: dict[str, tuple[Span, Told]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which call of the messages is which group of spans."""

    of_group: dict[int, Ask]
    without_span: Sequence[Ask]


def read_all(trace: Trace) -> Messages:
    """Read the messages of all spans of a trace but those of tools."""
    asks: dict[str, Ask] = {}
    later: list[Ask] = []
    told: dict[str, tuple[Span, Told]] = {}
    histories: dict[str, set[str]] = {}
    lists: dict[str, dict[int, list[JSON]]] = {}
    for span in trace.spans:
        role = trace.role(span)
        if role in ("tool", "part"):
            continue
        agent = trace.agent_of(span)
        inputs = list(_given(trace, span, lists.setdefault(agent, {})))
        for each in inputs:
            if isinstance(each, Told):
                told.setdefault(each.call_id, (span, each))
        if role == "model":
            _add_asks(trace, span, asks)
            later += _new_in(inputs, span, agent, histories)
    for ask in later:
        if ask.key in told:
            asks.setdefault(ask.key, ask)
    return Messages(sorted(asks.values(), key=_order), told)


def _add_asks(trace: Trace, span: Span, asks: dict[str, Ask]) -> None:
    for index, asked in enumerate(_once(_asked(trace, span))):
        ask = Ask(span, index, asked)
        first = asks.setdefault(ask.key, ask)
        if first.span in trace.above(span):
            asks[ask.key] = ask  # the request itself, within a span around it


def _new_in(
    inputs: Sequence[Asked | Told], span: Span, agent: str, histories: dict[str, set[str]]
) -> list[Ask]:
    """Return the calls in a request that are not in the earlier ones of the same agent.

    What its first request holds was asked for before this trace.
    """
    given = [each for each in inputs if isinstance(each, Asked) and each.call_id]
    history = histories.get(agent)
    found = []
    if history is not None:
        calls = enumerate(given, 1_000)
        found = [Ask(span, at, each) for at, each in calls if each.call_id not in history]
    histories[agent] = (history or set()) | {each.call_id for each in given if each.call_id}
    return found


def pair(trace: Trace, groups: Sequence[Group], messages: Messages) -> Pairs:
    """Find the group of each call: by its id, else by tool, agent, time and arguments."""
    of_group: dict[int, Ask] = {}
    by_id: defaultdict[str, list[int]] = defaultdict(list)
    for at, group in enumerate(groups):
        if group.call_id is not None:
            by_id[group.call_id].append(at)
    open_: list[Ask] = []
    for ask in messages.asks:
        same = by_id.get(ask.call.call_id or "", [])
        for at in same:
            of_group[at] = ask
        if not same:
            open_.append(ask)
    # The surest pairs first, so that a call with the right arguments is not taken by another's.
    candidates = sorted(_candidates(trace, groups, open_, of_group))
    taken: set[int] = set()
    for *_, at, number in candidates:
        if at not in of_group and number not in taken:
            of_group[at] = open_[number]
            taken.add(number)
    return Pairs(of_group, [ask for number, ask in enumerate(open_) if number not in taken])


def _candidates(
    trace: Trace, groups: Sequence[Group], asks: Sequence[Ask], paired: dict[int, Ask]
) -> Iterator[tuple[bool, bool, int, int, int]]:
    """Yield possible pairs with how unlikely they are; of each group the latest calls only."""
    agents = [trace.agent_of(ask.span) for ask in asks]
    wanted = [decoded(ask.call.arguments) for ask in asks]
    of_tool: defaultdict[str, list[int]] = defaultdict(list)
    for number, ask in enumerate(asks):
        of_tool[ask.call.tool].append(number)
    for at, group in enumerate(groups):
        if at in paired or not group.spans:
            continue
        agent, arguments, tool = trace.agent_of(group.spans[0]), group.arguments, group.tool
        for numbers in (found for name, found in of_tool.items() if same_tool(tool, name)):
            limit = group.start_us + _SLACK_US
            end = bisect_right(numbers, limit, key=lambda each: asks[each].span.start_us)
            for number in numbers[max(0, end - MAX_CANDIDATES) : end]:
                other = arguments is not None and wanted[number] is not None
                yield (
                    other and arguments != wanted[number],
                    agent != agents[number],
                    group.start_us - asks[number].span.start_us,
                    at,
                    number,
                )


def _given(trace: Trace, span: Span, lists: dict[int, list[JSON]]) -> Iterator[Asked | Told]:
    """Yield the calls and answers that a request brings.

    Each request of a conversation repeats what the one before it said. That is read once: time
    would grow with the square of a conversation's length.

    Args:
        trace: The trace.
        span: The request.
        lists: The lists of messages of the same agent's request before, by their place; changed.
    """
    for at, value in enumerate(values_at("told", span)):
        messages = _list_of(value)
        before = lists.get(at, [])
        same = takewhile(lambda pair: pair[0] == pair[1], zip(messages, before, strict=False))
        known = sum(1 for _ in same)
        lists[at] = messages
        for message in messages[known:]:
            yield from read_messages(_with_role(message))
    for log in trace.logs_of(span):
        yield from _of_log(log, "told")


def _asked(trace: Trace, span: Span) -> Iterator[Asked]:
    found = [each for value in values_at("asked", span) for each in read_messages(value)]
    for log in trace.logs_of(span):
        found += _of_log(log, "asked")
    return (each for each in found if isinstance(each, Asked))


def _list_of(value: JSON) -> list[JSON]:
    """Return the messages of a value: a list, a text that holds one, or an object with one."""
    if isinstance(value, str):
        value = decoded(value) if may_tell(value) else None
    if isinstance(value, Mapping):
        for key in ("messages", "contents"):
            if isinstance(value.get(key), list):
                value = value[key]
                break
    return value if isinstance(value, list) else [] if value is None else [value]


def _with_role(value: JSON) -> JSON:
    """Say that an event is an answer: its id beside a content is the call's."""
    if isinstance(value, dict) and "content" in value and "id" in value and "role" not in value:
        return {**value, "role": "tool"}
    return value


def _of_log(log: LogRecord, side: str) -> Iterator[Asked | Told]:
    name = event_name(log)
    body = log.body if isinstance(log.body, dict) else {}
    if name == _DETAILS:
        key = "gen_ai.output.messages" if side == "asked" else "gen_ai.input.messages"
        yield from read_messages(log.attributes.get(key, body.get(key)))
    elif name == "gen_ai.choice" and side == "asked":
        yield from read_messages(body or dict(log.attributes))
    elif name == "gen_ai.tool.message" and side == "told":
        yield from read_messages(_with_role(body or dict(log.attributes)))
    elif name == "gen_ai.assistant.message" and side == "told":
        yield from read_messages(body)


def _once(calls: Iterable[Asked]) -> Iterator[Asked]:
    """Yield each call once: some attributes repeat what others say."""
    ids: set[str | None] = set()
    whole: set[str] = set()
    for each in calls:
        key = repr((each.tool, each.arguments))
        if each.call_id is not None:
            if each.call_id not in ids:
                ids.add(each.call_id)
                yield each
        elif key not in whole:
            whole.add(key)
            yield each


def _order(ask: Ask) -> tuple[int, str, int]:
    return ask.span.start_us, ask.span.span_id, ask.index
