"""Another try for refused events: after an upgrade this version may understand what it refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Engine

from toolfault_collector.protocol.decode import BadBatch
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.submission import Submission, read_events
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.database.errors import classify
from toolfault_collector.storage.rejects import Kept, kept_rejects, remove_rejects
from toolfault_collector.storage.store import store_group

__all__ = ["Retried", "retry_rejects"]

# Events tried in one transaction: writers wait for some milliseconds.
AT_ONCE: Final = 200


@dataclass(slots=True)
class Retried:
    """What became of refused events: stored now, stored already, or refused again."""

    accepted: int = 0
    duplicate: int = 0
    refused: int = 0


def retry_rejects(
    engine: Engine,
    *,
    project_id: int | None = None,
    code: str | None = None,
    dry_run: bool = False,
) -> Retried:
    """Store every kept event that this version can store; the others stay kept.

    Secrets were removed when the event was kept, so they are missing from what is stored. A
    client's time is believed as it would have been when the event arrived.

    Args:
        engine: The database.
        project_id: Only events of this project.
        code: Only events that were refused with this code.
        dry_run: Store nothing, only count what could be (as accepted).
    """
    done, after = Retried(), 0
    while kept := kept_rejects(
        engine, project_id=project_id, code=code, after=after, limit=AT_ONCE
    ):
        after = kept[-1].id
        ready = [(each, found) for each in kept if (found := _read(each)) is not None]
        done.refused += len(kept) - len(ready)
        if dry_run:
            done.accepted += len(ready)
        elif ready:
            _store(engine, ready, done)
    return done


def _read(kept: Kept) -> Submission | None:
    """Return the event of *kept*, ready to be stored, or None if it still cannot be."""
    if kept.body is None:
        return None
    try:
        submission = read_events([kept.body.encode()], Context(kept.project_id, kept.received_at))
    except BadBatch:
        return None  # too large to be kept whole
    return None if submission.rejected else submission


def _store(engine: Engine, ready: list[tuple[Kept, Submission]], done: Retried) -> None:
    """Store what is *ready*; what the database refuses stays kept and costs itself alone."""
    try:
        with write_transaction(engine) as conn:
            receipts = store_group(conn, [each for _, each in ready]).receipts
            remove_rejects(conn, [each.id for each, _ in ready])
    except Exception as error:
        if classify(error) in ("full", "unavailable"):
            raise
        if len(ready) == 1:
            done.refused += 1
        else:
            for each in ready:
                _store(engine, [each], done)
        return
    done.accepted += sum(receipt.accepted for receipt in receipts)
    done.duplicate += sum(receipt.duplicate for receipt in receipts)
