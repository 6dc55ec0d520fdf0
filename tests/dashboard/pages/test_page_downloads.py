"""Files of the pages are bounded like those of the API."""

from __future__ import annotations

import asyncio
import csv
import io
import sys
from collections.abc import Generator

import pytest
from starlette.types import Message
from tests.dashboard.pages.conftest import Browser

from toolfault_dashboard.exports.downloads import AT_ONCE, Download
from toolfault_dashboard.formats import count, duration, percent


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


@pytest.mark.parametrize("there", [True, False])
def test_parquet_is_offered_where_it_can_be_made(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, there: bool
):
    """Without pyarrow the Export menu has the other formats alone."""
    if not there:
        monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
        monkeypatch.setattr("toolfault_dashboard.exports.parquet.find_spec", lambda _: None)
    page = browser.page("/codes?project=generated&window=all").main
    offered = {each.href.partition("?")[0] for each in page.links if each.download}
    assert "/codes.csv" in offered
    assert ("/codes.parquet" in offered) == there


def test_the_file_of_the_tools_has_every_column_of_their_table(browser: Browser):
    """Each tool's figures in the file are those that the page shows, whichever it was told to."""
    shown = ("calls", "failures", "first_try", "abandoned", "repeats", "time", "tokens")
    given = f"project=generated&window=all&cols={','.join(shown)}"
    table = browser.page(f"/tools?{given}").table("Tool", "First-try success")
    text = browser.get("/tools.csv?project=generated&window=all").text
    rows = {row["tool"]: row for row in csv.DictReader(io.StringIO(text))}

    assert len(table.rows) == len(rows)
    for line in table.rows:
        row = rows[line["Tool"].text]
        assert line["Calls"].text == count(int(row["calls"]))
        assert line["Abandoned"].text == count(int(row["abandoned"]))
        assert line["Same again"].text == count(int(row["identical_repeats"]))
        lost = float(row["time_lost_ms"])
        assert line["Time lost"].text == (duration(lost) if lost else "–")
        tokens = row["tokens_lost"]
        assert line["Tokens lost"].text == (count(int(tokens)) if tokens else "–")
        first = row["first_try_success"]
        assert not first or percent(float(first)) in line["First-try success"].text


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
