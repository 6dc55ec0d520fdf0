"""The second net: secrets that a sender forgot are not stored, and ordinary text stays as it is."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, select
from tests.factories import failure, success
from tests.sdk.errors.ordinary_errors import ordinary_errors
from tests.sdk.errors.secret_formats import ENCODINGS, PLACES, Secret, formats
from tests.tables import tables_of

from toolfault_collector.clock import now_us
from toolfault_collector.engine import read_connection, write_transaction
from toolfault_collector.hints import may_hold_secret
from toolfault_collector.projects import ensure_project
from toolfault_collector.redact import redact, redact_bluntly
from toolfault_collector.store import store_events
from toolfault_collector.tables import tool_call

KNOWN = list(formats())


def _leaking(secret: Secret) -> dict[str, Any]:
    """A failure with *secret* in every text that a person may read."""
    return _saying(f"cannot go on: {secret.text}, giving up")


def _saying(text: str) -> dict[str, Any]:
    """A failure with *text* in every text that a person may read."""
    return failure(
        tags={"note": text},
        planet={"notes": [text]},
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


def test_ordinary_text_is_left_alone() -> None:
    """Not one of 5,000 ordinary errors is touched, though many speak of passwords and tokens."""
    texts = list(ordinary_errors())

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


def test_what_the_sdk_cleaned_stays() -> None:
    """No text that the SDK makes of a secret is changed again, wherever the secret was."""
    encodings = list(ENCODINGS.values())
    texts = [
        text
        for at, make in enumerate(PLACES.values())
        for number, secret in enumerate(KNOWN[at % 3 :: 3])  # each in four of the twelve places
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

    sys.setprofile(count)
    try:
        redact(text)
        redact_bluntly(text)
    finally:
        sys.setprofile(None)
    return calls


def test_twice_the_text_is_at_most_twice_the_work() -> None:
    """Any beginning of a secret, over and over, is looked at once."""
    work = {
        unit: [_work(unit * (size // len(unit))) for size in (16_384, 32_768)] for unit in HOSTILE
    }

    assert {unit: both for unit, both in work.items() if both[1] > 2.1 * both[0]} == {}


@pytest.mark.long
@pytest.mark.timeout(60)  # a second or two where it is linear, hours where it is not
@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_is_a_trap(unit: str) -> None:
    """A megabyte of any beginning of a secret is read through once, not over and over."""
    text = unit * (1_048_576 // len(unit))

    assert len(redact(text)) > 0
    assert len(redact_bluntly(text)) > 0
