"""How long a page counts before it says how far it is."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from starlette.requests import Request

__all__ = ["Waits"]

SECONDS: Final = 1.5
"""How long a page counts before it says how far it is: nobody wonders yet whether it was heard."""

MOST_TIMES: Final = 200
"""After so many steps an answer is waited for: what is forgotten faster than it is counted (more
days than memory has room for) would else never come."""

_MOST_PAGES: Final = 1_000


class Waits:
    """How often each reader was told of a page that it is not known yet. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: OrderedDict[tuple[str, str], int] = OrderedDict()

    def time_budget(self, request: Request) -> float | None:
        """Return after how many seconds the answer to *request* may say how far it is.

        None where it must not: of files, of what a form does, and for programs.
        """
        file = "." in request.url.path.rpartition("/")[2]
        page = "text/html" in request.headers.get("accept", "")
        if request.method != "GET" or file or not page:
            return None
        with self._lock:
            return SECONDS if self._times.get(_key(request), 0) < MOST_TIMES else None

    def again(self, request: Request) -> None:
        """Note that *request* was told to ask again."""
        key = _key(request)
        with self._lock:
            self._times[key] = self._times.pop(key, 0) + 1
            while len(self._times) > _MOST_PAGES:
                self._times.popitem(last=False)

    def over(self, request: Request) -> None:
        """Note that *request* was answered."""
        with self._lock:
            self._times.pop(_key(request), None)


def _key(request: Request) -> tuple[str, str]:
    return request.state.viewer.name, f"{request.url.path}?{request.url.query}"
