"""A server on a fresh database and a small fleet of agents whose tools fail.

Only the agents are invented: what they plan, how they slip and how they read an error text. The
tools are declared with the SDK, every failure crosses HTTP into the real collector and is read
from a real database. ``problems.py`` says which problems are planted and how they rank.

The room rule: this package alone may import ``toolfault``, as any agent would. The server does not
depend on the SDK, so it is loaded when a demo is asked for.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["run_demo"]


def run_demo(
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    database_url: str | None = None,
    seed: int = 7,
    days: int = 14,
    open_browser: bool = False,
) -> int:
    """Serve a demo until Ctrl-C and say with an exit status how it went.

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        database_url: Where to keep the data; a fresh SQLite file, removed at the end, if None.
        seed: Same seed and same moment of start, same agents and same calls.
        days: Days of history to send before the live part, 1 to 28 (the collector takes client
            times from 30 days back).
        open_browser: Open the sign-in link in the default browser.

    Returns:
        0 after Ctrl-C, 1 when the server could not be started, 2 when the SDK is not installed.
    """
    if find_spec("toolfault") is None:
        sys.stderr.write(
            "The demo is an agent like any other and needs the SDK: pip install ./sdk\n"
        )
        return 2
    from toolfault_dashboard.demo.serving import serve_demo

    return serve_demo(
        host=host,
        port=port,
        database_url=database_url,
        seed=seed,
        days=days,
        open_browser=open_browser,
    )
