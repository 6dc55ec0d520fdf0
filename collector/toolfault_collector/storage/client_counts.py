"""What a server of tools reports of calls that its client reports to the same project.

A client says with each request where it reports (MCP: `_meta["toolfault"]["sink"]`). A server with
another key cannot know whether that is its own project, so it marks what it reports of such calls:
the calls, the counts of successes and the ends of conversations. Here the keys of all projects are
known. What a client of the same project counts is left out; a client of another project counts for
that one alone. Which side counts is decided by the request, so no order of arrival changes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from sqlalchemy import Connection

from toolfault_collector.protocol.records import CountsRecord, Record
from toolfault_collector.storage.database.bulk import fetch

__all__ = ["counted_by_clients", "sink_of"]

_KEYS: Final = "SELECT key_hash, revoked_at FROM api_key WHERE project_id = ? AND kind = 'ingest'"


def sink_of(key_hash: str) -> str:
    """Return what the holder of a key says of where it reports.

    Args:
        key_hash: SHA-256 of the key, in hex.
    """
    return sha256(f"sink {key_hash}".encode()).hexdigest()[:16]


def counted_by_clients(conn: Connection, marked: Iterable[Record]) -> list[Record]:
    """Return those of *marked* whose client has a key of their own project.

    From the moment on at which its key is revoked a client is not heard, and does not count.
    """
    by_project: defaultdict[int, list[Record]] = defaultdict(list)
    for each in marked:
        by_project[each.project_id].append(each)
    found = []
    for project_id, records in by_project.items():
        keys = fetch(conn, _KEYS, (project_id,))
        ends = {sink_of(key_hash): revoked_at for key_hash, revoked_at in keys}
        found += [each for each in records if _is_heard(each, ends)]
    return found


def _is_heard(record: Record, ends: dict[str, int | None]) -> bool:
    """Say whether the client had a valid key when it happened."""
    sink = record.counted_by
    if sink is None or sink not in ends:
        return False
    end = ends[sink]
    at = record.minute if isinstance(record, CountsRecord) else record.occurred_at
    return end is None or at < end
