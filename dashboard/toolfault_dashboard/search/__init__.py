"""The query language: one text, the same in the search box, the URL, the API and the command line.

query = parse("tool:http_request -audience:user since:7d")
str(query)                      # its canonical text
failures_where(...), chains_where(...), calls_where(...), counts_where(...)   # bound SQL
"""

from toolfault_dashboard.search.ast import TEXT, Clause, NumberRange, Pattern, Query
from toolfault_dashboard.search.errors import QueryError
from toolfault_dashboard.search.keys import (
    FACETS,
    KEYS,
    Key,
    arms_of,
    is_of_all_days,
    not_restricting_calls,
)
from toolfault_dashboard.search.parser import parse
from toolfault_dashboard.search.times import Moment, parse_moment

__all__ = [
    "FACETS",
    "KEYS",
    "TEXT",
    "Clause",
    "Key",
    "Moment",
    "NumberRange",
    "Pattern",
    "Query",
    "QueryError",
    "arms_of",
    "is_of_all_days",
    "not_restricting_calls",
    "parse",
    "parse_moment",
]
