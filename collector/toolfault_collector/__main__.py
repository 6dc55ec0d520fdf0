"""``python -m toolfault_collector``: a collector without pages, set by the environment alone."""

from __future__ import annotations

import sys

from toolfault_collector.errors import CollectorError
from toolfault_collector.http.app import create_app
from toolfault_collector.http.server import serve
from toolfault_collector.log import configure
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.schema import prepare
from toolfault_collector.storage.database.server_lock import only_server


def main() -> int:
    """Serve until told to stop; the exit code is 0 only then."""
    settings = Settings()
    configure(settings.log_level)
    try:
        app = create_app(settings)
        engine = app.state.collector.engine
        with only_server(engine):
            # Before the port is taken, so that a database of no use is told in one sentence.
            prepare(engine, migrate=settings.migrate)
            serve(app, settings)
    except (CollectorError, OSError) as error:
        sys.stderr.write(f"toolfault-collector: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
