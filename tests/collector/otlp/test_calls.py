"""One call is one call, however many spans tell of it, and also where none does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collector.otlp.traces import (
    BEGAN,
    TRACE,
    answering,
    asking,
    raised,
    span,
    tool,
)

from toolfault_collector.otlp.calls.calls import SeenCall, calls_of, rule_of
from toolfault_collector.otlp.calls.failures import SOFT_RULES
from toolfault_collector.otlp.calls.spans import LogRecord, Span, SpanEvent

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel"}


def _only(*spans: Span, logs: tuple[LogRecord, ...] = ()) -> SeenCall:
    found = calls_of(spans, logs)
    assert len(found.calls) == 1, found
    return found.calls[0]


def _mcp(number: int, under: int | None, kind: str, **more: Any) -> Span:
    name = "tools/call book" if kind != "internal" else "MCP send tools/call book"
    attributes = {} if kind == "internal" else {"mcp.method.name": "tools/call"}
    scope = {"client": "fastmcp", "internal": "mcp", "server": "fastmcp"}[kind]
    return span(name, attributes, id=number, under=under, kind=kind, at=number, scope=scope, **more)


def test_four_spans_of_one_call_are_one_call() -> None:
    """Agent, client, transport and server: one failure, with what the innermost knows of it."""
    found = calls_of(
        [
            span("execute_tool srv__book", tool(tool="srv__book", id="c1"), id=1, lasts=50),
            _mcp(2, 1, "client"),
            _mcp(3, 2, "internal"),
            _mcp(
                4,
                3,
                "server",
                status="error",
                text="no seats",
                events=[raised("SoldOut", "no seats")],
            ),
        ],
        [],
    )
    (call,) = found.calls
    assert (call.tool, call.call_id, call.span_id) == ("srv__book", "c1", f"{1:016x}")
    assert (call.failed, call.detection, call.error_text) == (True, "status", "no seats")
    assert (call.exception_type, len(call.span_ids)) == ("SoldOut", 4)
    assert [each.reason for each in found.unused] == ["part_of_call"] * 3
    assert {each.event_id for each in found.unused} == {call.event_id}


def test_spans_with_one_call_id_are_one_call_wherever_they_stand() -> None:
    """Two instrumentations side by side count a call once."""
    one = span("execute_tool book", tool(tool="book", id="c1"), id=1, scope="one")
    other = span("book", {"openinference.span.kind": "TOOL", "tool.id": "c1"}, id=2, scope="other")
    assert _only(one, other).span_ids == (one.span_id, other.span_id)


def test_two_instrumentations_without_ids_are_told_by_arguments() -> None:
    """The same tool at the same time with the same arguments is one call, for each pair."""
    spans = [
        span(
            f"execute_tool book {number}",
            tool(tool="book", args={"seats": number % 2}),
            id=number,
            scope=scope,
        )
        for number, scope in ((1, "one"), (2, "one"), (3, "other"), (4, "other"))
    ]
    assert [len(call.span_ids) for call in calls_of(spans, []).calls] == [2, 2]


def test_tools_within_tools_are_calls_of_their_own() -> None:
    """A tool that is an agent calls other tools, and may call one of its own name."""
    spans = [
        span("execute_tool ask", tool(tool="ask"), id=1, lasts=90),
        span("invoke_agent b", AGENT, id=2, under=1, at=1, lasts=80),
        span("execute_tool ask", tool(tool="ask"), id=3, under=2, at=2),
        span("execute_tool pay", tool(tool="pay"), id=4, under=1, at=30),
    ]
    assert [call.tool for call in calls_of(spans, []).calls] == ["ask", "ask", "pay"]


def test_a_framework_that_runs_a_call_again_has_called_twice() -> None:
    """Spans of one instrumentation with one id, one after the other, are two attempts."""
    spans = [
        span("execute_tool book", tool(tool="book", id="c1"), id=1, status="error", text="busy"),
        span("execute_tool book", tool(tool="book", id="c1"), id=2, at=50),
    ]
    calls = calls_of(spans, []).calls
    assert [call.failed for call in calls] == [True, False]
    assert len({call.event_id for call in calls}) == 2


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_order_gives_the_same_groups_and_pairs(data: st.DataObject) -> None:
    """Which span belongs to which call never hangs on the order in which spans arrive."""
    names = [number % 3 for number in range(8)]
    spans = _conversation(("c1", "done"), ("c2", "Error: no"))
    for number, name in enumerate(names, 10):
        at = data.draw(st.integers(0, 60))
        under = data.draw(st.sampled_from([None, 1, 2, 3, number - 1]))
        attributes = tool(
            tool=["book", "bok", "srv__book"][name],
            id=data.draw(st.sampled_from([None, "c1", "c2", "c9"])),
            args=data.draw(st.sampled_from([None, {"seats": 1}])),
        )
        known = {key: value for key, value in attributes.items() if value is not None}
        scope = data.draw(st.sampled_from(["one", "other"]))
        spans.append(
            span("execute_tool", known, id=number, under=under, at=at, lasts=20, scope=scope)
        )
    wanted = calls_of(spans, [])
    assert calls_of(data.draw(st.permutations(spans)), []) == wanted
    told = {each for call in wanted.calls for each in call.span_ids}
    assert {each.span_id for each in spans if each.name == "execute_tool"} <= told | {
        each.span_id for each in wanted.unused
    }
    assert len({call.event_id for call in wanted.calls}) == len(wanted.calls)


def _conversation(*answers: tuple[str, str]) -> list[Span]:
    asked = asking(("c1", "book", {"seats": 1}), ("c2", "bok", {"x": 1}), ("c3", "pay", {}))
    return [
        span("invoke_agent travel", AGENT, id=1, lasts=90),
        span("chat m-1", {**CHAT, "gen_ai.output.messages": asked}, id=2, under=1, at=1),
        span("execute_tool book", tool(tool="book"), id=3, under=1, at=20),
        span(
            "chat m-1", {**CHAT, "gen_ai.input.messages": answering(*answers)}, id=4, under=1, at=40
        ),
    ]


def test_what_was_rejected_before_it_ran_is_a_call() -> None:
    """A model asked, no span says that it ran, the next request answers: x of y never reached."""
    unknown = "Unknown tool name: 'bok'. Available tools: 'book'"
    found = calls_of(_conversation(("c1", "done"), ("c2", unknown)), [])
    rejected, ran = found.calls
    assert (rejected.tool, rejected.call_id, rejected.arguments) == ("bok", "c2", {"x": 1})
    assert (rejected.reached, rejected.failed, rejected.detection) == (
        False,
        True,
        "soft:unknown_tool",
    )
    assert (rejected.error_text, rejected.turn, rejected.model) == (unknown, f"{2:016x}", "m-1")
    assert (ran.tool, ran.call_id, ran.turn, ran.result) == ("book", "c1", f"{2:016x}", "done")
    assert ran.reached
    assert [(each.name, each.reason) for each in found.unused if each.name == "pay"] == [
        ("pay", "not_answered")
    ]


@pytest.mark.parametrize("soft", [SOFT_RULES, ()])
def test_a_tool_that_was_not_offered_is_unknown_without_any_answer(soft: tuple[str, ...]) -> None:
    """Mastra keeps results out of its messages; the agent's span tells which tools there are."""
    agent = {**AGENT, "gen_ai.tool.definitions": '["book"]'}
    asked = asking(("c1", "bok", {}), ("c2", "book", {}))
    spans = [
        span("invoke_agent", agent, id=1, lasts=90),
        span("chat", {**CHAT, "gen_ai.output.messages": asked}, id=2, under=1, at=1),
    ]
    found = calls_of(spans, [], soft_rules=soft)
    calls = [(call.tool, call.reached, call.detection, rule_of(call)) for call in found.calls]
    assert calls == ([("bok", False, "soft:not_offered", "no_such_tool")] if soft else [])
    unanswered = [each.name for each in found.unused if each.reason == "not_answered"]
    assert unanswered == (["book"] if soft else ["bok", "book"])


def test_a_run_that_ends_over_a_call_tells_of_it() -> None:
    """Vercel's older versions and OpenAI Agents raise for a call that fits no tool."""
    text = "Model tried to call unavailable tool 'bok'. Available tools: book."
    asked = asking(("c1", "bok", {"x": 1}), ("c2", "book", {}))
    events = [raised("AI_NoSuchToolError", text)]
    found = calls_of(
        [
            span("invoke_agent", AGENT, id=1, lasts=9, status="error", text=text, events=events),
            span("chat", {**CHAT, "gen_ai.output.messages": asked}, id=2, under=1, at=1, lasts=5),
        ],
        [],
    )
    (call,) = found.calls
    assert (call.tool, call.call_id, call.reached, call.failed) == ("bok", "c1", False, True)
    assert (call.detection, call.error_text) == ("status", text)


def test_an_earlier_traces_messages_are_no_calls() -> None:
    """A conversation sends its whole history along; only what this trace asked for is counted."""
    asked = json.loads(asking(("c0", "book", {})))
    history = json.dumps([*asked, *json.loads(answering(("c0", "Error: sold out")))])
    spans = [
        span("invoke_agent travel", AGENT, id=1, lasts=90),
        span("chat m-1", {**CHAT, "gen_ai.input.messages": history}, id=2, under=1, at=1),
        span("chat m-1", {**CHAT, "gen_ai.input.messages": history}, id=3, under=1, at=20),
    ]
    assert calls_of(spans, []).calls == ()


def test_messages_of_log_records_are_read_like_those_of_spans() -> None:
    """Content may come as events of the logs signal (EVENT_ONLY)."""
    spans = [span("chat m-1", CHAT, id=1), span("chat m-1", CHAT, id=2, at=50)]
    call = {"id": "c1", "type": "function", "function": {"name": "bok", "arguments": "{}"}}
    logs = (
        LogRecord(TRACE, f"{1:016x}", "gen_ai.choice", body={"message": {"tool_calls": [call]}}),
        LogRecord(
            TRACE,
            f"{2:016x}",
            "gen_ai.tool.message",
            body={"id": "c1", "content": "Error: no such tool"},
        ),
    )
    found = _only(*spans, logs=logs)
    assert (found.tool, found.call_id, found.failed, found.reached) == ("bok", "c1", True, False)


@pytest.mark.parametrize(
    ("asks", "answers"),
    [
        (
            {
                "gen_ai.completion.0.tool_calls.0.id": "c1",
                "gen_ai.completion.0.tool_calls.0.name": "bok",
                "gen_ai.completion.0.tool_calls.0.arguments": "{}",
            },
            {
                "gen_ai.prompt.0.role": "tool",
                "gen_ai.prompt.0.tool_call_id": "c1",
                "gen_ai.prompt.0.content": "Error: no",
            },
        ),
        (
            {
                "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "bok",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
            },
            {
                "llm.input_messages.0.message.role": "tool",
                "llm.input_messages.0.message.tool_call_id": "c1",
                "llm.input_messages.0.message.content": "Error: no",
            },
        ),
        (
            {
                "langfuse.observation.output": json.dumps(
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {
                                "id": "c1",
                                "type": "function",
                                "function": {"name": "bok", "arguments": "{}"},
                            }
                        ],
                    }
                )
            },
            {
                "langfuse.observation.input": json.dumps(
                    [{"role": "tool", "tool_call_id": "c1", "content": "Error: no"}]
                )
            },
        ),
        (
            {
                "mlflow.spanOutputs": json.dumps(
                    {"content": [{"type": "tool_use", "id": "c1", "name": "bok", "input": {}}]}
                )
            },
            {
                "mlflow.spanInputs": json.dumps(
                    {
                        "messages": [
                            {
                                "role": "user",
                                "content": [
                                    {
                                        "type": "tool_result",
                                        "tool_use_id": "c1",
                                        "is_error": True,
                                        "content": "no",
                                    }
                                ],
                            }
                        ]
                    }
                )
            },
        ),
        (
            {
                "gcp.vertex.agent.llm_response": json.dumps(
                    {
                        "content": {
                            "parts": [{"function_call": {"id": "c1", "name": "bok", "args": {}}}]
                        }
                    }
                )
            },
            {
                "gcp.vertex.agent.llm_request": json.dumps(
                    {
                        "contents": [
                            {
                                "parts": [
                                    {
                                        "function_response": {
                                            "id": "c1",
                                            "name": "bok",
                                            "response": {"error": "no"},
                                        }
                                    }
                                ]
                            }
                        ]
                    }
                )
            },
        ),
    ],
    ids=["traceloop", "openinference", "langfuse", "anthropic", "gemini"],
)
def test_messages_are_read_in_every_shape(asks: dict[str, Any], answers: dict[str, Any]) -> None:
    """Whoever wrote the messages, a call that never reached a span is found with its answer."""
    found = _only(
        span("chat", {**CHAT, **asks}, id=1), span("chat", {**CHAT, **answers}, id=2, at=50)
    )
    assert (found.tool, found.call_id, found.failed, found.reached) == ("bok", "c1", True, False)


CONTROL_FLOW = {
    "interrupt": span(
        "execute_tool book",
        tool(tool="book"),
        id=1,
        status="error",
        events=[raised("langgraph.errors.GraphInterrupt", "(Interrupt(value='ok?'),)")],
    ),
    "interrupt in the status": span(
        "execute_tool book",
        tool(tool="book"),
        id=1,
        status="error",
        text="GraphInterrupt((Interrupt(value='ok?'),))",
    ),
    "deferred": span(
        "execute_tool book",
        tool(tool="book", **{"error.type": "pydantic_ai.exceptions.CallDeferred"}),
        id=1,
        status="error",
    ),
    "approval": span(
        "execute_tool book",
        tool(tool="book"),
        id=1,
        status="error",
        events=[raised("ApprovalRequired", "")],
    ),
    "hand-off": span("handoff to billing", {"openinference.span.kind": "TOOL"}, id=1),
    "hand-off by a tool": span(
        "execute_tool transfer_to_billing",
        tool(tool="transfer_to_billing", result='{"assistant": "billing"}'),
        id=1,
    ),
    "denied": span(
        "execute_tool book", tool(tool="book", result="The tool call was denied."), id=1
    ),
    "rejected": span(
        "execute_tool book",
        tool(tool="book"),
        id=1,
        status="error",
        text="User rejected the tool call",
    ),
}


@pytest.mark.parametrize("name", CONTROL_FLOW)
def test_control_flow_is_no_failure_and_no_success(name: str) -> None:
    """Interrupts, hand-offs, deferred calls and denials are told as what they are."""
    found = calls_of([CONTROL_FLOW[name]], [])
    assert found.calls == ()
    assert [each.reason for each in found.unused] == ["control_flow"]


def test_a_tool_named_like_a_hand_off_is_a_tool() -> None:
    """A bank's transfer_to_account moves money; only a hand-off's own answer makes it one."""
    call = _only(
        span(
            "execute_tool transfer_to_account",
            tool(tool="transfer_to_account", result="done"),
            id=1,
        )
    )
    assert not call.failed


SIGNS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("status", {}, {"status": "error", "text": "sold out"}),
    ("error_type", {"error.type": "timeout"}, {}),
    ("error_type", {"gen_ai.task.status": "failure", "traceloop.span.kind": "tool"}, {}),
    ("exception_event", {}, {"events": [raised("ValueError", "sold out")]}),
    ("soft:json_is_error", {"result": '{"isError": true, "content": []}'}, {}),
    ("soft:json_status", {"result": {"status": "error"}}, {}),
    ("soft:json_error", {"result": '{"error": "sold out"}'}, {}),
    ("soft:error_tag", {"result": "<tool_use_error>sold out</tool_use_error>"}, {}),
    ("soft:exit_code", {"result": "Exit code 2\nno"}, {}),
    ("soft:error_prefix", {"result": "Error: sold out"}, {}),
    ("soft:framework_error", {"result": "Error invoking tool 'book' with kwargs {}"}, {}),
    ("soft:framework_error", {"result": "Tool 'book' timed out after 2 seconds."}, {}),
    ("soft:unknown_tool", {"result": "Unknown tool: 'bok'"}, {}),
    ("soft:invalid_arguments", {"result": "2 validation errors for book\nseats\n  ..."}, {}),
    ("soft:message_error", {"result": "content='no' tool_call_id='c1' status='error'"}, {}),
]


@pytest.mark.parametrize(("detection", "attributes", "more"), SIGNS)
def test_each_sign_of_a_failure_is_named(
    detection: str, attributes: dict[str, Any], more: dict[str, Any]
) -> None:
    """A failure says by which sign it was recognised; an error needs no error.type."""
    call = _only(span("execute_tool book", tool(tool="book", **attributes), id=1, **more))
    assert (call.failed, call.detection) == (True, detection)
    assert call.error_text or "gen_ai.task.status" in attributes


def test_surer_signs_come_first() -> None:
    """A span with an error status, an exception and a result that reads like one says: status."""
    attributes = tool(tool="book", result="Error: a", **{"error.type": "E"})
    events = [raised("E", "b")]
    call = _only(span("execute_tool book", attributes, id=1, status="error", events=events))
    assert (call.detection, call.error_text) == ("status", "b")


def test_an_exception_may_come_as_a_log_record() -> None:
    """Exceptions as span events are deprecated; the record of the same span counts as well."""
    attributes = {"exception.type": "SoldOut", "exception.message": "no seats"}
    logs = (LogRecord(TRACE, f"{1:016x}", "gen_ai.execute_tool.exception", attributes=attributes),)
    call = _only(span("execute_tool book", tool(tool="book"), id=1), logs=logs)
    assert (call.failed, call.detection, call.error_text) == (True, "exception_log", "no seats")


@pytest.mark.parametrize("rule", [rule for rule in SOFT_RULES if rule != "not_offered"])
def test_a_soft_rule_that_is_off_leaves_a_mark(rule: str) -> None:
    """The call is a success then, and still says by which rule it looks like a failure."""
    shown = {name.removeprefix("soft:"): attributes for name, attributes, _ in SIGNS}
    spans = [span("execute_tool book", tool(tool="book", **shown[rule]), id=1)]
    (call,) = calls_of(spans, [], soft_rules=set(SOFT_RULES) - {rule}).calls
    assert (call.failed, call.detection, call.error_text) == (False, f"soft:{rule}", "")


@pytest.mark.parametrize(
    "result",
    [
        "Error handling in Python: a guide",
        "Errors: 0, warnings: 3",
        '{"error": null, "status": "ok"}',
        '{"job": {"status": "failed"}}',
        '{"errors": [], "success": true}',
        "The flight failed to depart.",
        "Exit code 0",
    ],
)
def test_results_that_only_speak_of_errors_are_successes(result: str) -> None:
    """A page about errors is what was asked for."""
    assert not _only(span("execute_tool look", tool(tool="look", result=result), id=1)).failed


LADDER: list[tuple[dict[str, Any], str, str]] = [
    ({"gen_ai.conversation.id": "a", "metadata": '{"thread_id": "b"}'}, "a", "explicit"),
    ({"metadata": '{"thread_id": "b"}', "baggage.session.id": "c"}, "b", "framework"),
    ({"baggage.session.id": "c", "openai/session": "d"}, "c", "baggage"),
    ({"openai/session": "d", "mcp.session.id": "e"}, "d", "meta"),
    ({"mcp.session.id": "e"}, "e", "meta"),
    ({}, TRACE, "trace"),
]


@pytest.mark.parametrize(("attributes", "conversation", "rung"), LADDER)
@pytest.mark.parametrize("place", ["own", "root", "sibling"])
def test_the_ladder_of_conversations(
    attributes: dict[str, Any], conversation: str, rung: str, place: str
) -> None:
    """The highest rung names it, wherever in the trace it stands."""
    own, root, sibling = (
        attributes if place == each else {} for each in ("own", "root", "sibling")
    )
    call = _only(
        span("run", root, id=1, lasts=90),
        span("step", sibling, id=2, under=1),
        span("execute_tool book", tool(tool="book", **own), id=3, under=1, at=5),
    )
    assert (call.conversation, call.conversation_rung) == (conversation, rung)


def test_several_conversations_of_a_trace_are_kept_apart() -> None:
    """A call belongs to the conversation above it, never to that of a neighbour."""
    spans = [
        span("run", {}, id=1, lasts=90),
        span("invoke_agent a", {**AGENT, "gen_ai.conversation.id": "a"}, id=2, under=1, lasts=80),
        span("invoke_agent b", {**AGENT, "gen_ai.conversation.id": "b"}, id=3, under=1, lasts=80),
        span("execute_tool book", tool(tool="book"), id=4, under=2, at=1),
        span("execute_tool book", tool(tool="book"), id=5, under=3, at=2),
        span("execute_tool book", tool(tool="book"), id=6, under=1, at=3),
    ]
    assert [call.conversation for call in calls_of(spans, []).calls] == ["a", "b", TRACE]


def test_calls_after_one_request_are_of_one_turn() -> None:
    """Without messages the last request of the same agent before a call issued it."""
    spans = [
        span("invoke_agent travel", AGENT, id=1, lasts=90),
        span("chat m-1", CHAT, id=2, under=1, at=1),
        span("execute_tool book", tool(tool="book"), id=3, under=1, at=20),
        span("execute_tool pay", tool(tool="pay"), id=4, under=1, at=21),
        span("chat m-1", CHAT, id=5, under=1, at=40),
        span("execute_tool book", tool(tool="book"), id=6, under=1, at=60),
    ]
    turns = [call.turn for call in calls_of(spans, []).calls]
    assert turns == [f"{2:016x}", f"{2:016x}", f"{5:016x}"]


@pytest.mark.parametrize(
    "offering",
    [
        {"gen_ai.tool.definitions": '[{"type": "function", "name": "book", "parameters": null}]'},
        {"llm.tools.0.tool.json_schema": '{"type": "function", "function": {"name": "book"}}'},
        {"ai.prompt.tools": ['{"type": "function", "name": "book"}']},
    ],
    ids=["conventions", "openinference", "vercel"],
)
def test_a_tool_that_the_model_was_not_offered_is_unknown(offering: dict[str, Any]) -> None:
    """ADK says ValueError for a tool that it does not have; what was offered says more."""
    spans = [
        span("chat", {**CHAT, **offering}, id=1, under=9, lasts=90),
        *(
            span(name, tool(tool=name), id=at, under=9, at=at, status="error", text="ValueError")
            for at, name in ((2, "bok"), (3, "book"))
        ),
    ]
    unknown, known = calls_of(spans, []).calls
    assert (unknown.offered, rule_of(unknown)) == (False, "no_such_tool")
    assert (known.offered, rule_of(known)) == (True, None)


def test_a_span_around_the_whole_loop_is_no_turn() -> None:
    """Mastra has a model's span around all its requests; each request is a turn of its own."""
    asked = [asking(("c1", "book", {})), asking(("c2", "book", {}))]
    both = json.dumps([*json.loads(asked[0]), *json.loads(asked[1])])
    spans = [
        span("invoke_agent travel", AGENT, id=1, lasts=90),
        span("chat m-1", {**CHAT, "gen_ai.output.messages": both}, id=2, under=1, lasts=80),
        span(
            "chat m-1", {**CHAT, "gen_ai.output.messages": asked[0]}, id=3, under=2, at=1, lasts=5
        ),
        span("execute_tool book", tool(tool="book", id="c1"), id=4, under=2, at=9),
        span(
            "chat m-1", {**CHAT, "gen_ai.output.messages": asked[1]}, id=5, under=2, at=21, lasts=5
        ),
        span("execute_tool book", tool(tool="book", id="c2"), id=6, under=2, at=29),
    ]
    turns = [f"{3:016x}", f"{5:016x}"]
    assert [call.turn for call in calls_of(spans, []).calls] == turns
    without_messages = [
        replace(each, attributes={**each.attributes, "gen_ai.output.messages": ""})
        for each in spans
    ]
    assert [call.turn for call in calls_of(without_messages, []).calls] == turns


def test_ids_are_uuids_of_the_call_and_its_trace() -> None:
    """Version 8, equal for a resend, different for every other call and trace."""
    first = span("execute_tool book", tool(tool="book", id="c1"), id=1)
    other = span("execute_tool book", tool(tool="book", id="c2"), id=2)
    elsewhere = replace(first, trace_id="f" * 32)
    ids = [call.event_id for call in calls_of([first, other, elsewhere], []).calls]
    assert {UUID(each).version for each in ids} == {8}
    assert len(set(ids)) == 3
    assert _only(first).event_id in ids


def test_records_outside_any_trace_are_calls_too() -> None:
    """Claude Code's events need no span; two calls without ids stay two."""
    attributes = {
        "event.name": "tool_result",
        "tool_name": "Bash",
        "success": "true",
        "session.id": "s",
    }
    logs = [
        LogRecord(None, None, "claude_code.tool_result", BEGAN + at, attributes=attributes)
        for at in (0, 1)
    ]
    calls = calls_of([], logs).calls
    assert [(call.tool, call.conversation, call.trace_id) for call in calls] == [
        ("Bash", "s", None)
    ] * 2
    assert len({call.event_id for call in calls}) == 2


def test_why_a_span_is_no_call_is_told() -> None:
    """Each span without a call says what it was taken for, and what was missing."""
    found = calls_of(
        [
            span("chat m-1", CHAT, id=1),
            span("GET /", {"http.route": "/"}, id=2),
            span("running tool", {"gen_ai.operation.name": "execute_tool"}, id=3),
        ],
        [],
    )
    assert [
        (each.name, each.reason, each.missing)
        for each in sorted(found.unused, key=lambda u: u.name)
    ] == [
        ("GET /", "no_tool_span", "gen_ai.operation.name"),
        ("chat m-1", "no_tool_span", None),
        ("running tool", "missing_field", "gen_ai.tool.name"),
    ]


def test_hostile_spans_do_no_harm() -> None:
    """Cycles, deep JSON, odd types and empty ids give an answer, not an error."""
    deep = "[" * 5_000 + "]" * 5_000
    lone = '{"error": "\ud800"}'
    odd: dict[str, Any] = {
        "gen_ai.tool.name": 7,
        "gen_ai.tool.call.id": ["x"],
        "error.type": {"a": 1},
    }
    spans = [
        span(
            "execute_tool a",
            {"gen_ai.tool.call.arguments": deep, "gen_ai.tool.call.result": deep},
            id=1,
            under=2,
        ),
        span("execute_tool a", {"gen_ai.tool.call.result": lone}, id=5),
        span("execute_tool a", odd, id=2, under=1, at=-5, lasts=-90),
        span(
            "chat",
            {
                **CHAT,
                "gen_ai.input.messages": deep,
                "gen_ai.output.messages": [1, [None], {"type": "tool_call"}],
            },
            id=3,
        ),
        replace(
            span(
                "execute_tool a",
                {},
                id=4,
                events=[SpanEvent("exception", 0, {"exception.type": 3})],
            ),
            span_id="",
        ),
    ]
    assert calls_of(
        spans, [LogRecord(None, "zz", "tool_result", body=[1], attributes={"tool_name": 3})]
    )
