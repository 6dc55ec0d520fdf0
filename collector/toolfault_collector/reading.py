"""What a batch says: from the bytes of a request to what can be stored.

Runs in the collector's own process, and as a process beside it (``python -m
toolfault_collector.reading``), which `reader` starts and asks. That process is given one socket as
its standard input. A message on it is a length and so many bytes of msgpack; each request is
answered by one reply, in order, and when the socket ends so does the process.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import struct
from contextlib import suppress
from typing import Final

import msgspec

from toolfault_collector.decode import BadBatch, decode_batch
from toolfault_collector.prepared import Context
from toolfault_collector.submission import Submission, prepare_batch

__all__ = ["Request", "answer", "read_batch", "receive", "send", "understand"]

_LENGTH: Final = struct.Struct("<Q")


class Request(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One batch to be read, and what it is measured by. ``received_at`` is in microseconds."""

    body: bytes
    project_id: int
    received_at: int
    max_events: int
    max_event_bytes: int


class _Reply(msgspec.Struct, array_like=True, gc=False):
    """Either member: the batch, or why there is none (status, code, pointer)."""

    submission: Submission | None = None
    refused: tuple[int, str, str] | None = None


_REQUEST: Final = msgspec.msgpack.Decoder(Request)
_REPLY: Final = msgspec.msgpack.Decoder(_Reply)


def read_batch(request: Request) -> Submission:
    """Return what *request* says, ready to be stored.

    Raises:
        BadBatch: It is no batch.
    """
    batch = decode_batch(
        request.body, max_events=request.max_events, max_event_bytes=request.max_event_bytes
    )
    context = Context(request.project_id, request.received_at, resource=batch.resource)
    return prepare_batch(batch, context)


def answer(message: bytes | bytearray) -> bytes:
    """Return the reply to a request, both as the other process has them."""
    try:
        reply = _Reply(submission=read_batch(_REQUEST.decode(message)))
    except BadBatch as bad:
        reply = _Reply(refused=(bad.status, bad.code, bad.pointer))
    return msgspec.msgpack.encode(reply)


def understand(message: bytes | bytearray) -> Submission:
    """Return the batch of a reply.

    Raises:
        BadBatch: It was none.
        msgspec.MsgspecError: This is no such reply.
    """
    reply = _REPLY.decode(message)
    if reply.submission is None:
        raise BadBatch(*(reply.refused or (500, "unknown", "")))
    return reply.submission


def send(link: socket.socket, message: bytes) -> None:
    """Send *message*.

    Raises:
        OSError: Nobody takes it any more.
    """
    link.sendall(_LENGTH.pack(len(message)))
    link.sendall(message)


def receive(link: socket.socket) -> bytearray:
    """Wait for the next message and return it.

    Raises:
        EOFError: There is none: the other end is gone.
        OSError: The socket is gone.
    """
    (length,) = _LENGTH.unpack(_exactly(link, _LENGTH.size))
    return _exactly(link, length)


def _exactly(link: socket.socket, length: int) -> bytearray:
    message = bytearray(length)
    rest = memoryview(message)
    while rest:
        # In one call as a rule: a thread that returns from each piece waits for its turn each time.
        count = link.recv_into(rest, 0, socket.MSG_WAITALL)
        if not count:
            raise EOFError
        rest = rest[count:]
    return message


def main() -> None:
    """Answer requests until the process that asks is gone, however it ended."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        # Meant for the collector, where a terminal or a supervisor sends them to both.
        signal.signal(signum, signal.SIG_IGN)
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    with socket.socket(fileno=os.dup(0)) as link, suppress(EOFError, OSError):
        send(link, b"")  # ready
        while True:
            send(link, answer(receive(link)))


if __name__ == "__main__":
    main()
