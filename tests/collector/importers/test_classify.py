"""Text-only failures: the table of rules and the texts that are taken apart."""

from __future__ import annotations

import re
from typing import Any

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collector.importers.documented import examples

from toolfault_collector.importers.classify import ISSUES_RULE, classify, unwrap
from toolfault_collector.importers.classify.rules import RULES

CODE = re.compile(r"[a-z][a-z0-9_]{1,63}")
EXAMPLES = [
    *examples(),
    ("rejected_by_user", "The user doesn't want to take this action right now."),
    ("rejected_by_user", "[Request interrupted by user for tool use]"),
    ("permission_denied", "This command requires approval"),
    ("permission_denied", "Permission to use Bash has been denied."),
    ("permission_denied", "ls in '~/.x' was blocked. For security, only some folders are listed"),
    ("words_of_the_user", "Wait a sec, we need to copy the icon too"),
    ("cancelled", "AbortError: signal is aborted without reason"),
    ("no_such_tool", "Unknown tool: excel_read"),
    ("no_such_tool", "Tool 'search_web' not found"),
    ("tool_disabled", "This tool is not enabled"),
    ("missing_argument", "missing required argument 'query'"),
    ("argument_required", "The 'query' parameter is required"),
    ("unexpected_argument", "Unknown parameter: 'usr'"),
    ("type", "expected list, got str"),
    ("choice", "cabin must be one of economy, business"),
    ("too_large", "limit must be at most 100"),
    ("too_small", "limit must be at least 1"),
    ("json", "Expecting value: line 1 column 1 (char 0)"),
    ("diff", "corrupt patch at line 6"),
    ("format", "Invalid URL"),
    ("already_exists", "EEXIST: file already exists, mkdir '/tmp/x'"),
    ("unavailable_resource", "not enough seats on flight HAT139"),
    ("unavailable_resource", "new item 9127591879 not found or available"),
    ("wrong_state", "certificate cannot be used to update reservation"),
    ("wrong_state", "not enough balance in payment method gift_card_5094406"),
    ("wrong_state", "Shell dce0af is not running, so cannot be killed (status: killed)"),
    ("mismatch", "the number of items to be exchanged should match"),
    ("rate_limit", "you are likely making requests too quickly."),
    ("http_status", "Failed to fetch https://example.org/a - status code 404"),
    ("http_status", "Failed to search features by category: 400"),
    ("timeout", "Connection timeout to host https://example.org"),
    ("connection", "Failed to fetch robots.txt https://example.org due to a connection issue"),
    ("configuration", "browserType.launch: Executable doesn't exist at /opt/chromium"),
    ("not_found", "user not found"),
    ("not_found", "ENOENT: no such file or directory, open '/srv/a.docx'"),
    ("not_found", "(sqlite3.OperationalError) no such table: project"),
    ("not_found", "ls: cannot access 'types/': No such file or directory"),
    ("invalid", "The selected champion is invalid."),
    ("exception", "Internal error"),
]


def test_rules_are_well_formed() -> None:
    """Names are unique, codes are codes, the last rule fits everything."""
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert CODE.fullmatch(rule.code)
        assert rule.audience != "system" or rule.category == "internal"
    assert RULES[-1].pattern == ""
    assert all(rule.pattern or rule.shell_only for rule in RULES[:-1])


def test_each_example_is_classified_by_its_own_rule() -> None:
    """No rule further up takes an example away, with or without the usual prefixes."""
    shell_only = {rule.name for rule in RULES if rule.shell_only}
    for rule, example in EXAMPLES:
        tool = "Bash" if rule in shell_only else "tool"
        for text in (example, f"Error: {example}", f"<tool_use_error>{example}</tool_use_error>"):
            assert classify(text, tool=tool).rule == rule, text


SCHEMA = "Input validation error: "
CLAUDE = "InputValidationError: Task failed due to the following issue:\n"
ZOD = """MCP error -32602: Invalid arguments for tool x: [
  {
    "code": "invalid_type",
    "expected": "string",
    "received": "undefined",
    "path": [
      "names",
      0
    ],
    "message": "Required"
  }
]"""


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        ("Error: Missing required parameter: url", "missing_field", "url"),
        ("url is required", "missing_field", "url"),
        ("Unknown parameter: 'usr'", "unknown_field", "usr"),
        ("f() got an unexpected keyword argument 'usr'", "unknown_field", "usr"),
        ("f() missing 1 required positional argument: 'id'", "missing_field", "id"),
        (f"{SCHEMA}'file_path' is a required property", "missing_field", "file_path"),
        (f"{SCHEMA}5 is not of type 'string'", "wrong_type", None),
        (
            f"{SCHEMA}Additional properties are not allowed ('x' was unexpected)",
            "unknown_field",
            "x",
        ),
        ("cannot unmarshal string into Go struct field A.port of type int", "wrong_type", "port"),
        ("String to replace not found in file.\nString: x", "not_found", "old_string"),
        (f"{CLAUDE}The required parameter `prompt` is missing", "missing_field", "prompt"),
        (ZOD, "missing_field", "names.0"),
        ('{"game_mode":["The game mode field is required."]}', "missing_field", "game_mode"),
        ("port must be an integer", "wrong_type", "port"),
        ("The 'cabin' parameter must be one of economy, business", "invalid_choice", "cabin"),
        ("limit must be at most 100", "field_too_large", "limit"),
        ("Value must be an integer", "wrong_type", None),
        ("File content (28375 tokens) exceeds maximum allowed tokens", "field_too_large", None),
        ("Error: payment method not found", "not_found", None),
    ],
)
def test_the_field_is_taken_from_the_text(text: str, code: str, field: str | None) -> None:
    """Where a text names the argument, it is the field; where it does not, there is none."""
    found = classify(text)
    assert (found.code, found.field) == (code, field)
    assert [issue.field for issue in found.issues] == ([field] if field else [])


class _Item(pydantic.BaseModel):
    port: int
    tags: list[str]


class _Arguments(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    url: str
    items: list[_Item]
    limit: int = pydantic.Field(ge=1)
    mode: str = pydantic.Field(pattern="^[ab]$")

    @pydantic.model_validator(mode="after")
    def _check(self) -> _Arguments:
        raise ValueError("url and mode do not go together")


def test_a_pydantic_block_becomes_issues() -> None:
    """Each fault has its field, code, expectation and type, as pydantic itself reports them."""
    arguments: dict[str, Any] = {
        "items": [{"port": "x", "tags": "a"}], "limit": 0, "mode": "z", "more": 1
    }  # fmt: skip
    with pytest.raises(pydantic.ValidationError) as caught:
        _Arguments.model_validate(arguments)
    found = classify(f"Error executing tool x: {caught.value}")
    assert (found.rule, found.code, found.field) == (ISSUES_RULE, "invalid_input", None)
    assert {(issue.field, issue.code, issue.expected) for issue in found.issues} == {
        ("url", "missing_field", None),
        ("items.0.port", "wrong_type", "integer"),
        ("items.0.tags", "wrong_type", "array"),
        ("limit", "field_too_small", ">= 1"),
        ("mode", "invalid_format", None),
        ("more", "unknown_field", None),
    }
    received = {issue.field: issue.received_type for issue in found.issues}
    assert (received["url"], received["items.0.tags"]) == (None, "str")


def test_a_models_own_fault_is_at_the_root() -> None:
    """A fault of the whole has no field line of its own in pydantic's text."""
    arguments = {"url": "u", "items": [], "limit": 1, "mode": "a"}
    with pytest.raises(pydantic.ValidationError) as caught:
        _Arguments.model_validate(arguments)
    found = classify(str(caught.value))
    assert [(issue.field, issue.code) for issue in found.issues] == [("(root)", "invalid_input")]


def test_a_text_of_several_faults_keeps_a_code_they_share() -> None:
    """All of one code: that code; else ``invalid_input`` (contract of the SDK, 3.3)."""
    head = "InputValidationError: Edit failed due to the following issues:\n"
    missing = "The required parameter `a` is missing\nThe required parameter `b` is missing"
    mixed = (
        "An unexpected parameter `c` was provided\n"
        "The parameter `n` type is expected as `number` but provided as `string`"
    )
    assert classify(head + missing).code == "missing_field"
    found = classify(head + mixed)
    assert found.code == "invalid_input"
    assert [(i.field, i.code, i.expected, i.received_type) for i in found.issues] == [
        ("c", "unknown_field", None, None),
        ("n", "wrong_type", "number", "string"),
    ]


def test_zod_names_unknown_keys_and_choices() -> None:
    """Each unrecognised key is an issue of its own."""
    text = (
        '[{"code": "unrecognized_keys", "keys": ["a", "b"], "path": ["o"], "message": "m"},'
        ' {"code": "invalid_enum_value", "path": ["mode"], "options": ["x"], "message": "m"}]'
    )
    assert [(i.field, i.code) for i in classify(text).issues] == [
        ("o.a", "unknown_field"),
        ("o.b", "unknown_field"),
        ("mode", "invalid_choice"),
    ]


def test_only_the_first_line_says_what_a_failure_is() -> None:
    """Words further down are data: a compiler's output is no missing file."""
    text = "npm warn config\nsrc/a.ts(1,1): error TS2307: Cannot find module 'x'. timeout"
    assert classify(text, tool="Bash").code == "command_failed"
    assert classify(text, tool="Read").code == "unclassified"


@given(text=st.text() | st.sampled_from([text for _, text in EXAMPLES]), tool=st.text())
@settings(deadline=None)
def test_every_text_has_one_answer(text: str, tool: str) -> None:
    """Any text is classified, twice the same, into an allowed code and category."""
    found = classify(text, tool=tool)
    assert found == classify(text, tool=tool)
    assert CODE.fullmatch(found.code)
    assert found.category in {"availability", "parameter", "internal"}
    assert found.audience in {"user", "llm", "system"}
    assert all(issue.field for issue in found.issues)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        " " * 200_000,
        "Error: " * 50_000,
        "'" * 200_000,
        "<tool_use_error>" * 20_000,
        "1 validation error for X\n" + "  [type=" * 50_000,
        "[" * 100_000,
        '[{"' * 50_000,
        '{"a":' * 50_000,
        "permission to use " * 20_000,
        "\n" * 200_000,
    ],
    ids=lambda text: text[:12],
)
def test_long_and_hostile_texts_are_classified(text: str) -> None:
    """Bounded parts of a text are looked at, so its length does not matter."""
    for tool in ("Bash", "tool"):
        assert classify(text, tool=tool).code


def test_unwrap_takes_off_the_tags_only() -> None:
    """Tags around the text go, tags in the middle stay."""
    assert unwrap("<tool_use_error>a</tool_use_error>") == "a"
    assert unwrap("<tool_use_error>cut off") == "cut off"
    assert unwrap("see <tool_use_error>") == "see <tool_use_error>"


def test_a_rule_can_be_asked_for_by_name() -> None:
    """The format may know more than the text; a name that does not exist is an error."""
    assert classify("anything", rule="rejected_by_user").audience == "user"
    with pytest.raises(ValueError, match="no rule"):
        classify("anything", rule="nonsense")
