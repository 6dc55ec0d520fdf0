"""Settings: arguments over variables over defaults, at most 15, each documented."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sdk.telemetry.conftest import MakeClient

import toolfault
from toolfault.telemetry._config import KNOBS, Config, configuration_table, resolve
from toolfault.telemetry._dsn import parse_dsn
from toolfault.telemetry._ids import counter_id, uuid7
from toolfault.telemetry._release import detect_agent, detect_release
from toolfault.telemetry._time import rfc3339
from toolfault.testing import MemoryTransport

DOCS = Path(__file__).parents[3] / "docs" / "configuration-sdk.md"


def test_there_are_few_knobs_and_each_has_a_reason() -> None:
    """At most 15 settings; every field has form, purpose and reason, and is an argument."""
    assert len(KNOBS) <= 15
    assert [knob.name for knob in KNOBS] == list(Config._fields)
    assert set(Config._fields) <= set(toolfault.init.__kwdefaults__ or {}) | {"dsn"}
    for knob in KNOBS:
        assert min(len(knob.form), len(knob.does), len(knob.reason)) > 5


def test_documentation_has_the_table_of_today() -> None:
    """The table in the documentation is the one made from the settings."""
    text = DOCS.read_text("utf-8")
    if os.environ.get("TOOLFAULT_WRITE_GOLDEN"):
        before, rest = text.split("<!-- table -->\n", 1)
        after = rest.split("<!-- end of table -->", 1)[1]
        table = f"<!-- table -->\n{configuration_table()}<!-- end of table -->"
        DOCS.write_text(before + table + after, "utf-8")
        text = DOCS.read_text("utf-8")
    assert configuration_table() in text


def test_arguments_win_over_variables_over_defaults() -> None:
    """Each source is asked in turn."""
    variables = {"TOOLFAULT_AGENT": "from variable", "TOOLFAULT_SAMPLE_RATE": "0.25"}
    config, complaints = resolve({"agent": "from argument"}, variables)
    assert complaints == []
    assert (config.agent, config.sample_rate, config.successes) == ("from argument", 0.25, "folded")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("dsn", " http://KEY@h ", "http://KEY@h"),
        ("successes", "all", "all"),
        ("failure_sample_rate", "1", 1.0),
        ("ignore", "timeout, not_found", ("timeout", "not_found")),
        ("capture_received", "off", False),
        ("coerce", "YES", True),
        ("redact_keys", "iban,customer", ("iban", "customer")),
        ("keep_keys", "session", ("session",)),
        ("hints", "derived", "derived"),
        ("spool_dir", "/var/spool/x", "/var/spool/x"),
    ],
)
def test_variables_are_read_as_text(name: str, text: str, value: object) -> None:
    """Every setting that can be text has a variable."""
    config, complaints = resolve({}, {f"TOOLFAULT_{name.upper()}": text})
    assert complaints == []
    assert getattr(config, name) == value


def test_a_wrong_setting_falls_back_to_the_next_source() -> None:
    """A wrong argument is named with what is expected, and the variable counts."""
    config, complaints = resolve({"successes": "some"}, {"TOOLFAULT_SUCCESSES": "all"})
    assert config.successes == "all"
    assert complaints == ["init(successes=...) is ignored: expected `folded` or `all`"]


def test_values_are_not_repeated_in_complaints() -> None:
    """A wrong value may be a key in the wrong place; it is not shown."""
    _, complaints = resolve({"sample_rate": "sk-secret"}, {"TOOLFAULT_COERCE": "sk-secret"})
    assert len(complaints) == 2
    assert "sk-secret" not in "".join(complaints)


@pytest.mark.parametrize(
    ("text", "endpoint", "path"),
    [
        ("http://KEY@127.0.0.1:8321", "http://127.0.0.1:8321", "/v1/events"),
        ("https://KEY@errors.example.com", "https://errors.example.com:443", "/v1/events"),
        ("http://KEY@host/a/b/", "http://host:80/a/b", "/a/b/v1/events"),
        ("http://KEY@[::1]:9", "http://[::1]:9", "/v1/events"),
        ("  http://tf_1-a.b~c@host  ", "http://host:80", "/v1/events"),
    ],
)
def test_dsn_is_taken_apart(text: str, endpoint: str, path: str) -> None:
    """Scheme, address, prefix and key are found."""
    dsn = parse_dsn(text)
    assert (dsn.endpoint, dsn.events_path) == (endpoint, path)
    assert dsn.key not in repr(dsn)


@pytest.mark.parametrize(
    "text",
    ["", "KEY@host", "ftp://KEY@host", "http://host", "http://@host", "http://KEY@",
     "http://user:KEY@host", "http://KEY@host:port", "http://KEY@host:0", "http://KEY@host:65536",
     "http://KEY@[::1", "http://KEY@host/a?b=c", "http://KEY@host/#x", "http://K Y@host",
     "http://KÉY@host", "http://KEY@ho st", "http://KEY@host/a\r\nX: y"],
)  # fmt: skip
def test_wrong_dsn_says_what_is_expected(text: str) -> None:
    """What is no DSN is refused with an example, never showing what was given."""
    with pytest.raises(ValueError, match=r"http://KEY@127\.0\.0\.1:8321") as refused:
        parse_dsn(text)
    if "KÉY" in text:
        assert "KÉY" not in str(refused.value)


@given(text=st.text())
def test_no_dsn_breaks_the_parser(text: str) -> None:
    """Any text is a DSN or refused with ValueError."""
    try:
        dsn = parse_dsn(text)
    except ValueError:
        return
    assert dsn.host
    assert dsn.key


def test_release_comes_from_the_platform_first() -> None:
    """``service.version``, then a commit of the platform or CI; at most 128 characters."""
    everything = {
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=x, service.version=1.2.3",
        "GITHUB_SHA": "abc",
    }
    assert detect_release(everything, "/") == "1.2.3"
    assert detect_release({"GITHUB_SHA": "abc"}, "/") == "abc"
    assert detect_release({"GITHUB_SHA": "a" * 500}, "/") == "a" * 128
    assert detect_release({"GITHUB_SHA": "  "}, "/") is None
    assert detect_agent({"OTEL_SERVICE_NAME": "bot"}) == "bot"
    assert detect_agent({}) is None


def test_release_comes_from_the_checkout(tmp_path: Path) -> None:
    """The checked-out commit is read whatever way git keeps it: loose, packed, detached, linked."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def run(*arguments: str) -> str:
        done = subprocess.run([*git, *arguments], check=True, capture_output=True, env=clean)
        return done.stdout.decode().strip()

    run("init", "-q")
    assert detect_release({}, str(tmp_path)) is None
    run("commit", "-q", "--allow-empty", "-m", "one")
    commit = run("rev-parse", "HEAD")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    assert detect_release({}, str(tmp_path / "deep" / "er")) == commit
    run("pack-refs", "--all")
    assert detect_release({}, str(tmp_path)) == commit
    run("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    assert detect_release({}, str(tmp_path / "linked")) == commit
    run("checkout", "-q", "--detach")
    assert detect_release({}, str(tmp_path)) == commit


@given(seconds=st.floats(-1e12, 1e12))
def test_ids_and_times_are_well_formed(seconds: float) -> None:
    """Ids are UUIDs of version 7 that carry their time; times are RFC 3339."""
    import uuid
    from datetime import datetime

    made = uuid.UUID(uuid7(seconds))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    if 0 <= seconds < 2**48 / 1000:
        assert made.int >> 80 == int(seconds * 1000)
    moment = datetime.fromisoformat(rfc3339(seconds).replace("Z", "+00:00"))
    if 0 <= seconds <= 253_402_300_799:
        assert abs(moment.timestamp() - seconds) < 1e-3


def test_counter_ids_depend_on_their_segment_and_key_alone() -> None:
    """The same steps give the same id in any process; others give another."""
    key = (1, "tool", None, None, None, None, None)
    assert counter_id(60.0, "a.seg", key) == counter_id(60.0, "a.seg", key)
    others = {counter_id(60.0, "b.seg", key), counter_id(60.0, "a.seg", (2, *key[1:]))}
    assert counter_id(60.0, "a.seg", key) not in others
    assert len(others) == 2


def test_init_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a DSN in the environment ``init()`` needs no argument."""
    monkeypatch.setenv("TOOLFAULT_DSN", "http://KEY@127.0.0.1:1/prefix")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "from otel")
    try:
        client = toolfault.init(transport=MemoryTransport())
        assert client is not None
        assert client is toolfault.client()
        assert client.config.agent == "from otel"
    finally:
        toolfault.close()


def test_second_init_replaces_the_first(make_client: MakeClient) -> None:
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


COST = """
import sys
before = set(sys.modules)
import toolfault
toolfault.init("http://KEY@127.0.0.1:1", agent="a", release="r")
print(*sorted(set(sys.modules) - before))
"""


def test_import_and_init_load_no_heavy_module() -> None:
    """Modules that cost more than the SDK itself are left to the first event."""
    loaded = subprocess.run(
        [sys.executable, "-c", COST],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout.split()
    heavy = {"json", "http.client", "ssl", "gzip", "uuid", "hashlib", "socket", "email", "logging",
             "dataclasses", "inspect", "traceback", "linecache", "random", "urllib.parse",
             "asyncio", "pydantic", "datetime", "pathlib", "platform"}  # fmt: skip
    assert not heavy & set(loaded)


AHEAD = """
import sys, threading
import toolfault

@toolfault.tool
def book(seats: int) -> int:
    return seats

client = toolfault.init("http://KEY@127.0.0.1:1", agent="a", release="r")
assert threading.active_count() == 1
assert book.call({"seats": 1}).success
for _ in range(2_000):
    if client._sender.is_ready:
        break
    threading.Event().wait(0.01)
before = set(sys.modules)
assert not book.call({"seats": "two"}).success
print(*sorted(set(sys.modules) - before))
client._outbox.close("shutdown")
"""


def test_the_first_failure_finds_everything_loaded() -> None:
    """``init`` starts no thread; after the first call the sender loads what a failure needs."""
    done = subprocess.run(
        [sys.executable, "-c", AHEAD],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split() == []
