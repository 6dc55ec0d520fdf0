"""Compressed files and archives: read as what is in them, never more than is bearable."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.collector.importers.fixtures import FIXTURES
from tests.collector.mutations import damaged

from toolfault_collector.clock import now_us
from toolfault_collector.importers import STDIN, Conversation, EventBatch, Problem, parse_file

CHAT = FIXTURES[0]
INSPECT = next(each for each in FIXTURES if each.format == "inspect")
MIB = 1 << 20


def _zip(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def _zstd_zip(members: dict[str, bytes]) -> bytes:
    """Write a zip with Zstandard members, as Inspect does: method 93 instead of 0."""
    packed = {name: zstandard.compress(data) for name, data in members.items()}
    archive = bytearray(_zip(packed, zipfile.ZIP_STORED))
    at = 0
    for data in members.values():
        at = archive.index(b"PK\3\4", at)
        archive[at + 8 : at + 10] = (93).to_bytes(2, "little")
        archive[at + 22 : at + 26] = len(data).to_bytes(4, "little")
        at += 4
    at = 0
    for data in members.values():
        at = archive.index(b"PK\1\2", at)
        archive[at + 10 : at + 12] = (93).to_bytes(2, "little")
        archive[at + 24 : at + 28] = len(data).to_bytes(4, "little")
        at += 4
    return bytes(archive)


def _tar(members: dict[str, bytes], mode: Any = "w") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def _parse(path: Path, data: bytes | None = None) -> tuple[list[Conversation], list[Problem]]:
    if data is not None:
        path.write_bytes(data)
    items = list(parse_file(path, now=now_us()))
    return (
        [item for item in items if isinstance(item, Conversation)],
        [item for item in items if isinstance(item, Problem)],
    )


TEXT = CHAT.text.encode()
MEMBERS = {"a.jsonl": TEXT, "LICENSE.txt": b"MIT", "deep/b.json": INSPECT.text.encode()}
PACKED: dict[str, Callable[[], bytes]] = {
    "a.jsonl.gz": lambda: gzip.compress(TEXT),
    "two.jsonl.gz": lambda: gzip.compress(TEXT[:500]) + gzip.compress(TEXT[500:]) + b"\0" * 600,
    "a.jsonl.zst": lambda: zstandard.compress(TEXT),
    "two.zst": lambda: zstandard.compress(TEXT[:500]) + zstandard.compress(TEXT[500:]),
    "a.zip": lambda: _zip(MEMBERS),
    "zstd.zip": lambda: _zstd_zip(MEMBERS),
    "a.tar": lambda: _tar(MEMBERS),
    "a.tar.gz": lambda: _tar(MEMBERS, "w:gz"),
    "a.tar.zst": lambda: zstandard.compress(_tar(MEMBERS)),
    "zip in tar": lambda: _tar({"a.zip": _zip(MEMBERS)}),
    "gz in zip": lambda: _zip({"a.jsonl.gz": gzip.compress(TEXT)}),
}


@pytest.mark.parametrize("name", PACKED)
def test_what_is_packed_is_read_as_if_it_were_not(tmp_path: Path, name: str) -> None:
    """By its first bytes, whatever its name: the conversations have the same keys and calls."""
    plain = [_parse(tmp_path / "plain", data)[0][0] for data in (TEXT, MEMBERS["deep/b.json"])]
    for called in (name, "anything"):
        found, problems = _parse(tmp_path / called, PACKED[name]())
        assert problems == []
        assert [(each.key, each.calls) for each in found] == [
            (each.key, each.calls) for each in plain[: len(found)]
        ]
        assert len(found) == (1 if "jsonl" in name or name in ("two.zst", "gz in zip") else 2)


def test_an_inspect_log_is_its_samples(tmp_path: Path) -> None:
    """Header and journal of a ``.eval`` repeat what stands in the samples; they are passed over."""
    log = json.loads(INSPECT.text)
    (sample,) = log.pop("samples")
    members = {
        "_journal/start.json": json.dumps(log).encode(),
        "samples/1_epoch_1.json": json.dumps(sample).encode(),
        "summaries.json": json.dumps([{**sample, "input": INSPECT.messages}]).encode(),
        "header.json": json.dumps(log).encode(),
    }
    (plain,), _ = _parse(tmp_path / "log.json", INSPECT.text.encode())
    for data in (_zip(members), _zstd_zip(members)):
        (found,), problems = _parse(tmp_path / "log.eval", data)
        assert (found.key, found.calls, problems) == (plain.key, plain.calls, [])


def test_standard_input_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``-`` is read once, packed or not."""
    for data in (TEXT, gzip.compress(TEXT), _zip(MEMBERS)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        found, problems = _parse(STDIN)
        assert [(call.tool, call.status) for call in found[0].calls] == CHAT.calls
        assert problems == []


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_what_comes_before_a_damage_is_kept(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """A file that is still written, or whose end is lost, gives what can be read of it."""
    draw = random.Random(3)
    lines = [
        json.dumps({"messages": json.loads(json.dumps(CHAT.messages)), "pad": draw.random()})
        for _ in range(800)
    ]
    whole = pack("\n".join(lines).encode())
    found, problems = _parse(tmp_path / "a.jsonl.gz", whole[: len(whole) // 2])
    assert len(found) > 100
    assert [problem.severity for problem in problems][-1] == "error"
    assert "the end is missing" in problems[-1].message


def test_names_of_members_do_no_harm(tmp_path: Path) -> None:
    """Nothing is written, and a name that leads elsewhere is no more than a name."""
    names = ["../../up.json", "/etc/x.json", "a\0b.json", "..\\c.json", "d" * 90 + ".json"]
    before = set(tmp_path.rglob("*"))
    for pack in (_zip, _tar):
        found, problems = _parse(tmp_path / "a.bin", pack(dict.fromkeys(names, TEXT)))
        assert len(found) >= 4
        assert [problem for problem in problems if problem.severity == "error"] == []
    assert set(tmp_path.rglob("*")) - before == {tmp_path / "a.bin"}


def test_links_in_an_archive_are_passed_over(tmp_path: Path) -> None:
    """A member that points to a file of this machine is no file of the archive."""
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(TEXT)
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            info = tarfile.TarInfo("link.jsonl")
            info.type, info.linkname = kind, str(secret)
            archive.addfile(info)
    assert _parse(tmp_path / "a.tar", file.getvalue())[0] == []


def test_an_archive_that_cannot_be_read_is_an_error_wherever_it_is_met(tmp_path: Path) -> None:
    """What it holds is lost, unlike what is merely no transcript."""
    path = tmp_path / "a.eval"
    path.write_bytes(_zip(MEMBERS)[:-40])
    (problem,) = parse_file(path, named=False, now=now_us())
    assert isinstance(problem, Problem)
    assert (problem.severity, "damaged" in problem.message) == ("error", True)


BOMB = b" " * (80 * MIB)
BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: gzip.compress(BOMB),
    "zstd": lambda: zstandard.compress(BOMB),
    "zip": lambda: _zip({"a.json": BOMB}),
    "many": lambda: _zip({f"{n}.json": b" " * (20 * MIB) for n in range(5)}),
    "tar": lambda: gzip.compress(_tar({"a.json": BOMB})),
    "nested": lambda: gzip.compress(gzip.compress(gzip.compress(gzip.compress(TEXT)))),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] if name in ("gzip", "zip", "tar") else [])
        for name in BOMBS
    ],
)
def test_what_expands_beyond_measure_is_refused(tmp_path: Path, name: str) -> None:
    """More than 64 MiB and 250 times its size, or archives within archives without end."""
    found, problems = _parse(tmp_path / "a.bin", BOMBS[name]())
    assert found == []
    assert [problem.severity for problem in problems] == ["error"]
    assert "250 times" in problems[0].message or "within each other" in problems[0].message


@pytest.mark.parametrize("name", PACKED)
def test_no_damage_of_an_archive_is_an_exception(tmp_path: Path, name: str) -> None:
    """Bytes changed at random are problems of the file."""
    draw = random.Random(name)
    for _ in range(10):
        (tmp_path / "a.bin").write_bytes(damaged(draw, PACKED[name]()))
        for item in parse_file(tmp_path / "a.bin", now=now_us()):
            assert isinstance(item, Conversation | EventBatch | Problem)
