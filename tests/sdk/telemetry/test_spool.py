"""The spool: bounded, private, redacted, and stronger than kill -9 (S5, S6)."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sdk.errors.secret_formats import ENCODINGS, formats
from tests.sdk.telemetry import collector as behave
from tests.sdk.telemetry.collector import Server, running_collector
from tests.sdk.telemetry.conftest import (
    QUICK,
    MakeClient,
    a_call,
    a_failure,
    conserved,
    few_or_many,
)

import toolfault
from toolfault.telemetry import Response
from toolfault.telemetry._spool_dir import SpoolDir, SpoolUnusableError
from toolfault.telemetry._spool_file import frame, parse
from toolfault.testing import MemoryTransport

SILENT = QUICK._replace(request_seconds=0.2, adopt_seconds=0.2)


def segments(folder: Path) -> list[Path]:
    """Segments on disk."""
    return sorted(folder.rglob("*.seg"))


# -- the file -------------------------------------------------------------------------------------

payloads = st.lists(
    st.binary(max_size=200).map(lambda raw: b'"%s"' % raw.hex().encode()), min_size=1, max_size=20
)


@given(payloads=payloads)
def test_undamaged_records_are_read_back(payloads: list[bytes]) -> None:
    """What was written is read back in order, and nothing counts as lost."""
    data = b"".join(frame(number, "E", payload) for number, payload in enumerate(payloads))
    entries, lost = parse(data)
    assert [entry.payload for entry in entries] == payloads
    assert lost == 0


@given(payloads=payloads, chance=st.randoms(use_true_random=False))
def test_damage_costs_only_the_records_it_hits(
    payloads: list[bytes], chance: random.Random
) -> None:
    """Every record whose own bytes are intact survives any change elsewhere."""
    frames = [frame(number, "E", payload) for number, payload in enumerate(payloads)]
    hit = chance.randrange(len(frames))
    broken = bytearray(frames[hit])
    at = chance.randrange(len(broken))
    broken[at] ^= 1 << chance.randrange(8)
    frames[hit] = bytes(broken)
    entries, _ = parse(b"".join(frames))
    kept = {entry.number: entry.payload for entry in entries}
    for number, payload in enumerate(payloads):
        if number != hit:
            assert kept[number] == payload
    assert hit not in kept or kept[hit] == payloads[hit]


@given(payloads=payloads, cut=st.integers(0, 5_000))
def test_torn_end_is_skipped(payloads: list[bytes], cut: int) -> None:
    """A file that ends anywhere gives every record that is whole."""
    data = b"".join(frame(number, "E", payload) for number, payload in enumerate(payloads))
    entries, lost = parse(data[: cut % (len(data) + 1)])
    assert [entry.payload for entry in entries] == payloads[: len(entries)]
    assert lost <= 1


def test_copies_count_once() -> None:
    """A page written twice gives its records once."""
    data = frame(0, "E", b'"a"') + frame(1, "E", b'"b"')
    assert [entry.payload for entry in parse(data + data)[0]] == [b'"a"', b'"b"']


class Unreachable:
    """A transport that never gets through."""

    def send(self, body: bytes, *, headers: object, timeout: float) -> Response:
        """Fail."""
        raise ConnectionRefusedError

    def close(self) -> None:
        """Nothing to let go of."""


# -- corruption -----------------------------------------------------------------------------------


def corrupt(path: Path, chance: random.Random) -> None:
    """Do to a segment what disks, crashes and people do."""
    data = bytearray(path.read_bytes())
    kind = chance.choice(["bits", "truncate", "zeros", "double", "delete", "noise", "empty"])
    at = chance.randrange(max(len(data), 1))
    if kind == "delete":
        path.unlink()
        return
    if kind == "bits":
        for _ in range(chance.randrange(1, 20)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
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
    path.write_bytes(bytes(data))


@few_or_many(60, 2_000)
def test_corrupt_segments_never_stop_the_sender(
    times: int, make_client: MakeClient, tmp_path: Path
) -> None:
    """After any corruption the client starts, sends every intact record, and counts the others."""
    writer = make_client(transport=Unreachable(), spool_dir=str(tmp_path), limits=SILENT)
    for number in range(40):
        writer.on_call(a_call(error=a_failure() if number % 2 else None))
    writer.close(0.0)
    (original,) = segments(tmp_path)
    whole = original.read_bytes()
    for number in range(times):
        original.write_bytes(whole)
        corrupt(original, random.Random(number))
        kept, lost = parse(original.read_bytes()) if original.exists() else ([], 0)
        transport = MemoryTransport()
        reader = make_client(transport=transport, spool_dir=str(tmp_path), limits=SILENT)
        reader.on_call(a_call("later"))
        reader.flush(20)
        stats = reader.stats()
        assert stats.acked == len(transport.events) == len(kept) + 1, f"corruption {number}"
        assert stats.dropped == ({"spool_corrupt": lost} if lost else {}), f"corruption {number}"
        assert stats.pending == 0
        conserved(reader)
        reader.close()
        assert segments(tmp_path) == []


# -- privacy --------------------------------------------------------------------------------------


def test_spool_is_private(make_client: MakeClient, tmp_path: Path) -> None:
    """Directories are 0700 and files 0600, whatever the umask."""
    before = os.umask(0)
    try:
        client = make_client("http://KEY@127.0.0.1:1", spool_dir=str(tmp_path / "new"))
        client.on_call(a_call())
    finally:
        os.umask(before)
    for path in (tmp_path / "new").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_key_is_not_in_the_spool(make_client: MakeClient, tmp_path: Path) -> None:
    """Neither names nor contents show the ingest key, and other keys use other directories."""
    for key in ("first-key", "second-key"):
        client = make_client(f"http://{key}@127.0.0.1:1", spool_dir=str(tmp_path))
        client.on_call(a_call())
    assert len(list(tmp_path.iterdir())) == 2
    for path in segments(tmp_path):
        assert b"-key" not in path.read_bytes()
        assert "-key" not in str(path.relative_to(tmp_path))


def test_secrets_do_not_reach_the_disk(make_client: MakeClient, tmp_path: Path) -> None:
    """What lies on disk was redacted."""
    client = make_client("http://KEY@127.0.0.1:1", spool_dir=str(tmp_path), limits=SILENT)
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
    client = make_client("http://KEY@127.0.0.1:1", spool_dir=str(tmp_path), limits=SILENT)
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


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A spool that is a link to somewhere else is refused."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "name").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SpoolUnusableError, match="not ours"):
        SpoolDir(str(tmp_path / "spool"), "name")


def test_linked_segment_is_not_read(make_client: MakeClient, tmp_path: Path) -> None:
    """A link in place of a segment is removed unread, its target left alone."""
    target = tmp_path / "target"
    target.write_bytes(frame(0, "E", b'{"event_id":"x","type":"tool_call"}'))
    with running_collector() as collector:
        client = make_client(collector.dsn, spool_dir=str(tmp_path / "spool"), limits=SILENT)
        place = Path(client._shelf._spool._directory.path)
        (place / "0123456789abcdef-00000000.seg").symlink_to(target)
        client.on_call(a_call())
        client.flush()
        collector.wait_for(lambda server: len(server.events) == 1)
        assert target.exists()
        conserved(client)


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
    limits = SILENT._replace(spool_bytes=100_000, segment_bytes=20_000)
    client = make_client("http://KEY@127.0.0.1:1", spool_dir=str(tmp_path), limits=limits)
    for _ in range(500):
        client.on_call(a_call(error=a_failure()))
        assert sum(path.stat().st_size for path in segments(tmp_path)) < 125_000
    stats = client.stats()
    assert stats.dropped.get("spool_full", 0) > 0
    assert stats.pending > 0
    conserved(client)


BACKLOG = """
import sys
import toolfault
def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
toolfault.init("http://KEY@127.0.0.1:1", successes="all")
toolfault.capture_failure(ValueError("x"), tool="t")
toolfault.close(0.3)
start = rss()
toolfault.init("http://KEY@127.0.0.1:1", successes="all", spool_dir=sys.argv[1])
toolfault.capture_failure(ValueError("x"), tool="t")
toolfault.flush(2)
assert toolfault.stats().pending > 1, "nothing was found"
print((rss() - start) // 2**20)
toolfault.close(0.0)
"""


@few_or_many(100, 2_000)
def test_a_large_backlog_costs_little_memory(
    times: int, make_client: MakeClient, tmp_path: Path
) -> None:
    """What dead processes left (2 GiB in the long run) is read piece by piece: at most 64 MiB."""
    writer = make_client(
        "http://KEY@127.0.0.1:1", spool_dir=str(tmp_path), limits=SILENT._replace(backoff_base=60)
    )
    for _ in range(160):
        writer.on_call(a_call(error=a_failure(message="x" * 3_000)))
    writer.close(0.0)
    whole = segments(tmp_path)[0]
    assert whole.stat().st_size > 1_000_000
    for number in range(times):
        whole.with_name(f"{number:016x}-00000000.seg").hardlink_to(whole)
    reader = subprocess.run(
        [sys.executable, "-c", BACKLOG, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert reader.returncode == 0, reader.stderr
    assert int(reader.stdout) <= 64


def open_descriptors() -> int:
    """How many this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def left_behind(folder: Path, whole: Path, count: int) -> None:
    """Leave ``count`` copies of a segment, and as many locks without one, as dead processes do."""
    for number in range(count):
        whole.with_name(f"{number:016x}-00000000.seg").hardlink_to(whole)
        whole.with_name(f"{number + count:016x}.lock").touch()
    whole.unlink()


def spooled(make_client: MakeClient, folder: Path) -> Path:
    """Leave one event in a spool and return its segment."""
    writer = make_client("http://KEY@127.0.0.1:1", spool_dir=str(folder), limits=SILENT)
    writer.on_call(a_call(error=a_failure()))
    writer.close(0.0)
    return segments(folder)[0]


def test_many_dead_processes_are_taken_over_one_after_the_other(
    make_client: MakeClient, tmp_path: Path
) -> None:
    """What a hundred of them left is all sent, and removed with their locks."""
    left_behind(tmp_path, spooled(make_client, tmp_path), 100)
    transport = MemoryTransport()
    client = make_client(transport=transport, spool_dir=str(tmp_path), limits=SILENT)
    (place,) = [path for path in tmp_path.iterdir() if not list(path.glob("*.seg"))]
    for path in tmp_path.rglob("*.*"):
        path.rename(place / path.name)
    client.on_call(a_call())
    assert client.flush(20)
    assert len(transport.events) == 101
    assert client.stats().acked == 101
    client.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    conserved(client)


def test_dead_processes_cost_few_descriptors(make_client: MakeClient, tmp_path: Path) -> None:
    """However many left something, a collector that is down does not use up what the host has."""
    left_behind(tmp_path, spooled(make_client, tmp_path), 300)
    before = open_descriptors()
    client = make_client("http://KEY@127.0.0.1:1", spool_dir=str(tmp_path), limits=SILENT)
    client.on_call(a_call())
    assert not client.flush(0.5)
    assert client.stats().pending > 1
    assert open_descriptors() - before < 50
    conserved(client)


FULL = """
import sys
import toolfault
scans = []
sys.addaudithook(lambda event, _: scans.append(event) if event == "os.scandir" else None)
toolfault.init("http://KEY@127.0.0.1:1", successes="all", spool_dir=sys.argv[1])
for _ in range(300):
    toolfault.capture_failure(ValueError("x"), tool="t")
assert toolfault.stats().pending >= 300
print(len(scans))
toolfault.close(0.0)
"""


def test_a_spool_that_others_have_filled_is_not_searched_by_every_capture(
    make_client: MakeClient, tmp_path: Path
) -> None:
    """While the directory is full events wait in memory, and a capture does not read it again."""
    whole = spooled(make_client, tmp_path)
    os.truncate(whole, 2 * 1024 * 1024)
    for number in range(40):
        whole.with_name(f"{number:016x}-00000000.seg").hardlink_to(whole)
    agent = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert agent.returncode == 0, agent.stderr
    assert int(agent.stdout) < 30


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


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Use up what the process may open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    hoard: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                hoard.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for descriptor in hoard:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_host_without_descriptors_loses_nothing_on_disk(
    make_client: MakeClient, tmp_path: Path
) -> None:
    """What cannot be opened just now, of this process or a dead one, is read and sent later."""
    whole = spooled(make_client, tmp_path)
    limits = SILENT._replace(adopt_seconds=0.0, batch_seconds=60.0)
    transport = MemoryTransport()
    client = make_client(transport=transport, spool_dir=str(tmp_path), limits=limits)
    client.on_call(a_call())
    assert client.flush(20)
    client.on_call(a_call())
    client._outbox.unfold()  # ends the segment, and gives its descriptor back
    whole.rename(Path(client._shelf._spool._directory.path) / whole.name)
    with no_descriptors():
        assert not client.flush(0.5)
        conserved(client)
    assert len(segments(tmp_path)) == 2
    assert client.flush(20)
    assert client.stats().dropped == {}
    assert len(transport.events) == 3
    assert segments(tmp_path) == []
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


@few_or_many(4, 100)
@pytest.mark.parametrize("mode", ["all", "folded"])
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
