"""The calls of one model turn, run at the same time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from toolfault.errors import ConfigError, ToolError, ToolResult


class BatchedCall(NamedTuple):
    """One call of a batch: its id and its result, with the id already at hand for messages."""

    call_id: str | None
    result: ToolResult[Any]

    @property
    def success(self) -> bool:
        """Whether the call succeeded."""
        return self.result.success

    @property
    def error(self) -> ToolError | None:
        """The failure, or None."""
        return self.result.error

    @property
    def value(self) -> Any:
        """What the tool returned, or None."""
        return self.result.value

    @property
    def message(self) -> str:
        """What the model reads of a failure, or the text of a success."""
        return self.result.message

    @property
    def is_error(self) -> bool:
        """The opposite of ``success``."""
        return self.result.is_error

    @property
    def content(self) -> Any:
        """The value on success, the text for the model on failure."""
        return self.result.content

    def to_dict(self) -> dict[str, Any]:
        """Return the contract dict of the result."""
        return self.result.to_dict()

    def to_tool_message(self) -> dict[str, Any]:
        """Return the ``role: "tool"`` message of this call."""
        return self.result.to_tool_message(self.call_id or "")

    def to_anthropic(self) -> dict[str, Any]:
        """Return the ``tool_result`` block of this call."""
        return self.result.to_anthropic(self.call_id or "")


def new_turn() -> str:
    """Return an id for one model turn."""
    return os.urandom(8).hex()


def checked_batch(
    calls: Iterable[tuple[str | None, str, object]],
) -> list[tuple[str | None, str, object]]:
    """Return the calls as a list.

    Raises:
        ConfigError: An element is no ``(call_id, name, arguments)``.
    """
    batch = list(calls)
    for place, call in enumerate(batch):
        if not isinstance(call, (tuple, list)) or len(call) != 3:
            raise ConfigError(f"call {place} of the batch is no (call_id, name, arguments)")
    return batch


async def settle(tasks: Sequence[asyncio.Future[Any]]) -> list[Any]:
    """Wait for all tasks, then return their results or raise the first exception.

    Waiting for all first keeps a passed-through exception of one call from tearing down the
    others. When the batch itself is cancelled, so are its calls.
    """
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    raised = [task for task in tasks if task.cancelled() or task.exception() is not None]
    if raised:
        return [await raised[0]]
    return [task.result() for task in tasks]
