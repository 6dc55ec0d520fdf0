"""Rules about what the model wrote: arguments that are wrong in themselves."""

from __future__ import annotations

from typing import Final

from toolfault_collector.importers.classify._rule import Rule, ignoring_case

__all__ = ["ARGUMENTS"]

_QUOTE: Final = r"""[`'"]"""
_NAME: Final = r"(?P<field>[A-Za-z_][\w.\[\]-]{0,127})"

ARGUMENTS: Final[tuple[Rule, ...]] = (
    Rule(
        "missing_argument",
        ignoring_case(
            rf"missing (?:a )?required (?:parameter|argument|field|property|value)s?:? "
            rf"{_QUOTE}?{_NAME}"
        ),
        "missing_field",
        "parameter",
        (
            "Missing required parameter: url",
            "missing required argument 'query'",
        ),
    ),
    Rule(
        "argument_required",
        ignoring_case(
            rf"^(?:the )?{_QUOTE}?{_NAME}{_QUOTE}? (?:field |parameter |argument )?is required\b"
        ),
        "missing_field",
        "parameter",
        ("url is required", "The 'query' parameter is required"),
    ),
    Rule(
        "unexpected_argument",
        ignoring_case(
            rf"(?:unexpected keyword argument|unexpected (?:parameter|argument|field|property)"
            rf"|unknown (?:parameter|argument|field|property)):? {_QUOTE}?{_NAME}"
        ),
        "unknown_field",
        "parameter",
        ("book() got an unexpected keyword argument 'usr'", "Unknown parameter: 'usr'"),
    ),
    Rule(
        "go_type",
        ignoring_case(
            rf"cannot unmarshal \w{{1,32}} into Go (?:struct field \w{{1,64}}\.{_NAME}|value)"
        ),
        "wrong_type",
        "parameter",
        ("json: cannot unmarshal string into Go struct field Args.port of type int",),
    ),
    Rule(
        "type",
        ignoring_case(
            r"\bis not of type\b|\bmust be (?:a|an|of type)? ?(?:string|integer|number|boolean"
            r"|array|list|object|dict)\b|^invalid type\b|\bexpected [^\n]{1,64}, (?:got|received)\b"
        ),
        "wrong_type",
        "parameter",
        ("port must be an integer", "expected list, got str"),
        of_subject=True,
    ),
    Rule(
        "choice",
        ignoring_case(
            r"\bis not one of\b|\bmust be one of\b|\binvalid (?:enum|choice)|\bvalid choices are\b"
        ),
        "invalid_choice",
        "parameter",
        ("'first' is not one of ['economy', 'business']", "cabin must be one of economy, business"),
        of_subject=True,
    ),
    Rule(
        "too_large",
        ignoring_case(
            r"\bexceeds? (?:the )?(?:maximum|limit|max)|\btoo (?:long|large|many)\b(?! requests)"
            r"|\bgreater than (?:or equal to )?the maximum\b|\bmust be (?:at most|less than|<)"
        ),
        "field_too_large",
        "parameter",
        (
            "File content (28375 tokens) exceeds maximum allowed tokens (25000).",
            "limit must be at most 100",
        ),
        of_subject=True,
    ),
    Rule(
        "too_small",
        ignoring_case(
            r"\btoo short\b|\bless than the minimum\b|\bmust be (?:at least|greater than|>)"
            r"|\b(?:must not|cannot|can't) be empty\b|\bshould be non-empty\b"
        ),
        "field_too_small",
        "parameter",
        ("query cannot be empty", "limit must be at least 1"),
        of_subject=True,
    ),
    Rule(
        "json",
        ignoring_case(
            r"\bjsondecodeerror\b|\binvalid json\b|\bnot valid json\b|\bin json at position\b"
            r"|^expecting (?:value|property name|',' delimiter|':' delimiter)"
            r"|\bunterminated string\b|\bfailed to parse [^\n]{0,40}json\b"
        ),
        "malformed_json",
        "parameter",
        ("Unexpected token } in JSON at position 41", "Expecting value: line 1 column 1 (char 0)"),
    ),
    Rule(
        "diff",
        ignoring_case(
            r"\b(?:malformed|corrupt|invalid) (?:diff|patch)\b|\bpatch (?:does not apply|failed)"
            r"|\bhunk #?\d* ?failed\b"
        ),
        "malformed_diff",
        "parameter",
        ("error: patch failed: src/app.py:12", "corrupt patch at line 6"),
    ),
    Rule(
        "format",
        ignoring_case(
            r"\bdoes not match (?:the )?(?:pattern|format|regex|'\^)|\binvalid isoformat\b"
            r"|\binvalid (?:date|time|url|uri|uuid|e-?mail|format|regex|cron|path)\b"
            r"|\bis not a valid (?:date|url|uuid|e-?mail)"
        ),
        "invalid_format",
        "parameter",
        ("time data '5/1' does not match format '%Y-%m-%d'", "Invalid URL"),
        of_subject=True,
    ),
)
