"""The pages of the documentation that are made from the code, as Markdown.

They are made, not written, so that no page can disagree with the program: the query language from
its table of keys, the command line from its parsers, the HTTP API from its OpenAPI description,
the glossary from the words that explain the badges of the pages. The server and the site of the
documentation (``docs/reference.py``) show the same text.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote

import typer

from toolfault_dashboard.api.app import described
from toolfault_dashboard.docs.anchors import slug
from toolfault_dashboard.glossary import CODES, SECTIONS
from toolfault_dashboard.search.keys import KEYS

__all__ = ["MADE", "command_line", "glossary", "http_api", "query_language"]


def query_language() -> str:
    """Return the page of the query language."""
    rows = [
        f"| `{key.name}` | {_cell(key.help)} | `{_cell(key.example)}` |"
        f" {'calls too' if key.restricts_calls else 'failures'} |"
        f" {_ROLES[key.audience]} |"
        for key in KEYS.values()
    ]
    return "\n".join((_QUERY_LANGUAGE, *rows, ""))


def command_line() -> str:
    """Return the page of the command ``toolfault``."""
    from toolfault_dashboard.cli.app import app  # which imports the server, and so these pages

    command = typer.main.get_command(app)
    return "\n".join((_COMMAND_LINE, *_described(command, "toolfault", None)))


def glossary() -> str:
    """Return the glossary."""
    parts = [_GLOSSARY]
    for title, words in {**SECTIONS, "Codes": CODES}.items():
        rows = (f"| **{word}** | {_cell(said)} |" for word, said in words.items())
        parts += [f"## {title}", "", "| word | meaning |", "|---|---|", *rows, ""]
    return "\n".join(parts)


def http_api() -> str:
    """Return the page of the HTTP API: every operation by group, then every shape of an answer."""
    document = described()
    groups: dict[str, list[tuple[str, str, Any]]] = defaultdict(list)
    for path, methods in document["paths"].items():
        base = methods.get("servers", document["servers"])[0]["url"].rstrip("/")
        for method, operation in methods.items():
            if method != "servers":
                groups[operation["tags"][0]].append((method.upper(), base + path, operation))
    lines = [_HTTP_API]
    for tag, operations in groups.items():
        lines += [*_group(*_GROUPS[tag], operations)]
    lines += ["## Shapes", "", "Members of answers and of what is sent.", ""]
    for name, schema in sorted(document["components"]["schemas"].items()):
        members = ", ".join(
            f"`{member}` ({_kind(of)})" for member, of in schema.get("properties", {}).items()
        )
        about = _said_of_shape(schema.get("description", ""))
        lines += [f"### {name}", "", *([about, ""] if about else []), members or _kind(schema), ""]
    return "\n".join(lines)


def _said_of_shape(described: str) -> str:
    """Return what a docstring says of a shape to readers of JSON: its members stand below it."""
    said = " ".join(described.partition("Attributes:")[0].replace("``", "`").split())
    return re.sub(r"\bNone\b", "null", said)


MADE: Final[dict[str, Callable[[], str]]] = {
    "query-language": query_language,
    "command-line": command_line,
    "api": http_api,
    "glossary": glossary,
}
"""The pages by name, without the ``.md`` by which others link to them."""

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
- Words without a query key, and texts in quotation marks, are looked for in the message.
- `OR`, `NOT` and parentheses are refused, with what to write instead.

A query key that only failures have cannot narrow the number of all calls. Every page with a rate
names such keys.

| query key | meaning | example | narrows | who may ask |
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

_HTTP_API: Final = """# HTTP API

Every address that programs may ask, made from the server's own description of itself:
[openapi.json](openapi.json) (OpenAPI 3.1), which a running server answers at
`/api/v1/openapi.json` to a read key or a session. [Reading by program](reading.md) tells what
the answers mean, [the wire protocol](protocol.md) and [OpenTelemetry](otlp.md) what may be sent.

A *read key* reads one project and sees what the role developer sees. An *ingest key* sends to one
project and reads nothing. A *session* is a browser in which somebody is signed in; it sees what
the role of the account sees. `toolfault keys create --project NAME --kind read` makes a key; an
administrator makes one under *Settings*.

In the examples `$SERVER` is the address of the server, such as `http://127.0.0.1:8321`,
`$READ_KEY` and `$INGEST_KEY` are keys, and `batch.json` is a file. Errors are
[problem documents](#problemdocument).
"""

# By tag: the heading, and what belongs to it.
_GROUPS: Final = {
    "lists": ("Lists", "Failures, kinds of failure and chains, one by one."),
    "figures": ("Figures", "What the pages count, with intervals."),
    "comparisons": ("Comparisons", "Changes, one query against another, and randomised trials."),
    "exports": ("Exports", "Every row of a table as a file. A stream is read to its end."),
    "ingest": ("Sending events", "What the SDK sends, and senders in other languages."),
    "opentelemetry": ("Sending OpenTelemetry", "OTLP over HTTP, as JSON or protobuf."),
    "health": ("Health", "What supervisors and senders ask."),
}
_NEEDS: Final = {
    "read_key": ("A read key or a session", '-H "Authorization: Bearer $READ_KEY" '),
    "ingest_key": ("An ingest key", '-H "Authorization: Bearer $INGEST_KEY" '),
}


def _group(title: str, about: str, operations: list[tuple[str, str, Any]]) -> Iterator[str]:
    """Yield a group of operations; what all of them have in common is said once, before them."""
    of_all = [operation for _, _, operation in operations]
    given = [each for each in _parameters(of_all[0]) if all(each in _parameters(o) for o in of_all)]
    said = [each for each in _refusals(of_all[0]) if all(each in _refusals(o) for o in of_all)]
    yield from (f"## {title}", "", about, "", "| address | what it does |", "|---|---|")
    for method, path, operation in operations:
        yield f"| [{method} {path}](#{slug(f'{method} {path}')}) | {_cell(_about(operation))} |"
    if given and len(of_all) > 1:
        yield from ("", "Each takes:", "", *_table(given))
    if said and len(of_all) > 1:
        yield from ("", "Besides 200, each may answer:", "", *_answers(said))
    common = [*given, *said] if len(of_all) > 1 else []
    for method, path, operation in operations:
        yield from ("", f"### {method} {path}", "", _about(operation), "")
        needed = [_NEEDS[name][0] for each in _security(operation) for name in each]
        yield f"- Needs: {' or '.join(needed).lower() or 'no key'}."
        if "requestBody" in operation:
            yield f"- Takes: {_contents(operation['requestBody'])}."
        yield f"- Answers: {_contents(operation['responses']['200'])}."
        own = [each for each in _parameters(operation) if each not in common]
        refusals = [each for each in _refusals(operation) if each not in common]
        yield from ("", *_table(own)) if own else ()
        yield from ("", *_answers(refusals)) if refusals else ()
        yield from ("", "```sh", _curl(method, path, operation), "```")
    yield ""


def _parameters(operation: Any) -> list[Any]:
    return list(operation.get("parameters", ()))


def _refusals(operation: Any) -> list[tuple[str, str]]:
    answers = operation["responses"].items()
    return [(status, said["description"]) for status, said in answers if status != "200"]


def _security(operation: Any) -> list[dict[str, Any]]:
    return list(operation.get("security", [{"read_key": []}]))


def _about(operation: Any) -> str:
    """Return what an operation does; the framework makes a summary of the name of its function."""
    return " ".join(operation.get("description", operation["summary"]).split())


def _table(parameters: list[Any]) -> Iterator[str]:
    yield from ("| parameter | in | meaning |", "|---|---|---|")
    for each in parameters:
        place = f"{each['in']}, required" if each["required"] else each["in"]
        yield f"| `{each['name']}` | {place} | {_cell(_meaning(each))} |"


def _answers(answers: list[tuple[str, str]]) -> Iterator[str]:
    yield from ("| status | when |", "|---|---|")
    yield from (f"| {status} | {_cell(said)} |" for status, said in answers)


def _meaning(parameter: Any) -> str:
    schema = parameter["schema"]
    schema = {**schema, **schema.get("anyOf", [{}])[0]}
    said = [parameter["description"]]
    if "enum" in schema:
        said.append(f"One of {', '.join(f'`{each}`' for each in schema['enum'])}.")
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    if low is not None:
        said.append(
            f"From {low} to {schema['maximum']}." if "maximum" in schema else f"From {low}."
        )
    if schema.get("default") not in (None, ""):
        said.append(f"Default: `{str(schema['default']).lower()}`.")
    return " ".join(said)


def _contents(body: Any) -> str:
    """Return the media types of a body, each with its shape."""
    found = [
        f"`{media}`" + (f", {kind}" if (kind := _kind(of.get("schema", {}))) != "any" else "")
        for media, of in body.get("content", {}).items()
    ]
    return " or ".join(found) or "a file in the format asked for"


def _kind(schema: Any) -> str:
    """Return what a value is, in words; a shape is a link to its members."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{slug(name)})"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(map(_kind, choices)))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items') or {})}"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _curl(method: str, path: str, operation: Any) -> str:
    """Return one command that asks this; ids are to be replaced."""
    asked = []
    for each in _parameters(operation):
        example = each["schema"].get("examples", each["schema"].get("enum", [each["name"].upper()]))
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", example[0])
        elif each["required"] or "examples" in each["schema"]:
            asked.append(f"{each['name']}={quote(example[0], safe=':')}")
    key = "".join(_NEEDS[name][1] for choice in _security(operation) for name in choice)
    address = f'"$SERVER{path}{"?" if asked else ""}{"&".join(asked)}"'
    if method == "GET":
        return f"curl {key}{address}"
    return f"curl {key}-H {shlex.quote('Content-Type: application/json')} -d @batch.json {address}"


def _described(command: Any, name: str, above: Any) -> Iterator[str]:
    """Yield the help of a command and of all below it; typer brings a click of its own."""
    last = name.rpartition(" ")[2]
    # As wide as anywhere: a server may have been started in a narrow terminal.
    context = command.make_context(last, [], above, resilient_parsing=True, terminal_width=80)
    if above is not None:
        yield from (f"## {name}", "", f"```text\n{command.get_help(context)}\n```", "")
    for part in command.list_commands(context) if hasattr(command, "list_commands") else ():
        inner = command.get_command(context, part)
        if inner is not None and not inner.hidden:
            yield from _described(inner, f"{name} {part}", context)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
