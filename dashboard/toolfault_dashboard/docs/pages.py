"""The pages of the documentation as HTML: Markdown packed with the server, and what is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from toolfault_dashboard.docs.anchors import slug
from toolfault_dashboard.docs.reference import MADE
from toolfault_dashboard.render import environment

__all__ = ["DocsPage", "docs_image", "docs_names", "docs_page"]

_Env = dict[str, int]


@dataclass(frozen=True, slots=True)
class DocsPage:
    """One page, ready to be shown."""

    title: str
    body: Markup  # without the heading of the page
    sections: tuple[tuple[str, str], ...]  # anchor and heading


@lru_cache(maxsize=1)
def _sources() -> dict[str, Callable[[], str]]:
    """Return what gives the Markdown of each page, by name; in a checkout ``docs`` itself."""
    return {
        **{path.stem: partial(path.read_text, encoding="utf-8") for path in _folder().glob("*.md")},
        **MADE,
        "sdk-reference": lambda: _SDK,
    }


def _folder() -> Path:
    packed = Path(__file__).with_name("text")
    return packed if packed.is_dir() else Path(__file__).parents[3] / "docs"


def docs_names() -> frozenset[str]:
    """Return the names of all pages."""
    return frozenset(_sources())


def docs_page(name: str) -> DocsPage | None:
    """Return the page of this name; None where there is none, whatever the name looks like."""
    return _rendered(name) if name in _sources() else None


def docs_image(name: str) -> Path | None:
    """Return the picture of this name; None where there is none, whatever the name looks like."""
    return {path.name: path for path in (_folder() / "images").glob("*.*")}.get(name)


@lru_cache(maxsize=64)
def _rendered(name: str) -> DocsPage:
    env: _Env = {}
    tokens = _MARKDOWN.parse(_sources()[name]())
    headings: list[tuple[str, str, str]] = []
    for token, inner in zip(tokens, [*tokens[1:], None], strict=True):
        _make_safe(token)
        for each in token.children or ():
            _make_safe(each)
        if token.type == "heading_open" and inner is not None:
            text = "".join(each.content for each in inner.children or ())
            token.attrs["id"] = anchor = _free(slug(text), {at for _, at, _ in headings})
            headings.append((token.tag, anchor, text))
    first = next(at for at, token in enumerate(tokens) if token.type == "heading_close")
    html = _MARKDOWN.renderer.render(tokens[first + 1 :], _MARKDOWN.options, env)
    sections = tuple((anchor, text) for tag, anchor, text in headings if tag == "h2")
    return DocsPage(headings[0][2], Markup(html), sections)  # noqa: S704 - rendered by _MARKDOWN


def _free(anchor: str, taken: set[str]) -> str:
    """Return *anchor*, or with the number that MkDocs would give it where it is taken."""
    number, found = 0, anchor
    while found in taken:
        number += 1
        found = f"{anchor}_{number}"
    return found


def _make_safe(token: Token) -> None:
    """Lead links to the pages of this server, and leave out styles, which the CSP forbids."""
    if "right" in str(token.attrs.pop("style", "")):
        token.attrs["class"] = "num"
    for name in ("href", "src"):
        if name in token.attrs:
            token.attrs[name] = _address(str(token.attrs[name]))


def _address(target: str) -> str:
    path, mark, anchor = target.partition("#")
    if path == "index.md":
        path = "/docs"
    elif path.endswith(".md"):
        path = f"/docs/{path.removesuffix('.md')}"
    elif path.startswith("images/"):
        path = f"/docs/{path}"
    elif path == "openapi.json":
        path = "/api/v1/openapi.json"
    return path + mark + anchor


def _code(_: Any, tokens: Sequence[Token], index: int, _options: Any, env: _Env) -> str:
    """Return a block of code with its button to copy it, as the other pages have it."""
    env["blocks"] = env.get("blocks", 0) + 1
    snippet: Any = environment().get_template("_components.html").module
    return str(snippet.snippet(f"code-{env['blocks']}", tokens[index].content, "this block"))


def _comment(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """Return nothing for a comment, which is for whoever maintains the page, else the text."""
    text = tokens[index].content
    return "" if text.lstrip().startswith("<!--") else str(escape(text))


def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark").enable("table")
    opening = '<div class="table-wrap" tabindex="0" role="group" aria-label="Table"><table>'
    for name, rule in (
        ("fence", _code),
        ("code_block", _code),
        ("table_open", lambda *_: opening),
        ("table_close", lambda *_: "</table></div>"),
        ("html_block", _comment),
        ("html_inline", _comment),
    ):
        made.add_render_rule(name, rule)
    return made


_MARKDOWN: Final = _markdown()

_SDK: Final = """# Reference of the SDK

It is made from the SDK, which is installed with the agent and not with the server. Where the
agent runs, `python -m pydoc toolfault` shows it, for the version that is installed there.
[Tools](tools.md) and [configuration of the SDK](configuration-sdk.md) explain how to use it.
"""
