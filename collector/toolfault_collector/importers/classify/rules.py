"""The rules by which a failure that is only text gets its code: an ordered table.

``docs/classification.md`` shows it with an example of each rule; the first rule whose pattern is
found wins. No pattern repeats a repetition, so the time is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = ["RULES", "Audience", "Category", "Rule"]

Audience: TypeAlias = Literal["user", "llm", "system"]
Category: TypeAlias = Literal["availability", "parameter", "internal"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table.

    Args:
        name: Name of the rule, unique.
        pattern: Searched for in any case; a group ``field`` names the argument.
        audience: Where it differs from the category's default.
        field: Argument meant by every text of this rule.
        of_subject: Whether a sentence that begins with one name speaks of that argument.
        shell_only: Whether only the output of a tool that runs command lines is meant.
    """

    name: str
    code: str
    category: Category
    pattern: str
    audience: Audience | None = None
    field: str | None = None
    of_subject: bool = False
    shell_only: bool = False


_QUOTE: Final = r"""[`'"]"""
_NAME: Final = r"(?P<field>[A-Za-z_][\w.\[\]-]{0,127})"

# Laid out by hand: what a rule says in its first line, what it looks for below.
# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    # What people and their policies refused.
    Rule("rejected_by_user", "rejected_by_user", "availability", audience="user", pattern=
        r"^the user doesn'?t want to (?:proceed|take this action)"
        r"|^the tool use was rejected|request interrupted by user"
        r"|^user (?:rejected|declined|denied)\b"),
    Rule("permission_denied", "permission_denied", "availability", audience="user", pattern=
        r"requested permissions? to |you haven'?t granted it|requires approval"
        r"|permission to use \S{1,128}(?: with [^\n]{0,200})? has been (?:auto-)?denied"
        r"|was blocked\. for security|^permission (?:denied|rejected) by"
        r"|denied by (?:policy|your permission)|not allowed by (?:policy|your permission)"),
    Rule("blocked_by_hook", "blocked_by_hook", "availability", pattern=
        r"\b(?:pretooluse|posttooluse)\b|^(?:blocked|denied) by (?:a )?hook|hook blocked"),
    Rule("words_of_the_user", "rejected_by_user", "availability", audience="user",
        shell_only=True, pattern=
        r"^(?:please (?:add|also|do|don'?t|use|try|first|just|wait|stop|keep|remove|make|run)\b"
        r"|wait\b|actually,? |let'?s |no,? (?:don'?t|use|do|we|i|it|that)\b"
        r"|so if i\b|can (?:you|we)\b|could you\b|why (?:do|did|are|is|not)\b"
        r"|i (?:want|think|would|don'?t|need|prefer)\b|we (?:need|should|want)\b"
        r"|instead,? |don'?t )[^\n]{0,480}$"),
    Rule("cancelled", "cancelled", "internal", pattern=
        r"\b(?:was|were|been) (?:cancell?ed|aborted)\b|\babort(?:ed)?error\b|^cancell?ed\b"),
    # Tools that there are not.
    Rule("no_such_tool", "not_available", "availability", pattern=
        r"^no such tool|^unknown (?:tool|function|action)\b|\btool \S{1,128} (?:is )?not found"
        r"|^tool not found|^(?:tool|function) \S{1,128} (?:is not available|does not exist)"
        r"|\bis not a valid tool\b|^model tried to call unavailable tool\b|^method not found\b"),
    Rule("tool_disabled", "not_available", "availability", pattern=
        r"\btool (?:\S{1,128} )?is (?:disabled|not enabled|currently unavailable|paused)"),
    # What a shell says of the command line that it ran.
    Rule("command_timeout", "timeout", "internal", pattern=
        r"^command timed out\b|^exit code 124\b"),
    Rule("exit_code", "command_failed", "parameter", pattern=
        r"^(?:command failed with |process exited with )?exit code:? -?\d"
        r"|\breturned non-zero exit status \d"),
    # What databases say, whichever driver tells it.
    Rule("not_null", "missing_field", "parameter", pattern=
        rf"\b(?:null value in column {_QUOTE}?{_NAME}{_QUOTE}?"
        r" (?:of relation \S{1,128} )?violates"
        rf"|column {_QUOTE}?(?P<field2>[\w.]{{1,128}}){_QUOTE}? cannot be null"
        rf"|not null constraint failed: (?:\w{{1,128}}\.)?(?P<field3>\w{{1,128}}))"),
    Rule("unique", "already_exists", "parameter", pattern=
        r"\bunique constraint failed\b|\bviolates unique constraint\b"),
    Rule("foreign_key", "precondition_failed", "parameter", pattern=
        r"\bforeign key constraint\b"),
    Rule("check_constraint", "invalid_input", "parameter", pattern=
        r"\bcheck constraint failed\b|\bviolates check constraint\b"
        r"|\bcheck constraint \S{1,128} is violated"),
    Rule("database_type", "wrong_type", "parameter", pattern=
        r"\binvalid input syntax for (?:type )?\w|\bdatatype mismatch\b"
        r"|\boperator does not exist: "),
    Rule("database_busy", "external_service_error", "internal", pattern=
        r"\bdatabase (?:table )?is locked\b|\bdeadlock (?:detected|found)\b"
        r"|\bcould not serialize access\b|\block wait timeout exceeded\b"
        r"|\btoo many (?:connections|clients)\b"),
    Rule("database_login", "configuration_error", "internal", pattern=
        r"\bpassword authentication failed for user\b|\baccess denied for user\b"
        r"|\blogin failed for user\b"),
    # What the model wrote: arguments that are wrong in themselves.
    Rule("missing_argument", "missing_field", "parameter", pattern=
        rf"missing (?:a )?required (?:parameter|argument|field|property|value)s?:? "
        rf"{_QUOTE}?{_NAME}"),
    Rule("argument_required", "missing_field", "parameter", pattern=
        rf"^(?:the )?{_QUOTE}?{_NAME}{_QUOTE}? (?:field |parameter |argument )?is required\b"),
    Rule("unexpected_argument", "unknown_field", "parameter", pattern=
        rf"(?:unexpected keyword argument|unexpected (?:parameter|argument|field|property)"
        rf"|unknown (?:parameter|argument|field|property)):? {_QUOTE}?{_NAME}"),
    Rule("go_type", "wrong_type", "parameter", pattern=
        rf"cannot unmarshal \w{{1,32}} into Go (?:struct field \w{{1,64}}\.{_NAME}|value)"),
    Rule("type", "wrong_type", "parameter", of_subject=True, pattern=
        r"\bis not of type\b|\bmust be (?:a|an|of type)? ?(?:string|integer|number|boolean"
        r"|array|list|object|dict)\b|^invalid type\b|\bexpected [^\n]{1,64}, (?:got|received)\b"),
    Rule("choice", "invalid_choice", "parameter", of_subject=True, pattern=
        r"\bis not one of\b|\bmust be one of\b|\binvalid (?:enum|choice)|\bvalid choices are\b"),
    Rule("too_large", "field_too_large", "parameter", of_subject=True, pattern=
        r"\bexceeds? (?:the )?(?:maximum|limit|max)|\btoo (?:long|large|many)\b(?! requests)"
        r"|\bgreater than (?:or equal to )?the maximum\b|\bmust be (?:at most|less than|<)"),
    Rule("too_small", "field_too_small", "parameter", of_subject=True, pattern=
        r"\btoo short\b|\bless than the minimum\b|\bmust be (?:at least|greater than|>)"
        r"|\b(?:must not|cannot|can't) be empty\b|\bshould be non-empty\b"),
    Rule("json", "malformed_json", "parameter", pattern=
        r"\bjsondecodeerror\b|\binvalid json\b|\bnot valid json\b|\bin json at position\b"
        r"|^expecting (?:value|property name|',' delimiter|':' delimiter)"
        r"|\bunterminated string\b|\bfailed to parse [^\n]{0,40}json\b"),
    Rule("output", "output_invalid", "internal", pattern=
        r"^output validation error\b|\boutput schema (?:is )?defined but no structured output"
        r"|\b(?:output|result) does not match (?:the |its )?output ?schema\b"),
    Rule("diff", "malformed_diff", "parameter", pattern=
        r"\b(?:malformed|corrupt|invalid) (?:diff|patch)\b|\bpatch (?:does not apply|failed)"
        r"|\bhunk #?\d* ?failed\b"),
    Rule("format", "invalid_format", "parameter", of_subject=True, pattern=
        r"\bdoes not match (?:the )?(?:pattern|format|regex|'\^)|\binvalid isoformat\b"
        r"|\binvalid (?:date|time|url|uri|uuid|e-?mail|format|regex|cron|path)\b"
        r"|\bis not a valid (?:date|url|uuid|e-?mail)"),
    # Arguments that are well formed but do not fit the state of the world.
    Rule("not_read", "precondition_failed", "parameter", pattern=
        r"\bfile has not been read yet\b|\bfile has been (?:unexpectedly )?modified since"),
    Rule("replace_not_found", "not_found", "parameter", field="old_string", pattern=
        r"^string to replace not found\b|\bold_str(?:ing)? (?:was )?not found\b"),
    Rule("replace_not_unique", "not_unique", "parameter", field="old_string", pattern=
        r"^found \d+ matches of the string to replace\b|\bmultiple occurrences of old_str"),
    Rule("nothing_to_change", "invalid_input", "parameter", field="new_string", pattern=
        r"^no changes to make\b|\bold_string and new_string (?:are|must be)\b"),
    Rule("already_exists", "already_exists", "parameter", pattern=
        r"\balready exists?\b|\beexist\b|\bduplicate (?:key|entry)\b"),
    Rule("unavailable_resource", "resource_unavailable", "parameter", pattern=
        r"\bnot available (?:on|for|at|in|from)\b|\bnot found or available\b"
        r"|\bnot enough (?:seats|stock|items|rooms|quantity|inventory)\b"
        r"|\b(?:out of stock|sold out|fully booked|no longer available)\b"),
    Rule("wrong_state", "precondition_failed", "parameter", pattern=
        r"\bcannot be (?:used|modified|exchanged|returned|cancell?ed|updated|changed|deleted"
        r"|removed|booked|killed|refunded)\b|\bnot enough (?:balance|funds|credit)\b"
        r"|\binsufficient (?:balance|funds|credit)\b|\bis not (?:running|open|active|pending)\b"
        r"|\bmust (?:first )?be (?:opened|started|created|loaded|read)\b"
        r"|\bno [\w ]{1,40} is (?:currently )?(?:loaded|open|running)\b"),
    Rule("mismatch", "invalid_input", "parameter", pattern=
        r"\bdoes not add up\b|\bshould match\b|\b(?:does|do) not match\b|\bmismatch(?:ed)?\b"),
    # What a tool depends on, and what is left when nothing else fits.
    Rule("rate_limit", "rate_limited", "internal", pattern=
        r"\brate.?limit|\btoo many requests\b|\brequests too quickly\b|\bquota exceeded\b"
        r"|\b(?:status(?: code)?|http(?: error)?|error)[: ]{1,2}429\b|\boverloaded_error\b"),
    Rule("http_status", "external_service_error", "internal", pattern=
        r"\bstatus(?: code)?[: ]{1,2}[45]\d\d\b|\bhttp(?: error)?[: ]{1,3}[45]\d\d\b"
        r"|\b[45]\d\d (?:bad request|unauthorized|forbidden|not found|internal server error"
        r"|bad gateway|service unavailable|gateway timeout)\b|: [45]\d\d$"),
    Rule("timeout", "timeout", "internal", pattern=
        r"\btimed? ?out\b|\btimeout\b|\betimedout\b|\bdeadline exceeded\b"),
    Rule("connection", "external_service_error", "internal", pattern=
        r"\beconn(?:refused|reset|aborted)\b|\benotfound\b|\bgetaddrinfo\b"
        r"|\bconnection (?:refused|reset|error|aborted|closed|issue)|\bnetwork (?:error|is unr)"
        r"|\bfailed to (?:fetch|connect)\b|\ball connection attempts failed\b"
        r"|\bssl(?:error|: )|\brobots\.txt\b"),
    Rule("configuration", "configuration_error", "internal", pattern=
        r"\bapi.?key\b|\bmissing credentials\b|\bnot configured\b"
        r"|\benvironment variable\b[^\n]{0,80}\b(?:not set|missing|required)\b"
        r"|\bexecutable doesn'?t exist\b|\bfailed to (?:launch|initialize) (?:the )?browser\b"),
    Rule("access_denied", "access_denied", "parameter", pattern=
        r"\bpermission denied\b|\beacces\b|\beperm\b|\baccess (?:is )?denied\b"
        r"|\bunauthori[sz]ed\b"),
    Rule("is_directory", "io", "parameter", pattern=
        r"\beisdir\b|\benotdir\b|\bis a directory\b|\bnot a directory\b"),
    Rule("not_found", "not_found", "parameter", pattern=
        r"\bnot found\b|\bno such (?:file|table|column|key|user|object|module|container|image)"
        r"|\bdo(?:es)?(?:n'?t| not) exist\b|\benoent\b|\bcould not (?:be found|find)\b"
        r"|\bcannot (?:find|access)\b|^no [\w -]{1,40} found\b"
        r"|\bunknown (?:column|database|table)\b"),
    Rule("syntax", "invalid_syntax", "parameter", pattern=
        r"\bsyntax error\b|\bsyntaxerror\b|\berror in your sql syntax\b|\bparse error\b"),
    Rule("io", "io", "internal", pattern=
        r"\benospc\b|\bemfile\b|\bno space left\b|\b(?:os|io)error\b|\bi/o error\b"),
    Rule("invalid", "invalid_input", "parameter", pattern=
        r"^invalid\b|\bis invalid\b|\bis not (?:a )?valid\b"
        r"|\binvalid (?:input|value|argument|parameter|request|operation|syntax)s?\b"),
    Rule("command", "command_failed", "parameter", shell_only=True, pattern=r""),
    Rule("exception", "internal_error", "internal", pattern=
        r"^traceback \(most recent call last\)|^[\w.]{1,100}(?:error|exception)\b"
        r"|\binternal (?:server )?error\b|\bunexpected error\b"),
    Rule("unclassified", "unclassified", "internal", pattern=r""),
)
# fmt: on
