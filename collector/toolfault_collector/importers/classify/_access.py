"""Rules about whether a call was let through at all: people, tools, command lines."""

from __future__ import annotations

from typing import Final

from toolfault_collector.importers.classify._rule import Rule, ignoring_case

__all__ = ["COMMANDS", "PEOPLE", "TOOLS"]

PEOPLE: Final[tuple[Rule, ...]] = (
    Rule(
        "rejected_by_user",
        ignoring_case(
            r"^the user doesn'?t want to (?:proceed|take this action)"
            r"|^the tool use was rejected|request interrupted by user"
            r"|^user (?:rejected|declined|denied)\b"
        ),
        "rejected_by_user",
        "availability",
        (
            "The user doesn't want to proceed with this tool use. The tool use was rejected",
            "The user doesn't want to take this action right now.",
            "[Request interrupted by user for tool use]",
        ),
        audience="user",
    ),
    Rule(
        "permission_denied",
        ignoring_case(
            r"requested permissions? to |you haven'?t granted it|requires approval"
            r"|permission to use \S{1,128}(?: with [^\n]{0,200})? has been (?:auto-)?denied"
            r"|was blocked\. for security|^permission (?:denied|rejected) by"
            r"|denied by (?:policy|your permission)|not allowed by (?:policy|your permission)"
        ),
        "permission_denied",
        "availability",
        (
            "Claude requested permissions to use WebSearch, but you haven't granted it yet.",
            "This command requires approval",
            "Permission to use Bash has been denied.",
            "ls in '~/.x' was blocked. For security, only the working directories may be listed",
        ),
        audience="user",
    ),
    Rule(
        "blocked_by_hook",
        ignoring_case(
            r"\b(?:pretooluse|posttooluse)\b|^(?:blocked|denied) by (?:a )?hook|hook blocked"
        ),
        "blocked_by_hook",
        "availability",
        ("PreToolUse:Bash hook returned blocking error",),
    ),
    Rule(
        "words_of_the_user",
        ignoring_case(
            r"^(?:please (?:add|also|do|don'?t|use|try|first|just|wait|stop|keep|remove|make|run)\b"
            r"|wait\b|actually,? |let'?s |no,? (?:don'?t|use|do|we|i|it|that)\b"
            r"|so if i\b|can (?:you|we)\b|could you\b|why (?:do|did|are|is|not)\b"
            r"|i (?:want|think|would|don'?t|need|prefer)\b|we (?:need|should|want)\b"
            r"|instead,? |don'?t )[^\n]{0,480}$"
        ),
        "rejected_by_user",
        "availability",
        ("please add transformer.js too first", "Wait a sec, we need to copy the icon too"),
        audience="user",
        shell_only=True,
    ),
    Rule(
        "cancelled",
        ignoring_case(
            r"\b(?:was|were|been) (?:cancell?ed|aborted)\b|\babort(?:ed)?error\b|^cancell?ed\b"
        ),
        "cancelled",
        "internal",
        ("The operation was aborted", "AbortError: signal is aborted without reason"),
    ),
)

TOOLS: Final[tuple[Rule, ...]] = (
    Rule(
        "no_such_tool",
        ignoring_case(
            r"^no such tool|^unknown (?:tool|function|action)\b|\btool \S{1,128} (?:is )?not found"
            r"|^tool not found|^(?:tool|function) \S{1,128} (?:is not available|does not exist)"
            r"|\bis not a valid tool\b"
        ),
        "not_available",
        "availability",
        (
            "No such tool available: AskUserQuestion",
            "Unknown tool: excel_read",
            "Tool 'search_web' not found",
        ),
    ),
    Rule(
        "tool_disabled",
        ignoring_case(
            r"\btool (?:\S{1,128} )?is (?:disabled|not enabled|currently unavailable|paused)"
        ),
        "not_available",
        "availability",
        ("Tool 'http_request' is disabled", "This tool is not enabled"),
    ),
)

COMMANDS: Final[tuple[Rule, ...]] = (
    Rule(
        "command_timeout",
        ignoring_case(r"^command timed out\b|^exit code 124\b"),
        "timeout",
        "internal",
        ("Command timed out after 2m 0.0s",),
    ),
    Rule(
        "exit_code",
        ignoring_case(r"^(?:command failed with |process exited with )?exit code:? -?\d"),
        "command_failed",
        "parameter",
        ("Exit code 1\nModuleNotFoundError: No module named 'x'",),
    ),
)
