"""Record the answers anew: ``python -m tests.golden.record [SOURCE...]``.

Do this only where an answer was wrong, and read the difference before it is committed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.golden.answers import answers_about, record
from tests.golden.filling import DEMO, NOW, REAL

from toolfault_collector.storage.database.engine import open_engine
from toolfault_collector.storage.database.schema import prepare


def main() -> None:
    """Record the named sources, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="*", default=[*REAL, DEMO], metavar="SOURCE")
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    data = Path(os.environ.get("TOOLFAULT_SHARED_DATA", beside))
    time.time_ns = lambda: int(NOW.timestamp()) * 1_000_000_000
    for source in parser.parse_args().sources:
        with tempfile.TemporaryDirectory() as folder:
            template = Path(folder) / "template.db"
            engine = open_engine(f"sqlite:///{template}")
            prepare(engine, migrate=True)
            engine.dispose()
            record(source, answers_about(source, lambda: data, Path(folder), template=template))


if __name__ == "__main__":
    main()
