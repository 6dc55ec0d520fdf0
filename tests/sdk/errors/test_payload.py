"""The payload for the model."""

from __future__ import annotations

import json
import threading
from typing import Any

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


def size(payload: object) -> int:
    """The characters of *payload* as JSON."""
    return len(json.dumps(payload, allow_nan=False))


def payload_of(error: ToolError) -> dict[str, Any]:
    """What the model gets."""
    return error.to_llm_payload()


def test_the_keys_are_the_same_for_every_code() -> None:
    """[P-07] Fourteen keys for every code, all JSON, unset ones null."""
    for code in ToolErrorCode:
        payload = ToolError("t", "m", code).to_llm_payload()

        assert list(payload) == KEYS
        assert json.loads(json.dumps(payload, allow_nan=False)) == payload
        assert payload["ok"] is payload["success"] is False


def test_what_the_model_cannot_fix_carries_nothing_to_fix() -> None:
    """[P-07][L-14] Between field and issues all is empty for availability and internal."""
    for code in ["not_available", "internal_error", "timeout"]:
        payload = payload_of(
            ToolError(
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
        )

        empty = ("field", "expected", "received", "snippet", "retry_context")
        assert [payload[key] for key in empty] == [None] * 5
        assert payload["issues"] == []


def test_at_most_twenty_issues() -> None:
    """[P-07] Twenty issues at most; the message tells the true number."""
    issues = [Issue(f"f{n}", "missing_field") for n in range(50)]
    payload = payload_of(ToolError.from_issues("t", issues, total=90))

    assert len(payload["issues"]) == 20
    assert payload["message"].startswith("Error: Invalid parameters - 90 errors:")


def huge(**changes: Any) -> ToolError:
    """A failure whose payload must be cut."""
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


def test_the_snippet_goes_first_then_the_context_then_issues_from_the_end() -> None:
    """[P-07] Ruling 11: over 8 KiB, parts are dropped in their order."""
    payload = payload_of(huge())

    assert size(payload) <= 8_192
    assert payload["snippet"] is None
    assert payload["retry_context"] is not None
    assert len(payload["issues"]) == 20

    longer = [Issue(f"f{n}", "wrong_type", "m" * 300) for n in range(20)]
    payload = payload_of(huge(issues=longer))
    assert (payload["snippet"], payload["retry_context"]) == (None, None)
    assert [i["field"] for i in payload["issues"]] == [
        f"f{n}" for n in range(len(payload["issues"]))
    ]
    assert 10 < len(payload["issues"]) < 20
    assert size(payload) <= 8_192


def test_the_middle_of_the_message_goes_last() -> None:
    """[P-07] Ruling 11: first line and footer of the message survive."""
    issues = [Issue(f"field_{n}", "wrong_type", "é" * 480) for n in range(50)]
    payload = payload_of(ToolError.from_issues("t", issues, total=50))

    assert size(payload) <= 8_192
    assert payload["message"].startswith("Error: Invalid parameters - 50 errors:\n")
    assert payload["message"].endswith("\nPlease fix all errors and retry with correct types.")


def test_no_field_makes_the_payload_too_large() -> None:
    """[P-07] Ruling 11: whatever is long, and whatever its letters cost in JSON, 8 KiB hold."""
    for letter in ("x", "é", "😀", '"', "\\", "\x00"):
        long = letter * 9_000
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
            retry_context={long: long, "more": [long] * 9},
            context=long,
            tool_requested=long,
        )
        payload = error.to_llm_payload()

        assert list(payload) == KEYS
        assert size(payload) <= 8_192
        assert all(len(text) <= 8_000 for text in error.renderings().values())


def test_the_context_is_plain_bounded_json() -> None:
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
    context = payload_of(error)["retry_context"]

    assert context["password"] == "[REDACTED]"
    assert context["lock"] == "<lock object>"
    assert context["nan"] == "nan"
    assert len(context["long"]) <= 520
    assert size(context) <= 4_096


def test_the_original_objects_are_not_changed() -> None:
    """[P-07] Making a payload changes neither the error nor what it was given."""
    context = {"password": "hunter2", "deep": {"token": "abc"}}
    error = ToolError("t", "m", retry_context=context, snippet="x" * 20_000)
    error.to_llm_payload()

    assert context == {"password": "hunter2", "deep": {"token": "abc"}}
    assert error.snippet == "x" * 20_000
