"""Accounts, one-time sign-in links and sessions.

There is no password: the first start prints a link that makes the administrator's account, and
``toolfault sign-in-link`` prints another one whenever it is needed. Links and sessions are random
256-bit tokens; only their SHA-256 is kept (a slow hash protects guessable secrets, these are not),
so neither a dump of the database nor its backup signs anybody in. What it writes
is ``user_account``, ``login_session`` and, for every act, ``audit_log``.

An account that was made with a link but never used is *invited*: ``disabled_at == created_at``.
Following its first link enables it.
"""

from __future__ import annotations

import hashlib
import secrets
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any, Final, cast

from sqlalchemy import Connection, Engine, Select, case, func, insert, select, update

from toolfault_collector.admin.audit import note
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import login_session, user_account
from toolfault_dashboard.access.policy import ROLES, Role

__all__ = [
    "ADMIN_NAME",
    "DEFAULT_ADDRESS",
    "LINK_LIFETIME",
    "SESSION_LIFETIME",
    "Account",
    "LastAdminError",
    "SignInError",
    "Viewer",
    "accounts",
    "create_link",
    "disable",
    "has_account",
    "has_credential",
    "link_command",
    "link_is_valid",
    "own_name",
    "set_role",
    "sign_in",
    "sign_out",
    "viewer_of",
]

SERVER: Final = "server"
"""The actor of what the server does by itself, such as the link of its first start."""
ADMIN_NAME: Final = "admin"
DEFAULT_ADDRESS: Final = "http://127.0.0.1:8321"
"""Where a server listens that was told nothing else."""
_MICROSECONDS: Final = 1_000_000
LINK_LIFETIME: Final = 24 * 3_600 * _MICROSECONDS  # a start in the evening works in the morning
SESSION_LIFETIME: Final = 30 * 24 * 3_600 * _MICROSECONDS  # a page people keep open


class SignInError(ValueError):
    """A link that is unknown, used, expired or of a disabled account; one text for all of them."""

    def __init__(self) -> None:
        super().__init__("This sign-in link is not valid any more. It works once and for 24 hours.")


class LastAdminError(ValueError):
    """The last administrator would lose that role."""

    def __init__(self) -> None:
        super().__init__("This is the last administrator. Make somebody else one first.")


@dataclass(frozen=True, slots=True)
class Account:
    """An account as it is listed."""

    name: str
    role: str
    state: str  # active | invited | disabled
    last_sign_in_at: int | None  # microseconds since the epoch


@dataclass(frozen=True, slots=True)
class Viewer:
    """The signed-in person of a request."""

    user_id: int
    session_id: int
    name: str
    role: Role


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def has_account(conn: Connection) -> bool:
    """Say whether anybody has ever signed in and still may."""
    active = select(user_account.c.id).where(user_account.c.disabled_at.is_(None)).limit(1)
    return conn.execute(active).first() is not None


def has_credential(conn: Connection, *, now: int) -> bool:
    """Say whether anybody has an account or an open link; a public address needs that."""
    if has_account(conn):
        return True
    link = login_session.c
    waiting = select(link.id).where(
        link.kind == "link",
        link.used_at.is_(None),
        link.revoked_at.is_(None),
        link.expires_at > now,
    )
    return conn.execute(waiting.limit(1)).first() is not None


def create_link(
    engine: Engine,
    *,
    now: int,
    name: str = ADMIN_NAME,
    role: Role = "admin",
    actor: str = SERVER,
) -> str:
    """Return the token of a new one-time sign-in link for the account *name*.

    The account is made (as invited) when there is none; the role of an existing one stays.

    Args:
        engine: A writable engine.
        now: Microseconds since the epoch, UTC.
        name: The account, unique, at most 128 characters.
        role: Role of an account that has to be made.
        actor: Who asked for it, for the audit log.

    Raises:
        ValueError: The role is unknown or the name is empty or too long.
    """
    if role not in ROLES:
        raise ValueError(f"Role must be one of {', '.join(ROLES)}.")
    if not 0 < len(name) <= 128:
        raise ValueError("An account needs a name of 1 to 128 characters.")
    token = secrets.token_urlsafe(32)
    with write_transaction(engine) as conn:
        user_id = conn.execute(
            select(user_account.c.id).where(user_account.c.name == name)
        ).scalar_one_or_none()
        if user_id is None:
            made = conn.execute(
                insert(user_account)
                .values(name=name, role=role, created_at=now, disabled_at=now)
                .returning(user_account.c.id)
            )
            user_id = made.scalar_one()
        conn.execute(
            insert(login_session).values(
                user_id=user_id,
                kind="link",
                token_hash=_hash(token),
                created_at=now,
                expires_at=now + LINK_LIFETIME,
            )
        )
        note(conn, "link_created", actor=actor, at=now, account=name)
    return token


def own_name() -> str:
    """Return what a person types for this command: its path, where the shell does not know it."""
    called = Path(sys.argv[0])
    known = which(called.name)
    if called.name != "toolfault" or (known and Path(known).samefile(called)):
        return "toolfault"
    return shlex.quote(str(called))


def link_command(address: str, *, program: str = "toolfault") -> str:
    """Return the command that prints a sign-in link to the dashboard at *address*."""
    command = f"{program} sign-in-link"
    return command if address == DEFAULT_ADDRESS else f"{command} --url {shlex.quote(address)}"


def link_is_valid(conn: Connection, token: str, *, now: int) -> bool:
    """Say whether *token* would sign somebody in; nothing is used up."""
    return conn.execute(_open_link(token, now)).first() is not None


def _open_link(token: str, now: int) -> Select[Any]:
    return (
        select(
            login_session.c.id,
            login_session.c.user_id,
            user_account.c.name,
            user_account.c.disabled_at,
        )
        .join(user_account, user_account.c.id == login_session.c.user_id)
        .where(
            login_session.c.token_hash == _hash(token),
            login_session.c.kind == "link",
            login_session.c.used_at.is_(None),
            login_session.c.revoked_at.is_(None),
            login_session.c.expires_at > now,
            user_account.c.disabled_at.is_(None)
            | (user_account.c.disabled_at == user_account.c.created_at),
        )
    )


def sign_in(engine: Engine, token: str, *, now: int) -> str:
    """Use up a link and return the token of a new session.

    The link is claimed by one conditional update, so of two clicks at the same moment one wins.

    Raises:
        SignInError: The link does not work (any more).
    """
    cookie = secrets.token_urlsafe(32)
    with write_transaction(engine) as conn:
        link = conn.execute(_open_link(token, now)).first()
        if link is None:
            raise SignInError
        claimed = conn.execute(
            update(login_session)
            .where(login_session.c.id == link.id, login_session.c.used_at.is_(None))
            .values(used_at=now)
        )
        if claimed.rowcount != 1:
            raise SignInError
        conn.execute(
            update(user_account)
            .where(
                user_account.c.id == link.user_id,
                user_account.c.disabled_at == user_account.c.created_at,
            )
            .values(disabled_at=None)
        )
        conn.execute(
            insert(login_session).values(
                user_id=link.user_id,
                kind="cookie",
                token_hash=_hash(cookie),
                created_at=now,
                expires_at=now + SESSION_LIFETIME,
            )
        )
        note(conn, "signed_in", actor=link.name, at=now)
    return cookie


def viewer_of(conn: Connection, cookie: str, *, now: int) -> Viewer | None:
    """Return whose session *cookie* is; None when it is unknown, expired, revoked or disabled."""
    row = conn.execute(
        select(user_account.c.id, user_account.c.name, user_account.c.role, login_session.c.id)
        .join(user_account, user_account.c.id == login_session.c.user_id)
        .where(
            login_session.c.token_hash == _hash(cookie),
            login_session.c.kind == "cookie",
            login_session.c.revoked_at.is_(None),
            login_session.c.expires_at > now,
            user_account.c.disabled_at.is_(None),
        )
    ).first()
    if row is None or row[2] not in ROLES:
        return None
    return Viewer(user_id=row[0], name=row[1], role=cast("Role", row[2]), session_id=row[3])


def sign_out(engine: Engine, viewer: Viewer, *, now: int) -> None:
    """Revoke the session; its cookie is worth nothing from the next request on."""
    with write_transaction(engine) as conn:
        conn.execute(
            update(login_session)
            .where(login_session.c.id == viewer.session_id)
            .values(revoked_at=now)
        )
        note(conn, "signed_out", actor=viewer.name, at=now)


def accounts(conn: Connection) -> tuple[Account, ...]:
    """Return all accounts, by name."""
    user, session = user_account.c, login_session.c
    last = (
        select(func.max(session.created_at))
        .where(session.user_id == user.id, session.kind == "cookie")
        .correlate(user_account)
        .scalar_subquery()
    )
    rows = conn.execute(
        select(user.name, user.role, user.created_at, user.disabled_at, last).order_by(user.name)
    )
    return tuple(
        Account(
            name=name,
            role=role,
            state="active" if disabled is None else "invited" if disabled == made else "disabled",
            last_sign_in_at=signed_in,
        )
        for name, role, made, disabled, signed_in in rows
    )


def set_role(engine: Engine, name: str, role: Role, *, now: int, actor: str = SERVER) -> None:
    """Give an account another role and end all its sessions, so that the role holds at once.

    Raises:
        LookupError: There is no account of that name.
        LastAdminError: Nobody would be left to administer.
    """
    with write_transaction(engine) as conn:
        user_id = _end_sessions(conn, name, now=now, admin_stays=role == "admin")
        conn.execute(update(user_account).where(user_account.c.id == user_id).values(role=role))
        note(conn, "role_changed", actor=actor, at=now, account=name, role=role)


def disable(engine: Engine, name: str, *, now: int, actor: str = SERVER) -> None:
    """Close an account and end all its sessions; its name stays taken.

    Raises:
        LookupError: There is no account of that name.
        LastAdminError: Nobody would be left to administer.
    """
    with write_transaction(engine) as conn:
        user_id = _end_sessions(conn, name, now=now, admin_stays=False)
        made = user_account.c.created_at
        # Never equal to created_at: that would be an invitation.
        ended = case((made >= now, made + 1), else_=now)
        conn.execute(
            update(user_account).where(user_account.c.id == user_id).values(disabled_at=ended)
        )
        note(conn, "access_ended", actor=actor, at=now, account=name)


def _end_sessions(conn: Connection, name: str, *, now: int, admin_stays: bool) -> int:
    """Revoke every session of *name* and return the account's number."""
    user = user_account.c
    found = conn.execute(select(user.id, user.role).where(user.name == name)).first()
    if found is None:
        raise LookupError(f"There is no account named {name!r}.")
    if found.role == "admin" and not admin_stays:
        others = select(user.id).where(
            user.role == "admin", user.disabled_at.is_(None), user.id != found.id
        )
        if conn.execute(others.limit(1)).first() is None:
            raise LastAdminError
    conn.execute(
        update(login_session)
        .where(login_session.c.user_id == found.id, login_session.c.revoked_at.is_(None))
        .values(revoked_at=now)
    )
    return int(found.id)
