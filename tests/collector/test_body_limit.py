"""The limit of a body holds for bodies that do not say how long they are."""

from __future__ import annotations

from collections.abc import Iterator

from tests.running import RunningCollector

MIB = 1024 * 1024


def test_a_body_in_chunks_is_bounded(collector: RunningCollector):
    """Five MiB in chunks are read, one byte more is refused with 413."""

    def chunks(size: int) -> Iterator[bytes]:
        yield b'{"events": []}'
        left = size - 14
        while left:
            part = min(left, 64 * 1024)
            yield b" " * part
            left -= part

    def status(size: int) -> int:
        answer = collector.client.post(
            f"{collector.url}/v1/events",
            content=chunks(size),
            headers={"Content-Type": "application/json"},
        )
        return answer.status_code

    assert status(5 * MIB) == 200
    assert status(5 * MIB + 1) == 413
