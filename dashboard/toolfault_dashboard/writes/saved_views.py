"""Saved views: a query under a name, private or for everybody who sees the project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Engine, delete, insert, or_, select

from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import saved_view, user_account

__all__ = ["PAGES", "SavedView", "delete_view", "save_view", "views_of"]

PAGES: Final = {
    "/": "Overview",
    "/failures": "Failures",
    "/round-trips": "Round trips",
    "/codes": "Codes and fields",
    "/tools": "Tools",
    "/messages": "Messages",
    "/fix-next": "Fix next",
}
"""Pages that a view can be saved of."""

_LONGEST_QUERY: Final = 8_192
_LONGEST_NAME: Final = 128
_MOST: Final = 200  # views of one person in one project; more are no help to anybody


@dataclass(frozen=True, slots=True)
class SavedView:
    """A saved view as it is listed."""

    id: int
    name: str
    page: str
    query: str
    shared: bool
    owner: str
    own: bool


def views_of(conn: Connection, project_id: int, user_id: int) -> tuple[SavedView, ...]:
    """Return the reader's own views and those that others shared, by name."""
    view = saved_view.c
    rows = conn.execute(
        select(
            view.id,
            view.name,
            view.page,
            view.query,
            view.shared,
            user_account.c.name.label("owner"),
            (view.user_id == user_id).label("own"),
        )
        .select_from(saved_view.outerjoin(user_account, user_account.c.id == view.user_id))
        .where(view.project_id == project_id, or_(view.user_id == user_id, view.shared))
        .order_by(view.name, view.id)
    )
    return tuple(
        SavedView(
            id=row.id,
            name=row.name,
            page=row.page,
            query=row.query,
            shared=row.shared,
            owner=row.owner or "",
            own=bool(row.own),
        )
        for row in rows
    )


def save_view(
    engine: Engine,
    project_id: int,
    user_id: int,
    *,
    name: str,
    page: str,
    query: str,
    shared: bool,
    now: int,
) -> None:
    """Save a view; one of the same name and owner is replaced.

    Raises:
        ValueError: Name, page or query cannot be saved; the text says why.
    """
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise ValueError(f"Give the view a name of 1 to {_LONGEST_NAME} characters.")
    if page not in PAGES:
        raise ValueError("Choose the page that the view is of.")
    if len(query) > _LONGEST_QUERY:
        raise ValueError(f"The query has more than {_LONGEST_QUERY} characters.")
    view = saved_view.c
    mine = (view.project_id == project_id, view.user_id == user_id)
    with write_transaction(engine) as conn:
        conn.execute(delete(saved_view).where(*mine, view.name == name))
        if len(conn.execute(select(view.id).where(*mine).limit(_MOST)).all()) == _MOST:
            raise ValueError(f"There are {_MOST} views already; delete one first.")
        conn.execute(
            insert(saved_view).values(
                project_id=project_id,
                user_id=user_id,
                name=name,
                page=page,
                query=query,
                shared=shared,
                created_at=now,
            )
        )


def delete_view(engine: Engine, project_id: int, user_id: int, number: int) -> bool:
    """Delete one of the reader's own views; say whether there was one."""
    view = saved_view.c
    with write_transaction(engine) as conn:
        done = conn.execute(
            delete(saved_view).where(
                view.id == number, view.project_id == project_id, view.user_id == user_id
            )
        )
    return done.rowcount == 1
