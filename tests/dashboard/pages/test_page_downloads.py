"""Files of the pages are bounded like those of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest
from starlette.types import Message
from tests.dashboard.pages.conftest import Browser

from toolfault_dashboard.exports.downloads import AT_ONCE, Download


def test_a_reader_has_so_many_files_at_a_time(browser: Browser):
    """One more is refused with 429 and when to come again; the place of a finished one is free."""
    running = browser.client.app.state.services.running  # type: ignore[attr-defined]
    address = "/codes.csv?project=generated&window=all"
    for _ in range(AT_ONCE):
        running.begin("admin")
    refused = browser.get(address)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    for _ in range(AT_ONCE):
        running.end("admin")

    for _ in range(AT_ONCE + 1):
        assert browser.get(address).status_code == 200


async def test_a_file_that_is_read_too_slowly_is_cut_off():
    """When its time is over the source of a file is closed, though its reader goes on."""
    closed: list[bool] = []

    def chunks() -> Generator[bytes]:
        try:
            while True:
                yield b"a line\n"
        finally:
            closed.append(True)

    async def send(_: Message) -> None:
        await asyncio.Event().wait()  # a reader that takes nothing

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    source = chunks()
    answer = Download(next(source), source, seconds=0.01)
    with pytest.raises(TimeoutError):
        await answer({"type": "http", "method": "GET", "path": "/x.csv"}, receive, send)

    assert closed == [True]
