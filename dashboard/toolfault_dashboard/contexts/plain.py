"""Pages without data of their own: sign-in, help, errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from markupsafe import Markup

from toolfault_dashboard.contexts.shell import Link, View
from toolfault_dashboard.search import Key

__all__ = [
    "CountingContext",
    "DocsContext",
    "ErrorContext",
    "GlossaryEntry",
    "HelpContext",
    "QueryErrorContext",
    "SignInContext",
    "TooSlowContext",
]


@dataclass(frozen=True, slots=True)
class SignInContext:
    """`sign_in.html`."""

    token: Doc[str, "The token of a link that works; empty to explain how to get one."]
    problem: Doc[str, "Why a link did not work; empty if none was followed."]
    next: Doc[str, "Path to go to after signing in."]
    command: Doc[str, "What to run on the server for a new link."]


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """`error.html`."""

    status: Doc[int, "HTTP status."]
    headline: Doc[str, "What happened, in a few words."]
    sentence: Doc[str, "What happened and what to do."]
    home: Doc[str, "Where to go on."]


@dataclass(frozen=True, slots=True)
class QueryErrorContext:
    """`query_error.html`."""

    view: Doc[View, "The query bar with the text at fault."]
    message: Doc[str, "What is wrong with the query, and what to do."]
    pointer: Doc[str, "Spaces up to the column at fault, then a caret."]
    suggestion: Doc[str, "The nearest valid word; empty if there is none."]
    column: Doc[int, "Column at fault, from 1."]


@dataclass(frozen=True, slots=True)
class TooSlowContext:
    """`too_slow.html`."""

    view: Doc[View | None, "The query bar with what was asked; none where the page has none."]
    seconds: Doc[int, "After how many seconds it was stopped."]
    narrower: Doc[tuple[Link, ...], "The same question over less time."]
    again: Doc[str, "The same page once more."]
    address: Doc[str, "Its address, for reading: what a page without a query bar was asked."]


@dataclass(frozen=True, slots=True)
class CountingContext:
    """`counting.html`."""

    view: Doc[View | None, "The query bar with what was asked; none where the page has none."]
    question: Doc[int, "Which of the page's questions is being counted, from 1."]
    done: Doc[int, "Parts of the question that are known."]
    of: Doc[int, "Parts that it has; 0 if that is not known yet."]
    again: Doc[str, "The same page, which goes on counting."]


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """A word and its meaning."""

    word: Doc[str, "The word as the pages use it."]
    meaning: Doc[str, "What it means, in a sentence."]


@dataclass(frozen=True, slots=True)
class HelpContext:
    """`help.html`."""

    keys: Doc[tuple[Key, ...], "The keys of the query language."]
    glossary: Doc[tuple[GlossaryEntry, ...], "The words of the pages."]
    codes: Doc[tuple[GlossaryEntry, ...], "The known codes."]
    failures: Doc[str, "Address of the Failures page, for the examples."]
    docs: Doc[tuple[Link, ...], "Pages of the documentation to go on with."]


@dataclass(frozen=True, slots=True)
class DocsContext:
    """`docs.html`."""

    title: Doc[str, "Heading of the page."]
    body: Doc[Markup, "The page below its heading, as HTML."]
    sections: Doc[tuple[Link, ...], "Its sections."]
    is_index: Doc[bool, "Whether it is the page that lists all others."]
