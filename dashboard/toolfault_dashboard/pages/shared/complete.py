"""Completion of the query box: keys, then the values that are stored, as little JSON.

The box works without it; a script asks here while somebody types.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Final

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import sees
from toolfault_dashboard.formats import plural, visible
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.search import KEYS, Key, Pattern, QueryError, parse
from toolfault_dashboard.search.keys import ALIASES

__all__ = ["router"]

router = APIRouter()

MOST: Final = 12
_VALUES_READ: Final = 500
_RANK: Final = ("user", "llm", "system")
_AGES: Final = (("1h", "an hour"), ("24h", "a day"), ("7d", "a week"), ("14d", ""), ("30d", ""))
# What the caret stands in: a sign, a key with its colon, earlier values, and the start of a value.
_WORD: Final = re.compile(
    r"(?:^|(?<=\s))(?P<sign>-?)(?:(?P<key>[A-Za-z_.]+):(?P<earlier>(?:[^\s,\"]*,)*))?"
    r"(?P<start>\"?[^\s,\"]*)$"
)


@dataclass(frozen=True, slots=True)
class _Item:
    """One proposal: what replaces the word at the caret, and what it is."""

    text: str
    hint: str


@router.get("/complete", name="complete")
def complete(ask: Asked, at: int = -1) -> Response:
    """Answer the proposals for the word that ends at column *at* (the end by default)."""
    text = ask.request.query_params.get("text", "")
    before = text if at < 0 else text[:at]
    word = _WORD.search(before)
    items: list[_Item] = []
    if word is not None and len(text) <= 8_192:
        if word["key"] is None:
            items = _keys(ask, word["start"])
        else:
            rest = text[: word.start()] + text[len(before) :]
            items = _values(ask, word["key"].lower(), word["start"], rest)
    answer = {
        "from": len(before) - len(word["start"]) if word else len(before),
        "to": len(before),
        "items": [asdict(item) for item in items[:MOST]],
    }
    return JSONResponse(answer, headers={"Cache-Control": "no-store"})


def _may_ask(ask: Ask, key: Key) -> bool:
    return _RANK.index(key.audience) <= _RANK.index(sees(ask.viewer.role))


def _keys(ask: Ask, start: str) -> list[_Item]:
    return [
        _Item(f"{name}:", key.help)
        for name, key in KEYS.items()
        if name.startswith(start.lower()) and _may_ask(ask, key)
    ]


def _values(ask: Ask, name: str, start: str, rest: str) -> list[_Item]:
    """Return the values of a key under the other conditions, most failures first."""
    key = KEYS.get(ALIASES.get(name, name))
    if key is None or not _may_ask(ask, key):
        return []
    wanted = start.strip('"').lower()
    if key.kind == "presence":
        return [
            _Item(each, KEYS[each].help)
            for each in KEYS
            if each.startswith(wanted) and _may_ask(ask, KEYS[each]) and each != key.name
        ]
    if key.kind == "time":
        return [_Item(age, hint) for age, hint in _AGES if age.startswith(wanted)]
    if key.facet:
        return _stored(ask, key.name, wanted, rest)
    return [_Item(choice, "") for choice in key.choices if choice.startswith(wanted)]


def _stored(ask: Ask, key: str, wanted: str, rest: str) -> list[_Item]:
    try:
        query = parse(rest).without(key)
    except QueryError:
        query = parse("")
    scope = ask.scope_of(query.and_(ask.window_query(query)))
    return [
        _Item(str(Pattern((value.value,))), plural(value.failures, "failure"))
        for value in queries.values_of(ask.conn, scope, key, limit=_VALUES_READ)
        if value.value and wanted in value.value.lower() and visible(value.value) == value.value
    ]
