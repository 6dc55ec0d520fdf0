"""Calls spent: what a chain cost, the one figure that pages rank by."""

from __future__ import annotations

from sqlalchemy import ColumnElement

from toolfault_collector.storage.tables import chain

__all__ = ["calls_spent"]


def calls_spent() -> ColumnElement[int]:
    """Return the calls that the rows of ``chain`` in the statement cost.

    These are its round trips, and the calls of other tools that the collector stored with it
    (`toolfault_collector.chains.other_calls`, which says what counts).
    """
    return chain.c.round_trips + chain.c.other_calls
