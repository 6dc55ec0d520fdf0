"""Failures, one failure, one chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.contexts.shell import ColumnChoice, Link, View
from toolfault_dashboard.queries.failures.kinds import KindRow
from toolfault_dashboard.queries.rows import (
    Attempt,
    ChainRow,
    ConversationCall,
    ConversationDetail,
    FailureDetail,
    FailureRow,
)

__all__ = [
    "AudienceText",
    "ChainContext",
    "ChainLine",
    "ConversationContext",
    "ConversationStep",
    "Deciding",
    "FacetGroup",
    "FacetLine",
    "FailureContext",
    "FailureLine",
    "FailuresContext",
    "FilterForm",
    "KindLine",
    "KindsTable",
    "OtherCall",
    "Remedy",
    "Step",
]


@dataclass(frozen=True, slots=True)
class FailureLine:
    """A failure in a list."""

    row: Doc[FailureRow, "What is stored."]
    href: Doc[str, "The failure, with the list kept for previous and next."]
    chain: Doc[str, "Its chain; empty outside a conversation."]


@dataclass(frozen=True, slots=True)
class ChainLine:
    """A chain in a list."""

    row: Doc[ChainRow, "What is stored."]
    href: Doc[str, "The chain."]
    cells: Doc[tuple[str, ...], "What the added columns hold."]


@dataclass(frozen=True, slots=True)
class FacetLine:
    """One value of a facet."""

    label: Doc[str, "The value, or words for none."]
    failures: Doc[int, "Failures that carry it under the other conditions."]
    href: Doc[str, "The view with this value added or taken away."]
    selected: Doc[bool, "Whether the query asks for it."]


@dataclass(frozen=True, slots=True)
class FacetGroup:
    """One facet."""

    title: Doc[str, "The key in words."]
    lines: Doc[tuple[FacetLine, ...], "Its most frequent values."]
    more: Doc[int, "Values left out."]
    all: Doc[str, "Where all values are; empty where no page has them."]
    newest: Doc[int, "Failures, the newest, that it counts; 0 if it counts all of them."]


@dataclass(frozen=True, slots=True)
class FilterForm:
    """The form for readers who do not type queries: values of the present query."""

    tool: Doc[str, "Tool."]
    code: Doc[str, "Code."]
    field: Doc[str, "Field."]
    category: Doc[str, "Category."]
    audience: Doc[str, "Audience."]
    chain: Doc[str, "Outcome of the chain."]
    rest: Doc[str, "The conditions that the form does not know, kept as they are."]


@dataclass(frozen=True, slots=True)
class Deciding:
    """What a reader may decide about kinds of failure, and where that is sent."""

    form: Doc[str, "Where the form is sent."]
    changes: Doc[tuple[tuple[str, str], ...], "What may have fixed them: event id and words."]
    ends: Doc[tuple[tuple[str, str], ...], "When ignoring may end: value and words."]


@dataclass(frozen=True, slots=True)
class KindLine:
    """The failures of one signature, as one row."""

    row: Doc[KindRow, "What was counted."]
    exception: Doc[str, "Its exception, where another row has the same tool, code and arguments."]
    href: Doc[str, "These failures, as a list."]
    share: Doc[float, "Share of the failures of the view, 0 to 1."]
    drawn: Doc[str, "When they happened: the path of a drawing; empty where no times are known."]
    peak: Doc[str, "When most of them happened, in words; empty where no times are known."]


@dataclass(frozen=True, slots=True)
class KindsTable:
    """The failures of the view by kind."""

    lines: Doc[tuple[KindLine, ...], "The kinds, in the order that the address asks for."]
    new: Doc[Link, "The kinds that are new in the last day; current where the query asks so."]
    columns: Doc[ColumnChoice, "The columns that can be chosen."]
    deciding: Doc[Deciding | None, "What can be decided about them; None if the role may not."]
    done: Doc[str, "What was just done, as a sentence; else empty."]
    groups: Doc[int, "Kinds in all."]
    pages: Doc[dict[str, str], "Addresses of the pages before and after; empty at the ends."]
    buckets: Doc[int, "How many moments each drawing has."]
    per: Doc[str, "What one bar of a drawing is: `hour`, `day` or `week`."]
    sorts: Doc[dict[str, tuple[str, str]], "Of each column: address and `aria-sort` (or empty)."]
    csv: Doc[str, "All kinds as CSV."]


@dataclass(frozen=True, slots=True)
class FailuresContext:
    """`failures.html`."""

    view: Doc[View, "The query bar."]
    tabs: Doc[tuple[Link, ...], "The same failures one by one and by kind."]
    kinds: Doc[KindsTable | None, "The failures by kind; None where they are listed one by one."]
    form: Doc[FilterForm, "The filter form."]
    rows: Doc[tuple[FailureLine, ...], "This page of failures, newest first."]
    total: Doc[int, "Failures of the view."]
    facets: Doc[tuple[FacetGroup, ...], "Facets with live counts."]
    facets_exact: Doc[bool, "Whether every facet counts all failures of the view."]
    facets_counted: Doc[int, "Failures, the newest, that the other facets count."]
    pages: Doc[dict[str, str], "Addresses of the newer and older page; empty at the ends."]
    csv: Doc[str, "This list as CSV."]
    alert: Doc[str, "Where an alert about this list is made; empty where the role may not."]
    columns: Doc[ColumnChoice, "The columns that can be added."]
    cells: Doc[tuple[tuple[str, ...], ...], "What the added columns hold, row by row."]
    nothing_new: Doc[str, "Why no kind is new, where those are asked for; else empty."]


@dataclass(frozen=True, slots=True)
class AudienceText:
    """One of the three renderings of a failure."""

    audience: Doc[str, "`user`, `llm` or `system`."]
    title: Doc[str, "Who reads it, in words."]
    purpose: Doc[str, "Where it appears."]
    text: Doc[str | None, "The text exactly as stored; None where there is none."]
    shown: Doc[bool, "Whether the reader's role may see it."]
    primary: Doc[bool, "Whether the failure is for this audience."]
    hides: Doc[tuple[str, ...], "What this failure holds that this audience is not told."]


@dataclass(frozen=True, slots=True)
class OtherCall:
    """A call of the same conversation that is not of the chain."""

    call: Doc[ConversationCall, "What is stored."]
    href: Doc[str, "The failure; empty for a success."]


@dataclass(frozen=True, slots=True)
class ConversationStep:
    """One call of a conversation on its timeline."""

    call: Doc[ConversationCall, "What is stored."]
    number: Doc[int, "Position in the conversation, from 1."]
    href: Doc[str, "The failure; empty for a success."]
    chain_href: Doc[str, "Its chain; empty for a call of none."]
    started: Doc[int | None, "When it started, microseconds since the epoch."]
    after: Doc[str, "How long after the end of the call before it; empty if unknown."]


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """`conversation.html`."""

    detail: Doc[ConversationDetail, "What is stored."]
    steps: Doc[tuple[ConversationStep, ...], "One page of its calls in order."]
    lede: Doc[str, "How many calls, failures and chains it has."]
    notes: Doc[tuple[str, ...], "What is not listed, in sentences."]
    failures: Doc[str, "Its failures as a list."]
    csv: Doc[str, "Its failures as a file."]
    earlier: Doc[str, "The page before; empty on the first."]
    later: Doc[str, "The next page; empty on the last."]
    back: Doc[Link, "The list of failures."]


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a chain on its timeline."""

    attempt: Doc[Attempt, "The call."]
    number: Doc[int, "Position on the timeline, from 1."]
    href: Doc[str, "The failure; empty for a success."]
    here: Doc[bool, "Whether it is the failure being looked at."]
    started: Doc[int | None, "When it started, microseconds since the epoch."]
    after: Doc[str, "How long after the end of the call before it; empty if unknown."]
    changes: Doc[tuple[tuple[str, str, str], ...], "Differences of arguments: mark, path, words."]
    between: Doc[tuple[OtherCall, ...], "What else was called since the call before it."]
    more_between: Doc[int, "How many of these are not in `between`."]
    again: Doc[bool, "Whether the model was told the very text of the failure before it."]
    told: Doc[
        tuple[tuple[str, str], ...],
        "What it was told against the failure before it: `=`, `+` or `-` and words; else empty.",
    ]


@dataclass(frozen=True, slots=True)
class Remedy:
    """A near miss: what would have accepted the value."""

    field: Doc[str, "The field."]
    pattern: Doc[str, "The argument to mend as a pattern, as Fix next names it; empty: unknown."]
    name: Doc[str, "The remedy as it is stored."]
    words: Doc[str, "The remedy, in words."]
    href: Doc[str, "Fix next for the tool; empty if the reader may not see it."]
    form: Doc[str, "Where to add it to Fix next; empty if it stands there or may not be added."]
    added: Doc[str, "Who added it to Fix next; empty if nobody did."]


@dataclass(frozen=True, slots=True)
class FailureContext:
    """`failure.html`."""

    detail: Doc[FailureDetail, "Everything stored that the reader may see."]
    headline: Doc[str, "The text of the highest audience the reader may see."]
    texts: Doc[tuple[AudienceText, ...], "The three renderings."]
    code_meaning: Doc[str, "What the code means, or whose it is."]
    category_meaning: Doc[str, "What the category means."]
    facts: Doc[
        tuple[tuple[str, str, str], ...], "Label, value and address (or empty) of each fact."
    ]
    steps: Doc[tuple[Step, ...], "Its chain."]
    outcome_meaning: Doc[str, "What the outcome of its chain means; empty without one."]
    chain_href: Doc[str, "Address of the chain; empty outside a conversation."]
    newer: Doc[str, "The next newer failure of the list; empty at the end."]
    older: Doc[str, "The next older failure of the list; empty at the end."]
    back: Doc[str, "The list it was opened from."]
    similar: Doc[str, "The failures of the same signature; empty without one."]
    remedies: Doc[tuple[Remedy, ...], "Near misses of its issues."]
    copies: Doc[tuple[tuple[str, str, str], ...], "The failure elsewhere: id, label, text to copy."]
    payload: Doc[str, "What the reader may see, as JSON."]
    issues_csv: Doc[str, "Its issues as CSV."]
    deciding: Doc[Deciding | None, "What can be decided about its kind; None if nothing."]
    history: Doc[
        tuple[tuple[int, str, str], ...], "What was decided: when, by whom, and what in words."
    ]
    done: Doc[str, "What was just decided, as a sentence; else empty."]
    values_withheld: Doc[bool, "Whether its sender told type and size in the place of values."]


@dataclass(frozen=True, slots=True)
class ChainContext:
    """`chain.html`."""

    chain: Doc[ChainRow, "What is stored."]
    steps: Doc[tuple[Step, ...], "Its calls in order."]
    tellings: Doc[
        tuple[Link, ...], "What the model was told: whole, or against the failure before it."
    ]
    outcome_meaning: Doc[str, "What the outcome means, in a sentence."]
    facts: Doc[
        tuple[tuple[str, str, str], ...], "Label, value and address (or empty) of each fact."
    ]
    notes: Doc[tuple[str, ...], "What is remarkable about it, in sentences."]
    csv: Doc[str, "The failures of the chain as CSV."]
    conversation: Doc[str, "Its conversation, with the calls of all tools."]
    back: Doc[Link, "The list of chains."]
