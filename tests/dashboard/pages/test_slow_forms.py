"""A form that never comes to an end holds nothing but its own connection, and not for long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from toolfault_collector.http.problems import Problem
from toolfault_dashboard.access.security import FormBodies

POST: dict[str, Any] = {"type": "http", "method": "POST", "path": "/views", "headers": []}


async def _send(_: Message) -> None:
    """Nobody reads the answer."""


async def test_the_page_is_not_asked_before_the_form_is_there():
    """A form that is not complete within its time is refused; no page held anything for it."""
    asked: list[str] = []

    async def page(scope: Scope, _receive: Receive, _send: Send) -> None:
        asked.append(scope["path"])

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(Problem) as refused:
        await FormBodies(page, seconds=0.01)(POST, receive, _send)

    assert (refused.value.status, refused.value.code) == (408, "slow_body")
    assert asked == []


async def test_a_complete_form_arrives_as_it_was():
    """The page reads the whole body, however it was cut."""
    parts = [b"label=be", b"fore&", b"tool=search"]
    read: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def page(_scope: Scope, receive: Receive, _send: Send) -> None:
        message = await receive()
        assert not message["more_body"]
        read.append(message["body"])

    await FormBodies(page)(POST, receive, _send)

    assert read == [b"label=before&tool=search"]


async def test_what_is_longer_than_a_form_is_not_cut_in_silence():
    """A route that takes longer bodies, or refuses them, sees that more follows, and gets it."""
    sent = [b"a" * 50_000, b"b" * 50_000, b"c"]
    parts, read = list(sent), bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def route(_scope: Scope, receive: Receive, _send: Send) -> None:
        more = True
        while more:
            message = await receive()
            read.extend(message["body"])
            more = message["more_body"]

    await FormBodies(route)(POST, receive, _send)

    assert bytes(read) == b"".join(sent)


async def test_a_sender_that_leaves_is_answered_by_nobody():
    """A connection that closes in the middle of a form asks no page."""

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def page(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError

    await FormBodies(page)(POST, receive, _send)
