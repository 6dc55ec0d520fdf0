"""The pages of the documentation that are made from the code, each time the site is built.

Those that the server shows too (``toolfault_dashboard.docs.reference``), and those that it cannot
make: the reference of the SDK, from its docstrings, and the OpenAPI description as a file.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from toolfault_dashboard.api.app import described
from toolfault_dashboard.docs.reference import MADE

__all__ = ["PAGES", "on_files", "sdk"]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the made pages (a hook of MkDocs)."""
    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    return files


def sdk() -> str:
    """Return the page of the SDK's public names."""
    import toolfault

    parts = [_SDK]
    for name in sorted(toolfault.__all__, key=str.lower):
        thing = getattr(toolfault, name)
        if inspect.ismodule(thing):
            continue
        parts += [f"## {name}", "", f"```python\n{_signature(name, thing)}\n```", "", _doc(thing)]
        parts += _members(thing)
    return "\n".join(parts)


PAGES: Final[dict[str, Callable[[], str]]] = {
    **{f"{name}.md": page for name, page in MADE.items()},
    "sdk-reference.md": sdk,
    "openapi.json": lambda: json.dumps(described(), indent=1),
}

_SDK: Final = """# Reference of the SDK

`import toolfault`: these names are the public face. Modules that begin with an underscore may
change.
"""


def _members(thing: Any) -> Iterator[str]:
    if not inspect.isclass(thing):
        return
    for name, member in vars(thing).items():
        inner = getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(inner):
            continue
        yield from ("", f"### {thing.__name__}.{name}", "")
        yield from (f"```python\n{_signature(name, inner)}\n```", "", _doc(inner))


def _signature(name: str, thing: Any) -> str:
    try:
        return f"{name}{inspect.signature(thing)}"
    except (TypeError, ValueError):
        return name


def _doc(thing: Any) -> str:
    """Return a docstring as Markdown: its sections are blocks, names in double ticks are code."""
    text = inspect.getdoc(thing) or ""
    return "\n".join(_lines(text.replace("``", "`").splitlines()))


def _lines(lines: list[str]) -> Iterator[str]:
    section = False
    for line in lines:
        if line in _SECTIONS:
            section = True
            yield from (f"**{line[:-1]}**", "", "```text")
        elif section and line and not line.startswith(" "):
            section = False
            yield from ("```", "", line)
        else:
            yield line[4:] if section else line
    if section:
        yield "```"


_SECTIONS: Final = {"Args:", "Attributes:", "Returns:", "Raises:", "Yields:"}
