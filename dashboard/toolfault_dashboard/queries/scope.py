"""Which rows a reader asks for, and which of their parts the reader may see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from toolfault_dashboard.search import Query, parse

__all__ = ["Audience", "Scope"]

Audience = Literal["user", "llm", "system"]


@dataclass(frozen=True, slots=True)
class Scope:
    """One project, one query, one moment: what every query function takes.

    Attributes:
        project_id: The project; no row of another one is ever read.
        query: The parsed filter; ``search.parse("")`` means everything.
        now: Microseconds since the epoch, UTC. Relative times and idle time are measured from it,
            so that all figures of one page agree.
        audience: The highest audience the reader may see (``user`` < ``llm`` < ``system``).
    """

    project_id: int
    query: Query
    now: int
    audience: Audience = "system"

    def narrowed(self, text: str) -> Scope:
        """Return the same scope with the clauses of *text* added.

        Raises:
            QueryError: *text* is no valid query.
        """
        return replace(self, query=self.query.and_(parse(text)))
