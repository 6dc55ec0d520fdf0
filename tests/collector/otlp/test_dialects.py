"""Each dialect's spans become calls with every field that the dialect tells."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collector.otlp.traces import FIXTURES, Fixture

from toolfault_collector.otlp.calls.calls import SeenCall, TraceCalls, calls_of
from toolfault_collector.otlp.calls.dialects import DIALECTS
from toolfault_collector.otlp.calls.spans import LogRecord, Span

EVERYTHING = [
    (replace(span, trace_id=f"{number:032x}") if isinstance(span, Span) else span)
    for number, name in enumerate(FIXTURES, 1)
    for span in FIXTURES[name].spans
]


def _shown(call: SeenCall, names: object) -> dict[str, object]:
    assert isinstance(names, dict)
    return {name: getattr(call, name) for name in names}


@pytest.mark.parametrize("name", FIXTURES)
def test_calls(name: str) -> None:
    """A trace of the dialect gives exactly its calls, in the order in which they began."""
    fixture: Fixture = FIXTURES[name]
    found = calls_of(fixture.spans, fixture.logs)
    wanted = [dict(call) for call in fixture.calls]
    assert len(found.calls) == len(wanted), found
    shown = [_shown(call, names) for call, names in zip(found.calls, wanted, strict=True)]
    assert shown == wanted
    assert {call.dialect for call in found.calls} == {name.removesuffix("-7")}
    control = [(each.name, each.reason) for each in found.unused if each.reason == "control_flow"]
    assert control == list(fixture.unused)


def test_every_row_has_a_fixture() -> None:
    """No row of the table is without a trace that shows it."""
    assert {row.name for row in DIALECTS} == {name.removesuffix("-7") for name in FIXTURES}


@pytest.mark.parametrize("name", FIXTURES)
def test_every_span_is_accounted_for(name: str) -> None:
    """Each span is a call, part of one, or unused with a reason."""
    fixture = FIXTURES[name]
    found = calls_of(fixture.spans, fixture.logs)
    told = {each for call in found.calls for each in call.span_ids}
    told |= {each.span_id for each in found.unused if each.span_id}
    assert {span.span_id for span in fixture.spans} <= told


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_order_and_copies_give_the_same_calls(data: st.DataObject) -> None:
    """Spans in any order, some of them twice, give what they give in their own order."""
    name = data.draw(st.sampled_from(sorted(FIXTURES)))
    fixture = FIXTURES[name]
    wanted = calls_of(fixture.spans, fixture.logs)
    spans: list[Span] = data.draw(st.permutations([*fixture.spans, *fixture.spans[:2]]))
    logs: list[LogRecord] = data.draw(st.permutations([*fixture.logs, *fixture.logs[:1]]))
    assert calls_of(spans, logs) == wanted


def test_several_traces_at_once_are_those_traces_one_by_one() -> None:
    """Calls of one trace do not depend on what else is there."""
    found = calls_of(EVERYTHING, [])
    alone: list[TraceCalls] = [
        calls_of([span for span in EVERYTHING if span.trace_id == trace], [])
        for trace in sorted({span.trace_id for span in EVERYTHING})
    ]
    by_id = {call.event_id: call for each in alone for call in each.calls}
    assert {call.event_id: call for call in found.calls} == by_id
    assert len({call.event_id for call in found.calls}) == len(found.calls)
