"""Spools of dead processes: taken over in portions, whatever the host has left (S5, S6)."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.sdk.telemetry.conftest import (
    SILENT,
    MakeClient,
    a_call,
    a_failure,
    conserved,
    few_or_many,
    python,
    segments,
)

from toolfault.telemetry import Response
from toolfault.testing import MemoryTransport

NOWHERE = "http://KEY@127.0.0.1:1"

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
for _ in range(100):
    toolfault.flush(0.1)
    if toolfault.stats().pending > 1:
        break
assert toolfault.stats().pending > 1, "nothing was found"
print((rss() - start) // 2**20)
toolfault.close(0.0)
"""


@few_or_many(100, 2_000)
def test_a_large_backlog_costs_little_memory(
    times: int, make_client: MakeClient, tmp_path: Path
) -> None:
    """What dead processes left (2 GiB in the long run) is read piece by piece: at most 64 MiB."""
    writer = make_client(NOWHERE, spool_dir=str(tmp_path), limits=SILENT.with_(batch_seconds=60))
    for _ in range(160):
        writer.on_call(a_call(error=a_failure(message="x" * 3_000)))
    writer.close(0.0)
    whole = segments(tmp_path)[0]
    assert whole.stat().st_size > 1_000_000
    for number in range(times):
        whole.with_name(f"{number:016x}-00000000.seg").hardlink_to(whole)
    reader = python("-c", BACKLOG, str(tmp_path))
    assert reader.returncode == 0, reader.stderr
    assert int(reader.stdout) <= 64


def open_descriptors() -> int:
    """How many this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def left_behind(whole: Path, count: int) -> None:
    """Leave ``count`` copies of a segment, and as many locks without one, as dead processes do."""
    for number in range(count):
        whole.with_name(f"{number:016x}-00000000.seg").hardlink_to(whole)
        whole.with_name(f"{number + count:016x}.lock").touch()
    whole.unlink()


def spooled(make_client: MakeClient, folder: Path) -> Path:
    """Leave one event in a spool and return its segment."""
    writer = make_client(NOWHERE, spool_dir=str(folder), limits=SILENT)
    writer.on_call(a_call(error=a_failure()))
    writer.close(0.0)
    return segments(folder)[0]


def test_many_dead_processes_are_taken_over_one_after_the_other(
    make_client: MakeClient, tmp_path: Path
) -> None:
    """What a hundred of them left is all sent, and removed with their locks."""
    left_behind(spooled(make_client, tmp_path), 100)
    transport = MemoryTransport()
    client = make_client(NOWHERE, transport=transport, spool_dir=str(tmp_path), limits=SILENT)
    client.on_call(a_call())
    assert client.flush(20)
    assert len(transport.events) == 101
    assert client.stats().acked == 101
    client.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    conserved(client)


def test_dead_processes_cost_few_descriptors(make_client: MakeClient, tmp_path: Path) -> None:
    """However many left something, a collector that is down does not use up what the host has."""
    left_behind(spooled(make_client, tmp_path), 300)
    before = open_descriptors()
    client = make_client(NOWHERE, spool_dir=str(tmp_path), limits=SILENT)
    client.on_call(a_call())
    while client.stats().pending <= 1:  # until some are taken over
        client.flush(0.05)
    assert not client.flush(0.5)
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
    agent = python("-c", FULL, str(tmp_path))
    assert agent.returncode == 0, agent.stderr
    assert int(agent.stdout) < 30


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


class Moody(MemoryTransport):
    """Acknowledges, except while it is down."""

    is_down = False

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """Keep a batch, or refuse."""
        if self.is_down:
            raise ConnectionRefusedError
        return super().send(body, headers=headers, timeout=timeout)


def test_a_host_without_descriptors_loses_nothing_on_disk(
    make_client: MakeClient, tmp_path: Path
) -> None:
    """What cannot be opened just now, of this process or a dead one, is read and sent later."""
    spooled(make_client, tmp_path)
    limits = SILENT.with_(adopt_seconds=0.0)
    transport = Moody()
    transport.is_down = True
    client = make_client(NOWHERE, transport=transport, spool_dir=str(tmp_path), limits=limits)
    client.on_call(a_call())
    assert not client.flush(0.1)
    assert len(segments(tmp_path)) == 2
    with no_descriptors():
        client.on_call(a_call())
        assert not client.flush(0.3)
        conserved(client)
        transport.is_down = False
        client.flush(0.3)
        conserved(client)
    assert client.flush(20)
    assert client.stats().dropped == {}
    assert len(transport.events) == 3
    assert segments(tmp_path) == []
    conserved(client)
