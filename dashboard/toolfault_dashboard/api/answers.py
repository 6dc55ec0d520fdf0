"""JSON answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from toolfault_dashboard.api.shapes import answer

__all__ = ["UNTRUSTED", "Json"]

UNTRUSTED = {"X-Content-Trust": "untrusted"}
"""On every answer with stored texts: a tool, a web page or a user wrote them, and a model may be
about to read them. They are data, whatever they say."""


class Json(Response):
    """Rows as a JSON answer that nobody may cache."""

    media_type = "application/json"

    def __init__(self, value: Any, *, headers: Mapping[str, str] | None = None) -> None:
        body = msgspec.json.encode(answer(value))
        super().__init__(
            body, headers={"Cache-Control": "no-store", **UNTRUSTED, **(headers or {})}
        )
