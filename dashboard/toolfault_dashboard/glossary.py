"""The words of the product and what they mean, for pages (design.md section 1)."""

from __future__ import annotations

from typing import Final

__all__ = ["AUDIENCES", "CATEGORIES", "CODES", "OUTCOMES", "REMEDIES", "WORDS"]

WORDS: Final = {
    "tool call": "One attempt of a model to use a tool.",
    "failure": "A tool call that did not succeed.",
    "issue": "One thing wrong with one argument inside a failure.",
    "code": "The stable name of what went wrong, such as wrong_type.",
    "category": "Where the cause lies: availability, parameter or internal.",
    "audience": "Whom a failure is for: the user, the model (llm) or the system.",
    "conversation": "The session in which calls happen; chains live inside one.",
    "chain": "A failed call and the calls of the same tool that follow it in its conversation, "
    "up to the first success.",
    "round trip": "Each call in a chain after its first failure: what the failure cost.",
    "outcome": "How a chain ended: recovered, switched, abandoned, or still open.",
    "operation": "A call that is not a retry inside a chain.",
    "first-try success": "The share of operations that needed no chain.",
    "signature": "What failures have in common that are the same: tool, code, fields, exception.",
    "message": "The text the model saw, with ids, numbers and quotes taken out.",
    "repair": "A value that was fixed before validation, so that the call did not fail.",
    "near miss": "A rejected value that a known remedy would have accepted.",
    "change": "A moment at which something was improved; before is compared with after.",
}

CATEGORIES: Final = {
    "availability": "The tool could not be used at all: unknown, disabled, paused or not allowed.",
    "parameter": "The arguments were wrong; the model can fix them and call again.",
    "internal": "The tool itself failed; no other arguments would have helped.",
}

AUDIENCES: Final = {
    "user": ("The user", "Shown in the conversation."),
    "llm": ("The model", "Sent back as the result of the call."),
    "system": ("The system", "Written to logs, for developers and operators."),
}

OUTCOMES: Final = {
    "recovered": "The same tool succeeded in the end.",
    "switched": "This tool never succeeded; a different tool succeeded after it.",
    "abandoned": "Neither this tool nor another one succeeded, and the conversation ended or has "
    "been idle for 30 minutes.",
    "open": "Not resolved yet; the conversation is still going.",
}

CODES: Final = {
    "not_available": "The tool does not exist, is switched off, or may not be used here.",
    "missing_field": "A required argument was not given.",
    "unknown_field": "An argument was given that the tool does not have.",
    "wrong_type": "An argument had another type than the tool expects.",
    "invalid_format": "An argument had the right type but not the expected form.",
    "invalid_choice": "An argument was none of the allowed values.",
    "field_too_large": "An argument was too large or too long.",
    "field_too_small": "An argument was too small or too short.",
    "malformed_json": "The arguments, or one of them, were not valid JSON.",
    "malformed_diff": "An argument should have been a unified diff and was not.",
    "not_found": "The arguments named something that does not exist.",
    "invalid_input": "Several different things were wrong, or a rule across arguments was broken.",
    "io": "Reading or writing failed inside the tool.",
    "timeout": "The tool did not answer in time.",
    "rate_limited": "A service behind the tool asked for fewer calls.",
    "external_service_error": "A service behind the tool failed.",
    "configuration_error": "The tool lacks a key or a setting.",
    "cancelled": "The call was cancelled before it ended.",
    "internal_error": "The tool failed for a reason of its own.",
}

REMEDIES: Final = {
    "bool_from_string": "reading a boolean from text",
    "int_from_string": "reading a whole number from text",
    "float_from_string": "reading a number from text",
    "json_from_string": "parsing JSON from text",
    "wrap_in_list": "wrapping the value in a list",
    "strip": "taking white space away",
    "fold_case": "ignoring upper and lower case",
    "close_choice": "accepting the closest choice",
    "alias": "accepting another name for the argument",
    "clamp": "taking the nearest allowed value",
    "date_from_string": "reading a date from text",
}
