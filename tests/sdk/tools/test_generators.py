"""Tools that are generators."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Generator

import pytest

import toolfault
from toolfault.tools import CallRecord


@toolfault.tool
def count(to: int) -> Generator[int, None, None]:
    """Count from nought."""
    for number in range(to):
        if number == 3:
            raise toolfault.ToolError("Cannot count so far", code="not_found")
        yield number


@toolfault.tool
async def count_later(to: int) -> AsyncIterator[int]:
    """Count from nought."""
    for number in range(to):
        if number == 3:
            raise toolfault.ToolError("Cannot count so far", code="not_found")
        yield number


def test_a_call_gives_all_that_a_generator_yields() -> None:
    """The model reads a list, whether the generator is asynchronous or not."""
    value: object = count.call({"to": 2}).value
    assert value == [0, 1]
    assert asyncio.run(count_later.call({"to": 2})).value == [0, 1]  # type: ignore[arg-type]


def test_a_call_fails_where_a_generator_raises(records: list[CallRecord]) -> None:
    """A failure in the middle is the failure of the call, and one record."""
    count.call({"to": 9})
    asyncio.run(count_later.call({"to": 9}))  # type: ignore[arg-type]
    errors = [record.error for record in records]
    assert [error and error.code.value for error in errors] == ["not_found", "not_found"]


def test_a_direct_call_leaves_its_record_when_the_generator_ends(
    records: list[CallRecord],
) -> None:
    """Nothing is recorded while it runs; then a success, or the failure that its caller sees."""
    running = count(2)
    assert next(running) == 0
    assert records == []
    assert list(running) == [1]
    with pytest.raises(toolfault.ToolError, match="so far"):
        list(count(9))
    stopped = count(2)
    next(stopped)
    stopped.close()
    assert [record.error is None for record in records] == [True, False, True]


async def _read(to: int, most: int) -> list[int]:
    found: list[int] = []
    running = count_later(to)
    async for number in running:
        found.append(number)
        if len(found) == most:
            break
    await running.aclose()  # type: ignore[attr-defined]
    return found


def test_a_direct_call_of_an_async_generator_is_recorded_like_any_other(
    records: list[CallRecord],
) -> None:
    """Read to its end, broken off, or failed: one record each."""
    assert asyncio.run(_read(2, 9)) == [0, 1]
    assert asyncio.run(_read(2, 1)) == [0]
    with pytest.raises(toolfault.ToolError, match="so far"):
        asyncio.run(_read(9, 9))
    assert [record.error is None for record in records] == [True, True, False]


def test_frameworks_see_what_they_ask_for() -> None:
    """Strands and the ADK stream a tool only if it is an async generator function."""
    assert inspect.isgeneratorfunction(count)
    assert inspect.isasyncgenfunction(count_later)


@toolfault.tool
async def echo_later() -> AsyncGenerator[str, str]:
    """Give back what is sent, also what is thrown."""
    given = "ready"
    while True:
        try:
            given = yield given
        except KeyError as thrown:
            given = f"caught {thrown}"


@pytest.mark.usefixtures("records")
def test_an_async_generator_hears_what_is_sent_and_thrown() -> None:
    """It runs as written, whoever listens."""

    async def talk() -> list[str]:
        running = echo_later()
        said = [await anext(running)]
        said.append(await running.asend("hello"))
        said.append(await running.athrow(KeyError("no")))
        await running.aclose()
        return said

    assert asyncio.run(talk()) == ["ready", "hello", "caught 'no'"]
