"""The payload for the model."""

from __future__ import annotations

import json
import threading

import pytest

from toolfault.errors import Issue, ToolError, ToolErrorCode

KEYS = [
    "ok",
    "success",
    "tool",
    "code",
    "category",
    "message",
    "field",
    "expected",
    "received",
    "snippet",
    "issues",
    "retryable",
    "retry_hint",
    "retry_context",
]


def size(payload):
    return len(json.dumps(payload, allow_nan=False))


@pytest.mark.parametrize("code", list(ToolErrorCode))
def test_the_keys_are_the_same_for_every_code(code):
    """[P-07] Fourteen keys for every code, all JSON, unset ones null."""
    payload = ToolError("t", "m", code).to_llm_payload()

    assert list(payload) == KEYS
    assert json.loads(json.dumps(payload, allow_nan=False)) == payload
    assert payload["ok"] is payload["success"] is False


def test_a_missing_field_in_full():
    """[P-07][A04] The payload of the founding example, exactly."""
    error = ToolError.from_issues("calculator", [Issue("expression", "missing_field")])

    assert error.to_llm_payload() == {
        "ok": False,
        "success": False,
        "tool": "calculator",
        "code": "missing_field",
        "category": "parameter",
        "message": "Error: Missing required parameter: expression",
        "field": "expression",
        "expected": None,
        "received": None,
        "snippet": None,
        "issues": [
            {
                "field": "expression",
                "code": "missing_field",
                "message": "Missing required parameter",
                "expected": None,
                "received": None,
                "received_type": None,
            }
        ],
        "retryable": True,
        "retry_hint": None,
        "retry_context": None,
    }


def test_an_authored_failure_in_full():
    """[A16][P-13] One issue stands for an authored failure about one field."""
    error = ToolError(
        "ask_model",
        "max_tokens must be <= 4096",
        "field_too_large",
        field="max_tokens",
        expected="<= 4096",
        received=9000,
    )
    payload = error.to_llm_payload()

    assert payload["message"] == "Error: max_tokens must be <= 4096 (received int: 9000)"
    assert payload["issues"] == [
        {
            "field": "max_tokens",
            "code": "field_too_large",
            "message": "max_tokens must be <= 4096",
            "expected": "<= 4096",
            "received": "9000",
            "received_type": "int",
        }
    ]
    assert (payload["field"], payload["expected"], payload["received"]) == (
        "max_tokens",
        "<= 4096",
        "9000",
    )


@pytest.mark.parametrize("code", ["not_available", "internal_error", "timeout"])
def test_what_the_model_cannot_fix_carries_nothing_to_fix(code):
    """[P-07][L-14] Between field and issues all is empty for availability and internal."""
    error = ToolError(
        "t",
        "m",
        code,
        field="f",
        expected="e",
        received="r",
        snippet="s",
        retry_context={"a": 1},
        issues=[Issue("f", "wrong_type")],
    )
    payload = error.to_llm_payload()

    assert [payload[k] for k in ("field", "expected", "received", "snippet", "retry_context")] == [
        None
    ] * 5
    assert payload["issues"] == []


def test_at_most_twenty_issues():
    """[P-07] Twenty issues at most; the message tells the true number."""
    issues = [Issue(f"f{n}", "missing_field") for n in range(50)]
    payload = ToolError.from_issues("t", issues, total=90).to_llm_payload()

    assert len(payload["issues"]) == 20
    assert payload["message"].startswith("Error: Invalid parameters - 90 errors:")


def huge(**changes):
    error = ToolError(
        "t",
        "short message",
        "invalid_format",
        field="f",
        snippet="s" * 3_000,
        retry_context={f"k{n}": "c" * 300 for n in range(12)},
        issues=[Issue(f"f{n}", "wrong_type", "m" * 90) for n in range(20)],
    )
    return error.with_(**changes)


def test_the_snippet_goes_first_then_the_context_then_issues_from_the_end():
    """[P-07] Ruling 11: over 8 KiB, parts are dropped in their order."""
    payload = huge().to_llm_payload()

    assert size(payload) <= 8_192
    assert payload["snippet"] is None
    assert payload["retry_context"] is not None
    assert len(payload["issues"]) == 20

    payload = huge(
        issues=[Issue(f"f{n}", "wrong_type", "m" * 300) for n in range(20)]
    ).to_llm_payload()
    assert (payload["snippet"], payload["retry_context"]) == (None, None)
    assert [i["field"] for i in payload["issues"]] == [
        f"f{n}" for n in range(len(payload["issues"]))
    ]
    assert 10 < len(payload["issues"]) < 20
    assert size(payload) <= 8_192


def test_the_middle_of_the_message_goes_last():
    """[P-07] Ruling 11: first line and footer of the message survive."""
    issues = [Issue(f"field_{n}", "wrong_type", "é" * 480) for n in range(50)]
    payload = ToolError.from_issues("t", issues, total=50).to_llm_payload()

    assert size(payload) <= 8_192
    assert payload["message"].startswith("Error: Invalid parameters - 50 errors:\n")
    assert payload["message"].endswith("\nPlease fix all errors and retry with correct types.")


@pytest.mark.parametrize("letter", ["x", "é", "😀", '"', "\\", "\x00", "\ud800"])
def test_no_field_makes_the_payload_too_large(letter):
    """[P-07] Ruling 11: whatever is long, and whatever its letters cost in JSON, 8 KiB hold."""
    long = letter * 50_000
    error = ToolError(
        long,
        long,
        "invalid_format",
        field=long,
        expected=long,
        received=long,
        received_type=long,
        snippet=long,
        retry_hint=long,
        retry_context={long: long, "more": [long] * 50},
        context=long,
        tool_requested=long,
    )
    payload = error.to_llm_payload()

    assert list(payload) == KEYS
    assert size(payload) <= 8_192
    assert all(len(text) <= 8_000 for text in error.renderings().values())


def test_the_context_is_plain_bounded_json():
    """[P-07] Ruling 10: the context is normalised, redacted and at most 4 KiB."""
    error = ToolError(
        "t",
        "m",
        retry_context={
            "password": "hunter2",
            "lock": threading.Lock(),
            "nan": float("nan"),
            "long": "x" * 10_000,
            **{f"k{n}": "y" * 500 for n in range(20)},
        },
    )
    context = error.to_llm_payload()["retry_context"]

    assert context["password"] == "[REDACTED]"
    assert context["lock"] == "<lock object>"
    assert context["nan"] == "nan"
    assert len(context["long"]) <= 520
    assert size(context) <= 4_096


def test_a_snippet_is_head_and_tail():
    """[A17] Trap 10: 512 characters stay, 1,000 become the first 312, a mark and the last 200."""
    text = "".join(chr(97 + n % 26) for n in range(1_000))

    assert ToolError("t", "m", snippet=text[:512]).to_llm_payload()["snippet"] == text[:512]
    shown = ToolError("t", "m", snippet=text).to_llm_payload()["snippet"]
    assert shown == text[:312] + "…<snip>…" + text[-200:]
    assert len(shown) == 520


def test_the_original_objects_are_not_changed():
    """[P-07] Making a payload changes neither the error nor what it was given."""
    context = {"password": "hunter2", "deep": {"token": "abc"}}
    error = ToolError("t", "m", retry_context=context, snippet="x" * 20_000)
    error.to_llm_payload()

    assert context == {"password": "hunter2", "deep": {"token": "abc"}}
    assert len(error.snippet) == 20_000
