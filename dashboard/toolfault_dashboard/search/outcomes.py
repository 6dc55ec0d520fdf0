"""The outcome of a chain at a moment, as a condition or column of any statement over ``chain``."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, and_, case, false, literal, or_

from toolfault_collector.storage.tables import chain

__all__ = ["outcome_at", "outcome_in"]


def outcome_at(now: int) -> ColumnElement[str]:
    """Return the outcome at *now* (microseconds) of the rows of ``chain`` in the statement.

    It is null where there is no chain.
    """
    open_still = (chain.c.settles_at > now, literal("open"))
    return case(open_still, else_=chain.c.outcome)


def outcome_in(now: int, outcomes: Collection[str]) -> ColumnElement[bool]:
    """Return whether the outcome at *now* is one of *outcomes*."""
    settled = [outcome for outcome in outcomes if outcome != "open"]
    found: list[ColumnElement[bool]] = [false()]
    if settled:
        found.append(and_(chain.c.outcome.in_(settled), chain.c.settles_at <= now))
    if "open" in outcomes:
        found.append(chain.c.settles_at > now)
    return or_(*found)
