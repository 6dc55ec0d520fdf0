"""The spool: bounded, private, redacted, and stronger than kill -9 (S5, S6)."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.sdk.errors.secret_formats import ENCODINGS, formats
from tests.sdk.telemetry import collector as behave
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import (
    QUICK,
    SILENT,
    MakeClient,
    a_call,
    a_failure,
    conserved,
    few_or_many,
    segments,
)
from tests.sdk.telemetry.test_events import SECRETS, use_a_secret_as_a_name

import toolfault
from toolfault.telemetry import Response
from toolfault.testing import MemoryTransport

NOWHERE = "http://KEY@127.0.0.1:1"


class Unreachable:
    """A transport that never gets through."""

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """Fail."""
        raise ConnectionRefusedError

    def close(self) -> None:
        """Nothing to let go of."""


# -- corruption -----------------------------------------------------------------------------------


DAMAGES = ["bit", "truncate", "zeros", "double", "delete", "noise", "empty"]


def damage(data: bytearray, kind: str, chance: random.Random) -> None:
    """Do to the bytes of a segment, at one place, what disks, crashes and people do."""
    at = chance.randrange(len(data))
    if kind == "bit":
        data[at] ^= 1 << chance.randrange(8)
    elif kind == "truncate":
        del data[at:]
    elif kind == "zeros":
        data[at : at + 4096] = bytes(min(4096, len(data) - at))
    elif kind == "double":
        data[at:at] = data[at : at + 4096]
    elif kind == "noise":
        data += chance.randbytes(chance.randrange(1, 5_000))
    else:
        data.clear()


def bodies(data: bytes) -> dict[str, bytes]:
    """The events that a segment holds, as far as they are whole, by id."""
    found = {}
    decoder = json.JSONDecoder()
    text = data.decode("latin-1")
    at = text.find('{"')
    while at >= 0:
        try:
            event, end = decoder.raw_decode(text, at)
            found[event["event_id"]] = data[at:end]
        except (ValueError, KeyError):
            end = at + 1
        at = text.find('{"', end)
    return found


@few_or_many(6, 300)
@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_costs_only_the_records_it_hits(
    kind: str, times: int, make_client: MakeClient, tmp_path: Path
) -> None:
    """After any damage every record that is whole is sent, once, and what was lost is counted."""
    together = SILENT.with_(batch_seconds=60.0)  # in one segment
    writer = make_client(transport=Unreachable(), spool_dir=str(tmp_path), limits=together)
    for number in range(40):
        writer.on_call(a_call(error=a_failure() if number % 2 else None))
    writer.close(0.0)
    (original,) = segments(tmp_path)
    whole = original.read_bytes()
    everything = bodies(whole)
    assert len(everything) == 40
    for number in range(times):
        damaged = bytearray(whole)
        damage(damaged, kind, random.Random(number))
        original.write_bytes(damaged)
        if kind == "delete":
            original.unlink()
        transport = MemoryTransport()
        reader = make_client(transport=transport, spool_dir=str(tmp_path), limits=SILENT)
        reader.on_call(a_call("later"))
        reader.flush(20)
        sent = {event["event_id"]: event for event in transport.events if event["tool"] != "later"}
        assert len(sent) == len(transport.events) - 1, f"{kind} {number}"
        for event_id, event in sent.items():
            assert event == json.loads(everything[event_id]), f"{kind} {number}"
        intact = {key for key, body in everything.items() if body in damaged}
        assert set(sent) <= intact, f"{kind} {number}"
        assert len(intact - set(sent)) <= 2, f"{kind} {number}"  # hit in what frames them
        stats = reader.stats()
        assert (stats.acked, stats.pending) == (len(sent) + 1, 0)
        assert set(stats.dropped) <= {"spool_corrupt"}
        if kind == "bit":
            assert stats.dropped.get("spool_corrupt", 0) == 40 - len(sent)
        conserved(reader)
        reader.close()
        assert segments(tmp_path) == []


# -- privacy --------------------------------------------------------------------------------------


def test_spool_is_private(make_client: MakeClient, tmp_path: Path) -> None:
    """Directories are 0700 and files 0600, whatever the umask."""
    before = os.umask(0)
    try:
        client = make_client(NOWHERE, spool_dir=str(tmp_path / "new"))
        client.on_call(a_call())
    finally:
        os.umask(before)
    for path in (tmp_path / "new").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_key_is_not_in_the_spool(make_client: MakeClient, tmp_path: Path) -> None:
    """Neither names nor contents show the ingest key, and other keys use other directories."""
    for key in ("first-key", "second-key"):
        make_client(f"http://{key}@127.0.0.1:1", spool_dir=str(tmp_path)).on_call(a_call())
    assert len(list(tmp_path.iterdir())) == 2
    for path in segments(tmp_path):
        assert b"-key" not in path.read_bytes()
        assert "-key" not in str(path.relative_to(tmp_path))


def test_secrets_do_not_reach_the_disk(make_client: MakeClient, tmp_path: Path) -> None:
    """What lies on disk was redacted."""
    client = make_client(NOWHERE, spool_dir=str(tmp_path), limits=SILENT)
    try:
        raise ValueError("login failed: password=hunter2 token AKIAIOSFODNN7EXAMPLE")
    except ValueError as error:
        client.on_call(a_call(error=toolfault.ToolError.from_exception("login", error)))
    (segment,) = segments(tmp_path)
    stored = segment.read_bytes()
    assert b"login failed" in stored
    assert b"hunter2" not in stored
    assert b"AKIAIOSFODNN7EXAMPLE" not in stored


def test_no_planted_secret_reaches_the_disk(make_client: MakeClient, tmp_path: Path) -> None:
    """40 formats of secrets in 3 encodings, in message, argument, snippet and context: none."""
    client = make_client(NOWHERE, spool_dir=str(tmp_path), limits=SILENT, capture_values=True)
    planted = []
    for secret in formats():
        for encode in ENCODINGS.values():
            text = encode(secret.text)
            planted += [text, encode(secret.core), secret.core]
            error = toolfault.ToolError(
                "t", f"failed with {text} as given", received=text, snippet=text,
                retry_hint=text, retry_context={"seen": text},
            )  # fmt: skip
            client.on_call(a_call(error=error, arguments={"q": text}))
    stored = b"".join(path.read_bytes() for path in segments(tmp_path))
    assert stored.count(b"as given") >= len(formats()) * len(ENCODINGS)
    assert [text for text in planted if text.encode() in stored] == []


@pytest.mark.parametrize("successes", ["all", "folded"])
def test_a_secret_used_as_a_name_does_not_reach_the_disk(
    successes: str, make_client: MakeClient, tmp_path: Path
) -> None:
    """Neither events nor the journal of counters hold it, also before the counters are sent."""
    make_client(NOWHERE, spool_dir=str(tmp_path), limits=SILENT, successes=successes)
    use_a_secret_as_a_name(coerce=True)
    stored = b"".join(path.read_bytes() for path in segments(tmp_path))
    assert b"accounts" in stored
    for name, secret in SECRETS.items():
        assert secret.encode() not in stored, name


def place_of(make_client: MakeClient, folder: Path) -> Path:
    """The directory inside a spool that a client of ``NOWHERE`` writes to."""
    make_client(NOWHERE, spool_dir=str(folder)).close(0.0)
    (place,) = folder.iterdir()
    return place


def test_links_are_not_followed(
    make_client: MakeClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A spool that is a link to somewhere else is refused; events wait in memory."""
    place = place_of(make_client, tmp_path / "spool")
    place.rename(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").iterdir())
    place.symlink_to(tmp_path / "elsewhere")
    client = make_client(NOWHERE, spool_dir=str(tmp_path / "spool"))
    client.on_call(a_call())
    assert "not ours" in caplog.text
    assert sorted((tmp_path / "elsewhere").iterdir()) == before
    assert client.stats().pending == 1


def test_linked_segment_is_not_read(make_client: MakeClient, tmp_path: Path) -> None:
    """A link in place of a segment is not followed, its target left alone."""
    writer = make_client(NOWHERE, spool_dir=str(tmp_path / "spool"))
    writer.on_call(a_call("foreign"))
    writer.close(0.0)
    (segment,) = segments(tmp_path)
    target = tmp_path / "target"
    segment.rename(target)
    segment.symlink_to(target)
    content = target.read_bytes()
    transport = MemoryTransport()
    client = make_client(NOWHERE, transport=transport, spool_dir=str(tmp_path / "spool"))
    client.on_call(a_call("own"))
    assert client.flush(20)
    assert [event["tool"] for event in transport.events] == ["own"]
    assert target.read_bytes() == content


def test_unusable_directory_leaves_events_in_memory(
    make_client: MakeClient, collector: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A spool that cannot be made is reported once, and everything works without it."""
    (tmp_path / "file").write_text("in the way")
    client = make_client(collector.dsn, spool_dir=str(tmp_path / "file"))
    client.on_call(a_call())
    assert client.flush()
    assert "events wait in memory" in caplog.text
    assert len(collector.events) == 1


# -- bounds ---------------------------------------------------------------------------------------


def test_oldest_segments_make_room(make_client: MakeClient, tmp_path: Path) -> None:
    """Beyond its size the spool gives up whole segments, oldest first, and counts them."""
    # No batch is full or old enough to be sent: what is being sent cannot make room.
    limits = SILENT.with_(
        spool_bytes=100_000, segment_bytes=20_000, batch_events=1_000, batch_seconds=60
    )
    client = make_client(NOWHERE, spool_dir=str(tmp_path), limits=limits)
    for _ in range(500):
        client.on_call(a_call(error=a_failure()))
        assert sum(path.stat().st_size for path in segments(tmp_path)) < 125_000
    stats = client.stats()
    assert stats.dropped.get("spool_full", 0) > 0
    assert stats.pending > 0
    conserved(client)


def test_disk_full_falls_back_to_memory(
    make_client: MakeClient, collector: Server, tmp_path: Path
) -> None:
    """When the disk takes nothing more, events wait in memory and none is lost."""
    client = make_client(collector.dsn, spool_dir=str(tmp_path), limits=SILENT)
    collector.default = behave.status(503)
    client.on_call(a_call())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, before[1]))
    try:
        for _ in range(20):
            client.on_call(a_call(error=a_failure()))
        conserved(client)
        assert client.stats().pending == 21
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    collector.default = behave.honest
    assert client.flush(20)
    assert len(collector.events) == 21
    conserved(client)


def test_everything_sent_leaves_nothing_behind(
    make_client: MakeClient, collector: Server, tmp_path: Path
) -> None:
    """Once all is acknowledged the directory holds no segment, and after the end no lock."""
    client = make_client(collector.dsn, spool_dir=str(tmp_path), successes="folded")
    with toolfault.conversation("c1"):
        for number in range(300):
            client.on_call(a_call(error=a_failure() if number % 50 == 0 else None))
    assert client.flush(20)
    assert collector.calls() == 300
    assert segments(tmp_path) == []
    client.close()
    assert list(tmp_path.rglob("*.lock")) == []
    conserved(client)


# -- kill -9 --------------------------------------------------------------------------------------

AGENT = """
import sys
import toolfault
toolfault.init(sys.argv[1], successes=sys.argv[3], spool_dir=sys.argv[2])
@toolfault.tool
def add(a: int) -> int:
    return a
number = 0
while sys.stdin.read(1):
    with toolfault.conversation():
        for _ in range(5):
            number += 1
            add.call({"a": number if number % 4 else "x"})
            sys.stdout.write(".")
            sys.stdout.flush()
"""


def kill_at_random(agent: subprocess.Popen[bytes], server: Server, chance: random.Random) -> int:
    """Let an agent make some calls while the collector flaps, kill it, return how many it made."""
    answers = [behave.honest, behave.status(503), behave.reset, behave.stored_but_silent]
    assert agent.stdin is not None
    assert agent.stdout is not None
    talks = chance.randrange(1, 120)
    agent.stdin.write(b"." * talks)
    agent.stdin.flush()
    last = chance.randrange(1, 5 * talks + 1)
    seen = 0
    while seen < last:
        seen += len(os.read(agent.stdout.fileno(), 256))
        server.default = chance.choice(answers)
    agent.kill()
    seen += len(agent.stdout.read())
    agent.wait()
    agent.stdin.close()
    agent.stdout.close()
    return seen


@few_or_many(2, 100)
@pytest.mark.parametrize("mode", [pytest.param("all", marks=pytest.mark.long), "folded"])
def test_kill_loses_nothing_that_was_captured(
    mode: str, times: int, collector: Server, make_client: MakeClient, tmp_path: Path
) -> None:
    """Kill the agent again and again while the collector flaps: every call is stored once."""
    chance = random.Random(5)
    made = 0
    for _ in range(times):
        agent = subprocess.Popen(
            [sys.executable, "-c", AGENT, collector.dsn, str(tmp_path), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        made += kill_at_random(agent, collector, chance)
    collector.default = behave.honest
    client = make_client(collector.dsn, spool_dir=str(tmp_path), limits=QUICK)
    client.record_change("last", tool=None, kind="manual")
    assert client.flush(120)
    # A killed agent may have captured one call more than it said.
    assert made <= collector.calls() <= made + times
    assert segments(tmp_path) == []
    conserved(client)
