"""What events hold: cleaned, bounded, shown to the host first, sampled by conversation."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr, ValidationError, field_validator
from tests.sdk.telemetry.conftest import (
    QUICK,
    Clock,
    MakeClient,
    a_call,
    a_failure,
    conserved,
    events_of,
)

import toolfault
from toolfault.errors import Issue, ToolError
from toolfault.testing import MemoryTransport, capture_events

SECRETS = {
    "key": "AKIAIOSFODNN7EXAMPLE",
    "github": "ghp_" + "a1B2" * 9,
    "openai": "sk-" + "a1b2C3d4" * 5,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "url": "hunter2-in-url",
    "pair": "hunter2-in-pair",
}
TEXT = (
    f"token {SECRETS['key']} {SECRETS['github']} {SECRETS['openai']} {SECRETS['jwt']} "
    f"postgres://admin:{SECRETS['url']}@db/x password={SECRETS['pair']}"
)


def the_event(client: Any, transport: MemoryTransport) -> dict[str, Any]:
    """Flush and return the one event."""
    assert client.flush(20)
    (event,) = transport.events
    return dict(event)


def raised(text: str) -> BaseException:
    """An exception with a cause and notes, raised."""
    try:
        try:
            raise KeyError(text)
        except KeyError as cause:
            raise RuntimeError(text) from cause
    except RuntimeError as error:
        return error


def test_secrets_leave_neither_in_texts_nor_in_tracebacks(make_client: MakeClient) -> None:
    """Exception texts, causes, messages, hints, snippets and received values are redacted."""
    transport = MemoryTransport()
    client = make_client(transport=transport, capture_values=True)
    client.capture_failure(ToolError.from_exception("t", raised(TEXT)))
    client.capture_failure(
        ToolError(
            "t",
            TEXT,
            "invalid_input",
            field="note",
            expected=TEXT,
            received=repr(TEXT),
            snippet=TEXT,
            retry_hint=TEXT,
            retry_context={"a": TEXT, "password": SECRETS["pair"]},
            issues=[Issue("note", "wrong_type", TEXT, received=repr(TEXT), expected=TEXT)],
        )
    )
    assert client.flush(20)
    sent = json.dumps(transport.batches)
    assert "RuntimeError" in sent
    for name, secret in SECRETS.items():
        assert secret not in sent, name


@pytest.mark.parametrize(
    "value", ["pass", "word", "api_key", "my_api_key", "my_api_key=", "Bearer"]
)
@pytest.mark.parametrize("name", ["user", "password"])
@pytest.mark.parametrize("capture_values", [True, False])
def test_a_value_that_names_a_secret_does_not_uncover_it(
    name: str, value: str, capture_values: bool, make_client: MakeClient
) -> None:
    """[S11] Taken out of a text, `password` would leave the host's own behind: `=x`."""
    transport = MemoryTransport()
    client = make_client(transport=transport, capture_values=capture_values)
    text = (
        "no login: password=hunter2hunter2, my_api_key=hunter3hunter3, Bearer hunter4hunter4hunter4"
    )

    @toolfault.tool
    def login(user: str = "", password: str = "") -> None:
        """Fail."""
        raise RuntimeError(text) if name == "user" else ToolError("login", text, "invalid_input")

    error = login.call({name: value}).error
    assert error is not None
    told = [*error.renderings().values(), json.dumps(error.to_llm_payload())]
    assert client.flush(20)
    for secret in ("hunter2", "hunter3", "hunter4"):
        assert secret not in json.dumps(transport.batches)
        assert all(secret not in rendering for rendering in told)


class Account(BaseModel):
    """A model whose errors quote what they validated."""

    owner: int
    password: SecretStr = Field(min_length=50)


def use_a_secret_as_a_name(*, coerce: bool = False) -> None:
    """Have a model use a credential wherever it can write a name, and a host wherever it can."""
    key = SECRETS["openai"]

    @toolfault.tool(coerce=coerce)
    def put(accounts: dict[str, int]) -> int:
        """Take amounts by account."""
        return len(accounts)

    manager = toolfault.ToolManager([put])
    with toolfault.conversation("c", tags={"authorization": f"Bearer {key}"}, ends=True):
        toolfault.set_tags(note=TEXT, api_key="opensesame-hunter2")
        amounts: list[Any] = ["x", 5, [], "12"]
        for amount in amounts:
            put.call({"accounts": {key: amount, f"as password={SECRETS['pair']}": amount}})
        manager.call_tool_sync(f"curl -H 'Authorization: Bearer {key}' x", {})
        manager.call_tool_sync(f"run {key}", {})
    put.call({"accounts": {key: "12"}})  # a success outside any chain, which is folded
    toolfault.record_change(f"rotated {TEXT}", tool=f"run {key}")


@pytest.mark.parametrize("successes", ["all", "folded"])
def test_a_secret_used_as_a_name_leaves_in_no_member(
    successes: str, make_client: MakeClient
) -> None:
    """Paths, repairs, differences, names of tools, tags and labels of markers are cleaned."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes=successes)
    use_a_secret_as_a_name()
    use_a_secret_as_a_name(coerce=True)
    assert client.flush(20)
    told = {name for event in transport.events for name in event}
    assert {"args_diff", "coercions", "tool_requested", "tags", "label", "error", "calls"} <= told
    sent = json.dumps(transport.batches)
    for name, secret in SECRETS.items():
        assert secret not in sent, name
    assert "opensesame" not in sent
    issue = events_of(transport, "tool_call")[0]["error"]["issues"][0]
    assert issue["field"] == issue["field_pattern"] == "accounts.[REDACTED]"


@pytest.mark.parametrize("how", ["raised", "returned", "crashed", "passed", "captured", "as text"])
def test_a_secret_argument_leaves_in_no_text(how: str, make_client: MakeClient) -> None:
    """Whoever quotes it: the author of a failure, a hint, an exception or one that goes through."""
    transport = MemoryTransport()
    client = make_client(transport=transport, capture_values=True)
    given = {"user": "bob", "password": "canary of bob"}

    @toolfault.tool(passthrough=(KeyError,))
    def login(user: str, password: str) -> dict[str, Any]:
        """Refuse, with the password in every text."""
        text = f"the pass phrase {password} is not {user}'s"
        if how == "returned":
            return {"success": False, "error": text}
        if how == "crashed":
            raise RuntimeError(text)
        if how == "passed":
            raise KeyError(text)
        raise toolfault.ToolError(
            "login", text, llm_message=text, retry_hint=text, expected=text, received=text
        )

    told: object = None
    if how in ("captured", "as text"):
        error = RuntimeError(f"{given['password']} is wrong")
        arguments = given if how == "captured" else json.dumps(given)
        toolfault.capture_failure(error, tool="login", arguments=arguments)
    elif how == "passed":
        with pytest.raises(KeyError):
            login.call(given)
    else:
        result = login.call(given)
        assert result.error is not None
        told = [result.to_dict(), result.error.renderings()]
    assert client.flush(20)
    assert len(transport.events) >= 1
    assert "canary" not in json.dumps([told, transport.batches])


@pytest.mark.parametrize(
    "shape",
    [
        [{"login": [{"password": "*"}]}],
        {"a": {"b": {"c": {"d": {"password": "*"}}}}},
        {"headers": [{"name": "Authorization", "value": "*"}]},
        {"passwords": [], "password": ["*"]},
    ],
    ids=["list", "deep", "pair", "several"],
)
def test_a_secret_anywhere_leaves_in_no_text(shape: Any, make_client: MakeClient) -> None:
    """In lists, far down, in pairs of name and value: what is hidden there is hidden in texts."""
    transport = MemoryTransport()
    make_client(transport=transport, capture_values=True)
    arguments = {"given": json.loads(json.dumps(shape).replace("*", "canary of bob"))}

    @toolfault.tool(hints="off")
    def login(given: Any) -> None:
        """Refuse, with the password in the text."""
        raise toolfault.ToolError("the pass phrase canary of bob is wrong")

    told = json.dumps(login.call(arguments).to_tool_message("c"))
    toolfault.capture_failure(RuntimeError("canary of bob"), tool="login", arguments=arguments)
    assert toolfault.flush(20)
    assert len(transport.events) == 2
    assert "the pass phrase [REDACTED] is wrong" in told
    bodies = [{**event["error"], "exception": None} for event in transport.events]
    assert "canary" not in json.dumps([told, bodies])
    assert transport.events[1]["error"]["exception"]["message"] == "[REDACTED]"


def test_validation_errors_do_not_quote_their_input(make_client: MakeClient) -> None:
    """The text of a pydantic error, which repeats the input, stays behind."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    value = "canary".upper()  # the source line itself must not hold it
    with pytest.raises(ValidationError) as caught:
        Account.model_validate({"owner": value, "password": value})
    client.capture_failure(ToolError.from_exception("t", caught.value))
    event = the_event(client, transport)
    assert event["error"]["exception"]["message"] == "2 validation errors for Account"
    assert value not in json.dumps(event)


class Doubled(BaseModel):
    """Arguments whose validator is wrong for negative numbers, and broken for zero."""

    number: int

    @field_validator("number")
    @classmethod
    def doubled(cls, value: int) -> int:
        """Refuse what is negative; fail for zero."""
        if not value:
            raise KeyError(value)
        if value < 0:
            raise ValueError("must not be negative")
        return 2 * value


@pytest.mark.parametrize(
    ("number", "has_frames"),
    [("x", False), (-1, False), (0, True), (1, True)],
    ids=["wrong type", "refused by a validator", "broken validator", "validated in the tool"],
)
def test_arguments_refused_before_the_tool_ran_have_no_traceback(
    number: object, has_frames: bool
) -> None:
    """It would be ours and the library's alone; where code of the host raised, its frames stay."""

    @toolfault.tool(model=Doubled)
    def ask(number: int) -> None:
        """Validate once more."""
        Doubled.model_validate({"number": "x"})

    with capture_events() as events:
        ask.call({"number": number})
    (event,) = events
    exception = event["error"]["exception"]
    assert exception["type"] == ("KeyError" if number == 0 else "ValidationError")
    assert ("test_events.py" in exception.get("traceback", "")) is has_frames
    assert ("traceback" in exception) is has_frames


def test_what_led_to_a_refusal_keeps_its_frames(make_client: MakeClient) -> None:
    """Only the refusal lies between us and the library; another was raised by code of the host."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    with pytest.raises(ValueError, match="1 validation error") as before:
        Doubled.model_validate({"number": "x"})
    with pytest.raises(ValueError, match="1 validation error") as refusal:
        Doubled.model_validate({"number": "y"})
    refusal.value.__cause__ = before.value
    client.capture_failure(
        ToolError.from_validation_error("ask", refusal.value).with_(phase="validation")
    )

    text = the_event(client, transport)["error"]["exception"]["traceback"]
    assert text.count("test_events.py") == 1


def test_names_of_code_that_was_made_of_a_secret_leave_without_it(make_client: MakeClient) -> None:
    """A class of exceptions, its module, a file and a function may be named by data."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    secret = SECRETS["github"]
    made = type(f"E_{secret}", (Exception,), {"__module__": f"plugins.{secret}"})
    code = compile("def fail():\n    raise made", f"/srv/{secret}/plugin.py", "exec")
    space: dict[str, Any] = {"made": made}
    eval(code, space)
    fail = space["fail"]
    fail.__code__ = fail.__code__.replace(co_name=f"fail_{secret}")
    with pytest.raises(made) as caught:
        fail()
    client.capture_failure(ToolError.from_exception("t", caught.value))

    event = the_event(client, transport)
    assert "plugin.py" in event["error"]["exception"]["traceback"]
    assert secret not in json.dumps(event)
    assert secret not in json.dumps(ToolError.from_exception("t", caught.value).renderings())


def test_a_number_that_cannot_be_written_costs_no_event(make_client: MakeClient) -> None:
    """Python writes no number of some thousand digits; the failure is sent all the same."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    client.on_call(a_call(error=a_failure(), arguments={"port": 10**5_000}))
    event = the_event(client, transport)
    assert event["args_recorded"]
    assert "args_fingerprint" not in event


def test_result_names_its_event(make_client: MakeClient) -> None:
    """The id on the failure a host got is the id of its event, also when one object fails twice."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    error = a_failure()
    ids = []
    for _ in range(3):
        client.on_call(a_call(error=error))
        ids.append(error.event_id)
    assert client.flush()
    assert [event["event_id"] for event in transport.events] == ids
    assert len(set(ids)) == 3


def test_capturing_keeps_no_exception_alive(make_client: MakeClient) -> None:
    """Neither exception nor frame nor local variable of the host waits in the queue."""
    import gc
    import weakref

    class Local:
        pass

    def fail() -> weakref.ref[Local]:
        local = Local()
        try:
            raise ValueError("x")
        except ValueError as error:
            client.capture_failure(ToolError.from_exception("t", error))
        return weakref.ref(local)

    client = make_client(transport=MemoryTransport(), limits=QUICK.with_(batch_seconds=60.0))
    seen = fail()
    gc.collect()
    assert seen() is None
    assert client.stats().pending == 1


def deep(depth: int) -> None:
    """Fail far down."""
    if depth:
        deep(depth - 1)
    raise RecursionError("too deep")


def test_long_tracebacks_are_cut_in_the_middle(make_client: MakeClient) -> None:
    """The first and last frames are kept, and how many lie between is said."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    try:
        deep(300)
    except RecursionError as error:
        client.capture_failure(ToolError.from_exception("t", error))
    text = the_event(client, transport)["error"]["exception"]["traceback"]
    assert len(text) <= 16_000
    assert text.startswith("Traceback (most recent call last):")
    assert text.endswith("RecursionError: too deep\n")
    assert "frames ...]" in text or "characters ...]" in text


def test_exception_chains_are_bounded(make_client: MakeClient) -> None:
    """A chain of thousands, or one that bites its tail, is cut."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    first = error = ValueError("0")
    for number in range(5_000):
        following = ValueError(str(number))
        following.__cause__ = error
        error = following
    first.__cause__ = error
    client.capture_failure(ToolError.from_exception("t", error))
    text = the_event(client, transport)["error"]["exception"]["traceback"]
    assert text.count("direct cause") == 7


@pytest.mark.parametrize("text", ["x", "\u00e4\U0001f600", '"\\'], ids=["plain", "wide", "escaped"])
@pytest.mark.parametrize("limit", [6_000, 20_000])
def test_shortened_event_fits_and_says_what_was_cut(
    limit: int, text: str, make_client: MakeClient
) -> None:
    """An event too large for its bound is cut to it; its id stays, and cut members are named."""
    transport = MemoryTransport()
    client = make_client(transport=transport, limits=QUICK.with_(event_bytes=limit))
    try:
        deep(300)
    except RecursionError as error:
        failure = ToolError.from_exception("t", error)
    issues = [Issue(f"field_{n}", "wrong_type", text * 200) for n in range(50)]
    failure = failure.with_(issues=issues, message=text * 10_000)
    client.capture_failure(failure)
    event = the_event(client, transport)
    sent = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
    assert len(sent.encode()) <= limit
    assert event["event_id"] == failure.event_id
    assert "error.exception.traceback" in event["truncated"]


def test_before_send_changes_and_drops(make_client: MakeClient) -> None:
    """The host sees each whole event in wire form, may change it, leave it out, or fail."""
    transport = MemoryTransport()
    hints = []

    def before_send(event: dict[str, Any], hint: dict[str, Any]) -> dict[str, Any] | None:
        hints.append(hint)
        if event["tool"] == "private":
            return None
        if event["tool"] == "broken":
            raise RuntimeError("filter failed")
        event["tags"] = {"seen": "yes", "odd": object()}
        return event

    client = make_client(transport=transport, before_send=before_send)
    cause = raised("x")
    client.on_call(a_call("public"))
    client.on_call(a_call("private"))
    client.on_call(a_call("broken"))
    client.capture_failure(ToolError.from_exception("public", cause))
    client.flush(20)
    assert [event["tags"]["seen"] for event in transport.events] == ["yes", "yes"]
    assert transport.events[1]["error"]["renderings"]["llm"]
    assert hints[-1]["exception"] is cause
    assert client.stats().dropped == {"before_send": 1, "before_send_failed": 1}
    conserved(client)


@pytest.mark.parametrize("rule", [KeyError, LookupError, "KeyError", "internal_error", "noisy"])
def test_ignored_failures_are_counted(rule: Any, make_client: MakeClient) -> None:
    """A failure named by class, class name, code or tool is not sent but counted."""
    transport = MemoryTransport()
    client = make_client(transport=transport, ignore=(rule,))
    client.capture_failure(ToolError.from_exception("noisy", KeyError("x")))
    client.capture_failure(ToolError("other", "x", "timeout"))
    client.flush(20)
    assert [event["tool"] for event in transport.events] == ["other"]
    assert client.stats().dropped == {"ignored": 1}


def test_sampling_keeps_whole_conversations_and_every_failure(make_client: MakeClient) -> None:
    """A rate leaves out the successes of whole conversations; failures and chains stay whole."""
    transport = MemoryTransport()
    client = make_client(transport=transport, sample_rate=0.25, clock=Clock())
    for number in range(200):
        with toolfault.conversation(f"c{number}"):
            client.on_call(a_call())
            client.on_call(a_call())
            client.on_call(a_call(error=a_failure()))
            client.on_call(a_call())
        if number % 40 == 0:
            client.flush(20)
    client.flush(20)
    calls = events_of(transport, "tool_call")
    per_conversation = Counter(event["session_id"] for event in calls)
    assert set(per_conversation.values()) == {2, 4}
    assert len(per_conversation) == 200
    sampled = [event for event in calls if "sample_rate" in event]
    assert {event["sample_rate"] for event in sampled} == {0.25}
    assert 2 * 25 < len(sampled) < 2 * 75
    estimate = sum(1 / event.get("sample_rate", 1.0) for event in calls)
    assert 600 < estimate < 1_000
    dropped = client.stats().dropped["sampled"]
    assert dropped + len(calls) == 800
    conserved(client)


def test_failures_are_sampled_only_when_asked(make_client: MakeClient) -> None:
    """With a rate for failures whole chains are kept or left out."""
    transport = MemoryTransport()
    client = make_client(transport=transport, failure_sample_rate=0.5, clock=Clock())
    for number in range(100):
        with toolfault.conversation(f"c{number}"):
            client.on_call(a_call(error=a_failure()))
            client.on_call(a_call())
    client.flush(20)
    calls = events_of(transport, "tool_call")
    assert set(Counter(event["session_id"] for event in calls).values()) == {2}
    assert 60 < len(calls) < 140
    assert {event["sample_rate"] for event in calls} == {0.5}


def test_trace_ids_come_from_opentelemetry(make_client: MakeClient) -> None:
    """Inside a recording span events carry its ids, and the span learns the error's code."""
    from opentelemetry import trace
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

    class Recording(NonRecordingSpan):
        def __init__(self) -> None:
            super().__init__(SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=TraceFlags(1)))
            self.attributes: dict[str, Any] = {}

        def is_recording(self) -> bool:
            return True

        def set_attribute(self, key: str, value: Any) -> None:
            self.attributes[key] = value

    transport = MemoryTransport()
    client = make_client(transport=transport)
    span = Recording()
    with trace.use_span(span):
        client.on_call(a_call(error=a_failure()))
    client.on_call(a_call())
    assert client.flush()
    inside, outside = transport.events
    assert inside["trace_id"] == f"{0xABC:032x}"
    assert inside["span_id"] == f"{0xDEF:016x}"
    assert span.attributes == {"error.type": "wrong_type"}
    assert "trace_id" not in outside


def test_a_broken_span_costs_no_event(make_client: MakeClient) -> None:
    """Whatever a span of the host does, the event is sent."""
    from opentelemetry import trace
    from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan

    class Broken(NonRecordingSpan):
        def is_recording(self) -> bool:
            raise RuntimeError("broken")

    transport = MemoryTransport()
    client = make_client(transport=transport)
    with trace.use_span(Broken(INVALID_SPAN_CONTEXT)):
        client.on_call(a_call())
    assert client.flush()


def test_tags_are_within_their_bounds(make_client: MakeClient) -> None:
    """At most 20 tags, keys of 64 safe characters, values of 256; process and conversation."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    client.set_tags({"region": "eu", "Team Näme": "x" * 500})
    with toolfault.conversation("c", tags={f"tag{number}": str(number) for number in range(50)}):
        client.on_call(a_call())
    event = the_event(client, transport)
    assert len(event["tags"]) == 20
    assert event["tags"]["region"] == "eu"
    assert event["tags"]["Team_N_me"] == "x" * 256


def test_the_clock_of_the_host_times_the_calls() -> None:
    """With ``init(clock=)`` a call lasts as long as that clock moved; without, the real time."""
    now = [1_795_000_000.0]

    @toolfault.tool
    def fetch(seconds: float) -> None:
        now[0] += seconds
        if seconds > 10:
            raise TimeoutError

    transport = MemoryTransport()
    try:
        toolfault.init(transport=transport, clock=lambda: now[0], successes="all")
        fetch.call(seconds=2.5)
        fetch.call(seconds=60)
        fetch(seconds=0.125)
        fetch.call(seconds=-5)
        toolfault.flush()
        calls = events_of(transport, "tool_call")
        assert [call["duration_ms"] for call in calls] == [2_500.0, 60_000.0, 125.0, 0.0]
        assert calls[1]["occurred_at"] == "2026-11-18T11:07:42.500000Z"
        toolfault.init(transport=transport, clock=lambda: 1 / 0)
        assert fetch.call(seconds=1).success
        toolfault.close()
        toolfault.init(transport=transport, successes="all")
        fetch.call(seconds=3_600)
        toolfault.flush()
        assert events_of(transport, "tool_call")[-1]["duration_ms"] < 60_000
    finally:
        toolfault.close()
