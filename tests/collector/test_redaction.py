"""The second net: secrets that a sender forgot are not stored, and ordinary text stays as it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, select
from tests.factories import failure, success
from tests.sdk.errors.ordinary_errors import ordinary_errors
from tests.sdk.errors.secret_formats import ENCODINGS, PLACES, Secret, formats

from toolfault_collector.clock import now_us
from toolfault_collector.engine import read_connection, write_transaction
from toolfault_collector.projects import ensure_project
from toolfault_collector.redact import may_hold_secret, redact, redact_bluntly
from toolfault_collector.store import store_events
from toolfault_collector.tables import metadata, tool_call

# Without a prefix or a name around them they look like any other word or number.
SHAPELESS = {"aws_secret_bare", "card"}
KNOWN = [secret for secret in formats() if secret.name not in SHAPELESS]


def _leaking(secret: Secret) -> dict[str, Any]:
    """A failure with *secret* in every text that a person may read."""
    text = f"cannot go on: {secret.text}, giving up"
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
        return repr([conn.execute(select(table)).all() for table in metadata.sorted_tables])


def test_no_secret_is_stored(engine: Engine) -> None:
    """A token of any known format is in no table, whatever text it came in; the row says so."""
    events = [_leaking(secret) for secret in KNOWN]

    _store(engine, *events)

    stored = _everything(engine)
    assert [secret.name for secret in KNOWN if secret.core in stored] == []
    with read_connection(engine) as conn:
        flags = conn.execute(select(tool_call.c.flags)).scalars().all()
    assert all("redacted" in each for each in flags)


@pytest.mark.parametrize("field", ["password", "auth.api_key", "headers.Authorization", "pwd"])
def test_what_was_received_for_a_secret_is_one(engine: Engine, field: str) -> None:
    """The name of the field says it, where the value does not."""
    issue = {"code": "wrong_type", "field": field, "received": "correct horse"}
    event = failure(field=field, error={"received": "correct horse", "issues": [issue]})

    _store(engine, event)

    stored = _everything(engine)
    assert "correct horse" not in stored
    assert "[redacted:named]" in stored


def test_named_members_are_secret(engine: Engine) -> None:
    """Tags, context and unknown members are redacted by their names."""
    secrets = {"client_secret": "abcdefgh", "apiKey": "12345678", "db-password": "tr0ub4dor"}

    _store(engine, success(tags=secrets), success(planet=secrets))

    stored = _everything(engine)
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
    ],
)
def test_what_only_looks_like_a_secret(text: str) -> None:
    """Names that contain such a word, code and prose are no secrets."""
    assert redact(text) == text


@pytest.mark.parametrize("place", PLACES)
def test_what_the_sdk_cleaned_stays(place: str) -> None:
    """No text that the SDK makes of any secret in any encoding is changed again."""
    texts = [
        text
        for secret in formats()
        for encode in ENCODINGS.values()
        for text in PLACES[place](encode(secret.text))
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
        text = f"found {secret.text} there"
        assert redact(text) != text
        assert may_hold_secret(text.encode()), secret.name


def test_plain_events_need_no_look() -> None:
    """An ordinary failure is passed by at the cost of the quick look."""
    assert not may_hold_secret(msgspec.json.encode(failure()))


HOSTILE = (
    "-eyJ", "eyJ.", "SG.", "://a:", "-----BEGIN PRIVATE KEY-----", "password=", "a-a-", "a_",
    "Bearer ", " eyJaaaaaaaaa.", '"password": "', "\\'token\\'=", "12345678:AA", "services/",
    "password:password:", "x://u:p", 'password = \\"a',
)  # fmt: skip


@pytest.mark.timeout(60)  # a second or two where it is linear, hours where it is not
@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_is_a_trap(unit: str) -> None:
    """A megabyte of any beginning of a secret is read through once, not over and over."""
    text = unit * (1_048_576 // len(unit))

    assert len(redact(text)) > 0
    assert len(redact_bluntly(text)) > 0
