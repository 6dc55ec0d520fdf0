"""The server's own log: one JSON object a line, no control characters, nothing of what was sent."""

from __future__ import annotations

import io
import json
import logging
import random
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import structlog
from tests.factories import failure, success
from tests.running import RunningCollector
from tests.sdk.errors.secret_formats import ENCODINGS, formats

from toolfault_collector import log

CONTROLS = "a\r\nb\x1b[31m\x1b]8;;http://x\x07c\u2028\u202ed\u200be\x00\x7f\x9b1m"
# Every secret in one encoding, every encoding of some secret.
SECRETS = [
    encode(secret.core)
    for number, secret in enumerate(formats())
    for encode in [list(ENCODINGS.values())[number % len(ENCODINGS)]]
]


@pytest.fixture(scope="module")
def talkative(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningCollector]:
    """A collector at the most talkative level."""
    folder = tmp_path_factory.mktemp("talkative")
    database = folder / "toolfault.db"
    shutil.copyfile(sqlite_template, database)
    level = {"TOOLFAULT_LOG_LEVEL": "debug"}
    with RunningCollector(f"sqlite:///{database}", folder=folder, **level) as running:
        yield running


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


def test_no_secret_is_logged(talkative: RunningCollector) -> None:
    """Canaries in every part of a request, well formed and not, at the most talkative level."""
    address = f"{talkative.url}/v1/events"
    said_before = len(talkative.output())
    for secret in SECRETS:
        assert talkative.post(*_places(secret), resource={"agent": secret}).status_code == 200
    post = talkative.client.post
    for secret in SECRETS[::7]:
        body = json.dumps({"events": [secret]}).encode()
        for content in (body[:-3], body + b"}", b'"' + secret.encode() + b'"', b"\xff" + body):
            post(address, content=content, headers={"Content-Type": "application/json"})
        post(f"{address}?key={secret}", content=body)
        post(address, headers={"Authorization": f"Bearer {secret[:60]}"})
        post(address, headers={"X-Api-Key": secret[:60], "Cookie": secret[:60]})
    said = talkative.output()[said_before:]

    assert len(said.splitlines()) > len(SECRETS)
    assert [secret for secret in SECRETS if secret in said] == []
    assert talkative.key not in talkative.output()


def test_no_text_forges_a_line(talkative: RunningCollector) -> None:
    """Whatever is in a path, a name or a method: one object a line, controls as escapes."""
    draw = random.Random(5)
    for _ in range(12):
        text = "".join(draw.sample(CONTROLS, 6)) + '{"event":"forged"}' + "x" * 3_000
        talkative.client.get(f"{talkative.url}/{quote(text)}")
        talkative.post(failure(text), failure(seq=text))
    lines = talkative.output().split("\n")[:-1]

    assert len(lines) > 24
    for line in lines:
        assert json.loads(line)["event"] != "forged"
        assert not any(unicodedata.category(letter) in ("Cc", "Cf", "Zl") for letter in line)
        assert len(line) < 8_000


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        """Say that somebody looks at it."""
        return True


@pytest.mark.parametrize("stream", [_Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_a_terminal_is_written_to_for_eyes(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a line is text with the same in it, elsewhere JSON; neither lets a text forge a line.

    Each says which module it is of, ours as those of libraries.
    """
    monkeypatch.setattr(sys, "stderr", stream)
    log.configure("info")

    structlog.get_logger("ours").warning("an_event", path=CONTROLS, listed=[CONTROLS])
    logging.getLogger("theirs").error("%s", CONTROLS)

    lines = stream.getvalue().split("\n")[:-1]
    assert len(lines) == 2
    for line, name in zip(lines, ("ours", "theirs"), strict=True):
        if stream.isatty():
            line = re.sub("\x1b\\[[0-9;]*m", "", line)  # its own colours
            assert not line.startswith("{")
            assert f"[{name}]" in line
        else:
            assert json.loads(line)["logger"] == name
        assert not any(unicodedata.category(letter) in ("Cc", "Cf", "Zl") for letter in line)


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
