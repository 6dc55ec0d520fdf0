"""Settings: arguments over variables over defaults, each documented; and what ``init`` costs."""

from __future__ import annotations

import inspect
import os
import subprocess
import uuid
from collections.abc import Iterator
from datetime import datetime
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sdk.telemetry.collector import Server, status
from tests.sdk.telemetry.conftest import Doctor, MakeClient, a_call, python

import toolfault
from toolfault.errors import configure_redaction, is_secret_key
from toolfault.testing import MemoryTransport, capture_events
from toolfault.tools import set_defaults

DOCS = Path(__file__).parents[3] / "docs" / "configuration-sdk.md"
FOREIGN = ("OTEL_", "TOOLFAULT_", "GITHUB_", "CI", "GIT_")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test takes a setting from where it runs, or leaves one behind."""
    for name in os.environ:
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    yield
    for name in os.environ:
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    toolfault.init()


def started(**arguments: Any) -> Any:
    """The settings that a client starts with."""
    client = toolfault.init(transport=MemoryTransport(), **arguments)
    toolfault.close(0.0)
    assert client is not None
    return client.config


def test_every_setting_is_documented() -> None:
    """There are at most 16; each has its argument and its variable in the table of the docs."""
    settings_ = set(inspect.signature(toolfault.init).parameters) - {"transport", "clock"}
    assert len(settings_) <= 16
    table = DOCS.read_text("utf-8")
    for name in settings_:
        assert f"| `{name}` |" in table
        assert f"`TOOLFAULT_{name.upper()}`" in table or name == "before_send"


def test_arguments_win_over_variables_over_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each source is asked in turn."""
    monkeypatch.setenv("TOOLFAULT_AGENT", "from variable")
    monkeypatch.setenv("TOOLFAULT_SAMPLE_RATE", "0.25")
    config = started(agent="from argument")
    assert (config.agent, config.sample_rate, config.successes) == ("from argument", 0.25, "folded")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("dsn", " http://KEY@h ", "http://KEY@h"),
        ("successes", "all", "all"),
        ("failure_sample_rate", "1", 1.0),
        ("ignore", "timeout, not_found", ("timeout", "not_found")),
        ("capture_values", "on", True),
        ("redact_keys", "iban,customer", ("iban", "customer")),
        ("keep_keys", "session", ("session",)),
        ("coerce", "YES", True),
        ("hints", "derived", "derived"),
    ],
)
def test_variables_are_read_as_text(
    name: str, text: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every setting that can be text has a variable."""
    monkeypatch.setenv(f"TOOLFAULT_{name.upper()}", text)
    assert getattr(started(), name) == value


def test_settings_end_with_the_client_they_were_given_to() -> None:
    """The next ``init``, and the end of a test's block, forget them; what others set stays."""

    @toolfault.tool
    def double(count: int) -> int:
        return 2 * count

    def state() -> tuple[bool, bool, bool, bool]:
        hinted = "Hint" in double.call({"cuont": 5}).message
        succeeds = double.call({"count": "5"}).success
        return succeeds, hinted, is_secret_key("iban"), is_secret_key("vin")

    configure_redaction(redact_keys=["vin"])
    given: dict[str, Any] = {"coerce": True, "hints": "derived", "redact_keys": ["iban"]}
    try:
        with capture_events(**given):
            assert state() == (True, True, True, True)
        assert state() == (False, False, False, True)
        toolfault.init(**given)
        with capture_events(coerce=False):
            assert state() == (False, False, False, True)
        assert state() == (True, True, True, True)
        configure_redaction()
        assert state() == (True, True, True, False)
        toolfault.init()
        assert state() == (False, False, False, False)
        set_defaults(coerce=True, hints="derived")
        toolfault.init()
        assert state()[:2] == (True, True)
        toolfault.init(coerce=False)
        assert state()[0] is False
    finally:
        configure_redaction()
        set_defaults(coerce=False, hints="off")


def test_the_spool_can_be_named_by_a_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is captured lies in the directory that ``TOOLFAULT_SPOOL_DIR`` names."""
    monkeypatch.setenv("TOOLFAULT_SPOOL_DIR", str(tmp_path / "spool"))
    toolfault.init("http://KEY@127.0.0.1:1")
    try:
        toolfault.record_change("x")
        assert list((tmp_path / "spool").rglob("*.seg"))
    finally:
        toolfault.close(0.0)


def test_a_wrong_setting_falls_back_to_the_next_source(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong argument is named with what is expected, and the variable counts."""
    monkeypatch.setenv("TOOLFAULT_SUCCESSES", "all")
    assert started(successes="some").successes == "all"
    said = "init(successes=...) is ignored: expected `folded` or `all`"
    assert [record.getMessage() for record in caplog.records] == [said]
    caplog.clear()
    monkeypatch.setenv("TOOLFAULT_DSN", "http://KEY@127.0.0.1:1")
    assert started(dsn="127.0.0.1:8321").dsn == "http://KEY@127.0.0.1:1"
    assert "init(dsn=...) is ignored: DSN has no http://" in caplog.text


def test_values_are_not_repeated_in_complaints(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong value may be a key in the wrong place; it is not shown."""
    monkeypatch.setenv("TOOLFAULT_COERCE", "sk-secret")
    started(sample_rate="sk-secret")
    assert len(caplog.records) == 2
    assert "sk-secret" not in caplog.text


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("http://KEY@127.0.0.1:8321", "http://127.0.0.1:8321"),
        ("https://KEY@errors.example.com", "https://errors.example.com:443"),
        ("http://KEY@host/a/b/", "http://host:80/a/b"),
        ("http://KEY@[::1]:9", "http://[::1]:9"),
        ("  http://tf_1-a.b~c@host  ", "http://host:80"),
    ],
)
def test_dsn_is_taken_apart(
    text: str, endpoint: str, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scheme, address and prefix are found, and the doctor names them without the key."""
    for function in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(f"socket.{function}", unreachable)
    _, said = doctor(text)
    assert ["ok", "DSN", endpoint] in [line.split() for line in said.splitlines()]
    assert "KEY" not in said


def unreachable(*_: object, **__: object) -> None:
    """Be a network that is down."""
    raise OSError("no network in this test")


def test_the_prefix_of_the_dsn_is_used(collector: Server, make_client: MakeClient) -> None:
    """Events of a collector behind a prefix go there."""
    for prefix in ("", "/", "/a/b/"):
        client = make_client(f"{collector.dsn}{prefix}")
        client.on_call(a_call())
        assert client.flush(20)
    assert collector.paths == ["/v1/events", "/v1/events", "/a/b/v1/events"]


@pytest.mark.parametrize(
    "text",
    ["KEY@host", "ftp://KEY@host", "http://host", "http://@host", "http://KEY@",
     "http://user:KEY@host", "http://KEY@host:port", "http://KEY@host:0", "http://KEY@host:65536",
     "http://KEY@[::1", "http://KEY@host/a?b=c", "http://KEY@host/#x", "http://K Y@host",
     "http://KÉY@host", "http://KEY@ho st", "http://KEY@host/a\r\nX: y"],
)  # fmt: skip
def test_wrong_dsn_says_what_is_expected(text: str, caplog: pytest.LogCaptureFixture) -> None:
    """What is no DSN is refused with an example, never showing what was given."""
    assert toolfault.init(text) is None
    (said,) = (record.getMessage() for record in caplog.records)
    assert "http://KEY@127.0.0.1:8321" in said
    assert "KÉY" not in said


@settings(max_examples=60)
@given(text=st.text())
def test_no_dsn_breaks_init(text: str) -> None:
    """Any text is a DSN or reported."""
    client = toolfault.init(text, agent="a", release="r")
    assert client is toolfault.client()
    toolfault.close(0.0)


def test_release_comes_from_the_platform_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``service.version``, then a commit of the platform or CI; at most 128 characters."""
    monkeypatch.chdir(tmp_path)
    assert (started().release, started().agent) == (None, None)
    monkeypatch.setenv("GITHUB_SHA", "  ")
    assert started().release is None
    monkeypatch.setenv("GITHUB_SHA", "a" * 500)
    assert started().release == "a" * 128
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=x, service.version=1.2.3")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "bot")
    assert (started().release, started().agent) == ("1.2.3", "bot")
    assert started(release="mine").release == "mine"


def test_a_removed_working_directory_costs_the_release_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A worker whose directory a deployment has removed reports all the same."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert started().release is None


def test_release_comes_from_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The checked-out commit is read whatever way git keeps it: loose, packed, detached, linked."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]

    def run(*arguments: str) -> str:
        done = subprocess.run([*git, *arguments], check=True, capture_output=True)
        return done.stdout.decode().strip()

    def found(*below: str) -> str | None:
        monkeypatch.chdir(tmp_path.joinpath(*below))
        release: str | None = started().release
        return release

    run("init", "-q")
    assert found() is None
    run("commit", "-q", "--allow-empty", "-m", "one")
    commit = run("rev-parse", "HEAD")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    assert found("deep", "er") == commit
    run("pack-refs", "--all")
    assert found() == commit
    run("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    assert found("linked") == commit
    run("checkout", "-q", "--detach")
    assert found() == commit


@settings(max_examples=40)
@given(seconds=st.floats(-1e12, 1e12))
def test_ids_and_times_are_well_formed(seconds: float) -> None:
    """Ids are UUIDs of version 7 that carry their time; times are RFC 3339."""
    with capture_events(clock=lambda: seconds, agent="a", release="r") as events:
        toolfault.capture_failure(ValueError("x"), tool="t")
    made = uuid.UUID(events[0]["event_id"])
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    if 0 <= seconds < 2**48 / 1000:
        assert made.int >> 80 == int(seconds * 1000)
    moment = datetime.fromisoformat(events[0]["occurred_at"].replace("Z", "+00:00"))
    if 0 <= seconds <= 253_402_300_799:
        assert abs(moment.timestamp() - seconds) < 1e-3


def test_init_reads_the_environment(monkeypatch: pytest.MonkeyPatch, collector: Server) -> None:
    """With a DSN in the environment ``init()`` needs no argument."""
    monkeypatch.setenv("TOOLFAULT_DSN", collector.dsn)
    try:
        assert toolfault.init() is toolfault.client()
        toolfault.record_change("x")
        assert toolfault.close(20)
    finally:
        toolfault.close(0.0)
    assert len(collector.events) == 1


def test_second_init_replaces_the_first() -> None:
    """The first client sends what it has and is told of no further call."""
    first, second = MemoryTransport(), MemoryTransport()

    @toolfault.tool
    def add(a: int) -> int:
        return a

    try:
        toolfault.init(transport=first, successes="all")
        add.call({"a": 1})
        toolfault.init(transport=second, successes="all")
        add.call({"a": 1})
        assert toolfault.flush()
    finally:
        toolfault.close()
    assert (len(first.events), len(second.events)) == (1, 1)


AT_ONCE = """
import asyncio, sys, threading
import toolfault

toolfault.init(sys.argv[1], agent="a", release="r", spool_dir=sys.argv[2] or None)
assert threading.active_count() == 1

@toolfault.tool(timeout=60, hints="derived", coerce=True)
def book(seats: int) -> float:
    return 1 / seats

@toolfault.tool
async def look(place: int) -> int:
    return place

async def ask():
    return (await look.call({"place": "x"})).success

manager = toolfault.ToolManager([book])
before = set(sys.modules)
assert not asyncio.run(ask())
assert book.call({"seats": 1}).success
assert not book.call({"seats": "two"}).success
with toolfault.conversation("c", ends=True):
    assert not manager.call_tool_sync("book", {"seats": 0}).success
toolfault.capture_failure(ValueError("x"), tool="other")
assert toolfault.flush(60)
print(*sorted(set(sys.modules) - before))
toolfault.close()
"""


@pytest.mark.parametrize("way", ["memory", "spool", "tls", "proxy"])
def test_nothing_is_loaded_after_the_start(
    way: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Calls, failures and the sender find everything loaded by ``init`` and the decorator.

    A child that is forked while another thread loads a module would wait for it for ever.
    """
    server: Server = request.getfixturevalue("secure" if way == "tls" else "collector")
    server.script.append(status(503, Retry_After=formatdate(0, usegmt=True)))
    dsn, variables = server.dsn, {}
    if way == "tls":
        dsn = dsn.replace("http:", "https:")
        variables["SSL_CERT_FILE"] = str(request.getfixturevalue("certificate"))
    elif way == "proxy":
        dsn, variables = "http://KEY@toolfault.invalid", {"http_proxy": dsn}
    done = python("-c", AT_ONCE, dsn, str(tmp_path) if way == "spool" else "", **variables)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
    assert server.calls() == 5
