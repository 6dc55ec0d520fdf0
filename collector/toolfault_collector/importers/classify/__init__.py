"""What a failure that is only text says: code, category, audience and field, by fixed rules.

Transcripts hold the sentence that the model saw and nothing else. Texts that list the faults of
several arguments (pydantic, zod, JSON Schema, Claude Code) are taken apart by ``argument_issues``;
all others are asked of the ordered table in ``rules``, so the same text always gets the same
answer. Codes are the 19 of the SDK where one fits, else custom. ``soft`` has the rules for
successes that look like failures.

Patterns are searched in the first line only, which is where errors say what they are; what follows
is data. It is bounded, so the time is bounded too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from toolfault_collector.importers.classify.argument_issues import ArgumentIssue, read_issues
from toolfault_collector.importers.classify.rules import RULES, Audience, Category, Rule

__all__ = ["ISSUES_RULE", "SHELL_TOOLS", "ArgumentIssue", "Classification", "classify", "unwrap"]

ISSUES_RULE: Final = "argument_issues"
# Tools that run a command line: what they print to stderr is the command's failure, not theirs.
SHELL_TOOLS: Final = frozenset(
    {"bash", "shell", "sh", "terminal", "execute_command", "run_command", "start_process"}
)

MAX_TEXT: Final = 8_000
MAX_LINE: Final = 500
MAX_FIELD: Final = 256
MAX_PREFIXES: Final = 4
_TAG: Final = re.compile(r"\s*<tool_use_error>")
_END_TAG: Final = "</tool_use_error>"
# Wrappers that say no more than that there was an error, or in which tool.
_PREFIX: Final = re.compile(
    r"\s*(?:error(?: (?:executing|calling|invoking|in|running) (?:tool|command|function)"
    r"(?: ['\"`]?[\w./-]{1,128}['\"`]?)?)?: "
    r"|mcp error -?\d{1,6}: |error processing request: )",
    re.IGNORECASE,
)
_SUBJECT: Final = re.compile(
    r"(?:the |parameter |argument |field )?[`'\"]?(?P<name>[A-Za-z_][\w.\[\]-]{0,127})[`'\"]?"
    r"(?: parameter| argument| field)? (?:must|cannot|can't|should|is|exceeds|does not)\b",
    re.IGNORECASE,
)
_VALUE_FIRST: Final = re.compile(
    r"'[^'\n]{0,500}' (?:is not (?:of type|one of)|is too |does not match)"
)
_NO_NAMES: Final = re.compile(
    r"arguments?|content|data|field|file|input|it|output|parameters?|request|result|string|text"
    r"|that|the|this|type|value|you",
    re.IGNORECASE,
)
_PATTERNS: Final = tuple((rule, re.compile(rule.pattern, re.IGNORECASE)) for rule in RULES)


@dataclass(frozen=True, slots=True)
class Classification:
    """What is known of a failure from its text."""

    rule: str
    code: str
    category: Category
    audience: Audience
    field: str | None = None
    expected: str | None = None
    issues: tuple[ArgumentIssue, ...] = ()


def classify(text: str, *, tool: str = "", rule: str | None = None) -> Classification:
    """Classify the *text* of a failure.

    Args:
        text: What the model saw.
        tool: Name of the tool; the output of a shell is read as a command's.
        rule: Name of the rule to apply where the format tells more than the text.

    Raises:
        ValueError: There is no rule of that name.
    """
    if rule is not None:
        return _from_rule(_named(rule), None)
    body = _strip_prefixes(unwrap(text)[:MAX_TEXT])
    if issues := read_issues(body):
        return _from_issues(issues)
    shell = tool.rpartition("/")[2].lower() in SHELL_TOOLS
    line = body.lstrip().partition("\n")[0][:MAX_LINE]
    for candidate, pattern in _PATTERNS:
        found = pattern.search(line) if shell or not candidate.shell_only else None
        if found is not None:
            return _from_rule(candidate, found)
    raise AssertionError("the last rule fits every text")


def unwrap(text: str) -> str:
    """Take a text out of Claude Code's ``<tool_use_error>`` tags."""
    match = _TAG.match(text)
    return text[match.end() :].rstrip().removesuffix(_END_TAG) if match else text


def _strip_prefixes(text: str) -> str:
    for _ in range(MAX_PREFIXES):
        match = _PREFIX.match(text)
        if match is None or match.end() == len(text):
            break
        text = text[match.end() :]
    return text


def _named(name: str) -> Rule:
    for rule in RULES:
        if rule.name == name:
            return rule
    raise ValueError(f"no rule is named {name!r}")


def _from_rule(rule: Rule, found: re.Match[str] | None) -> Classification:
    named = None
    if found is not None:
        groups = (value for name, value in found.groupdict().items() if name.startswith("field"))
        named = _subject(found.string) if rule.of_subject else next(filter(None, groups), None)
    field = named[:MAX_FIELD] if named else rule.field
    return Classification(
        rule=rule.name,
        code=rule.code,
        category=rule.category,
        audience=rule.audience or ("system" if rule.category == "internal" else "llm"),
        field=field,
        issues=(ArgumentIssue(field, rule.code),) if field and rule.category == "parameter" else (),
    )


def _subject(line: str) -> str | None:
    """Name the argument that a sentence such as "port must be an integer" begins with."""
    # JSON Schema's validators begin with the value, in Python's quotes.
    found = None if _VALUE_FIRST.match(line) else _SUBJECT.match(line)
    return found["name"] if found and not _NO_NAMES.fullmatch(found["name"]) else None


def _from_issues(issues: tuple[ArgumentIssue, ...]) -> Classification:
    codes = {issue.code for issue in issues}
    only = issues[0] if len(issues) == 1 else None
    return Classification(
        rule=ISSUES_RULE,
        code=codes.pop() if len(codes) == 1 else "invalid_input",
        category="parameter",
        audience="llm",
        field=(only.field or None) if only else None,
        expected=only.expected if only else None,
        issues=tuple(issue for issue in issues if issue.field),
    )
