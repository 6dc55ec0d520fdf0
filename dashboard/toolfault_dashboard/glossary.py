"""The words of the product and what they mean: one word per thing.

Badges, headings and Help explain with them, and the documentation's glossary is made of them
(`docs/reference.py`), so a word has one definition.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "AUDIENCES",
    "CATEGORIES",
    "CODES",
    "GLOSSARY",
    "KIND_STATES",
    "OUTCOMES",
    "REMEDIES",
    "SECTIONS",
    "meaning",
]

_WORDS: Final = {
    "tool call": "One attempt of a model to use a tool; it has a call id.",
    "failure": "A tool call that did not succeed; it carries one error.",
    "issue": "One thing wrong with one argument inside a failure: the argument, a code, what was "
    "expected and what was received.",
    "code": "The stable name of what went wrong, such as wrong_type; senders may use names of "
    "their own. A failure counts under its own code and under the codes of its issues, so one "
    "failure may stand in several rows.",
    "own code": "The code of the failure itself: where its issues differ, invalid_input.",
    "category": "Where the cause lies: availability, parameter or internal.",
    "audience": "Whom a failure is for: the user, the model (llm) or the system. A failure has one "
    "primary audience, and a text for each.",
    "conversation": "The session in which calls happen; chains live inside one.",
    "turn": "One answer of the model. Calls issued in the same turn are parallel: none has seen "
    "the result of another.",
    "chain": "A failed call and the calls of the same tool that follow it in its conversation, "
    "up to the first success or the end. A call is compared with the last 64 failures of its "
    "chain.",
    "round trip": "Each call in a chain after its first failure: a retry. Failed, failed, "
    "succeeded are 2 round trips; one failure alone is 0.",
    "calls spent": "What a chain cost: its round trips, and the calls of other tools between its "
    "first failure and its end. A chain ends with its last call; a switched one ends with the "
    "success of another tool that replaced it, which counts as well. Of other tools at most 20 "
    "calls count, as they were sent: successes that a sender only counted are not among them. A "
    "call between two chains that overlap counts for both.",
    "outcome": "How a chain ended: recovered, switched, abandoned, or still open.",
    "operation": "A call that is not a retry inside a chain.",
    "cohort": "What one query of a comparison matches: its calls, and what came of them.",
    "failure rate": "The share of calls that failed.",
    "first-try success": "The share of operations that needed no chain.",
    "recovery rate": "The share of closed chains that ended with a success of the same tool.",
    "95% interval": "The values that fit the data: it misses the true one in 1 of 20 cases. Where a"
    " table says nothing else, it takes into account that calls of one conversation are alike.",
    "kind of failure": "All failures of one signature. It is new, open, acknowledged, fixed, "
    "ignored or regressed.",
    "signature": "The fingerprint of a kind of failure: tool, code, arguments with the codes of "
    "their issues, exception. It holds no values.",
    "first seen": "When the first failure of a row ended. Of a kind of failure: the first of all "
    "time. Of a code, a field or another value: the first in the time that the page shows.",
    "last seen": "When the last failure of a row ended, in the time that the page shows.",
    "derived": "A transcript or a span holds one text. The server chose code and category by a "
    "rule, and made the texts for other audiences: nobody was told these.",
    "detection": "How a failure was recognised: the sender said so, or a rule found it in a text.",
    "message": "The text the model saw, with ids, numbers and quotes taken out.",
    "repair": "A value that was fixed before validation, so that the call did not fail.",
    "phantom argument": "An argument that a model sent, that the tool does not have, and that "
    "nobody refused: the tool ran without it.",
    "repeated execution": "A call that succeeded after the same one, with the same arguments, had "
    "succeeded in the same conversation.",
    "not idempotent": "Executing it twice is not like executing it once: a payment, an e-mail.",
    "near miss": "A rejected value that a known remedy would have accepted.",
    "change": "A moment at which something was improved, or a label on calls; before is compared "
    "with after.",
    "remedy": 'A way of accepting what is now rejected: "true" for true, one item for a list, a '
    "close choice.",
    "project": "A separate collection of calls and failures, with its own keys.",
}

KIND_STATES: Final = {
    "new": "A kind of failure that was first seen within the last 7 days (or what Settings says) "
    "and that nobody has touched.",
    "open kind": "The badge open of a kind of failure: nothing is decided about it.",
    "acknowledged": "Somebody knows of this kind of failure and looks after it.",
    "fixed kind": "The badge fixed of a kind of failure: somebody said that it is fixed, and it "
    "was not seen since.",
    "regressed": "This kind of failure was seen again after its fix.",
    "ignored": "Somebody decided that this kind of failure is not to be mended: until a date, for "
    "a number of further failures, or for good.",
    "owner": "Who looks after a kind of failure.",
}

_CHAINS: Final = {
    "first code": "The code of the failure that opened the chain.",
    "first field": "The argument that the failure that opened the chain was about.",
    "remarkable": "First retry, same again, serial discovery and confused, where they apply.",
    "first retry": "The first call after the failure succeeded.",
    "first-retry fixes": "The share of retried chains that the first call after the failure ended.",
    "same again": "A retry had the same arguments as a call that had failed before it.",
    "serial discovery": "A retry failed on an argument that no failure before it had named: "
    "the model learned of the problems one by one.",
    "confused": "A retry failed on the same argument, with the same code, as a call before it.",
    "parallel": "A call that began before the model had seen the failure.",
    "time lost": "The time of failing calls and between retries; each call and each pause counts "
    "for at most 30 minutes.",
    "tokens lost": "The tokens of the calls of chains, where the agent reports them.",
    "money lost": "The tokens lost, at the prices in Settings.",
    "call of its chain": "The place of a call in its chain, counted from 1.",
    "this failure": "The failure that the page is about.",
}

_MESSAGES: Final = {
    "answered": "Failures after which the model called the same tool again.",
    "fixed": "Failures after which the next call of the tool succeeded.",
    "fixed by the next call": "The share of failures after which the next call succeeded.",
    "fixed of answered": "The share of answered failures after which the next call succeeded.",
    "best": "More calls succeed after this text than after the worst one: the intervals are apart.",
    "worst": "Fewer calls succeed after this text than after the best one: the intervals"
    " are apart.",
}

_EXPERIMENTS: Final = {
    "variant": "The arm of an experiment that a conversation takes part in.",
    "arm": "One of the variants that an experiment compares.",
    "control": "The arm that the others are compared with.",
    "balanced": "The arms have about as many conversations as chance gives them.",
    "mismatch": "Chance hardly ever divides conversations like this, so the effect is not certain.",
    "always-valid": "An interval that is valid no matter how often somebody checks.",
    "fixed-horizon": "An interval that is valid if somebody checks once, at a time chosen before.",
    "decided": "The always-valid interval does not include zero, so the experiment may be stopped.",
    "improved": "The difference is better than chance explains.",
    "worse": "The difference is worse than chance explains.",
    "no detectable change": "Chance can explain the difference.",
    "not enough data": "There are too few calls or conversations to say anything.",
}

_FIXES: Final = {
    "precondition": "Models that recovered had called another tool first: say so, or do it.",
    "calls saved": "The calls that a remedy would have saved: those after the first failure of a "
    "chain that it covers. Two remedies may save the same calls, so savings do not add up.",
    "no known remedy": "Nothing that toolfault knows would have made these calls succeed.",
    "assumes a better wording": "Counts what is saved if this text helps as often as the others.",
    "added by hand": "Somebody added it on the page of a failure.",
    "default": "Giving the argument a value where the model leaves it out.",
    "describe": "Saying in the description of the argument that it is required.",
    "all_at_once": "Reporting all problems of a call in one message.",
    "reword": "Writing a message that says which argument to change, and to what. Its failures "
    "stand in other lines too, with their cost.",
    "expose": "Offering a tool under the name that the model calls.",
}

_ALERTS: Final = {
    "firing": "The condition of the rule holds, and its message was decided.",
    "pending": "The condition of the rule holds, but not for ten minutes yet.",
    "quiet": "The condition of the rule does not hold.",
    "snoozed": "The rule says nothing for a while; what still fires afterwards is told then.",
    "works": "The channel took the last message.",
    "fails": "The channel did not take the last message; toolfault tries again.",
    "not used yet": "No message has been sent to this channel.",
}

_SETTINGS: Final = {
    "ingest": "A key that sends data and reads none.",
    "read": "A key that reads data and sends none.",
    "active": "An account that has signed in.",
    "invited": "An account whose sign-in link has not been used yet.",
    "disabled": "An account that may not sign in.",
    "these settings": "The project that this page is about.",
    "shared": "A view that everybody on this server sees in the list.",
    "kind of change": "What a change is: one that somebody recorded, here or in code (manual), a "
    "release, a model, new arguments of a tool (schema), or a label on calls (variant).",
    "toolfault itself": "Nobody recorded this change: toolfault saw the model, release, schema or "
    "variant for the first time then. The very first one is no change: nothing was there before.",
}

CATEGORIES: Final = {
    "availability": "The tool could not be used at all: unknown, disabled, paused or not allowed.",
    "parameter": "The call was wrong as it was made: its arguments, or something that it needs "
    "first. The model can fix that and call again.",
    "internal": "The tool, or something behind it, failed; no other arguments would have helped.",
}

AUDIENCES: Final = {
    "user": ("The user", "Shown in the conversation."),
    "llm": ("The model", "Sent back as the result of the call."),
    "system": ("The system", "Written to logs, for developers and operators."),
}


def _small(words: str) -> str:
    return f"{words[:1].lower()}{words[1:]}"


_AUDIENCES: Final = {
    name: f"For {_small(who)}: {_small(purpose)}" for name, (who, purpose) in AUDIENCES.items()
} | {
    "primary": "The audience that a failure is for first of all.",
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
    # Those that the server's rules choose for transcripts and spans.
    "access_denied": "The arguments named something that the tool may not read or change.",
    "already_exists": "The arguments would make something that exists already.",
    "blocked_by_hook": "A hook of the host refused the call before it ran.",
    "command_failed": "A command ran and ended with an error.",
    "invalid_syntax": "An argument was code or a query that could not be read.",
    "not_unique": "An argument named several things where one was meant.",
    "output_invalid": "The tool's own answer was not of the form that it promises.",
    "permission_denied": "The host did not permit the call.",
    "precondition_failed": "Something else had to happen before the call.",
    "rejected_by_user": "A person refused the call.",
    "resource_unavailable": "What the arguments named exists, but cannot be had.",
    "unclassified": "No rule knows the text of the failure.",
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

_REMEDIES: Final = {name: f"{words[0].upper()}{words[1:]}." for name, words in REMEDIES.items()}

SECTIONS: Final = {
    "Failures and chains": _WORDS,
    "Outcomes of a chain": OUTCOMES,
    "Columns of chains": _CHAINS,
    "States of a kind": KIND_STATES,
    "Categories": CATEGORIES,
    "Audiences": _AUDIENCES,
    "Messages": _MESSAGES,
    "Experiments and comparisons": _EXPERIMENTS,
    "Fix next": _FIXES,
    "Remedies": _REMEDIES,
    "Alerts": _ALERTS,
    "Settings": _SETTINGS,
}
"""Every term of the pages, in the order in which the documentation lists them."""

GLOSSARY: Final = {word: said for words in SECTIONS.values() for word, said in words.items()}
"""The same in one table: what Help lists, and what badges and headings explain."""


def meaning(term: str) -> str:
    """Return what *term* means, singular or plural; empty where the glossary has no entry."""
    word = term.lower()
    return GLOSSARY.get(word) or GLOSSARY.get(word.removesuffix("s"), "")
