"""One failure in the words of each audience (contract.md 3.6)."""

from __future__ import annotations

from toolfault.errors._enums import Audience, ErrorCategory
from toolfault.errors._grammar import (
    block,
    clean_name,
    clean_received,
    code_sentence,
    received_suffix,
    sentence,
)
from toolfault.errors._leak import says_value, values_in_repr
from toolfault.errors._redact import redact_text
from toolfault.errors._text import cut, first_line, one_line, plain, snippet
from toolfault.errors._words import FOOTER, INTERNAL_TEXT, REDACTED, UNAVAILABLE_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolfault.errors._error import ToolError
    from toolfault.errors._issue import Issue

__all__ = ["clean_context", "clean_issues", "llm_text", "rendered"]

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
    return tuple(issue.cut(LONGEST_RECEIVED) for issue in error.issues)


def clean_context(error: ToolError) -> str:
    """What was validated (`parameters`, `HTTP request`), fit to be shown."""
    return one_line(plain(redact_text(error.context, _LONGEST_CONTEXT))) or "parameters"


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
    hint = shown_hint(error)
    return fit_lines(f"{text}\nHint: {hint}" if hint else text, LONGEST_LLM)


def _corrective(error: ToolError) -> str:
    if error.is_composed:
        return _composed(error)
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
    if error.issues:
        return _composed(error)
    if error.category is ErrorCategory.PARAMETER:
        return code_sentence(error.code.value, None, clean_context(error))
    return UNAVAILABLE_TEXT if error.category is ErrorCategory.AVAILABILITY else INTERNAL_TEXT


def _composed(error: ToolError) -> str:
    issues = clean_issues(error)
    context = clean_context(error)
    if error.issues_total == 1:
        return sentence(issues[0], context)
    return block(issues, context, error.issues_total)


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
        return _composed(error)
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
    import json

    from toolfault.errors._payload import bounded_context

    return cut(json.dumps(bounded_context(error), ensure_ascii=False), LONGEST_SYSTEM_CONTEXT)
