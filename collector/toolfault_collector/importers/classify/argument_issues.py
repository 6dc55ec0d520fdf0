"""Error texts that list the faults of arguments one by one, taken apart into issues.

Understood: pydantic's blocks (v2) and its lists in JSON, the lines that
LangChain and Mastra make of a validator's messages,
zod's issue lists, JSON Schema's sentences (as MCP servers write them; Ajv's too), Python's own
``TypeError``, ADK's list of what is missing, Claude Code's ``InputValidationError``, and the map of
field to messages that web frameworks answer with. Received values in these texts are not kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Final, TypeAlias

from toolfault_collector.importers.classify.library_codes import PYDANTIC_CODES, ZOD_CODES

__all__ = ["ArgumentIssue", "read_issues"]

MAX_ISSUES: Final = 50
ROOT: Final = "(root)"
_Sentences: TypeAlias = Sequence[tuple[str, str]]  # pattern with its code
_QUOTED: Final = re.compile(r"'([^'\n]{1,128})'")


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
        issues = tuple(islice(reader(text), MAX_ISSUES))
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
_BOUNDS: Final[Mapping[str, str]] = {
    "greater than or equal to ": ">= ",
    "less than or equal to ": "<= ",
    "greater than ": "> ",
    "less than ": "< ",
}


def _pydantic(text: str) -> Iterator[ArgumentIssue]:
    """Read lines in pairs: where, and indented below it what; a model's own fault has no where."""
    lines = text.split("\n")
    if not any(_PYDANTIC_HEAD.search(line) for line in lines[:3]):
        return
    for above, line in pairwise(lines):
        found = _PYDANTIC_ISSUE.match(line)
        if found is not None:
            own = above.startswith(" ") or _PYDANTIC_HEAD.search(above) is not None
            yield _pydantic_issue(ROOT if own else above.strip()[:256], found, line)


def _pydantic_issue(field: str, found: re.Match[str], line: str) -> ArgumentIssue:
    code = PYDANTIC_CODES.get(found["type"], "invalid_input")
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
    for words, sign in _BOUNDS.items():
        if text.startswith(words):
            return sign + text.removeprefix(words)
    return _JSON_NAMES.get(text, text)


# pydantic's lists in JSON, whose objects have a type, a place (loc), a message and the input


def _pydantic_json(text: str) -> Iterator[ArgumentIssue]:
    """Read what ``ValidationError.json()`` gives, as Pydantic AI and FastAPI send it on."""
    issues = _json_list(text) if '"loc"' in text else None
    for issue in issues or ():
        if not isinstance(issue, dict) or not isinstance(issue.get("type"), str):
            return
        kind, message, place = issue["type"], issue.get("msg"), issue.get("loc")
        parts = [str(part) for part in place] if isinstance(place, list) else []
        said = message[:400] if isinstance(message, str) else None
        should = _SHOULD_BE.match(said) if said else None
        yield ArgumentIssue(
            field=".".join(parts)[:256] or ROOT,
            code=PYDANTIC_CODES.get(kind, "invalid_input"),
            message=said,
            expected=_expected(should["expected"].strip()) if should else None,
            type=kind[:64],
        )


# LangChain and Mastra write a sentence, then a line with the validator's message for each field

_LINES_HEAD: Final = re.compile(
    r"^(?:error invoking tool [^\n]{1,2000} with error:"
    r"|tool input validation failed for [^\n]{1,300})[ \t]*\n",
    re.IGNORECASE,
)
_FIELD_LINE: Final = re.compile(
    r"^ {0,2}(?:- )?(?P<field>[A-Za-z_][\w.\[\]-]{0,127}): (?P<message>[^\n]{1,400})$", re.MULTILINE
)
_MESSAGES: Final[Sequence[tuple[str, str]]] = (
    (r"field required|missing required argument|required$", "missing_field"),
    (r"(?:invalid input: )?expected [^\n]{1,80}, received undefined", "missing_field"),
    (r"(?:invalid input: )?expected [^\n]{1,80}, received ", "wrong_type"),
    (r"unrecognized key", "unknown_field"),
    (r"too big", "field_too_large"),
    (r"too small", "field_too_small"),
    (r"invalid (?:option|enum)", "invalid_choice"),
    (r"extra inputs|unexpected keyword", "unknown_field"),
    (r"input should be (?:less|at most)|should have at most", "field_too_large"),
    (r"input should be (?:greater|at least)|should have at least", "field_too_small"),
    (r"input should be ['\d]", "invalid_choice"),
    (r"invalid json", "malformed_json"),
    (r"should match|valid (?:date|time|url|uuid|email)", "invalid_format"),
    (r"input should be ", "wrong_type"),
)


def _field_lines(text: str) -> Iterator[ArgumentIssue]:
    """Read the messages of pydantic or zod with their fields, without their types."""
    head = _LINES_HEAD.match(text)
    for found in _FIELD_LINE.finditer(text[head.end() : 8_000]) if head else ():
        message = found["message"].strip()
        codes = (code for words, code in _MESSAGES if re.match(words, message, re.IGNORECASE))
        should = _SHOULD_BE.match(message)
        expected = _expected(should["expected"].strip()) if should else None
        yield ArgumentIssue(found["field"], next(codes, "invalid_input"), message, expected)


# ADK writes a sentence, then the name of each missing argument on a line

_ADK_HEAD: Final = re.compile(
    r"^invoking `[^`\n]{1,128}` failed as the following mandatory input parameters are not"
    r" present:[ \t]*\n",
    re.IGNORECASE,
)


def _adk(text: str) -> Iterator[ArgumentIssue]:
    """Read the names, one a line, up to the sentence behind them."""
    head = _ADK_HEAD.match(text)
    for line in text[head.end() :].split("\n") if head else ():
        if not re.fullmatch(r"[A-Za-z_][\w.-]{0,127}", line.strip()):
            return
        yield ArgumentIssue(line.strip(), "missing_field")


# Ajv writes one line: where, "must", and what was wanted, for each error

_SCHEMA_HEAD: Final = re.compile(
    r"^(?:(?:input )?validation error|invalid (?:arguments|input|params)[^\n:]{0,80}): ",
    re.IGNORECASE,
)
_AJV: Final[_Sentences] = (
    (r"must have required property '(?P<field>[^'\n]{1,128})'", "missing_field"),
    (r"must NOT have (?:additional|unevaluated) properties", "unknown_field"),
    (r"must be (?P<expected>string|number|integer|boolean|array|object|null)\b", "wrong_type"),
    (r"must be equal to (?:one of the allowed values|constant)", "invalid_choice"),
    (r"must (?:be <=? ?|NOT have more than )", "field_too_large"),
    (r"must (?:be >=? ?|NOT have fewer than )", "field_too_small"),
    (r"must match (?:format|pattern)", "invalid_format"),
)
_AJV_PIECE: Final = re.compile(
    r"(?:^|, |; )(?:data|instance|#|\$)?(?P<path>(?:[/.][\w~-]{1,128}){0,16}) ?"
    r"(?P<rest>must [^\n]{1,200}?)"
    r"(?=, (?:data|instance|#|\$|/)|; |$)"
)


def _ajv(text: str) -> Iterator[ArgumentIssue]:
    """Read the errors of Ajv, the JSON Schema validator of JavaScript."""
    head = _SCHEMA_HEAD.match(text)
    line = text[head.end() if head else 0 :].partition("\n")[0][:2_000]
    for piece in _AJV_PIECE.finditer(line):
        for pattern, code in _AJV:
            if found := re.match(pattern, piece["rest"]):
                named = found.groupdict()
                path = re.sub(r"[/.]", ".", piece["path"]).strip(".")
                missing = named.get("field")
                field = f"{path}.{missing}" if path and missing else missing or path
                # A sentence that names nothing may be anybody's.
                if field or head or piece[0].startswith(("data", "instance", "#", "$")):
                    yield ArgumentIssue(field, code, None, named.get("expected"))
                break


# Sentences: each pattern with its code; groups name the field or fields, and what was expected

_MISSING: Final = re.compile(
    r"\(\) missing \d{1,3} required (?:positional|keyword-only) arguments?: "
    r"(?P<fields>[^\n]{1,400})"
)
_CLAUDE_HEAD: Final = re.compile(r"^InputValidationError: [^\n]{1,200}\n")
_CLAUDE: Final[_Sentences] = (
    (r"^The required parameter `(?P<field>[^`\n]{1,128})` is missing", "missing_field"),
    (r"^An unexpected parameter `(?P<field>[^`\n]{1,128})` was provided", "unknown_field"),
    (
        (
            r"^The parameter `(?P<field>[^`\n]{1,128})` type is expected as "
            r"`(?P<expected>[^`\n]{1,64})` but provided as `(?P<received>[^`\n]{1,64})`"
        ),
        "wrong_type",
    ),
)
_SCHEMA: Final[_Sentences] = (
    (r"'(?P<field>[^'\n]{1,128})' is a required property", "missing_field"),
    (
        r"Additional properties are not allowed \((?P<fields>[^)\n]{1,400}) (?:was|were) ",
        "unknown_field",
    ),
    (r"is not of type (?P<expected>[^\n]{1,80})", "wrong_type"),
    (r"is not one of \[(?P<expected>[^\]\n]{1,200})", "invalid_choice"),
    (r"is greater than(?: or equal to)? the maximum|is too long", "field_too_large"),
    (r"is less than(?: or equal to)? the minimum|is too short|non-empty", "field_too_small"),
    (r"does not match|is not a '(?P<expected>[\w-]{1,40})'", "invalid_format"),
)


def _python(text: str) -> Iterator[ArgumentIssue]:
    """Read Python's TypeError: "f() missing 2 required positional arguments: 'a' and 'b'"."""
    found = _MISSING.search(text[:1_000])
    return _named_in(found, "missing_field") if found else iter(())


def _claude_code(text: str) -> Iterator[ArgumentIssue]:
    """Read "InputValidationError: X failed due to the following issue:", one sentence per line."""
    head = _CLAUDE_HEAD.match(text)
    for line in text[head.end() :].split("\n") if head else ():
        for pattern, code in _CLAUDE:
            if found := re.search(pattern, line):
                yield from _named_in(found, code, message=line[:400])


def _json_schema(text: str) -> Iterator[ArgumentIssue]:
    """Read one sentence of a JSON Schema validator, such as "'x' is a required property".

    Python's ``jsonschema`` tells below it where in the arguments it looked.
    """
    head = _SCHEMA_HEAD.match(text)
    line = text[head.end() if head else 0 :].partition("\n")[0][:600]
    place = _ON_INSTANCE.search(text[:8_000]) if "\nFailed validating '" in text else None
    for pattern, code in _SCHEMA if head or place else _SCHEMA[:2]:
        if found := re.search(pattern, line):
            return _placed(_named_in(found, code), _path(place["path"]) if place else "")
    return iter(())


_ON_INSTANCE: Final = re.compile(r"\nOn instance(?P<path>(?:\[[^\]\n]{1,130}\]){0,16}):")


def _path(brackets: str) -> str:
    """Write ``['a'][0]`` as ``a.0``."""
    return ".".join(part.strip("'\"") for part in brackets[1:-1].split("]["))


def _placed(issues: Iterator[ArgumentIssue], path: str) -> Iterator[ArgumentIssue]:
    for issue in issues:
        field = f"{path}.{issue.field}" if path and issue.field else issue.field or path
        yield replace(issue, field=field)


def _named_in(
    found: re.Match[str], code: str, *, message: str | None = None
) -> Iterator[ArgumentIssue]:
    said = found.groupdict()
    several, expected = said.get("fields"), said.get("expected")
    for name in _QUOTED.findall(several) if several else [said.get("field") or ""]:
        wanted = expected.strip("'") if expected else None
        yield ArgumentIssue(name, code, message, wanted, said.get("received"))


# zod writes a JSON list of objects with code, expected, received, path and message


def _zod(text: str) -> Iterator[ArgumentIssue]:
    for issue in _json_list(text) or ():
        if not isinstance(issue, dict) or not isinstance(issue.get("code"), str):
            return
        if code := ZOD_CODES.get(issue["code"]):
            yield from _zod_issue(issue, issue["code"], code)


def _zod_issue(issue: Mapping[str, object], kind: str, code: str) -> Iterator[ArgumentIssue]:
    received, message, path = issue.get("received"), issue.get("message"), issue.get("path")
    absent = received == "undefined" or str(message).endswith("received undefined")
    if kind == "invalid_type" and absent:
        code, received = "missing_field", None
    keys = issue.get("keys") if kind == "unrecognized_keys" else None
    parts = path if isinstance(path, list) else []
    for names in [[*parts, key] for key in keys] if isinstance(keys, list) else [parts]:
        yield ArgumentIssue(
            field=".".join(map(str, names))[:256] or ROOT,
            code=code,
            message=message[:400] if isinstance(message, str) else None,
            expected=str(issue["expected"])[:80] if "expected" in issue else None,
            received_type=received[:64] if isinstance(received, str) else None,
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
        code = "invalid_choice" if _INVALID_CHOICE.search(sentence) else "invalid_input"
        code = "missing_field" if _REQUIRED.search(sentence) else code
        yield ArgumentIssue(field[:256], code, sentence[:400])


def _json_list(text: str) -> list[object] | None:
    """Return the first list of objects in a text."""
    start = next((at for at in (text.find("[\n"), text.find('[{"')) if at >= 0), -1)
    found = _json_at(text, start) if start >= 0 else None
    return found if isinstance(found, list) else None


def _json_at(text: str, start: int) -> object:
    try:
        value: object = json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None
    return value


_READERS: Final[tuple[Callable[[str], Iterator[ArgumentIssue]], ...]] = (
    _pydantic,
    _pydantic_json,
    _field_lines,
    _python,
    _adk,
    _claude_code,
    _zod,
    _field_map,
    _ajv,
    _json_schema,
)
