"""Help: the query language, the words, the codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard.glossary import CODES, GLOSSARY
from toolfault_dashboard.pages.shared.ask import Asked
from toolfault_dashboard.pages.shared.frame import Context, Link
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.search import KEYS

__all__ = ["router"]


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """A word and its meaning."""

    word: Doc[str, "The word as the pages use it."]
    meaning: Doc[str, "What it means, in a sentence."]


@dataclass(frozen=True, slots=True)
class HelpContext(Context):
    """What `help.html` shows."""

    template: ClassVar[str] = "help.html"

    keys: Doc[Drawn, "The keys of the query language."]
    glossary: Doc[tuple[GlossaryEntry, ...], "The words of the pages."]
    codes: Doc[tuple[GlossaryEntry, ...], "The known codes."]
    failures: Doc[str, "Address of the Failures page, for the examples."]
    docs: Doc[tuple[Link, ...], "Pages of the documentation to go on with."]


router = APIRouter()

QUERY_KEYS: Final = Table(
    Column("name", "Query key", "key"),
    Column("help", "Meaning", style="cell-text", label=""),
    Column("values", "Values", value=lambda key: ", ".join(key.choices) or key.kind),
    Column("example", "Example", "example"),
    Column("restricts", "Restricts calls too",
           value=lambda key: "yes" if key.restricts_calls else "no"),
)  # fmt: skip

_DOCS = (
    ("All pages", ""),
    ("Quick start", "/quickstart"),
    ("Statistics", "/statistics"),
    ("Command line", "/command-line"),
    ("HTTP API", "/api"),
    ("Troubleshooting", "/troubleshooting"),
)


def _entries(words: Mapping[str, str]) -> tuple[GlossaryEntry, ...]:
    return tuple(GlossaryEntry(word, meaning) for word, meaning in words.items())


@router.get("/help", name="help")
def help_page(ask: Asked) -> Response:
    """Render the page; the keys come from the table that the parser itself reads."""
    context = HelpContext(
        keys=QUERY_KEYS.drawn(KEYS.values()),
        glossary=_entries(dict(sorted(GLOSSARY.items()))),
        codes=_entries(CODES),
        failures=ask.link("/failures", ""),
        docs=tuple(Link(label, f"/docs{path}", current=False) for label, path in _DOCS),
    )
    return ask.render(context, title="Help")
