"""Error texts that list the faults of arguments one by one, taken apart into issues.

Understood: pydantic's blocks (v2), zod's issue lists, JSON Schema's sentences (as MCP servers write
them), Claude Code's ``InputValidationError``, and the map of field to messages that web frameworks
answer with. Received values in these texts are not kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from toolfault_collector.importers.classify._pydantic_types import code_of

__all__ = ["MAX_ISSUES", "ROOT", "ArgumentIssue", "read_issues"]

MAX_ISSUES: Final = 50
ROOT: Final = "(root)"


@dataclass(frozen=True, slots=True)
class ArgumentIssue:
    """One thing wrong with one argument; ``field`` is empty where the text names none."""

    field: str
    code: str
    message: str | None = None
    expected: str | None = None
    received_type: str | None = None
    type: str | None = None


def read_issues(text: str) -> tuple[ArgumentIssue, ...]:
    """Take *text* apart; empty where it is not a list of faults."""
    for reader in _READERS:
        issues = tuple(issue for issue, _ in zip(reader(text), range(MAX_ISSUES), strict=False))
        if issues:
            return issues
    return ()


# pydantic v2: "n validation errors for Model\nfield.0\n  Message [type=..., input_type=str]"

_PYDANTIC_HEAD: Final = re.compile(r"\d{1,4} validation errors? for [^\n]{1,200}$")
_PYDANTIC_ISSUE: Final = re.compile(
    r" {2}(?P<message>\S[^\n]{0,400}?) \[type=(?P<type>\w{1,64})[,\]]"
)
_INPUT_TYPE: Final = re.compile(r"input_type=(\w{1,64})\]$")
_SHOULD_BE: Final = re.compile(
    r"Input should be (?:an? valid |an? |valid )?(?P<expected>[^,\[]{1,80})"
)
_JSON_NAMES: Final[Mapping[str, str]] = {"list": "array", "dictionary": "object", "None": "null"}
_BOUNDS: Final = (
    ("greater than or equal to ", ">= "),
    ("less than or equal to ", "<= "),
    ("greater than ", "> "),
    ("less than ", "< "),
)


def _pydantic(text: str) -> Iterator[ArgumentIssue]:
    """Read lines in pairs: where, and indented below it what; a model's own fault has no where."""
    lines = text.split("\n")
    if not any(_PYDANTIC_HEAD.search(line) for line in lines[:3]):
        return
    for above, line in pairwise(lines):
        found = _PYDANTIC_ISSUE.match(line)
        if found is None:
            continue
        own = above.startswith(" ") or _PYDANTIC_HEAD.search(above) is not None
        yield _pydantic_issue(ROOT if own else above.strip()[:256], found, line)


def _pydantic_issue(field: str, found: re.Match[str], line: str) -> ArgumentIssue:
    code = code_of(found["type"])
    should, given = _SHOULD_BE.match(found["message"]), _INPUT_TYPE.search(line)
    # What pydantic shows as the input of a missing field is the object around it.
    known = given is not None and code != "missing_field" and field != ROOT
    return ArgumentIssue(
        field=field,
        code=code,
        message=found["message"],
        expected=_expected(should["expected"].strip()) if should else None,
        received_type=given[1] if given is not None and known else None,
        type=found["type"],
    )


def _expected(text: str) -> str:
    for words, sign in _BOUNDS:
        if text.startswith(words):
            return sign + text.removeprefix(words)
    return _JSON_NAMES.get(text, text)


# Python's own TypeError: "f() missing 2 required positional arguments: 'a' and 'b'"

_MISSING: Final = re.compile(
    r"\(\) missing \d{1,3} required (?:positional|keyword-only) arguments?: "
    r"(?P<fields>[^\n]{1,400})"
)


def _python(text: str) -> Iterator[ArgumentIssue]:
    found = _MISSING.search(text[:1_000])
    for name in _QUOTED.findall(found["fields"]) if found else ():
        yield ArgumentIssue(name, "missing_field")


# zod writes a JSON list of objects with code, expected, received, path and message

_ZOD_CODES: Final[Mapping[str, str]] = {
    "invalid_type": "wrong_type",
    "unrecognized_keys": "unknown_field",
    "invalid_enum_value": "invalid_choice",
    "invalid_literal": "invalid_choice",
    "invalid_value": "invalid_choice",
    "invalid_union": "wrong_type",
    "invalid_union_discriminator": "invalid_choice",
    "invalid_string": "invalid_format",
    "invalid_format": "invalid_format",
    "invalid_date": "invalid_format",
    "too_big": "field_too_large",
    "too_small": "field_too_small",
    "not_multiple_of": "invalid_format",
    "custom": "invalid_input",
}


def _zod(text: str) -> Iterator[ArgumentIssue]:
    start = next((at for at in (text.find("[\n"), text.find('[{"')) if at >= 0), -1)
    issues = _json_at(text, start) if start >= 0 else None
    for issue in issues if isinstance(issues, list) else ():
        if not isinstance(issue, dict) or not isinstance(issue.get("code"), str):
            return
        yield from _zod_issue(issue)


def _zod_issue(issue: Mapping[str, object]) -> Iterator[ArgumentIssue]:
    path, kind = issue.get("path"), str(issue["code"])
    if kind not in _ZOD_CODES:
        return
    code = _ZOD_CODES[kind]
    received, message = issue.get("received"), issue.get("message")
    if kind == "invalid_type" and (
        received == "undefined" or str(message).endswith("received undefined")
    ):
        code = "missing_field"
    parts = [str(part) for part in path] if isinstance(path, list) else []
    keys = issue.get("keys")
    unknown = keys if kind == "unrecognized_keys" and isinstance(keys, list) else [None]
    for key in unknown:
        names = [*parts, str(key)] if key is not None else parts
        yield ArgumentIssue(
            field=".".join(names)[:256] or ROOT,
            code=code,
            message=message[:400] if isinstance(message, str) else None,
            expected=str(issue["expected"])[:80] if "expected" in issue else None,
            received_type=(
                received[:64] if isinstance(received, str) and code != "missing_field" else None
            ),
            type=kind,
        )


# {"field": ["The field is required."]}: one list of sentences per argument

_REQUIRED: Final = re.compile(r"\b(?:is|field) required\b", re.IGNORECASE)
_INVALID_CHOICE: Final = re.compile(
    r"^the selected [^\n]{1,80} is invalid|valid choice", re.IGNORECASE
)


def _field_map(text: str) -> Iterator[ArgumentIssue]:
    value = _json_at(text, 0) if text.startswith('{"') else None
    if not isinstance(value, dict):
        return
    if not all(isinstance(v, list) and v and isinstance(v[0], str) for v in value.values()):
        return
    for field, (sentence, *_) in value.items():
        if _REQUIRED.search(sentence):
            code = "missing_field"
        else:
            code = "invalid_choice" if _INVALID_CHOICE.search(sentence) else "invalid_input"
        yield ArgumentIssue(field=field[:256], code=code, message=sentence[:400])


# JSON Schema, one sentence: "'x' is a required property"

_SCHEMA_HEAD: Final = re.compile(
    r"^(?:(?:input )?validation error|invalid (?:arguments|input|params)[^\n:]{0,80}): ",
    re.IGNORECASE,
)
_SCHEMA_SENTENCES: Final = (
    (re.compile(r"'(?P<field>[^'\n]{1,128})' is a required property"), "missing_field"),
    (
        re.compile(
            r"Additional properties are not allowed \((?P<fields>[^)\n]{1,400}) (?:was|were) "
        ),
        "unknown_field",
    ),
    (re.compile(r"is not of type (?P<expected>[^\n]{1,80})"), "wrong_type"),
    (re.compile(r"is not one of \[(?P<expected>[^\]\n]{1,200})"), "invalid_choice"),
    (
        re.compile(r"(?:is greater than|is greater than or equal to) the maximum|is too long"),
        "field_too_large",
    ),
    (
        re.compile(r"(?:is less than|is less than or equal to) the minimum|is too short|non-empty"),
        "field_too_small",
    ),
    (re.compile(r"does not match|is not a '(?P<expected>[\w-]{1,40})'"), "invalid_format"),
)
_QUOTED: Final = re.compile(r"'([^'\n]{1,128})'")


def _json_schema(text: str) -> Iterator[ArgumentIssue]:
    head = _SCHEMA_HEAD.match(text)
    line = text[head.end() if head else 0 :].partition("\n")[0][:600]
    for pattern, code in _SCHEMA_SENTENCES if head else _SCHEMA_SENTENCES[:2]:
        found = pattern.search(line)
        if found is None:
            continue
        groups = found.groupdict()
        expected = groups.get("expected")
        names = _QUOTED.findall(groups["fields"]) if groups.get("fields") else [groups.get("field")]
        for name in names:
            yield ArgumentIssue(
                name or "", code, expected=expected.strip("'") if expected else None
            )
        return


# Claude Code: "InputValidationError: X failed due to the following issue:\n..."

_CLAUDE_HEAD: Final = re.compile(r"^InputValidationError: [^\n]{1,200}\n")
_CLAUDE_SENTENCES: Final = (
    (re.compile(r"^The required parameter `(?P<field>[^`\n]{1,128})` is missing"), "missing_field"),
    (
        re.compile(r"^An unexpected parameter `(?P<field>[^`\n]{1,128})` was provided"),
        "unknown_field",
    ),
    (
        re.compile(
            r"^The parameter `(?P<field>[^`\n]{1,128})` type is expected as "
            r"`(?P<expected>[^`\n]{1,64})` but provided as `(?P<received>[^`\n]{1,64})`"
        ),
        "wrong_type",
    ),
)


def _claude_code(text: str) -> Iterator[ArgumentIssue]:
    head = _CLAUDE_HEAD.match(text)
    if head is None:
        return
    for line in text[head.end() :].split("\n"):
        for pattern, code in _CLAUDE_SENTENCES:
            found = pattern.match(line)
            if found is not None:
                groups = found.groupdict()
                yield ArgumentIssue(
                    groups["field"],
                    code,
                    message=line[:400],
                    expected=groups.get("expected"),
                    received_type=groups.get("received"),
                )


def _json_at(text: str, start: int) -> object:
    try:
        value: object = json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return ()
    return value


_READERS: Final[tuple[Callable[[str], Iterator[ArgumentIssue]], ...]] = (
    _pydantic,
    _python,
    _claude_code,
    _zod,
    _field_map,
    _json_schema,
)
