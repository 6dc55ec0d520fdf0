"""Listening to the records of tool calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toolfault.tools import CallRecord, observe, unobserve


@contextmanager
def recorded() -> Iterator[list[CallRecord]]:
    """Collect the records of all calls inside the block."""
    records: list[CallRecord] = []

    def listen(record: CallRecord) -> None:
        records.append(record)

    observe(listen)
    try:
        yield records
    finally:
        unobserve(listen)
