"""Compressed files and archives: the files that a path holds, each of which can be read again.

What a file is, its first bytes say, not its name: gzip (RFC 1952), Zstandard (RFC 8878), zip
(APPNOTE.TXT, also with Zstandard members, as Inspect writes them) and tar (POSIX ustar, pax, GNU),
also one within another. Everything is read in pieces and nothing is written under a member's name,
so a name such as ``../../x`` does no harm. What expands beyond all measure is refused.
"""

from __future__ import annotations

import io
import struct
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Protocol

import zstandard

from toolfault_collector.protocol.repair import clean_text

__all__ = [
    "LINE_SUFFIXES",
    "STDIN",
    "File",
    "UnreadableError",
    "is_wanted",
    "open_files",
    "suffix_of",
]

STDIN: Final = Path("-")
"""The path that stands for standard input."""

LINE_SUFFIXES: Final = frozenset({".jsonl", ".ndjson"})
_COMPRESSED: Final = frozenset({".gz", ".zst"})
_WANTED: Final = frozenset({".json", ".zip", ".tar", ".tgz", ".eval", *LINE_SUFFIXES})
MAX_MEMBERS: Final = 100_000
MAX_NESTED: Final = 3
# What any file may expand to, and how many times its size beyond that. Transcripts that repeat
# themselves shrink to a fiftieth; what shrinks to less is made to fill a memory.
FREE: Final = 64 << 20
RATIO: Final = 250
_IN_MEMORY: Final = 8 << 20
# Compressed bytes that are expanded at a time: at most 22 MiB come of them (Zstandard's blocks).
_STEP: Final = 512
_ZSTD_MEMBER: Final = 93
_OF_INSPECT: Final = ("header.json", "start.json")
_DAMAGE: Final = (
    *(EOFError, RuntimeError, ValueError, ArithmeticError, LookupError, struct.error, zlib.error),
    *(zstandard.ZstdError, zipfile.BadZipFile, tarfile.TarError),
)
_TOO_LARGE: Final = f"it expands to more than {RATIO} times its size; unpack it first"
_WORDS: Final = "it is damaged, cut off or written in an unknown way"

_Open = Callable[[], "IO[bytes]"]


class UnreadableError(ValueError):
    """A compressed file cannot be read on; the text says why, and repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class File:
    """One file to import, on disk or within an archive.

    Args:
        path: What it is called in reports; a member of an archive stands behind a colon.
        open: Opens it at its beginning; what was opened before ends by that.
        named: Whether the caller named it; one met in a folder or archive may be something else.
        done: How much of the file on disk was read so far, in bytes.
    """

    path: Path
    open: _Open
    named: bool
    done: Callable[[], int]


def suffix_of(name: str) -> str:
    """Give the suffix of a file name without that of a compression, in lower case."""
    path = PurePosixPath(name.lower())
    return PurePosixPath(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix


def is_wanted(name: str) -> bool:
    """Tell by its name whether a file met in a folder or an archive may be a transcript."""
    return suffix_of(name) in _WANTED


def open_files(path: Path, *, named: bool) -> Iterator[File]:
    """Yield the files that a path holds: itself, or the members of the archive that it is.

    A file can be read until the next one is asked for.

    Raises:
        OSError: The file cannot be read.
        UnreadableError: The archive cannot be read on.
    """
    with _spooled(sys.stdin.buffer, None) if path == STDIN else path.open("rb") as disk:
        size = disk.seek(0, io.SEEK_END)
        disk.seek(0)

        def reopened() -> IO[bytes]:
            disk.seek(0)
            return disk

        yield from _unpacked(File(path, reopened, named, disk.tell), size, 0)


def _unpacked(file: File, size: int, depth: int) -> Iterator[File]:
    limit = max(FREE, RATIO * size)
    start = _start(file.open())
    codec = next((codec for magic, codec in _CODECS.items() if start.startswith(magic)), None)
    is_zip, is_tar = start[:4] in (b"PK\3\4", b"PK\5\6"), start[257:262] == b"ustar"
    if not (codec or is_zip or is_tar):
        yield file
        return
    if depth == MAX_NESTED:
        raise UnreadableError(f"{MAX_NESTED} archives are within each other; unpack it")
    try:
        if codec is not None:
            inner = partial(_inflated, file.open, codec, limit)
            yield from _unpacked(File(file.path, inner, file.named, file.done), limit, depth + 1)
            return
        for name, length, open_ in _zip(file, limit) if is_zip else _tar(file, limit):
            path = Path(f"{file.path}:{clean_text(name)}")
            yield from _unpacked(File(path, open_, False, file.done), length, depth + 1)
    except UnreadableError:
        raise
    except _DAMAGE as error:
        raise UnreadableError(f"the archive cannot be read on; {_WORDS}") from error


def _start(stream: IO[bytes]) -> bytes:
    try:
        return stream.read(512)
    except UnreadableError:
        return b""  # whoever reads the file meets it again, behind what is readable


def _zip(file: File, limit: int) -> Iterator[tuple[str, int, _Open]]:
    with _seekable(file.open(), limit) as handle, zipfile.ZipFile(handle) as archive:
        members = [info for info in archive.infolist() if not info.is_dir()]
        samples = [info for info in members if _is_sample(info.filename)]
        if samples and any(info.filename.endswith(_OF_INSPECT) for info in members):
            members = samples  # an Inspect log; all else in it repeats the samples
        if sum(info.file_size for info in members) > limit:
            raise UnreadableError(_TOO_LARGE)
        for number, info in enumerate(members):
            _count(number)
            if is_wanted(info.filename):
                stream = _zstd_member if info.compress_type == _ZSTD_MEMBER else _zip_member
                yield info.filename, info.compress_size, partial(stream, archive, handle, info)


def _is_sample(name: str) -> bool:
    return name.startswith("samples/") and name.count("/") == 1


def _zip_member(archive: zipfile.ZipFile, _: IO[bytes], info: zipfile.ZipInfo) -> IO[bytes]:
    return _buffered(_member_pieces(archive, info))


def _member_pieces(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    try:
        with archive.open(info) as member:
            while piece := member.read(1 << 16):
                yield piece
    except _DAMAGE as error:
        raise UnreadableError(f"the rest cannot be unpacked; {_WORDS}") from error


def _zstd_member(_: zipfile.ZipFile, handle: IO[bytes], info: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member that Python's ``zipfile`` reads from 3.14 on: its bytes behind its header."""
    handle.seek(info.header_offset + 26)
    name, extra = struct.unpack("<HH", handle.read(4))
    handle.seek(name + extra, io.SEEK_CUR)
    data = io.BytesIO(handle.read(info.compress_size))
    return _inflated(lambda: data, _zstd, info.file_size)


def _tar(file: File, limit: int) -> Iterator[tuple[str, int, _Open]]:
    left = limit
    with tarfile.open(fileobj=file.open(), mode="r|") as archive:
        for number, info in enumerate(archive):
            _count(number)
            data = archive.extractfile(info) if info.isreg() and is_wanted(info.name) else None
            if data is None:
                continue
            with _spooled(data, left) as member:
                left -= member.seek(0, io.SEEK_END)
                yield info.name, info.size, partial(_rewound, member)


def _rewound(member: IO[bytes]) -> IO[bytes]:
    member.seek(0)
    return member


def _count(number: int) -> None:
    if number >= MAX_MEMBERS:
        raise UnreadableError(f"it has more than {MAX_MEMBERS:,} members; the others were not read")


@contextmanager
def _seekable(stream: IO[bytes], limit: int) -> Iterator[IO[bytes]]:
    if stream.seekable():
        yield stream
        return
    with _spooled(stream, limit) as file:
        yield file


@contextmanager
def _spooled(stream: IO[bytes], limit: int | None) -> Iterator[IO[bytes]]:
    """Copy a stream, so that it can be read again: into memory, or onto disk where it is large."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
        size = 0
        while piece := stream.read(1 << 20):
            size += len(piece)
            if limit is not None and size > limit:
                raise UnreadableError(_TOO_LARGE)
            spool.write(piece)
        spool.seek(0)
        yield spool


class _Decompressor(Protocol):
    """What zlib, and zstandard like it, make of one compressed stream."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip() -> _Decompressor:
    return zlib.decompressobj(wbits=31)


def _zstd() -> _Decompressor:
    # As much of what went before as one frame may refer to, at most (the command's --ultra).
    decoder: Any = zstandard.ZstdDecompressor(max_window_size=128 << 20)
    made: _Decompressor = decoder.decompressobj()
    return made


_CODECS: Final = {b"\x1f\x8b": _gzip, b"\x28\xb5\x2f\xfd": _zstd}


def _inflated(open_: _Open, codec: Callable[[], _Decompressor], limit: int) -> IO[bytes]:
    return _buffered(_inflate(open_(), codec, limit))


def _inflate(source: IO[bytes], codec: Callable[[], _Decompressor], limit: int) -> Iterator[bytes]:
    """Expand streams that follow each other; one that is cut off raises behind what it held."""
    decoder, size, data = codec(), 0, source.read(_STEP)
    begun = False
    while data:
        try:
            piece = decoder.decompress(data)
        except _DAMAGE as error:
            raise UnreadableError(f"the rest cannot be unpacked; {_WORDS}") from error
        size += len(piece)
        if size > limit:
            raise UnreadableError(_TOO_LARGE)
        if piece:
            yield piece
        begun = not decoder.eof
        data = b"" if begun else decoder.unused_data.lstrip(b"\0")
        decoder = decoder if begun else codec()
        data = data or source.read(_STEP).lstrip(b"" if begun else b"\0")
    if begun:
        raise UnreadableError(f"the end is missing; {_WORDS}")


def _buffered(pieces: Iterator[bytes]) -> IO[bytes]:
    return io.BufferedReader(_Pieces(pieces), 1 << 16)


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if not self._left:
            self._left = memoryview(next(self._pieces, b""))
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count
