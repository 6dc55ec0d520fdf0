"""API keys: 256 random bits, shown once, kept only as their SHA-256.

A slow password hash is not needed for a key that cannot be guessed, and looking the digest up by
index leaves no comparison whose timing could tell how much of a key was right.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import ColumnElement, Connection, Engine, insert, or_, select, update
from starlette.concurrency import run_in_threadpool

from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import read_connection
from toolfault_collector.storage.tables import api_key

__all__ = [
    "ApiKey",
    "KeyCache",
    "KeyKind",
    "authenticate",
    "create_key",
    "is_well_formed",
    "list_keys",
    "mark_used",
    "revoke_key",
    "rotate_key",
    "shown",
]

KeyKind = Literal["ingest", "read"]

_KEY: Final = re.compile(r"tf_(?:ingest|read)_[A-Za-z0-9_-]{43}", re.ASCII)
# "tf_ingest_" and four characters: enough to tell keys apart in a list, no help in guessing.
_SHOWN: Final = 14
# A revoked key is refused after this long at the latest, in every process; the promise is 5 s.
REMEMBER_SECONDS: Final = 2.0
MAX_REMEMBERED: Final = 1_024


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key as it is listed; the key itself is not stored. Times are in microseconds."""

    id: int
    project_id: int
    kind: str
    prefix: str
    label: str
    created_at: int
    last_used_at: int | None
    revoked_at: int | None


def create_key(conn: Connection, project_id: int, kind: KeyKind, *, label: str = "") -> str:
    """Make a key of *kind* for *project_id* and return it; it cannot be shown again.

    Raises:
        ValueError: *kind* is neither ``ingest`` nor ``read``.
    """
    if kind not in ("ingest", "read"):
        message = f"a key is of kind ingest or read, not {kind!r}"
        raise ValueError(message)
    token = f"tf_{kind}_{secrets.token_urlsafe(32)}"
    row = {
        "project_id": project_id,
        "kind": kind,
        "key_hash": _digest(token),
        "prefix": shown(token),
        "label": label[:128],
        "created_at": now_us(),
    }
    conn.execute(insert(api_key).values(row))
    return token


def shown(token: str) -> str:
    """Return the beginning of a key, by which people tell it from others."""
    return token[:_SHOWN]


def list_keys(conn: Connection, project_id: int | None = None) -> list[ApiKey]:
    """Return the keys of *project_id*, or of every project, oldest first, revoked ones included."""
    query = select(*_LISTED).order_by(api_key.c.id)
    if project_id is not None:
        query = query.where(api_key.c.project_id == project_id)
    return [ApiKey(**row) for row in conn.execute(query).mappings()]


def revoke_key(
    conn: Connection, key_id: int, *, project_id: int | None = None, at: int | None = None
) -> bool:
    """Revoke the key *key_id*; return whether it was valid until now.

    Args:
        conn: In a write transaction.
        key_id: The key.
        project_id: Its project, where a key of another must not be found.
        at: Microseconds until which it stays valid; now by default.
    """
    now = now_us()
    query = update(api_key).where(api_key.c.id == key_id, _valid(now))
    if project_id is not None:
        query = query.where(api_key.c.project_id == project_id)
    return conn.execute(query.values(revoked_at=now if at is None else at)).rowcount == 1


def rotate_key(conn: Connection, key_id: int, *, keep_us: int) -> str | None:
    """Return a new key in the place of *key_id*, which stays valid for *keep_us* microseconds.

    None if there is no such key, or it is revoked.
    """
    now = now_us()
    found = conn.execute(select(*_LISTED).where(api_key.c.id == key_id, _valid(now))).mappings()
    old = next((ApiKey(**row) for row in found), None)
    if old is None:
        return None
    revoke_key(conn, key_id, at=now + keep_us)
    kind: KeyKind = "read" if old.kind == "read" else "ingest"
    return create_key(conn, old.project_id, kind, label=old.label)


def _valid(now: int) -> ColumnElement[bool]:
    return or_(api_key.c.revoked_at.is_(None), api_key.c.revoked_at > now)


def mark_used(conn: Connection, key_ids: Iterable[int], *, at: int) -> None:
    """Note that the keys were used *at* (microseconds), in the order of their ids."""
    for key_id in sorted(key_ids):
        conn.execute(update(api_key).where(api_key.c.id == key_id).values(last_used_at=at))


def is_well_formed(token: str) -> bool:
    """Return whether *token* may be a key at all, which needs no look into the database."""
    return _KEY.fullmatch(token) is not None


def authenticate(conn: Connection, token: str) -> ApiKey | None:
    """Return the key that *token* is, or None if it is malformed, unknown or revoked."""
    if not is_well_formed(token):
        return None
    query = select(*_LISTED).where(api_key.c.key_hash == _digest(token), _valid(now_us()))
    row = conn.execute(query).mappings().one_or_none()
    return None if row is None else ApiKey(**row)


class KeyCache:
    """The keys of *engine*, each looked up once and remembered for a moment."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # Apart, so that a stranger who invents keys drives no real one out.
        self._known: _Remembered = {}
        self._unknown: _Remembered = {}

    async def find(self, token: str) -> ApiKey | None:
        """Return the key that *token* is, or None if it is malformed, unknown or revoked."""
        # Threads and connections are shared with the pages: what is no key costs neither.
        if not is_well_formed(token):
            return None
        digest = hashlib.sha256(token.encode()).digest()
        for remembered in (self._known, self._unknown):
            until, key = remembered.get(digest, (0.0, None))
            if until > time.monotonic():
                return key
        key = await run_in_threadpool(self._look_up, token)
        remembered, other = self._known, self._unknown
        if key is None:
            remembered, other = other, remembered
        if len(remembered) >= MAX_REMEMBERED:
            remembered.clear()
        other.pop(digest, None)
        remembered[digest] = (time.monotonic() + REMEMBER_SECONDS, key)
        return key

    def forget(self) -> None:
        """Look every key up again: one was revoked, in this process."""
        self._known.clear()
        self._unknown.clear()

    def _look_up(self, token: str) -> ApiKey | None:
        with read_connection(self._engine) as conn:
            return authenticate(conn, token)


_Remembered = dict[bytes, tuple[float, ApiKey | None]]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


_LISTED: Final = (
    api_key.c.id,
    api_key.c.project_id,
    api_key.c.kind,
    api_key.c.prefix,
    api_key.c.label,
    api_key.c.created_at,
    api_key.c.last_used_at,
    api_key.c.revoked_at,
)
