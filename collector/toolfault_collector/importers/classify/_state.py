"""Rules about arguments that are well formed but do not fit the state of the world."""

from __future__ import annotations

from typing import Final

from toolfault_collector.importers.classify._rule import Rule, ignoring_case

__all__ = ["STATE"]

STATE: Final[tuple[Rule, ...]] = (
    Rule(
        "not_read",
        ignoring_case(
            r"\bfile has not been read yet\b|\bfile has been (?:unexpectedly )?modified since"
        ),
        "precondition_failed",
        "parameter",
        ("File has not been read yet. Read it first before writing to it.",),
    ),
    Rule(
        "replace_not_found",
        ignoring_case(r"^string to replace not found\b|\bold_str(?:ing)? (?:was )?not found\b"),
        "not_found",
        "parameter",
        ("String to replace not found in file.",),
        field="old_string",
    ),
    Rule(
        "replace_not_unique",
        ignoring_case(
            r"^found \d+ matches of the string to replace\b|\bmultiple occurrences of old_str"
        ),
        "not_unique",
        "parameter",
        ("Found 3 matches of the string to replace, but replace_all is false.",),
        field="old_string",
    ),
    Rule(
        "nothing_to_change",
        ignoring_case(r"^no changes to make\b|\bold_string and new_string (?:are|must be)\b"),
        "invalid_input",
        "parameter",
        ("No changes to make: old_string and new_string are exactly the same.",),
        field="new_string",
    ),
    Rule(
        "already_exists",
        ignoring_case(r"\balready exists?\b|\beexist\b|\bduplicate (?:key|entry)\b"),
        "already_exists",
        "parameter",
        ("File already exists", "EEXIST: file already exists, mkdir '/tmp/x'"),
    ),
    Rule(
        "unavailable_resource",
        ignoring_case(
            r"\bnot available (?:on|for|at|in|from)\b|\bnot found or available\b"
            r"|\bnot enough (?:seats|stock|items|rooms|quantity|inventory)\b"
            r"|\b(?:out of stock|sold out|fully booked|no longer available)\b"
        ),
        "resource_unavailable",
        "parameter",
        (
            "flight HAT030 not available on date 2024-05-13",
            "not enough seats on flight HAT139",
            "new item 9127591879 not found or available",
        ),
    ),
    Rule(
        "wrong_state",
        ignoring_case(
            r"\bcannot be (?:used|modified|exchanged|returned|cancell?ed|updated|changed|deleted"
            r"|removed|booked|killed|refunded)\b|\bnot enough (?:balance|funds|credit)\b"
            r"|\binsufficient (?:balance|funds|credit)\b|\bis not (?:running|open|active|pending)\b"
            r"|\bmust (?:first )?be (?:opened|started|created|loaded|read)\b"
            r"|\bno [\w ]{1,40} is (?:currently )?(?:loaded|open|running)\b"
        ),
        "precondition_failed",
        "parameter",
        (
            "non-pending order cannot be modified",
            "certificate cannot be used to update reservation",
            "not enough balance in payment method gift_card_5094406",
            "Shell dce0af is not running, so cannot be killed (status: killed)",
        ),
    ),
    Rule(
        "mismatch",
        ignoring_case(
            r"\bdoes not add up\b|\bshould match\b|\b(?:does|do) not match\b|\bmismatch(?:ed)?\b"
        ),
        "invalid_input",
        "parameter",
        (
            "payment amount does not add up, total price is 375, but paid 299",
            "the number of items to be exchanged should match",
        ),
    ),
)
