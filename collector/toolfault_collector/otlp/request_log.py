"""The last requests of OTLP of each project, and what was made of them.

They answer a sender's first question: why is my failure not here?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec
from sqlalchemy import Connection

from toolfault_collector.otlp.calls.calls import TraceCalls
from toolfault_collector.otlp.submission import TraceSubmission
from toolfault_collector.storage.database.bulk import columns, insert_rows, run
from toolfault_collector.storage.tables import otlp_request

__all__ = ["KEPT_REQUESTS", "SHOWN_ITEMS", "keep_request"]

KEPT_REQUESTS: Final = 200  # of each project
SHOWN_ITEMS: Final = 60  # of each request
_TEXT: Final = 200  # characters

_COLUMNS: Final = columns(
    "project_id received_at signal encoding sender items calls rejected detail"
)
_REMOVE: Final = (
    "DELETE FROM otlp_request WHERE project_id = ? AND id <= (SELECT id FROM otlp_request"
    " WHERE project_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)"
)


def keep_request(
    conn: Connection, given: TraceSubmission, made: Sequence[TraceCalls], *, changed: int
) -> None:
    """Store what is shown of one request.

    Args:
        conn: In the transaction that stores its traces.
        given: The request.
        made: What its traces come to now.
        changed: Calls that are new, or stored anew, because of it.
    """
    request = given.request
    if request is None:
        return
    detail = [[each[:_TEXT] for each in line] for line in islice(_lines(given, made), SHOWN_ITEMS)]
    row = (
        *(given.project_id, given.received_at, request.signal, request.encoding, request.sender),
        *(request.items, changed, len(request.refused) + len(given.rejected)),
        msgspec.json.encode(detail).decode() if detail else None,
    )
    insert_rows(conn, otlp_request, _COLUMNS, [row])
    run(conn, _REMOVE, [(given.project_id, given.project_id, KEPT_REQUESTS)])


def _lines(given: TraceSubmission, made: Iterable[TraceCalls]) -> Iterator[tuple[str, str, str]]:
    """Yield what became of each span of the request: its name, the verdict, and why."""
    if given.request is not None:
        for refused in given.request.refused:
            yield refused.name, "rejected", refused.reason
    mine = {span.span_id for batch in given.traces for span in batch.spans}
    for each in made:
        for call in each.calls:
            if not mine or call.span_id in mine:
                yield call.tool, "failure" if call.failed else "call", call.detection
    for each in made:
        for unused in each.unused:
            if not mine or unused.span_id in mine:
                yield unused.name, "no call", unused.detail or unused.reason
