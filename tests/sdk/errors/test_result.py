"""ToolResult and the shapes it takes outside."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import pickle
import typing
from typing import Any

import pytest

from toolfault.errors import INTERNAL_TEXT, UNAVAILABLE_TEXT, Issue, ToolError, ToolResult


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    day: datetime.date


def missing(tool="calculator", field="expression"):
    return ToolError.from_issues(tool, [Issue(field, "missing_field")])


def test_message_value_success_in_this_order() -> None:
    """[W-01] ToolResult(message, value, success) keeps its positional order and defaults."""
    result = ToolResult("found 3", [1, 2, 3], True)

    assert (result.message, result.value, result.success) == ("found 3", [1, 2, 3], True)
    assert (ToolResult().message, ToolResult().value, ToolResult().success) == ("OK", None, True)


def test_success_is_a_real_bool() -> None:
    """[K-01] success must be True or False."""
    odd: list[Any] = [1, 0, "true", None]
    for success in odd:
        with pytest.raises(TypeError, match="True or False"):
            ToolResult("m", None, success)


def test_contradictions_are_refused() -> None:
    """[W-03][K-04] success excludes an error; a failure has a message and no value."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"success": True, "error": ToolError("t", "m")}, "success has no error"),
        ({"success": True, "error_value": 1}, "success has no error"),
        ({"success": False, "message": "m", "value": 1}, "error_value="),
        ({"success": False}, "needs a message"),
        ({"success": False, "message": ""}, "needs a message"),
    ]
    for arguments, says in cases:
        with pytest.raises(ValueError, match=says):
            ToolResult(**arguments)


def test_a_failure_carries_its_error_and_no_value() -> None:
    """[W-03][W-04] The value of a failure is None unless the tool supplies one."""
    result = ToolResult.failure(missing())

    assert (result.success, result.value, result.is_error) == (False, None, True)
    assert result.content == result.message == "Error: Missing required parameter: expression"
    structured = ToolResult.failure(missing(), error_value={"partial": [1]})
    assert structured.value == {"partial": [1]}


def test_constructors_of_the_older_systems() -> None:
    """[L-08][W-02] from_error, from_success, ok and ensure do what their users rely on."""
    failed = ToolResult.from_error("This tool is not available")

    assert (failed.is_error, failed.content) == (True, "This tool is not available")
    assert failed.error is not None
    assert failed.error.code == "not_available"
    assert ToolResult.from_success(5).content == 5
    assert ToolResult.ok([1], "one").message == "one"
    assert ToolResult.ensure(failed) is failed
    assert ToolResult.ensure(ToolResult.ensure({"a": 1})).value == {"a": 1}
    assert ToolResult.ensure(None).value is None


def test_a_text_is_a_failure_the_model_reads_as_it_is() -> None:
    """[L-08] from_error keeps the text and finds the code its wording stands for."""
    for text, code in [
        ("Error: Missing required parameter: x", "missing_field"),
        ("Error: bad", "invalid_input"),
        ("something broke", "internal_error"),
        (UNAVAILABLE_TEXT, "not_available"),
    ]:
        result: ToolResult[None] = ToolResult.from_error(text)

        assert result.content == text
        assert result.to_dict()["error"] == text
        assert result.to_dict()["error_code"] == code
        assert json.loads(str(result.to_tool_message("c")["content"]))["message"] == text


def test_the_text_of_a_failure_is_redacted_and_bounded() -> None:
    """[L-16][C16] Text given for the model is shown without its secrets, whatever its form."""
    result: ToolResult[None] = ToolResult.from_error("bad password=hunter2 " + "x " * 10_000)

    assert result.message.startswith("bad [REDACTED] x")
    assert len(str(result.content)) <= 8_000
    assert "hunter2" not in json.dumps([result.to_dict(), result.to_tool_message("c")])
    mcp = ToolResult("password=hunter2", None, False).to_mcp()
    assert mcp["content"] == [{"type": "text", "text": "[REDACTED]"}]


def test_an_exception_is_a_failure_that_hides_its_text() -> None:
    """[L-08][C1] from_error of an exception classifies it."""
    result = ToolResult.from_error(RuntimeError("secret place"), tool="t")

    assert result.content == INTERNAL_TEXT
    assert "secret place" not in json.dumps(result.to_dict())


def test_the_contract_dict_of_a_success_merges_a_dict() -> None:
    """[K-01][K-02] Echo first, then the tool's keys; other values under data; None adds nothing."""
    assert ToolResult(value={"results": [1]}, fields={"keyword": "k"}).to_dict() == {
        "success": True,
        "error": None,
        "keyword": "k",
        "results": [1],
    }
    assert ToolResult(value=[1]).to_dict() == {"success": True, "error": None, "data": [1]}
    assert ToolResult(value=None).to_dict() == {"success": True, "error": None}
    assert ToolResult(value=0).to_dict() == {"success": True, "error": None, "data": 0}


def test_collisions_keep_the_tools_own_data() -> None:
    """[A21] A tool that has a data key of its own loses nothing of it."""
    own = ToolResult(value={"data": {"a": 1}, "error": "x"}).to_dict()
    other = ToolResult(value={"data": [1], "error": "x"}).to_dict()

    assert own["data"] == {"a": 1, "error": "x"}
    assert other["data"] == {"data": [1], "error": "x"}


def test_a_tool_that_returns_the_contract_itself_is_left_as_it_is() -> None:
    """[K-02] success True and error None of the tool are the contract's own, not a collision."""
    value = {"success": True, "error": None, "results": [1]}

    assert ToolResult(value=value).to_dict() == value


def test_echoed_secrets_are_redacted() -> None:
    """[C16] An echo is what the model sent: by key and by text it is redacted."""
    fields = {"password": "hunter2", "url": "https://u:pw1@h/x", "n": 5}
    result = ToolResult.failure(missing(), fields=fields).to_dict()

    assert (result["password"], result["url"], result["n"]) == (
        "[REDACTED]",
        "https://[REDACTED]@h/x",
        5,
    )


def test_a_returned_failure_with_a_strange_code_is_internal() -> None:
    """[E6] Codes nobody understands do not break the result."""
    for code in ["Not A Code!", 5, None, "not_available", "cancelled"]:
        returned = {"success": False, "error": "e", "error_code": code}
        error = ToolError.from_returned("t", returned)

        assert error.to_llm_payload()["code"] == "internal_error"


def test_everything_in_the_dict_is_plain_json() -> None:
    """[K-06][K-07] Enums, dates, dataclasses, sets, tuples, NaN and bytes become JSON values."""
    value = {
        "colour": Colour.RED,
        "point": Point(1, datetime.date(2024, 1, 31)),
        "set": {1},
        "tuple": (1, 2),
        "nan": float("nan"),
        "bytes": b"ab",
        3: "int key",
    }
    result = ToolResult(value=value).to_dict()

    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["point"] == {"x": 1, "day": "2024-01-31"}
    assert type(result["success"]) is bool


def test_data_of_a_success_is_complete() -> None:
    """[K-02] Long, deep and large results are not cut."""
    deep: dict[str, object] = {}
    for _ in range(60):
        deep = {"d": deep}
    value = {"long": "x" * 100_000, "many": list(range(10_000)), "deep": deep, "nul": "a\x00b"}

    assert ToolResult(value=value).to_dict() == {"success": True, "error": None, **value}


def test_the_value_can_stay_out_of_the_context() -> None:
    """[W-02] exclude_value_from_context keeps the value local and the message in every form."""
    result = ToolResult("3 rows", {"rows": [1, 2, 3]}, exclude_value_from_context=True)

    assert result.value == {"rows": [1, 2, 3]}
    assert result.to_dict() == {"success": True, "error": None, "message": "3 rows"}
    assert result.to_anthropic("c")["content"] == "3 rows"
    assert 'rows"' not in json.dumps(result.to_tool_message("c"))


def test_metadata_appears_only_when_there_is_some() -> None:
    """[K-01] Empty metadata adds no key."""
    assert "metadata" not in ToolResult(value=1).to_dict()
    assert ToolResult(value=1, metadata={"ms": 5}).to_dict()["metadata"] == {"ms": 5}


def test_the_tool_message_of_a_success_is_its_dict() -> None:
    """[W-08] A success has JSON content too."""
    content = str(ToolResult(value={"é": 1}).to_tool_message("call_1")["content"])

    assert json.loads(content) == {"success": True, "error": None, "é": 1}
    assert "é" in content


def test_the_plain_form_of_an_internal_failure_says_that_it_is_one() -> None:
    """[A25][C11] OpenAI has no flag for failures: a text without a prefix of its own gets one."""
    internal: ToolResult[None] = ToolResult.failure(ToolError("t", "m", "internal_error"))

    assert internal.to_openai_text() == f"ERROR: {INTERNAL_TEXT}"


def test_provider_forms_of_a_success() -> None:
    """[C8] A success is its value as text, without flag or prefix."""
    cases: list[tuple[Any, str]] = [
        ("hi", "hi"),
        (None, "OK"),
        ({"a": 1}, '{"a": 1}'),
        ([1], "[1]"),
        (5, "5"),
        (True, "true"),
    ]
    for value, text in cases:
        result = ToolResult(value=value)

        assert result.to_anthropic("c")["content"] == text
        assert result.to_anthropic("c")["is_error"] is False
        assert result.to_mcp() == {"content": [{"type": "text", "text": text}], "isError": False}
        assert result.to_openai_text() == text


def test_results_are_generic_at_run_time() -> None:
    """[W-14] ToolResult[int] is a usable annotation, and results survive pickle."""

    def function() -> ToolResult[int]:
        return ToolResult(value=1)

    hints = typing.get_type_hints(function, globals())
    assert typing.get_origin(hints["return"]) is ToolResult
    assert pickle.loads(pickle.dumps(ToolResult(value=[1]))).value == [1]
    assert repr(ToolResult(value=1)) == "ToolResult(success=True, value=1)"


def test_a_message_of_any_kind_has_every_form() -> None:
    """[P-05] A host that is not type-checked gets text, and no exception, for what it gave."""
    for message in (42, b"x", ["a"], {"a": 1}, float("nan"), object):
        given: Any = message
        result: ToolResult[Any] = ToolResult(given)

        texts = [str(result), result.to_openai_text(), result.to_mcp()["content"][0]["text"]]  # type: ignore[index]
        assert texts == [result.message] * 3
        assert result.to_anthropic("c")["content"] == result.message
        assert type(result.message) is str
        assert repr(result).startswith("ToolResult(success=True")


def test_how_a_subclass_prints_itself_is_not_what_the_model_reads() -> None:
    """[C8] The forms of a result are of its value, also where its class has a text of its own."""

    class Quiet(ToolResult[Any]):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    result = Quiet(value={"a": 1})

    assert result.to_mcp()["content"] == [{"type": "text", "text": '{"a": 1}'}]
    assert result.to_anthropic("c")["content"] == result.to_openai_text() == '{"a": 1}'
