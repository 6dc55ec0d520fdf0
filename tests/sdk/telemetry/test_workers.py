"""Workers of ``multiprocessing`` and ``concurrent.futures``: what they capture arrives (S7)."""

from __future__ import annotations

import itertools
import multiprocessing
from pathlib import Path

import pytest
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import python

PROGRAM = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import toolfault
import tests.sdk.telemetry.patient

@toolfault.tool
def add(a: int) -> int:
    return a

def begin(dsn):
    if toolfault.client() is None:
        toolfault.init(dsn)

def work(number):
    with toolfault.conversation(f"c{number}"):
        for a in (1, 2, "x", 3, 4):
            add.call({"a": a})

if __name__ == "__main__":
    dsn, method, pool, when = sys.argv[1:]
    context = multiprocessing.get_context(method)
    if when == "before":
        toolfault.init(dsn)
        add.call({"a": 1})
    if pool == "Pool":
        workers = context.Pool(2, begin, (dsn,))
        workers.map(work, range(4), chunksize=1)
        workers.close()
        workers.join()
    else:
        with ProcessPoolExecutor(2, context, begin, (dsn,)) as executor:
            list(executor.map(work, range(4)))
"""


EVERY_WAY = itertools.product(
    multiprocessing.get_all_start_methods(), ["Pool", "ProcessPoolExecutor"], ["before", "inside"]
)
IN_SHORT = [("fork", "Pool", "before"), ("spawn", "ProcessPoolExecutor", "inside")]


@pytest.mark.parametrize(
    ("method", "pool", "when"),
    [pytest.param(*w, marks=[] if w in IN_SHORT else pytest.mark.long) for w in EVERY_WAY],
)
def test_what_workers_capture_arrives(
    method: str, pool: str, when: str, collector: Server, tmp_path: Path
) -> None:
    """However workers are started and wherever ``init`` is called, their last calls arrive too."""
    program = tmp_path / "workers.py"
    program.write_text(PROGRAM)
    agent = python(str(program), collector.dsn, method, pool, when)
    assert (agent.returncode, agent.stderr) == (0, "")
    assert collector.calls() == 4 * 5 + (when == "before")
    assert collector.sent_once()
