"""Bodies that began as good batches, each damaged in a way drawn from its number and the seed."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.factories import change, conversation_end, counts, failure, success, tool_error

__all__ = ["VALUES", "Body", "bodies", "damaged", "mutated", "places"]

Body = tuple[bytes, dict[str, str]]

JSON: Final = {"Content-Type": "application/json"}
TOKENS: Final = (
    b"NaN", b"-Infinity", b"1e999", b"-0", b"9" * 40, b"9223372036854775808", b"0.1e-400",
    b'"\\ud800"', b'"\\u0000"', b"\\", b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"true",
    b'""', b"\x00", b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"[" * 64, b'{"a":' * 40,
    b"\xef\xbb\xbf", b"1970-01-01T00:00:00Z", b"9999-12-31T23:59:60+23:59", b"//", b"%s%n",
    b"' OR 1=1 --", b"=cmd|x", b"<script>", b"\xe2\x80\xae", b"../../etc/passwd", b"tool_call",
)  # fmt: skip
VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 2**31, 2**53, 2**63, -(2**63) - 1, 1.5, -0.0, 1e308, "", "x" * 300,
    "x" * 20_000, "\x00", "\u202e", "é" * 9_000, [], {}, [[]], {"": {}}, [None] * 60, ["a"] * 400,
    {str(n): n for n in range(250)}, "2026-02-30T00:00:00Z", "-1", "NaN",
)  # fmt: skip
HUGE: Final = 10**400
NAMES: Final = ("tool", "error", "event_id", "type", "dropped", "x" * 400, "__proto__", "\ud800")
Mutation = Callable[[random.Random, bytes], bytes]


def _flip(draw: random.Random, body: bytes) -> bytes:
    changed = bytearray(body)
    for _ in range(draw.randint(1, 6)):
        changed[draw.randrange(len(changed))] = draw.getrandbits(8)
    return bytes(changed)


def _insert(draw: random.Random, body: bytes) -> bytes:
    at = draw.randrange(len(body) + 1)
    return body[:at] + draw.choice(TOKENS) + body[at:]


def _replace(draw: random.Random, body: bytes) -> bytes:
    start = draw.randrange(len(body))
    return body[:start] + draw.choice(TOKENS) + body[start + draw.randint(1, 12) :]


def _cut(draw: random.Random, body: bytes) -> bytes:
    start, end = sorted(draw.randrange(len(body) + 1) for _ in range(2))
    return body[:start] + body[end:]


def _truncate(draw: random.Random, body: bytes) -> bytes:
    return body[: draw.randrange(len(body))]


def _repeat(draw: random.Random, body: bytes) -> bytes:
    start, end = sorted(draw.randrange(len(body) + 1) for _ in range(2))
    return body[:end] + body[start:end] * draw.randint(1, 3) + body[end:]


def _value(draw: random.Random, body: bytes) -> bytes:
    """Put an odd value where some member stands; the rest stays a batch."""
    batch = json.loads(body)
    found = list(places(batch))
    for _ in range(draw.randint(1, 3)):
        holder, key = draw.choice(found)
        holder[key] = draw.choice((*VALUES, HUGE))
    return json.dumps(batch).encode()


def _rename(draw: random.Random, body: bytes) -> bytes:
    """Take a member away, or give it another's name."""
    batch = json.loads(body)
    holder, key = draw.choice([place for place in places(batch) if isinstance(place[0], dict)])
    value = holder.pop(key)
    if draw.random() < 0.5:
        holder[draw.choice(NAMES)] = value
    return json.dumps(batch).encode()


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each object or list in *value* with each key or position in it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in list(pairs):
        yield value, key
        if isinstance(child, dict | list):
            yield from places(child)


MUTATIONS: Final[tuple[Mutation, ...]] = (
    _flip, _insert, _replace, _cut, _truncate, _repeat, _value, _value, _value, _rename
)  # fmt: skip


def damaged(draw: random.Random, data: bytes) -> bytes:
    """Change some of the bytes of *data*, whatever they mean."""
    return draw.choice(MUTATIONS[:6])(draw, data)


def mutated(draw: random.Random, body: bytes, *, is_json: bool = True) -> bytes:
    """Damage *body*; of JSON some members as well, and then it stays JSON."""
    body = draw.choice(MUTATIONS if is_json else MUTATIONS[:6])(draw, body)
    if draw.random() < 0.15:
        body = draw.choice(MUTATIONS[:6])(draw, body) if body else b"\x00"
    return body


def bodies(seed: int, count: int) -> Iterator[Body]:
    """Yield *count* mutated bodies and their headers; the same damage for the same *seed*."""
    sender = {
        "schema_version": 1,
        "sent_at": "2026-11-22T10:00:00Z",
        "sdk": {"name": "toolfault", "version": "1.0.0"},
        "resource": {"agent": "a", "user": "u"},
        "dropped": {"queue_full": 3, "too_large": 1},
    }
    seeds = [
        json.dumps({**sender, "events": events}).encode()
        for events in (
            [failure(), success()],
            [failure(error={"retry_context": {"a": [1, {"b": None}]}}, tags={"a": "b"})],
            [tool_error(), counts(), change()],
            [conversation_end(), failure(args_diff=[{"path": "a", "change": "removed"}])],
            [failure(error={"exception": {"type": "E", "traceback": "x\n" * 50}})],
        )
    ]
    for number in range(count):
        draw = random.Random(f"{seed}/{number}")
        body = mutated(draw, draw.choice(seeds))
        headers = dict(JSON)
        if draw.random() < 0.2:
            body = gzip.compress(body, 1, mtime=0)
            headers["Content-Encoding"] = "gzip"
            if draw.random() < 0.5:
                body = draw.choice(MUTATIONS[:6])(draw, body)
        yield body, headers
