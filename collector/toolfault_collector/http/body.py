"""The body of a request, bounded while it streams: bytes sent, bytes decompressed, time.

No limit depends on what the sender says about itself: ``Content-Length`` only lets a request that
is too large be refused before it is read.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Collection
from email.message import Message as Head
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from toolfault_collector.http.problems import Problem
from toolfault_collector.settings import MIB, Settings

__all__ = ["JSON", "ClientGone", "Incoming", "content_type_of", "read_body"]

JSON: Final = "application/json"

# A client that is still sending when the connection closes sees a reset, not the answer; so a body
# that was refused is read on and thrown away, up to this much and this long.
DRAIN_BYTES: Final = 64 * MIB
DRAIN_SECONDS: Final = 5.0
# Text compresses 5 to 20 times; whatever does better than this is made to be a bomb.
MAX_RATIO: Final = 100
RATIO_FROM: Final = MIB
# Decompressed at a time, so that a bomb is seen before it has filled the memory it may take.
STEP_BYTES: Final = 256 * 1024
# RFC 1952 lets a file have many members; senders write one.
MAX_MEMBERS: Final = 16
_GZIP: Final = 16 + zlib.MAX_WBITS


class ClientGone(Exception):  # noqa: N818 - no fault, and nobody to tell
    """The sender closed the connection before the request was complete."""


class Incoming:
    """The messages of one request; knows whether its body has come to an end."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._complete = False

    async def __call__(self) -> Message:
        """Return the next message."""
        message = await self._receive()
        self._complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def drain(self) -> None:
        """Throw the rest of the body away, within bounds, so that the answer can be read."""
        left = DRAIN_BYTES
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self._complete and left > 0:
                    left -= len((await self()).get("body", b""))
        except TimeoutError:
            return


_LONGEST_TYPE: Final = 200  # characters of a Content-Type; those of senders have some forty


async def read_body(receive: Receive, headers: Headers, settings: Settings) -> bytes:
    """Return the decoded body of a request.

    Args:
        receive: Where it comes from.
        headers: Of the request.
        settings: The limits.

    Raises:
        Problem: It is too large, too slow, of another coding, or cannot be decompressed.
        ClientGone: The rest never came.
    """
    gzipped = _is_gzipped(headers)
    _check_length(headers, settings)
    decoder = _Gunzip(settings.max_decoded_bytes) if gzipped else None
    try:
        async with asyncio.timeout(settings.body_timeout_seconds):
            return await _read(receive, decoder, settings)
    except TimeoutError as error:
        detail = f"the body took longer than {settings.body_timeout_seconds:g} s; send it again"
        raise Problem(408, "slow_body", detail, {"Connection": "close"}) from error


def content_type_of(headers: Headers, types: Collection[str]) -> str:
    """Return which of *types* the body is of.

    Raises:
        Problem: It is of none of them.
    """
    content_type = headers.get("content-type", "")
    said = Head()
    # Reading parameters takes the square of their length.
    said["content-type"] = content_type if len(content_type) <= _LONGEST_TYPE else ""
    charset = said.get_content_charset("utf-8")
    found = said.get_content_type()
    if found not in types or charset not in ("utf-8", "utf8"):
        detail = f"send {' or '.join(types)} in UTF-8"
        raise Problem(415, "unsupported_media_type", detail, {"Accept": ", ".join(types)})
    return found


def _is_gzipped(headers: Headers) -> bool:
    coding = ",".join(headers.getlist("content-encoding")).strip().lower()
    if coding in ("", "identity"):
        return False
    if coding in ("gzip", "x-gzip"):
        return True
    detail = "send the body as it is or compressed with gzip"
    raise Problem(415, "unsupported_encoding", detail, {"Accept-Encoding": "gzip, identity"})


def _check_length(headers: Headers, settings: Settings) -> None:
    length = headers.get("content-length", "")
    if length.isdecimal() and len(length) < 20 and int(length) > settings.max_body_bytes:
        raise _too_large("body_too_large", settings.max_body_bytes, "the body")


async def _read(receive: Receive, decoder: _Gunzip | None, settings: Settings) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        more = message.get("more_body", False)
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > settings.max_body_bytes:
            raise _too_large("body_too_large", settings.max_body_bytes, "the body")
        if chunk:
            parts.append(chunk if decoder is None else decoder.feed(chunk))
    if decoder is not None:
        decoder.finish()
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    if len(body) > settings.max_decoded_bytes:
        raise _too_large("decoded_too_large", settings.max_decoded_bytes, "the body")
    return body


class _Gunzip:
    """Decompresses gzip as it arrives and stops at the first byte that is too much."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stream = zlib.decompressobj(_GZIP)
        self._members = 1
        self._read = 0
        self._written = 0

    def feed(self, chunk: bytes) -> bytes:
        self._read += len(chunk)
        parts = []
        while chunk:
            if self._stream.eof:
                self._next_member()
            try:
                part = self._stream.decompress(chunk, STEP_BYTES)
            except zlib.error as error:
                raise _bad_gzip() from error
            parts.append(part)
            self._written += len(part)
            self._check()
            chunk = self._stream.unused_data or self._stream.unconsumed_tail
        return b"".join(parts)

    def finish(self) -> None:
        if not self._stream.eof:
            raise _bad_gzip()

    def _next_member(self) -> None:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise _too_large("too_many_gzip_members", MAX_MEMBERS, "the number of gzip members")
        self._stream = zlib.decompressobj(_GZIP)

    def _check(self) -> None:
        if self._written > self._limit:
            raise _too_large("decoded_too_large", self._limit, "the decompressed body")
        if self._written > RATIO_FROM and self._written > MAX_RATIO * self._read:
            raise _too_large("compression_ratio", MAX_RATIO, "the compression ratio")


def _bad_gzip() -> Problem:
    return Problem(400, "bad_gzip", "the body is not one complete gzip stream")


def _too_large(code: str, limit: int, what: str) -> Problem:
    detail = f"{what} is over the limit of {limit}; split the batch and send the parts"
    return Problem(413, code, detail, {"Connection": "close"}, {"limit": limit})
