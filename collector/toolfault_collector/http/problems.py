"""Error answers: RFC 9457 problem documents, made here and nowhere else.

A problem says what was wrong and what to do. It never repeats what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.types import Scope, Send

__all__ = ["Problem", "send_json", "send_problem"]


@dataclass(slots=True)
class Problem(Exception):  # noqa: N818 - named after the document it becomes
    """A request that cannot be answered as asked.

    Attributes:
        status: HTTP status.
        code: Stable snake_case name of the problem.
        detail: One sentence: what is wrong and what to do.
        headers: Further headers of the answer, such as ``Retry-After``.
        members: Further members of the document, such as a limit.
    """

    status: int
    code: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, Any] = field(default_factory=dict)

    def document(self, request_id: str | None) -> dict[str, Any]:
        """Return the problem document."""
        return {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            **self.members,
            "request_id": request_id,
        }


# On every answer of the collector, whatever it is taken for.
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)


async def send_json(
    send: Send,
    status: int,
    *,
    body: bytes,
    content_type: bytes = b"application/json",
    headers: Mapping[str, str] | None = None,
) -> None:
    """Send a complete answer with the JSON *body*."""
    raw = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        *_HEADERS,
    ]
    raw.extend((name.lower().encode(), text.encode()) for name, text in (headers or {}).items())
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def send_problem(scope: Scope, send: Send, problem: Problem) -> None:
    """Send *problem* as the answer to the request of *scope*."""
    document = problem.document(scope.get("state", {}).get("request_id"))
    await send_json(
        send,
        problem.status,
        body=msgspec.json.encode(document),
        content_type=b"application/problem+json",
        headers=problem.headers,
    )
