"""Help: the query language, the words, the codes."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard.contexts import GlossaryEntry, HelpContext, Link
from toolfault_dashboard.glossary import CODES, GLOSSARY
from toolfault_dashboard.pages.shared.ask import Asked
from toolfault_dashboard.search import KEYS

__all__ = ["router"]

router = APIRouter()

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
        keys=tuple(KEYS.values()),
        glossary=_entries(dict(sorted(GLOSSARY.items()))),
        codes=_entries(CODES),
        failures=ask.link("/failures", ""),
        docs=tuple(Link(label, f"/docs{path}", current=False) for label, path in _DOCS),
    )
    return ask.render("help.html", context, title="Help")
