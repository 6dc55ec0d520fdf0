"""The pages of the documentation that are made from the code, each time the site is built.

They are made, not written, so that no page can disagree with the program: the query language from
its table of keys, the command line from its parsers, the SDK from its docstrings, the glossary
from the words that explain the badges of the pages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

__all__ = ["PAGES", "command_line", "glossary", "on_files", "query_language", "sdk"]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the made pages (a hook of MkDocs)."""
    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    return files


def query_language() -> str:
    """Return the page of the query language."""
    from toolfault_dashboard.search.keys import KEYS

    rows = [
        f"| `{key.name}` | {_cell(key.help)} | `{_cell(key.example)}` |"
        f" {'calls too' if key.restricts_calls else 'failures'} |"
        f" {_ROLES[key.audience]} |"
        for key in KEYS.values()
    ]
    return "\n".join((_QUERY_LANGUAGE, *rows, ""))


def command_line() -> str:
    """Return the page of the command ``toolfault``."""
    from toolfault_dashboard.cli.app import app

    command = typer.main.get_command(app)
    return "\n".join((_COMMAND_LINE, *_described(command, "toolfault", None)))


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


def glossary() -> str:
    """Return the glossary."""
    from toolfault_dashboard.glossary import CODES, SECTIONS

    parts = [_GLOSSARY]
    for title, words in {**SECTIONS, "Codes": CODES}.items():
        rows = (f"| **{word}** | {_cell(said)} |" for word, said in words.items())
        parts += [f"## {title}", "", "| word | meaning |", "|---|---|", *rows, ""]
    return "\n".join(parts)


PAGES: Final[dict[str, Callable[[], str]]] = {
    "query-language.md": query_language,
    "command-line.md": command_line,
    "glossary.md": glossary,
    "sdk-reference.md": sdk,
}

_ROLES: Final = {"user": "everybody", "llm": "developer", "system": "operator"}

_QUERY_LANGUAGE: Final = """# Query language

The same text works in the search box, in the address of a page (`?q=`), in the JSON API and on
the command line:

```text
tool:http_request code:wrong_type,missing_field -audience:user since:7d "timed out"
```

- `key:value` is a condition; conditions are separated by spaces, and all of them must hold.
- `key:a,b` holds for either value; `key:foo*` for everything that begins with `foo`.
- `-key:value` is the opposite.
- Numbers and times compare: `duration:>500`, `attempt:2..4`, `since:7d`, `until:2026-11-01`.
- `has:key` holds where there is a value at all.
- Words without a key, and texts in quotation marks, are looked for in the message.
- `OR`, `NOT` and parentheses are refused, with what to write instead.

A key that only failures have cannot narrow the number of all calls. Every page with a rate names
such keys.

| key | meaning | example | narrows | who may ask |
|---|---|---|---|---|"""

_COMMAND_LINE: Final = """# Command line

`toolfault` is installed with the server. What a program reads goes to standard output, everything
else to standard error. Exit codes: 0 done, 1 failed, 2 used wrongly (for `compare`: its gate
refused), 130 interrupted.
"""

_GLOSSARY: Final = """# Glossary

One word per thing, in code, tables, addresses, pages and documents. *Help* lists the same words,
and every badge and heading of a page shows its meaning under the pointer.
"""

_SDK: Final = """# Reference of the SDK

`import toolfault`: these names are the public face. Modules that begin with an underscore may
change.
"""


def _described(command: Any, name: str, above: Any) -> Iterator[str]:
    """Yield the help of a command and of all below it; typer brings a click of its own."""
    context = command.make_context(name.rpartition(" ")[2], [], above, resilient_parsing=True)
    if above is not None:
        yield from (f"## {name}", "", f"```text\n{command.get_help(context)}\n```", "")
    for part in command.list_commands(context) if hasattr(command, "list_commands") else ():
        inner = command.get_command(context, part)
        if inner is not None and not inner.hidden:
            yield from _described(inner, f"{name} {part}", context)


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


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
