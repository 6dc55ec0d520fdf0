"""One adapter for all frameworks: what they tell of a call becomes one event, and never hurts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import toolfault
from toolfault import ToolError
from toolfault.integrations.seen import Call, Seen, current_call, note, observe
from toolfault.testing import capture_events

SCHEMA = {
    "type": "object",
    "properties": {"people": {"type": "integer"}, "when": {"type": "string"}},
    "required": ["people", "when"],
}


def seen(**details: Any) -> Seen:
    """Return a call as a framework would tell of it."""
    given = {"call_id": "c1", "turn": "t1", "conversation": "k1", **details}
    return Seen("some_framework", given.pop("tool", "book"), **given)


def calls(events: Any) -> list[dict[str, Any]]:
    return [event for event in events.flush() if event["type"] != "conversation_end"]


def test_an_attribute_that_is_missing_hurts_nobody() -> None:
    """What a framework lacks in another version costs the event, never the run."""
    with capture_events() as events:
        assert observe(lambda: object().missing) is None  # type: ignore[attr-defined]
        with Call(lambda: object().missing) as call:  # type: ignore[attr-defined]
            assert call.ended() is None
        with Call(seen) as call:
            assert call.ended(lambda found: found.missing) is None  # type: ignore[attr-defined]
    assert calls(events) == []


def test_a_decorated_tool_joins_its_framework() -> None:
    """One event under the framework's name, with its ids and what the decorator found."""

    @toolfault.tool
    def other_name(people: int) -> int:
        raise ToolError("other_name", "not that many", "not_found", field="people")

    with capture_events() as events, Call(lambda: seen(arguments={"people": 90})) as call:
        with pytest.raises(ToolError) as raised:
            other_name(people=90)
        call.raised(raised.value)
        assert toolfault.capture_failure(raised.value, tool="book") is None
    (event,) = calls(events)
    assert (event["tool"], event["call_id"], event["turn"]) == ("book", "c1", "t1")
    assert event["error"]["code"] == "not_found"


def test_a_wrapper_that_takes_any_arguments_does_not_hide_that_they_are_wrong() -> None:
    """What a framework says of wrong arguments counts where a wrapped body only raised."""

    def book(people: int, when: str) -> None: ...

    @toolfault.tool(name="book")
    def wrapper(*args: Any, **kwargs: Any) -> None:
        book(*args, **kwargs)

    with (
        capture_events() as events,
        Call(lambda: seen(arguments={"people": 4}, schema=SCHEMA)) as call,
    ):
        with pytest.raises(TypeError) as raised:
            wrapper(people=4)

        def refused(found: Seen) -> None:
            found.error, found.stage, found.told = raised.value, "validation", "refused"

        call.ended(refused)
    (event,) = calls(events)
    assert [issue["field"] for issue in event["error"]["issues"]] == ["when"]


def test_a_framework_calls_a_tool_by_its_mark() -> None:
    """Whether a tool is idempotent its decorator says, or else the framework."""

    @toolfault.tool(idempotent=False)
    def pay(amount: int) -> int:
        return amount

    with capture_events() as events:
        for said, body in ((None, pay), (True, pay), (True, None), (None, None)):
            with Call(lambda said=said: seen(idempotent=said)) as call:  # type: ignore[misc]
                if body is not None:
                    body(amount=1)
                call.ended()
    assert [event.get("idempotent") for event in calls(events)] == [False, False, True, None]


def test_a_tool_that_the_body_calls_is_a_call_of_its_own() -> None:
    """A helper's failure that the body has dealt with is not the failure of the call."""

    @toolfault.tool
    def helper() -> None:
        raise RuntimeError("down")

    with capture_events() as events, Call(seen) as call:
        with pytest.raises(RuntimeError):
            helper()
        call.ended()
    assert sorted((e["tool"], e["success"]) for e in calls(events)) == [
        ("book", True),
        ("helper", False),
    ]


def test_a_framework_that_tries_again_itself_made_one_call() -> None:
    """Of the tries inside one call the last one counts."""
    answers = iter([RuntimeError("down"), None])

    @toolfault.tool
    def book() -> str:
        answer = next(answers)
        if answer is not None:
            raise answer
        return "ok"

    with capture_events() as events, Call(seen) as call:
        with pytest.raises(RuntimeError):
            book()
        book()
        call.ended()
    assert [event["success"] for event in calls(events)] == [True]


async def test_what_ends_after_a_time_out_is_not_counted_again() -> None:
    """The framework's time-out is the one event of a call whose body goes on."""
    go_on = asyncio.Event()

    @toolfault.tool
    async def book() -> str:
        await go_on.wait()
        return "late"

    with capture_events() as events:
        with Call(seen) as call:
            late = asyncio.ensure_future(book())
            await asyncio.sleep(0)
            call.ended(lambda found: setattr(found, "stage", "timeout"))
        go_on.set()
        assert await late == "late"
    assert [event["error"]["code"] for event in calls(events)] == ["timeout"]


def test_two_integrations_that_see_one_call_make_one_event() -> None:
    """The outer of two open calls reports; of two that follow each other, the first."""
    with capture_events() as events:
        with Call(seen) as outer:
            with Call(seen) as inner:
                inner.ended(lambda found: setattr(found, "stage", "exec"))
            outer.ended()
        observe(lambda: Seen("another_framework", "book", call_id="c1", conversation="k1"))
    assert [event["success"] for event in calls(events)] == [True]


def test_coerce_and_timeout_hold_where_a_framework_calls() -> None:
    """Options of the decorator work in a framework's call; a direct call stays as written."""

    @toolfault.tool(coerce=True)
    def book(people: int) -> object:
        return people

    @toolfault.tool(timeout=0.01)
    async def slow() -> None:
        await asyncio.Event().wait()

    with capture_events() as events:
        with Call(seen) as call:
            assert book(people="4") == 4  # type: ignore[arg-type]
            call.ended()
        with Call(lambda: seen(tool="slow", call_id="c2")) as call:
            with pytest.raises(TimeoutError) as raised:
                asyncio.run(slow())
            call.raised(raised.value)
        assert book(people="4") == "4"  # type: ignore[arg-type]
    found = {event.get("call_id"): event for event in calls(events)}
    assert found["c1"]["coercions"][0]["field"] == "people"
    assert found["c2"]["error"]["code"] == "timeout"


def test_hints_hold_where_a_framework_refuses() -> None:
    """What the decorator says of an argument is told, though the tool itself never ran."""

    @toolfault.tool(hints={"people": "Count children, too."})
    def book(people: int, when: str) -> None: ...

    def refused() -> Seen:
        arguments = {"people": "four", "when": "now"}
        return seen(stage="validation", arguments=arguments, schema=SCHEMA, fn=book)

    with capture_events() as events:
        text = observe(refused, improve=True)
    (event,) = calls(events)
    assert text is not None
    assert "Count children, too." in text
    assert event["error"]["retry_hint"] == "Count children, too."


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("langgraph.errors", "GraphInterrupt"),
        ("langgraph.errors", "ParentCommand"),
        ("pydantic_ai.exceptions", "CallDeferred"),
        ("pydantic_ai.exceptions", "ApprovalRequired"),
        ("pydantic_ai.exceptions", "ModelRetry"),
        ("fastmcp.exceptions", "UrlElicitationRequiredError"),
        ("mcp.shared.exceptions", "UrlElicitationRequiredError"),
        ("strands.types.interrupt", "InterruptException"),
        ("agent_framework._middleware", "MiddlewareTermination"),
        ("agent_framework.exceptions", "UserInputRequiredException"),
        ("workflows.runtime.types.results", "WaitingForEvent"),
    ],
)
def test_control_flow_is_no_failure(package: str, name: str) -> None:
    """Interrupts, hand-offs, deferred calls, approvals and the like leave no event at all."""
    signal = type(name, (Exception,), {"__module__": package})

    @toolfault.tool
    def book() -> None:
        raise signal

    with capture_events() as events, Call(seen) as call:
        with pytest.raises(signal) as raised:
            book()
        call.raised(raised.value)
    assert calls(events) == []


def test_all_issues_are_found_where_the_framework_hides_them() -> None:
    """The schema that the model saw is asked again; the model reads everything at once."""
    with capture_events(capture_values=True) as events:
        text = observe(
            lambda: seen(
                stage="validation", arguments='{"people": "four"}', schema=SCHEMA, told="no"
            ),
            improve=True,
        )
    (event,) = calls(events)
    assert [(i["field"], i["code"]) for i in event["error"]["issues"]] == [
        ("when", "missing_field"),
        ("people", "wrong_type"),
    ]
    assert text is not None
    assert "'four'" in text
    assert event["error"]["renderings"]["llm"] == text


def test_what_a_body_validates_is_not_the_arguments_fault() -> None:
    """A validation error about a field that the tool does not have is the body's."""
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Reply", price=(int, ...))
    with pytest.raises(pydantic.ValidationError) as raised:
        model(price="n/a")
    with capture_events() as events:
        observe(
            lambda: seen(
                stage="validation",
                arguments={"people": 1, "when": "now"},
                schema=SCHEMA,
                error=raised.value,
            )
        )
    assert [event["error"]["code"] for event in calls(events)] == ["internal_error"]


def test_secrets_in_what_was_told_stay_here() -> None:
    """Neither the argument of a secret name nor pydantic's quote of it leaves the process."""
    told = (
        "1 validation error for login\npassword\n  Too short "
        "[type=too_short, input_value='hunter2', input_type=str]\nyou sent hunter2hunter2"
    )
    with capture_events(capture_values=True) as events:
        observe(lambda: seen(stage="returned", arguments={"password": "hunter2hunter2"}, told=told))
    (event,) = calls(events)
    assert "hunter2" not in str(event)
    assert "you sent [REDACTED]" in event["error"]["renderings"]["llm"]


def test_an_unknown_tool_is_answered_with_the_frameworks_list_and_a_close_name() -> None:
    """The framework's words stay; a name that is close is added."""
    details = {"stage": "unknown", "told": "No tool bok. There are: book.", "tool": "bok"}
    text = observe(lambda: seen(known_tools=["book"], **details), improve=True)
    assert text == "No tool bok. There are: book. Did you mean 'book'?"
    assert (
        observe(lambda: seen(known_tools=["book"], **{**details, "tool": "x"}), improve=True)
        is None
    )


def test_a_time_out_says_how_long() -> None:
    """The limit of a decorated tool is added to the framework's words, which leave it out."""

    @toolfault.tool(timeout=0.01)
    async def slow() -> None:
        await asyncio.Event().wait()

    told = []
    for words in ("Please try again", "It took more than 0.01s"):
        with capture_events() as events, Call(lambda: seen(tool="slow")) as call:
            with pytest.raises(TimeoutError) as raised:
                asyncio.run(slow())

            def fill(found: Seen, words: str = words, error: Any = raised.value) -> None:
                found.stage, found.error, found.told = "exec", error, words

            told.append(call.ended(fill, improve=True))
        (event,) = calls(events)
        assert event["error"]["renderings"]["llm"] == (told[-1] or words)
    assert told == ["Please try again. Timed out waiting for tool result after 0.01s.", None]


def test_the_ladder_of_conversations() -> None:
    """The host's conversation comes before the framework's; its model is filled in."""
    with capture_events() as events:
        with toolfault.conversation("mine"):
            observe(lambda: seen(model="m", agent="a", stage="cancelled"))
        observe(lambda: seen(conversation="theirs", stage="cancelled"))
        observe(lambda: seen(conversation=None, stage="cancelled"))
    told = [
        (e.get("session_id"), e.get("conversation_rung"), e.get("model")) for e in calls(events)
    ]
    assert told == [("mine", None, "m"), ("theirs", "framework", None), (None, None, None)]


def test_the_ladder_below_the_framework() -> None:
    """Baggage comes before the protocol's metadata, this before the trace, and a handle is last."""
    baggage = pytest.importorskip("opentelemetry.baggage")
    context = pytest.importorskip("opentelemetry.context")
    tracer = pytest.importorskip("opentelemetry.sdk.trace").TracerProvider().get_tracer("tests")
    by_meta = {"conversation": "of meta", "rung": "meta", "stage": "cancelled"}
    by_handle = {"conversation": "of handle", "rung": "handle", "stage": "cancelled"}
    with capture_events() as events:
        with tracer.start_as_current_span("turn") as span:
            token = context.attach(baggage.set_baggage("gen_ai.conversation.id", "carried"))
            observe(lambda: seen(**by_meta))
            context.detach(token)
            observe(lambda: seen(**by_meta))
            observe(lambda: seen(**by_handle))
        observe(lambda: seen(**by_handle))
    assert [(e["session_id"], e["conversation_rung"]) for e in calls(events)] == [
        ("carried", "baggage"),
        ("of meta", "meta"),
        (f"{span.get_span_context().trace_id:032x}", "trace"),
        ("of handle", "handle"),
    ]


def test_inner_parts_add_to_the_open_call() -> None:
    """The innermost part speaks first, and what it said stays."""
    with capture_events() as events, Call(seen) as call:
        assert current_call() is call
        note(stage="exec", error=RuntimeError("inner"))
        note(stage="validation", error=RuntimeError("outer"))
        call.ended()
    (event,) = calls(events)
    assert event["error"]["exception"]["message"] == "inner"
    note(stage="exec")  # nothing is open
