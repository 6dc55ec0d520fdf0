"""Stores batches as a collector does, and notes each that was acknowledged (`test_power_loss`)."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from contextlib import closing

from tests.factories import event_id, failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.submission import read_events
from toolfault_collector.runtime import Collector
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import write_transaction

SENDERS = 3
BATCH = 10


def main(database_url: str, synchronous: str, acknowledged: str, batches: str) -> None:
    """Store so many *batches* of each sender; write the ids of each to the file *acknowledged*.

    Ends without closing anything: what happens then is no part of the trace.
    """
    collector = Collector(
        Settings(database_url=database_url, synchronous=synchronous)  # type: ignore[arg-type]
    )
    collector.start()
    with write_transaction(collector.engine) as conn:
        project_id = ensure_project(conn, "demo")
    file = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def send(number: int) -> None:
        for turn in range(int(batches)):
            session = f"c{number}-{turn // 3}"
            make = [failure, failure, success]
            events = [
                make[place % 3](session_id=session, event_id=event_id()) for place in range(BATCH)
            ]
            ready = read_events(events, Context(project_id, now_us()))
            assert collector.writer.store(ready).accepted == BATCH
            os.write(file, (" ".join(str(each["event_id"]) for each in events) + "\n").encode())
            if number == 0 and turn % 2:
                # The log is copied into the file, which is when a lost write hurts most.
                with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as raw:
                    raw.execute("PRAGMA wal_checkpoint(PASSIVE)")

    threads = [threading.Thread(target=send, args=(number,)) for number in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
