"""The second net: secrets that a sender forgot are not stored, and ordinary text stays as it is."""

from __future__ import annotations

import gc
import json
import sys
from itertools import islice
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, select
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import change, failure, success
from tests.sdk.errors.ordinary_errors import ordinary_errors
from tests.sdk.errors.secret_formats import ENCODINGS, PLACES, Secret, formats
from tests.tables import tables_of

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.protocol.records import TimePolicy
from toolfault_collector.protocol.redaction.prefilter import may_hold_secret
from toolfault_collector.protocol.redaction.rules import redact, redact_bluntly
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import change as changes
from toolfault_collector.storage.tables import tool_call

MIB = 1_048_576

KNOWN = list(formats())


def _leaking(secret: Secret) -> dict[str, Any]:
    """A failure with *secret* in every text that a person may read."""
    return _saying(f"cannot go on: {secret.text}, giving up")


def _saying(text: str) -> dict[str, Any]:
    """A failure with *text* in every text that a person may read."""
    return failure(
        tags={"note": text},
        planet={"notes": [text]},
        args_diff=[{"path": "a", "change": "changed", "from": text}],
        error={
            "expected": text,
            "received": text,
            "snippet": text,
            "retry_hint": text,
            "retry_context": {"seen": [text]},
            "issues": [
                {"code": "wrong_type", "field": "a", "message": text, "received": text},
            ],
            "renderings": {"user": text, "llm": text, "system": text},
            "exception": {"type": "E", "message": text, "traceback": f"  File x\n{text}\n"},
        },
    )


def _store(engine: Engine, *events: dict[str, Any]) -> None:
    with write_transaction(engine) as conn:
        receipt = store_events(
            conn,
            ensure_project(conn, "demo"),
            [msgspec.json.encode(event) for event in events],
            received_at=now_us(),
        )
    assert receipt.accepted == len(events), receipt.rejected


def _everything(engine: Engine) -> str:
    with read_connection(engine) as conn:
        return repr([conn.execute(select(table)).all() for table in tables_of(engine)])


def test_no_secret_is_stored(sqlite_engine: Engine) -> None:
    """A token of any known format is in no table, whatever text it came in; the row says so."""
    events = [_leaking(secret) for secret in KNOWN]

    _store(sqlite_engine, *events)

    stored = _everything(sqlite_engine)
    assert [secret.name for secret in KNOWN if secret.core in stored] == []
    with read_connection(sqlite_engine) as conn:
        flags = conn.execute(select(tool_call.c.flags)).scalars().all()
    assert all("redacted" in each for each in flags)


@POSTGRESQL_IS_LONG
def test_no_secret_is_stored_as_the_label_of_a_change(engine: Engine) -> None:
    """A change that is called by a token is kept without it, says so, and still fits its column."""
    labels = [f"use {secret.text} now" for secret in KNOWN]
    labels.append("x://a:b@h " * 20)

    _store(engine, *(change(label) for label in labels))

    stored = _everything(engine)
    assert [secret.name for secret in KNOWN if secret.core in stored] == []
    with read_connection(engine) as conn:
        flags = conn.execute(select(changes.c.flags)).scalars().all()
    assert all("redacted" in each for each in flags)


@pytest.mark.parametrize("encoding", ["base64", "percent"])
def test_no_encoded_secret_is_stored(sqlite_engine: Engine, encoding: str) -> None:
    """Neither is what base64 or percent codes make of it; the digits of a card in base64 pass."""
    known = [secret for secret in KNOWN if (secret.name, encoding) != ("card", "base64")]
    # In base64 nothing of a text stands by itself, in percent codes its plain letters do.
    encode = ENCODINGS[encoding]
    wanted = {
        secret.name: encode(secret.text if encoding == "base64" else secret.core)
        for secret in known
    }

    _store(sqlite_engine, *(_saying(f"sent q={encode(secret.text)} to it") for secret in known))

    stored = _everything(sqlite_engine)
    assert [name for name, text in wanted.items() if text in stored] == []


def test_a_card_may_be_a_number(sqlite_engine: Engine) -> None:
    """A payment card is recognised by its check digit, in groups or as a number; others stay."""
    card = next(secret.text for secret in KNOWN if secret.name == "card")
    groups = " ".join(card[at : at + 4] for at in range(0, 16, 4))
    wrong = card[:-1] + str((int(card[-1]) + 1) % 10)

    _store(
        sqlite_engine,
        failure(error={"retry_context": {"seen": int(card), "order": int(wrong)}}),
        failure(error={"received": f"'{groups}'"}),
        failure(error={"received": f"order {wrong} of 1732267740123456"}),
    )

    stored = _everything(sqlite_engine)
    assert card not in stored
    assert groups not in stored
    assert stored.count(wrong) == 2
    assert "1732267740123456" in stored


def test_what_was_received_for_a_secret_is_one(sqlite_engine: Engine) -> None:
    """The name of the field says it, where the value does not."""
    for field in ("password", "auth.api_key", "headers.Authorization", "pwd"):
        issue = {"code": "wrong_type", "field": field, "received": "correct horse"}
        error = {"received": "correct horse", "issues": [issue]}
        _store(sqlite_engine, failure(field=field, error=error))

    stored = _everything(sqlite_engine)
    assert "correct horse" not in stored
    assert stored.count("[redacted:named]") >= 4


def test_named_members_are_secret(sqlite_engine: Engine) -> None:
    """Tags, context and unknown members are redacted by their names."""
    secrets = {"client_secret": "abcdefgh", "apiKey": "12345678", "db-password": "tr0ub4dor"}

    _store(sqlite_engine, success(tags=secrets), success(planet=secrets))

    stored = _everything(sqlite_engine)
    assert [value for value in secrets.values() if value in stored] == []


@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.long)])
def test_ordinary_text_is_left_alone(count: int) -> None:
    """Not one of so many ordinary errors is touched, though many speak of passwords and tokens."""
    texts = list(islice(ordinary_errors(), count))

    assert [text for text in texts if redact(text) != text] == []


@pytest.mark.parametrize(
    "text",
    [
        '{"token_count": 5, "author": "x1234567", "session_minutes": 3}',
        "password: must have at least 8 characters, 1 digit",
        "max_tokens=4096 is over the limit",
        "see https://user@example.org/a:b",
        "Unexpected token: '}' at 17",
        "token = get_token(user2)",
        "sk-learning-rate is no option",
        "Bearer authentication is required",
        "ratio 3:4@home",
        "order 4111111111111112 was not found at 1732267740123456",
        "object a94a8fe5ccb19ba61c4c0873d391e987982fbbd3 is missing",
        "/srv/App2/Data3/Cache4/Index5/Shard6/Block7 is full",
        "GET /search?q=100%25%20wool%2Fsilk&sort=price failed",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    ],
)
def test_what_only_looks_like_a_secret(text: str) -> None:
    """Names that contain such a word, code and prose are no secrets."""
    assert redact(text) == text


@pytest.mark.parametrize("every", [12, pytest.param(3, marks=pytest.mark.long)])
def test_what_the_sdk_cleaned_stays(every: int) -> None:
    """No text that the SDK makes of a secret is changed again, wherever the secret was."""
    encodings = list(ENCODINGS.values())
    texts = [
        text
        for at, make in enumerate(PLACES.values())
        for number, secret in enumerate(KNOWN[at % every :: every])  # each in one place, or in four
        for text in make(encodings[(at + number) % len(encodings)](secret.text))
    ]

    assert [text for text in texts if redact(text) != text] == []


def test_redacting_twice_is_redacting_once() -> None:
    """What was cleaned here stays, also when a rejected event is stored later."""
    for secret in KNOWN:
        once = redact(f"found {secret.text} there")
        assert redact(once) == once
        assert redact_bluntly(once) == once or "[redacted" in redact_bluntly(once)


def test_every_recognised_secret_is_worth_a_look() -> None:
    """The quick look never misses what the thorough one would find."""
    for secret in KNOWN:
        for name, encode in ENCODINGS.items():
            text = f"found {encode(secret.text)} there"
            if (secret.name, name) != ("card", "base64"):
                assert redact(text) != text
                assert may_hold_secret(msgspec.json.encode({"a": f"line\n{text}"})), secret.name


def test_plain_events_need_no_look() -> None:
    """An ordinary failure is passed by at the cost of the quick look."""
    assert not may_hold_secret(msgspec.json.encode(failure()))


@given(
    st.text(st.sampled_from("ab1@/: \"'é€𝄞%\\"), max_size=12),
    st.text(st.sampled_from("ab1é€𝄞%\\"), max_size=110),
    st.text(st.sampled_from("ab1:é€𝄞%\\"), max_size=210),
)
def test_every_login_in_an_address_is_worth_a_look(before: str, user: str, password: str) -> None:
    """However long name and password are, whatever they are made of and stand behind."""
    text = f"{before}x://{user}:{password}@host and me@example.org"

    if redact(text) != text:
        assert may_hold_secret(json.dumps(text).encode())
        assert may_hold_secret(msgspec.json.encode(text))


def test_an_address_and_a_mailbox_are_no_login() -> None:
    """An event with both is as ordinary as one with either."""
    assert not may_hold_secret(b"https://example.org/a does not know me@example.org")


_LENGTHS = {
    "error.exception.traceback": MIB // 16, "error.received": MIB // 64,
    "error.snippet": MIB // 64, "error.renderings.user": MIB // 128,
    "error.renderings.llm": MIB // 128, "error.renderings.system": MIB // 128,
    "extra": MIB // 128,
}  # fmt: skip


def _near_secrets(count: int) -> list[dict[str, Any]]:
    """So many failures of 128 KiB in which secrets have to be looked for everywhere."""
    text = {name: ("password=hunter2hunter " * 3_000)[:size] for name, size in _LENGTHS.items()}
    error: dict[str, Any] = {name: text[f"error.{name}"] for name in ("received", "snippet")}
    error["exception"] = {"type": "E", "traceback": text["error.exception.traceback"]}
    readers = ("user", "llm", "system")
    error["renderings"] = {each: text[f"error.renderings.{each}"] for each in readers}
    return [failure(session_id=None, error=error, planet=text["extra"]) for _ in range(count)]


def test_only_so_much_of_a_batch_is_searched(sqlite_engine: Engine) -> None:
    """Texts beyond a MiB that may hold secrets are not kept; each says so and has a flag."""
    _store(sqlite_engine, *_near_secrets(9))

    stored = _everything(sqlite_engine)
    assert "hunter2" not in stored
    with read_connection(sqlite_engine) as conn:
        calls = conn.execute(select(tool_call).order_by(tool_call.c.id)).mappings().all()
    for call in calls:
        for member, text in {
            "error.received": call["received"],
            "error.renderings.llm": call["text_llm"],
            "error.exception.traceback": call["traceback"],
            "extra": call["extra"]["planet"],
        }.items():
            kept = not text.startswith("[not kept: ")
            assert kept == text.startswith("password=")
            assert kept == (f"unsearched:{member}" not in call["flags"])
    assert calls[0]["flags"] == ["redacted"]
    assert "unsearched:error.received" in calls[-1]["flags"]
    searched = sum(
        length
        for call in calls
        for member, length in _LENGTHS.items()
        if f"unsearched:{member}" not in call["flags"]
    )
    assert 0.9 * MIB < searched <= MIB


@pytest.mark.parametrize(("policy", "count"), [("client", 7), ("import", 9)])
def test_what_an_sdk_sends_and_what_is_imported_is_searched_whole(
    sqlite_engine: Engine, policy: TimePolicy, count: int
) -> None:
    """A batch of one MiB, the most that an SDK sends, loses no text; neither does an import."""
    with write_transaction(sqlite_engine) as conn:
        events = _near_secrets(count)
        project = ensure_project(conn, "demo")
        store_events(conn, project, events, received_at=now_us(), time_policy=policy)

    with read_connection(sqlite_engine) as conn:
        flags = conn.execute(select(tool_call.c.flags)).scalars().all()
    assert flags == [["redacted"]] * count


@pytest.mark.long
@pytest.mark.timeout(60)  # a second where it is linear, minutes where it is not
@pytest.mark.parametrize("unit", ["://", "@", "://a:@", "0", "\\u11"])
def test_the_quick_look_is_no_trap(unit: str) -> None:
    """Four megabytes of what may be the sign of a secret are looked at once."""
    may_hold_secret((unit * (4 * MIB // len(unit))).encode())


HOSTILE = (
    "-eyJ", "eyJ.", "SG.", "://a:", "-----BEGIN PRIVATE KEY-----", "password=", "a-a-", "a_",
    "Bearer ", " eyJaaaaaaaaa.", '"password": "', "\\'token\\'=", "12345678:AA", "services/",
    "password:password:", "x://u:p", "4111 1111 1111 ", "4111", "%41", "c2st", "aB3/", "a%3a%2f%2f",
    'password = \\"a',
)  # fmt: skip


def _work(text: str) -> int:
    """Return how many calls it takes to redact *text*: a measure that no busy machine changes."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.disable()  # what is finalised calls too, and is not of this text
    sys.setprofile(count)
    try:
        redact(text)
        redact_bluntly(text)
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def test_twice_the_text_is_at_most_twice_the_work() -> None:
    """Any beginning of a secret, over and over, is looked at once."""
    work = {
        unit: [_work(unit * (size // len(unit))) for size in (4_096, 8_192)] for unit in HOSTILE
    }

    assert {unit: both for unit, both in work.items() if both[1] > 2.1 * both[0]} == {}


@pytest.mark.long
@pytest.mark.timeout(60)  # a second or two where it is linear, hours where it is not
@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_is_a_trap(unit: str) -> None:
    """A megabyte of any beginning of a secret is read through once, not over and over.

    What one regular expression does is no call that `_work` could count.
    """
    text = unit * (1_048_576 // len(unit))

    redact(text)
    redact_bluntly(text)


def test_what_pydantic_was_given_goes_with_its_secret_name() -> None:
    """The name stands in the line above ``input_value``; other fields keep their values."""
    text = (
        "2 validation errors for login\nuser.api_key\n  String should be short [type=too_long,"
        " input_value=['a, b]', 'correct horse'], input_type=list]\nseats\n  Input should be a"
        " valid integer [type=int_type, input_value='two', input_type=str]"
    )
    cleaned = redact(text)
    assert cleaned == text.replace("['a, b]', 'correct horse']", "[redacted:named]")
    assert redact(cleaned) == cleaned
    assert may_hold_secret(json.dumps(text).encode())
    assert redact(text.replace("api_key", "token_count")) == text.replace("api_key", "token_count")
