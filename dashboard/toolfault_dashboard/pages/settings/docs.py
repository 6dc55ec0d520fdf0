"""The documentation of this version, for everybody: also for who cannot sign in yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar

from fastapi import APIRouter, HTTPException, Request
from markupsafe import Markup
from starlette.responses import FileResponse, Response

from toolfault_dashboard.docs import DocsPage, docs_image, docs_page
from toolfault_dashboard.pages.shared.ask import ask_about, sent
from toolfault_dashboard.pages.shared.frame import Context, Link
from toolfault_dashboard.pages.shared.shell import bare_shell
from toolfault_dashboard.render import environment

__all__ = ["router"]


@dataclass(frozen=True, slots=True)
class DocsContext(Context):
    """What `docs.html` shows."""

    template: ClassVar[str] = "docs.html"

    title: Doc[str, "Heading of the page."]
    body: Doc[Markup, "The page below its heading, as HTML."]
    sections: Doc[tuple[Link, ...], "Its sections."]
    is_index: Doc[bool, "Whether it is the page that lists all others."]


router = APIRouter()


def _context(page: DocsPage, *, is_index: bool) -> DocsContext:
    return DocsContext(
        title="Documentation" if is_index else page.title,
        body=page.body,
        sections=tuple(Link(text, f"#{anchor}", current=False) for anchor, text in page.sections),
        is_index=is_index,
    )


@router.get("/docs", name="docs")
def index(request: Request) -> Response:
    """Render the page that lists all others."""
    return page_or_image(request, "index")


@router.get("/docs/{path:path}", name="docs_page")
def page_or_image(request: Request, path: str) -> Response:
    """Render a page, or send a picture of one; names are looked up, no path is opened."""
    image = docs_image(path.removeprefix("images/")) if path.startswith("images/") else None
    if image is not None:
        return FileResponse(image)
    page = docs_page(path or "index")
    if page is None:
        raise HTTPException(404, "The documentation has no such page; /docs lists all of them.")
    context = _context(page, is_index=path in ("", "index"))
    if request.state.viewer is not None:
        with ask_about(request) as ask:
            return ask.render(context, title=context.title)
    template = environment().get_template(context.template)
    shell = bare_shell(request, context.title)
    return sent(request, template.render(shell=shell, page=context))
