"""ToolError as an exception and as a value."""

from __future__ import annotations

import copy
import pickle
import threading
import traceback
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from toolfault.errors import Audience, ConfigError, ErrorCategory, Issue, ToolError, ToolErrorCode


class Unpicklable(Exception):
    """An exception that pickle cannot rebuild."""

    def __init__(self, first, second):
        super().__init__(first)
        self.lock = threading.Lock()


def chained(cause: Exception) -> ToolError:
    """A failure that was raised because of *cause*."""
    try:
        try:
            raise cause
        except type(cause) as exc:
            raise ToolError("t", "boom", "io", category="parameter", field="f") from exc
    except ToolError as error:
        return error
    raise AssertionError


def test_defaults_are_none_and_audience_follows_the_category() -> None:
    """[P-03] Optional fields default to None; the audience is llm or system by category."""
    error = ToolError("http_request", "Invalid URL")

    assert (error.tool, error.message, error.code) == (
        "http_request",
        "Invalid URL",
        ToolErrorCode.INVALID_INPUT,
    )
    assert (error.field, error.expected, error.received, error.snippet) == (None,) * 4
    assert error.category is ErrorCategory.PARAMETER
    assert error.audience is Audience.LLM
    assert ToolError("t", "m", "internal_error").audience is Audience.SYSTEM
    assert ToolError.unavailable("t").audience is Audience.LLM
    assert ToolError("t", "m", audience="User").audience is Audience.USER


def test_both_constructors_agree() -> None:
    """[C22] ToolError(tool, message) and ToolError.new(tool, code, message) say the same."""
    one = ToolError("t", "m", "wrong_type", field="f")
    two = ToolError.new("t", "WrongType", "m", field="f")

    assert one.render("system") == two.render("system")


def test_it_can_be_raised_chained_and_caught_as_its_own_tree() -> None:
    """[P-04][W-06] A raised failure keeps its cause, traceback and notes."""
    error = chained(KeyError("x"))

    assert isinstance(error.__cause__, KeyError)
    assert error.cause is error.__cause__
    assert error.__traceback__ is not None
    error.add_note("seen in staging")
    assert error.__notes__ == ["seen in staging"]
    assert "boom" in "".join(traceback.format_exception(error))


def test_it_survives_pickle_with_everything_it_says() -> None:
    """[P-04] A pickled failure renders as before, keeps its id, its notes and a plain cause."""
    error = chained(KeyError("x")).with_(
        retry_context={"reason": "empty", "lock": threading.Lock()}, retry_hint="try y"
    )
    error.add_note("note")

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(error, protocol))

        assert twin.renderings() == error.renderings()
        assert twin.to_llm_payload() == error.to_llm_payload()
        assert twin.event_id == error.event_id
        assert isinstance(twin.__cause__, KeyError)
        assert twin.__notes__ == ["note"]


def test_an_unpicklable_cause_does_not_stop_pickling() -> None:
    """[P-04] What pickle cannot carry is left out; its type is still told."""
    error = chained(Unpicklable("a", "b"))

    twin = pickle.loads(pickle.dumps(error))

    assert twin.__cause__ is None
    assert twin.exception_type.endswith(".Unpicklable")
    assert twin.render("system") == error.render("system")


def test_subclasses_with_their_own_constructor_survive_pickle_and_copy() -> None:
    """[P-04] Trap 1: a custom __init__ breaks neither unpickling nor copying."""
    error = Special(7)

    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is Special
        assert twin.number == 7
        assert twin.message == "number 7 is taken"


class Special(ToolError):
    """A failure of a project's own."""

    def __init__(self, number):
        super().__init__("special", f"number {number} is taken", "invalid_choice")
        self.number = number


def test_a_copy_is_the_same_failure_and_independent() -> None:
    """[P-04] A copy keeps cause, traceback and id, and does not share its context."""
    error = chained(KeyError("x")).with_(retry_context={"a": 1})
    error.add_note("n")

    for twin in (copy.copy(error), copy.deepcopy(error), error.with_()):
        assert twin is not error
        assert twin.__cause__ is error.__cause__
        assert twin.__traceback__ is error.__traceback__
        assert twin.event_id == error.event_id
        assert twin.retry_context == {"a": 1}
        twin.retry_context["b"] = 2
        twin.add_note("m")
        assert error.retry_context == {"a": 1}
        assert error.__notes__ == ["n"]


def test_with_changes_a_copy_only() -> None:
    """[P-04] with_ returns a copy with the changes and leaves the original alone."""
    error = ToolError("t", "m", "wrong_type", field="f")

    better = error.with_(retry_hint="Send an integer.", tool="u")

    assert (error.retry_hint, error.tool) == (None, "t")
    assert (better.retry_hint, better.tool, better.field) == ("Send an integer.", "u", "f")
    assert better.render("llm") == "Error: m\nHint: Send an integer."


def test_with_lets_category_and_audience_follow_a_new_code_unless_they_were_chosen() -> None:
    """[P-03] A new code brings its category; a chosen category or audience stays."""
    error = ToolError("t", "m", "wrong_type")

    assert error.with_(code="timeout").category is ErrorCategory.INTERNAL
    assert error.with_(code="timeout").audience is Audience.SYSTEM
    chosen = ToolError("t", "m", "io", category="parameter", audience="user")
    assert chosen.with_(code="timeout").category is ErrorCategory.PARAMETER
    assert chosen.with_(category="internal").audience is Audience.USER


def test_with_refuses_names_it_does_not_know() -> None:
    """[P-03] A misspelt change is an error at once, not a silent attribute."""
    with pytest.raises(TypeError, match="retry_hnt"):
        ToolError("t", "m").with_(retry_hnt="x")


def test_the_event_id_is_a_uuid_of_version_7_made_once() -> None:
    """[W-01] Ruling 2: the id is a UUIDv7, stable for one failure, new for the next."""
    error = ToolError("t", "m")

    assert error.event_id == error.event_id
    assert uuid.UUID(error.event_id).version == 7
    assert uuid.UUID(error.event_id).variant == uuid.RFC_4122
    ids = [ToolError("t", "m").event_id for _ in range(50)]
    assert len(set(ids)) == 50


def test_str_names_code_tool_and_message() -> None:
    """[L-13][L-12] The text for logs carries code, tool and message."""
    error = ToolError("calculator", "no such operator", "invalid_choice")

    assert str(error) == "invalid_choice error in tool calculator: no such operator"


def test_fields_that_are_not_text_are_represented() -> None:
    """[P-05] Any object may be given as a field; it is represented, never run."""
    raw: Any = b"abc"
    error = ToolError("t", "m", field="n", received=9000, snippet=raw)

    assert (error.received, error.received_type, error.snippet) == ("9000", "int", "<bytes len=3>")
    assert ToolError("t", "m", received={"password": "hunter2"}).received == (
        "{'password': '[REDACTED]'}"
    )


def test_an_authored_failure_about_one_field_counts_as_one_issue() -> None:
    """[P-03][C5] A field makes one issue; no field makes none; internal failures have none."""
    assert [i.field for i in ToolError("t", "m", field="f").issues] == ["f"]
    assert ToolError("t", "m").issues == ()
    assert ToolError("t", "m", "internal_error", field="f").issues == ()


def test_several_issues_share_a_code_or_are_invalid_input() -> None:
    """[C5] One shared code is the code of the failure, else it is invalid_input, without field."""
    same = ToolError.from_issues("t", [Issue("a", "wrong_type"), Issue("b", "wrong_type")])
    mixed = ToolError.from_issues("t", [Issue("a", "wrong_type"), Issue("b", "missing_field")])

    assert (same.code, same.field) == (ToolErrorCode.WRONG_TYPE, None)
    assert (mixed.code, mixed.field) == (ToolErrorCode.INVALID_INPUT, None)


def test_merge_joins_the_failures_of_several_validators() -> None:
    """[H-01][C27] merge makes one failure with all issues, in order."""
    one = ToolError(
        "t", "a must be <= 1", "field_too_large", field="a", received=5, expected="<= 1"
    )
    two = ToolError("t", "b must be a string", "wrong_type", field="b", received=1.5)

    merged = ToolError.merge([one, two])

    assert merged.render("llm") == (
        "Error: Invalid parameters - 2 errors:\n"
        "  • a: a must be <= 1 (received int: 5)\n"
        "  • b: b must be a string (received float: 1.5)\n"
        "\n"
        "Please fix all errors and retry with correct types."
    )
    assert ToolError.merge("u", [one, two]).tool == "u"
    assert ToolError.merge([one]).render("llm") == one.render("llm")


def test_merge_prefers_what_the_model_can_fix() -> None:
    """[C27] An internal failure does not hide fixable ones, and stands when it is alone."""
    fixable = ToolError("t", "bad a", field="a")
    internal = ToolError("t", "db gone", "internal_error")

    assert ToolError.merge([internal, fixable]).render("llm") == "Error: bad a"
    assert ToolError.merge([internal]).category is ErrorCategory.INTERNAL


def test_merge_keeps_hints_and_contexts() -> None:
    """[P-13] Hints are joined without repetition and contexts united."""
    one = ToolError("t", "m", field="a", retry_hint="Use x.", retry_context={"a": 1})
    two = ToolError("t", "m", field="b", retry_hint="Use x.", retry_context={"b": 2})

    merged = ToolError.merge([one, two])

    assert (merged.retry_hint, merged.retry_context) == ("Use x.", {"a": 1, "b": 2})


def test_nothing_to_merge_is_refused() -> None:
    """[C27] Merging no failure, or making one of no issue, says what is missing."""
    with pytest.raises(ConfigError, match="no error to merge"):
        ToolError.merge([])
    with pytest.raises(ConfigError, match="at least one issue"):
        ToolError.from_issues("t", [])


def test_a_fingerprint_has_no_values_in_it() -> None:
    """[P-07] Failures that differ only in values, indexes or invented names are the same."""

    def failure(index, value, invented):
        return ToolError.from_issues(
            "t",
            [
                Issue(f"items.{index}.port", "wrong_type", received=repr(value)),
                Issue(invented, "unknown_field"),
            ],
        )

    assert failure(0, 1, "a").fingerprint == failure(7, 2, "b").fingerprint
    assert len(failure(0, 1, "a").fingerprint) == 16
    assert ToolError("t", "m", "io").fingerprint != ToolError("t", "m", "timeout").fingerprint


def test_issue_patterns_group_indexes_and_invented_names() -> None:
    """[A12] Trap 12: indexes and names the model invented become `*` for grouping."""
    assert Issue("items.1.port", "wrong_type").field_pattern == "items.*.port"
    assert Issue("items.1.port", "wrong_type").root_field == "items"
    assert Issue("anything_at_all", "unknown_field").field_pattern == "*"
    assert Issue("a.b.invented", "unknown_field").field_pattern == "a.b.*"


def test_issues_are_values() -> None:
    """[P-04] Equal issues are equal, hash alike and survive pickle."""
    one = Issue("a", "wrong_type", "m", expected="integer", loc=("a",))
    two = Issue("a", "wrong_type", "m", expected="integer", loc=("a",))

    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.with_(near_miss=["strip"]).near_miss == ("strip",)
    assert one != one.with_(field="b")
    with pytest.raises(TypeError, match="fild"):
        one.with_(fild="b")


class Named(ToolError):
    """A failure of a project whose own attributes and methods have names of ours."""

    snippet = b"bytes"  # type: ignore[assignment]
    told = 5  # type: ignore[assignment]
    kind = "strange"  # type: ignore[assignment]
    _message = "another"

    def field(self) -> None:  # type: ignore[override]
        """Do something of the project's."""

    reason = context = field  # type: ignore[assignment]


@pytest.mark.parametrize(
    "made",
    [
        lambda cls: cls("t", "m"),
        lambda cls: cls.from_exception("t", ValueError("m")),
        lambda cls: cls.from_issues("t", [Issue("a", "wrong_type", "m")]),
    ],
)
def test_attributes_of_a_subclass_are_not_ours(
    made: Callable[[type[ToolError]], ToolError],
) -> None:
    """[P-05] What a subclass defines under the name of an argument says nothing of a failure."""
    error, plain = made(Named), made(ToolError)

    for twin in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert twin.renderings() == plain.renderings()
        assert twin.to_llm_payload() == plain.to_llm_payload()


def test_what_is_pickled_says_also_what_was_not_given() -> None:
    """[P-04] A version without defaults on the class reads an error as this one does."""
    error = ToolError.from_issues("t", [Issue("a", "wrong_type", "m")])

    state: Any = error.__reduce__()[2]

    assert {name for name in ToolError.__annotations__ if not hasattr(ToolError, name)} <= set(
        state
    )
    assert {"snippet", "tool_requested", "adapter_failed", "_event_id", "_message"} <= set(state)
    assert {"snippet", "tool_requested", "adapter_failed"}.isdisjoint(error.__dict__)


def test_a_cause_that_is_no_exception_is_left_out() -> None:
    """[P-04] Of a host that is not type-checked."""
    strange: Any = "no exception"

    error = ToolError.from_issues("t", [Issue("a", "wrong_type", "m")], cause=strange)

    assert error.__cause__ is None
