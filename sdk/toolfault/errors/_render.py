"""One failure in the words of each audience, and its payload for the model (contract.md 3.6, 3.7).

Parts are cleaned first, then composed. The payload has 14 keys, always all of them, in 8 KiB.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from toolfault.errors._codes import (
    CATALOGUE_HINTS,
    FOOTER,
    INTERNAL_TEXT,
    MISSING_TEXT,
    REDACTED,
    ROOT,
    UNAVAILABLE_TEXT,
    UNEXPECTED_TEXT,
    Audience,
    ErrorCategory,
)
from toolfault.errors._redaction import redact_text
from toolfault.errors._values import (
    clean_name,
    clean_received,
    cut,
    first_line,
    known_text,
    one_line,
    plain,
    snippet,
    to_jsonable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolfault.errors._error import ToolError
    from toolfault.errors._issue import Issue

__all__ = [
    "STANDARD_WORDS",
    "bare",
    "composed_message",
    "llm_payload",
    "rendered",
    "values_in_repr",
    "wordish",
]

# The sentences of a failure (contract.md 3.6). Parts are cleaned first, then composed.

MOST_BULLETS = 20

LONGEST_SHOWN_RECEIVED = 200

_CODE_WORDS = {
    "missing_field": "missing",
    "unknown_field": "not a parameter of this tool",
    "wrong_type": "wrong type",
    "invalid_format": "wrong format",
    "invalid_choice": "not one of the allowed values",
    "field_too_large": "too large",
    "field_too_small": "too small",
    "malformed_json": "not valid JSON",
    "malformed_diff": "not a valid diff",
    "not_found": "not found",
    "invalid_input": "not valid",
}


def received_suffix(received: str | None, received_type: str | None) -> str:
    """` (received int: 9000)`, or nothing when nothing was received."""
    if received is None:
        return ""
    if len(received) > LONGEST_SHOWN_RECEIVED:
        received = cut(received, LONGEST_SHOWN_RECEIVED)
    if (
        received_type
        and received.startswith(received_type)
        and is_stand_in(received, received_type)
    ):
        return f" (received {received})"
    return (
        f" (received {received_type}: {received})" if received_type else f" (received: {received})"
    )


def is_stand_in(received: str, received_type: str | None) -> bool:
    """Whether *received* is not a value but what stands in for one: `str, 18 characters`."""
    if received_type is None:
        return False
    return received == received_type or received.startswith(f"{received_type}, ")


def sentence(issue: Issue, context: str, *, with_received: bool = True) -> str:
    """What is wrong, for a failure with this one *issue* (cleaned before)."""
    if issue.message in (MISSING_TEXT, UNEXPECTED_TEXT) and not issue.is_root:
        return f"{issue.message}: {issue.field}"
    suffix = received_suffix(issue.received, issue.received_type) if with_received else ""
    if issue.field == ROOT:
        return f"Invalid {context}: {issue.message}{suffix}"
    return f"Invalid parameter value for {issue.field}: {issue.message}{suffix}"


def block(issues: Sequence[Issue], context: str, total: int) -> str:
    """All issues at once, one line each (cleaned before); *total* counts the unlisted too."""
    lines = [f"Invalid {context} - {total} errors:"]
    for issue in issues[:MOST_BULLETS]:
        suffix = received_suffix(issue.received, issue.received_type)
        lines.append(f"  • {issue.field}: {issue.message}{suffix}")
    hidden = total - min(len(issues), MOST_BULLETS)
    if hidden > 0:
        lines.append(f"  … and {hidden} more errors")
    return "\n".join([*lines, "", FOOTER])


def code_sentence(code: str, field: str | None, context: str) -> str:
    """A sentence made from the code alone, for readers who may see no value."""
    words = _CODE_WORDS.get(code, code.replace("_", " "))
    if field is None or field == ROOT:
        return f"Invalid {context}: {words}"
    if code == "missing_field":
        return f"{MISSING_TEXT}: {field}"
    if code == "unknown_field":
        return f"{UNEXPECTED_TEXT}: {field}"
    return f"Invalid parameter value for {field}: {words}"


# Whether a text repeats a value: the person never reads what the model sent.

# Text and numbers inside a representation; text before a colon is a key of the schema.
_TEXT = re.compile(r"(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")(:?)")
_NUMBER = re.compile(r"(?<![\w.'\"])-?\d+(?:\.\d+)?(?![\w'\"])")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_WORD = re.compile(r"[A-Za-z]+")
_MOST_VALUES = 50

# The words that validation libraries and our own checks say in any case ("Input should be a valid
# integer"): standing there unquoted they tell nobody that the model sent `a` or `integer`. Taken
# from the message templates of pydantic-core; a test compares.
_STANDARD_TEXT = """
    a after an any are argument arguments array as ascii assertion at attribute be before boolean
    but byte bytearray bytes callable cannot character characters check complex contain counter
    cyclic data date dates datetime datetimes dd decimal default depth deque detected dictionary
    digit digits discriminator docs does duration e equal error exact exceeded expected extra
    extract extracting factory failed field fields finite float following for format found
    fraction fractional from frozen frozendict frozenset functions future g got greater has
    hashable have html https in info input inputs instance instead integer interpret invalid is
    item items iterable iterating json jsonorpython keys keyword least length less library list
    literal mapping match maximum missing mm more most multiple must no none not null number
    object occurred of offset one only or ordereddict org over parameter parse part past pattern
    permitted place point positional provided python raw recursion reference required rules scheme
    sentinel set should size str strict string strings subclass syntax tag tags than the time
    timedelta timezone to tokens total tuple unable unexpected unicode url use uses using uuid
    valid validated validating validation validator value values version violated when with yyyy
    zero
"""
STANDARD_WORDS = frozenset(_STANDARD_TEXT.split())


def values_in_repr(received: str) -> list[str]:
    """The plain values in the representation *received*, itself included."""
    values = [received]
    values += [first or second for first, second, colon in _TEXT.findall(received) if not colon]
    values += _NUMBER.findall(received)
    return [value for value in values[:_MOST_VALUES] if value.strip()]


def says_value(text: str, issue: Issue) -> bool:
    """Whether *text* repeats what was received for *issue*."""
    received = issue.received
    if not received or received == REDACTED:
        return False
    if is_stand_in(received, issue.received_type):
        return f"<{received}>" in text
    spoken = _told_values(text)
    return any(
        occurs(value, spoken if value.isalpha() else text) for value in values_in_repr(received)
    )


def _told_values(text: str) -> str:
    """*text*, or only what it quotes where all its other words are standard ones."""
    around = _QUOTED.sub(" ", text)
    if all(word.lower() in STANDARD_WORDS for word in _WORD.findall(around)):
        return " ".join(_QUOTED.findall(text))
    return text


def occurs(value: str, text: str) -> bool:
    """Whether *value* stands in *text* by itself, not inside a longer word or number."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        before = text[start - 1 : start]
        after = text[end : end + 1]
        if not (wordish(before) and wordish(value[:1])) and not (
            wordish(after) and wordish(value[-1:])
        ):
            return True
        start = text.find(value, start + 1)
    return False


def wordish(character: str) -> bool:
    return character.isalnum() or character == "_"


LONGEST_USER = 1_000
LONGEST_USER_LINE = 300
LONGEST_LLM = 8_000
LONGEST_SYSTEM = 8_000
LONGEST_HINT = 1_000
LONGEST_SNIPPET = 512
LONGEST_RECEIVED = 200
LONGEST_SYSTEM_CONTEXT = 520
_LONGEST_TOOL = 128
_LONGEST_CONTEXT = 100
_MOST_FIELDS = 20


def rendered(error: ToolError, audience: Audience) -> str:
    """*error* as *audience* reads it; never empty."""
    if audience is Audience.LLM:
        return llm_text(error)
    return _user_text(error) if audience is Audience.USER else _system_text(error)


def called(error: ToolError) -> str:
    """The name the caller used, fit to be shown."""
    return clean_name(error.tool_requested or error.tool, _LONGEST_TOOL) or "unknown"


def clean_issues(error: ToolError) -> tuple[Issue, ...]:
    """The issues of *error* with their values cut to what the model is shown."""
    return _cut_issues(error.issues)


def _cut_issues(issues: tuple[Issue, ...]) -> tuple[Issue, ...]:
    for issue in issues:
        if issue.received is not None and len(issue.received) > LONGEST_RECEIVED:
            return tuple(issue.cut(LONGEST_RECEIVED) for issue in issues)
    return issues


def clean_context(error: ToolError) -> str:
    """What was validated (`parameters`, `HTTP request`), fit to be shown."""
    return one_line(known_text(error.context, _LONGEST_CONTEXT)) or "parameters"


def bare(text: str) -> str:
    """*text* without an `Error: ` of its own; a prefix is added once, at the end."""
    start = text.lstrip()
    return start[6:].lstrip() if start[:6].lower() == "error:" else text


# The model


def llm_text(error: ToolError) -> str:
    """The text of the tool result: corrective for arguments, a fixed sentence otherwise."""
    if error.told:
        return _cleaned(error.told, LONGEST_LLM)
    if error.category is ErrorCategory.AVAILABILITY:
        return UNAVAILABLE_TEXT
    authored = _cleaned(error.llm_message, LONGEST_LLM) if error.llm_message else ""
    if error.category is ErrorCategory.INTERNAL:
        return authored or INTERNAL_TEXT
    text = authored or f"Error: {_corrective(error)}"
    hint = shown_hint(error) if error.retry_hint or error.derived_hint else None
    if hint:
        text = f"{text}\nHint: {hint}"
    return text if len(text) <= LONGEST_LLM else fit_lines(text, LONGEST_LLM)


def _corrective(error: ToolError) -> str:
    if not error._message:  # noqa: SLF001 - what `is_composed` says, less a call
        issues = error.issues
        if issues:
            return _composed(error, issues)
    text = bare(_authored(error, LONGEST_LLM))
    received = _received(error)
    return text + received_suffix(received, error.received_type)


def _received(error: ToolError) -> str | None:
    return clean_received(
        error.received,
        field=error.field,
        received_type=error.received_type,
        limit=LONGEST_RECEIVED,
    )


def _authored(error: ToolError, limit: int) -> str:
    """The message of *error* without secrets, the value of a secret field among them."""
    text = error.message
    if error.received is not None and _received(error) == REDACTED:
        for value in values_in_repr(error.received):
            text = text.replace(value, REDACTED)
    return _cleaned(text, limit)


def composed_message(error: ToolError) -> str:
    """The text made from the issues of *error*, or what its category always says."""
    issues = error.issues
    if issues:
        return _composed(error, issues)
    if error.category is ErrorCategory.PARAMETER:
        return code_sentence(error.code.value, None, clean_context(error))
    return UNAVAILABLE_TEXT if error.category is ErrorCategory.AVAILABILITY else INTERNAL_TEXT


def _composed(error: ToolError, found: tuple[Issue, ...]) -> str:
    issues = _cut_issues(found)
    context = clean_context(error)
    total = error.issues_total
    return sentence(issues[0], context) if total == 1 else block(issues, context, total)


def shown_hint(error: ToolError) -> str | None:
    """The authored hint, else the derived one, fit for the model."""
    hint = error.retry_hint or error.derived_hint
    return _cleaned(hint, LONGEST_HINT) if hint else None


def _cleaned(text: str, limit: int) -> str:
    return plain(redact_text(text, limit))


def fit_lines(text: str, limit: int) -> str:
    """*text* within *limit* characters: lines go from the middle, the first and last stay."""
    if len(text) <= limit:
        return text
    lines = text.split("\n")
    footer = lines[-1] if len(lines) > 1 else ""
    if lines[-1].startswith("Hint: ") and len(lines) > 2 and lines[-2] == FOOTER:
        footer = f"{FOOTER}\n{lines[-1]}"
    if len(lines) < 3 or len(lines[0]) + len(footer) + 8 > limit:
        return _fit_long_line(text, limit)
    left = limit - len(footer) - 3
    kept = [lines[0]]
    left -= len(lines[0]) + 1
    for line in lines[1:-1]:
        if len(line) + 1 > left:
            break
        kept.append(line)
        left -= len(line) + 1
    return "\n".join([*kept, "…", footer])


def _fit_long_line(text: str, limit: int) -> str:
    return snippet(text, max(limit - 8, 8))[:limit]


# The person


def _user_text(error: ToolError) -> str:
    if error.category is ErrorCategory.AVAILABILITY:
        text = UNAVAILABLE_TEXT
    elif error.category is ErrorCategory.INTERNAL:
        text = _for_the_person(error) or INTERNAL_TEXT
    elif error.is_composed:
        text = _user_composed(error)
    else:
        text = _user_authored(error)
    return cut(f"{called(error)}: {text}", LONGEST_USER)


def _for_the_person(error: ToolError) -> str:
    """An internal failure is explained to the person only when its author addressed them."""
    if error.audience is not Audience.USER or not error.is_authored:
        return ""
    return first_line(bare(_cleaned(error.message, LONGEST_USER_LINE * 2)), LONGEST_USER_LINE)


def _user_composed(error: ToolError) -> str:
    issues = clean_issues(error)
    context = clean_context(error)
    if error.issues_total == 1:
        issue = issues[0]
        text = sentence(issue, context, with_received=False)
        # The field is told anyway; only the message could repeat the value.
        if says_value(issue.message, error.issues[0]) or issue.type == "union_tag_invalid":
            return code_sentence(issue.code.value, issue.field, context)
        return cut(text, LONGEST_USER_LINE * 2)
    fields = list(dict.fromkeys(issue.field for issue in issues))
    names = ", ".join(fields[:_MOST_FIELDS])
    more = ", …" if len(fields) > _MOST_FIELDS or error.issues_total > len(issues) else ""
    return f"Invalid {context} - {error.issues_total} errors ({names}{more})"


def _user_authored(error: ToolError) -> str:
    """The author's own words (contract.md section 0, ruling 19); only a secret is taken out."""
    text = first_line(bare(_authored(error, LONGEST_USER_LINE * 4)), LONGEST_USER_LINE)
    if text:
        return text
    field = clean_name(error.field) if error.field else None
    return code_sentence(error.code.value, field, clean_context(error))


# The developer


def _system_text(error: ToolError) -> str:
    name = called(error)
    tool = clean_name(error.tool, _LONGEST_TOOL)
    resolved = f" (resolved to '{tool}')" if error.tool_requested and tool != name else ""
    head = f"tool={name}{resolved} code={error.code.value} category={error.category.value}: "
    reason = f"{error.reason.value}: " if error.reason is not None else ""
    parts = [head + reason + one_line(_system_message(error))]
    parts += [f"{label}: {text}" for label, text in _system_details(error) if text]
    return cut(" — ".join(parts), LONGEST_SYSTEM)


def _system_message(error: ToolError) -> str:
    if error.is_composed:
        return _composed(error, error.issues)
    return bare(_authored(error, LONGEST_SYSTEM // 2))


def _system_details(error: ToolError) -> list[tuple[str, str | None]]:
    hint = error.retry_hint
    return [
        ("field", clean_name(error.field) if error.field else None),
        ("expected", _line(error.expected, LONGEST_RECEIVED)),
        ("received", _received(error)),
        ("snippet", _line(shown_snippet(error), LONGEST_SNIPPET + 8)),
        ("retry_hint", _line(hint, LONGEST_HINT)),
        # The context is the machine form of the hint: shown where nobody wrote one.
        ("retry_context", None if hint else _context_line(error)),
        ("exception", error.exception_type),
    ]


def shown_snippet(error: ToolError) -> str | None:
    """Head and tail of the offending text, redacted, at most 520 characters."""
    if error.snippet is None:
        return None
    return plain(snippet(redact_text(error.snippet), LONGEST_SNIPPET))


def _line(text: str | None, limit: int) -> str | None:
    return None if text is None else one_line(_cleaned(text, limit))


def _context_line(error: ToolError) -> str | None:
    if not error.retry_context:
        return None
    return cut(json.dumps(bounded_context(error), ensure_ascii=False), LONGEST_SYSTEM_CONTEXT)


# The machine form of a failure for the model: 14 keys, always all of them, at most 8 KiB.

MOST_PAYLOAD_BYTES = 8_192
MOST_CONTEXT_BYTES = 4_096
_MOST_ISSUES = 20
_SHORTEST_MESSAGE = 256
_LONGEST_CONTEXT_TEXT = 520


def llm_payload(error: ToolError) -> dict[str, object]:
    """The payload of *error*; see contract.md 3.7."""
    payload: dict[str, object] = {
        "ok": False,
        "success": False,
        "tool": called(error),
        "code": error.llm_code,
        "category": error.category.value,
        "message": llm_text(error),
        "field": None,
        "expected": None,
        "received": None,
        "snippet": None,
        "issues": [],
        "retryable": error.retryable,
        "retry_hint": _payload_hint(error),
        "retry_context": None,
    }
    if error.category is ErrorCategory.PARAMETER:
        payload.update(_payload_details(error))
    return _fitted(payload)


def _payload_hint(error: ToolError) -> str | None:
    if error.category is ErrorCategory.AVAILABILITY:
        return None
    if error.category is ErrorCategory.PARAMETER or error.retry_hint:
        return shown_hint(error)
    return CATALOGUE_HINTS.get(error.code.value)


def _payload_details(error: ToolError) -> dict[str, object]:
    field = clean_name(error.field) if error.field else None
    received = clean_received(
        error.received,
        field=error.field,
        received_type=error.received_type,
        limit=LONGEST_RECEIVED,
    )
    return {
        "field": field,
        "expected": None if error.expected is None else cut(redact_text(error.expected), 500),
        "received": received,
        "snippet": shown_snippet(error),
        "issues": [_payload_issue(issue) for issue in clean_issues(error)[:_MOST_ISSUES]],
        "retry_context": bounded_context(error),
    }


def _payload_issue(issue: Issue) -> dict[str, str | None]:
    return {
        "field": issue.field,
        "code": issue.code.value,
        "message": issue.message,
        "expected": issue.expected,
        "received": issue.received,
        "received_type": issue.received_type,
    }


def bounded_context(error: ToolError) -> dict[str, object] | None:
    """The retry context as JSON values, redacted, at most 4 KiB; its last keys go first."""
    if not error.retry_context:
        return None
    cleaned = to_jsonable(
        error.retry_context, redact=True, max_items=50, max_string=_LONGEST_CONTEXT_TEXT
    )
    if type(cleaned) is not dict:
        return None
    while cleaned and _json_size(cleaned) > MOST_CONTEXT_BYTES:
        cleaned.popitem()
    return cleaned or None


def _json_size(value: object) -> int:
    """Bytes of *value* as ASCII JSON, the longest form a caller may choose."""
    return len(json.dumps(value, allow_nan=False))


def _fitted(payload: dict[str, object]) -> dict[str, object]:
    """*payload* within 8 KiB: snippet, context and issues go before the message is cut."""
    if _json_size(payload) <= MOST_PAYLOAD_BYTES:
        return payload
    for key in ("snippet", "retry_context"):
        payload[key] = None
        if _json_size(payload) <= MOST_PAYLOAD_BYTES:
            return payload
    issues = payload["issues"]
    while type(issues) is list and issues:
        issues.pop()
        if _json_size(payload) <= MOST_PAYLOAD_BYTES:
            return payload
    return _with_short_texts(payload)


def _with_short_texts(payload: dict[str, object]) -> dict[str, object]:
    message = str(payload["message"])
    limit = len(message)
    while _json_size(payload) > MOST_PAYLOAD_BYTES and limit > _SHORTEST_MESSAGE:
        limit = max(limit * 3 // 4, _SHORTEST_MESSAGE)
        payload["message"] = fit_lines(message, limit)
    for key in ("retry_hint", "expected", "received", "field", "tool"):
        text = payload[key]
        if _json_size(payload) > MOST_PAYLOAD_BYTES and type(text) is str:
            payload[key] = plain(text, 64)
    return payload
