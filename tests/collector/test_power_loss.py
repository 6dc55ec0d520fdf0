"""Power is lost: what the disk was never told to keep may be there, missing, or torn.

A collector that stores batches is traced (``strace``), and each write and each sync of its files is
replayed up to some moment: what was synced is there, and of all else a random part, in pieces of a
sector. That is what SQLite's own tests do with a file system that crashes (its ``test6.c``). What
is not replayed is the directory: SQLite syncs that itself as it makes its log.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from toolfault_collector.doctor.recount import recount
from toolfault_collector.storage.database.engine import open_engine

SECTOR = 512
TRACED = "pwrite64,write,fsync,fdatasync,ftruncate"
PROGRAM = str(Path(__file__).with_name("power_loss_writer.py"))
REPOSITORY = Path(__file__).parents[2]
LONG = [pytest.mark.long, pytest.mark.timeout(3_600)]

_ENTERED = re.compile(r'(\d+) +(\w+)\(\d+<([^>]*)>(?:, "([\\x0-9a-f]*)")?((?:, \d+)*)')
_RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>")


@dataclass
class _File:
    """One file: what is safe, and what was written since, which may or may not be on the disk."""

    safe: bytearray
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def write(self, at: int, data: bytes | None) -> None:
        """Note a write at a place, or (None) that the file was cut there."""
        self.pending.append((at, data))

    def sync(self, count: int) -> None:
        """Make the first *count* of what is pending safe."""
        for at, data in self.pending[:count]:
            _apply(self.safe, at, data)
        del self.pending[:count]

    def after_power_loss(self, generator: random.Random) -> bytes:
        """What may be left: each sector that was not synced is there or is not."""
        left = bytearray(self.safe)
        for at, data in self.pending:
            if data is None:
                if generator.random() < 0.5:
                    _apply(left, at, None)
                continue
            for low in range(0, len(data), SECTOR):
                if generator.random() < 0.5:
                    _apply(left, at + low, data[low : low + SECTOR])
        return bytes(left)


def _unescaped(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", "")) if text.startswith("\\x") else text.encode()


def _apply(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del content[at:]
        return
    content.extend(bytes(max(0, at + len(data) - len(content))))
    content[at : at + len(data)] = data


@dataclass
class _Disk:
    """The files of a database as a trace leaves them, step by step."""

    database: _File
    log: _File = field(default_factory=lambda: _File(bytearray()))
    acknowledged: list[list[str]] = field(default_factory=list)
    safely_logged: int = 0
    _syncing: dict[str, tuple[_File, int, int]] = field(default_factory=dict)

    def step(self, line: str) -> bool:
        """Take in one line of the trace; return whether it was about one of the files."""
        resumed = _RESUMED.match(line)
        if resumed is not None:
            return self._synced(resumed[1])
        entered = _ENTERED.match(line)
        if entered is None:
            return False
        thread, call, path, data, numbers = entered.groups()
        name = Path(_unescaped(path).decode()).name
        values = [int(each) for each in numbers.split(", ")[1:]]
        written = b"" if data is None else _unescaped(data)
        if name == "acknowledged" and call == "write":
            self.acknowledged.append(written.decode().split())
            return True
        file = {"toolfault.db": self.database, "toolfault.db-wal": self.log}.get(name)
        if file is None:
            return False
        if call == "pwrite64":
            size, at = values
            assert len(written) == size
            file.write(at, written)
        elif call == "ftruncate":
            file.write(values[0], None)
        else:
            self._syncing[thread] = (file, len(file.pending), len(self.acknowledged))
            if "<unfinished" not in line:
                self._synced(thread)
        return True

    def _synced(self, thread: str) -> bool:
        """Note that the sync of a thread is done: what was written before it began is safe."""
        if thread not in self._syncing:
            return False
        file, count, acknowledged = self._syncing.pop(thread)
        file.sync(count)
        if file is self.log:
            self.safely_logged = acknowledged
        return True

    def lose_power(self, folder: Path, generator: random.Random) -> Path:
        """Write what may be left to *folder*, and return the database."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        path = folder / "toolfault.db"
        path.write_bytes(self.database.after_power_loss(generator))
        path.with_name("toolfault.db-wal").write_bytes(self.log.after_power_loss(generator))
        return path


def _trace(path: Path, synchronous: str, batches: int) -> Iterator[str]:
    """Yield the lines of the trace of a collector that stores *batches* of each sender."""
    trace = path.with_name("trace")
    options = [
        "-f",
        "--seccomp-bpf",
        "-y",
        "-xx",
        "-s",
        "1000000",
        "-e",
        f"trace={TRACED}",
        "-o",
        str(trace),
    ]
    arguments = [f"sqlite:///{path}", synchronous, str(path.with_name("acknowledged"))]
    try:
        done = subprocess.run(
            ["strace", *options, sys.executable, PROGRAM, *arguments, str(batches)],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
    except FileNotFoundError:
        pytest.skip("no `strace` here")
    if "ptrace" in done.stderr:
        pytest.skip(f"nothing can be traced here: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr[-4_000:]
    with trace.open() as lines:
        yield from lines


@pytest.mark.slow
@pytest.mark.parametrize(
    ("synchronous", "batches", "moments"),
    [
        ("FULL", 4, 15),
        pytest.param("NORMAL", 5, 25, marks=pytest.mark.long),
        pytest.param("FULL", 60, 1_000, marks=LONG),
        pytest.param("NORMAL", 60, 1_000, marks=LONG),
    ],
)
def test_power_is_lost(
    sqlite_template: Path, tmp_path: Path, synchronous: str, batches: int, moments: int
) -> None:
    """At any moment: the database opens, is whole, adds up, and holds what was acknowledged.

    With ``synchronous=NORMAL`` what was acknowledged since the log was last synced may be gone.
    """
    path = tmp_path / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    disk = _Disk(_File(bytearray(path.read_bytes())))
    lines = list(_trace(path, synchronous, batches))
    generator = random.Random(moments)
    lost_at = set(generator.sample(range(len(lines)), min(moments, len(lines))))
    looked_at = 0

    for number, line in enumerate(lines):
        if disk.step(line) and number in lost_at:
            looked_at += 1
            certain = len(disk.acknowledged) if synchronous == "FULL" else disk.safely_logged
            left = disk.lose_power(tmp_path / "left", generator)
            _check(left, disk.acknowledged[:certain])

    assert looked_at > moments // 2
    assert len(disk.acknowledged) == 3 * batches


def _check(path: Path, certain: list[list[str]]) -> None:
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        stored = {row[0] for row in raw.execute("SELECT event_id FROM tool_call")}
    assert {each for batch in certain for each in batch} <= stored
    engine = open_engine(f"sqlite:///{path}")
    assert recount(engine).right
    engine.dispose()
