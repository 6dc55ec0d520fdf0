"""Redaction: by key, by shape, in every encoding, and never of ordinary errors."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sdk.errors.ordinary_errors import TEMPLATES, ordinary_errors
from tests.sdk.errors.secret_formats import ENCODINGS, PLACES, Secret, formats

from toolfault.errors import (
    REDACTED,
    ConfigError,
    Issue,
    ToolError,
    ToolResult,
    configure_redaction,
    is_secret_key,
    redact_text,
    redacted_repr,
    redaction_policy,
    secret_values,
    to_jsonable,
    without,
)

STAY = [
    "max_tokens",
    "token_limit",
    "token_count",
    "cookie_profile",
    "author",
    "bypass",
    "tokens",
    "session_minutes",
    "tokenizer",
    "secretary",
    "keyboard",
    "monkey",
    "primary_key",
    "key",
    "keys",
    "public_key",
    "author_id",
    "passenger",
    "authority",
    "oauth_provider",
    "cookie_banner",
    "pass_through",
    "compass",
    "signature",
    "user",
    "id",
]
GO = [
    "apiKey",
    "X-Api-Key",
    "client_secret",
    "access_token",
    "cookies",
    "auth",
    "password",
    "PASSWORD",
    "userPassword",
    "db.passwd",
    "pwd",
    "passphrase",
    "secret",
    "secrets",
    "credentials",
    "apikey",
    "Authorization",
    "jwt",
    "token",
    "bearer",
    "otp",
    "ssn",
    "cvv",
    "private_key",
    "secretKey",
    "session_id",
    "session-key",
    "refresh_token",
    "AWS_SECRET_ACCESS_KEY",
    "PGPASSWORD",
    "authToken",
    "idToken",
    "API_KEYS",
    "set-cookie",
    "password2",
    "ｐａｓｓｗｏｒｄ",
]


def test_secret_keys_go_in_every_spelling_and_others_stay() -> None:
    """[C16][P-05] camelCase, snake_case, headers and one word; what only sounds secret stays."""
    assert [key for key in GO if not is_secret_key(key)] == []
    strange = ["", "é", 5, None, b"password", "x" * 10_000]
    assert [key for key in [*STAY, *strange] if is_secret_key(key)] == []


def test_secrets_are_taken_out_and_the_rest_stays() -> None:
    """[C16][A05][A18][A19][E2] What is a secret goes, and only that."""
    for text, shown in [
        ("db password=hunter2 at 10.0.0.5:5432 /srv", "db [REDACTED] at 10.0.0.5:5432 /srv"),
        ("token: abc123def", "[REDACTED]"),
        ("429 from api.example.com key sk-abcdef123456", "429 from api.example.com key [REDACTED]"),
        ("on https://u:p@internal.host/x", "on https://[REDACTED]@internal.host/x"),
        ("postgres://u:p@ss/w@h/db", "postgres://[REDACTED]@h/db"),
        ("http://1234567890abcdef@127.0.0.1:8321", "http://[REDACTED]@127.0.0.1:8321"),
        ("git@github.com:a/b ssh://git@host/x", "git@github.com:a/b ssh://git@host/x"),
        (
            "bad header Authorization: Bearer abc.def.ghi for url https://bob:pw1@h/x",
            "bad header Authorization: [REDACTED] for url https://[REDACTED]@h/x",
        ),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: [REDACTED]"),
        ("Cookie: a=b; c=d\nAccept: x", "Cookie: [REDACTED]\nAccept: x"),
        ('{"user": "bob", "password": "hunter2"}', '{"user": "bob", "password": "[REDACTED]"}'),
        ("{'password': 'hunter2', 'n': 1}", "{'password': '[REDACTED]', 'n': 1}"),
        ('sent {\\"password\\": \\"hunter2\\"}', 'sent {\\"password\\": \\"[REDACTED]\\"}'),
        ('{"password": "hunter2', '{"password": "[REDACTED]'),
        ("connect(password='hunter2', port=1)", "connect([REDACTED], port=1)"),
        ("run --password hunter2 --port 1", "run --password [REDACTED] --port 1"),
        ("<password>hunter2</password>", "<password>[REDACTED]</password>"),
        ("('X-Api-Key', 'abc')", "('X-Api-Key', '[REDACTED]')"),
        ("?token=abc&x=1", "?[REDACTED]&x=1"),
        ("api key: abcdef", "[REDACTED]"),
        ("key AKIAABCDEFGHIJKLMNOP", "key [REDACTED]"),
        ("card 4111 1111 1111 1111", "card [REDACTED]"),
        ("iban DE89 3704 0044 0532 0130 00", "iban [REDACTED]"),
        ("ssn 123-45-6789", "ssn [REDACTED]"),
        ("c2stbGl2ZTEyMzQ1Njc4OTA=", "[REDACTED]"),
        ("736b2d6c6976653132333435363738393061", "[REDACTED]"),
        ("x=%73k-live1234567890", "x=[REDACTED]"),
    ]:
        assert redact_text(text) == shown


def test_what_is_no_secret_stays() -> None:
    """[A16] Numbers that fail their check, prose, and what #57 of the bad inputs lists, stay."""
    for text in [
        "card 4111 1111 1111 1112",
        "order 1234567890123456",
        "iban DE89 3704 0044 0532 0130 01",
        "000-12-3456 and 2024-01-31",
        "commit 0123456789abcdef0123456789abcdef01234567",
        '{"token_count": 5, "author": "x", "session_minutes": 3}',
        '{"otp": 123456, "password": null, "token": true}',
        "http://localhost:8080/@vite/client and https://unpkg.com/@scope/pkg@1.0.0",
        "password: must be at least 8 characters",
        "Unexpected token: identifier",
        "(received str: [REDACTED])",
    ]:
        assert redact_text(text) == text


def _leaks(secret: Secret, encoding: str, place: str) -> list[str]:
    planted = ENCODINGS[encoding](secret.text)
    found = [planted, secret.core]
    if encoding == "percent":
        found.append(ENCODINGS[encoding](secret.core))
    return [text for text in PLACES[place](planted) if any(part in text for part in found)]


@pytest.mark.parametrize(
    ("encoding", "places", "every"),
    [
        ("plain", PLACES, 3),  # each format in four of the twelve
        ("base64", ("arg_value", "message", "bytes"), 3),
        ("percent", ("query", "nested_list", "json_in_string"), 3),
        *(pytest.param(each, PLACES, 1, marks=pytest.mark.long) for each in ENCODINGS),
    ],
)
def test_no_planted_secret_comes_out(encoding: str, places: Iterable[str], every: int) -> None:
    """[C16][L-14] Each of 40 formats, planted in any place, encoded or not, is in no output."""
    secrets = list(formats())
    leaks = [
        (secret.name, place, texts)
        for number, secret in enumerate(secrets)
        for place in list(places)[number % every :: every]
        if (texts := _leaks(secret, encoding, place))
    ]

    assert len(secrets) == 40
    assert leaks == []


def test_padded_text_is_read_as_what_it_pads() -> None:
    """[C16] UTF-16 taken for bytes is readable with its NULs, or what replaced them, left out."""
    padded = "\x00".join("sk-live1234567890")

    assert redact_text(f"got {padded}") == "[REDACTED]"
    assert "l\ufffdi\ufffdv" not in ToolError("t", f"got {padded}").render("llm")


@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.long)])
def test_ordinary_errors_are_left_alone(count: int) -> None:
    """[C16] Of thousands of ordinary errors at most 0.5 % are touched."""
    touched = Counter(
        TEMPLATES[number % len(TEMPLATES)]
        for number, text in enumerate(islice(ordinary_errors(), count))
        if redact_text(text) != text
    )

    assert sum(touched.values()) <= count // 200, touched.most_common(5)


def test_a_cut_never_uncovers_half_a_secret() -> None:
    """[C16] A secret across any edge of the window is not shown in part."""
    secret = "sk-" + "a1" * 20
    for edge, offset in product((200, 24_576), range(-60, 61, 10)):
        text = "x " * ((edge + offset) // 2) + secret + " y" * 20_000

        for limit in (200, None):
            shown = redact_text(text, limit)
            assert "a1a1" not in shown
            assert len(shown) <= (limit or 33_000)


def test_a_private_key_across_the_cut_is_gone() -> None:
    """[C16] The end of a key whose beginning fell into the gap is not shown."""
    body = "\n".join("QmFzZTY0" * 8 for _ in range(1_500))
    text = f"x -----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY----- tail"

    assert redact_text(text).startswith("x [REDACTED]")
    assert redact_text(text).endswith("[REDACTED] tail")
    assert "QmFzZTY0" not in redact_text(text)


def test_a_megabyte_is_bounded() -> None:
    """[L-16] Text of any size and shape gives at most the window."""
    for unit in ["\\", "a=", "password=\"'", "sk-", "eyJa.", "://a:", "%4", "V", "{"]:
        assert len(redact_text((unit * (1 << 20))[: 1 << 20])) <= 33_000


@given(st.text(alphabet="abkst-=:/@\"' {}[]\\%&;,.0123456789\n", max_size=300))
def test_redaction_is_idempotent_and_bounded(text) -> None:
    """[C16] Text that was cleaned once is not changed again, and no text makes it raise."""
    once = redact_text(text)

    assert redact_text(once) == once
    assert len(redact_text(text, 50)) <= 50


@pytest.fixture
def _default_policy() -> Iterator[None]:
    yield
    configure_redaction()


@pytest.mark.usefixtures("_default_policy")
def test_keys_can_be_added_and_kept() -> None:
    """[C16] redact_keys and keep_keys are configured once for the whole process."""
    configure_redaction(redact_keys=["customerName", "iban"], keep_keys=["session_id"])

    assert is_secret_key("customer_name")
    assert is_secret_key("new-customer-name")
    assert not is_secret_key("customer")
    assert not is_secret_key("sessionId")
    assert is_secret_key("password")
    assert redact_text("iban=DE12") == REDACTED
    issue = Issue("customer_name", "wrong_type", received="'Ada'", received_type="str")
    assert issue.received == REDACTED


@pytest.mark.usefixtures("_default_policy")
def test_a_redactor_has_the_last_word() -> None:
    """[C16] A function of the host sees every text after the built-in rules."""
    configure_redaction(redactor=lambda text: text.replace("Ada", "<name>"))

    error = ToolError("t", "Ada sent password=x", field="f", received="'Ada'", received_type="str")
    assert error.render("llm") == "Error: <name> sent [REDACTED] (received str: '<name>')"
    assert redacted_repr(["Ada"]) == "['<name>']"
    assert to_jsonable({"n": "Ada"}, redact=True) == {"n": "<name>"}


@pytest.mark.usefixtures("_default_policy")
def test_a_broken_redactor_drops_the_text() -> None:
    """[C16] Fail closed: what the redactor cannot clean is not shown at all."""
    broken: list[Any] = [lambda text: 1 / 0, lambda text: None, lambda text: text.nope]
    for redactor in broken:
        configure_redaction(redactor=redactor)

        error = ToolError("t", "secret place")
        assert error.render("llm") == "Error: [REDACTED]"
        assert "secret place" not in json.dumps(error.to_llm_payload())


def test_bad_settings_say_what_to_write() -> None:
    """[C16] A setting that cannot work is refused with the remedy."""
    with pytest.raises(ConfigError, match="sequence of keys"):
        configure_redaction(redact_keys="password")
    with pytest.raises(ConfigError, match="at least one letter"):
        configure_redaction(keep_keys=["123"])
    with pytest.raises(ConfigError, match="function"):
        configure_redaction(redactor="x")  # type: ignore[arg-type]
    assert redaction_policy().redactor is None


@pytest.mark.usefixtures("_default_policy")
def test_invented_keys_do_not_fill_the_memory() -> None:
    """[P-05] What is remembered of the keys that a model invents is bounded."""
    configure_redaction()
    is_secret_key("loaded")
    tracemalloc.start()
    try:
        for number in range(10_000):
            is_secret_key(f"{number:05}_invented" * 4)
        for number in range(50):
            is_secret_key(f"{number:05}_invented" * 4_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 1_300_000


def test_a_quoted_secret_leaves_nothing_of_itself() -> None:
    """Neither does one that begins with another, nor one of more characters than are quoted."""
    long = "".join(f"{number:04}" for number in range(150))
    values = secret_values({"password": "abcd", "token": "abcdef", "api_key": long})

    assert without(f"abcdef, abcd and {long}", values) == f"{REDACTED}, {REDACTED} and {REDACTED}"
    assert without(f"cut: {long[:500]}", values) == f"cut: {REDACTED}"


@pytest.mark.parametrize("control", ["\x00", "\x0b", "\x0c", "\r", "\x1c", "\x1f", "\x85"])
def test_a_control_character_ends_no_secret(control: str) -> None:
    """[P-05] What is shown as a replacement character hides no part of a secret behind it."""
    for text in (
        f"password=hun{control}ter2",
        f"https://bob:hun{control}ter2@h/x",
        f"Authorization:{control}Basic{control}hunter2hunter2=",
    ):
        shown = (
            ToolResult(text, success=False).message,
            str(Issue("f", "invalid_input", text, received=text).received),
            ToolError("t", text, llm_message=text).render("llm"),
        )

        assert not [words for words in shown if "ter2" in words]
