"""Figures: summaries, frequencies, facets, changes, projects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from toolfault_dashboard.analysis.rates import Rate

__all__ = [
    "ChangeRow",
    "Facet",
    "FacetValue",
    "Facets",
    "FailuresOverTime",
    "FrequencyRow",
    "FrequencyTable",
    "Overview",
    "ProjectRow",
    "Series",
    "Summary",
    "ToolCount",
    "ToolRow",
]


@dataclass(frozen=True, slots=True)
class ToolCount:
    """Calls and failures of one tool."""

    calls: int
    failures: int


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool: its calls, its failures, and what its chains came to."""

    tool: str
    calls: int  # folded successes included
    failures: int
    failure_rate: Rate  # failures of calls
    first_try_success: Rate  # operations without a chain, of operations
    chains: int
    recovered: int
    switched: int
    abandoned: int
    open: int
    calls_spent: int  # round trips, and calls of other tools that the chains cost
    round_trips: int
    identical_repeats: int
    time_lost_ms: float
    tokens_lost: int | None  # None where no chain reports them
    recovery_rate: Rate  # recovered of chains that are no longer open


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of ``toolfault summary``: every row of the scope counted.

    Nothing is estimated, but where a sender samples: a call then counts as those that it stands
    for. ``calls`` contain folded successes; ``chains`` = recovered + switched + abandoned + open.
    """

    conversations: int
    calls: int
    failures: int
    failure_rate: float | None  # failures / calls; None without calls
    chains: int
    recovered: int
    switched: int
    abandoned: int
    open: int
    round_trips: int
    calls_spent: int  # round trips, and calls of other tools that the chains cost
    mean_failures_before_recovery: float | None  # over recovered chains; None without any
    tools: Mapping[str, ToolCount]  # every tool with a call, most failures first
    codes: Mapping[str, int]  # failures by code, most first; one under each of its codes


@dataclass(frozen=True, slots=True)
class Overview:
    """The summary with its intervals and what a reader must know beside it."""

    summary: Summary
    failure_rate: Rate  # failures of calls
    recovery_rate: Rate  # recovered of chains that are no longer open
    first_try: Rate  # operations without a chain, of operations
    round_trips_per_failure: float | None
    untimed_failures: int  # failures whose source has no times; no chart draws them
    not_restricting_calls: tuple[str, ...]  # keys of the query that the denominator does not know
    sampled: bool = False  # calls stand for others that were not sent: figures are estimates


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart: a count per bucket."""

    name: str
    counts: tuple[int, ...]
    total: int


@dataclass(frozen=True, slots=True)
class FailuresOverTime:
    """Failures by code and time. Untimed failures are in no bucket; they are counted apart."""

    bucket: Literal["hour", "day", "week"]
    starts: tuple[int, ...]  # start of each bucket, without gaps, ascending
    calls: tuple[int, ...]  # calls in each bucket, folded successes included
    series: tuple[Series, ...]  # the most frequent codes, most failures first
    other: Series | None  # all further codes together
    untimed: int
    rates: tuple[Rate, ...] = ()  # failures of the calls of each bucket
    cut: tuple[int, ...] = ()  # places of buckets that the window, or now, cuts short
    earlier: int = 0  # failures before the first bucket, where the time has more than 1,000 weeks


@dataclass(frozen=True, slots=True)
class FrequencyRow:
    """How often one code, field, tool, model, message or signature fails."""

    name: str  # code, root field, tool, model, normalised message or fingerprint; "" for none
    tool: str | None  # of a field or signature
    code: str | None  # of a signature
    query: str  # clauses that select exactly these failures within the scope
    failures: int
    rate: Rate  # of the calls named by ``FrequencyTable.denominator``
    first_at: int | None  # first and last failure within the scope
    last_at: int | None
    new_since: str | None = None  # of a signature never seen before the latest change of its tool
    fields: str | None = None  # of a signature: the arguments it is about, in words


@dataclass(frozen=True, slots=True)
class FrequencyTable:
    """Frequencies by one dimension, ranked."""

    by: str
    rows: tuple[FrequencyRow, ...]
    failures: int  # of the scope; one with two fields, or codes, is in two rows of these
    calls: int
    denominator: str  # one sentence: which calls the rates are of
    groups: int  # groups in all; more than ``rows`` when the table was cut


@dataclass(frozen=True, slots=True)
class FacetValue:
    """One value of a facet, with the failures it would leave."""

    value: str  # "" where the failures carry none
    failures: int
    selected: bool


@dataclass(frozen=True, slots=True)
class Facet:
    """The most frequent values of one key under the current filter.

    Exact in a window of at most 1,000,000 failures, and up to 200,000 of a larger one. Beyond that
    also where daily counts hold the key: tool, code and field of a list that is filtered by nothing
    but tool, code and time (field: not by code).
    """

    key: str
    values: tuple[FacetValue, ...]
    distinct: int  # distinct values among the failures that are counted
    counted: int  # failures that are counted: all that the filter leaves without this key, or
    exact: bool  # the newest of them, if this is false


@dataclass(frozen=True, slots=True)
class Facets:
    """All facets of a list; each says whether it counts all failures or the newest of them."""

    facets: tuple[Facet, ...]
    counted: int  # failures of the list
    exact: bool  # whether all facets are


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A marker: something was changed here. What toolfault marks by itself was first seen then."""

    event_id: str
    occurred_at: int
    label: str
    tool: str | None
    kind: str  # manual | release | schema | variant | model
    source: str  # sdk | cli | dashboard | api, or toolfault: by itself, at the first sight of it
    name: str | None = None  # the model, release, schema or variant that was first seen
    agent: str | None = None  # whose release it is

    @property
    def is_detected(self) -> bool:
        """Whether nobody recorded it: toolfault saw something for the first time."""
        return self.source == "toolfault"


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project and how much it holds."""

    id: int
    name: str
    created_at: int
    last_failure_at: int | None
