"""Rules about what a tool depends on, and what is left when nothing else fits."""

from __future__ import annotations

from typing import Final

from toolfault_collector.importers.classify._rule import Rule, ignoring_case

__all__ = ["OUTSIDE"]

OUTSIDE: Final[tuple[Rule, ...]] = (
    Rule(
        "rate_limit",
        ignoring_case(
            r"\brate.?limit|\btoo many requests\b|\brequests too quickly\b|\bquota exceeded\b"
            r"|\b(?:status(?: code)?|http(?: error)?|error)[: ]{1,2}429\b|\boverloaded_error\b"
        ),
        "rate_limited",
        "internal",
        ("Request failed with status code 429", "you are likely making requests too quickly."),
    ),
    Rule(
        "http_status",
        ignoring_case(
            r"\bstatus(?: code)?[: ]{1,2}[45]\d\d\b|\bhttp(?: error)?[: ]{1,3}[45]\d\d\b"
            r"|\b[45]\d\d (?:bad request|unauthorized|forbidden|not found|internal server error"
            r"|bad gateway|service unavailable|gateway timeout)\b|: [45]\d\d$"
        ),
        "external_service_error",
        "internal",
        (
            "Request failed with status code 403",
            "Failed to fetch https://example.org/a - status code 404",
            "Failed to search features by category: 400",
        ),
    ),
    Rule(
        "timeout",
        ignoring_case(r"\btimed? ?out\b|\btimeout\b|\betimedout\b|\bdeadline exceeded\b"),
        "timeout",
        "internal",
        ("Tool call timed out.", "Connection timeout to host https://example.org"),
    ),
    Rule(
        "connection",
        ignoring_case(
            r"\beconn(?:refused|reset|aborted)\b|\benotfound\b|\bgetaddrinfo\b"
            r"|\bconnection (?:refused|reset|error|aborted|closed|issue)|\bnetwork (?:error|is unr)"
            r"|\bfailed to (?:fetch|connect)\b|\bssl(?:error|: )|\brobots\.txt\b"
        ),
        "external_service_error",
        "internal",
        (
            "connect ECONNREFUSED 127.0.0.1:8080",
            "Failed to fetch robots.txt https://example.org/robots.txt due to a connection issue",
        ),
    ),
    Rule(
        "configuration",
        ignoring_case(
            r"\bapi.?key\b|\bmissing credentials\b|\bnot configured\b"
            r"|\benvironment variable\b[^\n]{0,80}\b(?:not set|missing|required)\b"
            r"|\bexecutable doesn'?t exist\b|\bfailed to (?:launch|initialize) (?:the )?browser\b"
        ),
        "configuration_error",
        "internal",
        ("Invalid API key", "browserType.launch: Executable doesn't exist at /opt/chromium"),
    ),
    Rule(
        "access_denied",
        ignoring_case(
            r"\bpermission denied\b|\beacces\b|\beperm\b|\baccess (?:is )?denied\b"
            r"|\bunauthori[sz]ed\b"
        ),
        "access_denied",
        "parameter",
        ("EACCES: permission denied, open '/etc/shadow'",),
    ),
    Rule(
        "is_directory",
        ignoring_case(r"\beisdir\b|\benotdir\b|\bis a directory\b|\bnot a directory\b"),
        "io",
        "parameter",
        ("EISDIR: illegal operation on a directory, read",),
    ),
    Rule(
        "not_found",
        ignoring_case(
            r"\bnot found\b|\bno such (?:file|table|column|key|user|object|module|container|image)"
            r"|\bdo(?:es)?(?:n'?t| not) exist\b|\benoent\b|\bcould not (?:be found|find)\b"
            r"|\bcannot (?:find|access)\b|^no [\w -]{1,40} found\b"
            r"|\bunknown (?:column|database|table)\b"
        ),
        "not_found",
        "parameter",
        (
            "payment method not found",
            "user not found",
            "ENOENT: no such file or directory, open '/srv/a.docx'",
            "(sqlite3.OperationalError) no such table: project",
            "ls: cannot access 'types/': No such file or directory",
        ),
    ),
    Rule(
        "syntax",
        ignoring_case(
            r"\bsyntax error\b|\bsyntaxerror\b|\berror in your sql syntax\b|\bparse error\b"
        ),
        "invalid_syntax",
        "parameter",
        ("You have an error in your SQL syntax; check the manual",),
    ),
    Rule(
        "io",
        ignoring_case(r"\benospc\b|\bemfile\b|\bno space left\b|\b(?:os|io)error\b|\bi/o error\b"),
        "io",
        "internal",
        ("ENOSPC: no space left on device, write",),
    ),
    Rule(
        "invalid",
        ignoring_case(
            r"^invalid\b|\bis invalid\b|\bis not (?:a )?valid\b"
            r"|\binvalid (?:input|value|argument|parameter|request|operation|syntax)s?\b"
        ),
        "invalid_input",
        "parameter",
        ("Invalid reservation id", "The selected champion is invalid."),
    ),
    Rule(
        "command",
        ignoring_case(r""),
        "command_failed",
        "parameter",
        ("src/agent.ts(217,9): error TS2322: Type 'a' is not assignable to type 'b'.",),
        shell_only=True,
    ),
    Rule(
        "exception",
        ignoring_case(
            r"^traceback \(most recent call last\)|^[\w.]{1,100}(?:error|exception)\b"
            r"|\binternal (?:server )?error\b|\bunexpected error\b"
        ),
        "internal_error",
        "internal",
        ("KeyError: 'flights'", "Internal error"),
    ),
    Rule(
        "unclassified",
        ignoring_case(r""),
        "unclassified",
        "internal",
        ("Oops",),
    ),
)
