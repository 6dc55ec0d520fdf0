"""The outcome of a chain at a moment, as a condition or column of any statement over ``chain``."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, and_, case, literal, select

from toolfault_collector import chains
from toolfault_collector.tables import chain, conversation

__all__ = ["outcome_at", "outcome_in"]


def outcome_at(now: int) -> ColumnElement[str]:
    """Return the outcome at *now* (microseconds) of the rows of ``chain`` in the statement.

    The rule is the collector's; this only brings the conversation along, and not for recovered
    chains, whose outcome no conversation can change.
    """
    of_conversation = (
        select(chains.outcome_at(now))
        .select_from(conversation)
        .where(
            and_(
                conversation.c.project_id == chain.c.project_id,
                conversation.c.session_id == chain.c.session_id,
            )
        )
        .correlate(chain)
        .scalar_subquery()
    )
    return case((chain.c.recovered_at.is_not(None), literal("recovered")), else_=of_conversation)


def outcome_in(now: int, outcomes: Collection[str]) -> ColumnElement[bool]:
    """Return whether the outcome at *now* is one of *outcomes*.

    That a chain recovered is known without its conversation.
    """
    if set(outcomes) == {"recovered"}:
        return chain.c.recovered_at.is_not(None)
    return outcome_at(now).in_(outcomes)
