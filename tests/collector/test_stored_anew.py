"""What a writer remembers and did before is no part of what it stores when it has to begin anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, select
from tests.collector.poisons import poison
from tests.collector.test_writer import submission_of
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import failure, success

from toolfault_collector.doctor.recount import recount
from toolfault_collector.runtime import Collector
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.tables import (
    chain,
    conversation,
    issue,
    message,
    signature,
    tool_call,
)


@pytest.fixture
def collector(engine: Engine) -> Iterator[Collector]:
    """A started collector on each engine, without HTTP."""
    running = Collector(Settings(), engine=engine)
    running.start()
    yield running
    running.stop()


def _store(collector: Collector, *fields: str) -> None:
    events = [failure(field=name) for name in fields]
    collector.writer.store(submission_of(collector.engine, *events))


def _remove_everything(engine: Engine) -> None:
    """Do what retention does to a project of which nothing is young."""
    with write_transaction(engine) as conn:
        for table in (issue, tool_call, chain, conversation, message, signature):
            conn.execute(table.delete())


def _mixed_up(engine: Engine) -> list[str]:
    """The fields of failures that are stored under the signature or message of another."""
    query = select(tool_call.c.field, signature.c.fields, message.c.text)
    query = query.join(signature, signature.c.id == tool_call.c.signature_id)
    with read_connection(engine) as conn:
        rows = conn.execute(query.join(message, message.c.id == tool_call.c.message_id)).all()
    return [
        row.field
        for row in rows
        if f'"{row.field}"' not in row.fields or f" {row.field} " not in row.text
    ]


@POSTGRESQL_IS_LONG
def test_id_that_was_given_again_is_not_taken_for_the_old_row(collector: Collector) -> None:
    """A failure is never stored as another, whose row has the id of one that was removed."""
    _store(collector, "known")
    _remove_everything(collector.engine)

    _store(collector, "other")
    _store(collector, "known")

    assert _mixed_up(collector.engine) == []


def test_rows_of_one_batch_are_not_mixed_up(collector: Collector) -> None:
    """Nor where the batch that makes the new row has failures of the removed one as well."""
    _store(collector, "known")
    _remove_everything(collector.engine)

    _store(collector, "known", "other")

    assert _mixed_up(collector.engine) == []


@POSTGRESQL_IS_LONG
def test_success_beside_a_poison_event_ends_no_chain(collector: Collector) -> None:
    """What was the retry of a failure that the database then refused is stored as no retry."""
    with write_transaction(collector.engine) as conn:
        poison(conn, when="NOT new.success")

    receipt = collector.writer.store(submission_of(collector.engine, failure(), success()))

    assert (receipt.accepted, [each.code for each in receipt.rejected]) == (1, ["unstorable"])
    with read_connection(collector.engine) as conn:
        place = conn.execute(select(tool_call.c.chain_id, tool_call.c.attempt)).one()
    assert tuple(place) == (None, None)
    assert recount(collector.engine).right
