"""Inspect AI's logs: samples whose messages name a call's function directly.

A ``.eval`` file is a zip of samples, a ``.json`` log an object that holds them. Tools that the
provider runs stand with their result among the content (``tool_type``). Failure rule: the ``error``
of a tool message or of such a block, or the ``parse_error`` of a call that none answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolfault_collector.importers.formats.openai import call_of, message_time
from toolfault_collector.importers.items import Call, Dialect, Json, Outcome
from toolfault_collector.importers.members import name_of, objects_of, read_time, text_of

__all__ = ["DIALECT", "is_sample", "times_of"]

# What Inspect calls a failure (its ToolCallError.type), by the rule that means the same.
_RULES: Final = {
    "timeout": "timeout",
    "permission": "access_denied",
    "file_not_found": "not_found",
    "is_a_directory": "is_directory",
    "approval": "rejected_by_user",
}


def is_sample(wrapper: Json) -> bool:
    """Tell a sample of Inspect from other objects that hold messages."""
    return "epoch" in wrapper


def times_of(sample: Json) -> dict[str, tuple[int | None, int | None]]:
    """Give start and end of the calls of a sample by their id, which stand in its events."""
    times: dict[str, tuple[int | None, int | None]] = {}
    for event in objects_of(sample.get("events")) if is_sample(sample) else ():
        call_id = name_of(event.get("id"))
        if event.get("event") == "tool" and call_id is not None:
            started, ended = (read_time(event.get(key)) for key in ("timestamp", "completed"))
            times.setdefault(call_id, (started, ended))
    return times


def _sign(message: Json) -> str:
    if message.get("role") == "tool" and "tool_call_id" in message:
        if isinstance(message.get("function"), str):
            return '"function" of a tool message'
        if "tool_error" in message:
            return '"tool_error" of a tool message'
        return '"error" of a tool message' if isinstance(message.get("error"), dict) else ""
    if message.get("role") == "assistant":
        if any(
            isinstance(call.get("function"), str) for call in objects_of(message.get("tool_calls"))
        ):
            return '"function" of a call'
        return '"tool_type"' if _run_by_provider(message) else ""
    return ""


def _run_by_provider(message: Json) -> list[Json]:
    return [block for block in objects_of(message.get("content")) if "tool_type" in block]


def _entries(message: Json, index: int) -> Iterator[Call | Outcome]:
    if message.get("role") == "assistant":
        for place, call in enumerate(objects_of(message.get("tool_calls"))):
            named = {**call, "name": call.get("function")}
            issued = call_of(message, named, identity=f"{index}.{place}", turn=f"{index}")
            yield issued
            yield from _unparsed(issued, call)
        for place, block in enumerate(_run_by_provider(message)):
            issued = call_of(message, block, identity=f"{index}.p{place}", turn=f"{index}")
            server = name_of(block.get("context"))
            issued.tool = f"{server}/{issued.tool}" if server else issued.tool
            yield issued
            error = text_of(block.get("error"))
            yield Outcome(issued.call_id, error or text_of(block.get("result")), bool(error))
    elif message.get("role") == "tool":
        yield _answer(message)


def _answer(message: Json) -> Outcome:
    error = message.get("error") or message.get("tool_error")  # the latter until May 2024
    kind = error.get("type") if isinstance(error, dict) else None
    text = text_of(error.get("message") if isinstance(error, dict) else error)
    return Outcome(
        call_id=name_of(message.get("tool_call_id")),
        text=text or text_of(message.get("content")),
        failed=bool(error),
        tool=name_of(message.get("function")),
        at=message_time(message),
        rule=_RULES.get(kind) if isinstance(kind, str) else None,
    )


def _unparsed(issued: Call, call: Json) -> Iterator[Outcome]:
    # Inspect answers such a call with the same text, which is then a copy of this.
    if (text := name_of(call.get("parse_error"))) is not None:
        yield Outcome(issued.call_id, text, True, issued.tool)


DIALECT: Final = Dialect(
    name="inspect",
    title="Inspect AI logs (.eval, .json)",
    failure="the `error` of the tool message, or the `parse_error` of the call",
    members=("samples", "messages", "epoch"),
    sign=_sign,
    entries=_entries,
)
