"""Which compiled statements are kept for the next question.

SQLAlchemy's own cache counts statements, not bytes. Those of a long query are large and seldom
asked again, and a reader may send ever new ones, in more than one parameter: they would fill the
memory. So here statements are counted by their length, for whoever asks and by whichever way.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from threading import Lock
from typing import Any, Final

from sqlalchemy import Compiled

__all__ = ["MOST_CHARACTERS", "KeptStatements"]

# Some 85 MB, and as much again that waits to be collected: a character costs 170 bytes, most of
# them for the tree of the statement. Every page together has 66,000 of them, 40,000 more with each
# other filter or kind of window.
MOST_CHARACTERS: Final = 500_000


class KeptStatements(MutableMapping[Any, Compiled]):
    """A cache of compiled statements, of which those that were asked last stay.

    Args:
        most: Characters of all statements together.
    """

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._most = most
        self._lock = Lock()
        self._kept = OrderedDict[Any, Compiled]()
        self.characters = 0
        self._garbage = 0

    def __getitem__(self, key: Any) -> Compiled:
        with self._lock:
            self._kept.move_to_end(key)
            return self._kept[key]

    def __setitem__(self, key: Any, statement: Compiled) -> None:
        with self._lock:
            self._remove(key)
            self._kept[key] = statement
            self.characters += len(statement.string)
            while self.characters > self._most:
                self._garbage += self._remove(next(iter(self._kept)))
            full = self._garbage > self._most
            if full:
                self._garbage = 0
        if full:
            # A statement's tree refers to itself, and a server looks for such garbage so rarely
            # (`http.server`) that gigabytes of it would come together. A look takes some tenths of
            # a second, after statements that took more than a second to compile.
            gc.collect()

    def __delitem__(self, key: Any) -> None:
        with self._lock:
            self._remove(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def _remove(self, key: Any) -> int:
        """Forget *key*, and return how many characters its statement had."""
        statement = self._kept.pop(key, None)
        length = 0 if statement is None else len(statement.string)
        self.characters -= length
        return length
