"""Values of arguments stay in the process; what leaves it carries their type and size instead."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator
from tests.sdk.telemetry.conftest import SILENT, MakeClient, segments

import toolfault
from toolfault import Issue, ToolError, tool
from toolfault.coerce import Coercion
from toolfault.telemetry import Response
from toolfault.testing import MemoryTransport, capture_events
from toolfault.validators import Check, validate_choice, validate_json, validate_regex

# Written in parts: the lines of this file stand in tracebacks, which are sent.
MARK = "-".join(("bird", "in", "the", "mine"))
NUMBER = 27_182_818 + 31_415_926
NOWHERE = "http://KEY@127.0.0.1:1"


class Cat(BaseModel):
    """One kind of pet."""

    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    """Another one."""

    kind: Literal["dog"]
    tricks: list[int]


class Order(BaseModel):
    """Every way in which pydantic reports a value."""

    count: int = Field(default=1, le=10)
    word: Literal["one", "two"] = "one"
    items: list[int] = []
    table: dict[str, int] = {}
    either: int | list[int] = 1
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    text: Annotated[str, Check(validate_choice, choices=["a", "b"])] = "a"
    number: str = "1"

    @field_validator("number")
    @classmethod
    def _read(cls, value: str) -> str:
        int(value)
        return value

    @model_validator(mode="after")
    def _compare(self) -> Order:
        if self.count > 1:
            raise ValueError(f"{self.count} is not the count of {self.table}")
        return self


class Struct(msgspec.Struct, forbid_unknown_fields=True):
    """The same for msgspec."""

    count: int = 1
    word: Literal["one", "two"] = "one"
    items: list[int] = []
    table: dict[str, int] = {}


SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "count": {"type": "integer", "maximum": 10},
        "word": {"enum": ["one", "two"]},
        "items": {"type": "array", "items": {"type": "integer"}},
        "table": {"type": "object", "additionalProperties": {"type": "integer"}},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
    },
}


@tool(hints="derived")
def by_hints(
    count: int = 1,
    word: Literal["one", "two"] = "one",
    items: list[int] = [],  # noqa: B006 - not changed
    table: dict[str, int] = {},  # noqa: B006
    either: int | list[int] = 1,
    number: Annotated[str, Check(validate_regex)] = "",
    text: Annotated[str, Check(validate_json)] = "1",
) -> None:
    """Fail as tools do: with what they were given in the text."""
    if table:
        raise KeyError(*table.values())
    raise RuntimeError(f"no {count} in {items!r} of {either}") from LookupError(str([number]))


@tool(model=Order)
def by_model(**fields: Any) -> None:
    """Fail with a model of the tool's own."""
    Order(**{**fields, "count": str(fields)})


@tool(model=Struct)
def by_struct(**fields: Any) -> None:
    """Fail with an error of msgspec's of the tool's own."""
    msgspec.convert({"count": [str(fields)]}, Struct)


@tool(parameters=SCHEMA)
def by_schema(**fields: Any) -> None:
    """Fail with a text that says what parameter it is about."""
    raise ValueError(f"Invalid parameter value: {fields}")


TOOLS = (by_hints, by_model, by_struct, by_schema)
texts = st.sampled_from(
    (MARK, f" {MARK}\n{MARK}", f'it\'s "{MARK}"', f"é {MARK}", MARK * 300, str(NUMBER), f"[{MARK}")
)
scalars = texts | st.sampled_from((NUMBER, -NUMBER, NUMBER + 0.5, True, None, 5))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("kind", "k")), inner)
        | st.dictionaries(st.just("kind"), st.sampled_from(("cat", "dog", MARK)), min_size=1)
    ),
    max_leaves=5,
)
arguments = st.dictionaries(
    st.sampled_from(
        ("count", "word", "items", "table", "either", "pet", "text", "number", "invented")
    ),
    values,
    min_size=1,
)


class Bytes(MemoryTransport):
    """Keeps the bytes of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """Keep a request and acknowledge it."""
        self.sent += repr(headers).encode() + gzip.decompress(body)
        return super().send(body, headers=headers, timeout=timeout)


def call_all(given: dict[str, Any]) -> str:
    """Call every tool with *given*, also as broken JSON and as a list; what models are told."""
    told = []
    for each in TOOLS:
        for sent in (given, json.dumps(given)[:-1], json.dumps([given])):
            told.append(json.dumps(each.call(sent).to_tool_message("c")))
    try:
        Order.model_validate(given)
    except ValidationError as error:
        toolfault.capture_failure(error, tool="own_loop", arguments=given)
        toolfault.capture_failure(error, tool="own_loop", arguments=json.dumps(given))
    return "".join(told)


def holds(text: str) -> bool:
    return MARK in text or str(NUMBER) in text


@pytest.mark.parametrize("examples", [4, pytest.param(200, marks=pytest.mark.long)])
def test_no_value_leaves_unless_it_is_asked_for(examples: int) -> None:
    """By default no request holds a value from any place; what models are told holds them."""

    @settings(max_examples=examples, deadline=None)
    @given(given=arguments)
    def explore(given: dict[str, Any]) -> None:
        for asked in (False, True):
            transport = Bytes()
            with capture_events() as put_back:  # the client of other tests comes back
                client = toolfault.init(
                    transport=transport,
                    successes="all",
                    capture_values=asked,
                    agent="a",
                    release="r",
                )
                assert client is not None
                with toolfault.conversation("c"):
                    told = call_all(given)
                assert client.flush(20)
                toolfault.close(0.0)
            assert put_back == []
            assert len(transport.events) >= 3 * len(TOOLS)
            sent = transport.sent.decode()
            assert holds(sent) == (asked and holds(json.dumps(given))), sent
            assert holds(told) == holds(json.dumps(given))

    explore()


def test_no_value_reaches_the_disk(make_client: MakeClient, tmp_path: Path) -> None:
    """The spool holds what would be sent, and no more."""
    given = {"count": MARK, "items": [MARK], "invented": {"k": [NUMBER]}, "number": MARK}
    make_client(NOWHERE, spool_dir=str(tmp_path), limits=SILENT)
    assert holds(call_all(given))
    stored = b"".join(path.read_bytes() for path in segments(tmp_path)).decode()
    assert "str, 16 characters" in stored
    assert not holds(stored)


def test_type_and_size_stand_in_for_a_value() -> None:
    """In the members and in each rendering; the user reads the same as in the process."""

    @tool
    def put(port: int, tags: list[int], limits: dict[str, int]) -> None:
        """Take three arguments."""

    with capture_events() as events:
        put.call({"port": "four", "tags": {"a": 1}, "limits": [1, 2, 3]})
        one = put.call({"port": "four", "tags": [], "limits": {}})
        put.call('{"port": ')
    several, single, unreadable = (event["error"] for event in events)
    received = [(issue["received"], issue["received_type"]) for issue in several["issues"]]
    assert received == [
        ("str, 4 characters", "str"),
        ("dict, 1 keys", "dict"),
        ("list, 3 items", "list"),
    ]
    assert single["received"] == "str, 4 characters"
    assert single["renderings"]["llm"] == (
        "Error: Invalid parameter value for port: Input should be a valid integer "
        "(received str, 4 characters)"
    )
    assert single["renderings"]["system"].endswith("— received: str, 4 characters")
    assert one.error is not None
    assert single["renderings"]["user"] == one.error.render("user")
    assert one.message.endswith("(received str: 'four')")
    assert unreadable["snippet"] == "str, 8 characters"


def test_of_a_value_nobody_measured_the_type_is_told() -> None:
    """An issue made by hand has its type, or the length of what its author wrote of the value."""
    issues = [
        Issue("a", "wrong_type", "no", received=repr(MARK), received_type="str"),
        Issue("b", "wrong_type", "no", received=MARK),
        Issue("password", "wrong_type", "no", received=MARK, received_type="str"),
    ]
    with capture_events() as events:
        toolfault.capture_failure(ToolError.from_issues("t", issues))
        toolfault.capture_failure(ToolError("t", "no", field="a", received=MARK, snippet=MARK))
    shown = [issue["received"] for issue in events[0]["error"]["issues"]]
    assert shown == ["str", "str, 16 characters", "[REDACTED]"]
    assert not holds(json.dumps(events))


def test_an_authors_text_is_sent_as_written() -> None:
    """Whoever writes a value into a failure of their own sends it; expected values stay too."""

    @tool
    def find(city: str) -> None:
        """Say which city."""
        raise ToolError("find", f"no city {city}", "not_found", retry_hint=f"not {city}")

    with capture_events() as events:
        find.call({"city": MARK})
    assert json.dumps(events).count(MARK) >= 4


@pytest.mark.parametrize(
    ("given", "text", "sent"),
    [
        ({"q": "berlin"}, "no berlin", "no <str, 6 characters>"),
        ({"q": "berlin"}, "no 'berlin' in berliner", "no '<str, 6 characters>' in berliner"),
        ({"q": "value"}, "bad value 'value'", "bad value '<str, 5 characters>'"),
        ({"q": "xy"}, "xy is not 'xy'", "xy is not '<str, 2 characters>'"),
        ({"q": [{"k": 12345}]}, "12345 in 123456", "<int> in 123456"),
        ({"q": 404}, "status 404", "status 404"),
        ({"q": "a" * 99}, f"no {'a' * 20}...", "no <str, 99 characters>..."),
        ({"berlin": 1}, "no berlin", "no berlin"),
        (
            {"q": f"Dear Dr. Smith, {'x' * 40} patient number 12345"},
            "input_value='Dear Dr. Smith, xxx...patient number 12345' failed",
            "input_value='<str, 77 characters>...<str, 77 characters>' failed",
        ),
        (
            {"q": "SELECT id FROM people WHERE email = 'bob@example.com'"},
            "LINE 1: ...WHERE email = 'bob@example.com'",
            "LINE 1: ...<str, 53 characters>",
        ),
        ({"q": [n / 1_000 for n in range(768)]}, "connection refused", "connection refused"),
        ({"q": "line of text\n" * 600}, "No space left on device", "No space left on device"),
        ({"q": [f"n{n:03}" for n in range(501)]}, "no n001", "no <str, 4 characters>"),
        (
            {"q": list(range(20_001))},
            "no 12345",
            "text withheld: the arguments are too large to look for them in it",
        ),
    ],
    ids=[
        *("word", "part", "ordinary", "short", "number", "small", "cut", "name"),
        *("cut in the middle", "its end", "numbers", "lines", "many", "too many"),
    ],
)
def test_texts_of_exceptions_lose_values(given: dict[str, Any], text: str, sent: str) -> None:
    """Values of four characters are found, shorter and ordinary words in quotes; names stay."""

    @tool
    def ask(**names: Any) -> None:
        """Fail."""
        raise RuntimeError(text)

    with capture_events() as events:
        ask.call(given)
    (event,) = events
    assert event["error"]["exception"]["message"] == sent
    assert event["error"]["exception"]["traceback"].rstrip().endswith(sent)


def test_arguments_that_the_host_changes_after_the_call_are_still_known() -> None:
    """What the sender takes out of a text are the values of the call, not what became of them."""

    @tool
    def ask(names: list[str]) -> None:
        """Fail."""
        raise RuntimeError(f"nobody is called {names[0]}")

    arguments = {"names": [MARK]}
    with capture_events() as events:
        ask.call(arguments)
        arguments["names"][0] = "somebody"
        arguments.clear()
    (event,) = events
    assert event["error"]["exception"]["message"] == "nobody is called <str, 16 characters>"
    assert MARK not in json.dumps(event)


@dataclass
class Guest:
    """Its own rule quotes what it refuses."""

    name: str

    def __post_init__(self) -> None:
        raise ValueError(f"{self.name} is not invited")


def refuse(name: object) -> object:
    """Quote what cannot be repaired, as a coercer of the host may."""
    raise ValueError(f"{name} is not invited")


@pytest.mark.parametrize("kind", [Guest, list[Guest], Annotated[str, Coercion("name", refuse)]])
def test_the_words_of_a_hosts_own_rule_lose_values(kind: Any) -> None:
    """A dataclass and a coercer may quote the value they refuse: the model reads it, no more."""

    def seat(guest: Any) -> None:
        """Take a guest."""

    seat.__annotations__["guest"] = kind
    guest: Any = {"name": MARK} if kind is Guest else [{"name": MARK}]
    given = {"guest": MARK if kind not in (Guest, list[Guest]) else guest}
    with capture_events() as events:
        told = json.dumps(tool(seat).call(given).to_tool_message("c"))
    assert f"{MARK} is not invited" in told
    assert "<str, 16 characters> is not invited" in json.dumps(events)
    assert MARK not in json.dumps(events)


def test_values_that_are_no_plain_text_are_found_too() -> None:
    """Dates, decimals, ids, sets, subclasses and models among the arguments leave in no text."""

    class Secretly(str):
        """A text of its own class."""

        __slots__ = ()

    @dataclass
    class Person:
        """A model."""

        name: str

    values: dict[str, object] = {
        "day": date(1990, 5, 17),
        "moment": datetime(2026, 11, 24, 5, 17, 30, tzinfo=UTC),
        "sum": Decimal("1234.56"),
        "id": UUID("12345678-1234-5678-1234-567812345678"),
        "iban": Secretly("DE89370400440532013000"),
        "tags": {"confidential"},
        "person": Person("Ludmilla"),
    }
    said = [*map(str, list(values.values())[:5]), "confidential", "Ludmilla"]
    with capture_events() as events:
        for each in said:
            toolfault.capture_failure(ValueError(f"no {each} here"), tool="t", arguments=values)
    assert len(events) == len(said)
    for each, event in zip(said, events, strict=True):
        assert each not in json.dumps(event), each


def capture_in_a_call(text: str) -> None:
    """Report an error inside of a call that succeeds."""

    @tool
    def ask(q: str) -> None:
        """Report what was caught."""
        toolfault.capture_failure(RuntimeError(f"no {q}"))

    assert ask.call({"q": text}).success


def pass_through(text: str) -> None:
    """Let an exception go on to the caller."""

    @tool(passthrough=(KeyError,))
    def ask(q: str) -> None:
        """Fail."""
        raise KeyError(q)

    with pytest.raises(KeyError):
        ask.call({"q": text})


@pytest.mark.parametrize("act", [capture_in_a_call, pass_through])
def test_no_way_around(act: Callable[[str], None]) -> None:
    """Errors reported within a call, and exceptions a tool lets through, quote no value either."""
    with capture_events() as events:
        act(MARK)
    assert "<str, 16 characters>" in json.dumps(events)
    assert not holds(json.dumps(events))
