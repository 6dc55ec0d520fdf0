"""The server's own log: one JSON object a line, no control characters, nothing of what was sent."""

from __future__ import annotations

import json
import random
import unicodedata
from pathlib import Path
from urllib.parse import quote

import pytest
import structlog
from tests.factories import failure, success
from tests.running import RunningCollector
from tests.sdk.errors.secret_formats import ENCODINGS, formats

from toolfault_collector import log

CONTROLS = "a\r\nb\x1b[31m\x1b]8;;http://x\x07c\u2028\u202ed\u200be\x00\x7f\x9b1m"
SECRETS = [encode(secret.core) for secret in formats() for encode in ENCODINGS.values()]


def _places(secret: str) -> list[dict[str, object]]:
    """Events with *secret* where it can stand: stored, cut, repaired, refused."""
    return [
        failure(error={"received": secret, "exception": {"message": secret, "traceback": secret}}),
        failure(tool=secret[:64], session_id=secret, tags={"a": secret}, planet=secret),
        failure(seq=secret),
        failure(type=secret),
        failure(event_id=secret),
        failure(occurred_at=secret),
        success(model=secret * 40),
        {secret: secret},
    ]


def test_no_secret_is_logged(sqlite_url: str, tmp_path: Path) -> None:
    """Canaries in every part of a request, well formed and not, at the most talkative level."""
    with RunningCollector(sqlite_url, folder=tmp_path, TOOLFAULT_LOG_LEVEL="debug") as server:
        address = f"{server.url}/v1/events"
        for secret in SECRETS:
            assert server.post(*_places(secret), resource={"agent": secret}).status_code == 200
        for secret in SECRETS[::7]:
            body = json.dumps({"events": [secret]}).encode()
            for content in (body[:-3], body + b"}", b'"' + secret.encode() + b'"', b"\xff" + body):
                server.client.post(
                    address, content=content, headers={"Content-Type": "application/json"}
                )
            server.client.post(f"{address}?key={secret}", content=body)
            server.client.post(address, headers={"Authorization": f"Bearer {secret[:60]}"})
            server.client.post(address, headers={"X-Api-Key": secret[:60], "Cookie": secret[:60]})
        said = server.output()

    assert len(said.splitlines()) > len(SECRETS)
    assert [secret for secret in SECRETS if secret in said] == []
    assert server.key not in said


def test_no_text_forges_a_line(sqlite_url: str, tmp_path: Path) -> None:
    """Whatever is in a path, a name or a method: one object a line, controls as escapes."""
    draw = random.Random(5)
    with RunningCollector(sqlite_url, folder=tmp_path, TOOLFAULT_LOG_LEVEL="debug") as server:
        for _ in range(40):
            text = "".join(draw.sample(CONTROLS, 6)) + '{"event":"forged"}' + "x" * 3_000
            server.client.get(f"{server.url}/{quote(text)}")
            server.post(failure(text), failure(seq=text))
        lines = server.output().split("\n")[:-1]

    assert len(lines) > 40
    for line in lines:
        assert json.loads(line)["event"] != "forged"
        assert not any(unicodedata.category(letter) in ("Cc", "Cf", "Zl") for letter in line)
        assert len(line) < 8_000


def test_an_exception_is_logged_by_its_places(capsys: pytest.CaptureFixture[str]) -> None:
    """Where it was raised and what it was caused by, innermost last, and never what it says."""

    def inner() -> None:
        raise ValueError("hunter2 is in the text")

    log.configure("info")
    try:
        inner()
    except ValueError as error:
        try:
            raise KeyError("hunter2") from error
        except KeyError:
            structlog.get_logger("test").exception("failed")
    finally:
        structlog.reset_defaults()

    (line,) = capsys.readouterr().err.splitlines()
    assert "hunter2" not in line
    told = json.loads(line)["exception"].splitlines()
    assert told[0] == "builtins.KeyError"
    assert "builtins.ValueError" in told
    assert told[-1].endswith(" inner")
