"""JSON answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from toolfault_dashboard.api.shapes import answer

__all__ = ["Json"]


class Json(Response):
    """Rows as a JSON answer that nobody may cache."""

    media_type = "application/json"

    def __init__(self, value: Any, *, headers: Mapping[str, str] | None = None) -> None:
        body = msgspec.json.encode(answer(value))
        super().__init__(body, headers={"Cache-Control": "no-store", **(headers or {})})
