"""Contents of the Gemini API: parts with a ``functionCall`` or a ``functionResponse``.

Python dumps write both in snake case, and ADK puts the content into an event. Failure rule: an
``error`` in the response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolfault_collector.importers.formats.openai import call_of, message_time
from toolfault_collector.importers.items import Call, Dialect, Json, Outcome
from toolfault_collector.importers.members import name_of, objects_of, result_text

__all__ = ["DIALECT"]

_CALLS: Final = ("functionCall", "function_call")
_RESPONSES: Final = ("functionResponse", "function_response")


def _sign(message: Json) -> str:
    for part in _parts(message):
        for name in (*_CALLS, *_RESPONSES):
            if part.get(name):
                return f'"{name}"'
    return ""


def _parts(message: Json) -> list[Json]:
    content = message.get("content")
    return objects_of((content if isinstance(content, dict) else message).get("parts"))


def _entries(message: Json, index: int) -> Iterator[Call | Outcome]:
    for place, part in enumerate(_parts(message)):
        for call in filter(None, map(part.get, _CALLS)):
            if isinstance(call, dict):
                yield call_of(message, call, identity=f"{index}.{place}", turn=f"{index}")
        for answer in filter(None, map(part.get, _RESPONSES)):
            if isinstance(answer, dict):
                yield _outcome(message, answer)


def _outcome(message: Json, answer: Json) -> Outcome:
    response = answer.get("response")
    error = response.get("error") if isinstance(response, dict) else None
    return Outcome(
        call_id=name_of(answer.get("id")),
        text=result_text(error or response),
        failed=bool(error),
        tool=name_of(answer.get("name")),
        at=message_time(message),
    )


DIALECT: Final = Dialect(
    name="gemini",
    title="Gemini contents, ADK events",
    failure="an `error` in the `functionResponse`",
    members=("parts", "functionCall", "functionResponse"),
    sign=_sign,
    entries=_entries,
)
